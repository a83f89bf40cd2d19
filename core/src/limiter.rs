//! Limiters: named limits, and the check of a key against one.
//!
//! This file owns the checks. Which word decides on a key is in [`place`], which limit a name has in
//! [`definition`], how one is changed for another in [`change`], how a key has one of its own in [`overrides`]
//! and [`uses`], how a place in time is taken ahead in [`reserve`], an admission given back in [`refund`] and
//! several taken together in [`several`]; what a limit means is in [`crate::limit`].
//!
//! # A check
//!
//! Load the key's state word, ask the pure function, exchange the word. Refused: nothing is written.
//! A key that is not there yet is inserted; if there is no room for it, the limiter's shared overflow
//! bucket decides, and the decision says so. A key inserted later starts at that bucket's level:
//! inserting moves the bucket to its next generation, so that a check that found no room before
//! cannot charge the bucket after.

mod change;
mod charge;
mod check;
mod definition;
mod overrides;
mod place;
mod refund;
mod reserve;
mod several;
#[cfg(all(test, not(loom)))]
mod stopped;
mod uses;

pub use charge::CHARGED_MAX;
pub use refund::Refunded;
pub use several::Asked;

pub(crate) use charge::settle;
#[cfg(all(not(loom), target_os = "linux"))]
pub(crate) use charge::settle_all;
pub(crate) use definition::{first_value, hasher, name_cell, overflow, overflow_at, prepared};
#[cfg(all(not(loom), target_os = "linux"))]
pub(crate) use overrides::unsettle;
pub(crate) use overrides::{idle_override, limit_of_new};
#[cfg(loom)]
pub(crate) use {
    definition::{CELL, USES},
    uses::slots_end,
};

use self::reserve::Ask;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::key::{self, Hasher, NAME_BYTES_MAX};
use crate::limit::{Decision, Limit, Moment, Prepared, Verdict, convert};
use crate::limiter_key::{KeyState, LimiterKey, LimiterKeys, reclaimed_at_ns};
use crate::object::Name;
use crate::readable::Readable;
use crate::region::memory::Line;
use crate::session::SessionId;
use crate::sync::fence;
use crate::table::{LIVE, ROUNDS_MAX, phase};
use core::sync::atomic::Ordering::Acquire;

/// A limiter opened for use: its limit, read once.
///
/// When the limit is changed by somebody else, checks through an old reference still decide by the
/// new one, at the price of looking it up each time; open it again to be fast.
#[derive(Clone)]
pub struct LimiterRef {
    name: Name,
    pub(crate) id: u32,
    /// The cell of its name.
    pub(crate) cell: u32,
    /// The slot that it replaced, whose keys count as this one's.
    pub(crate) previous: Option<u32>,
    control: u64,
    /// Byte offset of the slot's control word.
    control_at: usize,
    prepared: Prepared,
    /// What tells this limiter from others, of this region or another.
    family: u64,
    pub(crate) hasher: Hasher,
}

impl LimiterRef {
    /// The limit that it was opened with.
    pub fn limit(&self) -> Limit {
        self.prepared.definition()
    }

    /// The limiter's name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The state of a key, seen without deciding on it.
    fn peeked(&self, value: u128, moment: Moment) -> Checked {
        let decision = self.prepared.peek(value, moment);
        Checked {
            family: self.family,
            ..Checked::apart(decision, false)
        }
    }

    /// What its user is told when there is no such limiter any more.
    #[cold]
    pub(crate) fn gone(&self) -> Error {
        Error::LimiterGone {
            limiter: Readable(&self.name.to_vec()).to_string(),
        }
    }
}

/// The answer to a check or a reservation. No copies: what it took can be given back once.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Checked {
    /// The decision and the key's state right after.
    pub decision: Decision,
    /// Whether the region had no room for the key, so that the bucket that such keys share decided.
    pub is_overflow: bool,
    /// How long to wait before acting, in nanoseconds: 0, but for a reservation.
    pub wait_ns: u64,
    /// Byte offset of the word that decided.
    at: usize,
    /// Its [`KeyState::tag`] right after.
    tag: u64,
    /// The limiter's.
    family: u64,
}

impl Checked {
    /// Takes out what can be given back: what is left says the same, and gives nothing back.
    pub fn take(&mut self) -> Self {
        let told = Self {
            wait_ns: self.wait_ns,
            ..Self::apart(self.decision, self.is_overflow)
        };
        core::mem::replace(self, told)
    }

    /// A decision of no word of a limiter's: nothing of it can be given back.
    pub(crate) fn apart(decision: Decision, is_overflow: bool) -> Self {
        Self {
            decision,
            is_overflow,
            wait_ns: 0,
            at: 0,
            tag: 0,
            family: 0,
        }
    }
}

