//! What handles hold of their space: a borrow, or a share of their own. Owns the choice between the two,
//! so that the way that is counted in nanoseconds neither counts references nor asks which one it has.

use crate::space::Inner;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// A space that lasts for `'s`, because it is borrowed for that long or because this is a share of it.
pub(crate) struct Share<'s> {
    /// From [`Arc::as_ptr`], of `owned` or else of the one that is borrowed.
    inner: NonNull<Inner>,
    owned: Option<Arc<Inner>>,
    borrowed: PhantomData<&'s Arc<Inner>>,
}

const _: () = {
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Inner>();
};

// SAFETY: it is a borrow of an `Arc<Inner>` or such an Arc; both may be sent, `Inner` being Send and Sync.
unsafe impl Send for Share<'_> {}
// SAFETY: as above; a shared reference gives no more than shared references to the `Inner`, and Arcs.
unsafe impl Sync for Share<'_> {}

impl<'s> Share<'s> {
    /// A borrow.
    #[inline(always)]
    pub(crate) fn borrow(inner: &'s Arc<Inner>) -> Self {
        Self {
            inner: pointer(inner),
            owned: None,
            borrowed: PhantomData,
        }
    }

    /// A share, whatever this is.
    pub(crate) fn to_owned(&self) -> Share<'static> {
        let owned = self.to_arc();
        Share {
            inner: pointer(&owned),
            owned: Some(owned),
            borrowed: PhantomData,
        }
    }

    /// The space, counted once more.
    pub(crate) fn to_arc(&self) -> Arc<Inner> {
        // SAFETY: the pointer is an Arc's, and that Arc lives: it is borrowed for `'s`, or it is `owned`.
        unsafe {
            Arc::increment_strong_count(self.inner.as_ptr());
            Arc::from_raw(self.inner.as_ptr())
        }
    }
}

impl Deref for Share<'_> {
    type Target = Inner;

    #[inline(always)]
    fn deref(&self) -> &Inner {
        // SAFETY: the Arc that the pointer is of lives for as long as `self`, see `to_arc`, and an Arc's
        // contents are only ever shared.
        unsafe { self.inner.as_ref() }
    }
}

impl Clone for Share<'_> {
    #[inline(always)]
    fn clone(&self) -> Self {
        Self {
            inner: self.inner,
            owned: self.owned.clone(),
            borrowed: PhantomData,
        }
    }
}

#[inline(always)]
fn pointer(inner: &Arc<Inner>) -> NonNull<Inner> {
    // SAFETY: an Arc points at its contents, which are somewhere.
    unsafe { NonNull::new_unchecked(Arc::as_ptr(inner).cast_mut()) }
}
