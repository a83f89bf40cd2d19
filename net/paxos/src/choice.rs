//! What a candidate may propose for a slot, given what a quorum answered.

use crate::ballot::Ballot;
use crate::configuration::{Configuration, Phase, VoterSet};
use crate::entry::{Answer, Entry, Vote};
use crate::simulation::{Bug, planted};

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
    let reaches = |vote: &Vote| vote.ballot >= unknown || planted(Bug::BallotOfTheUnknownForgotten);
    match best {
        Some(vote) if is_enough(known) || (is_enough(answered) && reaches(vote)) => {
            Choice::Bound(vote.entry.clone())
        }
        None if is_enough(known) => Choice::Free,
        _ => Choice::Open,
    }
}
