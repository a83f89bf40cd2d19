//! The trace: what happened, folded into a hash that two runs of one seed must agree on, and its end as text.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

use sprag_paxos::{Effect, Entry, Message, NodeId, Slot, Ticket, Voter};

use crate::chance::mix;

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
    /// The nodes whose bit is set hear nothing of the others, nor are heard.
    Parted { group: u16, for_ns: u64 },
    /// One link is down.
    CutOff {
        from: NodeId,
        to: NodeId,
        for_ns: u64,
    },
    /// A client asked.
    Asked {
        client: usize,
        node: NodeId,
        slot: Slot,
        entry: &'a Entry,
    },
    /// A client was answered.
    Answered {
        client: usize,
        slot: Slot,
        entry: &'a Entry,
    },
    /// A client gave up: it doesn't know the outcome.
    GaveUp { client: usize, slot: Slot },
    /// Faults have ended; this quorum heals, and the rest is gone.
    Healed { group: u16 },
}

/// The hash and the tail of what happened.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    events: u64,
    tail: Option<VecDeque<String>>,
}

/// How many of the last events a report shows.
const TAIL_EVENTS: usize = 60;

impl Trace {
    /// Keeps the tail as text only if asked to: it is slow.
    pub(crate) fn new(keeps_tail: bool) -> Self {
        Self {
            hash: 0,
            events: 0,
            tail: keeps_tail.then(VecDeque::new),
        }
    }

    pub(crate) fn note(&mut self, now_ns: u64, happening: Happening<'_>) {
        self.events += 1;
        let mut fold = Fold(self.hash);
        now_ns.hash(&mut fold);
        happening.hash(&mut fold);
        self.hash = fold.0;
        if let Some(tail) = &mut self.tail {
            if tail.len() == TAIL_EVENTS {
                tail.pop_front();
            }
            tail.push_back(line(self.events, now_ns, &happening));
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn into_tail(self) -> Vec<String> {
        self.tail.unwrap_or_default().into()
    }
}

fn line(number: u64, now_ns: u64, happening: &dyn Debug) -> String {
    let (ms, ns) = (now_ns / 1_000_000, now_ns % 1_000_000);
    format!("{number:>7} {ms:>7}.{ns:06} ms  {happening:?}")
}

/// A hash of its own, since the standard one may change from release to release.
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
        self.0 = mix(self.0.rotate_left(23) ^ value.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}
