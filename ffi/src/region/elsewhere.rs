//! Regions where there are none.

use super::{sprag_region_file, sprag_region_info};
use crate::border::{Failure, Outcome};
use crate::space::sprag_space_options;
use sprag::Space;
use std::ffi::c_char;

const NOT_HERE: Failure = Failure::Unsupported("shm: can be had on Linux only; use mem:");

pub(super) fn each(_: &dyn Fn(*const sprag_region_file) -> bool) -> Outcome {
    Err(NOT_HERE)
}

pub(super) fn probe(_: &str, _: bool, _: &dyn Fn(*const sprag_region_info) -> bool) -> Outcome {
    Err(NOT_HERE)
}

pub(super) fn remove(_: &str, _: bool, _: bool) -> Outcome {
    Err(NOT_HERE)
}

pub(super) fn resize(_: &str, _: bool, _: &sprag_space_options) -> Outcome {
    Err(NOT_HERE)
}

/// # Safety
///
/// None is needed.
pub(super) unsafe fn check(_: &Space, _: &dyn Fn(*const c_char) -> bool, _: *mut usize) -> Outcome {
    Err(NOT_HERE)
}
