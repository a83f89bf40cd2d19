//! A space: the handle that users hold, and how it is opened.

use crate::background::Background;
use crate::clock::{Clock, ERROR_NS_MAX, ManualClock};
use crate::host::futex::{self, Reach};
use crate::host::place::Url;
use crate::{
    Caps, CoarseLock, Counter, Error, Fence, HoldInfo, Limit, Limiter, Lock, Locks, Once, OnceInfo,
    Owner, Result, Semaphore, SemaphoreInfo,
};
use sprag_core::lock::{BreakRecord, Coarse, HoldStatus, LockStatus};
use sprag_core::once::OnceStatus;
use sprag_core::readable::Readable;
use sprag_core::region::{Birth, Region};
use sprag_core::session::Process;
use sprag_core::sync::Half;
use sprag_core::waiter::{Ticket, Wake};
use sprag_core::{Engine, SessionId};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A set of named objects, opened by URL. Clones share it; the last one closes the session, and what
/// it still holds is then free for others.
#[derive(Clone)]
pub struct Space {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) session: SessionId,
    pub(crate) clock: Clock,
    /// What to add to boot time for region time.
    from_boot_ns: i64,
    pub(crate) background: Background,
    pub(crate) process: Process,
    #[cfg(unix)]
    origin: crate::host::fork::Origin,
    url: String,
    /// When to look next whether the region is in place, in nanoseconds of region time; never in `mem:`.
    look_at_ns: AtomicU64,
}

/// How long what is done often takes it that the region is in place, in nanoseconds.
const LOOK_NS: u64 = 50_000_000;

/// A clock moved by hand wakes nobody, so those who sleep by one look at it this often.
const MANUAL_CLOCK_POLL: Duration = Duration::from_millis(2);

/// How long an opening waits for who is resizing or making the region, and in which steps it looks.
const OPENING_MAX: Duration = Duration::from_secs(10);
const OPENING_PAUSE: Duration = Duration::from_millis(5);

/// How a space is opened: caps for a new region, sharing, clock.
#[derive(Clone, Debug)]
pub struct SpaceBuilder {
    caps: Caps,
    create: bool,
    group_shared: bool,
    has_session: bool,
    share_percent: u32,
    clock: Option<ManualClock>,
}

impl Default for SpaceBuilder {
    fn default() -> Self {
        Self {
            caps: Caps::default(),
            create: true,
            group_shared: false,
            has_session: true,
            share_percent: 75,
            clock: None,
        }
    }
}

impl SpaceBuilder {
    /// Caps of the region, if this call creates it; an existing region keeps its own.
    #[must_use]
    pub fn caps(mut self, caps: Caps) -> Self {
        self.caps = caps;
        self
    }

    /// Whether to create the region if there is none (the default), or fail.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Whether the group may use the region too: mode 0660 instead of 0600.
    #[must_use]
    pub fn group_shared(mut self, group_shared: bool) -> Self {
        self.group_shared = group_shared;
        self
    }

    /// Opens no session: enough to look, to break, and to release and renew by token, also where no
    /// further session fits. All else fails with [`Error::NoSession`].
    #[must_use]
    pub fn without_session(mut self) -> Self {
        self.has_session = false;
        self
    }

    /// How much of each cap of a shared region this session may fill, in percent: 1 to 100; 75 by
    /// default. A `mem:` space may be filled whole.
    #[must_use]
    pub fn share_percent(mut self, percent: u32) -> Self {
        self.share_percent = percent;
        self
    }

    /// A `mem:` space whose clock the caller moves by hand, for tests. Timeouts go by it as well: a
    /// call that waits with one returns only once another thread has moved the clock that far.
    #[must_use]
    pub fn clock(mut self, clock: &ManualClock) -> Self {
        self.clock = Some(clock.clone());
        self
    }

