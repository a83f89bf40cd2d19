//! Whether the disk has room, as far as a node knows: when it may be asked again, and what is said of it.

use std::time::{Duration, Instant};

/// How long after the disk had no room it is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// What there may be no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    Segment,
    Snapshot,
}

/// When there was no room, for what there is none as far as is known. What lacks it doesn't hold the other up, which may find
/// some, and make some.
#[derive(Debug, Default)]
pub(crate) struct Room {
    segment: Option<Instant>,
    snapshot: Option<Instant>,
}

impl Room {
    /// Whether it may be asked for.
    pub(crate) fn may_be(&self, what: For) -> bool {
        let asked = match what {
            For::Segment => self.segment,
            For::Snapshot => self.snapshot,
        };
        asked.is_none_or(|asked| asked.elapsed() >= AGAIN)
    }

    /// When something may be asked for again that may not now.
    pub(crate) fn due(&self) -> Option<Instant> {
        let asked = [self.segment, self.snapshot].into_iter().flatten();
        let waits = asked.filter(|asked| asked.elapsed() < AGAIN);
        waits.min().map(|asked| asked + AGAIN)
    }

    /// There was none; whether that is news.
    pub(crate) fn is_missing(&mut self, what: For) -> bool {
        let is_news = !self.is_short();
        *self.asked(what) = Some(Instant::now());
        is_news
    }

    /// There was; whether that is news, since there is for everything now.
    pub(crate) fn is_there(&mut self, what: For) -> bool {
        let was_short = self.is_short();
        *self.asked(what) = None;
        was_short && !self.is_short()
    }

    fn is_short(&self) -> bool {
        self.segment.is_some() || self.snapshot.is_some()
    }

    fn asked(&mut self, what: For) -> &mut Option<Instant> {
        match what {
            For::Segment => &mut self.segment,
            For::Snapshot => &mut self.snapshot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            *room.asked(lacks) = Instant::now().checked_sub(AGAIN);
            assert!(room.may_be(lacks) && room.due().is_none());
        }
    }
}
