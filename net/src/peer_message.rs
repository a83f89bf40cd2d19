//! The core's messages as frames, and frames as the core's messages.

use std::sync::Arc;

use bytes::Bytes;
use sprag_paxos::{
    Answer, Ballot, Configuration, DiskId, Entry, Message, NodeId, Slot, Snapshot, Vote, Voter,
};

use crate::frame::FrameError;
use crate::wire::{self, PeerFrame, PeerKind};

/// The most slots that the log of any node may have, and so how far above what a voter knows to be decided anything lies that it
/// has accepted: its log begins no later than there. A candidate goes through all of them one by one, which takes less than
/// a second.
pub(crate) const SLOTS_MAX: u64 = 1 << 21;

/// The last slot that there ever is: a cluster that decides a thousand million slots a second gets there after a hundred
/// years. So no sum of a slot and a bound overflows.
const SLOT_MAX: u64 = 1 << 62;

/// A message as a frame. The entries' bytes are shared.
pub fn encode(message: &Message) -> PeerFrame {
    let of_ballot = |ballot: &Ballot| wire::OfBallot {
        ballot: ballot.into(),
    };
    let of_slot = |ballot: &Ballot, slot: &Slot| wire::OfSlot {
        ballot: ballot.into(),
        slot: slot.0,
    };
    let kind = match message {
        Message::Canvass { ballot } => PeerKind::Canvass(of_ballot(ballot)),
        Message::Aye { ballot } => PeerKind::Aye(of_ballot(ballot)),
        Message::Prepare { ballot, from } => PeerKind::Prepare(of_slot(ballot, from)),
        Message::Promise {
            ballot,
            from,
            answers,
            next,
            decided,
        } => PeerKind::Promise(wire::Promise {
            ballot: ballot.into(),
            from: from.0,
            answers: answers.iter().map(encode_answer).collect(),
            next: next.map(|slot| slot.0),
            decided: decided.0,
        }),
        Message::Accept {
            ballot,
            slot,
            entry,
            decided,
        } => PeerKind::Accept(wire::Accept {
            ballot: ballot.into(),
            slot: slot.0,
            entry: entry.into(),
            decided: decided.0,
        }),
        Message::Accepted { ballot, slot } => PeerKind::Accepted(of_slot(ballot, slot)),
        Message::Refused { ballot, promised } => PeerKind::Refused(wire::Refused {
            ballot: ballot.into(),
            promised: promised.into(),
        }),
        Message::Commit { ballot, decided } => PeerKind::Commit(of_slot(ballot, decided)),
        Message::Beat { ballot, decided } => PeerKind::Beat(of_slot(ballot, decided)),
        Message::Heard { ballot } => PeerKind::Heard(of_ballot(ballot)),
        Message::Fetch { from } => PeerKind::Fetch(wire::Fetch { from: from.0 }),
        Message::Entries { from, entries } => PeerKind::Entries(wire::Entries {
            from: from.0,
            entries: entries.iter().map(Into::into).collect(),
        }),
        Message::FetchChunk { snapshot, offset } => PeerKind::FetchChunk(wire::FetchChunk {
            snapshot: snapshot.into(),
            offset: *offset,
        }),
        Message::Chunk {
            snapshot,
            offset,
            bytes,
        } => PeerKind::Chunk(wire::Chunk {
            snapshot: snapshot.into(),
            offset: *offset,
            bytes: Bytes::from_owner(Arc::clone(bytes)),
        }),
    };
    PeerFrame { kind: Some(kind) }
}

/// A frame's message. A hello is none: it is taken before.
///
/// # Errors
/// [`FrameError::Missing`], [`FrameError::OutOfBounds`].
pub fn decode(kind: PeerKind) -> Result<Message, FrameError> {
    Ok(match kind {
        PeerKind::Hello(_) => return Err(FrameError::Missing("anything but a hello")),
        PeerKind::Canvass(of) => Message::Canvass {
            ballot: of.ballot.try_into()?,
        },
        PeerKind::Aye(of) => Message::Aye {
            ballot: of.ballot.try_into()?,
        },
        PeerKind::Prepare(of) => Message::Prepare {
            ballot: of.ballot.try_into()?,
            from: slot("from", of.slot)?,
        },
        PeerKind::Promise(promise) => decode_promise(promise)?,
        PeerKind::Accept(accept) => Message::Accept {
            ballot: accept.ballot.try_into()?,
            slot: slot("slot", accept.slot)?,
            entry: accept.entry.into(),
            decided: slot("decided", accept.decided)?,
        },
        PeerKind::Accepted(of) => Message::Accepted {
            ballot: of.ballot.try_into()?,
            slot: slot("slot", of.slot)?,
        },
        PeerKind::Refused(refused) => Message::Refused {
            ballot: refused.ballot.try_into()?,
            promised: refused.promised.try_into()?,
        },
        PeerKind::Commit(of) => Message::Commit {
            ballot: of.ballot.try_into()?,
            decided: slot("decided", of.slot)?,
        },
        PeerKind::Beat(of) => Message::Beat {
            ballot: of.ballot.try_into()?,
            decided: slot("decided", of.slot)?,
        },
        PeerKind::Heard(of) => Message::Heard {
            ballot: of.ballot.try_into()?,
        },
        PeerKind::Fetch(fetch) => Message::Fetch {
            from: slot("from", fetch.from)?,
        },
        PeerKind::Entries(entries) => Message::Entries {
            from: slot("from", entries.from)?,
            entries: entries.entries.into_iter().map(Into::into).collect(),
        },
        PeerKind::FetchChunk(fetch) => Message::FetchChunk {
            snapshot: fetch.snapshot.try_into()?,
            offset: fetch.offset,
        },
        PeerKind::Chunk(chunk) => Message::Chunk {
            snapshot: chunk.snapshot.try_into()?,
            offset: chunk.offset,
            bytes: Arc::from(&chunk.bytes[..]),
        },
    })
}

