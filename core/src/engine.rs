//! The engine: a region with its tables, and the ways in.
//!
//! Each noun's operations are methods of [`Engine`] in the noun's own file. Time, identity and
//! randomness are arguments; the engine reads no clock and starts no thread.

use crate::cell_key;
use crate::chunk::{self, Owner};
use crate::error::{Error, Result};
use crate::joint_key::JointKeys;
use crate::key;
use crate::limiter_key::LimiterKeys;
use crate::object::{Kind, Name, Object, Objects};
use crate::once;
use crate::region::{Region, header};
use crate::session::{Process, SessionId, Sessions};
use crate::table::{Actor, CellOwner, Flavour as _, Found, Table};
// Of this process, and of nothing that models look at.
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// A region opened for use.
pub struct Engine {
    pub(crate) region: Region,
    pub(crate) sessions: Sessions,
    pub(crate) objects: Table<Objects>,
    pub(crate) limiter_keys: Table<LimiterKeys>,
    pub(crate) joint_keys: Table<JointKeys>,
    /// Percent of each cap that one session may fill.
    share_percent: u32,
    /// What this process's session has of its shares. Of this process, not of the region.
    pub(crate) used: Used,
}

/// Counts of what one session may have only so much of. Only where it has a share, see [`Used::add`].
#[derive(Default)]
pub(crate) struct Used {
    pub(crate) waits: AtomicU32,
    pub(crate) permits: AtomicU32,
    /// Where to look first for a free permit.
    pub(crate) permit_hint: AtomicU32,
    /// Chunks of long names and results: what it took since they were last counted is in it, what was freed is not.
    chunks: AtomicU32,
    /// Until when no entry with a long name or a result can have become idle, in microseconds of region time.
    long_quiet_until_us: AtomicU64,
}

impl Used {
    /// Adds to a count that may not pass `share`.
    pub(crate) fn add(count: &AtomicU32, more: u32, share: u32, what: &'static str) -> Result<()> {
        // Relaxed: a count, that orders nothing.
        count
            .fetch_update(Relaxed, Relaxed, |used| {
                used.checked_add(more).filter(|used| *used <= share)
            })
            .map(drop)
            .map_err(|used| Error::ShareExceeded {
                what,
                used: used.into(),
            })
    }

    /// Takes off what was added and not used after all. It may have been counted anew meanwhile.
    pub(crate) fn take_off(count: &AtomicU32, less: u32) {
        // Relaxed: as above.
        let _ = count.fetch_update(Relaxed, Relaxed, |used| Some(used.saturating_sub(less)));
    }
}

/// The tables of keys, as chunks name them.
const LIMITER_KEYS: u8 = LimiterKeys::COUNTER as u8;
const JOINT_KEYS: u8 = JointKeys::COUNTER as u8;

/// The longest that a sweep for long names and results which freed nothing is trusted, in nanoseconds.
const LONG_QUIET_NS_MAX: u64 = 1_000_000_000;

impl Engine {
    /// An engine over a region of this process alone; one session may fill all of it.
    pub fn local(region: Region) -> Self {
        Self::new(region, Sessions::local(), 100)
    }

    /// An engine over a region in a file. One session may fill `share_percent` of each cap, 1 to 100,
    /// so that no process fills the region alone.
    ///
    /// `session_file` is [`Region::reopen`]'s: its kernel lock keeps this process's one session alive
    /// for as long as any copy of the descriptor is open, so a forked child must close its copy.
    #[cfg(all(not(loom), unix))]
    pub fn shared(
        region: Region,
        share_percent: u32,
        session_file: crate::session::Descriptor,
    ) -> Result<Self> {
        if !(1..=100).contains(&share_percent) {
            return Err(Error::OutOfRange {
                what: "share (percent)",
                value: share_percent.into(),
                min: 1,
                max: 100,
            });
        }
        Ok(Self::new(
            region,
            Sessions::shared(session_file),
            share_percent,
        ))
    }

    /// The descriptor whose kernel lock keeps this process's session alive; `None` over memory of
    /// this process alone.
    #[cfg(all(not(loom), unix))]
    pub fn session_fd(&self) -> Option<std::os::fd::RawFd> {
        use std::os::fd::AsRawFd;
        self.sessions.descriptor().map(|fd| fd.as_raw_fd())
    }

    /// Fails if the region's file was replaced, or if this process closed the descriptor that keeps its
    /// session alive: either way its holds are lost. Costs half a dozen system calls.
    pub fn check_in_place(&self) -> Result<()> {
        self.region.check_in_place()?;
        #[cfg(all(not(loom), target_os = "linux"))]
        if let Some(own) = self.sessions.own() {
            self.region
                .check_session(own.index(), Sessions::has_line(&self.region, own))?;
        }
        Ok(())
    }

