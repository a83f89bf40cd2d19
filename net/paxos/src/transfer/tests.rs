use super::*;
use crate::entry::{Answer, Entry, Vote};
use crate::message::Message;
use crate::recovered::Recovered;
use crate::testing::{BEAT_NS, ELECTION_NS, Hand, ballot, entry, options, sent, voters};

/// Everything up to slot 9, in three pieces.
const NEW: Snapshot = Snapshot {
    through: Slot(9),
    bytes: 30,
    checksum: 1,
};
const OLD: Snapshot = Snapshot {
    through: Slot(6),
    ..NEW
};

/// What the voter at `leader`, in round 1, says of what is decided.
fn commit(leader: usize, decided: u64) -> Message {
    Message::Commit {
        ballot: ballot(1, voters(3)[leader]),
        decided: Slot(decided),
    }
}

fn chunk(snapshot: Snapshot, offset: u64, bytes: usize) -> Message {
    Message::Chunk {
        snapshot,
        offset,
        bytes: vec![0; bytes].into(),
    }
}

/// A follower of the first voter, who says that everything up to slot 10 is decided.
fn behind(recovered: Recovered) -> Hand {
    let voters = voters(3);
    let mut hand = Hand::recovered(options(&voters, 1), recovered);
    let effects = hand.step(voters[0], commit(0, 10));
    let from = hand.replica().decided().next();
    assert_eq!(sent(&effects), [(voters[0], &Message::Fetch { from })]);
    hand
}

/// All of `snapshot` comes from the first voter, and is durable; gives what is done then.
fn install(hand: &mut Hand, snapshot: Snapshot) -> Vec<Effect> {
    for offset in [0, 10, 20] {
        hand.step(voters(3)[0], chunk(snapshot, offset, 10));
    }
    hand.executor.received(hand.now_ns, snapshot, true);
    hand.effects()
}

fn vote(round: u64, command: &[u8]) -> Answer {
    Answer::Accepted(Vote {
        ballot: ballot(round, voters(3)[0]),
        entry: entry(command),
    })
}

/// A voter that knows everything up to slot 8 to be decided, and has accepted what comes next.
fn with_entries(trimmed: u64, snapshot: u64) -> Recovered {
    let slots = trimmed + 1..=9;
    Recovered {
        answers: slots
            .map(|slot| (Slot(slot), vote(1, &slot.to_le_bytes())))
            .collect(),
        decided: Slot(8),
        trimmed: Slot(trimmed),
        snapshot: Slot(snapshot),
        ..Recovered::default()
    }
}

#[test]
fn pieces_are_asked_for_one_by_one_and_the_whole_takes_the_place_of_what_was_missed() {
    let leader = voters(3)[0];
    let mut hand = behind(Recovered::default());
    for (offset, next) in [(0, Some(10)), (10, Some(20)), (20, None)] {
        let effects = hand.step(leader, chunk(NEW, offset, 10));
        let bytes = vec![0; 10].into();
        let piece = Effect::Receive {
            snapshot: NEW,
            offset,
            bytes,
        };
        assert!(effects.contains(&piece), "{effects:?}");
        let asks = next.map(|offset| {
            let snapshot = NEW;
            (leader, Message::FetchChunk { snapshot, offset })
        });
        let asked: Vec<_> = sent(&effects);
        assert_eq!(
            asked,
            asks.iter()
                .map(|(to, asks)| (*to, asks))
                .collect::<Vec<_>>()
        );
    }
    // While the whole is made durable nothing is asked for.
    hand.now_ns += BEAT_NS;
    assert_eq!(sent(&hand.step(leader, commit(0, 10))), []);
    assert_eq!(hand.replica().decided(), Slot::NONE);
    hand.executor.received(hand.now_ns, NEW, true);
    let effects = hand.effects();
    let trimmed = |effect: &Effect| matches!(effect, Effect::Persist { record, .. } if *record == Record::Trimmed(Slot(9)));
    assert!(effects.iter().any(trimmed), "{effects:?}");
    assert!(effects.contains(&Effect::Restore { snapshot: NEW }));
    let from = Slot(10);
    assert_eq!(sent(&effects), [(leader, &Message::Fetch { from })]);
    assert_eq!(
        (hand.replica().decided(), hand.replica().trimmed()),
        (Slot(9), Slot(9))
    );
}

