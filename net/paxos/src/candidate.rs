//! A candidate's phase one: what each voter promised and answered, page by page, over the whole suffix of the log.

use std::collections::BTreeMap;

use crate::ballot::Ballot;
use crate::choice::{Choice, choose};
use crate::configuration::{Configuration, Phase, VoterSet};
use crate::entry::{Answer, Entry, Slot};
use crate::simulation::{Bug, Mark, planted, reach};

/// What one voter answered so far.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Answered {
    by_slot: BTreeMap<Slot, Answer>,
    /// Where its next page begins; `None` when all have come, and only then does its promise count.
    next: Option<Slot>,
    /// Up to where it knows what is decided.
    decided: Slot,
}

/// A page of a Promise.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Page {
    pub(crate) from: Slot,
    pub(crate) answers: Vec<(Slot, Answer)>,
    pub(crate) next: Option<Slot>,
    pub(crate) decided: Slot,
}

/// What phase one has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// More has to come.
    Open,
    /// A voter knows more to be decided than the candidate, which must know that before it proposes.
    Behind,
    /// For each slot after what is decided, up to the highest that anybody accepted anything in, what to propose.
    Ready(Vec<Entry>),
}

/// A candidacy, in one ballot. Nothing of it is durable but the candidate's own promise.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Candidate {
    pub(crate) ballot: Ballot,
    /// The first slot that it asks for.
    pub(crate) from: Slot,
    /// By voter's index.
    answered: Vec<Option<Answered>>,
}

impl Candidate {
    pub(crate) fn new(ballot: Ballot, from: Slot, configuration: &Configuration) -> Self {
        Self {
            ballot,
            from,
            answered: vec![None; configuration.voters().len()],
        }
    }

    /// Where the voter at `index` is to be asked from next; `None` if it has answered all.
    pub(crate) fn wants(&self, index: usize) -> Option<Slot> {
        match &self.answered[index] {
            None => Some(self.from),
            Some(answered) => answered.next,
        }
    }

    /// A page came from the voter at `index`; whether it was the one that was wanted.
    pub(crate) fn take(&mut self, index: usize, page: Page) -> bool {
        if self.wants(index) != Some(page.from) {
            reach(Mark::PromiseTwice);
            return planted(Bug::PromiseCountedTwice) && self.take_for_another(page);
        }
        let answered = self.answered[index].get_or_insert_with(|| Answered {
            by_slot: BTreeMap::new(),
            next: None,
            decided: Slot::NONE,
        });
        answered.by_slot.extend(page.answers);
        answered.next = page.next;
        answered.decided = answered.decided.max(page.decided);
        if page.next.is_some() {
            reach(Mark::PromisePaged);
            if planted(Bug::FirstPageTakenForAll) {
                answered.next = None;
            }
        }
        true
    }

    /// What follows for the slots after `decided`, which is as far as the candidate knows.
    pub(crate) fn outcome(&self, configuration: &Configuration, decided: Slot) -> Outcome {
        let complete = || {
            let answered = self.answered.iter().map(Option::as_ref);
            answered.map(|answered| answered.filter(|answered| answered.next.is_none()))
        };
        let mut promised = VoterSet::default();
        for (index, answered) in complete().enumerate() {
            if answered.is_some() {
                promised.insert(index);
            }
        }
        if !configuration.is_quorum(Phase::One, promised) {
            return Outcome::Open;
        }
        let furthest = complete().flatten().map(|answered| answered.decided).max();
        if furthest > Some(decided) && !planted(Bug::CandidateDoesNotCatchUp) {
            return Outcome::Behind;
        }
        let highest = complete().flatten().filter_map(|answered| {
            let last = answered.by_slot.last_key_value();
            last.map(|(slot, _)| *slot)
        });
        let highest = highest.max().unwrap_or(Slot::NONE);
        let mut entries = Vec::new();
        for slot in decided.0 + 1..=highest.0 {
            let answers = complete().map(|answered| {
                let answer = answered?.by_slot.get(&Slot(slot));
                Some(answer.cloned().unwrap_or(Answer::Never))
            });
            let answers: Vec<_> = answers.collect();
            match choose(configuration, &answers) {
                Choice::Open => {
                    reach(Mark::ChoiceOpen);
                    return Outcome::Open;
                }
                Choice::Free => {
                    reach(Mark::GapFilled);
                    entries.push(Entry::Noop);
                }
                Choice::Bound(_) if planted(Bug::NoopOverTheBound) => entries.push(Entry::Noop),
                Choice::Bound(entry) => {
                    reach(Mark::EntryRecovered);
                    entries.push(entry);
                }
            }
        }
        Outcome::Ready(entries)
    }

    /// For a planted bug only: takes a page for that of a voter that hasn't answered.
    fn take_for_another(&mut self, page: Page) -> bool {
        let missing = self.answered.iter().position(Option::is_none);
        let from = self.from;
        missing.is_some_and(|index| self.take(index, Page { from, ..page }))
    }

