//! The core breaks no law.

use sprag_model::Report;
use sprag_paxos::simulation::{Mark, reached};

use super::{bounds, go, is_long};

fn holds(report: &Report) {
    if let Some(counterexample) = &report.counterexample {
        panic!("a law is broken:\n{counterexample}");
    }
}

/// Else the models could be empty.
fn reaches(marks: &[Mark]) {
    let reached = reached();
    for mark in marks {
        assert!(reached.contains(*mark), "never reached: {}", mark.name());
    }
}

#[test]
fn two_who_want_one_slot_agree_though_a_node_crashes() {
    let report = go::<3>(
        "contested slot, crash",
        &bounds(&[0, 0, 0], 1, &[(0, 1, "a"), (1, 1, "b")]),
    );
    holds(&report);
    assert_eq!(
        report.decided_by_all, 1,
        "some state is all that was hoped for"
    );
    reaches(&[
        Mark::FreeChoice,
        Mark::BoundToAnother,
        Mark::PromiseAfterPhaseOne,
        Mark::AcceptedTwice,
        Mark::PrepareRefused,
        Mark::AcceptRefused,
        Mark::AcceptAboveThePromise,
        Mark::CommitOfOwnVote,
        Mark::CommitOfAnotherVote,
        Mark::CommitWithoutVote,
        Mark::Fetched,
    ]);
}

#[test]
fn two_slots_do_not_disturb_each_other_though_a_node_crashes() {
    let report = go::<3>(
        "two slots, crash",
        &bounds(&[0, 0, 0], 1, &[(0, 1, "a"), (1, 2, "b")]),
    );
    holds(&report);
    assert_eq!(
        report.decided_by_all, 2,
        "some state is all that was hoped for"
    );
}

#[test]
fn a_vote_that_cannot_be_read_any_more_changes_nothing() {
    let mut bounds = bounds(&[0, 0, 0], 1, &[(0, 1, "a"), (1, 1, "b")]);
    bounds.rots = true;
    let report = go::<3>("contested slot, crash, rot", &bounds);
    holds(&report);
}

#[test]
fn one_who_tries_again_is_bound_like_any_other() {
    let report = go::<3>(
        "retry, crash",
        &bounds(&[1, 0, 0], 1, &[(0, 1, "a"), (0, 1, "b")]),
    );
    holds(&report);
    reaches(&[
        Mark::AttemptExpired,
        Mark::PromiseOfAnotherBallot,
        Mark::AcceptedOfAnotherBallot,
        Mark::BoundToOwn,
    ]);
}

#[test]
fn one_who_tries_again_agrees_with_another() {
    if !is_long() {
        return;
    }
    let contested = [(0, 1, "a"), (1, 1, "b")];
    let report = go::<3>("contested slot, retry", &bounds(&[1, 0, 0], 0, &contested));
    holds(&report);
}

#[test]
fn two_slots_one_of_them_contested_are_decided() {
    if !is_long() {
        return;
    }
    let proposals = [(0, 1, "a"), (1, 1, "b"), (1, 2, "c")];
    let report = go::<3>(
        "two slots, one contested",
        &bounds(&[0, 0, 0], 0, &proposals),
    );
    holds(&report);
    assert_eq!(
        report.decided_by_all, 2,
        "some state is all that was hoped for"
    );
}
