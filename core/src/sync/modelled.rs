//! The words of a model: for `--cfg loom` only.
//!
//! # Stages
//!
//! A model makes its scene, runs a few threads, and looks at what they left. Only the middle has
//! interleavings, so only there are words loom's: before it and after it a word is a plain number. That
//! leaves nothing out, since one thread alone sees just what it wrote, and makes an execution several
//! times as fast. [`Region::share`](crate::region::Region::share) makes loom's words of those that the
//! threads may touch; loom holds the making of an atomic for a plain write, which must come before them.
//!
//! # Turns
//!
//! loom runs a store (or exchange) before an earlier access of another thread only if that was the
//! *last* access of the word. So a thread that loads a word before it exchanges it hides every load
//! that others did before its own, and most of the engine's loops do just that. Here each word has,
//! for each thread of a model, one more atomic: a thread's load touches its own, a store those of
//! all others. Every touch is an exchange, so none hides another, and loads still do not depend on
//! loads. The touches are relaxed and add no ordering between threads.

use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed};
use loom::sync::atomic as shared;
use std::cell::Cell;
use std::sync::atomic as alone;
use std::sync::{Mutex, OnceLock};

/// Where a model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// One thread makes the scene.
    Before,
    /// Threads run.
    During,
    /// One thread looks at what they left.
    After,
}

type Look = Box<dyn FnMut() -> bool>;

std::thread_local! {
    // loom runs all threads of a model on the thread that checks it.
    static THREADS: Cell<usize> = const { Cell::new(2) };
    static STAGE: Cell<Stage> = const { Cell::new(Stage::Before) };
    static WATCH: Cell<Option<Look>> = const { Cell::new(None) };
}

/// Says how many threads the models checked by this thread have, the main one included.
pub fn set_threads(threads: usize) {
    THREADS.set(threads);
}

/// Says where the model checked by this thread is.
pub fn set_stage(stage: Stage) {
    STAGE.set(stage);
}

/// Has `look` called before each access of the scene's making, until it returns true: so that threads
/// can start in the middle of an operation.
pub fn watch(look: impl FnMut() -> bool + 'static) {
    WATCH.set(Some(Box::new(look)));
}

/// The stage of an access that is about to be made.
fn stage() -> Stage {
    // Taken out meanwhile: `look` may access words itself.
    if STAGE.get() == Stage::Before
        && let Some(mut look) = WATCH.take()
        && !look()
    {
        WATCH.set(Some(look));
    }
    STAGE.get()
}

/// A memory fence. One thread alone needs none.
pub(crate) fn fence(order: Ordering) {
    if STAGE.get() == Stage::During {
        shared::fence(order);
    }
}

/// One more atomic of a word for each thread of the model.
struct Turns(Vec<shared::AtomicU8>);

impl Turns {
    fn new() -> Self {
        let turn = |_| shared::AtomicU8::new(0);
        Self((0..THREADS.get()).map(turn).collect())
    }

    /// Makes a load of the word by `act`. Whoever finds the touch goes first at the load before it: the
    /// touch itself is no place to look for one.
    fn load<R>(&self, act: impl FnOnce() -> R) -> R {
        let result = act();
        loom::stop_exploring();
        self.0[this_thread()].fetch_add(0, Relaxed);
        loom::explore();
        result
    }

    /// Makes a store to the word, or an exchange of it, by `act`. Others have their chance to go first
    /// at the touches: the store itself is no place to look for one.
    fn store<R>(&self, act: impl FnOnce() -> R) -> R {
        let this = this_thread();
        for (thread, turn) in self.0.iter().enumerate() {
            if thread != this {
                turn.fetch_add(0, Relaxed);
            }
        }
        loom::stop_exploring();
        let result = act();
        loom::explore();
        result
    }
}

/// The number of the calling thread: 0 is the main one.
fn this_thread() -> usize {
    loom::thread_local! {
        static NUMBER: usize = {
            // The identifier's own text is the only way to its number.
            let id = format!("{:?}", loom::thread::current().id());
            id.chars().filter_map(|c| c.to_digit(10)).fold(0, |n, digit| n * 10 + digit as usize)
        };
    }
    NUMBER.with(|number| *number)
}

