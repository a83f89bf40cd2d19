//! What a leader keeps of its ballot: the slots that it has proposed and that aren't decided yet, and whom it has heard.

use std::collections::VecDeque;

use crate::ballot::Ballot;
use crate::batch::Pending;
use crate::configuration::{Configuration, Phase, VoterSet};
use crate::entry::{Entry, Slot};
use crate::simulation::{Bug, Mark, planted, reach};

/// A slot under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Open {
    pub(crate) entry: Entry,
    pub(crate) accepted: VoterSet,
    /// When it was last sent.
    pub(crate) sent_ns: u64,
}

/// A leader's state. None of it is durable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
    /// Since when something waits for its own disk, and nothing has become durable.
    pub(crate) writes_since_ns: Option<u64>,
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
            next: if planted(Bug::NewProposedBeforeTheRecovered) {
                decided.next()
            } else {
                last.next()
            },
            sent: decided,
            first_own: last,
            heard_ns: vec![now_ns; voters],
            told: Slot::NONE,
            pending: Pending::after(numbers),
            writes_since_ns: None,
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
        if ballot != self.ballot {
            reach(Mark::AcceptedOfAnotherBallot);
            let open = self.open_mut(slot);
            let would_count = open.is_some_and(|open| !open.accepted.contains(index));
            if !would_count || !planted(Bug::AcceptedOfAnotherBallotCounted) {
                return;
            }
        }
        if planted(Bug::AcceptedCountsForThoseBefore) {
            self.accepted_before(index, slot);
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

    /// For a planted bug only: the voter at `index` accepted all that is open before `slot`.
    fn accepted_before(&mut self, index: usize, slot: Slot) {
        let first = self.first_open();
        for (_, open) in (first.0..slot.0).zip(&mut self.open) {
            open.accepted.insert(index);
        }
    }

    /// For a planted bug only: whether some slot is chosen, the first or one after it.
    fn is_above_a_chosen(&self, configuration: &Configuration) -> bool {
        let mut accepted = self.open.iter().map(|open| open.accepted);
        accepted.any(|accepted| configuration.is_quorum(Phase::Two, accepted))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ballot, entry, options, voters};

    fn leader() -> Leader {
        let entries = vec![entry(b"a"), Entry::Noop];
        Leader::new(ballot(3, voters(3)[0]), Slot(4), entries, 3, 100, 0)
    }

    #[test]
    fn what_must_be_proposed_comes_first_then_an_entry_of_its_own() {
        let leader = leader();
        let slots = (leader.first_open().0..).zip(&leader.open);
        let slots = slots.map(|(slot, open)| (slot, open.entry.clone()));
        let expected = [(5, entry(b"a")), (6, Entry::Noop), (7, Entry::Noop)];
        assert_eq!(slots.collect::<Vec<_>>(), expected);
        assert_eq!((leader.first_own, leader.next), (Slot(7), Slot(8)));
        assert_eq!(leader.sent, Slot(4));
    }

    #[test]
    fn a_slot_is_chosen_by_a_quorum_in_this_ballot_alone() {
        let configuration = options(&voters(3), 0).configuration;
        let (own, older) = (ballot(3, voters(3)[0]), ballot(2, voters(3)[0]));
        let cases = [
            (vec![(0, own, 5)], false),
            (vec![(0, own, 5), (0, own, 5)], false),
            (vec![(0, own, 5), (1, older, 5)], false),
            (vec![(0, own, 5), (1, own, 6), (2, own, 9)], false),
            (vec![(0, own, 5), (2, own, 5)], true),
            (vec![(1, own, 5), (2, own, 5)], true),
        ];
        for (accepted, is_chosen) in cases {
            let mut leader = leader();
            for (index, ballot, slot) in &accepted {
                leader.accepted(*index, *ballot, Slot(*slot));
            }
            let chosen = leader.take_chosen(&configuration);
            assert_eq!(chosen.is_some(), is_chosen, "{accepted:?}");
            // It is taken once.
            assert_eq!(leader.take_chosen(&configuration), None);
        }
    }

    #[test]
    fn it_is_connected_while_it_hears_a_quorum() {
        let configuration = options(&voters(3), 0).configuration;
        let cases = [
            ([100, 100, 100], 100, true),
            ([100, 100, 99], 100, true),
            ([100, 99, 99], 100, false),
        ];
        for (heard_ns, since_ns, expected) in cases {
            let mut leader = leader();
            leader.heard_ns = heard_ns.to_vec();
            assert_eq!(leader.is_connected(&configuration, since_ns), expected);
        }
    }
}
