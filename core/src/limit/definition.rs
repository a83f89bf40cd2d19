//! The definition of a rate limit: algorithm, count per period, burst, and their bounds.
//! Owns what is accepted; never computes a transition.

use std::fmt;

use super::error::LimitError;
use super::prepared::{
    INDEX_BITS, Prepared, REDUCED_COUNT_MAX, TIME_NS_MAX, UNIX_NS_MAX, USED_BITS, VALUE_MAX,
    is_narrow, wide,
};
use super::sliding;

/// The greatest count of a limit: 10^12.
pub const COUNT_MAX: u64 = 1_000_000_000_000;

/// The longest period of a limit, in nanoseconds: 366 days.
pub const PERIOD_NS_MAX: u64 = 366 * 86_400 * 1_000_000_000;

/// The shortest period of a window, in nanoseconds: 2^19, about half a millisecond, so that the
/// index of every window of a unix time in nanoseconds below 2^63 fits the value's index field.
pub const WINDOW_PERIOD_NS_MIN: u64 = 1 << (63 - INDEX_BITS);

/// How a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// A bucket of `burst` tokens that refills steadily at `count` per `period_ns`; a request takes
    /// its cost in tokens or is refused. In every interval of length w at most
    /// `burst` + w·`count`/`period_ns` is admitted. Computed as the generic cell rate algorithm
    /// (virtual scheduling) of ITU-T Recommendation I.371, without rounding.
    TokenBucket,
    /// At most `count` in each window of `period_ns`, windows being aligned to the unix epoch. Two
    /// whole counts may be admitted around a window's edge.
    FixedWindow,
    /// What is counted in the current window, plus what was in the one before times the share of the
    /// current one that is left, is at most `count`; windows of `period_ns`, aligned to the unix epoch.
    /// An estimate: in every interval of length w at most `count` + w·`count`/`period_ns` is admitted, so
    /// up to twice the count in a period; and a request may be refused that a log of all admissions
    /// would have let pass. Computed without rounding.
    SlidingWindow,
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TokenBucket => "token bucket",
            Self::FixedWindow => "fixed window",
            Self::SlidingWindow => "sliding window",
        })
    }
}

/// A rate limit that has been checked against every bound: what it says is what is enforced.
///
/// A count of 0 is legal and refuses every positive cost.
///
/// Written as `COUNT/PERIOD[;burst=NUMBER][;window=fixed|sliding]`, see [`Limit::parse`]; displayed the same
/// way, and reading back what was displayed gives an equal limit.
///
/// ```
/// # use sprag_core as sprag;
/// use sprag::limit::Limit;
///
/// let limit: Limit = "30/second;burst=5".parse()?;
/// assert_eq!(limit, Limit::token_bucket_with_burst(30, 1_000_000_000, 5)?);
/// assert_eq!(limit.to_string(), "30/second;burst=5");
/// # Ok::<(), sprag::limit::LimitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limit {
    algorithm: Algorithm,
    count: u64,
    period_ns: u64,
    /// A window's burst is its count.
    burst: u64,
}

impl Limit {
    /// A token bucket of `count` per `period_ns`, with a burst of `count` (of 1 if the count is 0).
    ///
    /// # Errors
    ///
    /// As [`Limit::token_bucket_with_burst`].
    pub fn token_bucket(count: u64, period_ns: u64) -> Result<Self, LimitError> {
        Self::token_bucket_with_burst(count, period_ns, default_burst(count))
    }

    /// A token bucket of `count` per `period_ns` that holds up to `burst` tokens.
    ///
    /// # Errors
    ///
    /// [`LimitError::Count`] above [`COUNT_MAX`]; [`LimitError::Period`] outside 1 to
    /// [`PERIOD_NS_MAX`]; [`LimitError::RateTooFine`] if the count, divided by its greatest common
    /// divisor with the period, is above [`REDUCED_COUNT_MAX`] (every count up to that bound passes,
    /// and every multiple of a million per second up to [`COUNT_MAX`]);
    /// [`LimitError::Burst`] for 0, or if the latest arrival time,
    /// [`TIME_NS_MAX`]·N′ + `burst`·P′, would be above [`VALUE_MAX`], N′/P′ being the reduced rate.
    pub fn token_bucket_with_burst(
        count: u64,
        period_ns: u64,
        burst: u64,
    ) -> Result<Self, LimitError> {
        let algorithm = Algorithm::TokenBucket;
        check_rate(algorithm, count, period_ns, 1)?;
        let divisor = greatest_common_divisor(count, period_ns);
        let (reduced_count, reduced_period_ns) = (count / divisor, period_ns / divisor);
        if reduced_count > REDUCED_COUNT_MAX {
            return Err(LimitError::RateTooFine {
                count,
                period_ns,
                reduced_count,
                reduced_period_ns,
                reduced_count_max: REDUCED_COUNT_MAX,
                count_hint: rounder_count(count, period_ns),
            });
        }
        let burst_max = burst_max(reduced_count, reduced_period_ns);
        if burst == 0 || burst > burst_max {
            return Err(LimitError::Burst {
                burst,
                burst_max,
                count,
                period_ns,
            });
        }
        Ok(Self {
            algorithm,
            count,
            period_ns,
            burst,
        })
    }

    /// A fixed window of `count` in each `period_ns`, aligned to the unix epoch.
    ///
    /// # Errors
    ///
    /// [`LimitError::Count`] above [`COUNT_MAX`]; [`LimitError::Period`] outside
    /// [`WINDOW_PERIOD_NS_MIN`] to [`PERIOD_NS_MAX`].
    pub fn fixed_window(count: u64, period_ns: u64) -> Result<Self, LimitError> {
        let algorithm = Algorithm::FixedWindow;
        check_rate(algorithm, count, period_ns, WINDOW_PERIOD_NS_MIN)?;
        Ok(Self {
            algorithm,
            count,
            period_ns,
            burst: count,
        })
    }

