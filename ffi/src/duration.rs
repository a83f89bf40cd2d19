//! # Durations
//!
//! Durations and times are in nanoseconds, and their names end in _ns. A timeout is how long a call waits at most:
//! 0 to try, SPRAG_FOREVER without an end. A ttl is how long a lease lasts that nobody renews, or an attempt may
//! take: 1 ms to 366 days.

use std::time::Duration;

/// Nanoseconds in a millisecond, as in 5 * SPRAG_MILLISECOND.
pub const SPRAG_MILLISECOND: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SPRAG_SECOND: u64 = 1_000_000_000;
/// A timeout that never ends.
pub const SPRAG_FOREVER: u64 = u64::MAX;
/// A wait that never ends, where a call tells how long to wait.
pub const SPRAG_NEVER: u64 = u64::MAX;
/// A time that is not known.
pub const SPRAG_UNKNOWN: u64 = u64::MAX;

/// A duration as C has it; one of centuries is the longest.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// How long to wait.
pub(crate) fn wait_ns(wait: Option<Duration>) -> u64 {
    wait.map_or(SPRAG_NEVER, nanoseconds)
}

/// The lease that was asked for: 0 is the default.
pub(crate) fn lease(ttl_ns: u64) -> Option<Duration> {
    (ttl_ns != 0).then(|| Duration::from_nanos(ttl_ns))
}
