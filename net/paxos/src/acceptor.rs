//! The acceptor: what a voter has promised and accepted. Its whole memory is durable.

use std::collections::BTreeMap;

use crate::ballot::Ballot;
use crate::by_slot::BySlot;
use crate::entry::{Answer, Entry, Slot, Vote};
use crate::simulation::{Bug, planted};

/// What an answer takes beside its entry, about.
const ANSWER_BYTES: usize = 64;

/// What a voter remembers.
///
/// ```text
///   Prepare b   b <  promised   refused
///               b >= promised   promised = b                            then Promise, once durable
///   Accept b    b <  promised   refused
///               b >= promised   promised = b, vote of the slot = (b, v)  then Accepted, once durable
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acceptor {
    promised: Ballot,
    answers: BySlot<Answer>,
}

/// A ballot was below the promise, which is this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLate(pub Ballot);

impl Acceptor {
    /// What a disk gave back. Whoever accepted in a ballot has promised it, whatever else is remembered.
    pub fn recovered(promised: Ballot, answers: BTreeMap<Slot, Answer>) -> Self {
        let highest = answers.values().map(|answer| match answer {
            Answer::Never => Ballot::NONE,
            Answer::Accepted(vote) => vote.ballot,
            Answer::Unknown(ballot) => *ballot,
        });
        let promised = highest.fold(promised, Ballot::max);
        let answers = answers.into();
        Self { promised, answers }
    }

    /// The ballot below which nothing is accepted any more.
    pub fn promised(&self) -> Ballot {
        self.promised
    }

    /// What it knows of `slot`.
    pub fn answer(&self, slot: Slot) -> Answer {
        self.answers.get(slot).cloned().unwrap_or(Answer::Never)
    }

    /// The last that it accepted in `slot`, where that can be read.
    pub fn vote(&self, slot: Slot) -> Option<&Vote> {
        match self.answers.get(slot)? {
            Answer::Accepted(vote) => Some(vote),
            Answer::Never | Answer::Unknown(_) => None,
        }
    }

    /// What it knows of the slots from `from` on, as much as goes into a page of about `bytes_max`, and where the next
    /// page begins.
    pub fn page(&self, from: Slot, bytes_max: usize) -> (Vec<(Slot, Answer)>, Option<Slot>) {
        let mut answers = Vec::new();
        let mut bytes = 0;
        for (slot, answer) in self.answers.range(from) {
            if bytes > bytes_max {
                let skipped = u64::from(planted(Bug::PageSkipsAnAnswer));
                return (answers, Some(Slot(slot.0 + skipped)));
            }
            bytes += ANSWER_BYTES;
            if let Answer::Accepted(vote) = answer {
                bytes += vote.entry.bytes();
            }
            answers.push((slot, answer.clone()));
        }
        (answers, None)
    }

    /// The first slot from `from` on that it knows anything of.
    pub(crate) fn first_from(&self, from: Slot) -> Option<Slot> {
        self.answers.range(from).next().map(|(slot, _)| slot)
    }

    /// Promises `ballot`; whether that is new. The same ballot may be promised again: a Promise can be lost.
    pub fn promise(&mut self, ballot: Ballot) -> Result<bool, TooLate> {
        if self.is_too_late(ballot) {
            return Err(TooLate(self.promised));
        }
        let is_new = ballot != self.promised;
        self.promised = ballot;
        Ok(is_new)
    }

    /// Accepts `entry` in `slot`; whether that is new, as it isn't when the Accept came twice.
    pub fn accept(&mut self, ballot: Ballot, slot: Slot, entry: &Entry) -> Result<bool, TooLate> {
        if self.is_too_late(ballot) && !planted(Bug::AcceptsBelowThePromise) {
            return Err(TooLate(self.promised));
        }
        if ballot > self.promised && !planted(Bug::AcceptLeavesThePromise) {
            self.promised = ballot;
        }
        let vote = Vote {
            ballot,
            entry: entry.clone(),
        };
        let last = self.vote(slot);
        let is_revote = last.is_some_and(|last| last.entry == vote.entry && last != &vote);
        let is_new = last != Some(&vote) && !(is_revote && planted(Bug::RevoteNotPersisted));
        self.answers.insert(slot, Answer::Accepted(vote));
        Ok(is_new)
    }

    /// Forgets what it accepted in the slots up to `slot`, all of them decided: nobody asks any more.
    pub(crate) fn trim(&mut self, slot: Slot) {
        self.answers.trim(slot);
    }

    fn is_too_late(&self, ballot: Ballot) -> bool {
        let is_of_its_round = ballot.round == self.promised.round;
        ballot < self.promised && !(is_of_its_round && planted(Bug::BallotsComparedByRound))
    }

    /// For a planted bug only: forgets what it accepted after `slot`.
    pub(crate) fn forget_after(&mut self, slot: Slot) {
        let kept = self.answers.range(Slot::NONE);
        let kept = kept.filter(|(of, _)| *of <= slot);
        let kept: BTreeMap<_, _> = kept.map(|(of, answer)| (of, answer.clone())).collect();
        self.answers = kept.into();
    }

    /// For a planted bug only: the last slot that it knows anything of.
    pub(crate) fn last(&self) -> Slot {
        let last = self.answers.range(Slot::NONE).last();
        last.map_or(Slot::NONE, |(slot, _)| slot)
    }

    /// For a planted bug only: forgets for whom it voted in the round that it promised.
    pub(crate) fn forget_vote(&mut self) {
        self.promised.voter = Ballot::NONE.voter;
    }
}
