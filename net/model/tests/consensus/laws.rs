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
fn two_who_want_one_slot_agree_though_a_node_crashes_and_cannot_read_its_vote() {
    let mut bounds = bounds(&[0, 0, 0], 1, &[(0, 1, "a"), (1, 1, "b")]);
    bounds.rots = true;
    let report = go::<3>("contested slot, crash, rot", &bounds);
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
fn one_who_tries_again_is_bound_like_any_other() {
    let report = go::<3>("retry", &bounds(&[1, 0, 0], 0, &[(0, 1, "a")]));
    holds(&report);
    reaches(&[
        Mark::AttemptExpired,
        Mark::PromiseOfAnotherBallot,
        Mark::AcceptedOfAnotherBallot,
        Mark::BoundToOwn,
    ]);
}

#[test]
fn the_long_forms_hold_too() {
    if !is_long() {
        return;
    }
    let contested = [(0, 1, "a"), (1, 1, "b")];
    let both = [(0, 1, "a"), (1, 1, "b"), (1, 2, "c")];
    let again = [(0, 1, "a"), (0, 1, "b")];
    for (name, bounds) in [
        ("retry, crash", bounds(&[1, 0, 0], 1, &again)),
        ("contested slot, retry", bounds(&[1, 0, 0], 0, &contested)),
        ("two slots, one contested", bounds(&[0, 0, 0], 0, &both)),
    ] {
        holds(&go::<3>(name, &bounds));
    }
}
