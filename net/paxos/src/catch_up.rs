//! Catching up: what was decided while a voter did not hear of it.

use crate::effect::Ticket;
use crate::entry::{Entry, Slot};
use crate::message::Message;
use crate::replica::{Replica, Role};
use crate::simulation::{Bug, Mark, planted, reach};
use crate::snapshot::Snapshot;
use crate::voter::Voter;

/// A question that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fetching {
    wanted: Wanted,
    /// Who was asked.
    pub(crate) of: Voter,
    /// When another may be asked.
    due_ns: u64,
}

/// What is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Wanted {
    /// What was decided from this slot on.
    Entries(Slot),
    /// The rest of a snapshot.
    Chunk(Snapshot, u64),
}

impl Replica {
    /// Asks `of` what was decided after what is known here, unless that has just been asked, or would only be more for a disk
    /// that is behind.
    pub(crate) fn fetch(&mut self, now_ns: u64, of: Voter) {
        if self.tickets.are_behind() {
            return;
        }
        let wanted = match self.incoming {
            Some(incoming) if incoming.snapshot.through > self.decided() => {
                if incoming.is_whole() {
                    return;
                }
                Wanted::Chunk(incoming.snapshot, incoming.next)
            }
            _ => Wanted::Entries(self.decided().next()),
        };
        let is_asked = |asked: Fetching| {
            asked.wanted == wanted && (now_ns < asked.due_ns || planted(Bug::FetchNotSentAgain))
        };
        if self.fetching.is_some_and(is_asked) {
            return;
        }
        self.fetching = Some(Fetching {
            wanted,
            of,
            due_ns: now_ns + self.options.beat_ns,
        });
        let message = match wanted {
            Wanted::Entries(from) => Message::Fetch { from },
            Wanted::Chunk(snapshot, offset) => Message::FetchChunk { snapshot, offset },
        };
        self.send(Ticket::NONE, of, message);
    }

    /// A voter asks for what was decided from `from` on.
    pub(crate) fn on_fetch(&mut self, to: Voter, from: Slot) {
        if (Slot(1)..=self.learner.trimmed()).contains(&from) {
            reach(Mark::FetchOfTrimmed);
            if !planted(Bug::FetchSkipsTheTrimmed) {
                return self.send_chunk(to, None);
            }
        }
        let mut entries = Vec::new();
        let mut bytes = 0;
        let mut slot = if planted(Bug::FetchSkipsTheTrimmed) {
            from.max(self.learner.trimmed().next())
        } else {
            from
        };
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

    /// What was decided from `from` on came.
    pub(crate) fn on_entries(&mut self, now_ns: u64, of: Voter, from: Slot, entries: Vec<Entry>) {
        // A leader learns from its own slots only: what it has under way, it decides.
        if matches!(self.role, Role::Leader(_)) {
            reach(Mark::EntriesForALeader);
            return;
        }
        for (slot, entry) in (from.0..=u64::MAX).map(Slot).zip(entries) {
            if slot == self.decided().next() {
                reach(Mark::Fetched);
                self.learn(now_ns, entry);
            } else if slot <= self.decided() {
                reach(Mark::FetchedTwice);
                if planted(Bug::FetchedTwiceDecidedTwice) {
                    self.learner.go_back_to(Slot(slot.0 - 1));
                    self.learn(now_ns, entry);
                }
            }
        }
        if self.decided() < self.known && !matches!(self.role, Role::Candidate(_)) {
            reach(Mark::FetchedInPages);
        }
        self.caught_up(now_ns, of);
    }

    /// More is known to be decided than before: what follows, and whether `of` is asked for more.
    pub(crate) fn caught_up(&mut self, now_ns: u64, of: Voter) {
        if matches!(self.role, Role::Candidate(_)) {
            self.wait_for_leader(now_ns);
            self.go_on(now_ns);
        } else if self.decided() < self.known {
            self.fetch(now_ns, of);
        }
    }
}

/// What an entry takes beside its bytes, about.
const ENTRY_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Effect;
    use crate::options::Options;
    use crate::testing::{BEAT_NS, Hand, ballot, entry, options, sent, voters};

