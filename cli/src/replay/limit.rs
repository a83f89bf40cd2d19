//! The limit as the user writes it, `30/minute;burst=60`: owns its grammar and its bounds, and never
//! decides anything by it.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;

/// How many, per which unit of time, and how many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Units granted in one period: at least 1.
    pub(crate) count: u64,
    /// The period they are granted in.
    pub(crate) period: Period,
    /// The burst, where the text names one: at least 1. A token bucket without it holds `count`.
    pub(crate) burst: Option<u64>,
}

impl Limit {
    /// The most units that can be had at one instant.
    pub(crate) fn burst(&self) -> u64 {
        self.burst.unwrap_or(self.count)
    }
}

/// The unit of time of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Period {
    /// One second.
    Second,
    /// Sixty seconds.
    Minute,
    /// Sixty minutes.
    Hour,
    /// Twenty-four hours of Unix time, which has no leap seconds.
    Day,
}

impl Period {
    /// Its length in nanoseconds.
    pub(crate) fn ns(self) -> u64 {
        let seconds = match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
        };
        seconds * 1_000_000_000
    }

    fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }
}

/// The formula that a limit is enforced by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Algorithm {
    /// A bucket of `burst` units, full at first, that refills evenly at the limit's rate
    TokenBucket,
    /// At most the limit's count in each period, periods aligned to the Unix epoch
    FixedWindow,
}

impl Algorithm {
    /// Its name on the command line and in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TokenBucket => "token-bucket",
            Self::FixedWindow => "fixed-window",
        }
    }
}

/// What to enforce: all that an engine needs to know to create the limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Definition {
    /// The rate and the burst.
    pub(crate) limit: Limit,
    /// The formula.
    pub(crate) algorithm: Algorithm,
}

impl Definition {
    /// The most units that one request can ever be granted.
    pub(crate) fn cost_max(&self) -> u64 {
        match self.algorithm {
            Algorithm::TokenBucket => self.limit.burst(),
            Algorithm::FixedWindow => self.limit.count,
        }
    }
}

/// Why a limit's text was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LimitError {
    #[error("write it as COUNT/PERIOD, such as 30/minute or '30/minute;burst=60'")]
    Shape,
    #[error("the {what} '{text}' is not a whole number from 1 to {max}", max = u64::MAX)]
    Number { what: &'static str, text: String },
    #[error("the period '{0}' is none of second, minute, hour, day")]
    Period(String),
    #[error("the option '{0}' is not known; the only one is burst=COUNT")]
    Option(String),
    #[error("burst is given twice; give it once")]
    BurstTwice,
}

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let mut parts = text.split(';').map(str::trim);
        let rate = parts.next().unwrap_or_default();
        let (count, period) = rate.split_once('/').ok_or(LimitError::Shape)?;
        let mut limit = Self {
            count: number("count", count.trim())?,
            period: period.trim().parse()?,
            burst: None,
        };
        for option in parts {
            match option.split_once('=') {
                Some((name, value)) if name.trim() == "burst" => {
                    let burst = number("burst", value.trim())?;
                    if limit.burst.replace(burst).is_some() {
                        return Err(LimitError::BurstTwice);
                    }
                }
                _ => return Err(LimitError::Option(option.to_owned())),
            }
        }
        Ok(limit)
    }
}

impl FromStr for Period {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        match text {
            "s" | "sec" | "second" | "seconds" => Ok(Self::Second),
            "m" | "min" | "minute" | "minutes" => Ok(Self::Minute),
            "h" | "hour" | "hours" => Ok(Self::Hour),
            "d" | "day" | "days" => Ok(Self::Day),
            _ => Err(LimitError::Period(text.to_owned())),
        }
    }
}

/// The text that parses back to the same limit.
impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.count, self.period.name())?;
        match self.burst {
            Some(burst) => write!(formatter, ";burst={burst}"),
            None => Ok(()),
        }
    }
}

fn number(what: &'static str, text: &str) -> Result<u64, LimitError> {
    let refuse = || LimitError::Number {
        what,
        text: text.to_owned(),
    };
    // `u64::from_str` would take a leading plus sign.
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refuse());
    }
    match text.parse() {
        Ok(0) | Err(_) => Err(refuse()),
        Ok(value) => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_limits_are_read_and_written_back() {
        let cases = [
            ("30/minute", 30, Period::Minute, None, "30/minute"),
            ("1/s", 1, Period::Second, None, "1/second"),
            ("7/hours", 7, Period::Hour, None, "7/hour"),
            (
                " 13 / day ; burst = 40 ",
                13,
                Period::Day,
                Some(40),
                "13/day;burst=40",
            ),
            (
                "18446744073709551615/sec;burst=1",
                u64::MAX,
                Period::Second,
                Some(1),
                "18446744073709551615/second;burst=1",
            ),
        ];
        for (text, count, period, burst, canonical) in cases {
            let limit: Limit = text.parse().unwrap();
            let expected = Limit {
                count,
                period,
                burst,
            };
            assert_eq!(limit, expected, "{text}");
            assert_eq!(limit.to_string(), canonical, "{text}");
            assert_eq!(canonical.parse(), Ok(limit), "{text}");
            assert_eq!(limit.burst(), burst.unwrap_or(count), "{text}");
        }
    }

    #[test]
    fn bad_limits_are_refused_and_named() {
        let cases = [
            ("", "COUNT/PERIOD"),
            ("30", "COUNT/PERIOD"),
            ("30;burst=3/minute", "COUNT/PERIOD"),
            ("0/minute", "count '0'"),
            ("-1/minute", "count '-1'"),
            ("+1/minute", "count '+1'"),
            ("1.5/minute", "count '1.5'"),
            ("/minute", "count ''"),
            ("18446744073709551616/minute", "from 1 to"),
            ("30/fortnight", "'fortnight' is none of"),
            ("30/", "'' is none of"),
            ("30/minute;", "option ''"),
            ("30/minute;bust=3", "option 'bust=3'"),
            ("30/minute;burst", "option 'burst'"),
            ("30/minute;burst=0", "burst '0'"),
            ("30/minute;burst=", "burst ''"),
            ("30/minute;burst=1;burst=2", "twice"),
        ];
        for (text, part) in cases {
            let error = text.parse::<Limit>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert!(!error.contains('\n'), "{text}: {error}");
        }
    }
}
