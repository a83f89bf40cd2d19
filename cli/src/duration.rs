//! Durations as arguments: `500ms`, `5s`, `2m`, `1h30m`, `7d`, or a plain number of seconds, within bounds.

use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo};

/// The longest wait and the longest lease: 366 days.
#[cfg(target_os = "linux")]
const LONGEST: Duration = Duration::from_hours(366 * 24);
#[cfg(target_os = "linux")]
const SHORTEST: Duration = Duration::from_millis(1);

/// The value of `lock --wait`.
#[cfg(target_os = "linux")]
pub(crate) fn wait(text: &str) -> Result<Duration, String> {
    lease(
        text,
        "use --try to wait not at all, or leave --wait out to wait for ever",
    )
}

/// The value of `lock --ttl`.
#[cfg(target_os = "linux")]
pub(crate) fn ttl(text: &str) -> Result<Duration, String> {
    lease(text, "leave --ttl out for 30s")
}

/// The value of `once --keep`.
#[cfg(target_os = "linux")]
pub(crate) fn keep(text: &str) -> Result<Duration, String> {
    lease(text, "leave --keep out for 1d")
}

/// The value of `lock --kill-after`.
#[cfg(target_os = "linux")]
pub(crate) fn kill_after(text: &str) -> Result<Duration, String> {
    lease(text, "leave --kill-after out for 1s")
}

#[cfg(target_os = "linux")]
fn lease(text: &str, way_out: &str) -> Result<Duration, String> {
    within(text, SHORTEST..=LONGEST, &format!("1ms to 366d; {way_out}"))
}

/// The value of `bench --seconds`.
pub(crate) fn measurement(text: &str) -> Result<Duration, String> {
    let bounds = Duration::from_millis(10)..=Duration::from_hours(1);
    within(text, bounds, "10ms to 1h; leave --seconds out for 1s")
}

fn within(text: &str, bounds: RangeInclusive<Duration>, instead: &str) -> Result<Duration, String> {
    let duration = parse(text).ok_or(
        "not a duration; write 500ms, 5s, 2m, 1h30m or 7d, or a plain number of seconds".to_owned(),
    )?;
    Duration::try_from(duration)
        .ok()
        .filter(|duration| bounds.contains(duration))
        .ok_or_else(|| format!("it must be {instead}"))
}

fn parse(text: &str) -> Option<SignedDuration> {
    let is_plain = text
        .strip_prefix('-')
        .unwrap_or(text)
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let span: Span = if is_plain {
        format!("{text}s").parse().ok()?
    } else {
        text.parse().ok()?
    };
    // Months and years, which differ in length, are no durations.
    span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{measurement, ttl, wait};
    use std::time::Duration;

    #[test]
    fn a_duration_is_a_number_with_a_unit_or_of_seconds() {
        let cases = [
            ("5s", 5_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1h30m", 5_400_000),
            ("7", 7_000),
            ("0.25", 250),
            ("1.5s", 1_500),
            ("1ms", 1),
            ("8784h", 366 * 24 * 3_600_000),
            ("366d", 366 * 24 * 3_600_000),
            ("1d", 86_400_000),
            ("2 days 3h", 2 * 86_400_000 + 3 * 3_600_000),
        ];
        for (text, expected_ms) in cases {
            assert_eq!(wait(text), Ok(Duration::from_millis(expected_ms)), "{text}");
            assert_eq!(ttl(text), wait(text), "{text}");
        }
        assert_eq!(measurement("0.1"), Ok(Duration::from_millis(100)));
    }

    #[test]
    fn what_is_no_duration_or_out_of_bounds_is_refused_with_a_way_out() {
        for text in [
            "",
            ".",
            "5x",
            "s",
            "1.2.3",
            "5 parsecs",
            "ms500",
            "NaN",
            "inf",
            "1e3",
            "1mo",
            "1y",
        ] {
            let error = wait(text).expect_err(text);
            assert!(
                error.contains("500ms") && error.contains("7d"),
                "{text}: {error}"
            );
        }
        for text in [
            "0", "0s", "999us", "-5s", "-5", "8784h1ms", "367d", "31622401",
        ] {
            let error = wait(text).expect_err(text);
            assert!(error.contains("1ms to 366d"), "{text}: {error}");
            assert!(error.contains("--try"), "{text}: {error}");
        }
        for text in ["0", "9ms", "3601"] {
            let error = measurement(text).expect_err(text);
            assert!(error.contains("10ms to 1h"), "{text}: {error}");
        }
        for text in ["99999999999999999999", "9223372036854775808s"] {
            wait(text).expect_err(text);
        }
    }
}
