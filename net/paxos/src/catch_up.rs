//! Catching up: what was decided while a voter did not hear of it.

use crate::effect::Ticket;
use crate::entry::{Entry, Slot};
use crate::message::Message;
use crate::replica::{Replica, Role};
use crate::simulation::{Bug, Mark, planted, reach};
use crate::voter::Voter;

/// A question that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fetching {
    from: Slot,
    /// When another may be asked.
    due_ns: u64,
}

impl Replica {
    /// Asks `of` what was decided after what is known here, unless that has just been asked.
    pub(crate) fn fetch(&mut self, now_ns: u64, of: Voter) {
        let from = self.decided().next();
        if self
            .fetching
            .is_some_and(|fetching| fetching.from == from && now_ns < fetching.due_ns)
        {
            return;
        }
        self.fetching = Some(Fetching {
            from,
            due_ns: now_ns + self.options.beat_ns,
        });
        self.send(Ticket::NONE, of, Message::Fetch { from });
    }

    pub(crate) fn fetched(&mut self, to: Voter, from: Slot) {
        let mut entries = Vec::new();
        let mut bytes = 0;
        let mut slot = from;
        while bytes <= self.options.page_bytes_max
            && let Some(entry) = self.entry_to_tell(slot)
        {
            bytes += ENTRY_BYTES + entry.bytes();
            entries.push(entry.clone());
            slot = slot.next();
        }
        if entries.is_empty() {
            reach(Mark::FetchOfUndecided);
            return;
        }
        self.send(Ticket::NONE, to, Message::Entries { from, entries });
    }

    fn entry_to_tell(&self, slot: Slot) -> Option<&Entry> {
        let decided = self.decided_entry(slot);
        if decided.is_none() && planted(Bug::FetchTellsTheUndecided) {
            return self.acceptor.vote(slot).map(|vote| &vote.entry);
        }
        decided
    }

    pub(crate) fn entries(&mut self, now_ns: u64, of: Voter, from: Slot, entries: Vec<Entry>) {
        // A leader learns from its own slots only: what it has under way, it decides.
        if matches!(self.role, Role::Leader(_)) {
            reach(Mark::EntriesForALeader);
            return;
        }
        for (slot, entry) in (from.0..).map(Slot).zip(entries) {
            if slot == self.decided().next() {
                reach(Mark::Fetched);
                self.learn(now_ns, slot, entry);
            } else if slot <= self.decided() {
                reach(Mark::FetchedTwice);
                if planted(Bug::FetchedTwiceDecidedTwice) {
                    self.learner.go_back_to(Slot(slot.0 - 1));
                    self.learn(now_ns, slot, entry);
                }
            }
        }
        match self.role {
            Role::Candidate(_) => {
                self.wait_for_leader(now_ns);
                self.go_on(now_ns);
            }
            _ if self.decided() < self.known => {
                reach(Mark::FetchedInPages);
                self.fetch(now_ns, of);
            }
            _ => {}
        }
    }
}

/// What an entry takes beside its bytes, about.
const ENTRY_BYTES: usize = 16;
