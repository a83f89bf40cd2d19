//! The replicated machine: registers and issuers of tokens, fed with what is decided.

use std::collections::BTreeMap;

use sprag_paxos::{Entry, Slot, commands};

use crate::chance::mix;
use crate::command::{CallNumber, Command, Operation, Outcome};
use crate::history::{Cell, Issuer, Model, NextToken, Register};

/// A machine's state after some slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    applied: u64,
    registers: BTreeMap<u64, Cell>,
    issuers: BTreeMap<u64, u64>,
}

impl Machine {
    /// The last slot that was applied.
    pub(crate) fn applied(&self) -> Slot {
        Slot(self.applied)
    }

    /// Applies the entry of the next slot; gives each outcome.
    pub(crate) fn apply(&mut self, entry: &Entry) -> Vec<(CallNumber, Outcome)> {
        self.applied += 1;
        let commands = commands(entry).filter_map(Command::decode);
        commands
            .map(|command| (command.call, self.run(&command)))
            .collect()
    }

    fn run(&mut self, command: &Command) -> Outcome {
        match &command.operation {
            Operation::Register(operation) => {
                let cell = self
                    .registers
                    .entry(command.key)
                    .or_insert_with(Register::initial);
                let (next, outcome) = Register::apply(cell, operation);
                *cell = next;
                Outcome::Register(outcome)
            }
            Operation::NextToken => {
                let last = self
                    .issuers
                    .entry(command.key)
                    .or_insert_with(Issuer::initial);
                let (next, token) = Issuer::apply(last, &NextToken);
                *last = next;
                Outcome::Token(token)
            }
        }
    }

    /// Equal for equal states, and hardly ever for others.
    pub(crate) fn digest(&self) -> u64 {
        let mut digest = self.applied;
        let mut fold = |word: u64| digest = mix(digest.rotate_left(17) ^ word);
        for (key, cell) in &self.registers {
            [*key, cell.version, cell.value.unwrap_or(u64::MAX)]
                .into_iter()
                .for_each(&mut fold);
        }
        for (key, last) in &self.issuers {
            [*key, *last].into_iter().for_each(&mut fold);
        }
        digest
    }
}
