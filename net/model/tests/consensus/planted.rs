//! The models are worth something: planted bugs break laws.

use sprag_paxos::simulation::{Bug, plant};

use super::{bounds, go};

#[test]
fn survey() {
    for &bug in Bug::ALL {
        for (name, mut bounds) in [
            ("leader crashes", bounds([1, 0, 0], [1, 0, 0], &[(0, "a")])),
            ("two candidates", bounds([1, 1, 0], [0, 0, 0], &[(0, "a")])),
            (
                "follower crashes",
                bounds([1, 1, 0], [0, 0, 1], &[(0, "a")]),
            ),
        ] {
            bounds.states_max = 150_000;
            plant(Some(bug));
            let report = go(bug.name(), &bounds);
            plant(None);
            match report.counterexample {
                Some(found) => {
                    println!(
                        "FOUND {} {name} {} {}",
                        bug.name(),
                        found.broken.law,
                        found.steps.len()
                    );
                    break;
                }
                None => println!("NOT {} {name}", bug.name()),
            }
        }
    }
}
