//! One run: a seed from its plan to its verdict.

use sprag_paxos::simulation::{self, Bug, Bugs, Marks};

use crate::chance::Chance;
use crate::failure::Failure;
use crate::fault::{Faults, Strike};
use crate::judge::judge;
use crate::panics;
use crate::plan::{Mix, Plan};
use crate::readable::Line;
use crate::tally::Tally;
use crate::world::{EVENTS_MAX, World};

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
    /// The bugs of which one would have changed it, or might have, if it had been planted.
    pub asked: Bugs,
    /// The faults that struck.
    pub struck: Vec<Strike>,
    /// The events that were asked for, as text.
    pub tail: Vec<Line>,
}

/// Runs `seed` with the faults that it draws.
pub fn run(seed: u64, setup: &Setup) -> Report {
    let plan = Plan::new(seed, &setup.mix, setup.nodes);
    let faults = Faults::drawn(Chance::new(seed).of(0x8000), &plan.rates, Plan::RATE_MOST);
    let world = World::new(seed, plan, faults, setup.looks_inside, None);
    go(world, setup, EVENTS_MAX)
}

/// Runs `seed` with the faults of `script` and no others.
pub fn replay(seed: u64, setup: &Setup, script: &[Strike]) -> Report {
    go(scripted(seed, setup, script, None), setup, EVENTS_MAX)
}

/// The same, and keeps what comes after the first `skipped` events as text.
pub fn show(seed: u64, setup: &Setup, script: &[Strike], skipped: u64) -> Report {
    go(
        scripted(seed, setup, script, Some(skipped)),
        setup,
        EVENTS_MAX,
    )
}

/// The same as [`replay`], but a run of more than `events_max` events isn't live.
pub(crate) fn replay_within(
    seed: u64,
    setup: &Setup,
    script: &[Strike],
    events_max: u64,
) -> Report {
    go(scripted(seed, setup, script, None), setup, events_max)
}

fn scripted(seed: u64, setup: &Setup, script: &[Strike], tail_from: Option<u64>) -> World {
    let plan = Plan::new(seed, &setup.mix, setup.nodes);
    let faults = Faults::scripted(Chance::new(seed).of(0x8000), script);
    World::new(seed, plan, faults, setup.looks_inside, tail_from)
}

fn go(mut world: World, setup: &Setup, events_max: u64) -> Report {
    simulation::plant(setup.bug);
    let ended = panics::catch(|| world.run(events_max).and_then(|()| judge(&world)));
    simulation::plant(None);
    let failure = match ended {
        Ok(ended) => ended.err(),
        Err(said) => Some(Failure::Crash(said)),
    };
    let mut tally = world.tally.clone();
    tally.decided = world.frontier.0;
    tally.lasted_ms = world.now_ns / 1_000_000;
    Report {
        failure,
        hash: world.trace.hash(),
        events: world.trace.events(),
        tally,
        marks: simulation::reached(),
        asked: simulation::asked(),
        struck: world.struck(),
        tail: world.trace.into_tail(),
    }
}
