//! The kernel's boot clock, which leases run by: owns the reading of it.

/// Nanoseconds since boot, suspend included; the same for every process of the host.
#[cfg(unix)]
pub(crate) fn boot_ns() -> u64 {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one timespec. It can't fail: the clock exists, since a space has read it.
    unsafe { libc::clock_gettime(CLOCK, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