    /// A sliding window of `count` in `period_ns`, estimated from two aligned windows.
    ///
    /// # Errors
    ///
    /// [`LimitError::Count`] above [`COUNT_MAX`]; [`LimitError::Period`] outside
    /// [`WINDOW_PERIOD_NS_MIN`] to [`PERIOD_NS_MAX`]; [`LimitError::WindowCount`] for a count above what
    /// two counts and the window's index leave room for in one value: 2^20 - 1 for the shortest
    /// period, 2^25 - 1 for a second, 2^28 - 1 for a minute, 2^33 - 1 for a day.
    pub fn sliding_window(count: u64, period_ns: u64) -> Result<Self, LimitError> {
        let algorithm = Algorithm::SlidingWindow;
        check_rate(algorithm, count, period_ns, WINDOW_PERIOD_NS_MIN)?;
        let count_max = sliding::count_max(period_ns);
        if count > count_max {
            return Err(LimitError::WindowCount {
                count,
                count_max,
                period_ns,
            });
        }
        Ok(Self {
            algorithm,
            count,
            period_ns,
            burst: count,
        })
    }

    /// How this limit counts.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// How much is admitted per period, as given.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The period in nanoseconds, as given.
    pub const fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// How many tokens the bucket holds; `None` for a window.
    pub const fn burst(&self) -> Option<u64> {
        match self.algorithm {
            Algorithm::TokenBucket => Some(self.burst),
            Algorithm::FixedWindow | Algorithm::SlidingWindow => None,
        }
    }

    /// The form that the fast path computes with. Costs one greatest common divisor, under a
    /// microsecond: do it once per limiter.
    pub const fn prepare(&self) -> Prepared {
        let divisor = match self.algorithm {
            Algorithm::TokenBucket => greatest_common_divisor(self.count, self.period_ns),
            Algorithm::FixedWindow | Algorithm::SlidingWindow => 1,
        };
        let (count, period) = (self.count / divisor, self.period_ns / divisor);
        Prepared {
            algorithm: self.algorithm,
            count,
            period,
            divisor,
            burst: self.burst,
            is_narrow: is_narrow(self.algorithm, count, period, self.burst),
        }
    }

    /// The limit that `prepared` came from. Its products are the count and the period that once
    /// passed the bounds.
    pub(super) const fn of(prepared: &Prepared) -> Self {
        Self {
            algorithm: prepared.algorithm,
            count: prepared.count * prepared.divisor,
            period_ns: prepared.period * prepared.divisor,
            burst: prepared.burst,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.count)?;
        super::parse::write_period(f, self.period_ns)?;
        match self.algorithm {
            Algorithm::TokenBucket if self.burst == default_burst(self.count) => Ok(()),
            Algorithm::TokenBucket => write!(f, ";burst={}", self.burst),
            Algorithm::FixedWindow => f.write_str(";window=fixed"),
            Algorithm::SlidingWindow => f.write_str(";window=sliding"),
        }
    }
}

const fn default_burst(count: u64) -> u64 {
    if count == 0 { 1 } else { count }
}

fn check_rate(
    algorithm: Algorithm,
    count: u64,
    period_ns: u64,
    period_ns_min: u64,
) -> Result<(), LimitError> {
    if count > COUNT_MAX {
        return Err(LimitError::Count {
            count,
            count_max: COUNT_MAX,
        });
    }
    if period_ns < period_ns_min || period_ns > PERIOD_NS_MAX {
        return Err(LimitError::Period {
            algorithm,
            period_ns,
            period_ns_min,
            period_ns_max: PERIOD_NS_MAX,
        });
    }
    Ok(())
}

/// The greatest burst for which no arrival time can leave the value field. `reduced_count` is at most
/// [`REDUCED_COUNT_MAX`], so the difference is positive; `reduced_period_ns` divides a positive number.
const fn burst_max(reduced_count: u64, reduced_period_ns: u64) -> u64 {
    let room = VALUE_MAX - wide(TIME_NS_MAX, reduced_count);
    let bursts = room / reduced_period_ns as u128;
    if bursts > u64::MAX as u128 {
        u64::MAX
    } else {
        bursts as u64
    }
}

/// The count with as few of its last digits zeroed as make the rate fit.
fn rounder_count(count: u64, period_ns: u64) -> u64 {
    let mut step = 10;
    while step <= count {
        let rounded = count - count % step;
        if rounded / greatest_common_divisor(rounded, period_ns) <= REDUCED_COUNT_MAX {
            return rounded;
        }
        step *= 10;
    }
    REDUCED_COUNT_MAX
}

/// Positive if either argument is; `greatest_common_divisor(0, n)` is `n`.
const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

// A fixed window's count and used cost fit their field, so a window can always be filled.
const _: () = assert!(COUNT_MAX < 1 << USED_BITS);
// The longest window index: every unix time in nanoseconds, over the shortest period.
const _: () = assert!(UNIX_NS_MAX / WINDOW_PERIOD_NS_MIN < 1 << INDEX_BITS);
// At the finest rate and the longest reduced period a burst of 1 still fits.
const _: () = assert!(burst_max(REDUCED_COUNT_MAX, PERIOD_NS_MAX) >= 1);
// `rounder_count` multiplies a step of at most COUNT_MAX by ten.
const _: () = assert!(COUNT_MAX < u64::MAX / 10);
