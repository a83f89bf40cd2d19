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

/// What there was no room for when that was last asked.
#[derive(Debug, Default)]
pub(crate) struct Room {
    asked: Option<Instant>,
    lacks_segment: bool,
    lacks_snapshot: bool,
}

impl Room {
    /// Whether it may be asked for.
    pub(crate) fn may_be(&self) -> bool {
        self.asked.is_none_or(|asked| asked.elapsed() >= AGAIN)
    }

    /// When it may be asked for again, while it may not.
    pub(crate) fn due(&self) -> Option<Instant> {
        let asked = self.asked?;
        (!self.may_be()).then_some(asked + AGAIN)
    }

    /// There was none; whether that is news.
    pub(crate) fn is_missing(&mut self, what: For) -> bool {
        let is_news = !self.is_short();
        self.asked = Some(Instant::now());
        *self.lacks(what) = true;
        is_news
    }

    /// There was; whether that is news, since there is for everything now.
    pub(crate) fn is_there(&mut self, what: For) -> bool {
        let was_short = self.is_short();
        *self.lacks(what) = false;
        let is_news = was_short && !self.is_short();
        if is_news {
            self.asked = None;
        }
        is_news
    }

    fn is_short(&self) -> bool {
        self.lacks_segment || self.lacks_snapshot
    }

    fn lacks(&mut self, what: For) -> &mut bool {
        match what {
            For::Segment => &mut self.lacks_segment,
            For::Snapshot => &mut self.lacks_snapshot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_news_once_however_often_it_is_asked_for_and_whatever_else_finds_room() {
        let mut room = Room::default();
        assert!(room.may_be() && room.due().is_none());
        assert!(!room.is_there(For::Segment));
        assert!(room.is_missing(For::Segment));
        assert!(!room.may_be() && room.due().is_some());
        assert!(!room.is_missing(For::Snapshot));
        assert!(!room.is_there(For::Snapshot));
        assert!(!room.is_missing(For::Segment));
        assert!(room.is_there(For::Segment));
        assert!(room.may_be() && room.due().is_none());
        assert!(room.is_missing(For::Snapshot));
    }
}