    /// Opens the space at `url`: `mem:`, `shm:NAME` or `shm:/path`. Costs some dozen system calls.
    ///
    /// Each opening of `mem:` makes another space; to share one, clone the [`Space`].
    ///
    /// # Errors
    ///
    /// [`Error::Place`] for a URL or a place that can't be used, [`Error::Host`] when the host refuses a
    /// clock, memory or descriptors, [`Error::NotHere`] for a clock moved by hand elsewhere than over
    /// `mem:`, [`Error::Engine`] for an option out of its bounds and a region that can't be opened.
    ///
    /// A region that another process is resizing or making is waited for, for up to 10 s.
    pub fn open(self, url: &str) -> Result<Space> {
        let parsed = Url::parse(url)?;
        if !(1..=100).contains(&self.share_percent) {
            return Err(Error::Engine(sprag_core::Error::OutOfRange {
                what: "share (percent)",
                value: self.share_percent.into(),
                min: 1,
                max: 100,
            }));
        }
        #[cfg(unix)]
        let origin = crate::host::fork::Origin::here()?;
        let (process, boot_id) = identity()?;
        let clock = match &self.clock {
            Some(hands) if parsed == Url::Mem => Clock::manual(hands),
            Some(_) => {
                return Err(Error::NotHere {
                    what: "a clock moved by hand",
                    url: url.to_owned(),
                    way_out: "use it with mem:, or leave it out",
                });
            }
            None => Clock::host()?,
        };
        let give_up_at = Instant::now() + OPENING_MAX;
        let (engine, session) = loop {
            // Anew each time: regions may come and go meanwhile, and the next one's tokens start above theirs.
            let birth = birth(&clock, boot_id)?;
            let opened = self.open_engine(&parsed, birth).and_then(|engine| {
                let session = if self.has_session {
                    engine.open_session(process, clock.unix_ns())?
                } else {
                    engine.check_in_place()?;
                    SessionId::DETACHED
                };
                Ok((engine, session))
            });
            match opened {
                // Somebody is at work on the file, or was and has replaced it.
                Err(Error::Engine(
                    sprag_core::Error::Replaced { .. } | sprag_core::Error::Contended { .. },
                )) if Instant::now() < give_up_at => std::thread::sleep(OPENING_PAUSE),
                opened => break opened?,
            }
        };
        let from_boot_ns = engine.region().base_boot_ns().wrapping_neg();
        let look_at_ns = if engine.region().is_shared() || !self.has_session {
            0
        } else {
            u64::MAX
        };
        Ok(Space {
            inner: Arc::new(Inner {
                engine,
                session,
                clock,
                from_boot_ns,
                background: Background::default(),
                process,
                #[cfg(unix)]
                origin,
                url: url.to_owned(),
                look_at_ns: AtomicU64::new(look_at_ns),
            }),
        })
    }

    fn open_engine(&self, url: &Url, birth: Birth) -> Result<Engine> {
        match url {
            Url::Mem => Ok(Engine::local(Region::anonymous(self.caps, birth)?)),
            _ => self.open_shared(url, birth),
        }
    }

    #[cfg(target_os = "linux")]
    fn open_shared(&self, url: &Url, birth: Birth) -> Result<Engine> {
        use crate::host::directory::Sharing;
        use crate::host::place::Place;
        use crate::host::process_fd::ProcessFd;
        use sprag_core::region::file::{self, OpenOptions};

        let sharing = Sharing::with_group(self.group_shared);
        let place = if self.create {
            Place::of(url, sharing)?
        } else {
            Place::if_there(url, sharing)?
        };
        let Some(place) = place else {
            return Err(Error::Engine(sprag_core::Error::Unsupported {
                what: "a URL with no file",
            }));
        };
        let options = OpenOptions {
            caps: self.caps,
            create: self.create,
            group_shared: self.group_shared,
            birth,
        };
        let region = file::open(&place.path, &options)?;
        // Listed for closing in forked children before it carries a lock.
        let mut refused = None;
        let session_file = ProcessFd::open_with(|| {
            region.reopen().map(Into::into).map_err(|error| {
                refused = Some(error);
                std::io::ErrorKind::Other.into()
            })
        });
        let session_file = match (session_file, refused) {
            (Err(_), Some(error)) => return Err(Error::Engine(error)),
            (session_file, _) => session_file?,
        };
        Ok(Engine::shared(
            region,
            self.share_percent,
            Box::new(session_file),
        )?)
    }

    #[cfg(not(target_os = "linux"))]
    fn open_shared(&self, _: &Url, _: Birth) -> Result<Engine> {
        Err(Error::Engine(sprag_core::Error::Unsupported {
            what: "shm: outside Linux",
        }))
    }
}

