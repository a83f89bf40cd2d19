//! The future form of a wait for several locks.

use super::{HoldAll, Locks};
use crate::Result;
use crate::background::Wait;
use sprag_core::lock::Grant;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The future of [`Locks::acquire_async`]. Of locks that were made [owned](Locks::into_owned), it can be
/// spawned. Dropping it leaves all the queues, or releases what was granted meanwhile.
#[must_use = "futures do nothing unless polled"]
pub struct AcquireAll<'s> {
    locks: Locks<'s>,
    /// What the owner holds meanwhile.
    holds: Vec<Grant>,
    wait: Option<Wait>,
}

impl<'s> AcquireAll<'s> {
    pub(crate) fn new(locks: Locks<'s>, holds: Vec<Grant>) -> Self {
        Self {
            locks,
            holds,
            wait: None,
        }
    }
}

impl<'s> Future for AcquireAll<'s> {
    type Output = Result<HoldAll<'s>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let want = this.locks.want(&this.holds);
        if this.wait.is_none() {
            if let Some(hold) = this.locks.get_at_once()? {
                return Poll::Ready(Ok(hold));
            }
            this.wait = Some(Wait::begin(&this.locks.space.to_arc(), &want)?);
        }
        let Some(wait) = &mut this.wait else {
            return Poll::Pending;
        };
        match wait.poll(&want, this.locks.lease_ns, context.waker()) {
            Ok(None) => Poll::Pending,
            ended => {
                this.wait = None;
                match ended? {
                    Some(granted) => Poll::Ready(Ok(this.locks.hold(&granted))),
                    None => Poll::Pending,
                }
            }
        }
    }
}

impl fmt::Debug for AcquireAll<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AcquireAll")
            .field("locks", &self.locks)
            .field("is_queued", &self.wait.is_some())
            .finish()
    }
}
