//! A clock whose hands a test moves: forward, or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Starts well above zero, so that a test notices code that mistakes an early time for "no time".
const START_BOOT_NS: u64 = 1_000_000_000_000;
/// 2026-01-01T00:00:00Z.
const START_UNIX_NS: u64 = 1_767_225_600_000_000_000;

/// A clock for tests: every copy shows the same time, and it moves only when told to.
///
/// ```
/// use sprag::{ManualClock, Space};
/// use std::time::Duration;
///
/// let hands = ManualClock::new();
/// let space = Space::builder().clock(&hands).open("mem:")?;
/// let hold = space.lock("a")?.ttl(Duration::from_secs(3))?.acquire()?;
/// assert!(hold.is_valid());
/// hands.advance(Duration::from_secs(3));
/// assert!(!hold.is_valid());
/// # Ok::<(), sprag::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    hands: Arc<Hands>,
}

#[derive(Debug)]
struct Hands {
    boot_ns: AtomicU64,
    /// What unix time showed when boot time was zero.
    unix_at_boot_ns: u64,
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl ManualClock {
    /// A clock at a fixed time: the same in every run.
    pub fn new() -> Self {
        Self::starting_at(START_BOOT_NS, START_UNIX_NS)
    }

    /// A clock that shows `boot_ns` of boot time and `unix_ns` of unix time until it is moved.
    pub fn starting_at(boot_ns: u64, unix_ns: u64) -> Self {
        Self {
            hands: Arc::new(Hands {
                boot_ns: AtomicU64::new(boot_ns),
                unix_at_boot_ns: unix_ns.saturating_sub(boot_ns),
            }),
        }
    }

    /// Moves the clock forward and returns the new boot time. Stops at the last nanosecond of a u64.
    pub fn advance(&self, by: Duration) -> u64 {
        let by_ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        // SeqCst here and below: a test that moves the clock and then acts expects every thread to
        // see the moves in the order it made them, with whatever else it did.
        self.hands
            .boot_ns
            .update(Ordering::SeqCst, Ordering::SeqCst, |now_ns| {
                now_ns.saturating_add(by_ns)
            })
            .saturating_add(by_ns)
    }

    /// Moves the clock to `boot_ns` unless it is past that already, and returns what it shows: it never goes back.
    pub fn set(&self, boot_ns: u64) -> u64 {
        self.hands
            .boot_ns
            .fetch_max(boot_ns, Ordering::SeqCst)
            .max(boot_ns)
    }

    /// Nanoseconds of boot time.
    pub fn now_ns(&self) -> u64 {
        self.hands.boot_ns.load(Ordering::SeqCst)
    }

    /// Nanoseconds of unix time; moves together with boot time.
    pub fn unix_ns(&self) -> u64 {
        self.hands.unix_at_boot_ns.saturating_add(self.now_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_forward_and_never_wraps() {
        let clock = ManualClock::starting_at(100, 1_100);
        let other_hand = clock.clone();
        assert_eq!((clock.now_ns(), clock.unix_ns()), (100, 1_100));
        assert_eq!(clock.advance(Duration::from_nanos(5)), 105);
        assert_eq!((other_hand.now_ns(), other_hand.unix_ns()), (105, 1_105));
        assert_eq!(clock.set(50), 105, "setting back changes nothing");
        assert_eq!(clock.now_ns(), 105);
        assert_eq!(clock.set(200), 200);
        assert_eq!(clock.now_ns(), 200);
        assert_eq!(clock.advance(Duration::MAX), u64::MAX);
        assert_eq!(clock.advance(Duration::from_secs(1)), u64::MAX);
        assert_eq!(clock.now_ns(), u64::MAX);
    }
}
