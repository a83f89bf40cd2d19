//! What nodes send each other, each with a number, so that what is the same is told at a glance.

use foldhash::HashMap;

use sprag_paxos::Message;

/// A message with its sender and its receiver, by their places among the voters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Letter {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) message: Message,
}

/// Every letter that was ever sent.
#[derive(Debug, Default)]
pub(crate) struct Letters {
    all: Vec<Letter>,
    numbers: HashMap<Letter, u32>,
}

impl Letters {
    pub(crate) fn number(&mut self, letter: Letter) -> u32 {
        if let Some(number) = self.numbers.get(&letter) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.all.push(letter.clone());
        self.numbers.insert(letter, number);
        number
    }

    pub(crate) fn get(&self, number: u32) -> &Letter {
        &self.all[number as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}
