//! The proposer of one slot: finds out what may have been chosen there, and proposes that, or else what it wants.

use crate::ballot::Ballot;
use crate::configuration::{Configuration, Phase, VoterSet};
use crate::entry::{Answer, Entry, Vote};
use crate::simulation::{Bug, Mark, planted, reach};

/// An attempt at a slot, in one ballot. Nothing of it is durable: after a crash there is another attempt.
///
/// ```text
///            a quorum of Promises                a quorum of Accepteds
///   Phase one ──────────────────► Phase two ──────────────────────► chosen
///       │  Refused, or no answer      │  Refused, or no answer
///       └────────────► given up ◄─────┘      and tried again later, in a higher ballot
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proposer {
    ballot: Ballot,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    /// By voter's index, what it answered.
    PhaseOne { answers: Vec<Option<Answer>> },
    /// Who accepted `entry`.
    PhaseTwo { entry: Entry, accepted: VoterSet },
}

/// What the answers of phase one allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// More answers are needed.
    Open,
    /// No value can have been chosen in a lower ballot: any will do.
    Free,
    /// This may have been chosen in a lower ballot: nothing else will do.
    Bound(Entry),
}

/// Says what `answers`, by voter's index, allow to be proposed.
///
/// A value that was chosen in a lower ballot c was accepted by a quorum of phase two, which each quorum of phase one
/// meets. Who is in both accepted in c or later, and says so, or that it doesn't know what it accepted in which ballot no
/// lower than c. So in a quorum of answers the highest ballot is at least c, and a vote of at least c is for the chosen
/// value (by induction over the ballots between). Answers of no use may be left out as if they had not come: where those
/// that know make a quorum by themselves, they decide; else a vote must reach up to what is unknown.
pub fn choose(configuration: &Configuration, answers: &[Option<Answer>]) -> Choice {
    let mut answered = VoterSet::default();
    let mut known = VoterSet::default();
    let mut unknown = Ballot::NONE;
    let mut best: Option<&Vote> = None;
    for (index, answer) in answers.iter().enumerate() {
        let Some(answer) = answer else { continue };
        answered.insert(index);
        match answer {
            Answer::Unknown(_) if planted(Bug::UnknownTreatedAsNever) => {
                known.insert(index);
            }
            Answer::Unknown(ballot) => unknown = unknown.max(*ballot),
            Answer::Never => {
                known.insert(index);
            }
            Answer::Accepted(vote) => {
                known.insert(index);
                let is_better = best.is_none_or(|best| vote.ballot > best.ballot);
                if is_better && !(planted(Bug::FirstAnswerTaken) && best.is_some()) {
                    best = Some(vote);
                }
            }
        }
    }
    let is_enough = |set| configuration.is_quorum(Phase::One, set);
    match best {
        Some(vote) if is_enough(known) || (is_enough(answered) && vote.ballot >= unknown) => {
            Choice::Bound(vote.entry.clone())
        }
        None if is_enough(known) => Choice::Free,
        _ => Choice::Open,
    }
}

impl Proposer {
    /// Begins phase one in `ballot`.
    pub fn new(ballot: Ballot, configuration: &Configuration) -> Self {
        let answers = vec![None; configuration.voters().len()];
        Self {
            ballot,
            state: State::PhaseOne { answers },
        }
    }

    /// The ballot of this attempt.
    pub fn ballot(&self) -> Ballot {
        self.ballot
    }

    /// Which phase it is in.
    pub fn phase(&self) -> Phase {
        match self.state {
            State::PhaseOne { .. } => Phase::One,
            State::PhaseTwo { .. } => Phase::Two,
        }
    }

    /// The voter at `index` promised `ballot`. Gives what to propose as soon as that is known: `wanted`, if it is free to.
    pub fn promised(
        &mut self,
        configuration: &Configuration,
        index: usize,
        ballot: Ballot,
        answer: Answer,
        wanted: &Entry,
    ) -> Option<Entry> {
        if ballot != self.ballot && !planted(Bug::PromiseOfAnotherBallotCounted) {
            reach(Mark::PromiseOfAnotherBallot);
            return None;
        }
        let State::PhaseOne { answers } = &mut self.state else {
            reach(Mark::PromiseAfterPhaseOne);
            return None;
        };
        if answers[index].is_some() {
            reach(Mark::PromiseTwice);
            if planted(Bug::PromiseCountedTwice)
                && let Some(other) = answers.iter().position(Option::is_none)
            {
                answers[other] = Some(answer);
            }
        } else {
            answers[index] = Some(answer);
        }
        let entry = match choose(configuration, answers) {
            Choice::Open => return None,
            Choice::Free => {
                reach(Mark::FreeChoice);
                wanted.clone()
            }
            Choice::Bound(_) if planted(Bug::OwnValueOverTheBound) => wanted.clone(),
            Choice::Bound(entry) => {
                reach(if entry == *wanted {
                    Mark::BoundToOwn
                } else {
                    Mark::BoundToAnother
                });
                entry
            }
        };
        self.state = State::PhaseTwo {
            entry: entry.clone(),
            accepted: VoterSet::default(),
        };
        Some(entry)
    }

    /// The voter at `index` accepted in `ballot`. Gives the entry when that makes it chosen: once.
    pub fn accepted(
        &mut self,
        configuration: &Configuration,
        index: usize,
        ballot: Ballot,
    ) -> Option<Entry> {
        if ballot != self.ballot && !planted(Bug::AcceptedOfAnotherBallotCounted) {
            reach(Mark::AcceptedOfAnotherBallot);
            return None;
        }
        let State::PhaseTwo { entry, accepted } = &mut self.state else {
            return None;
        };
        let was_chosen = configuration.is_quorum(Phase::Two, *accepted);
        if !accepted.insert(index) {
            reach(Mark::AcceptedTwice);
        }
        let is_chosen =
            configuration.is_quorum(Phase::Two, *accepted) || planted(Bug::ChosenWithoutAQuorum);
        (is_chosen && !was_chosen).then(|| entry.clone())
    }
}
