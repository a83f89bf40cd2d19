//! The definitions of joint limiters: the slots that their limits lie in, and opening.
//!
//! Owns which limits a name has. Decides on no key.
//!
//! A joint limiter's name is an object whose value is the number of its slot plus 1, or 0 while it has none. The
//! exchange that sets it makes the limiter; from then on its slot never changes. A slot that nobody's name points to
//! is whose it says, for as long as that session lives.
//!
//! | bytes | field | written by |
//! |---|---|---|
//! | 0..8 | *control* ([`crate::slot`]) | exchange |
//! | 8..16 | hash of the limiter's name, which seeds its keys' hash | its claimant |
//! | 16..20 | the limiter name's cell | its claimant |
//! | 20..24 | how many limits | its claimant |
//! | 24..264 | the limits, as [`Prepared::encode`] gives them | its claimant |
//! | 264..268 | generation of the claimant's line, in full: whose share it counts against | its claimant |
//! | 384..512 | *overflow*: an entry ([`super::entry`]), of all keys that found no room | exchange |

use super::entry::{self, LIMITS_MAX};
use super::state::State;
use super::{JointRef, Limits};
use crate::engine::Engine;
use crate::error::{Error, JOINT_LIMITER, Result};
use crate::key::Hasher;
use crate::limit::{Limit, PREPARED_WORDS, Prepared};
use crate::object::{Kind, Name, Objects, Plain};
use crate::readable::Readable;
use crate::region::{JOINTS, Region};
use crate::session::{SessionId, Sessions};
use crate::slot::Control;
use crate::sync::Word;
use crate::table::{Found, LIVE, ROUNDS_MAX, phase};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

const FAMILY: usize = 8;
const CELL: usize = 16;
const COUNT: usize = 20;
const LIMITS_AT: usize = 24;
const CREATOR: usize = LIMITS_AT + LIMITS_MAX * PREPARED_WORDS * 8;
const OVERFLOW: usize = 384;

const _: () = assert!(CREATOR + 4 <= OVERFLOW);

/// The hash function of the keys of the limiter in a slot.
pub(crate) fn hasher(region: &Region, id: u32) -> Hasher {
    let family = region.word(region.joint_at(id) + FAMILY).load(Acquire);
    region.family_hasher(family)
}

/// Byte offset of the overflow of the limiter in a slot.
pub(crate) fn overflow_at(region: &Region, id: u32) -> usize {
    region.joint_at(id) + OVERFLOW
}

/// The limits in a slot that is named; `None` if its words are none that limits have.
pub(crate) fn limits(region: &Region, id: u32) -> Option<Limits> {
    let at = region.joint_at(id);
    // Relaxed: written before the slot was named, which whoever asks has seen.
    let count = region.half(at + COUNT).load(Relaxed) as usize;
    let read = |i: usize| {
        let mut words = [0; PREPARED_WORDS];
        for (j, word) in words.iter_mut().enumerate() {
            let offset = LIMITS_AT + (i * PREPARED_WORDS + j) * 8;
            *word = region.word(at + offset).load(Relaxed);
        }
        Prepared::decode(words)
    };
    let mut limits = [read(0)?; LIMITS_MAX];
    for (i, limit) in limits.iter_mut().enumerate().take(count).skip(1) {
        *limit = read(i)?;
    }
    Limits::new(limits.get(..count)?)
}

/// The slot that a name's value points to.
fn slot_of(value: u64) -> Option<u32> {
    value.checked_sub(1).map(|slot| slot as u32 % JOINTS)
}

