//! Frames: whatever bytes come, they are a message or an error, and what was sent is what is taken in.

use bytes::BytesMut;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use prost::Message as _;
use sprag_net::frame::{FrameError, Frames, PREFIX_BYTES, append};
use sprag_net::peer_message::{decode, encode};
use sprag_net::wire::{ClientFrame, PeerFrame, PeerKind, Response};
use sprag_paxos::{Answer, Ballot, DiskId, Entry, Message, NodeId, Slot, Snapshot, Vote, Voter};

const BYTES_MAX: usize = 1 << 16;

fn ballot() -> impl Strategy<Value = Ballot> {
    (any::<u64>(), any::<u16>(), any::<u64>()).prop_map(|(round, node, disk)| Ballot {
        round,
        voter: Voter {
            node: NodeId(node),
            disk: DiskId(disk),
        },
    })
}

/// The last slot that there is.
const SLOT_MAX: u64 = 1 << 62;

/// How far above what is decided a promise may say something.
const SLOTS_MAX: u64 = 1 << 21;

fn slot() -> impl Strategy<Value = Slot> {
    (0..=SLOT_MAX).prop_map(Slot)
}

/// A promise as a voter makes it.
fn promise() -> impl Strategy<Value = Message> {
    let near = (0..=SLOTS_MAX).prop_map(Slot);
    (
        ballot(),
        slot(),
        vec((near, answer()), 0..10),
        option::of(1..100_u64),
        slot(),
    )
        .prop_map(|(ballot, from, answers, next, decided)| {
            let from = Slot(from.0 - 100.min(from.0));
            let answers = answers.into_iter();
            Message::Promise {
                ballot,
                from,
                answers: answers
                    .map(|(near, answer)| (Slot(decided.0 + near.0), answer))
                    .collect(),
                next: next.map(|next| Slot(from.0 + next)),
                decided,
            }
        })
}

fn entry() -> impl Strategy<Value = Entry> {
    option::of(vec(any::<u8>(), 0..100))
        .prop_map(|bytes| bytes.map_or(Entry::Noop, |bytes| Entry::Commands(bytes.into())))
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        Just(Answer::Never),
        ballot().prop_map(Answer::Unknown),
        (ballot(), entry()).prop_map(|(ballot, entry)| Answer::Accepted(Vote { ballot, entry })),
    ]
}

fn snapshot() -> impl Strategy<Value = Snapshot> {
    (slot(), any::<u64>(), any::<u64>()).prop_map(|(through, bytes, checksum)| Snapshot {
        through,
        bytes,
        checksum,
    })
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        ballot().prop_map(|ballot| Message::Canvass { ballot }),
        ballot().prop_map(|ballot| Message::Aye { ballot }),
        (ballot(), slot()).prop_map(|(ballot, from)| Message::Prepare { ballot, from }),
        promise(),
        (ballot(), slot(), entry(), slot()).prop_map(|(ballot, slot, entry, decided)| {
            Message::Accept {
                ballot,
                slot,
                entry,
                decided,
            }
        }),
        (ballot(), slot()).prop_map(|(ballot, slot)| Message::Accepted { ballot, slot }),
        (ballot(), ballot()).prop_map(|(ballot, promised)| Message::Refused { ballot, promised }),
        (ballot(), slot()).prop_map(|(ballot, decided)| Message::Commit { ballot, decided }),
        (ballot(), slot()).prop_map(|(ballot, decided)| Message::Beat { ballot, decided }),
        ballot().prop_map(|ballot| Message::Heard { ballot }),
        slot().prop_map(|from| Message::Fetch { from }),
        (slot(), vec(entry(), 0..10))
            .prop_map(|(from, entries)| Message::Entries { from, entries }),
        (snapshot(), any::<u64>())
            .prop_map(|(snapshot, offset)| Message::FetchChunk { snapshot, offset }),
        (snapshot(), any::<u64>(), vec(any::<u8>(), 0..100)).prop_map(
            |(snapshot, offset, bytes)| Message::Chunk {
                snapshot,
                offset,
                bytes: bytes.into(),
            }
        ),
    ]
}