/// What a region would be born with now.
pub(crate) fn birth(clock: &Clock, boot_id: [u64; 2]) -> Result<Birth> {
    Ok(Birth {
        hash_seed: crate::host::identity::random_u64()?,
        unix_ns: clock.unix_ns(),
        boot_ns: clock.precise_ns(),
        boot_id,
        floor: 0,
    })
}

fn identity() -> Result<(Process, [u64; 2])> {
    let identity = crate::host::identity::ProcessIdentity::of_this_process()?;
    let process = Process {
        pid: identity.pid,
        start_ns: identity.start_ns,
        pid_namespace: identity.pid_namespace,
    };
    Ok((process, identity.boot_id))
}

/// What is known of a lock.
#[derive(Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an answer of its own"
)]
pub struct LockInfo {
    /// The lock's name.
    pub name: Vec<u8>,
    /// The token of the holder, or of the last one; of a lock that nobody held yet, the one below its
    /// first.
    pub token: u64,
    /// Whether it is held, and not merely by an expired lease or by a process that died.
    pub is_held: bool,
    /// Whether its holder died, or closed its space, without releasing it: the next one that comes for it
    /// gets it.
    pub is_holder_dead: bool,
    /// Whether those who hold it share it.
    pub is_shared: bool,
    /// How many hold it, and not merely by an expired lease or by a process that died: one at most, unless
    /// it is shared. What is said of the holder below is said of the one whose lease lasts longest.
    pub holders: u32,
    /// Each hold on it, by token, those included that are over or whose process died.
    pub holds: Vec<HoldInfo>,
    /// The holder's process id in its own namespace, also of one that died; `None` if not held,
    /// detached, or not known any more.
    pub holder_pid: Option<u32>,
    /// Whether the hold belongs to no process: a script holds it by its token.
    pub is_detached: bool,
    /// What is left of the lease; zero if not held, or once it is over.
    pub lease_left: Duration,
    /// How long it has been held; `None` if not held or not known.
    pub held_for: Option<Duration>,
    /// How many wait for it.
    pub waiters: u32,
    /// How many more died while they waited; whoever comes for the lock clears them away.
    pub waiters_dead: u32,
}

impl fmt::Debug for LockInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LockInfo")
            .field("name", &Readable(&self.name))
            .field("token", &self.token)
            .field("is_held", &self.is_held)
            .field("is_holder_dead", &self.is_holder_dead)
            .field("is_shared", &self.is_shared)
            .field("holders", &self.holders)
            .field("holds", &self.holds)
            .field("holder_pid", &self.holder_pid)
            .field("is_detached", &self.is_detached)
            .field("lease_left", &self.lease_left)
            .field("held_for", &self.held_for)
            .field("waiters", &self.waiters)
            .field("waiters_dead", &self.waiters_dead)
            .finish()
    }
}

/// What is known of a limiter.
#[derive(Clone, PartialEq, Eq)]
pub struct LimiterInfo {
    /// The limiter's name.
    pub name: Vec<u8>,
    /// Its limit.
    pub limit: Limit,
    /// How many keys have an entry: those with something used, and full ones not reclaimed yet.
    pub keys: u64,
}

impl fmt::Debug for LimiterInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LimiterInfo")
            .field("name", &Readable(&self.name))
            .field("limit", &format_args!("{}", self.limit))
            .field("keys", &self.keys)
            .finish()
    }
}

/// What is known of a counter.
#[derive(Clone, PartialEq, Eq)]
pub struct CounterInfo {
    /// The counter's name.
    pub name: Vec<u8>,
    /// What it is at.
    pub number: i64,
}

impl fmt::Debug for CounterInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CounterInfo")
            .field("name", &Readable(&self.name))
            .field("number", &self.number)
            .finish()
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Space")
            .field("url", &self.inner.url)
            .finish_non_exhaustive()
    }
}

impl Space {
    /// Opens the space at `url` with the defaults: see [`SpaceBuilder`].
    pub fn open(url: &str) -> Result<Self> {
        Self::builder().open(url)
    }

    /// Options for opening.
    pub fn builder() -> SpaceBuilder {
        SpaceBuilder::default()
    }

