//! The objects table: locks, semaphores, fences, counters, limiter names, overrides, slots of concurrency limiters'
//! keys and onces, one 64-byte cell each.
//!
//! | bytes | field |
//! |---|---|
//! | 0..16 | state word, below and in the kind's own file |
//! | 16..24 | *meta*: bits 0..8 kind, 8..24 name length, 24..56 home block, 56..64 part |
//! | 24..48 | the name, if at most 24 bytes; else its hash and the index of its first chunk |
//! | 48..64 | two words of the kind's own |
//!
//! State words that do not belong to a kind:
//!
//! | phase | bits |
//! |---|---|
//! | EMPTY, RETIRED | 75..128 serial |
//! | CLAIMED | 3..9 session generation, 11..23 session, 23..55 home block, 75..128 serial |
//!
//! A live lock or once keeps its serial, which is its token, in the same bits ([`crate::lock`],
//! [`crate::once`]). The other kinds hold one 64-bit value, and share one form ([`Plain`]):
//!
//! | bits | field |
//! |---|---|
//! | 0..3 | phase |
//! | 11..64 | serial |
//! | 64..128 | value |

mod name;

pub use name::Name;
pub(crate) use name::parts_of_pair;

use self::name::{FAMILY, INLINE};
use crate::admission::is_queued;
use crate::chunk;
use crate::counter;
use crate::engine::Engine;
use crate::error::Result;
use crate::key;
use crate::limiter;
use crate::lock;
use crate::lock::coarse::is_in_use;
use crate::lock::engaged::is_engaged;
use crate::once;
use crate::permit;
use crate::pool::{Pool, is_pooled};
use crate::region::memory::Line;
use crate::region::{Region, Section};
use crate::session::SessionId;
use crate::table::{
    CLAIMED, CellOwner, Claim, EMPTY, Entry, Flavour, Idle, LIVE, RETIRED, Table, field, phase,
};
use crate::waiter;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

pub(crate) const META: usize = 16;
/// Bits of *meta* that are not part of the object's identity.
const HOME: u64 = 0xffff_ffff << 24;
const NAME: usize = 24;
/// First word of the kind's own.
pub(crate) const OWN: usize = 48;

const SERIAL: u32 = 75;
/// Bits of a serial, and so of a token.
pub(crate) const TOKEN_BITS: u32 = 53;
/// The highest serial, and so the highest token: 2^53 - 1, which a JSON number can carry exactly.
pub const TOKEN_MAX: u64 = (1 << TOKEN_BITS) - 1;

/// What an object is; part of its identity beside its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Lock = 1,
    Fence = 2,
    Limiter = 3,
    Counter = 4,
    Once = 5,
    /// A part of a striped counter.
    Stripe = 6,
    Semaphore = 7,
    /// A limit of its own for one key of a limiter: the name is that pair.
    Override = 8,
    JointLimiter = 9,
    /// The definition of a concurrency limiter.
    Concurrency = 10,
    /// What is held of one key of it.
    Slots = 11,
}

impl Kind {
    /// Bytes before what users call the name, which say what the object is of.
    fn family_bytes(kind: u8) -> usize {
        if kind == Self::Slots as u8 { FAMILY } else { 0 }
    }
}

pub(crate) fn serial(state: u128) -> u64 {
    field(state, SERIAL, TOKEN_BITS)
}

fn with_serial(phase: u128, serial: u64) -> u128 {
    phase | u128::from(serial.min(TOKEN_MAX)) << SERIAL
}

/// The state of a live fence, counter, limiter name or override.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plain {
    pub(crate) serial: u64,
    pub(crate) value: u64,
}

impl Plain {
    pub(crate) fn decode(state: u128) -> Self {
        Self {
            serial: field(state, 11, TOKEN_BITS),
            value: field(state, 64, 64),
        }
    }

    /// With another value, and a serial that tells the word from every one before.
    pub(crate) fn next(self, value: u64) -> Self {
        Self {
            serial: self.serial + 1,
            value,
        }
    }

