//! A region from another boot of the machine: it has no live holds, its time goes on, its tokens rise.
//!
//! Nobody who used it lives: every session, wait and hold ended with the boot. What is kept is what
//! has a meaning of its own: fences, counters, limiters, and that tokens never go back.
//!
//! # Time
//!
//! Region time is boot time less `BASE_BOOT`, a word that is set anew in each boot so that region time
//! goes on where wall time says: at unix time less `BASE_UNIX`. Limiters note region times, so they
//! need no other rebasing. Where the wall clock was set back between the boots, region time goes on at
//! `LATEST` instead, the latest one that the region saw: no word's time ever lies in the future
//! because of a reboot, and none goes back.
//!
//! # Tokens
//!
//! Only a region on a disk meets another boot. If the last one ended without a shutdown, its pages were written at
//! different times, each some while before the end: a lock's token may be older than the last that was granted,
//! and one lock may have two entries. So no lock's entry is carried over, and no once's, whose result may be torn.
//! Each partition's floor rises to its entries' last tokens, as it does when idle entries are reclaimed, and then
//! by [`LOST_TOKENS_MAX`], which is more than can have been granted since the page was written.
//!
//! # A boot that is not known
//!
//! A process that cannot read its boot id (no `/proc`) takes the region to be of its own boot, and so
//! does everybody a region that says none. The other choice would end holds of the living; this one
//! keeps at most holds of the dead: the kernel dropped their sessions' locks, and what belongs to no
//! session ends with its lease. The exception is a region whose time would go back, which cannot be of
//! this boot.

use super::file::Alone;
use super::{Birth, Region, header};
use crate::counter;
use crate::error::{Error, Result};
use crate::joint_key::JointKeys;
use crate::limiter;
use crate::limiter_key::{KeyState, LimiterKeys};
use crate::object::{Kind, Objects, TOKEN_MAX};
use crate::session::{Sessions, ofd};
use crate::table::{LIVE, Table, phase};
use crate::{joint, lock, permit, waiter};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// More tokens than one lock can be granted while a page waits to be written to disk: 45 minutes of
/// 25 million a second. 130,000 such boots use up all tokens.
const LOST_TOKENS_MAX: u64 = 1 << 36;

/// Region times at and past this one are in no region that works, in nanoseconds: 142 years.
const TIME_NS_MAX: u64 = (1 << 52) * 1_000;

/// How far `LATEST` may lie ahead of a boot clock that was read coarsely, in nanoseconds.
const CLOCK_SLACK_NS: i128 = 60_000_000_000;

/// Makes the region one of this boot, unless it is already.
pub(super) fn bring_here(region: &Region, birth: &Birth) -> Result<()> {
    if is_here(region, birth) {
        return Ok(());
    }
    let file = region.reopen()?;
    let _alone = Alone::in_setup(&file)?;
    // Whoever was alone before us may have done it.
    if is_here(region, birth) {
        return Ok(());
    }
    // A live session says that this is the boot it lives in: the boot id was falsified, or another
    // machine shares the file. Ending its holds would let two hold one lock.
    let sessions = ofd::count_alive(&file)?;
    if sessions > 0 {
        return Err(Error::InUse {
            path: region.path().unwrap_or(std::path::Path::new("")).to_owned(),
            sessions,
            detached: 0,
        });
    }

    let now_ns = region_time(region, birth)?;
    waiter::clear_all(region);
    permit::clear_all(region);
    lock::coarse::settle(region);
    Sessions::close_all(region);
    let objects = Table::<Objects>::new(region);
    objects.settle(region, Objects::has_tokens);
    objects.for_each(region, |_, at, state| {
        if phase(state) == LIVE && Objects::is(region, at, Kind::Stripe) {
            counter::close_stripe(region, at, state);
        }
        if phase(state) == LIVE && Objects::is(region, at, Kind::Override) {
            limiter::unsettle(region, at, state);
        }
    });
    limiter::settle_all(region);
    // One whose charge is older or newer than itself has no value any more.
    Table::<LimiterKeys>::new(region).settle(region, |region, at| {
        KeyState(region.wide(at).load()).is_engaged()
    });
    // What was written back of a key at different times makes no key.
    Table::<JointKeys>::new(region).settle(region, |region, at| !JointKeys::is_sound(region, at));
    joint::settle(region);
    for partition in 0..region.partitions() {
        let floor = region.floor(partition);
        let risen = floor.load(Relaxed).saturating_add(LOST_TOKENS_MAX);
        floor.fetch_max(risen.min(TOKEN_MAX), Relaxed);
    }
    region.note_time(now_ns);
    let base = birth.boot_ns.wrapping_sub(now_ns);
    region.word(header::BASE_BOOT).store(base, Relaxed);
    // Release, and last: pairs with the acquires in `is_here`. Whoever dies before leaves a region of
    // the other boot, on which all of this is done again.
    for (i, word) in birth.boot_id.into_iter().enumerate() {
        region.word(header::BOOT_ID + i * 8).store(word, Release);
    }
    Ok(())
}

fn is_here(region: &Region, birth: &Birth) -> bool {
    // Acquire: pairs with the release above.
    let last = [0, 8].map(|at| region.word(header::BOOT_ID + at).load(Acquire));
    if last != [0; 2] && birth.boot_id != [0; 2] {
        return last == birth.boot_id;
    }
    let now_ns = i128::from(birth.boot_ns) - i128::from(region.base_boot_ns());
    let latest_ns = i128::from(region.word(header::LATEST).load(Relaxed));
    now_ns + CLOCK_SLACK_NS >= latest_ns
}

/// The region time at which to go on.
fn region_time(region: &Region, birth: &Birth) -> Result<u64> {
    let by_wall_ns = birth.unix_ns.saturating_sub(region.base_unix_ns());
    let now_ns = by_wall_ns.max(region.word(header::LATEST).load(Relaxed));
    if now_ns >= TIME_NS_MAX {
        return Err(Error::Damaged {
            what: "its time lies more than a hundred years ahead",
        });
    }
    Ok(now_ns)
}
