//! Replacing a region by one with other caps, while nobody uses it.
//!
//! The new region is built beside the old one and takes its name in one step, so a process that dies
//! on the way leaves the old one in place. Meanwhile the kernel locks of all sessions are held: nobody
//! can open a session in the old region, and who tries after finds it replaced.
//!
//! Carried over: every fence and counter, every limiter, joint or not, with its overrides and its keys' state, every
//! concurrency limiter, every once that is done and whose
//! result is kept, region time, and that tokens never go back. Locks are not: none is held. Nor is it that
//! attempts at a once ended unfinished.

use super::file::{Alone, Draft, absolute, open_unchanged};
use super::{Birth, Caps, Region};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::joint::entry;
use crate::joint::state::State;
use crate::joint::{JointRef, definition as joint};
use crate::joint_key::{JointKey, JointKeys};
use crate::key;
use crate::limiter::{self, LimiterRef, name_cell, overflow};
use crate::limiter_key::{KeyState, LimiterKey, LimiterKeys, reclaimed_at_ns};
use crate::lock;
use crate::lock::engaged::is_engaged;
use crate::object::{Kind, Objects, Plain, serial};
use crate::once::{Begun, OnceStatus, TTL_NS_MAX, TTL_NS_MIN};
use crate::permit;
use crate::pool::is_pooled;
use crate::session::{SessionId, Sessions};
use crate::table::{Flavour as _, Idle, LIVE, phase};
use core::sync::atomic::Ordering::Relaxed;
use std::collections::HashMap;
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
    carry_fences(&old, &new)
        .and_then(|()| carry_counters(&old, &new, now_ns))
        .and_then(|()| carry_onces(&old, &new, now_ns))
        .and_then(|()| carry_limiters(&old, &new, now_ns))
        .and_then(|()| carry_concurrency(&old, &new, now_ns))
        .and_then(|()| carry_joints(&old, &new, now_ns))
        .map_err(|error| match error {
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

/// Admits every fence's highest token to the fence of the same name in `new`.
fn carry_fences(old: &Engine, new: &Engine) -> Result<()> {
    let mut result = Ok(());
    old.objects.for_each(&old.region, |_, at, state| {
        let highest = Plain::decode(state).value;
        if result.is_err()
            || phase(state) != LIVE
            || Objects::kind(&old.region, at) != Kind::Fence as u8
            || highest == 0
        {
            return;
        }
        let name = Objects::name(&old.region, at);
        result = new
            .fence_name(&name)
            .map_err(|_| Error::Damaged {
                what: "a fence's name cannot be read",
            })
            .and_then(|name| new.admit(&name, SessionId::DETACHED, 0, highest, false))
            .map(drop);
    });
    result
}

/// Sets the counter of the same name in `new` to every counter's number.
fn carry_counters(old: &Engine, new: &Engine, now_ns: u64) -> Result<()> {
    let mut result = Ok(());
    old.for_each_counter(b"", |name, number| {
        if result.is_ok() {
            result = new
                .counter(&name)
                .map_err(|_| Error::Damaged {
                    what: "a counter's name cannot be read",
                })
                .and_then(|counter| new.counter_swap(&counter, number, SessionId::DETACHED, now_ns))
                .map(drop);
        }
    });
    result
}

/// Does every once in `new` that is done in `old`, with the same result, for as long as that is kept.
fn carry_onces(old: &Engine, new: &Engine, now_ns: u64) -> Result<()> {
    let by = SessionId::DETACHED;
    let mut result = Ok(());
    old.for_each_once(b"", now_ns, |name, status| {
        let OnceStatus::Done {
            result: bytes,
            left_ns,
        } = status
        else {
            return;
        };
        let keep_ns = left_ns.clamp(TTL_NS_MIN, TTL_NS_MAX);
        let carry = || {
            let name = new.once_name(&name).map_err(|_| Error::Damaged {
                what: "a once's key cannot be read",
            })?;
            if let Begun::Started(attempt) = new.begin(&name, by, now_ns, TTL_NS_MAX)? {
                new.finish(&attempt, by, &bytes, now_ns, keep_ns)?;
            }
            Ok(())
        };
        if result.is_ok() {
            result = carry();
        }
    });
    result
}

/// Opens every limiter in `new` as it is, and carries over the state of its keys that are not idle.
/// Region time goes on in `new`, so that state means the same there.
fn carry_limiters(old: &Engine, new: &Engine, now_ns: u64) -> Result<()> {
    limiter::settle_all(&old.region);
    let mut names = Vec::new();
    old.for_each_limiter(b"", |name, limit, _| names.push((name, limit)));
    let mut limiters = HashMap::new();
    for (name, limit) in names {
        // Finishes a change that somebody died in.
        let by = SessionId::DETACHED;
        let before = old.open_limiter(&name, limit, false, by, now_ns)?;
        let after = new.open_limiter(&name, limit, false, by, now_ns)?;
        carry_level(old, &before, new, &after);
        limiters.insert(before.cell, (before, after));
    }
    carry_overrides(old, new, &limiters, now_ns)?;

    let mut result = Ok(());
    LimiterKeys::note_reclaim(&new.region, reclaimed_at_ns(&old.region));
    old.limiter_keys.for_each(&old.region, |cell, at, state| {
        if result.is_err() || phase(state) != LIVE {
            return;
        }
        let state = KeyState(state);
        if state.is_engaged() {
            result = Err(Error::Damaged {
                what: "several limits at once never settle",
            });
            return;
        }
        let is_alive = &mut |_| true;
        match LimiterKeys::idle(&old.region, cell, at, state.0, now_ns, is_alive) {
            Idle::Now => return,
            Idle::At(at_ns) if at_ns <= now_ns => {
                return LimiterKeys::note_reclaim(&new.region, at_ns);
            }
            Idle::At(_) | Idle::Unforeseen | Idle::Never => {}
        }
        if let Some((_, limiter)) = limiters.get(&name_cell(&old.region, state.limit())) {
            let key = LimiterKeys::key(&old.region, at, state.0);
            result = carry_key(new, limiter, &key, state.value(), now_ns);
        }
    });
    result
}

/// The level of the bucket that keys without room share.
fn carry_level(old: &Engine, before: &LimiterRef, new: &Engine, after: &LimiterRef) {
    let level = KeyState(overflow(&old.region, before.id).load()).value();
    let word = overflow(&new.region, after.id);
    let fresh = word.load();
    // Nobody else knows the new region yet: this exchange, and those of keys, succeed.
    let _ = word.compare_exchange(fresh, KeyState(fresh).with_value(level).0);
}

/// Sets every override in `new`, so that keys come under it as they are carried over, and has every key of `old`
/// under what its override says.
fn carry_overrides(
    old: &Engine,
    new: &Engine,
    limiters: &HashMap<u32, (LimiterRef, LimiterRef)>,
    now_ns: u64,
) -> Result<()> {
    let mut keys = Vec::new();
    old.limiter_keys.for_each(&old.region, |_, at, state| {
        if phase(state) == LIVE {
            let cell = name_cell(&old.region, KeyState(state).limit());
            if let Some((before, _)) = limiters.get(&cell)
                && before.id != KeyState(state).limit()
            {
                keys.push((cell, LimiterKeys::key(&old.region, at, state)));
            }
        }
    });
    let by_name: HashMap<_, _> = limiters
        .iter()
        .map(|(cell, (before, _))| (before.name().to_vec(), *cell))
        .collect();
    old.for_each_override(b"", |name, key, _| {
        keys.extend(by_name.get(name).map(|cell| (*cell, key.to_vec())));
    });
    for (cell, key) in keys {
        let (before, after) = &limiters[&cell];
        // Finishes what somebody died in.
        if let Some(limit) = old.override_of(before, &key, || now_ns)? {
            new.set_override(after, &key, limit, SessionId::DETACHED, || now_ns)?;
            if let (Some(before), Some(after)) = (
                old.override_for(before, &key),
                new.override_for(after, &key),
            ) {
                carry_level(old, &before, new, &after);
            }
        }
    }
    Ok(())
}

/// Opens every concurrency limiter in `new` as it is. Nobody has anything of its keys.
fn carry_concurrency(old: &Engine, new: &Engine, now_ns: u64) -> Result<()> {
    let by = SessionId::DETACHED;
    for limiter in old.concurrency_statuses(b"", now_ns) {
        new.open_concurrency(&limiter.name, limiter.capacity, false, by, now_ns, |_| {})?;
    }
    Ok(())
}

fn carry_key(
    new: &Engine,
    limiter: &LimiterRef,
    key: &[u8],
    value: u128,
    now_ns: u64,
) -> Result<()> {
    key::check_name("key", key).map_err(|_| Error::Damaged {
        what: "a limiter's key cannot be read",
    })?;
    let entry = LimiterKey::new(new, limiter, key);
    let actor = new.actor(SessionId::DETACHED, new.region.caps().limiter_keys);
    let found = new
        .limiter_keys
        .find_or_insert(&new.region, &actor, entry.hash, &entry, now_ns)?;
    let carried = KeyState(found.state).with_value(value);
    let _ = new
        .region
        .wide(found.at)
        .compare_exchange(found.state, carried.0);
    Ok(())
}

/// Opens every joint limiter in `new` as it is, and carries over the state of its keys that are not idle.
fn carry_joints(old: &Engine, new: &Engine, now_ns: u64) -> Result<()> {
    let by = SessionId::DETACHED;
    let mut names = Vec::new();
    old.for_each_joint(b"", |name, limits, _| names.push((name, limits)));
    let mut joints = HashMap::new();
    for (name, limits) in names {
        let before = old.open_joint(&name, &limits, by, now_ns)?;
        let after = new.open_joint(&name, &limits, by, now_ns)?;
        let places = [(old, before.id), (new, after.id)];
        let [from, to] = places.map(|(engine, id)| joint::overflow_at(&engine.region, id));
        carry_joint_entry(old, new, &after, from, to);
        joints.insert(before.id, after);
    }

    let mut result = Ok(());
    old.joint_keys.for_each(&old.region, |cell, at, state| {
        if result.is_err() || phase(state) != LIVE {
            return;
        }
        let is_alive = &mut |_| true;
        match JointKeys::idle(&old.region, cell, at, state, now_ns, is_alive) {
            Idle::Now => return,
            Idle::At(at_ns) if at_ns <= now_ns => {
                return JointKeys::note_reclaim(&new.region, at_ns);
            }
            Idle::At(_) | Idle::Unforeseen | Idle::Never => {}
        }
        if let Some(limiter) = joints.get(&State(state).definition()) {
            let key = JointKeys::key(&old.region, at, state);
            result = insert_joint_key(new, limiter, &key, now_ns)
                .map(|to| carry_joint_entry(old, new, limiter, at, to));
        }
    });
    result
}

/// Where the entry of a key is in `new`.
fn insert_joint_key(new: &Engine, limiter: &JointRef, key: &[u8], now_ns: u64) -> Result<usize> {
    key::check_name("key", key).map_err(|_| Error::Damaged {
        what: "a joint limiter's key cannot be read",
    })?;
    let entry = JointKey::new(new, limiter, key);
    let actor = new.actor(SessionId::DETACHED, new.region.caps().joint_keys);
    let found = new
        .joint_keys
        .find_or_insert(&new.region, &actor, entry.hash, &entry, now_ns)?;
    Ok(found.at)
}

/// Carries over what an entry of `limiter` has used, as far as its words belong together.
fn carry_joint_entry(old: &Engine, new: &Engine, limiter: &JointRef, from: usize, to: usize) {
    let state = State(old.region.wide(from).load());
    if let Some(values) = entry::seen(&old.region, &limiter.limits, from, state) {
        entry::set(&new.region, to, &values);
    }
}
