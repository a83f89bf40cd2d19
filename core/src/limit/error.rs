//! Why a limit could not be defined. Owns the texts that users read; decides nothing.

use std::fmt;

use thiserror::Error;

use super::definition::Algorithm;
use crate::span::Span;

/// Why a [`Limit`](super::Limit) was refused. The text names the argument, its bounds and the way out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LimitError {
    /// The count is above [`COUNT_MAX`](super::COUNT_MAX).
    #[error(
        "a count of {count} is out of bounds: it must be from 0 to {count_max}; \
         give the same rate over a shorter period"
    )]
    Count {
        /// What was given.
        count: u64,
        /// The greatest count that is accepted.
        count_max: u64,
    },

    /// The count is above what a sliding window of this period keeps.
    #[error(
        "a count of {count} per {} is out of bounds: for a sliding window of that period it must be \
         from 0 to {count_max}; give the same rate over a shorter period, or use a fixed window or a \
         token bucket",
        Span::of_ns(*period_ns)
    )]
    WindowCount {
        /// What was given.
        count: u64,
        /// The greatest count that is accepted for this period.
        count_max: u64,
        /// The period, in nanoseconds.
        period_ns: u64,
    },

    /// The period is zero, too long, or too short for the algorithm.
    #[error(
        "a period of {} is out of bounds: for a {algorithm} it must be from {} to {}; \
         scale count and period together",
        Period(*period_ns),
        Span::of_ns(*period_ns_min),
        Span::of_ns(*period_ns_max)
    )]
    Period {
        /// The algorithm that the bounds belong to.
        algorithm: Algorithm,
        /// What was given, in nanoseconds.
        period_ns: u64,
        /// The shortest period that is accepted, in nanoseconds.
        period_ns_min: u64,
        /// The longest period that is accepted, in nanoseconds.
        period_ns_max: u64,
    },

    /// The burst is zero, or more than can be kept exactly at this rate.
    #[error(
        "a burst of {burst} is out of bounds: at {count} per {} it must be from 1 to \
         {burst_max} (a burst that is not given equals the count); give a burst within the bounds, \
         or a count of 0 to refuse everything",
        Span::of_ns(*period_ns)
    )]
    Burst {
        /// What was given, or the count when no burst was given.
        burst: u64,
        /// The greatest burst that is accepted at this rate.
        burst_max: u64,
        /// The rate's count.
        count: u64,
        /// The rate's period, in nanoseconds.
        period_ns: u64,
    },

    /// Count and period share too few factors for the rate to be kept exactly.
    #[error(
        "a count of {count} per {} reduces to {reduced_count} per {}, and a reduced count must be \
         at most {reduced_count_max} to be kept exactly; use a rounder count, such as {count_hint}",
        Span::of_ns(*period_ns),
        Span::of_ns(*reduced_period_ns)
    )]
    RateTooFine {
        /// What was given.
        count: u64,
        /// The period that was given, in nanoseconds.
        period_ns: u64,
        /// The count after division by the greatest common divisor.
        reduced_count: u64,
        /// The period after division by the greatest common divisor, in nanoseconds.
        reduced_period_ns: u64,
        /// The greatest reduced count that is accepted.
        reduced_count_max: u64,
        /// A count near the given one that is accepted with the same period.
        count_hint: u64,
    },

    /// A burst was given for an algorithm that has none.
    #[error(
        "a burst of {burst} does not apply to a {algorithm}, which admits its whole count at once; \
         leave the burst out, or use a token bucket"
    )]
    BurstNotApplicable {
        /// What was given.
        burst: u64,
        /// The algorithm that has no burst.
        algorithm: Algorithm,
    },

    /// A number in a written limit is missing, not decimal, or above 64 bits.
    #[error(
        "{argument} = \"{given}\" in the limit \"{text}\" is not a whole number from 0 to \
         18446744073709551615; write decimal digits only, as in \"100/minute\""
    )]
    Number {
        /// Which number: `count`, `period` or `burst`.
        argument: &'static str,
        /// What stands in its place.
        given: String,
        /// The whole text.
        text: String,
    },

    /// A written limit has no `/` between count and period.
    #[error(
        "the limit \"{text}\" has no period; write COUNT/PERIOD, as in \"100/minute\", \"5/10s\" or \
         \"30/second;burst=5\""
    )]
    MissingPeriod {
        /// The whole text.
        text: String,
    },

    /// A written limit's period has a unit that is not known.
    #[error(
        "the unit \"{unit}\" in the limit \"{text}\" is unknown; use second, minute, hour, day, week or \
         year (s, m or min, h, d, w, y; also ms, us, ns), with a number before it if need be, as in \
         \"5/10s\""
    )]
    Unit {
        /// What stands in the unit's place.
        unit: String,
        /// The whole text.
        text: String,
    },

    /// A written limit's option is unknown, empty or given twice.
    #[error(
        "the option \"{option}\" in the limit \"{text}\" is unknown, empty or given twice; the \
         options are \"burst=NUMBER\" and \"window=fixed\" or \"window=sliding\", each at most once after \
         a \";\""
    )]
    Option {
        /// What stands in the option's place.
        option: String,
        /// The whole text.
        text: String,
    },
}

/// A period that was given: one that 64 bits of nanoseconds do not hold comes as the most that they do.
struct Period(u64);

impl fmt::Display for Period {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => formatter.write_str("more than 500 years"),
            ns => Span::of_ns(ns).fmt(formatter),
        }
    }
}