    /// A voter that knows more than `decided` to be decided.
    pub(crate) fn further_than(&self, decided: Slot) -> Option<usize> {
        let further = |answered: &Option<Answered>| {
            answered
                .as_ref()
                .is_some_and(|answered| answered.decided > decided)
        };
        self.answered.iter().position(further)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Vote;
    use crate::testing::{ballot, entry, options, voters};

    fn vote(slot: u64, round: u64, command: &[u8]) -> (Slot, Answer) {
        let vote = Vote {
            ballot: ballot(round, voters(3)[0]),
            entry: entry(command),
        };
        (Slot(slot), Answer::Accepted(vote))
    }

    fn page(from: u64, answers: Vec<(Slot, Answer)>, next: Option<u64>, decided: u64) -> Page {
        Page {
            from: Slot(from),
            answers,
            next: next.map(Slot),
            decided: Slot(decided),
        }
    }

    /// What follows from these pages, of the voters with these indices, for a candidate of three that knows everything up to
    /// slot 4 to be decided.
    fn outcome(pages: Vec<(usize, Page)>) -> Outcome {
        let configuration = options(&voters(3), 2).configuration;
        let own = ballot(9, voters(3)[2]);
        let mut candidate = Candidate::new(own, Slot(5), &configuration);
        for (index, page) in pages {
            candidate.take(index, page);
        }
        candidate.outcome(&configuration, Slot(4))
    }

    #[test]
    fn phase_one_comes_to_what_a_quorum_of_whole_promises_says() {
        let none = |decided| page(5, vec![], None, decided);
        let (a, b) = (|| entry(b"a"), || entry(b"b"));
        let cases = [
            ("nobody answered", vec![], Outcome::Open),
            ("no quorum", vec![(0, none(4))], Outcome::Open),
            (
                "one promise, twice",
                vec![(0, none(4)), (0, none(4))],
                Outcome::Open,
            ),
            (
                "a page is missing",
                vec![(0, none(4)), (1, page(5, vec![], Some(7), 4))],
                Outcome::Open,
            ),
            (
                "a page is missing, and another came instead",
                vec![
                    (0, none(4)),
                    (1, page(5, vec![], Some(7), 4)),
                    (1, page(6, vec![], None, 4)),
                ],
                Outcome::Open,
            ),
            (
                "nothing was accepted",
                vec![(0, none(4)), (1, none(3))],
                Outcome::Ready(vec![]),
            ),
            (
                "more is decided",
                vec![(0, none(4)), (1, page(5, vec![vote(7, 1, b"a")], None, 6))],
                Outcome::Behind,
            ),
            (
                "more is decided, as a page said that came before the last",
                vec![
                    (0, none(4)),
                    (1, page(5, vec![], Some(7), 6)),
                    (1, page(7, vec![], None, 2)),
                ],
                Outcome::Behind,
            ),
            (
                "what was accepted in the highest ballot, of each slot, and nothing in between",
                vec![
                    (
                        0,
                        page(5, vec![vote(5, 1, b"a"), vote(7, 3, b"b")], None, 4),
                    ),
                    (1, page(5, vec![vote(5, 2, b"b")], Some(6), 4)),
                    (1, page(6, vec![vote(7, 2, b"a")], None, 4)),
                ],
                Outcome::Ready(vec![b(), Entry::Noop, b()]),
            ),
            (
                "nothing of what is known to be decided",
                vec![
                    (
                        0,
                        page(5, vec![vote(4, 1, b"b"), vote(5, 1, b"a")], None, 4),
                    ),
                    (1, none(4)),
                ],
                Outcome::Ready(vec![a()]),
            ),
            (
                "what may have been accepted there, nobody can say",
                vec![
                    (
                        0,
                        page(
                            5,
                            vec![(Slot(5), Answer::Unknown(ballot(2, voters(3)[0])))],
                            None,
                            4,
                        ),
                    ),
                    (1, page(5, vec![vote(5, 1, b"a")], None, 4)),
                ],
                Outcome::Open,
            ),
        ];
        for (what, pages, expected) in cases {
            assert_eq!(outcome(pages), expected, "{what}");
        }
    }

    #[test]
    fn a_voter_is_asked_for_the_page_that_comes_next_and_for_none_after_the_last() {
        let configuration = options(&voters(3), 2).configuration;
        let own = ballot(9, voters(3)[2]);
        let mut candidate = Candidate::new(own, Slot(5), &configuration);
        assert_eq!(candidate.wants(0), Some(Slot(5)));
        assert!(candidate.take(0, page(5, vec![], Some(8), 4)));
        assert_eq!(candidate.wants(0), Some(Slot(8)));
        assert!(!candidate.take(0, page(5, vec![], None, 4)));
        assert!(candidate.take(0, page(8, vec![], None, 6)));
        assert_eq!(candidate.wants(0), None);
        assert!(!candidate.take(0, page(8, vec![], None, 6)));
        assert_eq!(candidate.further_than(Slot(5)), Some(0));
        assert_eq!(candidate.further_than(Slot(6)), None);
    }
}
