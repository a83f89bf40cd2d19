//! The trace: what happened, folded into a hash that two runs of one seed must agree on, and its end as text.

use std::hash::{Hash, Hasher};

use sprag_paxos::{Effect, Message, NodeId, Ticket, Voter};

use crate::readable::Line;

/// Something that happened.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum Happening<'a> {
    /// A message came to a node that is up.
    Came {
        from: Voter,
        to: Voter,
        message: &'a Message,
    },
    /// A node's timer fired.
    Ticked { node: NodeId },
    /// All up to this is durable.
    Synced { node: NodeId, ticket: Ticket },
    /// A node does this next.
    Does { node: NodeId, effect: &'a Effect },
    /// A node stopped between two effects.
    Paused { node: NodeId, for_ns: u64 },
    /// It goes on.
    WentOn { node: NodeId },
    /// A node died.
    Crashed { node: NodeId },
    /// A node started, with what its disk kept.
    Started { voter: Voter },
    /// The nodes whose bit is set in `group` hear nothing of the others, nor are heard, but for those in `between`.
    Parted {
        group: u16,
        between: u16,
        for_ns: u64,
    },
    /// One link is down.
    CutOff {
        from: NodeId,
        to: NodeId,
        for_ns: u64,
    },
    /// A client asked.
    Asked {
        client: usize,
        number: u64,
        node: NodeId,
    },
    /// A client was answered.
    Answered { client: usize, number: u64 },
    /// Faults have ended; this quorum heals, and the rest is gone.
    Healed { group: u16 },
}

/// The hash and the tail of what happened.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    events: u64,
    tail_from: Option<u64>,
    tail: Vec<Line>,
}

impl Trace {
    /// Keeps what comes after the first `tail_from` events as text, or nothing: it is slow.
    pub(crate) fn new(tail_from: Option<u64>) -> Self {
        Self {
            hash: 0,
            events: 0,
            tail_from,
            tail: Vec::new(),
        }
    }

    pub(crate) fn note(&mut self, now_ns: u64, happening: Happening<'_>) {
        self.events += 1;
        let mut fold = Fold(self.hash);
        now_ns.hash(&mut fold);
        happening.hash(&mut fold);
        self.hash = fold.0;
        if self.tail_from.is_some_and(|from| self.events > from) {
            self.tail.push(Line::new(self.events, now_ns, &happening));
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn into_tail(self) -> Vec<Line> {
        self.tail
    }
}

/// A hash of its own, since the standard one may change from release to release: both halves of a product, folded.
struct Fold(u64);

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        let word = self.0.rotate_left(23) ^ value ^ 0x9e37_79b9_7f4a_7c15;
        let product = u128::from(word) * 0xd6e8_feb8_6659_fd93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}
