//! What the models of this crate share. Each model is a test under `tests/`; run them with
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test --release -p sprag-loom-tests --target-dir target/loom
//! ```
//!
//! There is no protocol code here: the models drive the engine itself, compiled with `--cfg loom`,
//! through every interleaving of a few threads and every value that the memory model lets a load
//! return, up to a bound on preemptions (3; `LOOM_MAX_PREEMPTIONS` raises it).
#![cfg(loom)]

use sprag_core::region::{Birth, Caps, Region};
use sprag_core::session::Process;
use sprag_core::{Engine, SessionId};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Preemptions that every model explores.
const PREEMPTIONS: usize = 3;

/// The smallest region that a model can use: two blocks of two cells.
pub const CAPS: Caps = Caps {
    objects: 2,
    limiter_keys: 1,
    sessions: 2,
    waiters: 2,
    key_chunks: 1,
};

/// One millisecond in nanoseconds, the unit in which the models tell time.
pub const MS: u64 = 1_000_000;

/// A model to be checked.
#[must_use]
pub struct Model {
    name: &'static str,
    threads: usize,
    preemptions: usize,
}

/// A model of two threads, the main one included.
pub fn model(name: &'static str) -> Model {
    Model {
        name,
        threads: 2,
        preemptions: PREEMPTIONS,
    }
}

impl Model {
    /// The same with another number of threads, the main one included.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// The same with fewer preemptions, for a model that would take too long.
    pub fn preemptions(self, preemptions: usize) -> Self {
        Self {
            preemptions,
            ..self
        }
    }

    /// Runs `body` through every execution within the bounds, and says how many there were.
    pub fn check(self, body: impl Fn() + Send + Sync + 'static) {
        sprag_core::sync::turns::set_threads(self.threads);
        let mut builder = loom::model::Builder::new();
        // The environment may only raise the default: each preemption more takes many times as long.
        let asked = builder.preemption_bound.unwrap_or(PREEMPTIONS);
        builder.preemption_bound = Some(self.preemptions + asked.saturating_sub(PREEMPTIONS));
        // Making a region is hundreds of steps of one thread: no branches, but they count as such.
        builder.max_branches = 20_000;
        let executions = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&executions);
        builder.check(move || {
            count.fetch_add(1, Ordering::Relaxed);
            body();
        });
        let executions = executions.load(Ordering::Relaxed);
        println!("loom: {} {executions} executions", self.name);
    }
}

/// An engine over a fresh region, with a session for each of two threads.
///
/// # Panics
///
/// If the caps leave no room for two sessions.
pub fn engine(caps: Caps) -> (Arc<Engine>, [SessionId; 2]) {
    let birth = Birth {
        hash_seed: 1,
        unix_ns: 0,
        boot_ns: 0,
        boot_id: [0; 2],
        floor: 0,
    };
    let engine = Engine::local(Region::anonymous(caps, birth).unwrap());
    let open = || engine.open_session(Process::default(), 0).unwrap();
    let sessions = [open(), open()];
    (Arc::new(engine), sessions)
}

/// Runs `other` on a thread of its own and `this` on the calling one; returns what both returned.
///
/// # Panics
///
/// If the other thread does.
pub fn both<A, B: 'static>(
    this: impl FnOnce() -> A,
    other: impl FnOnce() -> B + 'static,
) -> (A, B) {
    let thread = loom::thread::spawn(other);
    let a = this();
    (a, thread.join().unwrap())
}
