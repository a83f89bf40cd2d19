//! Sessions: who is there. Holds, waits and claims name one, and die with it.
//!
//! A session is a line of the region. In a shared region its owner also holds a kernel lock (an open
//! file description lock, `F_OFD_SETLK`) on one byte of the file, which the kernel drops when the last
//! copy of the descriptor closes: on death, on exec (close-on-exec), and in forked children, which
//! close theirs (the api layer sees to it, with [`Engine::session_fd`](crate::Engine::session_fd)). So
//! liveness is the kernel's word, never a bare pid.
//!
//! A child that is forked and neither closes the descriptor nor runs another program keeps its dead
//! parent's session alive until it ends itself: the parent's holds then last until their leases end.
//!
//! | word | field | written by |
//! |---|---|---|
//! | 0 | bit 0: open; bits 8..40: generation, one higher for each owner of the line | the owner |
//! | 8 | bits 0..32: process id (of its own namespace); bits 32..64: unix time of opening, in seconds | the owner |
//! | 16 | process start time on the boot clock, in nanoseconds | the owner |
//! | 24 | inode of its pid namespace | the owner |
//! | 32, 40, 48 | cells of the objects, the limiter keys and the joint keys table that it created | anyone, see `table` |
//! | 56 | *doorbell* (32 bits): raised when a wait of the session that no thread sleeps on may be ready | anyone |
//!
//! ```text
//!          exchange (in a shared region under the line's claim)        kernel lock
//!  closed ──────────────────────────────────▶ open, generation + 1 ───────────────▶ alive
//!    ▲                                             death before the lock │            │ close, death
//!    └───────────────────────────────────────────────────────────────────┴────────────┘
//! ```

#[cfg(all(not(loom), target_os = "linux"))]
pub(crate) mod ofd;
#[cfg(all(not(loom), not(target_os = "linux")))]
#[path = "session/no_ofd.rs"]
mod ofd;
#[cfg_attr(loom, path = "session/no_shared.rs")]
mod shared;

use crate::error::{Error, Result};
use crate::region::{Region, SESSIONS_MAX, header};
use crate::sync::Word;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use shared::Shared;

/// A session, as state words name it: its line, and the low bits of the line's generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId {
    pub(crate) index: u16,
    pub(crate) generation: u8,
}

pub(crate) const GENERATION_BITS: u32 = 6;

impl SessionId {
    /// Names nobody: what it holds lives until its lease ends. For holds handed from one process to
    /// another, such as those that a shell script acquires and releases with two commands.
    pub const DETACHED: Self = Self {
        index: SESSIONS_MAX as u16 - 1,
        generation: 0,
    };

    /// The index of its line.
    pub fn index(self) -> u16 {
        self.index
    }

    pub(crate) fn bits(self) -> u128 {
        u128::from(self.generation) | u128::from(self.index) << GENERATION_BITS
    }

    /// The session in the low bits of `bits`, whatever stands above them.
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self {
            index: (bits >> GENERATION_BITS & 0xfff) as u16,
            generation: (bits & ((1 << GENERATION_BITS) - 1)) as u8,
        }
    }
}

/// What a session says of its process; 0 where unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Process id, in the process's own namespace.
    pub pid: u32,
    /// Start time on the boot clock, in nanoseconds: tells a reused pid.
    pub start_ns: u64,
    /// Inode of the pid namespace.
    pub pid_namespace: u64,
}

/// An open file description of a region's file, for the kernel lock that keeps a session alive. What
/// closes it in forked children is its owner's to bring.
#[cfg(all(not(loom), unix))]
pub type Descriptor = Box<dyn std::os::fd::AsFd + Send + Sync>;

/// How one process tells which sessions live.
pub(crate) struct Sessions {
    shared: Option<Shared>,
}

const OPEN: u64 = 1;

/// Whether the low bits of a line's next generation start anew.
fn comes_round(before: u64) -> bool {
    (before >> 8).wrapping_add(1) & ((1 << GENERATION_BITS) - 1) == 0
}