fn encode_answer((slot, answer): &(Slot, Answer)) -> wire::Answer {
    let (ballot, entry) = match answer {
        Answer::Never => (None, None),
        Answer::Accepted(vote) => (Some((&vote.ballot).into()), Some((&vote.entry).into())),
        Answer::Unknown(ballot) => (Some(ballot.into()), None),
    };
    wire::Answer {
        slot: slot.0,
        ballot,
        entry,
    }
}

/// A page of a promise says something of slots in which its voter may have accepted something, and its next page comes after it:
/// else a candidate would count to wherever it says, or ask for the same page for ever.
fn decode_promise(promise: wire::Promise) -> Result<Message, FrameError> {
    let (from, decided) = (
        slot("from", promise.from)?,
        slot("decided", promise.decided)?,
    );
    let most = decided.0 + SLOTS_MAX;
    let answers = promise.answers.into_iter().map(|answer| {
        bounded("slot of an answer", answer.slot, most)?;
        decode_answer(answer)
    });
    let next = promise.next.map(|next| slot("next", next)).transpose()?;
    if next.is_some_and(|next| next <= from) {
        return Err(FrameError::Missing("a next page after its own"));
    }
    Ok(Message::Promise {
        ballot: promise.ballot.try_into()?,
        from,
        answers: answers.collect::<Result<_, _>>()?,
        next,
        decided,
    })
}

fn decode_answer(answer: wire::Answer) -> Result<(Slot, Answer), FrameError> {
    let what = match (answer.ballot, answer.entry) {
        (None, None) => Answer::Never,
        (None, Some(_)) => return Err(FrameError::Missing("the ballot of an answer")),
        (Some(ballot), None) => Answer::Unknown(ballot.try_into()?),
        (Some(ballot), Some(entry)) => Answer::Accepted(Vote {
            ballot: ballot.try_into()?,
            entry: entry.into(),
        }),
    };
    Ok((Slot(answer.slot), what))
}

impl From<&Entry> for wire::Entry {
    fn from(entry: &Entry) -> Self {
        let commands = match entry {
            Entry::Noop => None,
            Entry::Commands(bytes) => Some(Bytes::from_owner(Arc::clone(bytes))),
        };
        Self { commands }
    }
}

impl From<wire::Entry> for Entry {
    fn from(entry: wire::Entry) -> Self {
        match entry.commands {
            None => Entry::Noop,
            Some(bytes) => Entry::Commands(Arc::from(&bytes[..])),
        }
    }
}

impl From<&Ballot> for wire::Ballot {
    fn from(ballot: &Ballot) -> Self {
        Self {
            round: ballot.round,
            node: ballot.voter.node.0.into(),
            disk: ballot.voter.disk.0,
        }
    }
}

impl TryFrom<wire::Ballot> for Ballot {
    type Error = FrameError;

    fn try_from(ballot: wire::Ballot) -> Result<Self, FrameError> {
        Ok(Self {
            round: ballot.round,
            voter: Voter {
                node: node_id(ballot.node)?,
                disk: DiskId(ballot.disk),
            },
        })
    }
}

impl From<&Snapshot> for wire::Snapshot {
    fn from(snapshot: &Snapshot) -> Self {
        Self {
            through: snapshot.through.0,
            bytes: snapshot.bytes,
            checksum: snapshot.checksum,
        }
    }
}

impl TryFrom<wire::Snapshot> for Snapshot {
    type Error = FrameError;

    fn try_from(snapshot: wire::Snapshot) -> Result<Self, FrameError> {
        Ok(Self {
            through: slot("through", snapshot.through)?,
            bytes: snapshot.bytes,
            checksum: snapshot.checksum,
        })
    }
}

impl From<Voter> for wire::Voter {
    fn from(voter: Voter) -> Self {
        Self {
            node: voter.node.0.into(),
            disk: voter.disk.0,
        }
    }
}

impl TryFrom<wire::Voter> for Voter {
    type Error = FrameError;

    fn try_from(voter: wire::Voter) -> Result<Self, FrameError> {
        Ok(Self {
            node: node_id(voter.node)?,
            disk: DiskId(voter.disk),
        })
    }
}

/// A node's number as it came.
///
/// # Errors
/// [`FrameError::OutOfBounds`].
pub fn node_id(node: u32) -> Result<NodeId, FrameError> {
    bounded("node", node.into(), u16::MAX.into())?;
    Ok(NodeId(node as u16))
}

fn slot(field: &'static str, slot: u64) -> Result<Slot, FrameError> {
    bounded(field, slot, SLOT_MAX)?;
    Ok(Slot(slot))
}

fn bounded(field: &'static str, given: u64, most: u64) -> Result<(), FrameError> {
    if given <= most {
        return Ok(());
    }
    Err(FrameError::OutOfBounds { field, given, most })
}

/// Voters as they came: no more than a cluster has.
///
/// # Errors
/// [`FrameError::OutOfBounds`].
pub(crate) fn decode_voters(voters: &[wire::Voter]) -> Result<Vec<Voter>, FrameError> {
    let most = Configuration::VOTERS_MAX as u64;
    bounded("how many voters", voters.len() as u64, most)?;
    voters.iter().map(|voter| (*voter).try_into()).collect()
}
