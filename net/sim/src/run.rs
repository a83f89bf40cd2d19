//! One run: a seed from its plan to its verdict.

use std::panic::{self, AssertUnwindSafe};

use sprag_paxos::simulation::{self, Bug, Marks};

use crate::chance::Chance;
use crate::fault::{Faults, Strike};
use crate::plan::{Mix, Plan};
use crate::tally::Tally;
use crate::world::{Failure, World};

/// What to run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Which faults there may be.
    pub mix: Mix,
    /// How many nodes; drawn by each seed where it is `None`.
    pub nodes: Option<usize>,
    /// A bug to plant.
    pub bug: Option<Bug>,
    /// Whether invariants look inside the nodes; else only what clients see is checked.
    pub looks_inside: bool,
}

/// What came of a run.
#[derive(Debug)]
pub struct Report {
    /// `None` if all was well.
    pub failure: Option<Failure>,
    /// Two runs of one seed agree on it.
    pub hash: u64,
    /// How much happened.
    pub events: u64,
    /// The counts.
    pub tally: Tally,
    /// The states that were reached.
    pub marks: Marks,
    /// The faults that struck.
    pub struck: Vec<Strike>,
    /// The last events, if they were asked for.
    pub tail: Vec<String>,
}

/// Runs `seed` with the faults that it draws.
pub fn run(seed: u64, setup: &Setup) -> Report {
    let plan = Plan::new(seed, &setup.mix, setup.nodes);
    let faults = Faults::drawn(Chance::new(seed).of(0x8000), &plan.rates);
    go(seed, setup, plan, faults, false)
}

/// Runs `seed` with the faults of `script` and no others, and keeps the last events as text.
pub fn replay(seed: u64, setup: &Setup, script: &[Strike]) -> Report {
    let plan = Plan::new(seed, &setup.mix, setup.nodes);
    let faults = Faults::scripted(Chance::new(seed).of(0x8000), script);
    go(seed, setup, plan, faults, true)
}

fn go(seed: u64, setup: &Setup, plan: Plan, faults: Faults, keeps_tail: bool) -> Report {
    simulation::plant(setup.bug);
    let mut world = World::new(seed, plan, faults, setup.looks_inside, keeps_tail);
    let ended = panic::catch_unwind(AssertUnwindSafe(|| world.run()));
    simulation::plant(None);
    let failure = match ended {
        Ok(Ok(())) => crate::judge::judge(&world).err(),
        Ok(Err(failure)) => Some(failure),
        Err(panic) => Some(Failure::Crash(text_of(panic.as_ref()))),
    };
    let mut tally = world.tally.clone();
    tally.asked = world.calls().count() as u64;
    tally.decided = world.frontier.0;
    Report {
        failure,
        hash: world.trace.hash(),
        events: world.trace.events(),
        tally,
        marks: world.marks(),
        struck: world.struck().to_vec(),
        tail: world.trace.into_tail(),
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}
