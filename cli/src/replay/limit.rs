//! The limit that a replay is asked for: the engine's own text of a limit, and the algorithm where an
//! option names it. Owns how the two go together; the grammar and the bounds are the engine's.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use sprag::Limit;
use sprag::limit::LimitError;

/// The value of `--limit`: a limit, and how it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    text: String,
    limit: Limit,
}

/// The value of `--algorithm`: the formula that a limit is enforced by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Algorithm {
    /// A bucket of `burst` units, full at first, that refills evenly at the limit's rate
    TokenBucket,
    /// At most the limit's count in each period, periods aligned to the Unix epoch
    FixedWindow,
    /// The same, with the period before weighing in by the share of the current one that is left
    SlidingWindow,
}

/// Why a limit and an algorithm don't go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Mismatch {
    /// The limit's text says otherwise.
    #[error("says {window} and --algorithm {algorithm} says otherwise; leave one of them out")]
    Window {
        /// The text's option.
        window: &'static str,
        /// The argument's value.
        algorithm: &'static str,
    },
    /// The limit is none by that algorithm.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

impl Asked {
    /// What to enforce: as the text says, or by `algorithm` where that is given.
    pub(crate) fn limit(&self, algorithm: Option<Algorithm>) -> Result<Limit, Mismatch> {
        let said = named(self.limit);
        let Some(asked) = algorithm.filter(|asked| *asked != said) else {
            return Ok(self.limit);
        };
        match (window(said), window(asked)) {
            (None, Some(window)) => Ok(Limit::parse(&format!("{};{window}", self.text))?),
            (said, _) => Err(Mismatch::Window {
                window: said.unwrap_or_default(),
                algorithm: name(asked),
            }),
        }
    }
}

impl FromStr for Asked {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        Ok(Self {
            text: text.to_owned(),
            limit: Limit::parse(text)?,
        })
    }
}

/// As it was written.
impl fmt::Display for Asked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The name of a limit's algorithm, as `--algorithm` has it.
pub(crate) fn algorithm_name(limit: Limit) -> &'static str {
    name(named(limit))
}

const fn name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::TokenBucket => "token-bucket",
        Algorithm::FixedWindow => "fixed-window",
        Algorithm::SlidingWindow => "sliding-window",
    }
}

/// The option that a limit's text has for it.
const fn window(algorithm: Algorithm) -> Option<&'static str> {
    match algorithm {
        Algorithm::TokenBucket => None,
        Algorithm::FixedWindow => Some("window=fixed"),
        Algorithm::SlidingWindow => Some("window=sliding"),
    }
}

fn named(limit: Limit) -> Algorithm {
    match limit.algorithm() {
        sprag::limit::Algorithm::FixedWindow => Algorithm::FixedWindow,
        sprag::limit::Algorithm::SlidingWindow => Algorithm::SlidingWindow,
        _ => Algorithm::TokenBucket,
    }
}

/// The most units that one request can be granted.
pub(crate) fn cost_max(limit: Limit) -> u64 {
    limit.burst().unwrap_or(limit.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_what_the_engine_reads_and_the_option_may_name_its_algorithm() {
        use Algorithm::{FixedWindow, SlidingWindow, TokenBucket};
        let cases: [(&str, Option<Algorithm>, Result<&str, &str>); 19] = [
            ("30/minute", None, Ok("30/minute")),
            ("30/minute", Some(TokenBucket), Ok("30/minute")),
            ("30/minute", Some(FixedWindow), Ok("30/minute;window=fixed")),
            ("30/minute;window=fixed", None, Ok("30/minute;window=fixed")),
            (
                "30/minute;window=fixed",
                Some(FixedWindow),
                Ok("30/minute;window=fixed"),
            ),
            (
                "30/minute;window=fixed",
                Some(TokenBucket),
                Err(
                    "says window=fixed and --algorithm token-bucket says otherwise; leave one of them out",
                ),
            ),
            (
                "30/minute;window=fixed",
                Some(SlidingWindow),
                Err("says window=fixed and --algorithm sliding-window says otherwise"),
            ),
            (
                "30/minute;window=sliding",
                Some(FixedWindow),
                Err("says window=sliding and --algorithm fixed-window says otherwise"),
            ),
            (
                "30/minute;window=sliding",
                Some(SlidingWindow),
                Ok("30/minute;window=sliding"),
            ),
            (
                "30/minute",
                Some(SlidingWindow),
                Ok("30/minute;window=sliding"),
            ),
            (
                "33554432/s",
                Some(SlidingWindow),
                Err("for a sliding window of that period it must be from 0 to 33554431"),
            ),
            ("5/10s", None, Ok("5/10s")),
            (" 7 / hours ; burst = 40 ", None, Ok("7/hour;burst=40")),
            ("0/minute", None, Ok("0/minute")),
            ("0/minute", Some(FixedWindow), Ok("0/minute;window=fixed")),
            ("3/day;burst=3", None, Ok("3/day")),
            (
                "3/day;burst=3",
                Some(FixedWindow),
                Err("leave the burst out"),
            ),
            ("9/2d;burst=4", Some(TokenBucket), Ok("9/2d;burst=4")),
            (
                "3/100us",
                Some(FixedWindow),
                Err("for a fixed window it must be from"),
            ),
        ];
        for (text, algorithm, expected) in cases {
            let asked: Asked = text.parse().expect(text);
            match (asked.limit(algorithm), expected) {
                (Ok(limit), Ok(canonical)) => assert_eq!(limit.to_string(), canonical, "{text}"),
                (Err(error), Err(part)) => {
                    assert!(error.to_string().contains(part), "{text}: {error}");
                }
                (result, _) => panic!("{text}: {result:?}"),
            }
        }
        for text in ["", "30", "30/", "30/fortnight", "-1/minute", "1/s;bust=3"] {
            assert!(text.parse::<Asked>().is_err(), "{text}");
        }
    }
}
