//! The limiter that a replay runs against: owns its creation and the mapping of a log's time to the
//! engine's. Never reads the log.

use std::collections::HashMap;

use super::decide::Decide;
use super::limit::{Algorithm, Definition};

/// A stand-in in plain integers until the real engine is hooked up.
pub(crate) struct Engine {
    definition: Definition,
    /// Per key: a bucket's units times the period in nanoseconds, and when it held them; or the
    /// units spent in a window, and the window's number.
    states: HashMap<Vec<u8>, (u128, i64)>,
}

impl Engine {
    /// A limiter that knows no key yet; `first_at_ns` is the time of the first request.
    ///
    /// # Errors
    ///
    /// Why the definition can't be enforced, in words that tell the user what to do.
    #[expect(clippy::unnecessary_wraps, reason = "the real engine has bounds")]
    pub(crate) fn new(definition: Definition, _first_at_ns: i64) -> Result<Self, String> {
        Ok(Self {
            definition,
            states: HashMap::new(),
        })
    }
}

impl Decide for Engine {
    fn decide(&mut self, key: &[u8], at_ns: i64, cost: u64) -> Result<bool, String> {
        let limit = self.definition.limit;
        let period_ns = limit.period.ns();
        let (capacity, window, cost) = match self.definition.algorithm {
            Algorithm::TokenBucket => {
                let period_ns = u128::from(period_ns);
                let capacity = u128::from(limit.burst()) * period_ns;
                (capacity, at_ns, u128::from(cost) * period_ns)
            }
            Algorithm::FixedWindow => {
                let window = at_ns.div_euclid(period_ns.cast_signed());
                (u128::from(limit.count), window, u128::from(cost))
            }
        };
        if !self.states.contains_key(key) {
            self.states.insert(key.to_vec(), (capacity, window));
        }
        let Some((left, last)) = self.states.get_mut(key) else {
            return Ok(true);
        };
        let passed = u128::from(window.abs_diff(*last));
        *left = match self.definition.algorithm {
            Algorithm::TokenBucket => passed
                .saturating_mul(u128::from(limit.count))
                .saturating_add(*left)
                .min(capacity),
            Algorithm::FixedWindow if passed > 0 => capacity,
            Algorithm::FixedWindow => *left,
        };
        *last = window;
        let allowed = cost <= *left;
        if allowed {
            *left -= cost;
        }
        Ok(allowed)
    }

    fn keys(&self) -> u64 {
        self.states.len() as u64
    }

    fn bytes(&self) -> u64 {
        let keys: usize = self.states.keys().map(Vec::len).sum();
        (keys + self.states.len() * 56) as u64
    }
}
