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
    // Since boot, so neither is negative.
    let part = |part: Option<u64>| part.unwrap_or_default();
    part(time.tv_sec.try_into().ok()) * 1_000_000_000 + part(time.tv_nsec.try_into().ok())
}

/// Nanoseconds since this process first asked: elsewhere there are threads only, which agree on it.
#[cfg(not(unix))]
pub(crate) fn boot_ns() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;

    static FIRST: OnceLock<Instant> = OnceLock::new();
    crate::span::nanoseconds(FIRST.get_or_init(Instant::now).elapsed())
}