    pub(crate) fn encode(self) -> u128 {
        LIVE | u128::from(self.serial.min(TOKEN_MAX)) << 11 | u128::from(self.value) << 64
    }
}

pub(crate) struct Objects;

impl Objects {
    pub(crate) fn kind(region: &Region, at: usize) -> u8 {
        // Relaxed here and for the name: written before the cell went LIVE, which its reader acquired.
        region.word(at + META).load(Relaxed) as u8
    }

    /// Whether a cell is of this kind.
    pub(crate) fn is(region: &Region, at: usize, kind: Kind) -> bool {
        Self::kind(region, at) == kind as u8
    }

    /// What tells the objects of one name apart: kind, and from bit 8 on the part.
    pub(crate) fn kind_and_part(region: &Region, at: usize) -> u64 {
        let meta = region.word(at + META).load(Relaxed);
        meta & 0xff | meta >> 56 << 8
    }

    /// Whether a cell is a lock's.
    pub(crate) fn is_lock(region: &Region, at: usize) -> bool {
        Self::is(region, at, Kind::Lock)
    }

    /// Whether a cell is of a kind that is waited for.
    pub(crate) fn has_queue(region: &Region, at: usize) -> bool {
        [Kind::Lock, Kind::Semaphore, Kind::Slots]
            .map(|kind| kind as u8)
            .contains(&Self::kind(region, at))
    }

    /// Whether a cell is the name of a limiter of whatever kind, whose value 0 says nothing yet.
    fn is_limiter(region: &Region, at: usize) -> bool {
        [Kind::Limiter, Kind::JointLimiter, Kind::Concurrency]
            .map(|kind| kind as u8)
            .contains(&Self::kind(region, at))
    }

    /// Whether a cell is of a kind that has tokens.
    pub(crate) fn has_tokens(region: &Region, at: usize) -> bool {
        [Kind::Lock, Kind::Semaphore, Kind::Slots, Kind::Once]
            .map(|kind| kind as u8)
            .contains(&Self::kind(region, at))
    }

    /// What a cell says of its kind and name, to be compared with what it said before.
    pub(crate) fn identity(region: &Region, at: usize) -> [u64; 4] {
        [META, NAME, NAME + 8, NAME + 16].map(|word| region.word(at + word).load(Relaxed))
    }

    fn name_len(region: &Region, at: usize) -> usize {
        (region.word(at + META).load(Relaxed) >> 8 & 0xffff) as usize
    }

    /// Whether `name`, read from a cell, is all that the cell says it is.
    pub(crate) fn has_whole_name(region: &Region, at: usize, name: &[u8]) -> bool {
        let is_hashed = name.len() <= INLINE
            || region.word(at + NAME).load(Relaxed) == region.hasher.hash(name);
        let kind = Self::kind(region, at);
        let family = Kind::family_bytes(kind).min(name.len());
        let is_name = if kind == Kind::Override as u8 {
            parts_of_pair(name).is_some()
        } else {
            key::check_name("name", &name[family..]).is_ok()
        };
        name.len() == Self::name_len(region, at) && is_name && is_hashed
    }

    /// Whether the name in a cell is in chunks.
    pub(crate) fn is_long(region: &Region, at: usize) -> bool {
        Self::name_len(region, at) > INLINE
    }

    /// The name in a cell; valid if the state word is unchanged after.
    pub(crate) fn name(region: &Region, at: usize) -> Vec<u8> {
        let len = Self::name_len(region, at);
        if len > INLINE {
            return chunk::read(region, region.word(at + NAME + 8).load(Relaxed) as u32, len);
        }
        let mut name: Vec<u8> = (0..INLINE / 8)
            .flat_map(|i| region.word(at + NAME + i * 8).load(Relaxed).to_le_bytes())
            .collect();
        name.truncate(len);
        name
    }

