//! Every atomic of the engine comes through here, so that one place can be swapped or hooked.
//!
//! Three builds share one surface:
//! - the ordinary build: thin wrappers, all inlined away;
//! - `--cfg loom`: the same words made of loom's atomics, so that models explore interleavings;
//! - feature `steps`: each access is counted and a test may stop or kill the process at one of them.
//!
//! This file never decides an ordering: callers pass it and argue it.

use core::sync::atomic::Ordering;

#[cfg(feature = "steps")]
pub mod steps;
#[cfg(loom)]
pub mod turns;
#[cfg(not(loom))]
mod wide;

#[cfg(not(loom))]
use core::sync::atomic as raw;
#[cfg(loom)]
use loom::sync::atomic as raw;

/// Marks one atomic step for the crash and stop tests; nothing in ordinary builds.
#[inline(always)]
fn step() {
    #[cfg(feature = "steps")]
    steps::step();
}

/// A memory fence; see [`core::sync::atomic::fence`].
#[inline(always)]
pub(crate) fn fence(order: Ordering) {
    step();
    raw::fence(order);
}

macro_rules! word {
    ($(#[$doc:meta])* $name:ident, $raw:ident, $int:ty) => {
        $(#[$doc])*
        #[cfg_attr(not(loom), repr(transparent))]
        pub struct $name {
            raw: raw::$raw,
            #[cfg(loom)]
            turns: turns::Turns,
        }

        // Not every width uses every operation.
        #[allow(dead_code)]
        impl $name {
            #[cfg(loom)]
            pub(crate) fn new(value: $int) -> Self {
                Self { raw: raw::$raw::new(value), turns: turns::Turns::new() }
            }

            /// Loads from the atomic by `act`.
            #[inline(always)]
            fn loading<R>(&self, act: impl FnOnce(&raw::$raw) -> R) -> R {
                step();
                #[cfg(loom)]
                self.turns.before_load();
                act(&self.raw)
            }

            /// Stores to the atomic, or exchanges it, by `act`.
            #[inline(always)]
            fn storing<R>(&self, act: impl FnOnce(&raw::$raw) -> R) -> R {
                step();
                #[cfg(loom)]
                return self.turns.store(|| act(&self.raw));
                #[cfg(not(loom))]
                act(&self.raw)
            }

            #[inline(always)]
            pub(crate) fn load(&self, order: Ordering) -> $int {
                self.loading(|raw| raw.load(order))
            }

            #[inline(always)]
            pub(crate) fn store(&self, value: $int, order: Ordering) {
                self.storing(|raw| raw.store(value, order));
            }

            #[inline(always)]
            pub(crate) fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                self.storing(|raw| raw.compare_exchange(current, new, success, failure))
            }

            #[inline(always)]
            pub(crate) fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                self.storing(|raw| raw.fetch_add(value, order))
            }

            #[inline(always)]
            pub(crate) fn fetch_max(&self, value: $int, order: Ordering) -> $int {
                self.storing(|raw| raw.fetch_max(value, order))
            }

            #[inline(always)]
            pub(crate) fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                self.storing(|raw| raw.fetch_or(value, order))
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

impl Half {
    /// The bare atomic, to park on or to wake.
    pub fn as_atomic(&self) -> &raw::AtomicU32 {
        &self.raw
    }

    /// Its value now (acquire).
    #[inline(always)]
    pub fn get(&self) -> u32 {
        self.load(Ordering::Acquire)
    }

    /// Adds one (release), for those who sleep on the value.
    #[inline]
    pub fn raise(&self) {
        self.fetch_add(1, Ordering::Release);
    }
}

/// A 128-bit state word of a region, 16-byte aligned.
///
/// Loads are acquire and exchanges are acquire-release: every use of a state word is one or the
/// other, so no weaker form is offered.
#[cfg(not(loom))]
#[repr(C, align(16))]
pub struct Wide(wide::Atomic);

#[cfg(not(loom))]
impl Wide {
    /// Reads the word in one piece (acquire).
    #[inline(always)]
    pub(crate) fn load(&self) -> u128 {
        step();
        self.0.load()
    }

    /// Replaces `current` by `new` (acquire-release), or says what is there instead (acquire).
    #[inline(always)]
    pub(crate) fn compare_exchange(&self, current: u128, new: u128) -> Result<(), u128> {
        step();
        self.0.compare_exchange(current, new)
    }
}

/// Whether this processor can read and exchange 128 bits in one piece.
#[cfg(not(loom))]
pub(crate) fn wide_is_supported() -> bool {
    wide::is_supported()
}

/// loom has no 128-bit atomic: one of 64 bits stands in, which holds the number of a value.
///
/// Equal values have equal numbers, so an exchange succeeds exactly when the real one would, and the
/// orderings are the real ones. A mutex would order a load before all that follows it, and so hide
/// the store-load races that the fences are there for.
#[cfg(loom)]
pub struct Wide {
    number: raw::AtomicU64,
    turns: turns::Turns,
    /// The values seen so far, by number. Not a modelled mutex: numbering is no step of the protocol.
    values: std::sync::Mutex<Vec<u128>>,
}

#[cfg(loom)]
impl Wide {
    pub(crate) fn new(value: u128) -> Self {
        Self {
            number: raw::AtomicU64::new(0),
            turns: turns::Turns::new(),
            values: std::sync::Mutex::new(vec![value]),
        }
    }

    pub(crate) fn load(&self) -> u128 {
        self.turns.before_load();
        self.value(self.number.load(Ordering::Acquire))
    }

    pub(crate) fn compare_exchange(&self, current: u128, new: u128) -> Result<(), u128> {
        let (current, new) = (self.number(current), self.number(new));
        let exchange = || {
            self.number
                .compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
        };
        self.turns
            .store(exchange)
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

/// Hints that the line holding `word` will be read soon. Costs an instruction, touches nothing.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn prefetch(word: &Wide) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no architectural effect at any address; this one is a live reference.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(
            core::ptr::from_ref(word).cast(),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}

#[cfg(loom)]
pub(crate) fn prefetch(_: &Wide) {}