    /// A handle on the lock `name`, 1 to 1,024 bytes; nothing is created before it is acquired. Names
    /// of at most 24 bytes allocate nothing.
    #[inline]
    pub fn lock<N: AsRef<[u8]> + ?Sized>(&self, name: &N) -> Result<Lock<'_>> {
        Lock::new(self, name.as_ref())
    }

    /// An owner, whose locks are re-entrant.
    pub fn owner(&self) -> Owner {
        Owner::new(self)
    }

    /// The limiter `name`, 1 to 1,024 bytes, created with `limit` if there is none. `limit` is a
    /// [`Limit`] or text such as `100/minute;burst=20`, see [`Limit::parse`]. Open it once and keep it:
    /// a check through it costs far less than opening.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if `limit` is none; [`EngineError::LimitDiffers`](crate::EngineError::LimitDiffers)
    /// if the limiter has another limit.
    pub fn limiter<N: AsRef<[u8]> + ?Sized>(
        &self,
        name: &N,
        limit: impl IntoLimit,
    ) -> Result<Limiter> {
        Limiter::open(self, name.as_ref(), limit.into_limit()?, false)
    }

    /// The limiter `name` with `limit`, whatever it had before; what each key has used is kept. A change
    /// looks at every key of the region.
    pub fn limiter_updated<N: AsRef<[u8]> + ?Sized>(
        &self,
        name: &N,
        limit: impl IntoLimit,
    ) -> Result<Limiter> {
        Limiter::open(self, name.as_ref(), limit.into_limit()?, true)
    }

    /// A handle on several locks, which are acquired all at once or not at all: see [`Locks`]. 1 to 64 names,
    /// each 1 to 1,024 bytes; one given twice is one lock.
    ///
    /// ```
    /// # let space = sprag::Space::open("mem:")?;
    /// let accounts = space.locks(["account/17", "account/4"])?;
    /// let hold = accounts.acquire()?; // no order to keep to: such acquires can't deadlock
    /// assert_eq!(hold.tokens().len(), 2);
    /// # Ok::<(), sprag::Error>(())
    /// ```
    pub fn locks<N: AsRef<[u8]>>(&self, names: impl IntoIterator<Item = N>) -> Result<Locks<'_>> {
        Locks::new(self, names)
    }

    /// A handle on the lock of a partition, of those that [`partition_of`](Self::partition_of) counts: it
    /// excludes the locks of all keys in it.
    pub fn partition(&self, partition: u32) -> Result<CoarseLock<'_>> {
        self.inner.engine.check_partition(partition)?;
        CoarseLock::new(self, Coarse::Partition(partition))
    }

    /// A handle on the lock of the table: it excludes all locks of keys and of partitions.
    pub fn table(&self) -> Result<CoarseLock<'_>> {
        CoarseLock::new(self, Coarse::Table)
    }

    /// A handle on the semaphore `name`, 1 to 1,024 bytes, which has `permits`: 1 to 16,777,215. Nothing is
    /// created before some are acquired.
    ///
    /// # Errors
    ///
    /// [`Error::Engine`] for a name or a number out of bounds. That it exists with another number of permits
    /// is found out by acquiring: [`EngineError::CapacityDiffers`](crate::EngineError::CapacityDiffers).
    pub fn semaphore<N: AsRef<[u8]> + ?Sized>(
        &self,
        name: &N,
        permits: u32,
    ) -> Result<Semaphore<'_>> {
        Semaphore::new(self, name.as_ref(), permits)
    }

    /// The semaphores whose names begin with `prefix`, by name. Reads the whole table; stops no one.
    pub fn semaphores<N: AsRef<[u8]> + ?Sized>(&self, prefix: &N) -> Result<Vec<SemaphoreInfo>> {
        self.inner.check_process()?;
        let now_ns = self.inner.precise_ns();
        let mut semaphores = Vec::new();
        self.inner
            .engine
            .for_each_semaphore(prefix.as_ref(), now_ns, |status| {
                semaphores.push(SemaphoreInfo::new(status, now_ns));
            });
        semaphores.sort_by(|a: &SemaphoreInfo, b| a.name.cmp(&b.name));
        Ok(semaphores)
    }

    /// The fence `name`, 1 to 1,024 bytes, created when it first admits a token. Fences stay for as long
    /// as the region does.
    pub fn fence<N: AsRef<[u8]> + ?Sized>(&self, name: &N) -> Result<Fence> {
        Fence::new(self, name.as_ref())
    }

    /// The counter `name`, 1 to 1,024 bytes; nothing is created before it is changed. Names of at most 24
    /// bytes allocate nothing.
    #[inline(always)]
    pub fn counter<N: AsRef<[u8]> + ?Sized>(&self, name: &N) -> Result<Counter<'_>> {
        Counter::new(self, name.as_ref())
    }

    /// A handle on the idempotency key `name`, 1 to 1,024 bytes; nothing is created before somebody begins.
    /// Keys of at most 24 bytes allocate nothing.
    #[inline]
    pub fn once<N: AsRef<[u8]> + ?Sized>(&self, name: &N) -> Result<Once<'_>> {
        Once::new(self, name.as_ref())
    }

    /// The locks whose names begin with `prefix`, by name. Reads the whole table; stops no one.
    pub fn inspect<N: AsRef<[u8]> + ?Sized>(&self, prefix: &N) -> Result<Vec<LockInfo>> {
        self.inner.check_process()?;
        let now_ns = self.inner.precise_ns();
        let mut locks = Vec::new();
        self.inner
            .engine
            .for_each_lock(prefix.as_ref(), now_ns, |status| {
                locks.push(LockInfo::new(status, now_ns));
            });
        locks.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(locks)
    }

    /// The locks of partitions and of the table that are held or waited for; their names are `partition 3` and
    /// `the table`. While the table is held, so are all partitions, with a token of their own each.
    pub fn inspect_coarse(&self) -> Result<Vec<LockInfo>> {
        self.inner.check_process()?;
        let now_ns = self.inner.precise_ns();
        let engine = &self.inner.engine;
        let partitions = (0..self.partitions()).map(Coarse::Partition);
        Ok(partitions
            .chain([Coarse::Table])
            .map(|coarse| engine.coarse_status(coarse, now_ns))
            .filter(|status| !status.holds.is_empty() || status.waiters + status.waiters_dead > 0)
            .map(|status| LockInfo::new(status, now_ns))
            .collect())
    }

    /// The limiters whose names begin with `prefix`, by name. Reads the whole region; stops no one.
    pub fn limiters<N: AsRef<[u8]> + ?Sized>(&self, prefix: &N) -> Result<Vec<LimiterInfo>> {
        self.inner.check_process()?;
        let mut limiters = Vec::new();
        self.inner
            .engine
            .for_each_limiter(prefix.as_ref(), |name, limit, keys| {
                limiters.push(LimiterInfo { name, limit, keys });
            });
        limiters.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(limiters)
    }

    /// The counters that are not at 0 and whose names begin with `prefix`, by name, and their numbers.
    /// Reads the whole table; stops no one.
    pub fn counters<N: AsRef<[u8]> + ?Sized>(&self, prefix: &N) -> Result<Vec<CounterInfo>> {
        self.inner.check_process()?;
        let mut counters = Vec::new();
        self.inner
            .engine
            .for_each_counter(prefix.as_ref(), |name, number| {
                counters.push(CounterInfo { name, number });
            });
        counters.retain(|counter| counter.number != 0);
        counters.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(counters)
    }

    /// The idempotency keys that begin with `prefix`, by name, but for new ones. Reads the whole table; stops
    /// no one, also not an owner that is late: what is told of it here, [`Once::status`] makes sure of.
    pub fn onces<N: AsRef<[u8]> + ?Sized>(&self, prefix: &N) -> Result<Vec<OnceInfo>> {
        self.inner.check_process()?;
        let now_ns = self.inner.cautious_ns();
        let mut onces = Vec::new();
        let mut note = |name, status: OnceStatus| {
            if status != OnceStatus::New {
                let status = status.into();
                onces.push(OnceInfo { name, status });
            }
        };
        self.inner
            .engine
            .for_each_once(prefix.as_ref(), now_ns, &mut note);
        onces.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(onces)
    }

    /// Takes the lock `name` away from whoever holds it, and notes who did it; the token that was
    /// ended, or `None` if it was not held. What the holder still writes, a fence rejects.
    pub fn break_lock<N: AsRef<[u8]> + ?Sized>(&self, name: &N) -> Result<Option<u64>> {
        let inner = &*self.inner;
        inner.check_process()?;
        inner.check_in_place()?;
        let name = inner.engine.lock_name(name.as_ref())?;
        let broken = inner
            .engine
            .break_lock(&name, inner.process, inner.precise_ns());
        Ok(broken.map(|broken| {
            inner.wake(broken.wake);
            broken.token
        }))
    }

    /// The last forced releases, oldest first, at most 64; with region times as unix time.
    pub fn breaks(&self) -> Vec<BreakRecord> {
        let base_ns = self.inner.engine.region().base_unix_ns();
        let mut breaks = self.inner.engine.breaks();
        for record in &mut breaks {
            record.at_ns = record.at_ns.saturating_add(base_ns);
        }
        breaks
    }

    /// The partition that a key falls into, counted from 0, of [`partitions`](Self::partitions).
    pub fn partition_of<N: AsRef<[u8]> + ?Sized>(&self, key: &N) -> u32 {
        self.inner.engine.partition_of(key.as_ref())
    }

    /// How many partitions there are: a power of two, at most 64.
    pub fn partitions(&self) -> u32 {
        self.inner.engine.region().partitions()
    }

    /// The URL that it was opened by.
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// How many keys the space's limiters have now: those with something used, and full ones not reclaimed
    /// yet. A few loads.
    pub fn limiter_key_count(&self) -> u64 {
        self.inner.engine.limiter_key_count()
    }

    /// Bytes that these keys take in the region: their cells, and the chunks of long ones. Reads the
    /// whole table.
    pub fn limiter_key_bytes(&self) -> u64 {
        self.inner.engine.limiter_key_bytes()
    }
}

