//! Clients: each asks for one thing at a time, tries node after node as long as it is told that nothing was done, and
//! never asks again for what may have been.

use sprag_paxos::NodeId;

use crate::calm::Stage;
use crate::chance::Chance;
use crate::command::{CallNumber, Command, Operation};
use crate::history::{CallId, RegisterOperation};
use crate::plan::Plan;

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    pub(crate) command: Command,
    /// Its number in the history.
    pub(crate) id: CallId,
    /// How often nothing was done.
    pub(crate) tries: u64,
}

/// What a client is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// To begin its next call.
    Begin,
    /// To ask again, since nothing was done.
    Ask,
    /// To give up on the answer.
    GiveUp,
}

/// A client.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    number: usize,
    pub(crate) asking: Option<Asking>,
    calls: u64,
    /// Which of its timers counts; the earlier ones are void.
    pub(crate) timer: u64,
    chance: Chance,
    /// Who leads, as far as it was told.
    pub(crate) leader: Option<NodeId>,
    /// The last version that it saw of each register.
    pub(crate) versions: Vec<u64>,
    /// Calls answered since the faults ended.
    pub(crate) answered_in_calm: u32,
    /// How much of all there is it has read at the end.
    read: u64,
}

impl Client {
    pub(crate) fn new(number: usize, keys: u64, chance: Chance) -> Self {
        Self {
            number,
            asking: None,
            calls: 0,
            timer: 0,
            chance,
            leader: None,
            versions: vec![0; keys as usize],
            answered_in_calm: 0,
            read: 0,
        }
    }

    /// Makes up its next call; or, if it `reads` all there is, asks for what comes next: each register, then each issuer.
    pub(crate) fn next_command(&mut self, plan: &Plan, reads: bool) -> Command {
        self.calls += 1;
        let chance = self.chance.of(self.calls << 8);
        let key = if reads {
            self.read % plan.keys
        } else {
            chance.of(1).below(plan.keys)
        };
        // Of no other call.
        let value = self.calls << 8 | self.number as u64;
        let expected = self.versions[key as usize];
        let operation = match chance.of(2).below(10) {
            _ if reads && self.read < plan.keys => Operation::Register(RegisterOperation::Get),
            _ if reads => Operation::NextToken,
            0..4 => Operation::Register(RegisterOperation::Get),
            4..6 => Operation::Register(RegisterOperation::Put(value)),
            6 => Operation::Register(RegisterOperation::Swap(value)),
            7 => Operation::Register(RegisterOperation::CompareAndPut { expected, value }),
            _ => Operation::NextToken,
        };
        let call = CallNumber {
            client: self.number,
            number: self.calls,
        };
        Command {
            call,
            key,
            operation,
        }
    }

    /// Whether it has read all there is.
    pub(crate) fn has_read_all(&self, plan: &Plan) -> bool {
        self.read == 2 * plan.keys
    }

    /// It was answered.
    pub(crate) fn count_answer(&mut self, stage: Stage) {
        match stage {
            Stage::Faulty => {}
            Stage::Answering => self.answered_in_calm += 1,
            Stage::Reading => self.read += 1,
        }
    }

    /// How much longer than need be the command is.
    pub(crate) fn padding(&self) -> usize {
        self.chance.of(self.calls << 8 | 1).below(64) as usize
    }

    /// The node to ask: who leads, or anyone, as some do that haven't asked before.
    pub(crate) fn node(&self, nodes: usize, tries: u64) -> NodeId {
        let chance = self.chance.of(self.calls << 8 | 2).of(tries);
        let anyone = NodeId(chance.below(nodes as u64) as u16);
        let is_new = tries == 0 && chance.of(1).below(8) == 0;
        self.leader.filter(|_| !is_new).unwrap_or(anyone)
    }

    /// How long it waits for an answer.
    pub(crate) fn patience_ns(&self, plan: &Plan) -> u64 {
        let chance = self.chance.of(self.calls << 8 | 4);
        let most_ns = 4 * plan.election_ns;
        if chance.of(1).below(4) > 0 {
            return most_ns;
        }
        chance.of(2).log_uniform(plan.beat_ns, most_ns)
    }

    /// How long it waits before its next call.
    pub(crate) fn think_ns(&self, plan: &Plan) -> u64 {
        1 + self.chance.of(self.calls << 8 | 3).below(2 * plan.think_ns)
    }
}
