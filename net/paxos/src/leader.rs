//! What a leader keeps of its ballot: the slots that it has proposed and that aren't decided yet, and whom it has heard.

use std::collections::VecDeque;

use crate::ballot::Ballot;
use crate::batch::Pending;
use crate::configuration::{Configuration, Phase, VoterSet};
use crate::effect::Ticket;
use crate::entry::{Entry, Slot};
use crate::simulation::{Bug, Mark, planted, reach};

/// A slot under way.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) entry: Entry,
    pub(crate) accepted: VoterSet,
    /// When it was last sent.
    pub(crate) sent_ns: u64,
}

/// A leader's state. None of it is durable.
#[derive(Clone, Debug)]
pub(crate) struct Leader {
    pub(crate) ballot: Ballot,
    /// The slots after what is decided, up to `next`.
    pub(crate) open: VecDeque<Open>,
    /// The next slot to propose something new for.
    pub(crate) next: Slot,
    /// The last slot of what it sent.
    pub(crate) sent: Slot,
    /// Its own first entry: from when that is decided, it knows everything that was decided before it.
    pub(crate) first_own: Slot,
    /// By voter's index, when it was last heard.
    pub(crate) heard_ns: Vec<u64>,
    /// Up to where it told others what is decided.
    pub(crate) told: Slot,
    /// What has no slot yet.
    pub(crate) pending: Pending,
    /// What it waits for its own disk to make durable, and since when.
    pub(crate) writes: Option<(Ticket, u64)>,
    pub(crate) beat_due_ns: u64,
}

impl Leader {
    /// Leads `ballot`. `entries` are what it must propose for the slots after `decided`; then comes an entry of its own.
    pub(crate) fn new(
        ballot: Ballot,
        decided: Slot,
        entries: Vec<Entry>,
        voters: usize,
        now_ns: u64,
        numbers: u64,
    ) -> Self {
        let own = std::iter::once(Entry::Noop);
        let open = entries.into_iter().chain(own).map(|entry| Open {
            entry,
            accepted: VoterSet::default(),
            sent_ns: now_ns,
        });
        let open: VecDeque<_> = open.collect();
        let last = Slot(decided.0 + open.len() as u64);
        Self {
            ballot,
            open,
            next: last.next(),
            sent: decided,
            first_own: last,
            heard_ns: vec![now_ns; voters],
            told: Slot::NONE,
            pending: Pending::after(numbers),
            writes: None,
            beat_due_ns: now_ns,
        }
    }

    /// The first slot that is open, or the next if none is.
    pub(crate) fn first_open(&self) -> Slot {
        Slot(self.next.0 - self.open.len() as u64)
    }

    /// What is under way in `slot`.
    pub(crate) fn open_mut(&mut self, slot: Slot) -> Option<&mut Open> {
        let place = slot.0.checked_sub(self.first_open().0)?;
        self.open.get_mut(usize::try_from(place).ok()?)
    }

    /// The voter at `index` accepted `slot` in `ballot`.
    pub(crate) fn accepted(&mut self, index: usize, ballot: Ballot, slot: Slot) {
        if ballot != self.ballot && !planted(Bug::AcceptedOfAnotherBallotCounted) {
            reach(Mark::AcceptedOfAnotherBallot);
            return;
        }
        let voters = self.heard_ns.len();
        match self.open_mut(slot) {
            None => reach(Mark::AcceptedOfDecided),
            Some(open) => {
                if !open.accepted.insert(index) {
                    reach(Mark::AcceptedTwice);
                    if planted(Bug::AcceptedCountedTwice) {
                        open.accepted.insert((index + 1) % voters);
                    }
                }
            }
        }
    }

    /// Takes the entry of the first slot that is open, if it is chosen.
    pub(crate) fn take_chosen(&mut self, configuration: &Configuration) -> Option<Entry> {
        let open = self.open.front()?;
        let is_chosen = configuration.is_quorum(Phase::Two, open.accepted)
            || (planted(Bug::ChosenWithoutAQuorum) && !open.accepted.is_empty())
            || (planted(Bug::CommitSkipsAHole) && self.is_above_a_chosen(configuration));
        if !is_chosen {
            return None;
        }
        if self.open.len() > 1 {
            reach(Mark::DecidedWithOthersOpen);
        }
        self.open.pop_front().map(|open| open.entry)
    }

    fn is_above_a_chosen(&self, configuration: &Configuration) -> bool {
        let mut accepted = self.open.iter().map(|open| open.accepted);
        accepted.any(|accepted| configuration.is_quorum(Phase::Two, accepted))
    }

    /// Everything up to `durable` is, of what must be up to `last`.
    pub(crate) fn wrote(&mut self, now_ns: u64, durable: Ticket, last: Ticket) {
        if self.writes.is_some_and(|(ticket, _)| ticket <= durable) {
            self.writes = (last > durable).then_some((last, now_ns));
        }
    }

    /// Whether a quorum was heard after `since_ns`.
    pub(crate) fn is_connected(&self, configuration: &Configuration, since_ns: u64) -> bool {
        let mut heard = VoterSet::default();
        for (index, heard_ns) in self.heard_ns.iter().enumerate() {
            if *heard_ns >= since_ns {
                heard.insert(index);
            }
        }
        configuration.is_quorum(Phase::Two, heard)
    }
}
