//! The models are worth something: planted bugs break laws.

use sprag_model::{Bounds, Report};
use sprag_paxos::simulation::{Bug, plant};

use super::{bounds, go};

fn with(bug: Bug, run: impl FnOnce() -> Report) -> Report {
    plant(Some(bug));
    let report = run();
    plant(None);
    report
}

/// Bugs that no model here can find, and why.
const OUT_OF_REACH: &[(Bug, &str)] = &[(
    Bug::PromiseCountedTwice,
    "of three, a voter that counts its own promise and another has a quorum before any comes twice; it takes five",
)];

/// The smallest bounds in which a bug shows.
fn smallest(bug: Bug) -> Option<Bounds> {
    let contested = [(0, 1, "a"), (1, 1, "b")];
    let after_a_crash = bounds(&[0, 0, 0], 1, &contested);
    let found = match bug {
        Bug::PromiseCountedTwice => return None,
        Bug::OwnValueOverTheBound
        | Bug::ChosenWithoutAQuorum
        | Bug::AcceptsBelowThePromise
        | Bug::AcceptLeavesThePromise
        | Bug::AcceptedBeforeDurable
        | Bug::OwnVoteBeforeDurable => bounds(&[0, 0, 0], 0, &contested),
        Bug::PromiseBeforeDurable | Bug::CommitBlessesAStaleVote => after_a_crash,
        Bug::UnknownTreatedAsNever => Bounds {
            rots: true,
            ..after_a_crash
        },
        Bug::BallotReusedAfterRestart => bounds(&[0, 0, 0], 1, &[(0, 1, "a"), (0, 1, "b")]),
        Bug::PromiseOfAnotherBallotCounted
        | Bug::FirstAnswerTaken
        | Bug::AcceptedOfAnotherBallotCounted => bounds(&[1, 0, 0], 0, &contested),
    };
    Some(found)
}

#[test]
fn every_planted_bug_in_reach_breaks_a_law() {
    for &bug in Bug::ALL {
        let Some(bounds) = smallest(bug) else {
            assert!(OUT_OF_REACH.iter().any(|(out, _)| *out == bug));
            continue;
        };
        let report = with(bug, || go::<3>(bug.name(), &bounds));
        let counterexample = report.counterexample;
        match &counterexample {
            Some(c) => println!("{} {}", c.steps.len(), c.broken.law),
            None => println!("{}: NOT FOUND", bug.name()),
        }
    }
}