    /// Of each page, its first slot and how many it has.
    type Pages = &'static [(u64, usize)];

    /// A follower of the first voter, who says that everything up to slot 9 is decided.
    fn behind() -> Hand {
        let voters = voters(3);
        let mut hand = Hand::new(options(&voters, 1));
        let effects = hand.step(voters[0], commit());
        assert_eq!(fetches(&effects), [Slot(1)]);
        hand
    }

    fn commit() -> Message {
        Message::Commit {
            ballot: ballot(1, voters(3)[0]),
            decided: Slot(9),
        }
    }

    fn entries(from: u64, count: usize) -> Message {
        let entries = (0..count as u64)
            .map(|at| from.wrapping_add(at))
            .map(|slot| entry(&slot.to_le_bytes()));
        Message::Entries {
            from: Slot(from),
            entries: entries.collect(),
        }
    }

    fn fetches(effects: &[Effect]) -> Vec<Slot> {
        let fetches = sent(effects)
            .into_iter()
            .filter_map(|(_, message)| match message {
                Message::Fetch { from } => Some(*from),
                _ => None,
            });
        fetches.collect()
    }

    #[test]
    fn what_comes_is_taken_in_order_and_the_rest_asked_for() {
        let cases: [(&str, Pages, u64, &[u64]); 8] = [
            ("nothing", &[(1, 0)], 0, &[]),
            ("a page", &[(1, 3)], 3, &[4]),
            ("all", &[(1, 9)], 9, &[]),
            ("more than was known of", &[(1, 11)], 11, &[]),
            ("a page twice", &[(1, 3), (1, 3)], 3, &[4]),
            ("pages that overlap", &[(1, 3), (2, 6)], 7, &[4, 8]),
            ("a page too far", &[(3, 3)], 0, &[]),
            (
                "a page after the last slot there is",
                &[(u64::MAX, 2)],
                0,
                &[],
            ),
        ];
        for (what, pages, decided, asked) in cases {
            let mut hand = behind();
            let mut fetched = Vec::new();
            for (from, count) in pages {
                let effects = hand.step(voters(3)[0], entries(*from, *count));
                fetched.extend(fetches(&effects).into_iter().map(|slot| slot.0));
            }
            assert_eq!(hand.replica().decided(), Slot(decided), "{what}");
            assert_eq!(fetched, asked, "{what}");
        }
    }

    #[test]
    fn what_is_asked_for_is_asked_again_after_a_beat_and_not_before() {
        let mut hand = behind();
        let effects = hand.step(voters(3)[0], commit());
        assert_eq!(fetches(&effects), []);
        hand.now_ns += BEAT_NS;
        let effects = hand.step(voters(3)[0], commit());
        assert_eq!(fetches(&effects), [Slot(1)]);
    }

    #[test]
    fn a_page_holds_at_least_one_entry_and_nothing_that_is_not_decided() {
        for (page_bytes_max, expected) in [(1, 1), (27, 1), (28, 2), (1 << 20, 5)] {
            let voters = voters(3);
            let options = Options {
                page_bytes_max,
                ..options(&voters, 1)
            };
            let mut hand = Hand::new(options);
            hand.step(voters[0], entries(1, 5));
            let effects = hand.step(voters[2], Message::Fetch { from: Slot(1) });
            let expected = entries(1, expected);
            assert_eq!(sent(&effects), [(voters[2], &expected)], "{page_bytes_max}");
            for from in [0, 6, u64::MAX] {
                assert_eq!(
                    hand.step(voters[2], Message::Fetch { from: Slot(from) }),
                    []
                );
            }
        }
    }

    #[test]
    fn a_leader_decides_what_it_has_under_way_and_takes_nobody_s_word_for_it() {
        let voters = voters(3);
        let mut hand = Hand::new(options(&voters, 1));
        hand.lead(voters[0]);
        assert_eq!(hand.step(voters[0], entries(1, 1)), []);
        assert_eq!(hand.replica().decided(), Slot::NONE);
    }
}
