//! Polling: how one who waits takes what it waits for once it is its turn.
//!
//! Who may have what is said in [`crate::admission`].

use super::{PROBE_NS, Ticket, Wake};
use crate::admission::{Answer, Asker, Wants};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::lock::deadlock::Search;
use crate::lock::together::Took;
use crate::lock::{Deadlock, Grant};
use crate::object::Name;
use crate::permit::Claim;
use crate::pool::Pool;
use crate::session::SessionId;
use crate::table::ROUNDS_MAX;

/// The answer to a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Poll {
    /// The lock is the caller's; the wait is over and its slot free.
    Granted {
        /// The grant.
        grant: Grant,
        /// Another waiter who can have its share too; wake it.
        wake: Option<Wake>,
    },
    /// Not yet: look again when the signal rises, or at this region time (ns) at the latest.
    Waiting {
        /// Region time to look again at, in nanoseconds.
        look_again_ns: u64,
        /// Another waiter whose turn it seems to be; wake it.
        wake: Option<Wake>,
    },
    /// The lock's entry was reclaimed before the wait was seen. The slot is free; wait anew.
    Moved,
    /// The hold that was to be upgraded is no more. The slot is free.
    Lost,
    /// It would wait for itself for ever, and is the one to give up. The slot is free.
    Deadlock(Deadlock),
}

impl Engine {
    /// Takes the lock if it is the waiter's turn. After an error the wait goes on, until it is cancelled. `probe`:
    /// also look for the dead, with system calls; wanted at the first poll and whenever `look_again_ns` has come.
    pub fn poll(
        &self,
        ticket: &Ticket,
        name: &Name,
        by: SessionId,
        now_ns: u64,
        lease_ns: u64,
        probe: bool,
    ) -> Result<Poll> {
        let names = core::slice::from_ref(name);
        self.poll_for(ticket, names, by, now_ns, lease_ns, probe)
    }

    /// [`poll`](Self::poll) for whatever was queued for by these names.
    pub fn poll_for(
        &self,
        ticket: &Ticket,
        names: &[Name],
        by: SessionId,
        now_ns: u64,
        lease_ns: u64,
        probe: bool,
    ) -> Result<Poll> {
        let asker = Asker {
            by,
            number: Some(ticket.number),
            now_ns,
            lease_ns,
            probe,
        };
        self.look(ticket, now_ns);
        let poll = match (ticket.wants, names) {
            (Wants::Several, names) => self.poll_all(ticket, names, &asker)?,
            (_, [name, ..]) => {
                let mut claim = None;
                let poll = self.poll_by(ticket, name, &asker, &mut claim);
                self.give_back_claim(&mut claim);
                poll?
            }
            (_, []) => Poll::Moved,
        };
        match poll {
            waiting @ Poll::Waiting { .. } => Ok(self.go_on(ticket, waiting, now_ns)),
            poll => Ok(poll),
        }
    }

    pub(super) fn poll_by(
        &self,
        ticket: &Ticket,
        name: &Name,
        asker: &Asker,
        claim: &mut Option<Claim>,
    ) -> Result<Poll> {
        let Asker { now_ns, probe, .. } = *asker;
        let mut has_passed = false;
        self.shut_gates(ticket.wants);
        for _ in 0..ROUNDS_MAX {
            let place = ticket.places.first;
            let found =
                place.and_then(|place| self.found_of_place(&place, name, ticket.wants, now_ns));
            let Some(found) = found else {
                self.leave(ticket);
                return Ok(Poll::Moved);
            };
            if let Wants::Permits { capacity, .. } = ticket.wants
                && Pool::decode(found.state).terms != capacity
            {
                // Passed over, its semaphore was made anew: whoever waits for it anew is told by whom.
                self.leave(ticket);
                return Ok(Poll::Moved);
            }
            if let Wants::Slots { amount, limiter } = ticket.wants {
                self.check_slots(limiter, amount)?;
            }
            let probe_ns = now_ns.saturating_add(PROBE_NS);
            match self.answer(&found, ticket.wants, asker) {
                Answer::Yes => {
                    match self.let_in(&found, ticket.wants, asker, claim)? {
                        Took::Granted(grant) => {
                            *claim = None;
                            self.leave(ticket);
                            // Who shares may not be the only one whose turn it is.
                            let wake = match ticket.wants {
                                Wants::Shared | Wants::Permits { .. } | Wants::Slots { .. } => {
                                    self.hand_on_now(found.cell, now_ns)
                                }
                                _ => None,
                            };
                            return Ok(Poll::Granted { grant, wake });
                        }
                        Took::Again => {}
                        Took::Held { look_again_ns } => {
                            return Ok(Poll::Waiting {
                                look_again_ns: look_again_ns.min(probe_ns),
                                wake: None,
                            });
                        }
                    }
                }
                Answer::Again => {}
                Answer::Passed => has_passed = true,
                Answer::No { look_again_ns } => {
                    return Ok(Poll::Waiting {
                        look_again_ns: look_again_ns.min(probe_ns),
                        wake: None,
                    });
                }
                Answer::Behind(ahead) => {
                    // It is another's turn. On a probe, its wake may have been lost with whoever sent it.
                    let wake = (probe || has_passed).then(|| self.raise(ahead.index));
                    return Ok(Poll::Waiting {
                        look_again_ns: probe_ns,
                        wake,
                    });
                }
                // Nobody else could begin to wait for that while this one does, but after its hold was lost.
                Answer::Lost | Answer::Conflict => {
                    self.leave(ticket);
                    return Ok(Poll::Lost);
                }
            }
        }
        Err(Error::Damaged {
            what: "a lock never settles",
        })
    }

    /// Says what the owner of a wait holds meanwhile, so that a deadlock is found in which it waits for itself.
    /// From then on each poll that ends in waiting looks for one.
    pub fn set_holds(&self, ticket: &mut Ticket, holds: Vec<Grant>) {
        ticket.holds = holds;
    }

    /// What a wait that goes on comes to: a deadlock that it is part of, if its owner holds something.
    pub(super) fn go_on(&self, ticket: &Ticket, waiting: Poll, now_ns: u64) -> Poll {
        if ticket.holds.is_empty() {
            return waiting;
        }
        self.mark_holds(ticket);
        match (self.find_deadlock(ticket, now_ns), waiting) {
            (Search::Found(deadlock), _) => {
                self.leave(ticket);
                if let Wants::Upgrade(grant) = ticket.wants {
                    // Whom that lets in finds out at its next look.
                    let _ = self.end_upgrade(&grant, now_ns);
                }
                Poll::Deadlock(deadlock)
            }
            (
                Search::Other(slot),
                Poll::Waiting {
                    look_again_ns,
                    wake: None,
                },
            ) => Poll::Waiting {
                look_again_ns,
                wake: Some(self.raise(slot)),
            },
            (_, waiting) => waiting,
        }
    }
}
