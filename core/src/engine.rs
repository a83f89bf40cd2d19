//! The engine: a region with its tables, and the ways in.
//!
//! Each noun's operations are methods of [`Engine`] in the noun's own file. Time, identity and
//! randomness are arguments; the engine reads no clock and starts no thread.

use crate::chunk;
use crate::error::{Error, Result};
use crate::key;
use crate::limiter_key::LimiterKeys;
use crate::object::{Kind, Name, Object, Objects};
use crate::region::Region;
use crate::session::{Process, SessionId, Sessions};
use crate::table::{Actor, CellOwner, Found, Table};

/// A region opened for use.
pub struct Engine {
    pub(crate) region: Region,
    pub(crate) sessions: Sessions,
    pub(crate) objects: Table<Objects>,
    pub(crate) limiter_keys: Table<LimiterKeys>,
    /// Percent of each cap that one session may fill.
    share_percent: u32,
}

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
        self.sessions.fd()
    }

    pub(crate) fn new(region: Region, sessions: Sessions, share_percent: u32) -> Self {
        Self {
            objects: Table::new(&region),
            limiter_keys: Table::new(&region),
            region,
            sessions,
            share_percent,
        }
    }

    /// The region.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Opens a session. Its holds and waits end with it.
    pub fn open_session(&self, process: Process, unix_ns: u64) -> Result<SessionId> {
        let session = self.sessions.open(&self.region, process, unix_ns)?;
        // Whoever replaces the region's file holds every session's lock until it is done. So a
        // session opened before keeps it from replacing, and one opened after finds out here.
        if let Err(error) = self.region.check_in_place() {
            self.close_session(session);
            return Err(error);
        }
        Ok(session)
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
        let share = match self.share_percent {
            // The whole: the cap itself is the bound.
            100.. => u32::MAX,
            percent => (u64::from(cap) * u64::from(percent) / 100).max(1) as u32,
        };
        Actor {
            sessions: &self.sessions,
            session,
            share,
        }
    }

    /// The object `name` of this kind, to find or insert.
    #[inline(always)]
    pub(crate) fn object<'a>(&'a self, kind: Kind, name: &'a Name) -> Object<'a> {
        Object {
            engine: self,
            kind,
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
        match insert() {
            Err(Error::Full {
                what: chunk::WHAT, ..
            }) if self.reclaim_long_names(now_ns) => insert(),
            result => result,
        }
    }

    pub(crate) fn write_chunks(&self, owner: CellOwner, name: &[u8]) -> Result<u32> {
        chunk::write(&self.region, owner, name, |owner| self.is_current(owner))
    }

    fn is_current(&self, owner: CellOwner) -> bool {
        if owner.is_limiter_key {
            self.limiter_keys.is_current(&self.region, owner)
        } else {
            self.objects.is_current(&self.region, owner)
        }
    }

    /// Reclaims every idle entry whose name is in chunks; whether there was any.
    #[cold]
    pub(crate) fn reclaim_long_names(&self, now_ns: u64) -> bool {
        let (region, sessions) = (&self.region, &self.sessions);
        let objects = self.objects.free_idle(region, sessions, now_ns, |at, _| {
            Objects::is_long(region, at)
        });
        let keys = self
            .limiter_keys
            .free_idle(region, sessions, now_ns, |_, state| {
                LimiterKeys::is_long(state)
            });
        objects || keys
    }
}
