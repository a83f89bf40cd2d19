//! How a space is opened: caps for a new region, sharing, clock.

use super::{Inner, Space};
use crate::background::Background;
use crate::clock::{Clock, ManualClock};
use crate::host::place::Url;
use crate::metrics::Counts;
use crate::{Caps, Error, Result};
use sprag_core::region::{Birth, Region};
use sprag_core::session::Process;
use sprag_core::{Engine, SessionId};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

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
        let base_boot_ns = engine.region().base_boot_ns();
        let (zero_boot_ns, before_boot_ns) = match u64::try_from(base_boot_ns) {
            Ok(zero_boot_ns) => (zero_boot_ns, 0),
            Err(_) => (0, base_boot_ns.unsigned_abs()),
        };
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
                zero_boot_ns,
                before_boot_ns,
                background: Background::default(),
                process,
                counts: Counts::default(),
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
