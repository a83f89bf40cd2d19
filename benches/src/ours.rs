//! Sprag's side of a case, through the public [`Space`] with its defaults.

use crate::case::{BATCH, Rate, Work};
use crate::draw::{self, Key};
use crate::{Case, Effort, Result, Side, once};
use sprag::{Caps, JointLimiter, Limit, Limiter, Space, StripedCounter};
use std::hint::black_box;
use tempfile::TempDir;

/// Where a space lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// `mem:`.
    Memory,
    /// `shm:`, a file in a private directory of a memory file system.
    Shared,
}

/// A space of its own, and its directory if it has one.
pub struct Home {
    /// The space.
    pub space: Space,
    /// Dropped after the space.
    _directory: Option<TempDir>,
}

impl Home {
    /// Opens a space with the defaults; with larger caps if it is to hold more than these.
    pub fn open(reach: Reach, universe: u64) -> Result<Self> {
        let mut caps = Caps::default();
        let entries = u32::try_from(universe.next_power_of_two())?;
        caps.objects = caps.objects.max(entries);
        caps.limiter_keys = caps.limiter_keys.max(entries);
        caps.joint_keys = caps.joint_keys.max(entries);
        caps.key_chunks = caps.key_chunks.max(entries);
        let builder = Space::builder().caps(caps).share_percent(100);
        Ok(match reach {
            Reach::Memory => Self {
                space: builder.open("mem:")?,
                _directory: None,
            },
            Reach::Shared => {
                let directory = tempfile::Builder::new()
                    .prefix("sprag-compare-")
                    .tempdir_in("/dev/shm")?;
                let url = format!("shm:{}", directory.path().join("region").display());
                Self {
                    space: builder.open(&url)?,
                    _directory: Some(directory),
                }
            }
        })
    }

    /// A limiter with this rate.
    pub fn limiter(&self, rate: Rate) -> Result<Limiter> {
        Ok(self.space.limiter("requests", limit(rate)?)?)
    }
}

fn limit(rate: Rate) -> Result<Limit> {
    let period_ns = u64::try_from(rate.period.as_nanos())?;
    let burst = u64::from(rate.burst.get());
    Ok(Limit::token_bucket_with_burst(1, period_ns, burst)?)
}

/// A space set up for `case`, every key of it already there.
pub fn side(case: &Case, reach: Reach, effort: Effort) -> Result<Side> {
    if matches!(case.work, Work::Once | Work::OnceAgain) {
        return once::ours(case, reach, effort);
    }
    let home = Home::open(reach, case.universe)?;
    let sequences = case.sequences(effort);
    let passes = case.passes(effort);
    let operations = passes * sequences[0].len();
    if case.work == Work::Lock {
        fill_locks(&home.space, case.universe)?;
        let waits = case.threads > 1;
        return Ok(Side::new(case.threads, operations, move |thread| {
            let (home, keys) = (&home, &sequences[thread]);
            if waits {
                lock_and_unlock_waiting(home, keys, passes)
            } else {
                lock_and_unlock(home, keys, passes)
            }
        }));
    }
    if case.work == Work::Add {
        return Ok(Side::new(case.threads, operations, move |thread| {
            add(&home, &sequences[thread], passes)
        }));
    }
    if case.work == Work::AddStriped {
        let counter = home.space.counter("striped")?.striped()?.into_owned();
        return Ok(Side::new(case.threads, operations, move |_| {
            let _whole = &home;
            add_striped(&counter, operations)
        }));
    }
    if let Some([first, second]) = case.two_rates() {
        let limits = [limit(first)?, limit(second)?];
        let limiter = home.space.joint_limiter("requests", limits)?;
        for rank in 0..case.universe {
            let _ = limiter.check(&draw::key(rank), 1)?;
        }
        return Ok(Side::new(case.threads, operations, move |thread| {
            let _whole = &home;
            check_two(&limiter, &sequences[thread], passes)
        }));
    }
    let limiter = home.limiter(case.rate())?;
    fill_limiter(&limiter, case)?;
    if case.is_text {
        let sequences = texts(&sequences);
        return Ok(Side::new(case.threads, operations, move |thread| {
            let _whole = &home;
            check(&limiter, &sequences[thread], passes)
        }));
    }
    let is_batch = case.work == Work::CheckBatch;
    Ok(Side::new(case.threads, operations, move |thread| {
        let _whole = &home;
        if is_batch {
            check_batches(&limiter, &sequences[thread], passes)
        } else {
            check(&limiter, &sequences[thread], passes)
        }
    }))
}

