//! Joint limiters: limits declared together, and the check of a key against all of them in one step.
//!
//! This file owns the checks of keys. An entry's words are in [`state`], the steps between their states in [`entry`],
//! which limits a name has in [`definition`]; what a limit means is in [`crate::limit`].
//!
//! A key that is not there yet is inserted; if there is no room for it, the limiter's overflow decides, an entry that
//! all such keys share, and the answer says so. A key inserted later starts at that entry's level: inserting
//! moves it on, so that a check that found no room before cannot charge it after.

pub(crate) mod definition;
pub(crate) mod entry;
pub(crate) mod state;
#[cfg(all(test, not(loom)))]
mod stopped;

#[cfg(all(not(loom), target_os = "linux"))]
pub(crate) use definition::settle;
pub use entry::LIMITS_MAX;
pub use state::COST_MAX;

use self::entry::{Refusals, Values};
use self::state::State;
use crate::chunk;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::joint_key::JointKey;
use crate::key::{self, Hasher, NAME_BYTES_MAX};
use crate::limit::{Decision, Limit, Moment, Prepared, Verdict};
use crate::limiter::Checked;
use crate::limiter_key::reclaimed_at_ns;
use crate::object::Name;
use crate::session::SessionId;
use crate::table::ROUNDS_MAX;
use std::fmt;
use std::ops::Deref;

/// Limits that were declared together: 2 to 6, in their order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Those past the last are as the first.
    all: [Prepared; LIMITS_MAX],
    count: u8,
    /// Whether all are buckets of 64 bits.
    are_narrow: bool,
}

impl Limits {
    /// `None` for another number of limits.
    fn new(limits: &[Prepared]) -> Option<Self> {
        if !(2..=LIMITS_MAX).contains(&limits.len()) {
            return None;
        }
        let mut all = [limits[0]; LIMITS_MAX];
        all[..limits.len()].copy_from_slice(limits);
        let count = limits.len() as u8;
        let are_narrow = limits.iter().all(Prepared::is_narrow);
        Some(Self {
            all,
            count,
            are_narrow,
        })
    }
}

impl Deref for Limits {
    type Target = [Prepared];

    #[inline(always)]
    fn deref(&self) -> &[Prepared] {
        &self.all[..usize::from(self.count).min(LIMITS_MAX)]
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, limit) in self.iter().enumerate() {
            let and = if i == 0 { "" } else { " and " };
            write!(formatter, "{and}{}", limit.definition())?;
        }
        Ok(())
    }
}

/// A joint limiter opened for use: its limits, read once. They never change.
#[derive(Clone)]
pub struct JointRef {
    name: Name,
    pub(crate) id: u32,
    pub(crate) limits: Limits,
    pub(crate) hasher: Hasher,
}

impl JointRef {
    /// The limits, in their order.
    pub fn limits(&self) -> Vec<Limit> {
        self.limits.iter().map(Prepared::definition).collect()
    }

    /// The limiter's name.
    pub fn name(&self) -> &Name {
        &self.name
    }
}

/// The answer to a check by several limits, and the key's state right after. What costs a division is computed when
/// asked for.
#[derive(Clone, Copy)]
#[must_use]
pub struct JointChecked<'a> {
    limits: &'a Limits,
    values: Values,
    refusals: Refusals,
    moment: Moment,
    cost: u64,
    /// Whether the region had no room for the key, so that the entry that such keys share decided.
    pub is_overflow: bool,
}

