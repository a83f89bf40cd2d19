//! The time-stamp counter, and whether it may be used.

use std::sync::atomic::{AtomicU8, Ordering};

pub(super) use instruction::{serialised_ticks, ticks};

const COUNTER_UNKNOWN: u8 = 0;
const COUNTER_USABLE: u8 = 1;
const COUNTER_UNUSABLE: u8 = 2;

/// Relaxed wherever it is used: whoever finds it unknown finds out the same thing.
static COUNTER: AtomicU8 = AtomicU8::new(COUNTER_UNKNOWN);

/// Whether the kernel keeps time by the counter, so that we may too.
pub(crate) fn is_usable() -> bool {
    match COUNTER.load(Ordering::Relaxed) {
        COUNTER_UNKNOWN => recheck(),
        known => known == COUNTER_USABLE,
    }
}

pub(super) fn recheck() -> bool {
    let is_ours_too = instruction::is_invariant_and_allowed() && instruction::is_the_kernels_own();
    let known = if is_ours_too {
        COUNTER_USABLE
    } else {
        COUNTER_UNUSABLE
    };
    COUNTER.store(known, Ordering::Relaxed);
    is_ours_too
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod instruction {
    use crate::host::procfs;
    use std::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};

    /// Unserialised: see the clock module for why that is enough.
    #[inline(always)]
    pub(crate) fn ticks() -> u64 {
        // SAFETY: every x86-64 processor has the instruction, and `is_invariant_and_allowed` found
        // that this process may use it before any anchor became valid.
        unsafe { _rdtsc() }
    }

    /// After everything before it in program order and before everything after.
    pub(crate) fn serialised_ticks() -> u64 {
        // SAFETY: as for `ticks`; lfence is part of every x86-64 processor and touches nothing.
        unsafe {
            _mm_lfence();
            let ticks = _rdtsc();
            _mm_lfence();
            ticks
        }
    }

    /// The processor promises a constant rate in every power state, and the process wasn't forbidden to look.
    pub(super) fn is_invariant_and_allowed() -> bool {
        const POWER_MANAGEMENT: u32 = 0x8000_0007;
        const INVARIANT_COUNTER: u32 = 1 << 8;
        let mut permission: libc::c_int = 0;
        // SAFETY: PR_GET_TSC writes one int to the pointer it is given.
        let asked = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut permission) };
        asked == 0
            && permission == libc::PR_TSC_ENABLE
            && __cpuid(0x8000_0000).eax >= POWER_MANAGEMENT
            && __cpuid(POWER_MANAGEMENT).edx & INVARIANT_COUNTER != 0
    }

    /// The kernel checks the counter against other clocks and across processors for as long as it runs; where it
    /// gave up on it, or keeps time by a hypervisor's page, so do we.
    pub(super) fn is_the_kernels_own() -> bool {
        let mut buffer = [0; 32];
        procfs::read(
            c"/sys/devices/system/clocksource/clocksource0/current_clocksource",
            &mut buffer,
        )
        .is_some_and(|source| source.trim_ascii() == b"tsc")
    }
}

/// On aarch64 the kernel's own clock call reads the architected counter without entering the kernel.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod instruction {
    #[inline(always)]
    pub(crate) fn ticks() -> u64 {
        0
    }

    pub(crate) fn serialised_ticks() -> u64 {
        0
    }

    pub(super) fn is_invariant_and_allowed() -> bool {
        false
    }

    pub(super) fn is_the_kernels_own() -> bool {
        false
    }
}
