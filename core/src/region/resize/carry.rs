//! What a region that replaces another is given of it, while nobody uses either.
//!
//! Every fence and counter, every limiter, joint or not, with its overrides and the state of its keys, every
//! concurrency limiter, and every once that is done and whose result is kept. Locks are not: none is held. Nor is it
//! that attempts at a once ended unfinished.

use crate::cell_key;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::joint::entry;
use crate::joint::state::State;
use crate::joint::{JointRef, definition as joint};
use crate::joint_key::{JointKey, JointKeys};
use crate::key;
use crate::limiter::{self, LimiterRef, name_cell, overflow};
use crate::limiter_key::{KeyState, LimiterKey, LimiterKeys, reclaimed_at_ns};
use crate::object::{Kind, Objects, Plain};
use crate::once::{Begun, OnceStatus, TTL_NS_MAX, TTL_NS_MIN};
use crate::session::SessionId;
use crate::table::{Flavour, Idle, LIVE, phase};
use std::collections::HashMap;

/// Carries over all of it. Region time is the same in both.
pub(super) fn all(old: &Engine, new: &Engine, now_ns: u64) -> Result<()> {
    carry_fences(old, new)?;
    carry_counters(old, new, now_ns)?;
    carry_onces(old, new, now_ns)?;
    carry_limiters(old, new, now_ns)?;
    carry_concurrency(old, new, now_ns)?;
    carry_joints(old, new, now_ns)
}

/// Admits every fence's highest token to the fence of the same name in `new`.
fn carry_fences(old: &Engine, new: &Engine) -> Result<()> {
    let mut result = Ok(());
    old.objects.for_each(&old.region, |_, at, state| {
        let highest = Plain::decode(state).value;
        if result.is_err()
            || phase(state) != LIVE
            || !Objects::is(&old.region, at, Kind::Fence)
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
        if is_idle::<LimiterKeys>(old, new, cell, at, state.0, now_ns) {
            return;
        }
        if let Some((_, limiter)) = limiters.get(&name_cell(&old.region, state.limit())) {
            let key = cell_key::read(&old.region, at, state.0);
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
                keys.push((cell, cell_key::read(&old.region, at, state)));
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

/// Opens every concurrency limiter in `new` as it is. Nobody has anything of its keys.
fn carry_concurrency(old: &Engine, new: &Engine, now_ns: u64) -> Result<()> {
    let by = SessionId::DETACHED;
    for limiter in old.concurrency_statuses(b"", now_ns) {
        new.open_concurrency(&limiter.name, limiter.capacity, false, by, now_ns, |_| {})?;
    }
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
        if is_idle::<JointKeys>(old, new, cell, at, state, now_ns) {
            return;
        }
        if let Some(limiter) = joints.get(&State(state).definition()) {
            let key = cell_key::read(&old.region, at, state);
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

/// Whether the key in a cell has nothing to carry over. If it went idle, `new` is told when.
fn is_idle<F: Flavour>(
    old: &Engine,
    new: &Engine,
    cell: u32,
    at: usize,
    live: u128,
    now_ns: u64,
) -> bool {
    match F::idle(&old.region, cell, at, live, now_ns, &mut |_| true) {
        Idle::Now => true,
        Idle::At(at_ns) if at_ns <= now_ns => {
            F::note_reclaim(&new.region, at_ns);
            true
        }
        Idle::At(_) | Idle::Unforeseen | Idle::Never => false,
    }
}