impl Engine {
    /// Checks `cost` of `key` against the limiter, and takes it if allowed. One load and one exchange
    /// on one line when the key is there; no write when refused.
    #[inline]
    pub fn check(
        &self,
        limiter: &LimiterRef,
        key: &[u8],
        cost: u64,
        by: SessionId,
        now_ns: u64,
    ) -> Result<Checked> {
        match self.check_known(limiter, key, cost, now_ns) {
            Some(checked) => Ok(checked),
            None => self.check_slowly(limiter, key, Ask::check(cost), by, now_ns),
        }
    }

    /// The common case of [`check`](Self::check) alone: a key that is there, undisturbed. `None` says
    /// only that this was not the case.
    #[inline(always)]
    pub fn check_known(
        &self,
        limiter: &LimiterRef,
        key: &[u8],
        cost: u64,
        now_ns: u64,
    ) -> Option<Checked> {
        if key.is_empty() || key.len() > NAME_BYTES_MAX {
            return None;
        }
        self.check_entry(&LimiterKey::new(self, limiter, key), cost, now_ns)
    }

    #[inline(always)]
    fn check_entry(&self, entry: &LimiterKey<'_>, cost: u64, now_ns: u64) -> Option<Checked> {
        let first = self
            .limiter_keys
            .find_first(&self.region, entry.hash, entry);
        let ask = Ask::check(cost);
        let Some((line, _, state)) = first else {
            let (line, state) = self.find_beyond(entry.limiter, entry.key.bytes, entry.hash)?;
            return self.check_line(entry.limiter, line, state, ask, now_ns, KeyState::admitted);
        };
        // Found plainly, and so not marked: the word after differs in its value alone.
        self.check_line(
            entry.limiter,
            line,
            state,
            ask,
            now_ns,
            KeyState::with_value,
        )
    }

    /// Decides on a key found in `line` with `state`, under the limiter's own limit; `None` if the key
    /// or its limit changed meanwhile. `admitted` makes the state after an admission from that before.
    #[inline(always)]
    fn check_line(
        &self,
        limiter: &LimiterRef,
        line: Line<'_>,
        state: u128,
        ask: Ask,
        now_ns: u64,
        admitted: impl FnOnce(KeyState, u128) -> KeyState,
    ) -> Option<Checked> {
        let state = KeyState(state);
        // Acquire: after the state. A slot still the limiter's own means that the state was, too.
        if self.region.word(limiter.control_at).load(Acquire) != limiter.control {
            return None;
        }
        let moment = self.region.moment(now_ns);
        let value = state.value();
        let (verdict, wait_ns) = ask.decide(&limiter.prepared, value, moment);
        let mut after = state;
        match verdict {
            Verdict::Allowed { new_value } if ask.cost != 0 => {
                // Release: nothing but itself. Acquire: the caller goes on after its admission.
                after = admitted(state, new_value);
                line.state().compare_exchange(state.0, after.0).ok()?;
            }
            _ => {
                // Nothing to write; but the key that was compared must have been this state's.
                fence(Acquire);
                if line.state().load() != state.0 {
                    return None;
                }
            }
        }
        let decision = limiter.prepared.decision(verdict, value, moment, ask.cost);
        Some(Checked {
            decision,
            is_overflow: false,
            wait_ns,
            at: self.region.offset_of(line),
            tag: after.tag(),
            family: limiter.family,
        })
    }

    /// Not there yet, or disturbed.
    #[cold]
    fn check_slowly(
        &self,
        limiter: &LimiterRef,
        key: &[u8],
        ask: Ask,
        by: SessionId,
        now_ns: u64,
    ) -> Result<Checked> {
        key::check_name("key", key)?;
        let entry = LimiterKey::new(self, limiter, key);
        if let Some(checked) = self.check_overridden(&entry, ask, now_ns) {
            return Ok(checked);
        }
        let mut limiter = limiter.clone();
        for _ in 0..ROUNDS_MAX {
            let Some((place, overriding)) =
                self.place(&mut limiter, &entry, ask, Some(by), now_ns)?
            else {
                continue;
            };
            let under = overriding.as_ref().unwrap_or(&limiter);
            let now_ns = now_ns.max(reclaimed_at_ns(&self.region));
            let checked = if place.is_overflow {
                self.check_overflow(under, place.state.0, ask, now_ns)
            } else {
                let line = self.region.line(place.at);
                self.check_line(under, line, place.state.0, ask, now_ns, KeyState::admitted)
            };
            if let Some(checked) = checked {
                return Ok(checked);
            }
        }
        Err(Error::Damaged {
            what: "a limiter key never settles",
        })
    }

