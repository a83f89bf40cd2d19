//! The rows: which case against whom, and the budget of each.

use crate::Plan;
use crate::c_calls::{self, Call};
use crate::contest::{self, Outcome};
use crate::{log, redis, resident, sleeper};
use sprag_benches::case::Work;
use sprag_benches::consensus;
use sprag_benches::ours::{self, Reach};
use sprag_benches::peers::{self, Peer};
use sprag_benches::{Case, Result};
use std::fmt;

/// The most that ours may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Budget {
    /// The peer's, times this.
    Times(f64),
    /// The peer's, and this more.
    Plus(f64),
}

impl Budget {
    /// Whether ours keeps the promise.
    pub(crate) fn is_met(self, ours: f64, peer: f64) -> bool {
        match self {
            Self::Times(times) => ours / peer <= times,
            Self::Plus(more) => ours - peer <= more,
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(times) => times.fmt(formatter),
            Self::Plus(more) => write!(formatter, "+ {more} ns"),
        }
    }
}

/// One row of the table.
pub(crate) struct Row {
    pub(crate) case: String,
    pub(crate) peer: &'static str,
    /// What keeps the promise.
    pub(crate) budget: Budget,
    /// What is measured.
    pub(crate) unit: &'static str,
    measure: Box<dyn Fn(Plan) -> Result<Outcome>>,
}

impl Row {
    /// Whether the case or the peer contains `text`.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let row = format!("{} | {}", self.case, self.peer).to_lowercase();
        row.contains(&text.to_lowercase())
    }

    pub(crate) fn measure(&self, plan: Plan) -> Result<Outcome> {
        (self.measure)(plan)
    }

    fn against(case: Case, peer: Peer, budget: f64) -> Self {
        Self {
            case: case.name.to_owned(),
            peer: peer.name(),
            budget: Budget::Times(budget),
            unit: "ns",
            measure: Box::new(move |plan| {
                let ours = ours::side(&case, Reach::Memory, plan.effort)?;
                let peer = peers::side(&case, peer, plan.effort)?;
                contest::between(&ours, &peer, plan)
            }),
        }
    }

    fn shared_against_memory(case: Case) -> Self {
        Self {
            case: format!("{}, in shm:", case.name),
            peer: MEMORY,
            budget: Budget::Times(SHARED_BUDGET),
            unit: "ns",
            measure: Box::new(move |plan| {
                let shared = ours::side(&case, Reach::Shared, plan.effort)?;
                let memory = ours::side(&case, Reach::Memory, plan.effort)?;
                contest::between(&shared, &memory, plan)
            }),
        }
    }

    fn of(
        case: &str,
        peer: &'static str,
        budget: f64,
        unit: &'static str,
        measure: impl Fn(Plan) -> Result<Outcome> + 'static,
    ) -> Self {
        Self {
            case: case.to_owned(),
            peer,
            budget: Budget::Times(budget),
            unit,
            measure: Box::new(measure),
        }
    }
}

/// Every row, in the order of the table of budgets.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = DUELS
        .iter()
        .map(|&(case, peer, budget)| Row::against(case, peer, budget))
        .collect();
    rows.push(Row::of(
        "resident bytes per limiter key at 1,000,000",
        Peer::GovernorByDefault.name(),
        0.65,
        "bytes",
        resident::compare,
    ));
    rows.push(Row::of(
        HAND_OFF_ASLEEP,
        "futex wake to wake",
        1.3,
        "ns",
        |plan| sleeper::compare(Reach::Memory, plan),
    ));
    let mut seen = Vec::new();
    for (case, _, _) in DUELS {
        // A case with strings is the same case as one with bytes, once peers don't matter.
        if !case.is_text && !seen.contains(&case.name) {
            seen.push(case.name);
            rows.push(Row::shared_against_memory(*case));
        }
    }
    rows.push(Row::of(
        "hand-off to a sleeping thread, in shm:",
        MEMORY,
        SHARED_BUDGET,
        "ns",
        sleeper::compare_shared,
    ));
    rows.push(Row::of(
        "limiter check in shm:, against a server",
        "Redis, GCRA script, unix socket",
        0.001,
        "ns",
        redis::compare,
    ));
    rows.push(Row::of(
        "three replicas, instant network, no disk, batch 64 × 64 B, 1 thread",
        "VecDeque hand-over",
        20.0,
        "ns",
        |plan| {
            let replicas = consensus::replicas(plan.effort)?;
            contest::between(&replicas, &consensus::queue(plan.effort), plan)
        },
    ));
    for (case, call, calls) in C_CALLS {
        rows.push(Row {
            case: format!("{case}, called through C, bound handle"),
            peer: "the same from Rust",
            budget: Budget::Plus(5.0 * calls),
            unit: "ns",
            measure: Box::new(|plan| c_calls::compare(*call, plan)),
        });
    }
    rows.push(Row::of(
        "log append, group commit, 64 writers, 128 B",
        "64 threads, each write + fdatasync on its own preallocated file",
        1.0 / 8.0,
        "ns",
        log::compare_many,
    ));
    rows.push(Row::of(
        "log append, 1 writer, 128 B",
        "preallocated overwrite + fdatasync",
        1.3,
        "ns",
        log::compare_one,
    ));
    rows
}

