//! The files of `shm:` spaces: listing, probing, checking, removing, resizing.
//!
//! Owns the way from a URL to a file. What a region's bytes mean is the engine's.

use crate::clock::Clock;
use crate::host::directory::{Sharing, list_regions};
use crate::host::identity::ProcessIdentity;
use crate::host::place::{Place, Url};
use crate::space::birth;
use crate::{Caps, Error, Result, Space};
use sprag_core::region::{Birth, file};
use std::path::PathBuf;

pub use crate::host::directory::RegionFile;
pub use crate::host::place::RegionName;
pub use sprag_core::region::file::Info;
pub use sprag_core::{Check, Finding};

/// The regions in this user's directory (`$SPRAG_DIR`, else `/dev/shm/sprag-UID`), by name. None if there
/// is no such directory.
///
/// # Errors
///
/// [`Error::Place`] for a directory that can't be read, or a `$SPRAG_DIR` that is not absolute.
pub fn list() -> Result<Vec<RegionFile>> {
    Ok(list_regions()?)
}

/// What can be said of the region at `url`, without opening a session in it. `group_shared` is whether
/// its directory may be the group's, as in [`SpaceBuilder::group_shared`](crate::SpaceBuilder::group_shared).
/// A few system calls, and some for each session that is alive.
///
/// # Errors
///
/// [`Error::Place`] for a URL or a directory that can't be used, [`Error::NotHere`] for `mem:`, and
/// [`Error::Engine`] for a file that is not there or is no region of this release.
pub fn probe(url: &str, group_shared: bool) -> Result<Info> {
    Ok(file::probe(&path(url, group_shared)?)?)
}

/// Removes the region at `url`. While sessions are alive in it, or a hold that was detached runs, that is an
/// error, unless `even_if_in_use`: then the holds are lost, and sessions find out at their next slow step.
///
/// # Errors
///
/// [`EngineError::InUse`](crate::EngineError::InUse) and
/// [`EngineError::TokensAhead`](crate::EngineError::TokensAhead) unless `even_if_in_use`, and those of
/// [`probe`], but for a damaged or incompatible region, which is removed.
pub fn remove(url: &str, group_shared: bool, even_if_in_use: bool) -> Result<()> {
    let path = path(url, group_shared)?;
    Ok(file::remove(&path, even_if_in_use, birth_now()?)?)
}

/// Replaces the region at `url` by one with `caps`, while nobody uses it. Fences, counters, limiters, what their
/// keys have used, and results that are kept are carried over, and no token goes back. Reads the whole region;
/// waits for up to 10 s for another process that is at it.
///
/// # Errors
///
/// Nothing is changed then: [`EngineError::InUse`](crate::EngineError::InUse),
/// [`EngineError::OutOfRange`](crate::EngineError::OutOfRange) for a cap out of its bounds,
/// [`EngineError::Full`](crate::EngineError::Full) for one too low for what is carried over,
/// [`EngineError::Contended`](crate::EngineError::Contended) when the time is over, and those of [`probe`].
pub fn resize(url: &str, group_shared: bool, caps: Caps) -> Result<()> {
    Ok(file::resize(&path(url, group_shared)?, caps, birth_now()?)?)
}

fn birth_now() -> Result<Birth> {
    let boot_id = ProcessIdentity::of_this_process()?.boot_id;
    birth(&Clock::host()?, boot_id)
}

/// Walks through all of an open space's region and tells what contradicts itself. Changes nothing and
/// stops nobody; in a region in use a finding can be a step that somebody is in the middle of, and is gone
/// when looked for again. Reads the whole region, and copies every name.
pub fn check(space: &Space) -> Check {
    space.inner.engine.check_region()
}

fn path(url: &str, group_shared: bool) -> Result<PathBuf> {
    let sharing = Sharing::with_group(group_shared);
    match Place::if_there(&Url::parse(url)?, sharing)? {
        Some(place) => Ok(place.path),
        None => Err(Error::NotHere {
            what: "a region's file",
            url: url.to_owned(),
            way_out: "name a shm: space",
        }),
    }
}
