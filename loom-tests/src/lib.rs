//! What the models of this crate share. Each model is a test under `tests/models/`; run them with
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test --profile models -p sprag-loom-tests --target-dir target/loom
//! ```
//!
//! There is no protocol code here: the models drive the engine itself, compiled with `--cfg loom`,
//! through every interleaving of a few threads and every value that the memory model lets a load
//! return, up to a bound on preemptions (3; `LOOM_MAX_PREEMPTIONS` raises it).
#![cfg(loom)]

use sprag_core::region::{Birth, Caps, Region};
use sprag_core::session::Process;
use sprag_core::sync::modelled::{self, Stage};
use sprag_core::{Engine, SessionId};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Preemptions that every model explores, but for those that say otherwise.
const PREEMPTIONS: usize = 3;

/// The smallest region that a model can use: two blocks of two cells.
pub const CAPS: Caps = Caps {
    objects: 2,
    limiter_keys: 1,
    joint_keys: 1,
    sessions: 2,
    waiters: 2,
    permits: 2,
    key_chunks: 1,
};

/// One millisecond in nanoseconds, the unit in which the models tell time.
pub const MS: u64 = 1_000_000;

/// A model to be checked.
#[must_use]
pub struct Model {
    name: &'static str,
    threads: usize,
    fewer: usize,
}

/// A model of two threads, the main one included.
pub fn model(name: &'static str) -> Model {
    Model {
        name,
        threads: 2,
        fewer: 0,
    }
}

impl Model {
    /// The same with another number of threads, the main one included.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// The same with one preemption less: where two call each other off until one of them gets through, each
    /// preemption more costs a hundred times as many executions.
    pub fn with_fewer_preemptions(self) -> Self {
        Self { fewer: 1, ..self }
    }

    /// Runs `body` through every execution within the bounds, and says how many there were.
    pub fn check(self, body: impl Fn() + Send + Sync + 'static) {
        modelled::set_threads(self.threads);
        let mut builder = loom::model::Builder::new();
        // The environment may only raise the bound.
        let asked = builder.preemption_bound.unwrap_or(PREEMPTIONS);
        builder.preemption_bound = Some(asked.max(PREEMPTIONS) - self.fewer);
        builder.max_branches = 2_000;
        let executions = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&executions);
        let started = Instant::now();
        builder.check(move || {
            modelled::set_stage(Stage::Before);
            count.fetch_add(1, Ordering::Relaxed);
            body();
        });
        let executions = executions.load(Ordering::Relaxed);
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "loom: {} {executions} executions in {seconds:.1} s",
            self.name
        );
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
    engine: &Engine,
    this: impl FnOnce() -> A,
    other: impl FnOnce() -> B + 'static,
) -> (A, B) {
    at_once(engine, || {
        let thread = loom::thread::spawn(other);
        let a = this();
        (a, thread.join().unwrap())
    })
}

/// [`both`] with a third thread.
///
/// # Panics
///
/// If another thread does.
pub fn three<A, B: 'static, C: 'static>(
    engine: &Engine,
    this: impl FnOnce() -> A,
    other: impl FnOnce() -> B + 'static,
    third: impl FnOnce() -> C + 'static,
) -> (A, B, C) {
    at_once(engine, || {
        let threads = (loom::thread::spawn(other), loom::thread::spawn(third));
        let a = this();
        (a, threads.0.join().unwrap(), threads.1.join().unwrap())
    })
}

/// [`both`] where the other thread starts in the middle of what this one does: before the first of its
/// accesses at which `is_time`.
///
/// # Panics
///
/// If the other thread does, or if it is never time.
pub fn both_from<A, B: 'static>(
    engine: &Arc<Engine>,
    mut is_time: impl FnMut(&Engine) -> bool + 'static,
    this: impl FnOnce() -> A,
    other: impl FnOnce() -> B + 'static,
) -> (A, B) {
    let thread = Rc::new(Cell::new(None));
    let (engine, started, mut other) = (Arc::clone(engine), Rc::clone(&thread), Some(other));
    modelled::watch(move || {
        let is_time = is_time(&engine);
        if is_time {
            engine.region().share();
            modelled::set_stage(Stage::During);
            started.set(other.take().map(loom::thread::spawn));
        }
        is_time
    });
    let a = this();
    let thread = thread
        .take()
        .expect("a time at which the other thread starts");
    let b = thread.join().unwrap();
    modelled::set_stage(Stage::After);
    (a, b)
}

/// The part of a model that has interleavings.
fn at_once<R>(engine: &Engine, run: impl FnOnce() -> R) -> R {
    engine.region().share();
    modelled::set_stage(Stage::During);
    let result = run();
    modelled::set_stage(Stage::After);
    result
}
