//! Regions in files, where there are none: outside Linux each call says so.

use super::{Birth, Caps, Region};
use crate::error::{Error, Result};
use std::fs::File;
use std::path::Path;

/// How to open a region, and what it is born with if this call creates it.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// Caps of a new region.
    pub caps: Caps,
    /// Whether to create the region if there is none.
    pub create: bool,
    /// Whether the file's group may use it too.
    pub group_shared: bool,
    /// Clocks, boot and randomness.
    pub birth: Birth,
}

/// What can be said of a region's file from outside. There is none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Info {}

const UNSUPPORTED: Error = Error::Unsupported {
    what: "regions in files (shm:), which need Linux",
};

/// Unsupported on this system.
pub fn open(_: &Path, _: &OpenOptions) -> Result<Region> {
    Err(UNSUPPORTED)
}

/// Unsupported on this system.
pub fn probe(_: &Path) -> Result<Info> {
    Err(UNSUPPORTED)
}

/// Unsupported on this system.
pub fn remove(_: &Path, _: bool, _: Birth) -> Result<()> {
    Err(UNSUPPORTED)
}

/// Unsupported on this system.
pub fn resize(_: &Path, _: Caps, _: Birth) -> Result<()> {
    Err(UNSUPPORTED)
}

/// The file behind a region's memory. There is none.
pub(crate) enum Backing {}

impl Backing {
    pub(crate) fn path(&self) -> &Path {
        match *self {}
    }

    pub(crate) fn allocate(&self, _: u64, _: u64) -> Result<()> {
        match *self {}
    }

    pub(crate) fn check_in_place(&self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn reopen(&self) -> Result<File> {
        match *self {}
    }
}
