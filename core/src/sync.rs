//! Every atomic of the engine comes through here, so that one place can be swapped or hooked.
//!
//! Three builds share one surface:
//! - the ordinary build: thin wrappers, all inlined away;
//! - `--cfg loom`: the same words made of loom's atomics, so that models explore interleavings;
//! - feature `steps`: each access is counted and a test may stop or kill the process at one of them.
//!
//! This file never decides an ordering: callers pass it and argue it.

use core::sync::atomic::Ordering;

#[cfg(loom)]
pub mod modelled;
#[cfg(feature = "steps")]
pub mod steps;
#[cfg(not(loom))]
mod wide;

#[cfg(loom)]
pub use modelled::{Half, Wide, Word};
#[cfg(loom)]
pub(crate) use modelled::{fence, prefetch};

#[cfg(not(loom))]
use core::sync::atomic as raw;

/// Marks one atomic step for the crash and stop tests; nothing in ordinary builds.
#[cfg(not(loom))]
#[inline(always)]
fn step() {
    #[cfg(feature = "steps")]
    steps::step();
}

/// A memory fence; see [`core::sync::atomic::fence`].
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn fence(order: Ordering) {
    step();
    raw::fence(order);
}

/// A fence (sequentially consistent) between an exchange of a [`Wide`] and what is read after it.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn fence_after_exchange() {
    // On x86-64 a locked exchange is a full barrier (Intel SDM vol. 3A section 9.2.3.9, AMD64 APM vol. 2 section
    // 7.4.2), and it and a load of such a word are each a block of assembly that the compiler may not
    // move memory accesses across.
    if cfg!(not(target_arch = "x86_64")) {
        fence(Ordering::SeqCst);
    }
}

/// A fence (sequentially consistent) between an exchange of a [`Wide`] and what is read after it.
#[cfg(loom)]
pub(crate) fn fence_after_exchange() {
    fence(Ordering::SeqCst);
}

#[cfg(not(loom))]
macro_rules! word {
    ($(#[$doc:meta])* $name:ident, $raw:ident, $int:ty) => {
        $(#[$doc])*
        #[repr(transparent)]
        pub struct $name(raw::$raw);

        // Not every width uses every operation.
        #[allow(dead_code)]
        impl $name {
            #[inline(always)]
            pub(crate) fn load(&self, order: Ordering) -> $int {
                step();
                self.0.load(order)
            }

            #[inline(always)]
            pub(crate) fn store(&self, value: $int, order: Ordering) {
                step();
                self.0.store(value, order);
            }

            #[inline(always)]
            pub(crate) fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                step();
                self.0.compare_exchange(current, new, success, failure)
            }

            #[inline(always)]
            pub(crate) fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                step();
                self.0.fetch_add(value, order)
            }

            #[inline(always)]
            pub(crate) fn fetch_max(&self, value: $int, order: Ordering) -> $int {
                step();
                self.0.fetch_max(value, order)
            }

            #[inline(always)]
            pub(crate) fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                step();
                self.0.fetch_or(value, order)
            }
        }
    };
}

#[cfg(not(loom))]
word!(
    /// A 64-bit word of a region.
    Word, AtomicU64, u64
);
#[cfg(not(loom))]
word!(
    /// A 32-bit word of a region; the kind a thread can park on.
    Half, AtomicU32, u32
);

impl Half {
    /// The bare atomic, to park on or to wake.
    #[cfg(not(loom))]
    pub fn as_atomic(&self) -> &raw::AtomicU32 {
        &self.0
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

    /// Reads the low half of the word alone (acquire).
    #[inline(always)]
    pub(crate) fn load_low(&self) -> u64 {
        step();
        self.0.load_low()
    }

    /// Reads the word in two pieces, which may be of different times (acquire, each): for who then exchanges it,
    /// which fails if they are. A nanosecond less than [`load`](Self::load) where the word was exchanged just
    /// before.
    #[inline(always)]
    pub(crate) fn load_in_halves(&self) -> u128 {
        step();
        self.0.load_in_halves()
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
