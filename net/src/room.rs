//! Whether the disk has room, as far as a node knows: when it may be asked again, and what is said of it.

use std::time::{Duration, Instant};

/// How long after the disk had no room it is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// And for a snapshot at most: twice as long each time, since the state is copied before it is known whether there is room.
const SNAPSHOT_AGAIN_MAX: Duration = Duration::from_mins(1);

/// What there may be no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    Segment,
    Snapshot,
}

/// There was no room.
#[derive(Clone, Copy, Debug)]
struct Missing {
    asked: Instant,
    pause: Duration,
}

/// What there was no room for, as far as is known. What lacks it doesn't hold the other up, which may find some, and make some.
#[derive(Debug, Default)]
pub(crate) struct Room {
    segment: Option<Missing>,
    snapshot: Option<Missing>,
}

impl Missing {
    /// When it may be asked for again.
    fn due(&self) -> Instant {
        self.asked + self.pause
    }
}

impl Room {
    /// Whether it may be asked for.
    pub(crate) fn may_be(&self, what: For) -> bool {
        let missing = match what {
            For::Segment => &self.segment,
            For::Snapshot => &self.snapshot,
        };
        missing.is_none_or(|missing| missing.due() <= Instant::now())
    }

    /// When something may be asked for again that may not now.
    pub(crate) fn due(&self) -> Option<Instant> {
        let now = Instant::now();
        let missing = [self.segment, self.snapshot].into_iter().flatten();
        missing.map(|it| it.due()).filter(|due| *due > now).min()
    }

    /// There was none; whether that is news.
    pub(crate) fn is_missing(&mut self, what: For) -> bool {
        let is_news = !self.is_short();
        let pause = match (what, self.snapshot) {
            (For::Snapshot, Some(before)) => (2 * before.pause).min(SNAPSHOT_AGAIN_MAX),
            _ => AGAIN,
        };
        let asked = Instant::now();
        *self.missing(what) = Some(Missing { asked, pause });
        is_news
    }

    /// There was; whether that is news, since there is for everything now.
    pub(crate) fn is_there(&mut self, what: For) -> bool {
        let was_short = self.is_short();
        let found = self.missing(what).take();
        // Somebody may have freed some: for a snapshot too.
        if let (Some(_), Some(snapshot)) = (found, &mut self.snapshot) {
            snapshot.pause = AGAIN;
        }
        was_short && !self.is_short()
    }

    fn is_short(&self) -> bool {
        self.segment.is_some() || self.snapshot.is_some()
    }

    fn missing(&mut self, what: For) -> &mut Option<Missing> {
        match what {
            For::Segment => &mut self.segment,
            For::Snapshot => &mut self.snapshot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Room {
        /// As if what is missing had been asked for that much earlier.
        fn wait(&mut self, what: For, time: Duration) {
            self.missing(what).as_mut().unwrap().asked -= time;
        }
    }

    #[test]
    fn what_is_missing_is_news_once_however_often_it_is_asked_for_and_whatever_else_finds_room() {
        let mut room = Room::default();
        assert!(room.may_be(For::Segment) && room.due().is_none());
        assert!(!room.is_there(For::Segment));
        assert!(room.is_missing(For::Segment));
        assert!(!room.may_be(For::Segment) && room.due().is_some());
        assert!(!room.is_missing(For::Snapshot));
        assert!(!room.is_there(For::Snapshot));
        assert!(!room.is_missing(For::Segment));
        assert!(room.is_there(For::Segment));
        assert!(room.may_be(For::Segment) && room.due().is_none());
        assert!(room.is_missing(For::Snapshot));
    }

    #[test]
    fn what_lacks_room_doesn_t_hold_up_what_may_find_some() {
        for (lacks, other) in [(For::Segment, For::Snapshot), (For::Snapshot, For::Segment)] {
            let mut room = Room::default();
            room.is_missing(lacks);
            assert!(!room.may_be(lacks) && room.may_be(other));
            // Once all may be asked for again nothing is waited for.
            room.wait(lacks, AGAIN);
            assert!(room.may_be(lacks) && room.due().is_none());
        }
    }

    /// How long it isn't asked for, each time.
    fn pauses(room: &mut Room, what: For, times: usize) -> Vec<u64> {
        let mut pauses = Vec::new();
        for _ in 0..times {
            room.is_missing(what);
            let pause = room.missing(what).unwrap().pause;
            room.wait(what, pause.saturating_sub(AGAIN));
            assert!(!room.may_be(what) && room.due().is_some());
            room.wait(what, AGAIN);
            assert!(room.may_be(what) && room.due().is_none());
            pauses.push(pause.as_secs());
        }
        pauses
    }

    #[test]
    fn a_snapshot_without_room_is_tried_less_and_less_often_until_there_was_room_for_something() {
        let mut room = Room::default();
        let growing = [1, 2, 4, 8, 16, 32, 60, 60];
        assert_eq!(pauses(&mut room, For::Snapshot, 8), growing);
        // A segment that lacked nothing says nothing of the snapshot.
        room.is_there(For::Segment);
        assert_eq!(pauses(&mut room, For::Snapshot, 1), [60]);
        assert_eq!(pauses(&mut room, For::Segment, 3), [1, 1, 1]);
        room.is_there(For::Segment);
        assert_eq!(room.snapshot.unwrap().pause, AGAIN);
        pauses(&mut room, For::Snapshot, 3);
        assert!(room.is_there(For::Snapshot));
        assert_eq!(pauses(&mut room, For::Snapshot, 2), [1, 2]);
    }
}
