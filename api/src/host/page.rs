//! The process page: one page per process that the kernel empties in every forked child.
//!
//! It holds what a child must not inherit and a hot call must look at: the fork id and the clock's anchor, on one
//! cache line. It is mapped at first use and stays until the process ends, so references to it are `'static`.

use super::HostError;
use crate::clock::anchor::{Anchor, CalibrationWords};
use std::sync::atomic::AtomicU64;

/// What lies at the start of the page. Zero bytes are its state in a new process and in a forked child.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct ProcessPage {
    /// Nonzero once this process has renewed it; see the `fork` module.
    pub(crate) fork_id: AtomicU64,
    pub(crate) anchor: Anchor,
    /// Written once per renewal of the anchor, so on a line of its own.
    pub(crate) calibration: OwnLine<CalibrationWords>,
    /// Forks that this process has begun and ended; see the `fork` module. Its parent's are not its own.
    pub(crate) forks_started: OwnLine<AtomicU64>,
    pub(crate) forks_finished: AtomicU64,
}

#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct OwnLine<T>(T);

impl<T> std::ops::Deref for OwnLine<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl ProcessPage {
    #[cfg(any(test, not(unix)))]
    pub(crate) const fn new() -> Self {
        Self {
            fork_id: AtomicU64::new(0),
            anchor: Anchor::new(),
            calibration: OwnLine(CalibrationWords::new()),
            forks_started: OwnLine(AtomicU64::new(0)),
            forks_finished: AtomicU64::new(0),
        }
    }

    /// What the kernel does to the page in a child, for where it doesn't.
    pub(crate) fn wipe(&self) {
        use std::sync::atomic::Ordering::Relaxed;
        self.fork_id.store(0, Relaxed);
        self.anchor.wipe();
        self.calibration.wipe();
        self.forks_started.store(0, Relaxed);
        self.forks_finished.store(0, Relaxed);
    }
}

#[cfg(unix)]
pub(crate) use mapped::{if_mapped, is_emptied_by_kernel, this_process};

#[cfg(unix)]
mod mapped {
    use super::{HostError, ProcessPage};
    use std::io;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

    static PAGE: AtomicPtr<ProcessPage> = AtomicPtr::new(ptr::null_mut());
    static IS_EMPTIED_BY_KERNEL: AtomicBool = AtomicBool::new(false);

    /// Whether the kernel empties the page that is mapped in every child. Async-signal-safe.
    pub(crate) fn is_emptied_by_kernel() -> bool {
        IS_EMPTIED_BY_KERNEL.load(Ordering::Relaxed)
    }

    /// This process's page, mapped now if it wasn't.
    pub(crate) fn this_process() -> Result<&'static ProcessPage, HostError> {
        if let Some(page) = if_mapped() {
            return Ok(page);
        }
        let new = map()?;
        // Release: pairs with the Acquire in `if_mapped`; Acquire on failure for the winner's page.
        // There is little to order, since the kernel zeroes the page before anyone has its address.
        match PAGE.compare_exchange(ptr::null_mut(), new, Ordering::Release, Ordering::Acquire) {
            // SAFETY: `map` returned a page that is mapped until the process ends, aligned to a
            // page and so to 64, and zero bytes are a valid ProcessPage, all of whose words are atomic.
            Ok(_) => Ok(unsafe { &*new }),
            Err(winner) => {
                // SAFETY: this thread mapped `new` and has shown it to nobody.
                unsafe { libc::munmap(new.cast(), size_of::<ProcessPage>()) };
                // SAFETY: as above, of the page that was published first and is never unmapped.
                Ok(unsafe { &*winner })
            }
        }
    }

    /// This process's page if it has one. Async-signal-safe.
    #[inline(always)]
    pub(crate) fn if_mapped() -> Option<&'static ProcessPage> {
        // SAFETY: null, or a page that `this_process` published and nobody ever unmaps.
        unsafe { PAGE.load(Ordering::Acquire).as_ref() }
    }

    fn map() -> Result<*mut ProcessPage, HostError> {
        // The kernel rounds the length up to a page, here and in madvise and munmap.
        let bytes = size_of::<ProcessPage>();
        // SAFETY: a new private anonymous mapping at an address of the kernel's choice touches nothing of ours.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(HostError::MapPage {
                source: io::Error::last_os_error(),
            });
        }
        // Kernels before 4.14 refuse; the child's fork handler wipes the page there.
        #[cfg(target_os = "linux")]
        {
            // SAFETY: the range is the mapping made above; the advice changes what a child sees of it and nothing here.
            let advised = unsafe { libc::madvise(address, bytes, libc::MADV_WIPEONFORK) };
            // Relaxed: the page is published after it, with Release, and is looked at first.
            IS_EMPTIED_BY_KERNEL.store(advised == 0, Ordering::Relaxed);
        }
        Ok(address.cast())
    }
}

/// Processes don't fork here.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn this_process() -> Result<&'static ProcessPage, HostError> {
    static PAGE: ProcessPage = ProcessPage::new();
    Ok(&PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn fork_id_and_anchor_share_one_cache_line() {
        let page = ProcessPage::new();
        let start = (&raw const page).addr();
        let end = (&raw const page.anchor).addr() + size_of::<Anchor>();
        assert!(end - start <= 64, "{} bytes", end - start);
        assert!((&raw const page.calibration).addr() - start >= 64);
    }

    #[test]
    fn where_the_kernel_does_not_wipe_the_page_the_fork_handler_leaves_what_the_kernel_would() {
        let page = ProcessPage::new();
        page.fork_id.store(7, Ordering::Relaxed);
        page.wipe();
        assert_eq!(page.fork_id.load(Ordering::Relaxed), 0);
    }
}