/// Feeds `bytes` in pieces of `piece`; gives the messages up to the first error.
fn take(bytes: &[u8], piece: usize) -> Result<Vec<PeerFrame>, FrameError> {
    let mut frames = Frames::new(BYTES_MAX);
    let mut taken = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        frames.push(piece);
        while let Some(frame) = frames.take()? {
            taken.push(frame);
        }
    }
    Ok(taken)
}

proptest! {
    #[test]
    fn what_is_sent_is_what_is_taken_in_however_it_is_cut(
        messages in vec(message(), 0..5),
        piece in 1_usize..200,
    ) {
        let mut bytes = BytesMut::new();
        for message in &messages {
            append(&encode(message), &mut bytes);
        }
        let taken = take(&bytes, piece).unwrap();
        let taken: Vec<Message> = taken
            .into_iter()
            .map(|frame| decode(frame.kind.unwrap()).unwrap())
            .collect();
        prop_assert_eq!(taken, messages);
    }

    #[test]
    fn random_bytes_are_a_message_or_an_error(bytes in vec(any::<u8>(), 0..300)) {
        let _ = PeerFrame::decode(&bytes[..]).map(|frame| frame.kind.map(decode));
        let _ = ClientFrame::decode(&bytes[..]);
        let _ = Response::decode(&bytes[..]);
        let _ = take(&bytes, 7);
    }

    #[test]
    fn damaged_frames_are_a_message_or_an_error(
        messages in vec(message(), 1..4),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        length in any::<prop::sample::Index>(),
    ) {
        let mut bytes = BytesMut::new();
        for message in &messages {
            append(&encode(message), &mut bytes);
        }
        for (at, with) in damage {
            let at = at.index(bytes.len());
            bytes[at] = with;
        }
        bytes.truncate(length.index(bytes.len() + 1));
        if let Ok(frames) = take(&bytes, 50) {
            for kind in frames.into_iter().filter_map(|frame| frame.kind) {
                let _ = decode(kind);
            }
        }
    }
}

#[test]
fn a_frame_longer_than_its_bound_is_refused_by_its_length_alone() {
    let cases = [
        (BYTES_MAX, Ok(None)),
        (
            BYTES_MAX + 1,
            Err(FrameError::TooLong {
                bytes: BYTES_MAX + 1,
                bytes_max: BYTES_MAX,
            }),
        ),
        (
            u32::MAX as usize,
            Err(FrameError::TooLong {
                bytes: u32::MAX as usize,
                bytes_max: BYTES_MAX,
            }),
        ),
    ];
    for (length, expected) in cases {
        let mut frames = Frames::new(BYTES_MAX);
        frames.push(&(length as u32).to_le_bytes()[..PREFIX_BYTES - 1]);
        assert_eq!(frames.take::<PeerFrame>(), Ok(None));
        frames.push(&(length as u32).to_le_bytes()[PREFIX_BYTES - 1..]);
        assert_eq!(frames.take::<PeerFrame>(), expected);
    }
}

#[test]
fn fields_and_kinds_of_a_later_version_are_passed_over() {
    let message = Message::Beat {
        ballot: Ballot {
            round: 3,
            voter: Voter {
                node: NodeId(2),
                disk: DiskId(9),
            },
        },
        decided: Slot(5),
    };
    let Some(PeerKind::Beat(of)) = encode(&message).kind else {
        panic!("a beat");
    };
    // A field 15, after those that are known.
    let mut beat = of.encode_to_vec();
    beat.extend([15 << 3, 7]);
    let mut bytes = vec![10 << 3 | 2, beat.len() as u8];
    bytes.extend(beat);
    let frame = PeerFrame::decode(&bytes[..]).unwrap();
    assert_eq!(decode(frame.kind.unwrap()), Ok(message));
    // A kind 200.
    let frame = PeerFrame::decode(&[0xc2, 0x0c, 0][..]).unwrap();
    assert_eq!(frame.kind, None);
}

