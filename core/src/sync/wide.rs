//! The 128-bit atomic behind [`super::Wide`].
//!
//! On x86-64 it is `cmpxchg16b` and a 16-byte aligned vector load, which Intel and AMD guarantee to
//! be one access on every processor with AVX (Intel SDM vol. 3A section 9.1.1; AMD64 APM vol. 2
//! section 7.3.2). A library crate does the same behind run-time dispatch, which measured 4 ns more
//! per access than the instruction itself: half of an uncontended lock. [`is_supported`] is asked
//! once, when a region is opened. Elsewhere the library crate serves.

#[cfg(target_arch = "x86_64")]
mod arch {
    use core::arch::asm;
    use core::cell::UnsafeCell;

    #[repr(C, align(16))]
    pub(crate) struct Atomic(UnsafeCell<u128>);

    // SAFETY: every access below is one atomic instruction, so sharing between threads is sound.
    unsafe impl Sync for Atomic {}

    impl Atomic {
        #[inline(always)]
        pub(crate) fn load(&self) -> u128 {
            let low: u64;
            let high: u64;
            // SAFETY: `self` is 16-byte aligned by its type and valid for reads; with AVX (asked
            // for by `is_supported` before a region is opened) the load is a single access. x86
            // loads have acquire order, and the asm block's memory clobber keeps the compiler from
            // moving later accesses above it.
            unsafe {
                asm!(
                    "movdqa {v}, xmmword ptr [{p}]",
                    "movq {low}, {v}",
                    "punpckhqdq {v}, {v}",
                    "movq {high}, {v}",
                    p = in(reg) self.0.get(),
                    v = out(xmm_reg) _,
                    low = out(reg) low,
                    high = lateout(reg) high,
                    options(nostack, preserves_flags),
                );
            }
            u128::from(high) << 64 | u128::from(low)
        }

        /// The low half alone.
        #[inline(always)]
        pub(crate) fn load_low(&self) -> u64 {
            let low: u64;
            // SAFETY: `self` is aligned and valid for reads; an aligned load of eight bytes is one access, of
            // what one exchange left there. Ordering as in `load`.
            unsafe {
                asm!(
                    "mov {low}, qword ptr [{p}]",
                    p = in(reg) self.0.get(),
                    low = lateout(reg) low,
                    options(nostack, preserves_flags),
                );
            }
            low
        }

        #[inline(always)]
        pub(crate) fn load_in_halves(&self) -> u128 {
            let low: u64;
            let high: u64;
            // SAFETY: as in `load`; each half is aligned, so each read of one is a single access.
            unsafe {
                asm!(
                    "mov {low}, qword ptr [{p}]",
                    "mov {high}, qword ptr [{p} + 8]",
                    p = in(reg) self.0.get(),
                    low = out(reg) low,
                    high = lateout(reg) high,
                    options(nostack, preserves_flags),
                );
            }
            u128::from(high) << 64 | u128::from(low)
        }

        #[inline(always)]
        pub(crate) fn compare_exchange(&self, current: u128, new: u128) -> Result<(), u128> {
            let found_low: u64;
            let found_high: u64;
            let equal: u64;
            // SAFETY: `self` is 16-byte aligned by its type and valid for reads and writes. rbx is
            // LLVM's own and cannot be an operand, so it is swapped in and out around the
            // instruction; every other operand is pinned, since the compiler may choose rbx for one
            // that is not. A locked instruction is a full barrier, and the memory clobber holds the
            // compiler to it.
            unsafe {
                asm!(
                    "xchg rsi, rbx",
                    "lock cmpxchg16b xmmword ptr [rdi]",
                    "mov rbx, rsi",
                    "sete cl",
                    "movzx ecx, cl",
                    in("rdi") self.0.get(),
                    inout("rsi") new as u64 => _,
                    inout("rcx") (new >> 64) as u64 => equal,
                    inout("rax") current as u64 => found_low,
                    inout("rdx") (current >> 64) as u64 => found_high,
                    options(nostack),
                );
            }
            if equal != 0 {
                Ok(())
            } else {
                Err(u128::from(found_high) << 64 | u128::from(found_low))
            }
        }
    }

    pub(crate) fn is_supported() -> bool {
        std::arch::is_x86_feature_detected!("cmpxchg16b")
            && std::arch::is_x86_feature_detected!("avx")
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod arch {
    use core::sync::atomic::Ordering::{AcqRel, Acquire};

    #[repr(transparent)]
    pub(crate) struct Atomic(portable_atomic::AtomicU128);

    impl Atomic {
        #[inline(always)]
        pub(crate) fn load(&self) -> u128 {
            self.0.load(Acquire)
        }

        #[inline(always)]
        pub(crate) fn load_low(&self) -> u64 {
            self.load() as u64
        }

        #[inline(always)]
        pub(crate) fn load_in_halves(&self) -> u128 {
            self.load()
        }

        #[inline(always)]
        pub(crate) fn compare_exchange(&self, current: u128, new: u128) -> Result<(), u128> {
            self.0
                .compare_exchange(current, new, AcqRel, Acquire)
                .map(drop)
        }
    }

    pub(crate) fn is_supported() -> bool {
        portable_atomic::AtomicU128::is_lock_free()
    }
}

pub(crate) use arch::{Atomic, is_supported};
