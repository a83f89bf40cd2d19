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

/// What a model of three nodes needs for the bug to show; `None` if it can't.
fn bounds_of(bug: Bug) -> Option<Bounds> {
    let contested = [(0, 1, "a"), (1, 1, "b")];
    let after_a_crash = bounds(&[0, 0, 0], 1, &contested);
    let found = match bug {
        // Of three, its own promise and another are a quorum before any comes twice.
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
        // The voter wants something else in its second life.
        Bug::BallotReusedAfterRestart => bounds(&[0, 0, 0], 1, &[(0, 1, "a"), (0, 1, "b")]),
        Bug::PromiseOfAnotherBallotCounted
        | Bug::FirstAnswerTaken
        | Bug::AcceptedOfAnotherBallotCounted => bounds(&[1, 0, 0], 0, &contested),
    };
    Some(found)
}

#[test]
fn every_planted_bug_that_three_nodes_can_show_breaks_a_law() {
    let mut missed = Vec::new();
    for &bug in Bug::ALL {
        let Some(bounds) = bounds_of(bug) else {
            continue;
        };
        let report = with(bug, || go::<3>(bug.name(), &bounds));
        match report.counterexample {
            Some(found) => println!("{found}"),
            None => missed.push(bug.name()),
        }
    }
    assert!(missed.is_empty(), "no law is broken by: {missed:?}");
}

#[test]
fn a_promise_that_counts_twice_breaks_a_law_among_five_nodes() {
    let bug = Bug::PromiseCountedTwice;
    let bounds = bounds(&[0; 5], 0, &[(0, 1, "a"), (1, 1, "b")]);
    let report = with(bug, || go::<5>(bug.name(), &bounds));
    println!("{}", report.counterexample.expect("a law is broken"));
}