    pub(crate) fn new(region: Region, sessions: Sessions, share_percent: u32) -> Self {
        Self {
            objects: Table::new(&region),
            limiter_keys: Table::new(&region),
            joint_keys: Table::new(&region),
            region,
            sessions,
            share_percent,
            used: Used::default(),
        }
    }

    /// The region.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Opens a session. Its holds and waits end with it.
    pub fn open_session(&self, process: Process, unix_ns: u64) -> Result<SessionId> {
        if self.has_share() {
            let used = self.sessions.count_of(&self.region, process).into();
            if used >= u64::from(self.share_of(self.region.caps().sessions)) {
                return Err(Error::ShareExceeded {
                    what: "session",
                    used,
                });
            }
        }
        let end_what_is_left = |index| self.end_what_is_left_of(index);
        let opened = self
            .sessions
            .open(&self.region, process, unix_ns, &end_what_is_left);
        let session = match opened {
            // Whoever replaces the region has all lines.
            Err(full @ Error::Full { .. }) => {
                self.region.check_in_place()?;
                return Err(full);
            }
            opened => opened?,
        };
        // Whoever replaces the region's file holds every session's lock until it is done. So a
        // session opened before keeps it from replacing, and one opened after finds out here.
        if let Err(error) = self.region.check_in_place() {
            self.close_session(session);
            return Err(error);
        }
        Ok(session)
    }

    /// Ends whatever still names the line of a session that is just being opened. Words name the low bits of a
    /// line's generation; each time that these come round, what is left of those before must be gone, or
    /// it would be the new one's. Those who wait for its locks find out at their next look.
    #[cold]
    fn end_what_is_left_of(&self, index: u16) {
        let region = &self.region;
        // Of a region's latest time it is known only that it was.
        let now_us = region.word(header::LATEST).load(Relaxed) / 1_000;
        self.objects.end_claims_of(region, index);
        self.limiter_keys.end_claims_of(region, index);
        self.joint_keys.end_claims_of(region, index);
        self.end_waits_of(index);
        self.end_holds_of(index, now_us);
        self.end_permits_of(index, now_us);
        self.end_attempts_of(index, now_us);
        self.end_limit_claims_of(index);
        self.end_charges_of(index);
        self.end_joint_claims_of(index);
    }

    /// Closes a session: what it holds is up for grabs from now on.
    pub fn close_session(&self, session: SessionId) {
        self.sessions.close(&self.region, session);
    }

    /// Whether a session is open and its process alive.
    pub fn is_alive(&self, session: SessionId) -> bool {
        self.sessions.is_alive(&self.region, session)
    }

    /// The partition that a key falls into, of [`Region::partitions`].
    pub fn partition_of(&self, key: &[u8]) -> u32 {
        let hash = key::mix(self.region.hasher.hash(key), Kind::Lock as u64);
        self.objects.partition(self.objects.home(hash))
    }

