//! The limiters that a replay runs against: owns their creation, and the mapping of a log's time and
//! keys to what one region can tell apart. Never reads the log.
//!
//! A region tells times apart for [`TIME_NS_MAX`] from its base and has room for so many keys; a log
//! knows neither bound. So one limiter follows another, each in a region of its own, an *era*:
//!
//! ```text
//!  era 0  ├──────── new keys ────────┤─ ─ keys that have something used ─ ─┤
//!  era 1                             ├──────── new keys ────────┤─ ─ ─ ─ ─ ─
//! ```
//!
//! A key from which nothing is used is no different from a new one, so from then on the latest era has
//! it. Until then the era that it was last decided in goes on deciding it; an era is dropped once all
//! its keys must be full. So every decision is the engine's own, and exact.

use std::time::Duration;

use sprag::limit::{Algorithm, Limit, TIME_NS_MAX};
use sprag::{Caps, Limiter, ManualClock, Space};

use super::decide::{Decide, RefusedBy};

const DAY_NS: u64 = 86_400 * 1_000_000_000;
/// Where an era's time begins, or less than a period before, whatever the log's: any time will do whose
/// distance from the log's is whole periods, since windows are aligned.
const BASE_NS: u64 = 20_000 * DAY_NS;
/// How long an era takes new keys: half the time that a region tells apart, so that a key has the
/// other half to become full once.
const ERA_NS: u64 = TIME_NS_MAX / 2;
/// Keys of the first era. Few, so that a short log touches little memory.
const KEYS_FIRST: u32 = 1 << 14;
/// Keys of the largest era.
const KEYS_MAX: u32 = 1 << 23;
/// Chunks that a key of 1,024 bytes takes.
const CHUNKS_PER_KEY: u32 = 22;

/// The limiters of one replay: a request is granted if each of its limits has room for it, and takes from
/// none otherwise.
pub(crate) struct Engine {
    limits: Vec<Eras>,
}

/// The eras of one limit.
struct Eras {
    limit: Limit,
    /// How long after its last request a key can have something used, in nanoseconds.
    fill_ns: u128,
    /// The latest era.
    current: Era,
    /// Those before it that may have a key with something used, latest first.
    past: Vec<Era>,
}

/// A limiter in a region of its own, and the clock that it lives by.
struct Era {
    limiter: Limiter,
    space: Space,
    clock: ManualClock,
    keys_max: u32,
    /// The log's time at region time zero.
    opened_at_ns: i64,
    /// The log's time of the last decision.
    last_at_ns: i64,
}

impl Engine {
    /// Limiters that know no key yet; `first_at_ns` is the time of the first request.
    ///
    /// # Errors
    ///
    /// The limit that can't be enforced, and why, in words that tell the user what to do.
    pub(crate) fn new(limits: &[Limit], first_at_ns: i64) -> Result<Self, (Limit, String)> {
        let open = |limit: &Limit| Eras::new(*limit, first_at_ns).map_err(|why| (*limit, why));
        let limits = limits.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { limits })
    }
}

impl Decide for Engine {
    fn decide(&mut self, key: &[u8], at_ns: i64, cost: u64) -> Result<RefusedBy, String> {
        if let [limit] = &mut self.limits[..] {
            return Ok((!limit.decide(key, at_ns, cost)?).into());
        }
        let mut refused_by = 0;
        for (i, limit) in self.limits.iter_mut().enumerate() {
            let has_room = limit.current_for(key, at_ns)?.has_room(key, at_ns, cost)?;
            refused_by |= RefusedBy::from(!has_room) << i;
        }
        if refused_by == 0 {
            // Nobody else takes anything in between.
            for limit in &mut self.limits {
                limit.decide(key, at_ns, cost)?;
            }
        }
        Ok(refused_by)
    }

    fn keys(&self) -> u64 {
        let eras = self.limits.iter().flat_map(Eras::all);
        eras.map(|era| era.space.limiter_key_count()).sum()
    }

    fn bytes(&self) -> u64 {
        let eras = self.limits.iter().flat_map(Eras::all);
        eras.map(|era| era.space.limiter_key_bytes()).sum()
    }
}

impl Eras {
    /// A limiter that knows no key yet.
    fn new(limit: Limit, first_at_ns: i64) -> Result<Self, String> {
        let (count, period_ns) = (limit.count(), u128::from(limit.period_ns()));
        let fill_ns = match limit.algorithm() {
            Algorithm::FixedWindow => period_ns,
            Algorithm::SlidingWindow => 2 * period_ns,
            // Where nothing is granted, nothing is ever used.
            _ if count == 0 => 0,
            _ => {
                let burst = limit.burst().unwrap_or(count);
                (u128::from(burst) * period_ns).div_ceil(u128::from(count))
            }
        };
        Ok(Self {
            limit,
            fill_ns,
            current: Era::open(limit, KEYS_FIRST, first_at_ns)
                .map_err(|error| error.to_string())?,
            past: Vec::new(),
        })
    }

