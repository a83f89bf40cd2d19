//! Several checks in one call: all are allowed and all is taken, or nothing is.
//!
//! This file owns what is asked and in which order words are engaged. What an engaged word is, and what others do
//! about one, is in [`super::charge`].
//!
//! 1. *Look*: find each key as a check does, and read its word. Nothing is written, but for keys that are new.
//! 2. *Decide* on all at one time. Checks that one word decides on, of one key or of keys without room, come one
//!    after another. If one is refused, that is the answer, once the words are read again unchanged.
//! 3. *Engage* each word, from the lowest place up, so that two calls over the same keys do not call each other
//!    off. A word that changed since, but for its key and limit, is decided on anew: words that are checked all
//!    the time by others can be had too.
//! 4. *The step*, and then each word gets its value.
//!
//! A single word needs no charge: exchanging it decides.

use super::charge::{CHARGED_MAX, Charge};
use super::place::Place;
use super::reserve::Ask;
use super::{Checked, LimiterRef, settle};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::key;
use crate::limit::{Moment, Verdict};
use crate::limiter_key::{KeyState, LimiterKey, reclaimed_at_ns};
use crate::session::SessionId;
use crate::sync::fence;
use crate::table::ROUNDS_MAX;
use core::sync::atomic::Ordering::Acquire;

/// How often a word is decided on anew that others check all the time, before all is given back and looked at anew.
const TRIES: u32 = 16;
/// Rounds after which a key that is not there is no longer inserted, but decided on as one without room: where
/// there is room for fewer keys than a call has, each may be the idle one that another takes the place of.
const INSERTING_ROUNDS: u32 = if cfg!(loom) { 2 } else { 16 };

/// One of several checks.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// Against which limiter.
    pub limiter: &'a LimiterRef,
    /// Of which key.
    pub key: &'a [u8],
    /// How much of it.
    pub cost: u64,
}

/// One of several checks, on its way.
struct Part<'a> {
    asked: Asked<'a>,
    /// The limiter by the limit of now, where it had to be looked up.
    found: Option<LimiterRef>,
    /// The same by the key's override, where it has one.
    overriding: Option<LimiterRef>,
    place: Place,
    /// The value that it was decided on, the verdict, and the tag of its word right after.
    value: u128,
    verdict: Verdict,
    tag: u64,
}

impl Part<'_> {
    fn limiter(&self) -> &LimiterRef {
        let own = self.found.as_ref().unwrap_or(self.asked.limiter);
        self.overriding.as_ref().unwrap_or(own)
    }

    fn checked(&self, is_taken: bool, moment: Moment) -> Checked {
        let (limiter, cost) = (self.limiter(), self.asked.cost);
        let is_allowed = matches!(self.verdict, Verdict::Allowed { .. });
        let decision = if is_taken || !is_allowed {
            limiter
                .prepared
                .decision(self.verdict, self.value, moment, cost)
        } else {
            limiter.prepared.peek(self.place.state.value(), moment)
        };
        Checked {
            decision,
            is_overflow: self.place.is_overflow,
            wait_ns: 0,
            at: self.place.at,
            tag: self.tag,
            family: limiter.family,
        }
    }
}

/// All parts, and the order of their words: parts with one word lie side by side in it.
struct Parts<'a> {
    all: [Option<Part<'a>>; CHARGED_MAX],
    order: [u8; CHARGED_MAX],
    len: usize,
}

impl<'a> Parts<'a> {
    fn get(&mut self, index: u8) -> Option<&mut Part<'a>> {
        self.all.get_mut(usize::from(index))?.as_mut()
    }

    fn at(&self, position: usize) -> Option<&Part<'a>> {
        self.all[usize::from(self.order[position])].as_ref()
    }

    /// Puts the words in the order of their places, and the parts of one word in that of the call.
    fn sort(&mut self) {
        for position in 0..self.len {
            self.order[position] = position as u8;
        }
        let (parts, order) = (&self.all, &mut self.order[..self.len]);
        let at = |index: u8| parts[usize::from(index)].as_ref().map(|part| part.place.at);
        order.sort_unstable_by_key(|index| (at(*index), *index));
    }

    /// The positions of the parts of the word at which the part at `from` is.
    fn word(&self, from: usize) -> core::ops::Range<usize> {
        let at = |position| self.at(position).map(|part| part.place.at);
        let mut to = from + 1;
        while to < self.len && at(to) == at(from) {
            to += 1;
        }
        from..to
    }

    /// Decides on the parts of one word, one after another, from `state`: the state after, if none is refused.
    fn decide(
        &mut self,
        word: core::ops::Range<usize>,
        state: KeyState,
        moment: Moment,
    ) -> Option<KeyState> {
        let (mut after, mut is_refused) = (state, false);
        for position in word {
            let index = self.order[position];
            let part = self.get(index)?;
            let (cost, value) = (part.asked.cost, after.value());
            let verdict = part.limiter().prepared.check(value, moment, cost);
            match verdict {
                Verdict::Allowed { new_value } if cost != 0 => after = after.admitted(new_value),
                Verdict::Allowed { .. } => {}
                Verdict::Refused | Verdict::Never => is_refused = true,
            }
            (part.value, part.verdict, part.tag) = (value, verdict, after.tag());
        }
        (!is_refused).then_some(after)
    }
}

