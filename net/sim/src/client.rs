//! Clients: each asks for one thing at a time, tries node after node, and writes down what it was told.

use sprag_paxos::{Entry, NodeId, Slot};

use crate::chance::Chance;
use crate::plan::Plan;

/// What a client asked for and was told.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) slot: Slot,
    /// What it proposed: of no other call.
    pub(crate) entry: Entry,
    pub(crate) began_ns: u64,
    /// When it was answered, and with what. `None` is unknown: it may yet happen, up to the end.
    pub(crate) answer: Option<(u64, Entry)>,
}

/// What a client is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// To begin its next call.
    Begin,
    /// To try another node.
    TryAgain,
}

/// A client.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) calls: Vec<Call>,
    is_asking: bool,
    tries: u64,
    /// Which of its timers counts; the earlier ones are void.
    pub(crate) timer: u64,
    chance: Chance,
    /// Calls answered since the faults ended.
    pub(crate) answered_in_calm: u32,
}

/// After so many tries a client gives up on a call, and never knows.
const TRIES_MAX: u64 = 12;

impl Client {
    pub(crate) fn new(chance: Chance) -> Self {
        Self {
            calls: Vec::new(),
            is_asking: false,
            tries: 0,
            timer: 0,
            chance,
            answered_in_calm: 0,
        }
    }

    /// Begins a call at or near the end of what is decided.
    pub(crate) fn begin(&mut self, now_ns: u64, number: u64, frontier: Slot) {
        let back = self.chance.of(number << 8).below(3);
        self.calls.push(Call {
            slot: Slot((frontier.0 + 1).saturating_sub(back).max(1)),
            entry: Entry::Commands(number.to_be_bytes().into()),
            began_ns: now_ns,
            answer: None,
        });
        self.is_asking = true;
        self.tries = 0;
    }

    /// The call under way, if there is one, and its number.
    pub(crate) fn call(&self) -> Option<(usize, &Call)> {
        let last = self.calls.len().checked_sub(1)?;
        self.is_asking.then(|| (last, &self.calls[last]))
    }

    /// The node to ask next; `None` when it has tried enough.
    pub(crate) fn next_node(&mut self, nodes: usize) -> Option<NodeId> {
        self.tries += 1;
        if self.tries > TRIES_MAX {
            return None;
        }
        let number = (self.calls.len() as u64) << 8 | self.tries;
        Some(NodeId(self.chance.of(number).below(nodes as u64) as u16))
    }

    /// The call was answered.
    pub(crate) fn answered(&mut self, now_ns: u64, entry: Entry) {
        if let Some(call) = self.calls.last_mut() {
            call.answer = Some((now_ns, entry));
        }
        self.is_asking = false;
    }

    /// The call is given up.
    pub(crate) fn gave_up(&mut self) {
        self.is_asking = false;
    }

    /// How long it waits before its next call.
    pub(crate) fn think_ns(&self, plan: &Plan) -> u64 {
        let number = (self.calls.len() as u64) << 8 | 0xff;
        1 + self.chance.of(number).below(2 * plan.think_ns)
    }
}
