//! Descriptors that belong to one process and are closed in its forked children.
//!
//! The kernel lock (OFD) that says "this process is alive" belongs to the open file, and a forked
//! child shares that file: while any child keeps its copy of the descriptor, a dead parent looks alive. So every such
//! descriptor is listed here, and the child closes it: in the `pthread_atfork` handler, or, after a
//! raw `clone` that ran no handler, when it opens a space of its own ([`super::fork::renew`]).
//!
//! The list is chunks of slots that are never freed, only reused, so a handler can walk it at any
//! moment. One slot:
//!
//! | low half of `word` | Meaning | Set by |
//! |---|---|---|
//! | 0 | free | birth; [`ProcessFd`]'s drop; the child that closed it; who lists another under the same number |
//! | 2^32 - 1 | taken, not yet filled in | [`ProcessFd::open_with`] |
//! | fd + 1 | fd is listed; the other words describe it | [`ProcessFd::open_with`] |
//!
//! The high half counts the uses of the slot, so that a handle from before can't free a newer use. Whoever swaps
//! `fd + 1` for 0 is the one who closes: no descriptor is closed twice.
//!
//! | A fork that falls | What the child has | What happens to it |
//! |---|---|---|
//! | between open and listing | a copy that isn't listed | the parent notices the fork, closes its own and opens again; the child's copy is of a file nobody locked |
//! | between listing and lock | a listed copy | closed by the child before the lock exists, or after, all the same |
//! | between unlisting and close | a copy that isn't listed | of a file whose locks were dropped before it was unlisted |
//!
//! A number may have been closed and used again behind our back (a daemon that closes everything at
//! start): it is closed only if it still is the file that was listed, and nothing was listed under the same
//! number since.

use super::HostError;
use super::fork::{self, Origin};
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

/// The most descriptors one process may list at a time.
const DESCRIPTORS_MAX: usize = SLOTS_PER_CHUNK * CHUNKS_MAX;

const SLOTS_PER_CHUNK: usize = 64;
const CHUNKS_MAX: usize = 64;

const FREE: u64 = 0;
const TAKEN: u64 = 0xFFFF_FFFF;
const LOW_HALF: u64 = 0xFFFF_FFFF;
const ONE_USE: u64 = 1 << 32;

/// Yields first, then sleeps of a millisecond, while another thread forks: a large process takes a while.
const FORK_YIELDS_MAX: u32 = 100;
const FORK_WAIT_MS_MAX: u32 = 10_000;

/// A descriptor that forked children don't keep. Drops its file's OFD locks, unlists and closes when
/// dropped in the process that opened it; in a forked child, dropping it leaves the parent's locks alone.
#[derive(Debug)]
pub struct ProcessFd {
    fd: ManuallyDrop<OwnedFd>,
    slot: &'static Slot,
    /// The slot's word while this is listed.
    word: u64,
    origin: Origin,
}

#[derive(Debug)]
struct Slot {
    word: AtomicU64,
    /// The fork id of the process that listed it.
    fork_id: AtomicU64,
    device: AtomicU64,
    inode: AtomicU64,
}

struct Chunk {
    slots: [Slot; SLOTS_PER_CHUNK],
    next: AtomicPtr<Chunk>,
}

static FIRST_CHUNK: Chunk = Chunk::new();

impl ProcessFd {
    /// Opens a descriptor by `open` and lists it. Take locks on it only afterwards.
    ///
    /// `open` is called again when another thread forked meanwhile, so it must be repeatable, and
    /// should open with `O_CLOEXEC`. Waits while another thread is in the middle of a fork.
    ///
    /// # Errors
    ///
    /// [`HostError::OpenDescriptor`] with what `open` returned, [`HostError::DescriptorsFull`],
    /// [`HostError::ForkInFlight`], and those of [`fork::renew`].
    pub fn open_with(mut open: impl FnMut() -> io::Result<OwnedFd>) -> Result<Self, HostError> {
        let origin = Origin::here()?;
        let mut waits = 0;
        loop {
            if let Some(window) = fork::fork_window() {
                let fd = open().map_err(|source| HostError::OpenDescriptor { source })?;
                let listed = Self::list(fd, origin)?;
                if fork::no_fork_began_since(window) {
                    return Ok(listed);
                }
                drop(listed);
            }
            waits += 1;
            if waits <= FORK_YIELDS_MAX {
                std::thread::yield_now();
            } else if waits <= FORK_YIELDS_MAX + FORK_WAIT_MS_MAX {
                std::thread::sleep(Duration::from_millis(1));
            } else {
                return Err(HostError::ForkInFlight {
                    waited_ms: FORK_WAIT_MS_MAX.into(),
                });
            }
        }
    }

