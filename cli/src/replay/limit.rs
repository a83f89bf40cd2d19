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
}

/// Why a limit and an algorithm don't go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Mismatch {
    /// The limit's text says otherwise.
    #[error("says window=fixed and --algorithm token-bucket says otherwise; leave one of them out")]
    Window,
    /// The limit is none by that algorithm.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

impl Asked {
    /// What to enforce: as the text says, or by `algorithm` where that is given.
    pub(crate) fn limit(&self, algorithm: Option<Algorithm>) -> Result<Limit, Mismatch> {
        let is_window = self.limit.algorithm() == sprag::limit::Algorithm::FixedWindow;
        match algorithm {
            Some(Algorithm::TokenBucket) if is_window => Err(Mismatch::Window),
            Some(Algorithm::FixedWindow) if !is_window => {
                Ok(Limit::parse(&format!("{};window=fixed", self.text))?)
            }
            Some(_) | None => Ok(self.limit),
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
    match limit.algorithm() {
        sprag::limit::Algorithm::FixedWindow => "fixed-window",
        _ => "token-bucket",
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
        use Algorithm::{FixedWindow, TokenBucket};
        let cases: [(&str, Option<Algorithm>, Result<&str, &str>); 14] = [
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
                Err("leave one of them out"),
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
