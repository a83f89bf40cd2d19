//! The core breaks no invariant.

use sprag_paxos::simulation::{Mark, reached};

use super::{bounds, go};

#[test]
fn two_slots_are_decided_though_the_leader_crashes() {
    let report = go("leader crashes", &bounds([1, 0, 0], [1, 0, 0], &[(0, "a")]));
    if let Some(counterexample) = &report.counterexample {
        panic!("an invariant is broken:\n{counterexample}");
    }
    assert_eq!(
        report.decided_by_all, 2,
        "the leader's own entry and what was asked for"
    );
    let reached = reached();
    for mark in [
        Mark::PromiseOfAnotherBallot,
        Mark::AcceptAboveThePromise,
        Mark::CommitWithoutVote,
        Mark::Fetched,
    ] {
        assert!(reached.contains(mark), "never reached: {}", mark.name());
    }
}
