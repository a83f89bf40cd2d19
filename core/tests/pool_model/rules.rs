//! The model: a lock, a semaphore or a limiter's key as its documentation has it.

use crate::step::{CAPACITY, Want, has_permits};

/// Who a hold belongs to: the n-th session ever opened, or nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    Session(usize),
    Detached,
}

#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) id: usize,
    pub(crate) token: u64,
    pub(crate) holder: Holder,
    pub(crate) until_us: u64,
    pub(crate) want: Want,
}

/// What a wait is for: a hold anew, or the hold of this id alone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aim {
    Anew(Want),
    Upgrade(usize),
}

#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) id: usize,
    pub(crate) session: usize,
    pub(crate) until_ns: u64,
    pub(crate) aim: Aim,
}

/// The time, and which sessions are open.
pub(crate) struct Now<'a> {
    pub(crate) ns: u64,
    pub(crate) is_open: &'a [bool],
}

#[derive(Debug)]
pub(crate) struct Thing {
    /// Of what has permits.
    pub(crate) capacity: u32,
    pub(crate) grants: u64,
    /// Those that are over stay, until it is known that the engine has ended them too.
    pub(crate) holds: Vec<Hold>,
    /// The id of the hold that waits to have the lock alone.
    pub(crate) upgrading: Option<usize>,
    pub(crate) queue: Vec<Wait>,
}

impl Default for Thing {
    fn default() -> Self {
        Self {
            capacity: CAPACITY,
            grants: 0,
            holds: Vec::new(),
            upgrading: None,
            queue: Vec::new(),
        }
    }
}

impl Now<'_> {
    pub(crate) fn lives(&self, hold: &Hold) -> bool {
        let is_there = match hold.holder {
            Holder::Session(index) => self.is_open[index],
            Holder::Detached => true,
        };
        is_there && hold.until_us > self.ns / 1_000
    }

    pub(crate) fn waits(&self, wait: &Wait) -> bool {
        wait.until_ns > self.ns && self.is_open[wait.session]
    }
}

impl Thing {
    pub(crate) fn hold(&mut self, id: usize) -> Option<&mut Hold> {
        self.holds.iter_mut().find(|hold| hold.id == id)
    }

    pub(crate) fn living<'a>(&'a self, now: &'a Now<'_>) -> impl Iterator<Item = &'a Hold> {
        self.holds.iter().filter(|hold| now.lives(hold))
    }

    /// The hold that waits to have the lock alone, while it lasts.
    pub(crate) fn upgrading(&self, now: &Now<'_>) -> Option<usize> {
        self.living(now)
            .map(|hold| hold.id)
            .find(|id| self.upgrading == Some(*id))
    }

    /// Whether one who wants it so could have it beside these holds.
    pub(crate) fn has_room<'a>(
        &self,
        number: usize,
        mut beside: impl Iterator<Item = &'a Hold>,
        is_upgrading: bool,
        want: Want,
    ) -> bool {
        if has_permits(number) {
            return beside.map(|hold| hold.want.amount).sum::<u32>() + want.amount <= self.capacity;
        }
        (want.alone || !is_upgrading) && beside.all(|hold| !hold.want.alone && !want.alone)
    }

    /// Whether the wait `id`, or a newcomer, can have it now: there is room, and nobody before it is to be
    /// served first.
    pub(crate) fn may_have(
        &self,
        number: usize,
        id: Option<usize>,
        want: Want,
        now: &Now<'_>,
    ) -> bool {
        let is_shared = |want: Want| !has_permits(number) && !want.alone;
        let is_in_the_way = |wait: &&Wait| match wait.aim {
            Aim::Upgrade(_) => false,
            Aim::Anew(other) => now.waits(wait) && !(is_shared(want) && is_shared(other)),
        };
        let is_upgrading = self.upgrading(now).is_some();
        let before = self.queue.iter().take_while(|wait| Some(wait.id) != id);
        self.has_room(number, self.living(now), is_upgrading, want)
            && !before.filter(is_in_the_way).any(|_| true)
    }

    /// Whether a wake is owed to the first who waits. Not while someone dead may be taken for that; and
    /// not while what is over, and not ended yet, still takes the room.
    pub(crate) fn owes_wake(&self, number: usize, now: &Now<'_>) -> bool {
        let upgrades = |wait: &&Wait| matches!(wait.aim, Aim::Upgrade(_));
        let upgrade = self.queue.iter().find(upgrades);
        if let Some(wait) = upgrade.filter(|wait| now.waits(wait))
            && self.holds.len() == 1
            && matches!(wait.aim, Aim::Upgrade(id) if self.holds[0].id == id && now.lives(&self.holds[0]))
        {
            return true;
        }
        let first = self.queue.iter().find(|wait| !upgrades(wait));
        first.is_some_and(|wait| match wait.aim {
            Aim::Anew(want) if now.waits(wait) => {
                self.has_room(number, self.holds.iter(), self.upgrading.is_some(), want)
            }
            _ => false,
        })
    }
}