#[test]
fn a_piece_is_taken_when_it_comes_next_or_begins_what_there_is() {
    // Of each piece: who sends it, of which snapshot, where, how long, and whether it is taken.
    type Pieces = &'static [(usize, Snapshot, u64, usize, bool)];
    const EMPTY: Snapshot = Snapshot { bytes: 0, ..NEW };
    const KNOWN: Snapshot = Snapshot {
        through: Slot(0),
        ..NEW
    };
    let cases: [(&str, Pieces); 11] = [
        ("in the middle", &[(0, NEW, 10, 10, false)]),
        ("twice", &[(0, NEW, 0, 10, true), (0, NEW, 0, 10, false)]),
        (
            "out of turn",
            &[(0, NEW, 0, 10, true), (0, NEW, 20, 10, false)],
        ),
        (
            "from another",
            &[(0, NEW, 0, 10, true), (2, NEW, 10, 10, true)],
        ),
        (
            "of another",
            &[(0, NEW, 0, 10, true), (0, OLD, 10, 10, false)],
        ),
        (
            "another, which is all that there is",
            &[
                (0, NEW, 0, 10, true),
                (0, OLD, 0, 10, true),
                (0, NEW, 10, 10, false),
            ],
        ),
        (
            "another, from whom nothing was asked",
            &[(0, NEW, 0, 10, true), (2, OLD, 0, 10, false)],
        ),
        ("of no length", &[(0, NEW, 0, 0, false)]),
        ("beyond the end", &[(0, NEW, 0, 31, false)]),
        (
            "all of nothing",
            &[(0, EMPTY, 0, 0, true), (0, NEW, 0, 10, false)],
        ),
        ("of what is known", &[(0, KNOWN, 0, 10, false)]),
    ];
    for (what, pieces) in cases {
        let mut hand = behind(Recovered::default());
        for (of, snapshot, offset, bytes, is_taken) in pieces {
            let effects = hand.step(voters(3)[*of], chunk(*snapshot, *offset, *bytes));
            let receives = |effect: &Effect| matches!(effect, Effect::Receive { .. });
            assert_eq!(effects.iter().any(receives), *is_taken, "{what}");
        }
    }
}

#[test]
fn a_piece_that_does_not_come_is_asked_for_again_of_whoever_leads() {
    let voters = voters(3);
    let mut hand = behind(Recovered::default());
    hand.step(voters[0], chunk(NEW, 0, 10));
    let asks = Message::FetchChunk {
        snapshot: NEW,
        offset: 10,
    };
    assert_eq!(sent(&hand.step(voters[2], commit(2, 10))), []);
    hand.now_ns += BEAT_NS;
    assert_eq!(
        sent(&hand.step(voters[2], commit(2, 10))),
        [(voters[2], &asks)]
    );
}

#[test]
fn an_installed_snapshot_takes_the_place_of_what_was_accepted_below_it_alone() {
    let answers = [
        (3, vote(1, b"below")),
        (9, vote(1, b"last")),
        (12, vote(1, b"above")),
    ];
    let recovered = Recovered {
        answers: answers.map(|(slot, answer)| (Slot(slot), answer)).into(),
        ..Recovered::default()
    };
    let mut hand = behind(recovered);
    install(&mut hand, NEW);
    let acceptor = hand.replica().acceptor();
    let expected = [
        (3, Answer::Never),
        (9, Answer::Never),
        (12, vote(1, b"above")),
    ];
    for (slot, answer) in expected {
        assert_eq!(acceptor.answer(Slot(slot)), answer, "{slot}");
        assert_eq!(hand.replica().decided_entry(Slot(slot)), None);
    }
    assert_eq!(acceptor.promised(), ballot(1, voters(3)[0]));
}

#[test]
fn what_is_not_durable_or_not_further_takes_no_place() {
    let voters = voters(3);
    let restores = |effects: &[Effect]| {
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Restore { .. }))
    };
    let mut hand = behind(Recovered::default());
    for offset in [0, 10, 20] {
        hand.step(voters[0], chunk(NEW, offset, 10));
    }
    hand.executor.received(hand.now_ns, NEW, false);
    assert_eq!(hand.effects(), []);
    // It is begun anew.
    assert!(restores(&install(&mut hand, NEW)));
    // Another time, all is told entry by entry while the snapshot is made durable.
    let mut hand = behind(Recovered::default());
    for offset in [0, 10, 20] {
        hand.step(voters[0], chunk(NEW, offset, 10));
    }
    let entries = vec![Entry::Noop; 9];
    hand.step(
        voters[0],
        Message::Entries {
            from: Slot(1),
            entries,
        },
    );
    hand.executor.received(hand.now_ns, NEW, true);
    assert!(!restores(&hand.effects()));
    assert_eq!(hand.replica().trimmed(), Slot::NONE);
    // What never came is not believed to be there.
    hand.executor.received(hand.now_ns, NEW, true);
    assert!(!restores(&hand.effects()));
}

