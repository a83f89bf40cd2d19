//! A shared region's side of sessions: one session to an open file description, kept alive by its kernel
//! lock.
//!
//! Owns that description and its locks. Of the session's line it changes only who has it.

use super::{Descriptor, SessionId, comes_round, ofd, open_line};
use crate::error::{Error, Result};
use crate::sync::Word;
use core::sync::atomic::Ordering::Acquire;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

pub(super) struct Shared {
    file: Descriptor,
    /// Device and inode of the region's file.
    identity: Option<(u64, u64)>,
    own: OnceLock<SessionId>,
    /// Held while the one session opens: two threads' locks on one description don't conflict.
    opening: Mutex<()>,
}

impl Shared {
    pub(super) fn new(file: Descriptor) -> Self {
        Self {
            identity: ofd::identity(&file),
            file,
            own: OnceLock::new(),
            opening: Mutex::new(()),
        }
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The one session, once it is open.
    pub(super) fn own(&self) -> Option<SessionId> {
        self.own.get().copied()
    }

    pub(super) fn set_own(&self, session: SessionId) {
        let _ = self.own.set(session);
    }

    /// Lets one thread at a time open the one session, and none once it was opened.
    pub(super) fn begin_opening(&self) -> Result<MutexGuard<'_, ()>> {
        let opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if self.own.get().is_some() {
            return Err(Error::Full {
                what: "session in one opening of a shared region",
                cap: 1,
            });
        }
        Ok(opening)
    }

    /// Takes the kernel lock of a line that nobody has. The generation rises first: whoever is stopped
    /// before it has the lock keeps no dead session alive by it. Until it has, it holds the claim, so
    /// that nobody else opens the line.
    pub(super) fn take_line(
        &self,
        control: &Word,
        index: u16,
        end_what_is_left: &dyn Fn(u16),
    ) -> Result<Option<u64>> {
        let claim = ofd::Bytes::claim(index);
        if !ofd::try_lock(&self.file, claim)? {
            return Ok(None);
        }
        let taken = if ofd::is_alive(&self.file, index) {
            Ok(None)
        } else {
            let before = control.load(Acquire);
            if comes_round(before) {
                // Before the generation rises: whoever dies here leaves it to the next.
                end_what_is_left(index);
            }
            match open_line(control, before) {
                Some(generation) => ofd::try_lock(&self.file, ofd::Bytes::session(index))
                    .map(|is_locked| is_locked.then_some(generation)),
                None => Ok(None),
            }
        };
        ofd::unlock(&self.file, claim);
        taken
    }

    /// Fails while somebody replaces the region: no line can be had then.
    pub(super) fn check_not_being_replaced(&self) -> Result<()> {
        if ofd::is_being_replaced(&self.file) {
            return Err(Error::Contended {
                what: "replacing the region",
            });
        }
        Ok(())
    }

    /// Gives the session's kernel lock back.
    pub(super) fn let_die(&self, session: SessionId) {
        ofd::unlock(&self.file, ofd::Bytes::session(session.index));
    }

    /// Whether the kernel keeps the session alive. It never reports a description's own lock to itself.
    pub(super) fn is_alive(&self, session: SessionId) -> bool {
        self.own() == Some(session)
            || ofd::is_alive(&self.file, session.index)
            // Something closed the descriptor, and its number is another file's: that knows nobody.
            || ofd::identity(&self.file) != self.identity
    }

    /// Whether another opening keeps the session of a line alive.
    pub(super) fn is_held(&self, index: u16) -> bool {
        ofd::is_held(&self.file, index)
    }
}