    /// A name that was read from a cell, as users know it.
    pub(crate) fn told(region: &Region, at: usize, mut name: Vec<u8>) -> Vec<u8> {
        let family = Kind::family_bytes(Self::kind(region, at)).min(name.len());
        name.drain(..family);
        name
    }

    /// Which limiter a key's slots are of.
    pub(crate) fn family(region: &Region, at: usize) -> u32 {
        if Self::is_long(region, at) {
            let first = region.word(at + NAME + 8).load(Relaxed) as u32;
            let [family] = key::words(&chunk::read(region, first, FAMILY));
            return family as u32;
        }
        region.word(at + NAME).load(Relaxed) as u32
    }
}

impl Flavour for Objects {
    const CELL_BYTES: usize = 64;
    const WHAT: &'static str =
        "lock, semaphore, fence, counter, limiter, override, key of a concurrency limiter or once";
    const COUNTER: usize = 0;

    fn section(region: &Region) -> &Section {
        &region.geometry.objects
    }

    fn cap(region: &Region) -> u32 {
        region.caps().objects
    }

    fn claimed(empty: u128, claim: Claim) -> u128 {
        with_serial(CLAIMED, serial(empty))
            | u128::from(claim.session.generation) << 3
            | u128::from(claim.session.index) << 11
            | u128::from(claim.home) << 23
    }

    fn claim_of(claimed: u128) -> Claim {
        Claim {
            session: SessionId {
                index: field(claimed, 11, 12) as u16,
                generation: field(claimed, 3, 6) as u8,
            },
            home: field(claimed, 23, 32) as u32,
            payload: 0,
        }
    }

    fn live(region: &Region, at: usize, claimed: u128) -> u128 {
        let serial = serial(claimed);
        if Self::has_tokens(region, at) {
            let home = Self::claim_of(claimed).home;
            let blocks = region.geometry.objects.units / region.partitions();
            let partition = (home / blocks).min(region.partitions() - 1);
            // Acquire by the exchange that decided the insertion: no retirement of this name that
            // came before it is missed.
            let floor = region.floor(partition).load(Acquire);
            let last = serial.max(floor);
            match Self::kind(region, at) {
                kind if kind == Kind::Lock as u8 => lock::State::free(last).encode(),
                kind if kind == Kind::Once as u8 => once::State::open(last).encode(),
                _ => Pool::empty(last, false).encode(),
            }
        } else {
            Plain { serial, value: 0 }.encode()
        }
    }

    /// A lock is idle when nobody holds it and nobody waits for it: neither a holder whose lease is
    /// over or whose session is gone counts, nor a waiter that gave up or is gone. A counter is at 0, and a limiter has no
    /// limits yet.
    fn idle(
        region: &Region,
        cell: u32,
        at: usize,
        live: u128,
        now_ns: u64,
        is_alive: &mut dyn FnMut(SessionId) -> bool,
    ) -> Idle {
        if Self::is(region, at, Kind::Counter) {
            return counter::idle(live);
        }
        if Self::is(region, at, Kind::Override) {
            return limiter::idle_override(live);
        }
        if Self::is(region, at, Kind::Once) {
            return once::idle(region, at, live, now_ns, is_alive);
        }
        if !Self::has_tokens(region, at) {
            // A limiter that nobody gave limits: whoever was to found no room for them, or died. From the first on it
            // stays.
            let is_unsaid = Self::is_limiter(region, at) && Plain::decode(live).value == 0;
            return if is_unsaid { Idle::Now } else { Idle::Never };
        }
        let is_held = if is_engaged(live) {
            is_in_use(region, live, is_alive)
        } else if is_pooled(live) {
            // Whose members are all gone, [`Engine::reap_all`] empties first: they name its cell.
            permit::follow_step(region, at, cell, live);
            Pool::decode(live).used > 0
        } else {
            let lock = lock::State::decode(live);
            lock.holder
                .is_some_and(|holder| !lock.has_expired(now_ns / 1_000) && is_alive(holder))
        };
        // A waiter that queues after this look finds its lock's entry gone and queues anew.
        if is_held || (is_queued(live) && waiter::is_awaited(region, cell, now_ns, is_alive)) {
            Idle::Unforeseen
        } else {
            Idle::Now
        }
    }