/// One word of a call, and what becomes of it.
#[derive(Clone, Copy)]
struct Step {
    /// Position of its first part.
    first: usize,
    at: usize,
    before: KeyState,
    after: KeyState,
}

/// How a round went.
enum Round {
    /// All is taken.
    Taken,
    /// Refused, and nothing is.
    Refused,
    /// Others got in between: look again.
    Disturbed,
}

impl Engine {
    /// Checks `cost` of each key, and takes all of it if all are allowed; else nothing. `each` gets the index and the
    /// answer of each check, in the order in which they were asked. Where one is refused, an answer of another says
    /// what a check of cost 0 would. Whether all are allowed.
    ///
    /// A key that is named twice, under one limiter, is checked twice, one after the other.
    ///
    /// `near`: where to look first for what a call needs, best a number for each thread. Two exchanges a word and
    /// three more, where the keys are there; no write when refused.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] for none or more than [`CHARGED_MAX`] checks; [`Error::Full`] and
    /// [`Error::ShareExceeded`] if there are as many such calls under way as can be; else as
    /// [`check`](Self::check). Nothing was taken then.
    pub fn check_all<'a>(
        &self,
        asked: impl IntoIterator<Item = Asked<'a>>,
        by: SessionId,
        near: u32,
        now_ns: u64,
        mut each: impl FnMut(usize, Checked),
    ) -> Result<bool> {
        let mut parts = Parts {
            // Not a constant: that would be copied whole.
            all: core::array::from_fn(|_| None),
            order: [0; CHARGED_MAX],
            len: 0,
        };
        for asked in asked {
            if let Some(part) = parts.all.get_mut(parts.len) {
                key::check_name("key", asked.key)?;
                *part = Some(Part {
                    asked,
                    found: None,
                    overriding: None,
                    place: Place {
                        at: 0,
                        state: KeyState(0),
                        is_overflow: false,
                    },
                    value: 0,
                    verdict: Verdict::Never,
                    tag: 0,
                });
            }
            parts.len += 1;
        }
        if !(1..=CHARGED_MAX).contains(&parts.len) {
            return Err(Error::OutOfRange {
                what: "number of limits in one call",
                value: parts.len as u64,
                min: 1,
                max: CHARGED_MAX as u64,
            });
        }
        let (is_allowed, moment) = self.charge_all(&mut parts, by, near, now_ns)?;
        for (index, part) in parts.all.iter().flatten().enumerate() {
            each(index, part.checked(is_allowed, moment));
        }
        Ok(is_allowed)
    }

    fn charge_all(
        &self,
        parts: &mut Parts<'_>,
        by: SessionId,
        near: u32,
        now_ns: u64,
    ) -> Result<(bool, Moment)> {
        for round in 0..ROUNDS_MAX {
            if !self.find_places(parts, round < INSERTING_ROUNDS, by, now_ns)? {
                continue;
            }
            // As for one check whose key had to be looked for: not before what was reclaimed was idle.
            let moment = self
                .region
                .moment(now_ns.max(reclaimed_at_ns(&self.region)));
            match self.charge_round(parts, by, near, moment)? {
                Round::Taken => return Ok((true, moment)),
                Round::Refused => return Ok((false, moment)),
                Round::Disturbed => {}
            }
        }
        Err(Error::Damaged {
            what: "several limits at once never settle",
        })
    }

    /// Finds where each part is decided on; `false` if something changed meanwhile.
    fn find_places(
        &self,
        parts: &mut Parts<'_>,
        may_insert: bool,
        by: SessionId,
        now_ns: u64,
    ) -> Result<bool> {
        for part in parts.all.iter_mut().flatten() {
            let Asked { limiter, key, cost } = part.asked;
            let entry = LimiterKey::new(self, limiter, key);
            let known = match part.found {
                None => self.place_known(&entry),
                // What had to be looked for once may be no better known now.
                Some(_) => None,
            };
            (part.place, part.overriding) = if let Some(known) = known {
                known
            } else {
                let limiter = part.found.get_or_insert_with(|| limiter.clone());
                let ask = Ask::check(cost);
                match self.place(limiter, &entry, ask, may_insert.then_some(by), now_ns)? {
                    Some(place) => place,
                    None => return Ok(false),
                }
            };
            let limiter = part.limiter();
            // Acquire: after the state. A slot still the limiter's own means that the state was, too.
            if self.region.word(limiter.control_at).load(Acquire) != limiter.control {
                part.found.get_or_insert_with(|| part.asked.limiter.clone());
                return Ok(false);
            }
        }
        parts.sort();
        Ok(true)
    }

    fn charge_round(
        &self,
        parts: &mut Parts<'_>,
        by: SessionId,
        near: u32,
        moment: Moment,
    ) -> Result<Round> {
        let mut steps = [None; CHARGED_MAX];
        let (mut count, mut first) = (0, 0);
        let (mut is_refused, mut is_all_written) = (false, true);
        while first < parts.len {
            let word = parts.word(first);
            let next = word.end;
            let Some(place) = parts.at(first).map(|part| part.place) else {
                break;
            };
            let state_of = |position| parts.at(position).map(|part| part.place.state);
            if word
                .clone()
                .any(|position| state_of(position) != Some(place.state))
            {
                // It changed between the looks.
                return Ok(Round::Disturbed);
            }
            match parts.decide(word, place.state, moment) {
                None => is_refused = true,
                Some(after) if after == place.state => is_all_written = false,
                Some(after) => {
                    steps[count] = Some(Step {
                        first,
                        at: place.at,
                        before: place.state,
                        after,
                    });
                    count += 1;
                }
            }
            first = next;
        }
        if is_refused || !is_all_written {
            // Nothing to write to some; but the keys that were compared must have been these states'. And what did
            // not change between two looks was so at one moment.
            fence(Acquire);
            let is_unchanged =
                |part: &Part<'_>| self.region.wide(part.place.at).load() == part.place.state.0;
            if !parts.all.iter().flatten().all(is_unchanged) {
                return Ok(Round::Disturbed);
            }
        }
        if is_refused {
            return Ok(Round::Refused);
        }
        match steps[..count] {
            [] => Ok(Round::Taken),
            [Some(step)] => {
                let word = self.region.wide(step.at);
                Ok(match word.compare_exchange(step.before.0, step.after.0) {
                    Ok(()) => Round::Taken,
                    Err(_) => Round::Disturbed,
                })
            }
            ref mut steps => {
                let charge = self.claim_charge(by, near)?;
                let taken = self.charge_words(parts, steps, &charge, moment);
                charge.free();
                taken
            }
        }
    }

    /// Engages all words, decides, and gives each its value: the one after, or the one before if others got in
    /// between.
    fn charge_words(
        &self,
        parts: &mut Parts<'_>,
        steps: &mut [Option<Step>],
        charge: &Charge<'_>,
        moment: Moment,
    ) -> Result<Round> {
        let mut engaged = [KeyState(0); CHARGED_MAX];
        let (mut count, mut failed) = (0, None);
        for step in steps.iter_mut().flatten() {
            match self.engage_word(parts, step, charge, count, moment) {
                Ok(Some(state)) => engaged[count] = state,
                Ok(None) => break,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
            count += 1;
        }
        let is_taken = count == steps.len() && charge.decide();
        for (step, engaged) in steps.iter().flatten().zip(&engaged[..count]) {
            let state = if is_taken { step.after } else { step.before };
            // Losing means that somebody else did it.
            let _ = self
                .region
                .wide(step.at)
                .compare_exchange(engaged.0, state.0);
        }
        match failed {
            Some(error) => Err(error),
            None if is_taken => Ok(Round::Taken),
            None => Ok(Round::Disturbed),
        }
    }

    /// Engages one word, deciding anew if others changed its value: its engaged form. `None` if it has another key or
    /// limit by now, or has no room any more.
    fn engage_word(
        &self,
        parts: &mut Parts<'_>,
        step: &mut Step,
        charge: &Charge<'_>,
        entry: usize,
        moment: Moment,
    ) -> Result<Option<KeyState>> {
        let word = self.region.wide(step.at);
        for _ in 0..TRIES {
            let engaged = charge.enter(entry, step.at, step.before, step.after);
            if word.compare_exchange(step.before.0, engaged.0).is_ok() {
                return Ok(Some(engaged));
            }
            let now = KeyState(settle(&self.region, step.at)?);
            if now.tag() != step.before.tag() {
                break;
            }
            let word = parts.word(step.first);
            let Some(after) = parts.decide(word, now, moment) else {
                break;
            };
            (step.before, step.after) = (now, after);
        }
        Ok(None)
    }
}