macro_rules! word {
    ($(#[$doc:meta])* $name:ident, $raw:ident, $int:ty) => {
        $(#[$doc])*
        pub struct $name {
            /// Its value before and after.
            alone: alone::$raw,
            /// Loom's word; `None` if threads use the plain one.
            shared: OnceLock<Option<(shared::$raw, Turns)>>,
            /// Whether `alone` holds what the threads left.
            is_settled: alone::AtomicBool,
        }

        // Not every width uses every operation.
        #[allow(dead_code)]
        impl $name {
            pub(crate) fn new(value: $int) -> Self {
                Self {
                    alone: alone::$raw::new(value),
                    shared: OnceLock::new(),
                    is_settled: alone::AtomicBool::new(false),
                }
            }

            /// Makes loom's word of it.
            pub(crate) fn share(&self) {
                let value = self.alone.load(Relaxed);
                self.shared.get_or_init(|| Some((shared::$raw::new(value), Turns::new())));
            }

            /// Leaves it plain: threads use it in the order in which they happen to run.
            pub(crate) fn leave(&self) {
                self.shared.get_or_init(|| None);
            }

            /// Loom's word while threads run; else `alone` is up to date.
            fn shared(&self) -> Option<&(shared::$raw, Turns)> {
                match stage() {
                    Stage::Before => None,
                    Stage::During => {
                        let shared = self.shared.get();
                        shared.expect("`Region::share` says of each word that threads use what it is").as_ref()
                    }
                    Stage::After => {
                        if let Some(Some((raw, _))) = self.shared.get()
                            && !self.is_settled.swap(true, Relaxed)
                        {
                            self.alone.store(raw.load(Relaxed), Relaxed);
                        }
                        None
                    }
                }
            }

            pub(crate) fn load(&self, order: Ordering) -> $int {
                match self.shared() {
                    None => self.alone.load(Relaxed),
                    Some((raw, turns)) => turns.load(|| raw.load(order)),
                }
            }

            pub(crate) fn store(&self, value: $int, order: Ordering) {
                match self.shared() {
                    None => self.alone.store(value, Relaxed),
                    Some((raw, turns)) => turns.store(|| raw.store(value, order)),
                }
            }

            pub(crate) fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                match self.shared() {
                    None => self.alone.compare_exchange(current, new, Relaxed, Relaxed),
                    Some((raw, turns)) => {
                        turns.store(|| raw.compare_exchange(current, new, success, failure))
                    }
                }
            }

            pub(crate) fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                match self.shared() {
                    None => self.alone.fetch_add(value, Relaxed),
                    Some((raw, turns)) => turns.store(|| raw.fetch_add(value, order)),
                }
            }

            pub(crate) fn fetch_max(&self, value: $int, order: Ordering) -> $int {
                match self.shared() {
                    None => self.alone.fetch_max(value, Relaxed),
                    Some((raw, turns)) => turns.store(|| raw.fetch_max(value, order)),
                }
            }

            pub(crate) fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                match self.shared() {
                    None => self.alone.fetch_or(value, Relaxed),
                    Some((raw, turns)) => turns.store(|| raw.fetch_or(value, order)),
                }
            }
        }
    };
}

word!(
    /// A 64-bit word of a region.
    Word, AtomicU64, u64
);
word!(
    /// A 32-bit word of a region; the kind a thread can park on.
    Half, AtomicU32, u32
);

/// loom has no 128-bit atomic: one of 64 bits stands in, which holds the number of a value.
///
/// Equal values have equal numbers, so an exchange succeeds exactly when the real one would, and the
/// orderings are the real ones. A mutex would order a load before all that follows it, and so hide
/// the store-load races that the fences are there for.
pub struct Wide {
    number: Word,
    /// The values seen so far, by number. Not a modelled mutex: numbering is no step of the protocol.
    values: Mutex<Vec<u128>>,
}

impl Wide {
    pub(crate) fn new(value: u128) -> Self {
        Self {
            number: Word::new(0),
            values: Mutex::new(vec![value]),
        }
    }

    /// Makes loom's word of it.
    pub(crate) fn share(&self) {
        self.number.share();
    }

    /// Leaves it plain: threads use it in the order in which they happen to run.
    pub(crate) fn leave(&self) {
        self.number.leave();
    }

    pub(crate) fn load(&self) -> u128 {
        self.value(self.number.load(Acquire))
    }

    pub(crate) fn load_low(&self) -> u64 {
        self.load() as u64
    }

    /// A model's word has no halves.
    pub(crate) fn load_in_halves(&self) -> u128 {
        self.load()
    }

    pub(crate) fn compare_exchange(&self, current: u128, new: u128) -> Result<(), u128> {
        let (current, new) = (self.number(current), self.number(new));
        self.number
            .compare_exchange(current, new, AcqRel, Acquire)
            .map(drop)
            .map_err(|found| self.value(found))
    }

    fn number(&self, value: u128) -> u64 {
        let mut values = self.values.lock().unwrap();
        let number = values.iter().position(|known| *known == value);
        number.unwrap_or_else(|| {
            values.push(value);
            values.len() - 1
        }) as u64
    }

    fn value(&self, number: u64) -> u128 {
        self.values.lock().unwrap()[number as usize]
    }
}

/// A hint of no meaning here.
pub(crate) fn prefetch(_: &Wide) {}
