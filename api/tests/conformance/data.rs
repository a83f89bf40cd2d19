//! The cases that every language shares, read from `tests/cases`; its README says what they mean.

mod counts;
mod holds;
mod limits;
mod onces;

use super::tier::Tier;
use serde_json::Value;
use sprag::{EngineError, Error, Limit, ManualClock, Space};
use std::time::Duration;

const LOCKS: &str = include_str!("../cases/locks.json");
const SEMAPHORES: &str = include_str!("../cases/semaphores.json");
const COUNTERS: &str = include_str!("../cases/counters.json");
const ONCES: &str = include_str!("../cases/onces.json");
const LIMITERS: &str = include_str!("../cases/limiters.json");
const SEVERAL_LIMITS: &str = include_str!("../cases/several_limits.json");

/// What a case runs on: a fresh space, and the clock that moves it if there is one.
struct World {
    space: Space,
    clock: Option<ManualClock>,
}

impl World {
    /// Moves the clock.
    fn advance(&self, by: Duration) {
        let clock = self.clock.as_ref();
        clock.expect("a case that says `clock`").advance(by);
    }
}

/// Runs the steps of each case in `cases` that the tier can run. `open` makes what they are on; `step` is one of them.
fn run_cases<T: Tier, Scene>(
    _: &T,
    cases: &Value,
    open: impl Fn(&World, &Value) -> Scene,
    step: impl Fn(&World, &mut Scene, &Value),
) {
    for case in list(cases) {
        let tier = T::new();
        let (space, clock) = match tier.with_clock() {
            Some((space, clock)) => (space, Some(clock)),
            None if case["clock"] == true => continue,
            None => (tier.space(), None),
        };
        let world = World { space, clock };
        let mut scene = open(&world, case);
        for (i, given) in list(&case["steps"]).iter().enumerate() {
            println!("{}, step {i}", text(case, "name"));
            step(&world, &mut scene, given);
        }
    }
}

fn read(file: &str) -> Value {
    serde_json::from_str(file).unwrap()
}

fn list(value: &Value) -> &Vec<Value> {
    value
        .as_array()
        .unwrap_or_else(|| panic!("no list: {value}"))
}

fn text<'v>(step: &'v Value, field: &str) -> &'v str {
    step[field]
        .as_str()
        .unwrap_or_else(|| panic!("no `{field}` in {step}"))
}

/// A number, which is a text where a double could not hold it.
fn number(value: &Value) -> i128 {
    let text = match value {
        Value::String(text) => text.clone(),
        number => number.to_string(),
    };
    text.parse()
        .unwrap_or_else(|_| panic!("no number: {value}"))
}

fn unsigned(value: &Value) -> u64 {
    u64::try_from(number(value)).unwrap()
}

fn milliseconds(step: &Value, field: &str) -> Option<Duration> {
    step.get(field)
        .map(|value| Duration::from_millis(unsigned(value)))
}

/// The word for what a call came to, and what it gave.
fn outcome<T>(result: sprag::Result<T>) -> (&'static str, Option<T>) {
    let error = match result {
        Ok(value) => return ("ok", Some(value)),
        Err(error) => error,
    };
    let word = match &error {
        Error::Lost { .. } | Error::AttemptLost { .. } => "lost",
        Error::Stale { .. } => "stale",
        Error::Duration { .. }
        | Error::Engine(
            EngineError::OutOfRange { .. }
            | EngineError::NameLength { .. }
            | EngineError::NoBounds { .. },
        ) => "out_of_range",
        Error::OwnerShares { .. } => "owner_shares",
        Error::Engine(EngineError::AboveCapacity { .. }) => "above_capacity",
        Error::Engine(EngineError::CounterOverflow { .. }) => "overflow",
        Error::Engine(
            EngineError::CapacityDiffers { .. } | EngineError::ConcurrencyDiffers { .. },
        ) => "differs",
        _ => panic!("{error}"),
    };
    (word, None)
}

// property 1, property 2, property 3, property 5, property 8, property 10
pub(crate) fn the_shared_cases_of_locks_hold<T: Tier>(tier: &T) {
    run_cases(tier, &read(LOCKS)["cases"], holds::open, holds::step);
}

// property 1, property 3, property 5, property 8, property 12
pub(crate) fn the_shared_cases_of_semaphores_hold<T: Tier>(tier: &T) {
    run_cases(tier, &read(SEMAPHORES)["cases"], holds::open, holds::step);
}

// property 8
pub(crate) fn the_shared_cases_of_counters_hold<T: Tier>(tier: &T) {
    run_cases(tier, &read(COUNTERS)["cases"], |_, _| (), counts::step);
}

// property 3, property 8
pub(crate) fn the_shared_cases_of_onces_hold<T: Tier>(tier: &T) {
    run_cases(tier, &read(ONCES)["cases"], onces::open, onces::step);
}

// property 8, property 9, property 12
pub(crate) fn the_shared_cases_of_limiters_hold<T: Tier>(tier: &T) {
    let file = read(LIMITERS);
    for limit in list(&file["limits"]) {
        match Limit::parse(text(limit, "text")) {
            Ok(parsed) => assert_eq!(parsed.to_string(), text(limit, "is"), "{limit}"),
            Err(error) => assert_eq!(limit["error"], true, "{limit}: {error}"),
        }
    }
    run_cases(tier, &file["cases"], limits::open, limits::step);
}

// property 10, property 12
pub(crate) fn the_shared_cases_of_several_limits_hold<T: Tier>(tier: &T) {
    let file = read(SEVERAL_LIMITS);
    run_cases(tier, &file["joint"], limits::open_joint, limits::joint_step);
    run_cases(
        tier,
        &file["check_all"],
        limits::open_several,
        limits::several_step,
    );
}
