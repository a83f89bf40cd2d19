//! How a limit is written: `COUNT/PERIOD[;burst=NUMBER][;window=fixed|sliding]`.
//! Owns the grammar and the units; the bounds are the definition's.

use std::fmt;
use std::str::FromStr;

use super::definition::{Algorithm, Limit};
use super::error::LimitError;

impl Limit {
    /// Reads a limit such as `100/minute`, `30/second;burst=5`, `5/10s` or `1000/day;window=sliding`.
    ///
    /// The period is a unit, with a whole number before it if it is not 1: `ns`, `us`, `ms`,
    /// `s` (`sec`, `second`), `m` (`min`, `minute`), `h` (`hr`, `hour`), `d` (`day`), `w` (`week`, 7 days),
    /// `y` (`yr`, `year`, 365 days); the words in the plural too. White space may stand between any two
    /// parts. Options follow a `;`: `burst=NUMBER` (token bucket only) and `window=fixed` or
    /// `window=sliding`.
    ///
    /// # Errors
    ///
    /// [`LimitError::MissingPeriod`], [`LimitError::Number`], [`LimitError::Unit`] or
    /// [`LimitError::Option`] for what can't be read, [`LimitError::BurstNotApplicable`] for a burst
    /// on a window, else as the constructors.
    pub fn parse(text: &str) -> Result<Self, LimitError> {
        let mut parts = text.split(';').map(str::trim);
        let rate = parts.next().unwrap_or_default();
        let (count, period) = rate
            .split_once('/')
            .ok_or_else(|| LimitError::MissingPeriod { text: text.into() })?;
        let count = number("count", count.trim(), text)?;
        let period_ns = parse_period(period.trim(), text)?;

        let mut burst = None;
        let mut window = None;
        for option in parts {
            let unknown = || LimitError::Option {
                option: option.into(),
                text: text.into(),
            };
            let (name, given) = option.split_once('=').ok_or_else(unknown)?;
            match (name.trim_end(), given.trim_start()) {
                ("burst", given) if burst.is_none() => {
                    burst = Some(number("burst", given, text)?);
                }
                ("window", "fixed") if window.is_none() => window = Some(Algorithm::FixedWindow),
                ("window", "sliding") if window.is_none() => {
                    window = Some(Algorithm::SlidingWindow);
                }
                _ => return Err(unknown()),
            }
        }

        match (window.unwrap_or(Algorithm::TokenBucket), burst) {
            (Algorithm::TokenBucket, None) => Self::token_bucket(count, period_ns),
            (Algorithm::TokenBucket, Some(burst)) => {
                Self::token_bucket_with_burst(count, period_ns, burst)
            }
            (Algorithm::FixedWindow, None) => Self::fixed_window(count, period_ns),
            (Algorithm::SlidingWindow, None) => Self::sliding_window(count, period_ns),
            (algorithm, Some(burst)) => Err(LimitError::BurstNotApplicable { burst, algorithm }),
        }
    }
}

impl FromStr for Limit {
    type Err = LimitError;

    /// As [`Limit::parse`].
    fn from_str(text: &str) -> Result<Self, LimitError> {
        Self::parse(text)
    }
}

/// Writes a period in its longest whole unit, as [`Limit::parse`] reads it.
pub(super) fn write_period(f: &mut fmt::Formatter<'_>, period_ns: u64) -> fmt::Result {
    for (unit_ns, names) in UNITS {
        if period_ns.is_multiple_of(unit_ns) {
            return match (period_ns / unit_ns, names) {
                (1, [.., word]) => f.write_str(word),
                (units, [short, ..]) => write!(f, "{units}{short}"),
                (_, []) => Err(fmt::Error),
            };
        }
    }
    Err(fmt::Error)
}

/// A period too long for 64 bits of nanoseconds is handed on as `u64::MAX`, which no bound admits.
fn parse_period(period: &str, text: &str) -> Result<u64, LimitError> {
    let digits = period
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(period.len());
    let (units, unit) = period.split_at(digits);
    let unit = unit.trim_start();
    let singular = match unit.strip_suffix('s') {
        // Neither a single letter has a plural nor what already ends in an s: "ms" is not two m.
        Some(word) if word.len() >= 2 && !word.ends_with('s') => word,
        _ => unit,
    };
    let unit_ns = UNITS
        .iter()
        .find(|(_, names)| names.contains(&unit) || names.contains(&singular))
        .map(|(unit_ns, _)| *unit_ns)
        .ok_or_else(|| LimitError::Unit {
            unit: unit.into(),
            text: text.into(),
        })?;
    if units.is_empty() {
        return Ok(unit_ns);
    }
    Ok(number("period", units, text)?.saturating_mul(unit_ns))
}

fn number(argument: &'static str, given: &str, text: &str) -> Result<u64, LimitError> {
    let refuse = || LimitError::Number {
        argument,
        given: given.into(),
        text: text.into(),
    };
    // `u64::from_str` would let a plus sign pass.
    if !given.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refuse());
    }
    given.parse().map_err(|_| refuse())
}

/// Nanoseconds and names of each unit, longest first: the short name first, the word last.
const UNITS: [(u64, &[&str]); 9] = [
    (365 * 86_400_000_000_000, &["y", "yr", "year"]),
    (7 * 86_400_000_000_000, &["w", "week"]),
    (86_400_000_000_000, &["d", "day"]),
    (3_600_000_000_000, &["h", "hr", "hour"]),
    (60_000_000_000, &["m", "min", "minute"]),
    (1_000_000_000, &["s", "sec", "second"]),
    (1_000_000, &["ms", "millisecond"]),
    (1_000, &["us", "microsecond"]),
    (1, &["ns", "nanosecond"]),
];