impl LockInfo {
    fn new(status: LockStatus, now_ns: u64) -> Self {
        let is_live = |hold: &HoldStatus| hold.lease_left_ns > 0 && hold.is_alive;
        let lasting = |hold: &&HoldStatus| (is_live(hold), hold.lease_left_ns);
        let hold = status.holds.iter().max_by_key(lasting).copied();
        Self {
            name: status.name,
            token: status.token,
            is_shared: status.is_shared,
            holders: status.holds.iter().filter(|hold| is_live(hold)).count() as u32,
            holds: (status.holds.iter())
                .map(|hold| HoldInfo::new(hold, now_ns))
                .collect(),
            is_held: hold.is_some_and(|hold| is_live(&hold)),
            is_holder_dead: hold.is_some_and(|hold| hold.lease_left_ns > 0 && !hold.is_alive),
            holder_pid: hold
                .and_then(|hold| hold.process)
                .map(|process| process.pid),
            is_detached: hold.is_some_and(|hold| hold.detached),
            lease_left: Duration::from_nanos(hold.map_or(0, |hold| hold.lease_left_ns)),
            held_for: hold
                .and_then(|hold| hold.since_ns)
                .map(|since_ns| Duration::from_nanos(now_ns.saturating_sub(since_ns))),
            waiters: status.waiters,
            waiters_dead: status.waiters_dead,
        }
    }
}