/// Sequences as strings.
pub(crate) fn texts(sequences: &[Vec<Key>]) -> Vec<Vec<String>> {
    sequences
        .iter()
        .map(|keys| keys.iter().map(draw::text).collect())
        .collect()
}

fn fill_limiter(limiter: &Limiter, case: &Case) -> Result<()> {
    let uses = match case.work {
        Work::Refuse => case.rate().burst.get(),
        _ => 1,
    };
    for rank in 0..case.universe {
        for _ in 0..uses {
            let _ = limiter.check(&draw::key(rank), 1)?;
        }
    }
    Ok(())
}

fn fill_locks(space: &Space, universe: u64) -> Result<()> {
    for rank in 0..universe {
        drop(space.lock(&draw::key(rank))?.try_acquire()?);
    }
    Ok(())
}

#[inline(never)]
fn check<K: AsRef<[u8]>>(limiter: &Limiter, keys: &[K], passes: usize) -> Result<u64> {
    let mut admitted = 0;
    for _ in 0..passes {
        for key in keys {
            admitted += u64::from(limiter.check(key, 1)?.is_allowed());
        }
    }
    Ok(admitted)
}

#[inline(never)]
fn check_two(limiter: &JointLimiter, keys: &[Key], passes: usize) -> Result<u64> {
    let mut admitted = 0;
    for _ in 0..passes {
        for key in keys {
            admitted += u64::from(limiter.check(key, 1)?.is_allowed());
        }
    }
    Ok(admitted)
}

#[inline(never)]
fn check_batches(limiter: &Limiter, keys: &[Key], passes: usize) -> Result<u64> {
    let mut admitted = 0;
    for _ in 0..passes {
        for batch in keys.chunks(BATCH) {
            limiter.check_batch(batch, 1, |_, decision| {
                admitted += u64::from(decision.is_allowed());
            })?;
        }
    }
    Ok(admitted)
}

#[inline(never)]
fn lock_and_unlock(home: &Home, keys: &[Key], passes: usize) -> Result<u64> {
    let mut admitted = 0;
    for _ in 0..passes {
        for key in keys {
            if let Some(hold) = home.space.lock(key)?.try_acquire()? {
                black_box(hold.token());
                admitted += 1;
            }
        }
    }
    Ok(admitted)
}

#[inline(never)]
fn add(home: &Home, keys: &[Key], passes: usize) -> Result<u64> {
    let mut added = 0;
    for _ in 0..passes {
        for key in keys {
            added += u64::from(home.space.counter(key)?.add(1)? > 0);
        }
    }
    Ok(added)
}

#[inline(never)]
fn add_striped(counter: &StripedCounter<'_>, operations: usize) -> Result<u64> {
    for _ in 0..operations {
        counter.add(1)?;
    }
    Ok(operations as u64)
}

/// As [`lock_and_unlock`] where another thread may hold the key: the peers wait for it, so we do.
#[inline(never)]
fn lock_and_unlock_waiting(home: &Home, keys: &[Key], passes: usize) -> Result<u64> {
    let mut admitted = 0;
    for _ in 0..passes {
        for key in keys {
            let hold = home.space.lock(key)?.acquire()?;
            black_box(hold.token());
            admitted += 1;
        }
    }
    Ok(admitted)
}
