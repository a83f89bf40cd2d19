//! The future form of an owner's wait.
//!
//! ```text
//!  new ──(nobody of the owner waits for the lock)──▶ first: waits for the owner ──granted──▶ ready
//!   │ ▲                                                │ dropped, failed: another may be first
//!   ▼ │ the first is done                              ▼
//!  behind another thread or future of the same owner  over
//! ```

use super::{Entry, OwnerHold, OwnerLock};
use crate::lock::Acquire;
use crate::{Error, Result};
use sprag_core::admission::Wants;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The future of [`OwnerLock::acquire_async`]. Of a lock that was made [owned](OwnerLock::into_owned), it
/// can be spawned.
#[must_use = "futures do nothing unless polled"]
pub struct OwnerAcquire<'o> {
    lock: OwnerLock<'o>,
    wants: Wants,
    /// The owner's one wait for the lock, if it is this one's.
    first: Option<Acquire<'static>>,
}

impl<'o> OwnerAcquire<'o> {
    pub(super) fn new(lock: OwnerLock<'o>, wants: Wants) -> Self {
        Self {
            lock,
            wants,
            first: None,
        }
    }
}

impl<'o> Future for OwnerAcquire<'o> {
    type Output = Result<OwnerHold<'o>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        // In a forked child the owner's mutex may be held by a thread that is not there.
        this.lock.owner.space.inner.check_process()?;
        loop {
            if let Some(first) = &mut this.first {
                let Poll::Ready(acquired) = Pin::new(first).poll(context) else {
                    return Poll::Pending;
                };
                this.first = None;
                return match this.lock.settle(acquired.map(Some)) {
                    Ok(Some(hold)) => Poll::Ready(Ok(hold)),
                    Ok(None) => continue,
                    Err(error) => Poll::Ready(Err(error)),
                };
            }
            let shared = &this.lock.owner.shared;
            let mut held = shared.held.lock();
            match this.lock.enter(&mut held, this.wants)? {
                Entry::Again(hold) => return Poll::Ready(Ok(hold)),
                Entry::Behind => {
                    // Under the owner's mutex, so that the first cannot be done unseen.
                    shared.wake_when_changed(context.waker());
                    return Poll::Pending;
                }
                Entry::Lost { lost, token } => {
                    drop(held);
                    drop(lost);
                    return Poll::Ready(Err(Error::lost(Some(&this.lock.name), token)));
                }
                Entry::First => {}
            }
            drop(held);
            match this.lock.plain() {
                Ok(lock) => {
                    let holds = this.lock.owner.grants();
                    let lock = lock.into_owned();
                    this.first = Some(lock.get_async(this.wants, holds));
                }
                Err(error) => {
                    let _ = this.lock.settle(Ok(None));
                    return Poll::Ready(Err(error));
                }
            }
        }
    }
}

impl Drop for OwnerAcquire<'_> {
    fn drop(&mut self) {
        if let Some(first) = self.first.take() {
            drop(first);
            // In a forked child the owner's mutex may be held by a thread that is not there.
            if self.lock.owner.space.inner.check_process().is_ok() {
                let _ = self.lock.settle(Ok(None));
            }
        }
    }
}

impl fmt::Debug for OwnerAcquire<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OwnerAcquire")
            .field("lock", &self.lock)
            .field("is_first", &self.first.is_some())
            .finish()
    }
}
