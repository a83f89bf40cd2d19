//! Requests that come while others are under way gather, and are proposed together once those are decided: one slot, one
//! packet for each peer and one sync for each disk, instead of many. Who comes alone never waits; nor does who comes when
//! much has gathered, or when what is under way takes long, as it does between distant nodes.

use std::time::{Duration, Instant};

/// Bytes that don't wait for more.
const ENOUGH_BYTES: usize = 64 << 10;

/// How long the first waits, at most.
const WAIT: Duration = Duration::from_millis(1);

/// Those that wait, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Gathering<T> {
    gathered: Vec<T>,
    bytes: usize,
    since: Option<Instant>,
}

impl<T> Default for Gathering<T> {
    fn default() -> Self {
        Self {
            gathered: Vec::new(),
            bytes: 0,
            since: None,
        }
    }
}

impl<T> Gathering<T> {
    /// Adds one, of so many bytes.
    pub(crate) fn push(&mut self, request: T, bytes: usize) {
        self.bytes += bytes;
        self.gathered.push(request);
        self.since.get_or_insert_with(Instant::now);
    }

    /// Whether they are to be proposed now, where others are under way or not.
    pub(crate) fn is_due(&self, others_are_under_way: bool) -> bool {
        self.since.is_some_and(|since| {
            !others_are_under_way || self.bytes >= ENOUGH_BYTES || since.elapsed() >= WAIT
        })
    }

    /// When they are at the latest.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + WAIT)
    }

    /// Takes all, and keeps `emptied` for the next, so that gathering allocates nothing.
    pub(crate) fn take(&mut self, emptied: Vec<T>) -> Vec<T> {
        self.bytes = 0;
        self.since = None;
        std::mem::replace(&mut self.gathered, emptied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_alone_never_waits_and_who_comes_after_waits_for_those_before() {
        let mut gathering = Gathering::default();
        assert!(!gathering.is_due(false));
        assert_eq!(gathering.due(), None);
        gathering.push('a', 1);
        assert!(gathering.is_due(false));
        assert_eq!(gathering.take(Vec::new()), ['a']);
        assert!(!gathering.is_due(false));
        gathering.push('b', 1);
        gathering.push('c', 1);
        assert!(gathering.is_due(false));
        assert_eq!(gathering.take(Vec::new()), ['b', 'c']);
    }

    #[test]
    fn enough_bytes_don_t_wait() {
        let mut gathering = Gathering::default();
        gathering.push('a', ENOUGH_BYTES - 1);
        gathering.since = Some(Instant::now() + WAIT);
        assert!(!gathering.is_due(true));
        gathering.push('b', 1);
        assert!(gathering.is_due(true));
    }

    #[test]
    fn the_first_waits_no_longer_than_it_may() {
        let mut gathering = Gathering::default();
        gathering.push('a', 1);
        let due = gathering.due().unwrap();
        // As if it had come that much earlier.
        gathering.since = due.checked_sub(2 * WAIT);
        assert!(gathering.is_due(true));
        assert!(gathering.due().unwrap() < due);
    }
}