    pub(crate) fn actor(&self, session: SessionId, cap: u32) -> Actor<'_> {
        Actor {
            sessions: &self.sessions,
            session,
            share: self.share_of(cap),
        }
    }

    /// Whether a session may not have all of the region.
    pub(crate) fn has_share(&self) -> bool {
        self.share_percent < 100
    }

    /// How much of a cap one session may have.
    pub(crate) fn share_of(&self, cap: u32) -> u32 {
        match self.share_percent {
            // The whole: the cap itself is the bound.
            100.. => u32::MAX,
            percent => (u64::from(cap) * u64::from(percent) / 100).max(1) as u32,
        }
    }

    /// The object `name` of this kind, to find or insert.
    #[inline(always)]
    pub(crate) fn object<'a>(&'a self, kind: Kind, name: &'a Name) -> Object<'a> {
        Object {
            engine: self,
            kind,
            part: 0,
            name,
        }
    }

    /// Finds the live entry of an object.
    #[inline(always)]
    pub(crate) fn find_object(&self, object: &Object<'_>) -> Option<Found> {
        self.objects.find(&self.region, object.hash(), object)
    }

    /// Finds the live entry of an object or inserts one, making room if need be.
    #[cold]
    pub(crate) fn insert_object(
        &self,
        object: &Object<'_>,
        by: SessionId,
        now_ns: u64,
    ) -> Result<Found> {
        self.region.note_time(now_ns);
        let actor = self.actor(by, self.region.caps().objects);
        let hash = object.hash();
        let insert = || {
            self.objects
                .find_or_insert(&self.region, &actor, hash, object, now_ns)
        };
        let insert = || match insert() {
            Err(error) if chunk::is_lacking(&error) && self.reclaim_long_names(by, now_ns) => {
                insert()
            }
            result => result,
        };
        match insert() {
            // What the dead share is in use by all that its word says.
            Err(Error::Full { .. } | Error::ShareExceeded { .. }) if self.reap_all(now_ns) => {
                self.look_for_long_names();
                insert()
            }
            result => result,
        }
    }

    pub(crate) fn write_chunks(&self, owner: CellOwner, name: &[u8]) -> Result<u32> {
        self.counting_chunks(name.len(), || {
            chunk::write(&self.region, owner, name, |owner| self.is_current(owner))
        })
    }

    /// Counts the chunks that `write` takes for `len` bytes against the session's share.
    pub(crate) fn counting_chunks<T>(
        &self,
        len: usize,
        write: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if self.has_share() {
            let share = self.share_of(self.region.caps().key_chunks);
            Used::add(&self.used.chunks, chunk::count(len), share, chunk::WHAT)?;
        }
        let written = write();
        if written.is_err() {
            // It took none. Left in the count, they would be found to be fewer each time that it is
            // counted anew, and be looked for again.
            Used::take_off(&self.used.chunks, chunk::count(len));
        }
        written
    }

    /// The session that an owned chunk counts against; `writer` is what the chunk says of it.
    fn creator(&self, owner: Owner, writer: u16) -> u16 {
        match owner {
            Owner::Name(owner) => match owner.table {
                LIMITER_KEYS => self.limiter_keys.creator(&self.region, owner.cell),
                JOINT_KEYS => self.joint_keys.creator(&self.region, owner.cell),
                _ => self.objects.creator(&self.region, owner.cell),
            },
            Owner::Attempt { .. } => writer,
            Owner::Writer { line, .. } => line,
        }
    }

    /// Whether a chunk is still its owner's.
    pub(crate) fn is_current(&self, owner: Owner) -> bool {
        let region = &self.region;
        match owner {
            Owner::Name(owner) => match owner.table {
                LIMITER_KEYS => self.limiter_keys.is_current(region, owner),
                JOINT_KEYS => self.joint_keys.is_current(region, owner),
                _ => self.objects.is_current(region, owner),
            },
            Owner::Attempt { cell, token } => self.is_attempt_current(cell, token),
            Owner::Writer { line, generation } => {
                self.sessions.is_alive_in_full(region, line, generation)
            }
        }
    }

    /// Whether an object in use has chunks: its name's, or a result's.
    fn has_chunks(&self, at: usize, state: u128) -> bool {
        Objects::is_long(&self.region, at)
            || Objects::is(&self.region, at, Kind::Once) && once::State::decode(state).has_chunks()
    }

    /// Has the next one who lacks chunks look for some, whatever was found when it was last looked.
    pub(crate) fn look_for_long_names(&self) {
        // Relaxed: a hint of this process.
        self.used.long_quiet_until_us.store(0, Relaxed);
    }

    /// Reclaims every idle entry whose name or result is in chunks, and counts the chunks of this process's
    /// session anew; whether there may be room now.
    #[cold]
    pub(crate) fn reclaim_long_names(&self, by: SessionId, now_ns: u64) -> bool {
        // Relaxed: a hint of this process.
        if now_ns / 1_000 < self.used.long_quiet_until_us.load(Relaxed) {
            return false;
        }
        let (region, sessions) = (&self.region, &self.sessions);
        let objects = self
            .objects
            .free_idle(region, sessions, now_ns, |at, state| {
                self.has_chunks(at, state)
            });
        let keys = self
            .limiter_keys
            .free_idle(region, sessions, now_ns, |_, state| {
                cell_key::is_long(state)
            });
        let joint_keys = self
            .joint_keys
            .free_idle(region, sessions, now_ns, |_, state| {
                cell_key::is_long(state)
            });
        let has_fewer = self.has_share() && {
            let is_its =
                |owner, writer| self.is_current(owner) && self.creator(owner, writer) == by.index();
            let count = chunk::count_owned(region, is_its);
            self.used.chunks.swap(count, Relaxed) > count
        };
        match (objects, keys, joint_keys) {
            (Err(objects_ns), Err(keys_ns), Err(joint_keys_ns)) if !has_fewer => {
                let until_ns = objects_ns
                    .min(keys_ns)
                    .min(joint_keys_ns)
                    .min(now_ns.saturating_add(LONG_QUIET_NS_MAX));
                self.used
                    .long_quiet_until_us
                    .store(until_ns / 1_000, Relaxed);
                false
            }
            _ => true,
        }
    }
}