/// Opens a line for its next owner; the owner's generation, or `None` if the line changed since.
fn open_line(control: &Word, before: u64) -> Option<u64> {
    let generation = (before >> 8).wrapping_add(1) & u64::from(u32::MAX);
    control
        .compare_exchange(before, generation << 8 | OPEN, AcqRel, Relaxed)
        .is_ok()
        .then_some(generation)
}

impl Sessions {
    /// For anonymous memory: sessions live until closed.
    pub(crate) fn local() -> Self {
        Self { shared: None }
    }

    /// For a shared region: `file` is an open file description of its own, that carries the kernel
    /// lock of the one session opened through this value.
    #[cfg(not(loom))]
    pub(crate) fn shared(file: Descriptor) -> Self {
        Self {
            shared: Some(Shared::new(file)),
        }
    }

    /// The descriptor whose lock keeps this process's session alive.
    #[cfg(all(not(loom), unix))]
    pub(crate) fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.shared.as_ref().map(Shared::descriptor)
    }

    /// The one session opened through this value; `None` over memory of this process alone.
    #[cfg(all(not(loom), target_os = "linux"))]
    pub(crate) fn own(&self) -> Option<SessionId> {
        self.shared.as_ref()?.own()
    }

    pub(crate) fn counter_at(region: &Region, index: u16, counter: usize) -> usize {
        region.session_at(u32::from(index) % region.caps().sessions) + 32 + 8 * counter
    }

    /// The session's doorbell.
    pub(crate) fn doorbell(region: &Region, session: SessionId) -> &crate::sync::Half {
        region.half(region.session_at(u32::from(session.index) % region.caps().sessions) + 56)
    }

    /// Opens a session.
    pub(crate) fn open(
        &self,
        region: &Region,
        process: Process,
        unix_ns: u64,
        end_what_is_left: &dyn Fn(u16),
    ) -> Result<SessionId> {
        let cap = region.caps().sessions;
        let _opening = self
            .shared
            .as_ref()
            .map(Shared::begin_opening)
            .transpose()?;
        // Each opening starts past the last, so that an index is reused as late as can be.
        let hint = region.word(header::SESSION_HINT).fetch_add(1, Relaxed);
        for i in 0..cap {
            let index = (hint.wrapping_add(u64::from(i)) % u64::from(cap)) as u16;
            let at = region.session_at(index.into());
            let Some(generation) = self.take_line(region.word(at), index, end_what_is_left)? else {
                continue;
            };
            for (offset, value) in [
                (8, u64::from(process.pid) | (unix_ns / 1_000_000_000) << 32),
                (16, process.start_ns),
                (24, process.pid_namespace),
            ] {
                // Relaxed: for people to read.
                region.word(at + offset).store(value, Relaxed);
            }
            let generation = (generation & ((1 << GENERATION_BITS) - 1)) as u8;
            let session = SessionId { index, generation };
            if let Some(shared) = &self.shared {
                shared.set_own(session);
            }
            return Ok(session);
        }
        if let Some(shared) = &self.shared {
            shared.check_not_being_replaced()?;
        }
        Err(Error::Full {
            what: "session",
            cap: cap.into(),
        })
    }

    /// Makes a line the caller's if nobody has it, under a new generation. Where its low bits come round,
    /// what is left of the sessions before is ended first.
    fn take_line(
        &self,
        control: &Word,
        index: u16,
        end_what_is_left: &dyn Fn(u16),
    ) -> Result<Option<u64>> {
        if let Some(shared) = &self.shared {
            return shared.take_line(control, index, end_what_is_left);
        }
        let before = control.load(Acquire);
        if before & OPEN != 0 {
            return Ok(None);
        }
        let generation = open_line(control, before);
        // Only now is the line this thread's; and no thread dies alone in between.
        if generation.is_some() && comes_round(before) {
            end_what_is_left(index);
        }
        Ok(generation)
    }

    /// How many sessions a process has open in a shared region; 0 where too little is known of it to tell
    /// it from another.
    pub(crate) fn count_of(&self, region: &Region, process: Process) -> u32 {
        let Some(shared) = &self.shared else { return 0 };
        if process.start_ns == 0 || process.pid_namespace == 0 {
            return 0;
        }
        let is_its = |index: &u32| {
            let at = region.session_at(*index);
            let word = |offset| region.word(at + offset).load(Relaxed);
            word(0) & OPEN != 0
                && word(8) as u32 == process.pid
                && word(16) == process.start_ns
                && word(24) == process.pid_namespace
                // Before it replaced itself by another program it was the same process.
                && shared.is_held(*index as u16)
        };
        (0..region.caps().sessions).filter(is_its).count() as u32
    }

    /// How many sessions are alive.
    pub(crate) fn alive_count(&self, region: &Region) -> u64 {
        let is_alive = |index: &u32| {
            let control = region.word(region.session_at(*index)).load(Acquire);
            let session = SessionId {
                index: *index as u16,
                generation: (control >> 8 & ((1 << GENERATION_BITS) - 1)) as u8,
            };
            control & OPEN != 0 && self.is_alive(region, session)
        };
        (0..region.caps().sessions).filter(is_alive).count() as u64
    }

    /// Whether the line of the one session is still its own.
    #[cfg(all(not(loom), target_os = "linux"))]
    pub(crate) fn has_line(region: &Region, session: SessionId) -> bool {
        let control = region.word(region.session_at(session.index.into()));
        Self::names(control.load(Acquire), session)
    }

    /// Closes a session: what it holds is up for grabs from now on.
    pub(crate) fn close(&self, region: &Region, session: SessionId) {
        let control = region.word(region.session_at(session.index.into()));
        let now = control.load(Acquire);
        if !Self::names(now, session) {
            // Lost, and another's since: its lock is not this session's to give back.
            return;
        }
        // Release: pairs with the acquire in `is_alive`.
        let _ = control.compare_exchange(now, now & !OPEN, Release, Relaxed);
        if let Some(shared) = &self.shared {
            shared.let_die(session);
        }
    }

    fn names(control: u64, session: SessionId) -> bool {
        control & OPEN != 0
            && (control >> 8) & ((1 << GENERATION_BITS) - 1) == u64::from(session.generation)
    }

    /// The generation of a session's line, in full.
    pub(crate) fn generation(region: &Region, session: SessionId) -> u32 {
        if session == SessionId::DETACHED {
            return 0;
        }
        let at = region.session_at(u32::from(session.index) % region.caps().sessions);
        (region.word(at).load(Acquire) >> 8) as u32
    }

    /// Whether the session lives that has this line under this generation, told in full.
    pub(crate) fn is_alive_in_full(&self, region: &Region, index: u16, generation: u32) -> bool {
        let session = SessionId {
            index,
            generation: (generation & ((1 << GENERATION_BITS) - 1)) as u8,
        };
        Self::generation(region, session) == generation && self.is_alive(region, session)
    }

    /// Whether a session lives. In a shared region a system call, unless the region itself says no.
    pub(crate) fn is_alive(&self, region: &Region, session: SessionId) -> bool {
        if session == SessionId::DETACHED {
            return true;
        }
        if u32::from(session.index) >= region.caps().sessions {
            return false;
        }
        // Acquire: pairs with `open` and `close`.
        let control = region
            .word(region.session_at(session.index.into()))
            .load(Acquire);
        if !Self::names(control, session) {
            return false;
        }
        self.shared
            .as_ref()
            .is_none_or(|shared| shared.is_alive(session))
    }

    /// Closes every line, generations kept: for a region from another boot, before anyone uses it.
    #[cfg(all(not(loom), target_os = "linux"))]
    pub(crate) fn close_all(region: &Region) {
        for index in 0..region.caps().sessions {
            let control = region.word(region.session_at(index));
            // Relaxed: published by the boot id's store.
            control.store(control.load(Relaxed) & !OPEN, Relaxed);
        }
    }

    /// What a session says of its process; `None` if the session is not open any more.
    pub(crate) fn process(region: &Region, session: SessionId) -> Option<Process> {
        if u32::from(session.index) >= region.caps().sessions {
            return None;
        }
        let at = region.session_at(session.index.into());
        let process = Process {
            pid: region.word(at + 8).load(Relaxed) as u32,
            start_ns: region.word(at + 16).load(Relaxed),
            pid_namespace: region.word(at + 24).load(Relaxed),
        };
        Self::names(region.word(at).load(Acquire), session).then_some(process)
    }
}