    /// Opens the next era if the latest is about to end, and drops those that are over.
    #[cold]
    fn turn(&mut self, at_ns: i64) -> Result<(), sprag::Error> {
        let keys_max = if self.current.is_crowded() {
            (self.current.keys_max * 8).min(KEYS_MAX)
        } else {
            self.current.keys_max
        };
        let next = Era::open(self.limit, keys_max, at_ns)?;
        self.past
            .insert(0, std::mem::replace(&mut self.current, next));
        self.past
            .retain(|era| u128::from(at_ns.abs_diff(era.last_at_ns)) < self.fill_ns);
        Ok(())
    }

    /// The era that decides `key`.
    fn current_for(&mut self, key: &[u8], at_ns: i64) -> Result<&mut Era, String> {
        if self.current.is_crowded() || self.current.elapsed_ns(at_ns) > ERA_NS {
            self.turn(at_ns).map_err(|error| error.to_string())?;
        }
        for era in &mut self.past {
            if era.has_used(key, at_ns)? {
                return Ok(era);
            }
        }
        Ok(&mut self.current)
    }

    /// Whether `cost` of `key` is granted.
    fn decide(&mut self, key: &[u8], at_ns: i64, cost: u64) -> Result<bool, String> {
        self.current_for(key, at_ns)?.decide(key, at_ns, cost)
    }

    fn all(&self) -> impl Iterator<Item = &Era> {
        std::iter::once(&self.current).chain(&self.past)
    }
}

impl Era {
    fn open(limit: Limit, keys_max: u32, at_ns: i64) -> Result<Self, sprag::Error> {
        let period_ns = limit.period_ns();
        // The remainder is below a period, which is 366 days at most.
        let of_period_ns = at_ns.rem_euclid(period_ns.cast_signed()).cast_unsigned();
        let base_ns = BASE_NS - BASE_NS % period_ns;
        let clock = ManualClock::starting_at(0, base_ns + of_period_ns);
        let caps = Caps {
            objects: 16,
            limiter_keys: keys_max,
            joint_keys: 1,
            sessions: 1,
            waiters: 1,
            permits: 1,
            key_chunks: keys_max * CHUNKS_PER_KEY,
        };
        let space = Space::builder().caps(caps).clock(&clock).open("mem:")?;
        Ok(Self {
            limiter: space.limiter("replay", limit)?,
            space,
            clock,
            keys_max,
            opened_at_ns: at_ns,
            last_at_ns: at_ns,
        })
    }

    /// The region's time at the log's; the log's never goes back.
    fn elapsed_ns(&self, at_ns: i64) -> u64 {
        at_ns.abs_diff(self.opened_at_ns)
    }

    /// Whether the next new key should go elsewhere, so that none ever finds the table full.
    fn is_crowded(&self) -> bool {
        self.space.limiter_key_count() >= u64::from(self.keys_max)
    }

    /// Whether `key` has anything used here. A key that this era doesn't know has not.
    fn has_used(&mut self, key: &[u8], at_ns: i64) -> Result<bool, String> {
        let elapsed_ns = self.elapsed_ns(at_ns);
        self.clock.set(elapsed_ns.min(TIME_NS_MAX));
        let state = self.limiter.peek(key).map_err(|error| error.to_string())?;
        let Some(reset_after) = state.reset_after() else {
            return Ok(true);
        };
        // After the region's last moment a key goes on becoming full, but nothing can be decided.
        let late_ns = elapsed_ns.saturating_sub(TIME_NS_MAX);
        if reset_after.as_nanos() <= u128::from(late_ns) {
            return Ok(false);
        }
        if late_ns > 0 {
            return Err(format!(
                "the key {:?} has been in use without a pause for more than {} years, \
                 the longest that a limiter tells apart; replay the log in parts",
                key.escape_ascii().to_string(),
                ERA_NS / DAY_NS / 365
            ));
        }
        Ok(true)
    }

    /// Whether `cost` of `key` would be granted.
    fn has_room(&mut self, key: &[u8], at_ns: i64, cost: u64) -> Result<bool, String> {
        self.clock.set(self.elapsed_ns(at_ns));
        let state = self.limiter.peek(key).map_err(|error| error.to_string())?;
        Ok(state.retry_after_for(cost) == Some(Duration::ZERO))
    }

    fn decide(&mut self, key: &[u8], at_ns: i64, cost: u64) -> Result<bool, String> {
        if at_ns != self.last_at_ns {
            self.clock.set(self.elapsed_ns(at_ns));
            self.last_at_ns = at_ns;
        }
        let decision = self
            .limiter
            .check(key, cost)
            .map_err(|error| error.to_string())?;
        if decision.is_overflow() {
            return Err("the limiter has no room for another key".to_owned());
        }
        Ok(decision.is_allowed())
    }
}
