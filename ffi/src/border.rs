//! The border: what every call does on its way in and out.
//!
//! - A pointer is looked at before it is used; NULL is an error that names the argument.
//! - A panic never leaves: it becomes [`SPRAG_ERROR_PANICKED`], and the handle of the call is poisoned, since
//!   what the handle has in this process may be half changed. What is shared is not: a region is as safe from a thread
//!   that stops in the middle as from a process that dies there.
//! - What is written for the caller is written last, on success.

use crate::error::sprag_error;
use crate::status::sprag_status::{
    self, SPRAG_ERROR_EMPTY, SPRAG_ERROR_NULL, SPRAG_ERROR_OUT_OF_RANGE, SPRAG_ERROR_PANICKED,
    SPRAG_ERROR_POISONED, SPRAG_ERROR_UNSUPPORTED,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// This pointer was NULL.
    Null(&'static str),
    /// This argument, a number, lies outside its bounds.
    Bounds {
        argument: &'static str,
        value: u64,
        min: u64,
        max: u64,
    },
    /// This argument is not what it must be; what it must be.
    Invalid {
        argument: &'static str,
        must: &'static str,
    },
    /// This cannot be had; why.
    Unsupported(&'static str),
    /// What was given is empty: which argument.
    Empty(&'static str),
    /// The handle was poisoned by an earlier call.
    Poisoned,
    /// The call panicked; with what.
    Panicked(String),
    /// The library's own.
    Sprag(Box<sprag::Error>),
}

impl From<sprag::Error> for Failure {
    #[cold]
    fn from(error: sprag::Error) -> Self {
        Self::Sprag(Box::new(error))
    }
}

impl Failure {
    pub(crate) fn status(&self) -> sprag_status {
        match self {
            Self::Null(_) => SPRAG_ERROR_NULL,
            Self::Bounds { .. } | Self::Invalid { .. } => SPRAG_ERROR_OUT_OF_RANGE,
            Self::Unsupported(_) => SPRAG_ERROR_UNSUPPORTED,
            Self::Empty(_) => SPRAG_ERROR_EMPTY,
            Self::Poisoned => SPRAG_ERROR_POISONED,
            Self::Panicked(_) => SPRAG_ERROR_PANICKED,
            Self::Sprag(error) => (&**error).into(),
        }
    }
}

/// What a call comes to inside the border.
pub(crate) type Outcome = Result<sprag_status, Failure>;

/// What is behind a pointer that C holds, and whether a panic has spoilt it.
pub(crate) struct Handle<T> {
    is_poisoned: AtomicBool,
    inside: T,
}

impl<T> Handle<T> {
    pub(crate) fn new(inside: T) -> Self {
        Self {
            is_poisoned: AtomicBool::new(false),
            inside,
        }
    }

    /// The inside, unless it is poisoned.
    #[inline(always)]
    pub(crate) fn get(&self) -> Result<&T, Failure> {
        // Relaxed: set by a thread that panicked; whoever misses it uses what every other thread uses.
        if self.is_poisoned.load(Relaxed) {
            return Err(Failure::Poisoned);
        }
        Ok(&self.inside)
    }
}

/// A type that C holds a pointer to.
pub(crate) trait Opaque {
    type Inside;
    /// The argument, as errors call it.
    const ARGUMENT: &'static str;
    fn handle(&self) -> &Handle<Self::Inside>;
}

/// Declares an opaque type of the header over what is inside.
macro_rules! opaque {
    ($(#[$doc:meta])* $name:ident, $inside:ty, $argument:literal) => {
        $(#[$doc])*
        pub struct $name(crate::border::Handle<$inside>);

        impl crate::border::Opaque for $name {
            type Inside = $inside;
            const ARGUMENT: &'static str = $argument;

            #[inline(always)]
            fn handle(&self) -> &crate::border::Handle<$inside> {
                &self.0
            }
        }

        impl $name {
            /// Hands `inside` to the caller.
            pub(crate) fn give(inside: $inside) -> *mut Self {
                Box::into_raw(Box::new(Self(crate::border::Handle::new(inside))))
            }
        }
    };
}
pub(crate) use opaque;

/// A call that needs no handle.
#[inline(always)]
pub(crate) fn call(error: *mut *mut sprag_error, act: impl FnOnce() -> Outcome) -> sprag_status {
    guarded(error, act, || {})
}

/// A call that, if it panics, poisons what it was on.
#[inline(always)]
pub(crate) fn guarded(
    error: *mut *mut sprag_error,
    act: impl FnOnce() -> Outcome,
    poison: impl FnOnce(),
) -> sprag_status {
    // A number alone leaves the part that is guarded: anything larger would be handed over through memory, by wide
    // reads that wait for narrow writes.
    let act = || match act() {
        Ok(status) => status,
        Err(failure) => fail(error, &failure),
    };
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(status) => status,
        Err(payload) => {
            poison();
            fail(error, &panicked(payload))
        }
    }
}

/// A call on `handle`, which is poisoned if it panics.
///
/// # Safety
///
/// `handle` is NULL or one that this library gave and that is not closed.
#[inline(always)]
pub(crate) unsafe fn on<H: Opaque>(
    handle: *const H,
    error: *mut *mut sprag_error,
    act: impl FnOnce(&H::Inside) -> Outcome,
) -> sprag_status {
    // SAFETY: by this function's contract.
    let Some(handle) = (unsafe { handle.as_ref() }) else {
        return fail(error, &Failure::Null(H::ARGUMENT));
    };
    let handle = handle.handle();
    guarded(
        error,
        || act(handle.get()?),
        || handle.is_poisoned.store(true, Relaxed),
    )
}

/// A look at `handle` that cannot fail; `otherwise` for NULL, a poisoned handle and a panic.
///
/// # Safety
///
/// As for [`on`].
#[inline(always)]
pub(crate) unsafe fn look<H: Opaque, T>(
    handle: *const H,
    otherwise: T,
    act: impl FnOnce(&H::Inside) -> T,
) -> T {
    // SAFETY: by this function's contract.
    let inside = unsafe { handle.as_ref() }.and_then(|handle| handle.handle().get().ok());
    let looked = inside.map(|inside| catch_unwind(AssertUnwindSafe(|| act(inside))));
    match looked {
        Some(Ok(seen)) => seen,
        Some(Err(payload)) => {
            forget_payload(payload);
            otherwise
        }
        None => otherwise,
    }
}

/// Closes a handle; NULL is none. Poisoned ones are closed too.
///
/// # Safety
///
/// `handle` is NULL, or one that this library gave, that is not closed, and that nobody uses any more.
pub(crate) unsafe fn close<H>(handle: *mut H) {
    if handle.is_null() {
        return;
    }
    // SAFETY: it came from `Box::into_raw` in `give`, and is the caller's to end.
    let handle = unsafe { Box::from_raw(handle) };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(handle))) {
        forget_payload(payload);
    }
}

/// Writes what a call has to give, if the caller wants it.
///
/// # Safety
///
/// `to` is NULL or may be written.
#[inline(always)]
pub(crate) unsafe fn give<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: by this function's contract; what was there before, if anything, is none of Rust's.
        unsafe { to.write(value) };
    }
}

/// Fails if a pointer that is to be written is NULL: asked before anything is done.
#[inline(always)]
pub(crate) fn wanted<T>(to: *mut T, argument: &'static str) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::Null(argument));
    }
    Ok(())
}

#[cold]
#[inline(never)]
fn fail(error: *mut *mut sprag_error, failure: &Failure) -> sprag_status {
    let status = failure.status();
    if !error.is_null() {
        let details = sprag_error::give(failure);
        // SAFETY: by every caller's contract, `error` is NULL or may be written.
        unsafe { error.write(details) };
    }
    status
}

#[cold]
pub(crate) fn panicked(payload: Box<dyn std::any::Any + Send>) -> Failure {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    forget_payload(payload);
    Failure::Panicked(text)
}

/// What was panicked with may panic again when it is dropped: it is leaked.
pub(crate) fn forget_payload(payload: Box<dyn std::any::Any + Send>) {
    std::mem::forget(payload);
}

#[cfg(test)]
mod tests;
