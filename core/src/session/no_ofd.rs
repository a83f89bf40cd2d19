//! Open file description locks, where there are none: outside Linux a shared region cannot be opened, so
//! these are never reached.

use crate::error::{Error, Result};
use std::os::fd::AsFd;

#[derive(Clone, Copy)]
pub(super) struct Bytes;

impl Bytes {
    pub(super) fn session(_: u16) -> Self {
        Self
    }

    pub(super) fn claim(_: u16) -> Self {
        Self
    }
}

pub(super) fn try_lock(_: &impl AsFd, _: Bytes) -> Result<bool> {
    Err(Error::Unsupported {
        what: "shm: outside Linux",
    })
}

pub(super) fn unlock(_: &impl AsFd, _: Bytes) {}

pub(super) fn is_alive(_: &impl AsFd, _: u16) -> bool {
    true
}

pub(super) fn identity(_: &impl AsFd) -> Option<(u64, u64)> {
    None
}

pub(super) fn is_held(_: &impl AsFd, _: u16) -> bool {
    true
}

pub(super) fn is_being_replaced(_: &impl AsFd) -> bool {
    false
}