#[test]
fn a_voter_starts_with_its_snapshot_where_that_is_further_than_its_log() {
    let voters = voters(3);
    for (snapshot, decided, trimmed) in [(4, 8, 3), (8, 8, 3), (9, 9, 9), (20, 20, 20)] {
        let mut hand = Hand::recovered(options(&voters, 1), with_entries(3, snapshot));
        assert_eq!(hand.replica().decided(), Slot(decided), "{snapshot}");
        assert_eq!(hand.replica().trimmed(), Slot(trimmed), "{snapshot}");
        let is_trimmed = hand.effects().iter().any(|effect| {
            matches!(effect, Effect::Persist { record, .. } if *record == Record::Trimmed(Slot(snapshot)))
        });
        assert_eq!(is_trimmed, trimmed > 3, "{snapshot}");
        let is_kept = hand.replica().acceptor().answer(Slot(9)) != Answer::Never;
        assert_eq!(is_kept, snapshot < 9, "{snapshot}");
    }
}

#[test]
fn what_is_trimmed_is_told_as_a_snapshot_and_what_comes_after_entry_by_entry() {
    let voters = voters(3);
    let mut hand = Hand::recovered(options(&voters, 1), with_entries(0, 0));
    // No more than what is decided.
    for (slot, trimmed) in [(5, 5), (3, 5), (12, 8)] {
        hand.executor.trim(hand.now_ns, Slot(slot));
        hand.effects();
        assert_eq!(hand.replica().trimmed(), Slot(trimmed));
    }
    let mut hand = Hand::recovered(options(&voters, 1), with_entries(5, 7));
    let to = voters[2];
    for from in [1, 5] {
        let effects = hand.step(to, Message::Fetch { from: Slot(from) });
        assert_eq!(effects, [Effect::SendChunk { to, asked: None }]);
    }
    let effects = hand.step(to, Message::Fetch { from: Slot(6) });
    let entries = [6_u64, 7, 8].map(|slot| entry(&slot.to_le_bytes()));
    let from = Slot(6);
    let entries = entries.to_vec();
    assert_eq!(sent(&effects), [(to, &Message::Entries { from, entries })]);
    let asks = Message::FetchChunk {
        snapshot: OLD,
        offset: 7,
    };
    let asked = Some((OLD, 7));
    assert_eq!(hand.step(to, asks), [Effect::SendChunk { to, asked }]);
}

#[test]
fn a_leader_that_is_behind_gets_its_votes_for_what_is_trimmed_once_its_ballot_is_durable() {
    let voters = voters(3);
    let mut hand = Hand::recovered(options(&voters, 1), with_entries(5, 7));
    hand.syncs = false;
    let accept = |round| Message::Accept {
        ballot: ballot(round, voters[0]),
        slot: Slot(4),
        entry: Entry::Noop,
        decided: Slot(3),
    };
    let accepted = Message::Accepted {
        ballot: ballot(2, voters[0]),
        slot: Slot(4),
    };
    let effects = hand.step(voters[0], accept(2));
    assert_eq!(sent(&effects), []);
    assert_eq!(sent(&hand.sync()), [(voters[0], &accepted)]);
    assert_eq!(
        sent(&hand.step(voters[0], accept(2))),
        [(voters[0], &accepted)]
    );
    let refused = Message::Refused {
        ballot: ballot(1, voters[0]),
        promised: ballot(2, voters[0]),
    };
    assert_eq!(
        sent(&hand.step(voters[0], accept(1))),
        [(voters[0], &refused)]
    );
    assert_eq!(hand.replica().acceptor().answer(Slot(4)), Answer::Never);
}

#[test]
fn a_candidate_that_is_behind_a_snapshot_installs_it_before_it_leads() {
    let voters = voters(3);
    let mut hand = Hand::new(options(&voters, 1));
    hand.pass(2 * ELECTION_NS);
    let own = ballot(1, voters[1]);
    hand.step(voters[0], Message::Aye { ballot: own });
    let promise = Message::Promise {
        ballot: own,
        from: Slot(1),
        answers: Vec::new(),
        next: None,
        decided: Slot(9),
    };
    let effects = hand.step(voters[0], promise);
    assert!(sent(&effects).contains(&(voters[0], &Message::Fetch { from: Slot(1) })));
    let effects = install(&mut hand, NEW);
    let first = effects.iter().find_map(|effect| match effect {
        Effect::Send {
            message: Message::Accept { ballot, slot, .. },
            ..
        } => Some((*ballot, *slot)),
        _ => None,
    });
    assert_eq!(first, Some((own, Slot(10))));
    // Now it leads: nothing takes the place of its state.
    assert_eq!(
        hand.step(
            voters[0],
            chunk(
                Snapshot {
                    through: Slot(20),
                    ..NEW
                },
                0,
                10
            )
        ),
        []
    );
}
