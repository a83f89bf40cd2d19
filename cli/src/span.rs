//! Spans and points of time as people and programs read them: owns their units and their rounding.

use std::time::Duration;

const UNITS: [(u128, &str); 4] = [
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1_000, "us"),
    (1, "ns"),
];

/// A span to wait for: rounded up, so that who waits as long as printed has waited long enough.
pub(crate) fn to_wait(span: Duration) -> String {
    written(span, true)
}

/// A span that is left or has passed: rounded down, so that no more is promised than there is.
pub(crate) fn passed(span: Duration) -> String {
    written(span, false)
}

/// A span for programs: whole nanoseconds, cut off at 584 years.
pub(crate) fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// The time to the second, in UTC.
pub(crate) fn utc(unix_ns: u64) -> String {
    // Below 2^34, so positive.
    let seconds = (unix_ns / 1_000_000_000).cast_signed();
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) => time.to_string(),
        Err(_) => format!("{seconds} s"),
    }
}

/// From a minute on in whole units, the two largest; below in tenths of one unit.
fn written(span: Duration, up: bool) -> String {
    let divide = |amount: u128, by: u128| {
        if up { amount.div_ceil(by) } else { amount / by }
    };
    let ns = span.as_nanos();
    let seconds = divide(ns, 1_000_000_000);
    for (unit, name, lower, lower_name) in [
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ] {
        if seconds >= unit {
            let lowers = divide(seconds, lower);
            let (whole, rest) = (lowers / (unit / lower), lowers % (unit / lower));
            return match rest {
                0 => format!("{whole} {name}"),
                _ => format!("{whole} {name} {rest} {lower_name}"),
            };
        }
    }
    let mut larger = "s";
    for (unit, name) in UNITS {
        if ns >= unit {
            let tenths = divide(ns * 10, unit);
            return match (tenths / 10, tenths % 10) {
                // Rounding up can reach the next unit.
                (1_000, 0) => format!("1 {larger}"),
                (whole, 0) => format!("{whole} {name}"),
                (whole, tenth) => format!("{whole}.{tenth} {name}"),
            };
        }
        larger = name;
    }
    "0 s".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_in_the_largest_unit_and_rounded_as_asked() {
        let cases: [(u64, &str, &str); 14] = [
            (0, "0 s", "0 s"),
            (1, "1 ns", "1 ns"),
            (999, "999 ns", "999 ns"),
            (1_001, "1.1 us", "1 us"),
            (1_500_000, "1.5 ms", "1.5 ms"),
            (600_000_000, "600 ms", "600 ms"),
            (999_999_999, "1 s", "999.9 ms"),
            (1_240_000_000, "1.3 s", "1.2 s"),
            (59_999_999_999, "1 min", "59.9 s"),
            (60_000_000_001, "1 min 1 s", "1 min"),
            (3_599_000_000_001, "1 h", "59 min 59 s"),
            (3_661_000_000_000, "1 h 2 min", "1 h 1 min"),
            (86_400_000_000_000, "1 d", "1 d"),
            (90_061_000_000_000, "1 d 2 h", "1 d 1 h"),
        ];
        for (ns, up, down) in cases {
            let span = Duration::from_nanos(ns);
            assert_eq!(to_wait(span), up, "{ns}");
            assert_eq!(passed(span), down, "{ns}");
        }
        assert!(
            to_wait(Duration::MAX).ends_with(" d 8 h"),
            "{}",
            to_wait(Duration::MAX)
        );
    }
}