    fn check_overflow(
        &self,
        limiter: &LimiterRef,
        bucket: u128,
        ask: Ask,
        now_ns: u64,
    ) -> Option<Checked> {
        let state = KeyState(bucket);
        let moment = self.region.moment(now_ns);
        let (verdict, wait_ns) = ask.decide(&limiter.prepared, state.value(), moment);
        let after = match verdict {
            Verdict::Allowed { new_value } if ask.cost != 0 => state.admitted(new_value),
            _ => state,
        };
        let word = overflow(&self.region, limiter.id);
        word.compare_exchange(bucket, after.0).ok()?;
        let decision = limiter
            .prepared
            .decision(verdict, state.value(), moment, ask.cost);
        Some(Checked {
            decision,
            is_overflow: true,
            wait_ns,
            at: overflow_at(&self.region, limiter.id),
            tag: after.tag(),
            family: limiter.family,
        })
    }

    /// What a check of `key` would see, changing nothing: a key that is not there is full, or at the
    /// overflow bucket's level.
    pub fn peek(&self, limiter: &LimiterRef, key: &[u8], now_ns: u64) -> Result<Checked> {
        key::check_name("key", key)?;
        let mut limiter = limiter.clone();
        for _ in 0..ROUNDS_MAX {
            if !self.is_current_limit(&limiter) {
                limiter = self.reopened(&limiter)?;
                continue;
            }
            let moment = self.region.moment(now_ns);
            let entry = LimiterKey::new(self, &limiter, key);
            let Some(found) = self.limiter_keys.find(&self.region, entry.hash, &entry) else {
                let overriding = self.override_for(&limiter, key);
                let under = overriding.as_ref().unwrap_or(&limiter);
                let bucket = settle(&self.region, overflow_at(&self.region, under.id))?;
                return Ok(under.peeked(KeyState(bucket).value(), moment));
            };
            let state = KeyState(found.state);
            if state.is_engaged() {
                settle(&self.region, found.at)?;
                continue;
            }
            let overriding = self.overriding(&limiter, state.limit());
            if overriding.is_none() && state.limit() != limiter.id {
                let Some(change) = self.change_to(&limiter, state.limit()) else {
                    limiter = self.reopened(&limiter)?;
                    continue;
                };
                let value = change
                    .limits
                    .map_or(0, |(old, new)| convert(&old, state.value(), &new, moment));
                return Ok(limiter.peeked(value, moment));
            }
            let under = overriding.as_ref().unwrap_or(&limiter);
            let (line, ask) = (self.region.line(found.at), Ask::check(0));
            let checked = self.check_line(under, line, state.0, ask, now_ns, KeyState::admitted);
            if let Some(checked) = checked {
                return Ok(checked);
            }
        }
        Err(Error::Damaged {
            what: "a limiter key never settles",
        })
    }

    /// Checks each key, in order, for the same cost: as [`check`](Self::check) one by one, with the
    /// memory of the next ones fetched ahead. `each` gets the index of a key and its answer, until it returns
    /// false.
    pub fn check_batch<K: AsRef<[u8]>>(
        &self,
        limiter: &LimiterRef,
        keys: &[K],
        cost: u64,
        by: SessionId,
        now_ns: u64,
        mut each: impl FnMut(usize, Checked) -> bool,
    ) -> Result<()> {
        // As many misses in flight as a core keeps apart, and few enough to stay in the first cache.
        const AHEAD: usize = 32;
        for key in keys {
            key::check_name("key", key.as_ref())?;
        }
        for (group, keys) in keys.chunks(AHEAD).enumerate() {
            let mut entries: [Option<LimiterKey<'_>>; AHEAD] = [const { None }; AHEAD];
            for (entry, key) in entries.iter_mut().zip(keys) {
                let ahead = LimiterKey::new(self, limiter, key.as_ref());
                self.limiter_keys.prefetch(&self.region, ahead.hash);
                *entry = Some(ahead);
            }
            for (i, entry) in entries.iter().flatten().enumerate() {
                let checked = match self.check_entry(entry, cost, now_ns) {
                    Some(checked) => checked,
                    None => {
                        self.check_slowly(limiter, entry.key.bytes, Ask::check(cost), by, now_ns)?
                    }
                };
                if !each(group * AHEAD + i, checked) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// How many keys the region's limiters have now.
    pub fn limiter_key_count(&self) -> u64 {
        self.limiter_keys.live_count(&self.region)
    }

    /// Bytes that these keys take in the region: each its cell, its share of the block's header line,
    /// and the chunks of a key too long for its cell. A region is sized so that the table is 65 %
    /// full at the cap. Reads the whole table.
    pub fn limiter_key_bytes(&self) -> u64 {
        let mut bytes = 0;
        self.limiter_keys.for_each(&self.region, |_, at, state| {
            if phase(state) == LIVE {
                bytes += LimiterKeys::bytes(&self.region, at, state);
            }
        });
        bytes
    }
}
