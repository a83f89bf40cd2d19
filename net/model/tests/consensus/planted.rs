//! The models are worth something: planted bugs break invariants.

use sprag_model::Bounds;
use sprag_paxos::simulation::{Bug, plant};

use super::{bounds, go};

/// As far as a bug is looked for. Each that is found is found sooner.
const STATES_MAX: usize = 150_000;

/// What a model needs for the bug to show; or why none here, within so few states, is known to.
fn bounds_of(bug: Bug) -> Result<Bounds, &'static str> {
    let asked = [(0, "a")];
    let leader_crashes = bounds([1, 0, 0], [1, 0, 0], &asked);
    let two_candidates = bounds([1, 1, 0], [0, 0, 0], &asked);
    let follower_crashes = bounds([1, 1, 0], [0, 0, 1], &asked);
    match bug {
        Bug::DecidedGoesBackOnALatePromise
        | Bug::AcceptedCountedTwice
        | Bug::ChosenWithoutAQuorum
        | Bug::CommitSkipsAHole
        | Bug::AcceptLeavesThePromise
        | Bug::OwnVoteBeforeDurable
        | Bug::FetchTellsTheUndecided => Ok(leader_crashes),
        Bug::NoopOverTheBound
        | Bug::VoteClearedOnStepDown
        | Bug::AcceptsBelowThePromise
        | Bug::BallotsComparedByRound
        | Bug::RevoteNotPersisted => Ok(two_candidates),
        Bug::PromiseBeforeDurable | Bug::AcceptedBeforeDurable => Ok(follower_crashes),
        Bug::PromiseCountedTwice => Err("takes five voters: of three, two are a quorum anyway"),
        Bug::HalfIsAQuorum => Err("takes an even number of voters"),
        Bug::UnknownTreatedAsNever => Err("takes a vote that can't be read"),
        Bug::LostDiskKeepsItsVote => Err("takes a disk that is lost"),
        Bug::FirstPageTakenForAll | Bug::PageSkipsAnAnswer => Err("takes promises of two pages"),
        _ => Err("takes a third ballot, or a crash among two candidates: more states than these"),
    }
}

#[test]
fn every_planted_bug_in_reach_breaks_a_law() {
    let mut missed = Vec::new();
    for &bug in Bug::ALL {
        match bounds_of(bug) {
            Err(why) => println!("model: {} is out of reach, {why}", bug.name()),
            Ok(mut bounds) => {
                bounds.states_max = STATES_MAX;
                plant(Some(bug));
                let report = go(bug.name(), &bounds);
                plant(None);
                match report.counterexample {
                    Some(found) => println!("{found}"),
                    None => missed.push(bug.name()),
                }
            }
        }
    }
    assert!(missed.is_empty(), "no invariant is broken by: {missed:?}");
}