    fn list(fd: OwnedFd, origin: Origin) -> Result<Self, HostError> {
        let raw = fd.as_raw_fd();
        let (device, inode) =
            file_of(raw).map_err(|source| HostError::OpenDescriptor { source })?;
        // Whatever else is listed under this number was closed behind its owner's back, who is not to
        // close this one.
        for other in all_slots() {
            let word = other.word.load(Ordering::Acquire);
            if word & LOW_HALF == listed(raw) {
                other.free(word);
            }
        }
        let (slot, uses) = take_slot()?;
        slot.fork_id.store(origin.id(), Ordering::Relaxed);
        slot.device.store(device, Ordering::Relaxed);
        slot.inode.store(inode, Ordering::Relaxed);
        let word = uses | listed(raw);
        // Release: pairs with the Acquire in `close_listed`, for the three words above.
        slot.word.store(word, Ordering::Release);
        Ok(Self {
            fd: ManuallyDrop::new(fd),
            slot,
            word,
            origin,
        })
    }
}

impl AsFd for ProcessFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for ProcessFd {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Drop for ProcessFd {
    fn drop(&mut self) {
        let fd = self.fd.as_raw_fd();
        // Unlisted means that a forked child has closed it already, or that the number was found to be
        // another's; so may be one that is listed.
        let is_the_file = self.slot.lists(self.word) && self.slot.still_describes(fd);
        if is_the_file && self.origin.is_this_process() {
            unlock_all(fd);
        }
        if self.slot.free(self.word) && is_the_file {
            // SAFETY: dropped once, here, and `self.fd` isn't used again.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}

/// Closes what was listed by a process other than the one with this fork id.
pub(super) fn close_inherited(fork_id: u64) {
    for slot in all_slots() {
        slot.close_unless_listed_by(fork_id);
    }
}

/// The same in a child's fork handler, where no other thread exists: slots that a thread of the
/// parent had taken and not yet filled in are nobody's and become free.
pub(super) fn close_inherited_before_any_thread() {
    for slot in all_slots() {
        let word = slot.word.load(Ordering::Acquire);
        if word & LOW_HALF == TAKEN {
            slot.word.store(word & !LOW_HALF, Ordering::Relaxed);
        } else {
            slot.close_unless_listed_by(0);
        }
    }
}

impl Slot {
    const fn new() -> Self {
        Self {
            word: AtomicU64::new(FREE),
            fork_id: AtomicU64::new(0),
            device: AtomicU64::new(0),
            inode: AtomicU64::new(0),
        }
    }

    /// Whether this use of the slot is still listed.
    fn lists(&self, word: u64) -> bool {
        // Acquire: as in `close_unless_listed_by`.
        self.word.load(Ordering::Acquire) == word
    }

    /// Whether the caller was the one to free this use of the slot.
    fn free(&self, word: u64) -> bool {
        // Acquire and Release: the next use of the slot writes its words after this one read them.
        self.word
            .compare_exchange(word, word & !LOW_HALF, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    fn close_unless_listed_by(&self, fork_id: u64) {
        // Acquire: pairs with the Release store in `list`.
        let word = self.word.load(Ordering::Acquire);
        let low = word & LOW_HALF;
        if low == FREE || low == TAKEN || self.fork_id.load(Ordering::Relaxed) == fork_id {
            return;
        }
        let Ok(fd) = RawFd::try_from(low - 1) else {
            return;
        };
        let is_the_file = self.still_describes(fd);
        if self.free(word) && is_the_file {
            // SAFETY: `fd` is this process's copy of a descriptor that its parent's ProcessFd owned.
            // That value was copied too, but won't close it: it would have to free the slot first,
            // and this thread has done so.
            unsafe { libc::close(fd) };
        }
    }

    fn still_describes(&self, fd: RawFd) -> bool {
        file_of(fd).is_ok_and(|(device, inode)| {
            device == self.device.load(Ordering::Relaxed)
                && inode == self.inode.load(Ordering::Relaxed)
        })
    }
}

impl Chunk {
    const fn new() -> Self {
        Self {
            slots: [const { Slot::new() }; SLOTS_PER_CHUNK],
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    fn next(&self) -> Option<&'static Chunk> {
        // SAFETY: null, or a chunk that `grow` published and nobody frees. Acquire: pairs with the
        // Release in `grow`.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    /// The chunk after this last one: a new one, or the one that another thread was first to add.
    fn grow(&self) -> &'static Chunk {
        let new = Box::into_raw(Box::new(Chunk::new()));
        match self
            .next
            .compare_exchange(ptr::null_mut(), new, Ordering::Release, Ordering::Acquire)
        {
            // SAFETY: leaked on purpose and reachable from the list for as long as the process lives.
            Ok(_) => unsafe { &*new },
            Err(first) => {
                // SAFETY: `new` came from Box::into_raw above and was shown to nobody.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: published by another thread's `grow`, never freed.
                unsafe { &*first }
            }
        }
    }
}

fn all_chunks() -> impl Iterator<Item = &'static Chunk> {
    std::iter::successors(Some(&FIRST_CHUNK), |chunk| chunk.next()).take(CHUNKS_MAX)
}

fn all_slots() -> impl Iterator<Item = &'static Slot> {
    all_chunks().flat_map(|chunk| &chunk.slots)
}

/// A slot that is now taken by the caller, and its count of uses in place.
fn take_slot() -> Result<(&'static Slot, u64), HostError> {
    let mut chunk = &FIRST_CHUNK;
    for _ in 0..CHUNKS_MAX {
        for slot in &chunk.slots {
            let word = slot.word.load(Ordering::Relaxed);
            if word & LOW_HALF != FREE {
                continue;
            }
            let uses = word.wrapping_add(ONE_USE);
            // Acquire: pairs with the Release in `free`.
            if slot
                .word
                .compare_exchange(word, uses | TAKEN, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                return Ok((slot, uses));
            }
        }
        chunk = chunk.next().unwrap_or_else(|| chunk.grow());
    }
    Err(HostError::DescriptorsFull {
        descriptors_max: DESCRIPTORS_MAX,
    })
}

fn listed(fd: RawFd) -> u64 {
    u64::from(fd.cast_unsigned()) + 1
}

/// Device and inode. Async-signal-safe.
#[allow(clippy::cast_sign_loss, clippy::unnecessary_cast)] // The types differ between systems.
fn file_of(fd: RawFd) -> io::Result<(u64, u64)> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `status` has room for what fstat writes; a number that isn't open is an error.
    if unsafe { libc::fstat(fd, status.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: fstat returned 0, so it has written all of it.
    let status = unsafe { status.assume_init() };
    Ok((status.st_dev as u64, status.st_ino as u64))
}

/// Drops every OFD lock of the open file, as closing its last descriptor would.
fn unlock_all(fd: RawFd) {
    #[cfg(target_os = "linux")]
    {
        let everything = libc::flock {
            l_type: libc::F_UNLCK as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        };
        // SAFETY: F_OFD_SETLK reads one flock. Where it fails (not a file that can be locked) there
        // are no locks to drop.
        unsafe { libc::fcntl(fd, libc::F_OFD_SETLK, &raw const everything) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = fd;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_list_is_a_typed_error_and_what_is_freed_serves_again() {
        let mut taken = Vec::new();
        let error = loop {
            match take_slot() {
                Ok((slot, uses)) => taken.push((slot, uses | TAKEN)),
                Err(error) => break error,
            }
        };
        assert_eq!(taken.len(), DESCRIPTORS_MAX);
        assert!(error.to_string().contains("4096 descriptors"), "{error}");

        let (slot, word) = taken.swap_remove(1_000);
        assert!(slot.free(word));
        assert!(!slot.free(word), "the same use is not freed twice");
        let (again, uses) = take_slot().expect("one is free");
        assert!(ptr::eq(slot, again));
        assert!(
            !slot.free(word),
            "nor is a newer use freed by an old handle"
        );
        taken.push((again, uses | TAKEN));
        for (slot, word) in taken {
            assert!(slot.free(word));
        }
    }
}