impl JointChecked<'_> {
    /// Whether every limit admitted the cost.
    #[inline]
    pub fn is_allowed(&self) -> bool {
        self.refusals.are_none()
    }

    /// How many limits there are.
    pub fn len(&self) -> usize {
        self.limits.len()
    }

    /// Whether there are none, which is never so.
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }

    /// What the limit of this index says for itself: it allows what it would have admitted, also where another
    /// refused and nothing was taken. `None` past the last.
    pub fn decision(&self, index: usize) -> Option<Decision> {
        let (limit, value) = (self.limits.get(index)?, self.values[index]);
        let has = |mask: u8| mask >> index & 1 != 0;
        let verdict = if has(self.refusals.never) {
            Verdict::Never
        } else if has(self.refusals.refused) {
            Verdict::Refused
        } else {
            Verdict::Allowed { new_value: value }
        };
        Some(limit.decision(verdict, value, self.moment, self.cost))
    }

    /// [`decision`](Self::decision) in the form of a limiter's answer. Nothing of it can be given back.
    pub fn checked(&self, index: usize) -> Option<Checked> {
        let decision = self.decision(index)?;
        Some(Checked::apart(decision, self.is_overflow))
    }

    /// What each limit says, in their order.
    pub fn decisions(&self) -> impl Iterator<Item = Decision> {
        (0..self.len()).filter_map(|index| self.decision(index))
    }

    /// The index of the limit that refuses longest, the first of those; `None` if all admitted the cost.
    pub fn refused_by(&self) -> Option<usize> {
        let refusing = self.decisions().enumerate();
        let refusing = refusing.filter(|(_, decision)| !decision.is_allowed());
        let longest = refusing.max_by_key(|(index, decision)| {
            // For ever is longer than any wait; of two that are as long, the first.
            let (is_never, wait_ns) = match decision.retry_after_ns() {
                None => (true, 0),
                Some(wait_ns) => (false, wait_ns),
            };
            (is_never, wait_ns, LIMITS_MAX - index)
        });
        longest.map(|(index, _)| index)
    }

    /// The greatest cost that another check at the same moment would be allowed: the least of the limits', and at most
    /// [`COST_MAX`].
    pub fn remaining(&self) -> u64 {
        let remaining = self.decisions().map(|decision| decision.remaining());
        remaining.min().unwrap_or(0).min(COST_MAX)
    }

    /// The most that can be admitted at once: the least of the limits', and at most [`COST_MAX`].
    pub fn limit(&self) -> u64 {
        let limits = self.decisions().map(|decision| decision.limit());
        limits.min().unwrap_or(0).min(COST_MAX)
    }

    /// Nanoseconds after the check's moment at which every limit would admit the same cost if nobody else took any:
    /// `Some(0)` if it was allowed, `None` if it never can be.
    pub fn retry_after_ns(&self) -> Option<u64> {
        self.latest(Decision::retry_after_ns)
    }

    /// The same for a further check of `cost`; above [`COST_MAX`], which is an error, it never can be.
    pub fn wait_ns_for(&self, cost: u64) -> Option<u64> {
        if cost > COST_MAX {
            return None;
        }
        self.latest(|decision| decision.wait_ns_for(cost))
    }

    /// Nanoseconds after the check's moment until nothing is used under any limit if nobody takes any; `None` for
    /// never.
    pub fn reset_after_ns(&self) -> Option<u64> {
        self.latest(Decision::reset_after_ns)
    }

    /// The longest of the limits' times; `None` if one has none.
    fn latest(&self, time_ns: impl Fn(&Decision) -> Option<u64>) -> Option<u64> {
        self.decisions().try_fold(0, |latest_ns: u64, decision| {
            Some(latest_ns.max(time_ns(&decision)?))
        })
    }
}