impl Engine {
    /// Opens the joint limiter `name`, creating it with `limits` if there is none: 2 to 6 of any algorithms, each key
    /// being under all of them. Their order is part of it.
    ///
    /// # Errors
    ///
    /// [`Error::JointLimitsDiffer`] if there is one with others, [`Error::OutOfRange`] for another number of
    /// limits, [`Error::Full`] for more joint limiters than there is room for.
    pub fn open_joint(
        &self,
        name: &[u8],
        limits: &[Limit],
        by: SessionId,
        now_ns: u64,
    ) -> Result<JointRef> {
        let name = Name::new(&self.region, "joint limiter name", name)?;
        let object = self.object(Kind::JointLimiter, &name);
        let prepared: Vec<Prepared> = limits.iter().map(Limit::prepare).collect();
        let asked = Limits::new(&prepared).ok_or(Error::OutOfRange {
            what: "number of limits declared together",
            value: limits.len() as u64,
            min: 2,
            max: LIMITS_MAX as u64,
        })?;
        for _ in 0..ROUNDS_MAX {
            let found = self.insert_object(&object, by, now_ns)?;
            if !found.is_unchanged(&self.region) {
                continue;
            }
            let slot = slot_of(Plain::decode(found.state).value);
            match slot.and_then(|id| self::limits(&self.region, id).map(|limits| (id, limits))) {
                Some((id, existing)) if existing == asked => {
                    return Ok(JointRef {
                        hasher: self.region.family_hasher(name.raw_hash()),
                        name,
                        id,
                        limits: existing,
                    });
                }
                Some((_, existing)) => {
                    return Err(Error::JointLimitsDiffer {
                        limiter: Readable(&name.to_vec()).to_string(),
                        existing: existing.to_string(),
                        asked: asked.to_string(),
                    });
                }
                // New; or what was written of it is lost.
                None => self.name_joint(&name, &found, &asked, by)?,
            }
        }
        Err(Error::Damaged {
            what: "a joint limiter never settles",
        })
    }

    /// Writes limits to a slot and makes it that of the name that was found, unless its word changed since.
    fn name_joint(&self, name: &Name, found: &Found, limits: &Limits, by: SessionId) -> Result<()> {
        let (id, claimed) = self.claim_joint(by)?;
        self.fill_joint(id, limits, name, found.cell);
        let named = Plain::decode(found.state).next(u64::from(id) + 1);
        // Release: the slot's words come before it is named.
        let word = self.region.wide(found.at);
        if word.compare_exchange(found.state, named.encode()).is_err() {
            let control = self.joint_control(id);
            let _ = control.compare_exchange(claimed.0, claimed.freed().0, AcqRel, Relaxed);
        }
        Ok(())
    }

    fn fill_joint(&self, id: u32, limits: &Limits, name: &Name, cell: u32) {
        let at = self.region.joint_at(id);
        let put = |offset, value| self.region.word(at + offset).store(value, Relaxed);
        put(FAMILY, name.raw_hash());
        self.region.half(at + CELL).store(cell, Relaxed);
        self.region
            .half(at + COUNT)
            .store(limits.len() as u32, Relaxed);
        for (i, limit) in limits.iter().enumerate() {
            for (j, word) in limit.encode().into_iter().enumerate() {
                put(LIMITS_AT + (i * PREPARED_WORDS + j) * 8, word);
            }
        }
        entry::reset(&self.region, limits, at + OVERFLOW, id, true);
    }

    fn joint_control(&self, id: u32) -> &Word {
        self.region.word(self.region.joint_at(id))
    }

    /// Claims a slot: a free one, else one whose claimant died before it named it.
    fn claim_joint(&self, by: SessionId) -> Result<(u32, Control)> {
        let generation = Sessions::generation(&self.region, by);
        let words = || (0..JOINTS).map(|id| (id, Control(self.joint_control(id).load(Acquire))));
        if self.has_share() {
            let is_its = |(id, word): &(u32, Control)| {
                // Relaxed here and below: for counting.
                let creator = self.region.half(self.region.joint_at(*id) + CREATOR);
                !word.is_free() && word.claimant() == by && creator.load(Relaxed) == generation
            };
            let used = words().filter(is_its).count() as u64;
            if used >= self.share_of(JOINTS).into() {
                return Err(Error::ShareExceeded {
                    what: JOINT_LIMITER,
                    used,
                });
            }
        }
        let is_free = |(_, word): &(u32, Control)| word.is_free();
        let is_left = |(id, word): &(u32, Control)| {
            !self.sessions.is_alive(&self.region, word.claimant()) && !self.is_joint_named(*id)
        };
        for (id, word) in words().filter(is_free).chain(words().filter(is_left)) {
            let claimed = word.claimed(by);
            if self
                .joint_control(id)
                .compare_exchange(word.0, claimed.0, AcqRel, Relaxed)
                .is_ok()
            {
                self.region
                    .half(self.region.joint_at(id) + CREATOR)
                    .store(generation, Relaxed);
                return Ok((id, claimed));
            }
        }
        Err(Error::Full {
            what: JOINT_LIMITER,
            cap: JOINTS.into(),
        })
    }

