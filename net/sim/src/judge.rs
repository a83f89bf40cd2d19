//! Judges what clients saw: of each register and each issuer, what its clients were told must have an order.

use crate::failure::Failure;
use crate::history::{History, Model, Verdict};
use crate::invariant::Broken;
use crate::world::World;

/// How many steps the search of one key may take: far more than any has taken. One that takes more is a failure: nothing was
/// shown.
const STEPS_MAX: u64 = 1_000_000;

pub(crate) fn judge(world: &World) -> Result<(), Failure> {
    check("register", &world.registers)?;
    check("issuer", &world.issuers)
}

fn check<M: Model>(what: &str, history: &History<M>) -> Result<(), Failure> {
    let what = match history.check(STEPS_MAX) {
        Verdict::Linearizable => return Ok(()),
        Verdict::Violation(violation) => format!("{what} {violation}"),
        Verdict::GaveUp { key } => format!("no verdict on {what} {key} after {STEPS_MAX} steps"),
    };
    Err(Failure::Safety(Broken {
        invariant: "linearizable history",
        source: "Herlihy and Wing, Linearizability, 1990, section 2",
        what,
    }))
}