impl Engine {
    /// Checks `cost` of `key`, at most [`COST_MAX`], against all limits of the limiter, and takes it from all of
    /// them if all allow it. Then, when the key is there, one exchange, on one line if there are two limits; two
    /// and one for each limit where a limit drains for the first time while another does not, and every 1,023 units
    /// of cost after that. No write when refused.
    #[inline]
    pub fn check_joint<'a>(
        &self,
        joint: &'a JointRef,
        key: &[u8],
        cost: u64,
        by: SessionId,
        now_ns: u64,
    ) -> Result<JointChecked<'a>> {
        match self.check_joint_known(joint, key, cost, now_ns) {
            Some(checked) => Ok(checked),
            None => self.check_joint_slowly(joint, key, cost, by, now_ns),
        }
    }

    /// The common case of [`check_joint`](Self::check_joint) alone: a key that is there, undisturbed. `None` says
    /// only that this was not the case.
    #[inline(always)]
    pub fn check_joint_known<'a>(
        &self,
        joint: &'a JointRef,
        key: &[u8],
        cost: u64,
        now_ns: u64,
    ) -> Option<JointChecked<'a>> {
        if key.is_empty() || key.len() > NAME_BYTES_MAX || cost > COST_MAX {
            return None;
        }
        let entry = JointKey::new(self, joint, key);
        let first = self.joint_keys.find_first(&self.region, entry.hash, &entry);
        let (at, state) = match first {
            Some((line, _, state)) => (self.region.offset_of(line), State(state)),
            None => self.find_joint_beyond(joint, key, entry.hash)?,
        };
        self.check_joint_at(joint, at, state, cost, now_ns)
    }

    /// A key of an open entry, wherever it is.
    #[inline(never)]
    fn find_joint_beyond(&self, joint: &JointRef, key: &[u8], hash: u64) -> Option<(usize, State)> {
        let entry = JointKey::hashed(self, joint, key, hash);
        let found = self.joint_keys.find(&self.region, hash, &entry)?;
        let state = State(found.state);
        (!state.is_closed()).then_some((found.at, state))
    }

    /// Decides on an entry whose open state was `state`.
    #[inline(always)]
    fn check_joint_at<'a>(
        &self,
        joint: &'a JointRef,
        at: usize,
        state: State,
        cost: u64,
        now_ns: u64,
    ) -> Option<JointChecked<'a>> {
        let mut values = [0; LIMITS_MAX];
        let (region, limits) = (&self.region, &joint.limits);
        let refusals = entry::check(region, limits, at, state, cost, now_ns, &mut values)?;
        Some(JointChecked {
            limits,
            values,
            refusals,
            moment: region.moment(now_ns),
            cost,
            is_overflow: false,
        })
    }

    /// Not there yet, or disturbed.
    #[cold]
    fn check_joint_slowly<'a>(
        &self,
        joint: &'a JointRef,
        key: &[u8],
        cost: u64,
        by: SessionId,
        now_ns: u64,
    ) -> Result<JointChecked<'a>> {
        key::check_name("key", key)?;
        if cost > COST_MAX {
            return Err(Error::OutOfRange {
                what: "cost of a check by joint limits",
                value: cost,
                min: 0,
                max: COST_MAX,
            });
        }
        let region = &self.region;
        let entry = JointKey::new(self, joint, key);
        let overflow_at = definition::overflow_at(region, joint.id);
        for _ in 0..ROUNDS_MAX {
            // Before the search: an insertion after this moves the overflow on, and the charge fails.
            let overflow = State(region.wide(overflow_at).load());
            let actor = self.actor(by, region.caps().joint_keys);
            let found = self
                .joint_keys
                .find_or_insert(region, &actor, entry.hash, &entry, now_ns);
            let (at, state, is_overflow) = match found {
                Ok(found) => (found.at, State(found.state), false),
                Err(error) if chunk::is_lacking(&error) && self.reclaim_long_names(by, now_ns) => {
                    continue;
                }
                // No room is not the key's fault: the entry that such keys share decides.
                Err(Error::Full { .. } | Error::ShareExceeded { .. } | Error::NoSpace { .. }) => {
                    (overflow_at, overflow, true)
                }
                Err(error) => return Err(error),
            };
            if state.is_closed() {
                entry::open(region, Some(&joint.limits), at, state);
                continue;
            }
            let now_ns = now_ns.max(reclaimed_at_ns(region));
            if let Some(checked) = self.check_joint_at(joint, at, state, cost, now_ns) {
                return Ok(JointChecked {
                    is_overflow,
                    ..checked
                });
            }
            entry::check_sound(region, &joint.limits, at, state)?;
        }
        Err(Error::Damaged {
            what: "a joint key never settles",
        })
    }

    /// What a check of `key` would see, changing nothing: a key that is not there is as the overflow is.
    pub fn peek_joint<'a>(
        &self,
        joint: &'a JointRef,
        key: &[u8],
        now_ns: u64,
    ) -> Result<JointChecked<'a>> {
        key::check_name("key", key)?;
        let region = &self.region;
        let entry = JointKey::new(self, joint, key);
        for _ in 0..ROUNDS_MAX {
            let found = self.joint_keys.find(region, entry.hash, &entry);
            let (at, state) = found.map_or_else(
                || {
                    let at = definition::overflow_at(region, joint.id);
                    (at, region.wide(at).load())
                },
                |found| (found.at, found.state),
            );
            if let Some(values) = entry::seen(region, &joint.limits, at, State(state)) {
                return Ok(JointChecked {
                    limits: &joint.limits,
                    values,
                    refusals: Refusals::default(),
                    moment: region.moment(now_ns),
                    cost: 0,
                    is_overflow: false,
                });
            }
            entry::check_sound(region, &joint.limits, at, State(state))?;
        }
        Err(Error::Damaged {
            what: "a joint key never settles",
        })
    }
}