impl Inner {
    /// Region time, fast: see [`Clock::now_ns`].
    #[inline(always)]
    pub(crate) fn now_ns(&self) -> u64 {
        self.region_ns(self.clock.now_ns())
    }

    /// Region time by the system's own clock: near deadlines, and where a hold may be taken over.
    pub(crate) fn precise_ns(&self) -> u64 {
        self.region_ns(self.clock.precise_ns())
    }

    /// Region time, fast, and never past the system's own: nobody's time is taken to be over before it is.
    #[inline(always)]
    pub(crate) fn cautious_ns(&self) -> u64 {
        self.now_ns().saturating_sub(self.clock_margin_ns())
    }

    /// Never before the region's own zero: the fast clock may still read a little less than the
    /// precise one did when the region was made.
    #[inline(always)]
    fn region_ns(&self, boot_ns: u64) -> u64 {
        boot_ns.saturating_add_signed(self.from_boot_ns)
    }

    /// Whether the lease of a hold still runs, by its holder's own clock, up to `deadline_ns` of region time;
    /// errs towards no near the end.
    #[inline(always)]
    pub(crate) fn is_in_lease(&self, deadline_ns: u64) -> bool {
        self.check_process().is_ok() && self.now_ns() + self.clock_margin_ns() < deadline_ns
    }

