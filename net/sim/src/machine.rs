//! The replicated machine: registers and issuers of tokens, fed with what is decided.

use std::collections::BTreeMap;

use sprag_paxos::{Entry, Slot, commands};

use crate::chance::mix;
use crate::command::{CallNumber, Command, Operation, Outcome};
use crate::history::{Cell, Issuer, Model, NextToken, Register, RegisterOperation};

/// A machine's state after some slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    applied: u64,
    /// Of all that was applied, whether it changed something or not.
    seen: u64,
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
        self.seen = mix(self.seen.rotate_left(17) ^ digest(entry));
        let commands = commands(entry).filter_map(Command::decode);
        commands
            .map(|command| (command.call, self.run(&command)))
            .collect()
    }

    /// For a planted bug only: what a command would be told now that only reads; `None` of any other.
    pub(crate) fn peek(&self, bytes: &[u8]) -> Option<Outcome> {
        let command = Command::decode(bytes)?;
        let operation = Operation::Register(RegisterOperation::Get);
        (command.operation == operation).then(|| self.clone().run(&command))
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

    /// All of it, as bytes.
    pub(crate) fn save(&self) -> Vec<u8> {
        let mut words = vec![self.applied, self.seen, self.registers.len() as u64];
        for (key, cell) in &self.registers {
            let is_set = u64::from(cell.value.is_some());
            words.extend([*key, cell.version, is_set, cell.value.unwrap_or(0)]);
        }
        words.extend(self.issuers.iter().flat_map(|(key, last)| [*key, *last]));
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// The machine that was saved as these bytes. Of others, whatever they make.
    pub(crate) fn restore(saved: &[u8]) -> Self {
        let mut words = saved
            .as_chunks()
            .0
            .iter()
            .map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().unwrap_or(0);
        let mut machine = Self {
            applied: next(),
            seen: next(),
            ..Self::default()
        };
        let registers = next().min(saved.len() as u64);
        for _ in 0..registers {
            let (key, version, is_set, value) = (next(), next(), next(), next());
            let value = (is_set != 0).then_some(value);
            machine.registers.insert(key, Cell { version, value });
        }
        let rest: Vec<u64> = words.collect();
        let pairs = rest.as_chunks().0.iter();
        machine.issuers = pairs.map(|[key, last]| (*key, *last)).collect();
        machine
    }

    /// Equal for equal states, and hardly ever for others.
    pub(crate) fn digest(&self) -> u64 {
        let mut digest = self.applied ^ self.seen;
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

/// Equal for equal entries, and hardly ever for others.
fn digest(entry: &Entry) -> u64 {
    let Entry::Commands(bytes) = entry else {
        return 0;
    };
    bytes.chunks(8).fold(1, |digest, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(digest.rotate_left(17) ^ u64::from_le_bytes(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;
    use crate::client::Client;
    use crate::plan::{Mix, Plan};

    /// What clients of a seed ask, a few calls to an entry.
    fn entries(seed: u64) -> Vec<Entry> {
        let plan = Plan::new(seed, &Mix::none(), None);
        let mut client = Client::new(1, plan.keys, Chance::new(seed));
        let entry = |number: u64| {
            let mut bytes = Vec::new();
            for _ in 0..number % 4 {
                let command = client.next_command(&plan, false).encode(0);
                bytes.extend((command.len() as u32).to_le_bytes());
                bytes.extend(command);
            }
            Entry::Commands(bytes.into())
        };
        (1..=60).map(entry).collect()
    }

    #[test]
    fn a_snapshot_and_what_came_after_it_make_what_everything_makes() {
        for seed in 0..20 {
            let entries = entries(seed);
            let apply = |mut machine: Machine, from: usize| {
                let outcomes: Vec<_> = entries[from..]
                    .iter()
                    .flat_map(|entry| machine.apply(entry))
                    .collect();
                (machine, outcomes)
            };
            let (all, outcomes) = apply(Machine::default(), 0);
            let mut whole = Machine::default();
            for (taken, entry) in entries.iter().enumerate() {
                let restored = Machine::restore(&whole.save());
                assert_eq!(restored, whole, "seed {seed}: {taken}");
                let (machine, after) = apply(restored, taken);
                assert_eq!(machine, all, "seed {seed}: {taken}");
                assert!(outcomes.ends_with(&after), "seed {seed}: {taken}");
                whole.apply(entry);
            }
        }
    }
}
