//! Whether this process is still the one that opened a space.
//!
//! A forked child owns nothing: its parent's holds, sessions and descriptors are the parent's. The
//! **fork id** tells them apart with one load. It lies in a page that the kernel empties in every
//! child (`MADV_WIPEONFORK`), so it works for a raw `clone` as well, which runs no handlers; where
//! the kernel can't do that, a `pthread_atfork` handler does.
//!
//! ```text
//! new process, or forked child         this process has opened something
//!   fork_id = 0  ──── renew() ────▶  fork_id = n, never an id of an ancestor
//!        ▲                                        │
//!        └───────────── fork, in the child ───────┘
//! ```
//!
//! A child made by `vfork` or `posix_spawn` borrows its parent's memory until it executes something
//! and counts as the parent; so does a thread.

use super::page::{self, ProcessPage};
use super::{HostError, process_fd};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// The last fork id given out in this process or in any of its ancestors: a child inherits the count
/// (it isn't on the wiped page), so no child is ever given an id that a handle from before the fork carries.
static LAST_ID: AtomicU64 = AtomicU64::new(0);

/// This process's fork id; 0 in a process that hasn't called [`renew`] since it came to be.
///
/// Costs two loads. Async-signal-safe.
#[inline(always)]
pub fn fork_id() -> u64 {
    // Relaxed: the word stands for itself. A thread of this process sees its own id, for it was
    // given before any handle could be captured, and the kernel empties it before a child runs.
    page::if_mapped().map_or(0, |page| page.fork_id.load(Ordering::Relaxed))
}

/// Gives this process a fork id if it has none, closes what it inherited from its parent, and
/// returns the id. Called by every open.
///
/// Async-signal-safe from the second call in a process or its ancestors on.
///
/// # Errors
///
/// [`HostError::MapPage`], [`HostError::ForkHandlers`].
pub fn renew() -> Result<u64, HostError> {
    let page = page::this_process()?;
    let id = page.fork_id.load(Ordering::Relaxed);
    if id != 0 {
        return Ok(id);
    }
    register_handlers()?;
    let next = LAST_ID.fetch_add(1, Ordering::Relaxed) + 1;
    // AcqRel and Acquire: who finds the id in place finds the handlers registered.
    match page
        .fork_id
        .compare_exchange(0, next, Ordering::AcqRel, Ordering::Acquire)
    {
        Ok(_) => {
            process_fd::close_inherited(next);
            Ok(next)
        }
        Err(first) => Ok(first),
    }
}

/// The process that captured it, and no child of it.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    page: &'static ProcessPage,
    id: u64,
}

impl Origin {
    /// Captures this process, renewing its fork id if need be.
    ///
    /// # Errors
    ///
    /// As for [`renew`].
    pub fn here() -> Result<Self, HostError> {
        let id = renew()?;
        Ok(Self {
            page: page::this_process()?,
            id,
        })
    }

    /// Whether the caller is the process that captured this: one relaxed load and a comparison.
    /// Async-signal-safe.
    #[inline(always)]
    pub fn is_this_process(&self) -> bool {
        self.page.fork_id.load(Ordering::Relaxed) == self.id
    }

    /// The fork id that was captured. Never 0.
    pub fn id(&self) -> u64 {
        self.id
    }
}

/// A count to compare with later, or None while a fork is under way.
///
/// The counts of forks begun and ended, which the handlers keep, lie in the process page: a child begins at none,
/// whatever its parent's other threads were in the middle of, and nobody ever has to set them right. `SeqCst`
/// throughout.
///
/// A descriptor that exists before it is registered can be copied into a child that then doesn't
/// know to close it. So: take a window, open, register, and ask whether the window is still closed.
/// The two sides are a store-load pair. The opener stores its registration, fences, and loads
/// `forks_started`; the forker adds to `forks_started`, fences, and copies the memory. Either the
/// opener sees the fork, or the copy holds the registration.
pub(super) fn fork_window() -> Option<u64> {
    // Finished first: a fork that ends in between looks as if it were under way, never the reverse.
    let page = page::if_mapped()?;
    let finished = page.forks_finished.load(Ordering::SeqCst);
    let started = page.forks_started.load(Ordering::SeqCst);
    (finished == started).then_some(started)
}

pub(super) fn no_fork_began_since(window: u64) -> bool {
    fence(Ordering::SeqCst);
    page::if_mapped().is_some_and(|page| page.forks_started.load(Ordering::SeqCst) == window)
}

static ARE_HANDLERS_REGISTERED: AtomicBool = AtomicBool::new(false);

/// Two threads may both register; the handlers run twice then and do the same.
fn register_handlers() -> Result<(), HostError> {
    if ARE_HANDLERS_REGISTERED.load(Ordering::Acquire) {
        return Ok(());
    }
    // SAFETY: the three functions live as long as this library is loaded (the C library drops the
    // handlers of a library that is unloaded), do only what is async-signal-safe, and don't unwind.
    let failure =
        unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
    if failure != 0 {
        return Err(HostError::ForkHandlers {
            source: io::Error::from_raw_os_error(failure),
        });
    }
    ARE_HANDLERS_REGISTERED.store(true, Ordering::Release);
    Ok(())
}

extern "C" fn before_fork() {
    // Mapped before the handlers were registered.
    if let Some(page) = page::if_mapped() {
        page.forks_started.fetch_add(1, Ordering::SeqCst);
    }
    fence(Ordering::SeqCst);
}

/// Runs after a fork that failed, too.
extern "C" fn in_parent() {
    if let Some(page) = page::if_mapped() {
        page.forks_finished.fetch_add(1, Ordering::SeqCst);
    }
}

/// Only the thread that forked exists here.
extern "C" fn in_child() {
    if let Some(page) = page::if_mapped() {
        // A handler that was registered before this one runs before it, and may have opened something: an id that is here
        // though the kernel emptied the page is the child's own, whose renewal did all that is to be done.
        if page::is_emptied_by_kernel() && page.fork_id.load(Ordering::Relaxed) != 0 {
            return;
        }
        page.wipe();
    }
    process_fd::close_inherited_before_any_thread();
}
