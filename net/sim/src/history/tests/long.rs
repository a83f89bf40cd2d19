//! Histories as long as the simulator's.

use fastrand::Rng;

use super::super::{Issuer, Register, Verdict};
use super::decree::Decree;
use super::history;
use super::random::{Chance, Shape, bend, run};

/// What a search of `calls` operations may take, and hardly ever does.
const STEPS_MAX: u64 = 1_000_000;

fn shape() -> Shape {
    Shape {
        calls: 300,
        clients: 10,
        unknown: 7,
        pause_max: 20,
    }
}

fn never_gives_up<M: Chance>(histories: u64) {
    let mut violations = 0;
    for seed in 0..histories {
        let mut rng = Rng::with_seed(seed);
        let mut rows = run::<M>(&mut rng, &shape());
        assert_eq!(
            history(&rows).check(STEPS_MAX),
            Verdict::Linearizable,
            "seed {seed}"
        );
        bend(&mut rng, &mut rows);
        match history(&rows).check(STEPS_MAX) {
            Verdict::Linearizable => {}
            Verdict::Violation(_) => violations += 1,
            Verdict::GaveUp { .. } => panic!("gave up on seed {seed}"),
        }
    }
    assert!(
        violations >= histories / 5,
        "{violations} violations among {histories}"
    );
}

#[test]
fn hundreds_of_operations_of_ten_clients_with_dozens_unknown_never_take_too_many_steps() {
    never_gives_up::<Decree>(100);
    never_gives_up::<Register>(100);
    never_gives_up::<Issuer>(100);
}
