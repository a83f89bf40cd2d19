//! Commands: what clients ask of the replicated machine, as bytes.

use crate::history::{RegisterOperation, RegisterOutcome};

/// Who asked, so that the answer finds its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CallNumber {
    pub(crate) client: usize,
    /// Counts the client's calls, from 1.
    pub(crate) number: u64,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Of a register.
    Register(RegisterOperation),
    /// The next token of an issuer.
    NextToken,
}

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Register(RegisterOutcome),
    Token(u64),
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) call: CallNumber,
    pub(crate) key: u64,
    pub(crate) operation: Operation,
}

const WORDS: usize = 6;

impl Command {
    /// Its bytes, with `padding` more, since commands differ in size.
    pub(crate) fn encode(&self, padding: usize) -> Vec<u8> {
        let (kind, first, second) = match self.operation {
            Operation::Register(RegisterOperation::Get) => (0, 0, 0),
            Operation::Register(RegisterOperation::Put(value)) => (1, value, 0),
            Operation::Register(RegisterOperation::CompareAndPut { expected, value }) => {
                (2, expected, value)
            }
            Operation::Register(RegisterOperation::Swap(value)) => (3, value, 0),
            Operation::NextToken => (4, 0, 0),
        };
        let words = [
            self.call.client as u64,
            self.call.number,
            self.key,
            kind,
            first,
            second,
        ];
        let mut bytes: Vec<u8> = words
            .iter()
            .flat_map(|word: &u64| word.to_le_bytes())
            .collect();
        bytes.resize(bytes.len() + padding, 0);
        bytes
    }

    /// `None` for what is no command: nobody asked for that.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut words = [0; WORDS];
        for (word, bytes) in words
            .iter_mut()
            .zip(bytes.get(..8 * WORDS)?.chunks_exact(8))
        {
            *word = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        let [client, number, key, kind, first, second] = words;
        let operation = match kind {
            0 => Operation::Register(RegisterOperation::Get),
            1 => Operation::Register(RegisterOperation::Put(first)),
            2 => Operation::Register(RegisterOperation::CompareAndPut {
                expected: first,
                value: second,
            }),
            3 => Operation::Register(RegisterOperation::Swap(first)),
            4 => Operation::NextToken,
            _ => return None,
        };
        let call = CallNumber {
            client: client as usize,
            number,
        };
        Some(Self {
            call,
            key,
            operation,
        })
    }
}