    fn note_reclaim(_: &Region, _: u64) {}

    fn retired(region: &Region, at: usize, live: u128) -> u128 {
        let last = if Self::has_tokens(region, at) {
            serial(live)
        } else {
            Plain::decode(live).serial
        };
        with_serial(RETIRED, last)
    }

    fn preserve(region: &Region, partition: u32, retired: u128) {
        // AcqRel: before the cell is emptied, so before its name can be inserted anew.
        region
            .floor(partition.min(region.partitions() - 1))
            .fetch_max(serial(retired), AcqRel);
    }

    fn emptied(state: u128) -> u128 {
        with_serial(EMPTY, serial(state) + 1)
    }

    fn home_of(region: &Region, _: &Table<Self>, at: usize, _: u128) -> u32 {
        (region.word(at + META).load(Relaxed) >> 24) as u32
    }
}

/// An object to find where it is not to be inserted.
pub(crate) struct Wanted<'a> {
    pub(crate) kind: Kind,
    /// Which part of what has several objects to one name; 0 for all else.
    pub(crate) part: u8,
    pub(crate) name: &'a Name,
}

/// An object to find or insert.
pub(crate) struct Object<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) kind: Kind,
    /// Which part of what has several objects to one name; 0 for all else.
    pub(crate) part: u8,
    pub(crate) name: &'a Name,
}

impl Wanted<'_> {
    #[inline(always)]
    pub(crate) fn hash(&self) -> u64 {
        key::mix(self.name.hash, self.kind as u64 | u64::from(self.part) << 8)
    }

    #[inline(always)]
    fn meta(&self) -> u64 {
        self.kind as u64 | u64::from(self.name.len) << 8 | u64::from(self.part) << 56
    }

    #[inline(always)]
    pub(crate) fn is_in(&self, region: &Region, line: Line<'_>, state: u128) -> bool {
        // Relaxed: written before the cell went LIVE, which the state's reader acquired; a cell reused
        // since shows in its state word, which the caller exchanges or reads again.
        let word = |offset| line.word(offset).load(Relaxed);
        if phase(state) != LIVE
            || word(META) & !HOME != self.meta()
            || word(NAME) != self.name.words[0]
        {
            return false;
        }
        match &self.name.long {
            None => word(NAME + 8) == self.name.words[1] && word(NAME + 16) == self.name.words[2],
            Some(bytes) => chunk::equals(region, word(NAME + 8) as u32, bytes),
        }
    }
}

impl<'a> Object<'a> {
    #[inline(always)]
    fn wanted(&self) -> Wanted<'a> {
        let Self {
            kind, part, name, ..
        } = *self;
        Wanted { kind, part, name }
    }

    #[inline(always)]
    pub(crate) fn hash(&self) -> u64 {
        self.wanted().hash()
    }
}

impl Entry<Objects> for Object<'_> {
    #[inline(always)]
    fn matches(&self, region: &Region, line: Line<'_>, state: u128) -> bool {
        self.wanted().is_in(region, line, state)
    }

    fn payload(&self) -> u32 {
        0
    }

    fn write(&self, region: &Region, at: usize, home: u32, owner: CellOwner) -> Result<()> {
        let put = |offset, value| region.word(at + offset).store(value, Relaxed);
        put(META, self.wanted().meta() | u64::from(home) << 24);
        let mut words = self.name.words;
        if let Some(bytes) = &self.name.long {
            words[1] = self.engine.write_chunks(owner, bytes)?.into();
        }
        for (i, word) in words.into_iter().enumerate() {
            put(NAME + i * 8, word);
        }
        Ok(())
    }
}