/// The hot calls of the C ABI, and how many of them each case makes.
const C_CALLS: &[(&str, Call, f64)] = &[
    ("limiter check", Call::Check, 1.0),
    ("limiter check with its decision", Call::CheckTold, 1.0),
    ("lock + unlock, two calls", Call::Lock, 2.0),
    ("counter add", Call::Add, 1.0),
];

const MEMORY: &str = "the same in mem:";
const SHARED_BUDGET: f64 = 1.2;
const HAND_OFF_ASLEEP: &str = "hand-off to a sleeping thread";

const HOT_CHECK: Case = Case::hot("limiter check, 1 hot key, 1 thread", Work::Check);
const MILLION: u64 = 1_000_000;
/// Keys that are new, in all measurements together.
const NEW_KEYS: u64 = 1 << 16;
const MILLION_CHECKS: Case = Case::hot(
    "limiter check, 1,000,000 keys uniform, 1 thread",
    Work::Check,
)
.uniform(MILLION);
const HOT_LOCK: Case = Case::hot("lock + unlock, 1 hot key, 1 thread", Work::Lock);

/// Case, peer, budget.
const DUELS: &[(Case, Peer, f64)] = &[
    (HOT_CHECK, Peer::GovernorAtBest, 0.85),
    (HOT_CHECK.text(), Peer::GovernorByDefault, 0.48),
    (
        Case::hot("limiter check, 1 hot key, 2 threads", Work::Check).two_threads(),
        Peer::GovernorAtBest,
        0.30,
    ),
    (
        Case::hot("limiter check, 1,000 keys uniform, 2 threads", Work::Check)
            .uniform(1_000)
            .two_threads(),
        Peer::GovernorAtBest,
        0.22,
    ),
    (MILLION_CHECKS, Peer::GovernorAtBest, 0.80),
    (
        Case::hot(
            "limiter check, 1,000,000 keys uniform, 1 thread, in batches of 32",
            Work::CheckBatch,
        )
        .uniform(MILLION),
        Peer::GovernorAtBest,
        0.50,
    ),
    (MILLION_CHECKS.text(), Peer::GovernorByDefault, 0.20),
    (
        Case::hot(
            "limiter check, 1,000,000 keys zipf 0.99, 2 threads",
            Work::Check,
        )
        .zipf(MILLION)
        .two_threads(),
        Peer::GovernorAtBest,
        0.75,
    ),
    (
        Case::hot("limiter refusing, 1 hot key, 2 threads", Work::Refuse).two_threads(),
        Peer::GovernorAtBest,
        0.30,
    ),
    (
        Case::hot("two limits on one hot key in one call", Work::CheckTwo),
        Peer::GovernorsAtBest,
        0.60,
    ),
    (
        Case::hot(
            "two limits on one hot key in one call, one of them drained",
            Work::CheckTwoDrained,
        ),
        Peer::GovernorsAtBest,
        0.60,
    ),
    (HOT_LOCK, Peer::KeyedLock, 0.30),
    (HOT_LOCK, Peer::LockPool, 0.27),
    (
        Case::hot("lock + unlock, 1,000 keys uniform, 2 threads", Work::Lock)
            .uniform(1_000)
            .two_threads(),
        Peer::KeyedLock,
        0.12,
    ),
    (
        Case::hot(
            "lock + unlock, 1,000,000 keys uniform, 2 threads",
            Work::Lock,
        )
        .uniform(MILLION)
        .two_threads(),
        Peer::KeyedLock,
        0.55,
    ),
    (
        Case::hot("hand-off between two running threads, FIFO", Work::Lock).two_threads(),
        Peer::KeyedLock,
        2.0,
    ),
    (
        Case::hot("counter add by key, 1 thread", Work::Add),
        Peer::Map,
        2.5,
    ),
    (
        Case::hot(
            "counter add, bound handle, striped, 2 threads",
            Work::AddStriped,
        )
        .two_threads(),
        Peer::Lines,
        1.5,
    ),
    (
        Case::hot("once, new key, and same key again, 1 thread", Work::Once).uniform(NEW_KEYS),
        Peer::DashMap,
        1.2,
    ),
    (
        Case::hot(
            "once, key that is done, 1,000 keys uniform, 1 thread",
            Work::OnceAgain,
        )
        .uniform(1_000),
        Peer::DashMap,
        1.2,
    ),
];
