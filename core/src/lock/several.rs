//! Several locks in one acquire: all or none, waiting included.
//!
//! Owns finding, waiting for and releasing them together. They are had alone, as one hold with one lease, that
//! of the leader ([`super::engaged`]); each lock has a token of its own.
//!
//! Who waits has a place in the queue of each, under one ticket, and takes none before all are free. So no
//! such wait holds anything that another waits for, and since tickets order all queues alike, none waits for
//! another that waits for it.

use super::engaged::{Engaged, Role, is_engaged};
use super::together::Took;
use super::{Attempt, Grant, check_lease};
use crate::admission::{Answer, Asker, Wants};
use crate::chunk;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::object::{Kind, Name, Objects};
use crate::session::SessionId;
use crate::table::{Flavour as _, Found, ROUNDS_MAX};
use crate::waiter::{PROBE_NS, Poll, Ticket, Wake};

/// The most locks that one acquire can take: 64.
pub const SEVERAL_MAX: usize = 64;
/// Insertions of each name by one call after which it is taken that they displace each other.
const INSERTIONS_MAX: usize = 64;

/// Fails unless so many locks can be taken by one acquire.
pub fn check_number(number: usize) -> Result<()> {
    if (1..=SEVERAL_MAX).contains(&number) {
        return Ok(());
    }
    Err(Error::OutOfRange {
        what: "number of locks",
        value: number as u64,
        min: 1,
        max: SEVERAL_MAX as u64,
    })
}

impl Engine {
    /// Takes all these locks, alone, if they can be had at once and nobody waits for any; else none. A name
    /// given twice is one lock.
    pub fn try_acquire_all(
        &self,
        names: &[Name],
        by: SessionId,
        now_ns: u64,
        lease_ns: u64,
    ) -> Result<Attempt> {
        check_lease(lease_ns)?;
        check_number(names.len())?;
        let asker = Asker {
            by,
            number: None,
            now_ns,
            lease_ns,
            probe: true,
        };
        let mut inserted = 0;
        for _ in 0..ROUNDS_MAX {
            let found = |name: &Name| {
                let found = self.find_object(&self.object(Kind::Lock, name));
                inserted += usize::from(found.is_none());
                found.map_or_else(|| self.find_lock(name, by, now_ns), Ok)
            };
            let found: Result<Vec<Found>> = names.iter().map(found).collect();
            if inserted > names.len() * INSERTIONS_MAX {
                return Err(self.without_room_for(names));
            }
            match self.take_found(found?, &asker)? {
                Took::Granted(grant) => return Ok(Attempt::Granted(grant)),
                Took::Again => {}
                Took::Held { .. } => return Ok(Attempt::Busy),
            }
        }
        Err(Error::Damaged {
            what: "a lock never settles",
        })
    }

    /// Names that are free are reclaimed for each other where there is no room for all of them.
    fn without_room_for(&self, names: &[Name]) -> Error {
        let caps = self.region.caps();
        let (what, cap) = if names.iter().any(Name::is_long) {
            (chunk::WHAT, caps.key_chunks)
        } else {
            (Objects::WHAT, caps.objects)
        };
        let cap = cap.into();
        Error::Full { what, cap }
    }

    /// Takes locks by their words as they were found, if all can be had.
    pub(super) fn take_found(&self, mut found: Vec<Found>, asker: &Asker) -> Result<Took> {
        // One order for all, so that of two who want the same ones the second meets the first's leader.
        found.sort_unstable_by_key(|found| found.cell);
        found.dedup_by(|one, other| (one.cell, one.state) == (other.cell, other.state));
        if found.windows(2).any(|two| two[0].cell == two[1].cell) {
            // It changed since: it may have been reclaimed, and be another name's by now.
            return Ok(Took::Again);
        }
        for found in &found {
            match self.answer(found, Wants::Several, asker) {
                Answer::Yes => {}
                Answer::Again | Answer::Passed => return Ok(Took::Again),
                Answer::No { look_again_ns } => return Ok(Took::Held { look_again_ns }),
                _ => {
                    let look_again_ns = asker.now_ns.saturating_add(PROBE_NS);
                    return Ok(Took::Held { look_again_ns });
                }
            }
        }
        self.take_all(&found, None, asker)
    }

    /// Takes all that is waited for if it is the waiter's turn everywhere.
    pub(crate) fn poll_all(&self, ticket: &Ticket, names: &[Name], asker: &Asker) -> Result<Poll> {
        let now_ns = asker.now_ns;
        for _ in 0..ROUNDS_MAX {
            let Some(found) = self.found_of(ticket, names, now_ns) else {
                self.leave(ticket);
                return Ok(Poll::Moved);
            };
            match self.take_found(found, asker)? {
                Took::Granted(grant) => {
                    self.leave(ticket);
                    return Ok(Poll::Granted { grant, wake: None });
                }
                Took::Again => {}
                Took::Held { look_again_ns } => {
                    return Ok(Poll::Waiting {
                        look_again_ns: look_again_ns.min(now_ns.saturating_add(PROBE_NS)),
                        wake: None,
                    });
                }
            }
        }
        Err(Error::Damaged {
            what: "a lock never settles",
        })
    }

    /// The words of all that is waited for; `None` if an entry is gone.
    fn found_of(&self, ticket: &Ticket, names: &[Name], now_ns: u64) -> Option<Vec<Found>> {
        let places = ticket.places().zip(names);
        places
            .map(|(place, name)| self.found_of_place(place, name, Wants::Several, now_ns))
            .collect()
    }

    /// Frees the locks that follow `grant`, which was released; those whose turn it is then are to be woken.
    pub fn release_followers(
        &self,
        grant: &Grant,
        names: &[Name],
        now_ns: u64,
        mut wake: impl FnMut(Wake),
    ) {
        let tag = Engaged::tag_of(grant.token);
        let found = names
            .iter()
            .filter_map(|name| self.find_object(&self.object(Kind::Lock, name)));
        for found in found {
            self.free_follower(found.cell, grant.cell(), tag, now_ns);
            if let Some(next) = self.hand_on_now(found.cell, now_ns) {
                wake(next);
            }
        }
    }

    /// The token of each of these locks under `grant`, by which they were taken together; 0 where it is not
    /// held by that any more.
    pub fn tokens_of(&self, grant: &Grant, names: &[Name]) -> Vec<u64> {
        let tag = Engaged::tag_of(grant.token);
        let of_name = |name| {
            let Some(found) = self.find_object(&self.object(Kind::Lock, name)) else {
                return 0;
            };
            if found.cell == grant.cell() {
                return grant.token;
            }
            let engaged = Engaged::decode(found.state);
            let leader = grant.cell();
            let follows = engaged.role == Role::Follower { leader, tag };
            if is_engaged(found.state) && follows {
                engaged.token
            } else {
                0
            }
        };
        names.iter().map(of_name).collect()
    }
}