/// What becomes of a message on its way.
fn told(message: &Message) -> Result<Message, FrameError> {
    decode(encode(message).kind.unwrap())
}

#[test]
fn a_slot_that_can_t_be_is_refused_with_its_bound_in_whatever_message() {
    let ballot = Ballot {
        round: 1,
        voter: Voter {
            node: NodeId(2),
            disk: DiskId(9),
        },
    };
    let snapshot = |through| Snapshot {
        through,
        bytes: 0,
        checksum: 0,
    };
    let messages = |slot: Slot| {
        [
            Message::Prepare { ballot, from: slot },
            Message::Accept {
                ballot,
                slot,
                entry: Entry::Noop,
                decided: Slot(0),
            },
            Message::Accept {
                ballot,
                slot: Slot(1),
                entry: Entry::Noop,
                decided: slot,
            },
            Message::Accepted { ballot, slot },
            Message::Commit {
                ballot,
                decided: slot,
            },
            Message::Beat {
                ballot,
                decided: slot,
            },
            Message::Fetch { from: slot },
            Message::Entries {
                from: slot,
                entries: Vec::new(),
            },
            Message::FetchChunk {
                snapshot: snapshot(slot),
                offset: 0,
            },
            Message::Chunk {
                snapshot: snapshot(slot),
                offset: 0,
                bytes: [].into(),
            },
        ]
    };
    for message in messages(Slot(SLOT_MAX)) {
        assert_eq!(told(&message), Ok(message));
    }
    for slot in [SLOT_MAX + 1, u64::MAX] {
        for message in messages(Slot(slot)) {
            let error = told(&message).unwrap_err();
            let expected = format!("{slot}, of at most {SLOT_MAX}");
            assert!(
                error.to_string().ends_with(&expected),
                "{message:?}: {error}"
            );
        }
    }
}

#[test]
fn a_promise_says_nothing_of_slots_in_which_nobody_can_have_accepted_anything() {
    let promise = |from, slot, next: Option<u64>, decided| Message::Promise {
        ballot: Ballot {
            round: 1,
            voter: Voter {
                node: NodeId(2),
                disk: DiskId(9),
            },
        },
        from: Slot(from),
        answers: vec![(Slot(slot), Answer::Never)],
        next: next.map(Slot),
        decided: Slot(decided),
    };
    for message in [
        promise(1, SLOTS_MAX, None, 0),
        promise(1, 7 + SLOTS_MAX, Some(2), 7),
        promise(9, SLOT_MAX, None, SLOT_MAX),
    ] {
        assert_eq!(told(&message), Ok(message));
    }
    for (message, expected) in [
        (promise(1, u64::MAX, None, 0), "of at most 2097152"),
        (promise(1, SLOTS_MAX + 1, None, 0), "of at most 2097152"),
        (promise(1, SLOTS_MAX + 8, None, 7), "of at most 2097159"),
        (promise(1, 1, Some(1), 0), "a next page after its own"),
        (promise(9, 9, Some(2), 0), "a next page after its own"),
        (
            promise(1, 1, Some(u64::MAX), 0),
            "of at most 4611686018427387904",
        ),
    ] {
        let error = told(&message).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{message:?}: {error}");
    }
}

#[test]
fn a_node_s_number_out_of_bounds_is_an_error_that_names_it() {
    let frame = encode(&Message::Fetch { from: Slot(1) });
    assert!(frame.kind.is_some());
    let wide = sprag_net::wire::Ballot {
        round: 1,
        node: 65_536,
        disk: 1,
    };
    let error = Ballot::try_from(wide).unwrap_err();
    assert_eq!(error.to_string(), "node: 65536, of at most 65535");
}