    /// Whether there was a slot for `by` to claim, which it does not name.
    #[cfg(all(test, not(loom)))]
    pub(super) fn claim_joint_of(&self, by: SessionId) -> bool {
        self.claim_joint(by).is_ok()
    }

    /// Whether the name that a slot is for points to it.
    fn is_joint_named(&self, id: u32) -> bool {
        let at = self.region.joint_at(id);
        let cell = self.region.half(at + CELL).load(Relaxed);
        if !self.objects.is_present(&self.region, cell) {
            return false;
        }
        let at = self.objects.at(cell);
        let state = self.region.wide(at).load();
        phase(state) == LIVE
            && Objects::is(&self.region, at, Kind::JointLimiter)
            && slot_of(Plain::decode(state).value) == Some(id)
    }

    /// Frees the slots that sessions that had this line claimed and did not name.
    pub(crate) fn end_joint_claims_of(&self, index: u16) {
        for id in 0..JOINTS {
            let control = self.joint_control(id);
            let word = Control(control.load(Acquire));
            if !word.is_free() && word.claimant().index() == index && !self.is_joint_named(id) {
                let _ = control.compare_exchange(word.0, word.freed().0, AcqRel, Relaxed);
            }
        }
    }

    /// The names of the joint limiters that begin with `prefix`, with their limits and how many keys each
    /// has now. Reads both tables whole; stops no one.
    pub fn for_each_joint(&self, prefix: &[u8], mut visit: impl FnMut(Vec<u8>, Vec<Limit>, u64)) {
        let mut keys = vec![0; JOINTS as usize];
        self.joint_keys.for_each(&self.region, |_, _, state| {
            if phase(state) == LIVE {
                keys[(State(state).definition() % JOINTS) as usize] += 1;
            }
        });
        self.objects.for_each(&self.region, |_, at, state| {
            if phase(state) != LIVE || !Objects::is(&self.region, at, Kind::JointLimiter) {
                return;
            }
            let name = Objects::name(&self.region, at);
            if let Some(id) = slot_of(Plain::decode(state).value)
                && let Some(limits) = limits(&self.region, id)
                && name.starts_with(prefix)
            {
                let limits = limits.iter().map(Prepared::definition).collect();
                visit(name, limits, keys[id as usize]);
            }
        });
    }

    /// How many keys the region's joint limiters have now.
    pub fn joint_key_count(&self) -> u64 {
        self.joint_keys.live_count(&self.region)
    }

    /// Whether a live cell of the joint keys table says what such a cell says.
    pub(crate) fn is_joint_key_sound(&self, at: usize, state: u128) -> bool {
        let state = State(state);
        limits(&self.region, state.definition())
            .is_some_and(|limits| entry::check_sound(&self.region, &limits, at, state).is_ok())
    }
}

/// Brings the overflows of a region that nobody uses, whose words may be of different times, into a form that they
/// have in use.
#[cfg(all(not(loom), target_os = "linux"))]
pub(crate) fn settle(region: &Region) {
    for id in 0..JOINTS {
        let at = overflow_at(region, id);
        let state = State(region.wide(at).load());
        if let Some(limits) = limits(region, id)
            && !(phase(state.0) == LIVE && entry::is_sound(region, &limits, at, state))
        {
            entry::reset(region, &limits, at, id, false);
        }
    }
}
