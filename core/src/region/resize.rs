//! Replacing a region by one with other caps, while nobody uses it.
//!
//! The new region is built beside the old one and takes its name in one step, so a process that dies
//! on the way leaves the old one in place. Meanwhile the kernel locks of all sessions are held: nobody
//! can open a session in the old region, and who tries after finds it replaced.
//!
//! Region time goes on in the new region, and tokens never go back. What else is carried over is in [`carry`].

mod carry;

use super::file::{Alone, Draft, absolute, open_unchanged};
use super::{Birth, Caps, Region};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::lock;
use crate::lock::engaged::is_engaged;
use crate::object::{Objects, serial};
use crate::once::OnceStatus;
use crate::permit;
use crate::pool::is_pooled;
use crate::session::{SessionId, Sessions};
use crate::table::{LIVE, phase};
use core::sync::atomic::Ordering::Relaxed;
use std::path::Path;

/// Replaces the region at `path` by one with `caps`. `birth.floor` is raised to the old region's
/// highest token.
///
/// # Errors
///
/// [`Error::InUse`] while a session is alive or a hold of no session runs; [`Error::Full`] when what
/// is to be carried over does not fit. Nothing is changed then.
pub fn resize(path: &Path, caps: Caps, birth: Birth) -> Result<()> {
    caps.check()?;
    let path = absolute(path)?;
    let group_shared = super::file::probe(&path)?.group_shared;
    let old = open_unchanged(&path, birth)?;
    let file = old.reopen()?;
    let _alone = Alone::without_sessions(&file, &path)?;
    // Another resize may have come first.
    old.check_in_place()?;
    let old = Engine::new(old, Sessions::local(), 100);
    let now_ns = now_ns(&old, &birth);
    check_detached(&old, now_ns, &path)?;

    let draft = Draft::new(&path, group_shared)?;
    let by_time = super::floor_at(birth.unix_ns);
    let new = draft.fill(
        caps,
        Birth {
            floor: birth.floor.max(by_time).max(highest_token(&old)),
            // Region time goes on.
            unix_ns: old.region.base_unix_ns(),
            boot_ns: old.region.base_boot_ns().cast_unsigned(),
            ..birth
        },
    )?;
    let new = Engine::new(new, Sessions::local(), 100);
    new.region.note_time(now_ns);
    carry::all(&old, &new, now_ns).map_err(|error| match error {
        // Nobody shares the new region yet.
        Error::ShareExceeded { what, used } => Error::Full { what, cap: used },
        error => error,
    })?;
    draft.publish_over()
}

/// Fails if holds of `region` that belong to no session still run, or if a region made in its place now
/// would hand out tokens again that this one did.
pub(super) fn check_removable(region: Region, birth: &Birth, path: &Path) -> Result<()> {
    let engine = Engine::new(region, Sessions::local(), 100);
    check_detached(&engine, now_ns(&engine, birth), path)?;
    match highest_token(&engine).checked_sub(super::floor_at(birth.unix_ns)) {
        None | Some(0) => Ok(()),
        Some(ahead) => Err(Error::TokensAhead {
            path: path.to_owned(),
            seconds: (ahead >> 16) + 1,
        }),
    }
}

fn check_detached(engine: &Engine, now_ns: u64, path: &Path) -> Result<()> {
    match detached_holds(engine, now_ns) {
        0 => Ok(()),
        detached => Err(Error::InUse {
            path: path.to_owned(),
            sessions: 0,
            detached,
        }),
    }
}

/// Region time at what `birth` says of the host's.
fn now_ns(engine: &Engine, birth: &Birth) -> u64 {
    let base_ns = engine.region.base_boot_ns().cast_unsigned();
    birth.boot_ns.wrapping_sub(base_ns)
}

/// Holds and attempts that belong to no session and whose time still runs.
fn detached_holds(engine: &Engine, now_ns: u64) -> u32 {
    let mut count = permit::count_of(&engine.region, SessionId::DETACHED, now_ns / 1_000);
    engine.objects.for_each(&engine.region, |_, at, state| {
        if !Objects::is_lock(&engine.region, at) {
            return;
        }
        count += u32::from(is_detached(state, now_ns));
    });
    for index in 0..=engine.region.partitions() {
        let state = engine.region.wide(engine.region.coarse_at(index)).load();
        count += u32::from(is_detached(state, now_ns));
    }
    engine.for_each_once(b"", now_ns, |_, status| {
        if matches!(status, OnceStatus::InProgress(progress) if progress.detached) {
            count += 1;
        }
    });
    count
}

fn is_detached(state: u128, now_ns: u64) -> bool {
    // Of several, and of the table, only the one that leads has a holder.
    if phase(state) != LIVE || is_pooled(state) || is_engaged(state) {
        return false;
    }
    let lock = lock::State::decode(state);
    lock.holder == Some(SessionId::DETACHED) && !lock.has_expired(now_ns / 1_000)
}

/// No token of the region is higher, whether its lock still has an entry or not.
fn highest_token(engine: &Engine) -> u64 {
    let region = &engine.region;
    let mut highest = (0..region.partitions())
        .map(|partition| region.floor(partition).load(Relaxed))
        .max()
        .unwrap_or(0);
    for index in 0..=region.partitions() {
        highest = highest.max(serial(region.wide(region.coarse_at(index)).load()));
    }
    engine.objects.for_each(region, |_, at, state| {
        // Only a live one of the kinds without tokens keeps something else where the others keep tokens.
        if phase(state) != LIVE || Objects::has_tokens(region, at) {
            highest = highest.max(serial(state));
        }
    });
    highest
}