    /// By how much two readings of the fast clock may disagree: a holder stops this much early.
    #[inline(always)]
    fn clock_margin_ns(&self) -> u64 {
        if self.clock.is_manual() {
            0
        } else {
            2 * ERROR_NS_MAX
        }
    }

    /// Fails in a forked child. One load.
    #[inline(always)]
    pub(crate) fn check_process(&self) -> Result<()> {
        #[cfg(unix)]
        if !self.origin.is_this_process() {
            return Err(Error::Forked);
        }
        Ok(())
    }

    /// Fails if the region's file was replaced, or this process closed its session's descriptor: asked
    /// on slow paths.
    pub(crate) fn check_in_place(&self) -> Result<()> {
        Ok(self.engine.check_in_place()?)
    }

    /// Fails in a space without a session, which never goes past [`is_to_look`](Self::is_to_look).
    pub(crate) fn check_session(&self) -> Result<()> {
        if self.session == SessionId::DETACHED {
            return Err(Error::NoSession);
        }
        Ok(())
    }

    /// Whether it is time to look again, after [`LOOK_NS`]. One load.
    #[inline(always)]
    pub(crate) fn is_to_look(&self, now_ns: u64) -> bool {
        // Relaxed: two threads that both look are no harm.
        now_ns >= self.look_at_ns.load(Relaxed)
    }

    /// Whether it is not yet time to look again. Over memory of this process alone it never is, and no clock
    /// is read to find out.
    #[inline(always)]
    pub(crate) fn is_in_place_for_now(&self) -> bool {
        let look_at_ns = self.look_at_ns.load(Relaxed);
        look_at_ns == u64::MAX || self.now_ns() < look_at_ns
    }

    /// [`check_in_place`](Self::check_in_place), if it is time to look again.
    #[inline]
    pub(crate) fn check_in_place_now_and_then(&self, now_ns: u64) -> Result<()> {
        if self.is_to_look(now_ns) {
            self.check_session()?;
            self.check_in_place()?;
            self.look_at_ns
                .store(now_ns.saturating_add(LOOK_NS), Relaxed);
        }
        Ok(())
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    fn reach(&self) -> Reach {
        if self.engine.region().is_shared() {
            Reach::Host
        } else {
            Reach::Process
        }
    }

    /// Leaves a queue, and wakes those whose turn it is now.
    pub(crate) fn leave(&self, ticket: Ticket) {
        let now_ns = self.precise_ns();
        self.engine
            .cancel(ticket, now_ns, |wake| self.wake(Some(wake)));
    }

    /// Wakes a waiter that sleeps.
    #[inline(always)]
    pub(crate) fn wake(&self, wake: Option<Wake>) {
        if let Some(wake) = wake {
            self.wake_sleeper(wake);
        }
    }

    /// Sleeps while `word` is `seen`, for `sleep_ns` of region time at most.
    pub(crate) fn sleep_on(&self, word: &Half, seen: u32, sleep_ns: u64) {
        let mut timeout = Duration::from_nanos(sleep_ns);
        if self.clock.is_manual() {
            timeout = timeout.min(MANUAL_CLOCK_POLL);
        }
        futex::wait(word.as_atomic(), seen, timeout, self.reach());
    }

    #[cold]
    fn wake_sleeper(&self, wake: Wake) {
        let mut next = Some(wake);
        while let Some(wake) = next {
            if let Some(word) = self.engine.to_wake(wake) {
                self.wake_all(word);
            }
            next = self.engine.next_wake(wake);
        }
    }

    /// Wakes all that sleep on `word`.
    pub(crate) fn wake_all(&self, word: &Half) {
        futex::wake_all(word.as_atomic(), self.reach());
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.check_process().is_ok() && self.check_session().is_ok() {
            self.engine.close_session(self.session);
        }
    }
}

/// What can be given as a limit: a [`Limit`], or its text.
pub trait IntoLimit {
    /// The limit, or why it is none.
    fn into_limit(self) -> Result<Limit>;
}

impl IntoLimit for Limit {
    fn into_limit(self) -> Result<Limit> {
        Ok(self)
    }
}

impl IntoLimit for &str {
    fn into_limit(self) -> Result<Limit> {
        Ok(Limit::parse(self)?)
    }
}

impl IntoLimit for &String {
    fn into_limit(self) -> Result<Limit> {
        Ok(Limit::parse(self)?)
    }
}
