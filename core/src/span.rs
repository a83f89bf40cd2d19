//! Spans of time as people write them, `1m` or `24h`: owns their form in errors. Never reads one.

use std::fmt;
use std::time::Duration;

/// A span of time, written exactly, as whole numbers of its units: `1m`, `1h30m`, `366d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl Span {
    /// So many nanoseconds.
    pub fn of_ns(ns: u64) -> Self {
        Self(Duration::from_nanos(ns))
    }
}

const UNITS: [(u128, &str); 7] = [
    (86_400_000_000_000, "d"),
    (3_600_000_000_000, "h"),
    (60_000_000_000, "m"),
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1_000, "us"),
    (1, "ns"),
];

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest_ns = self.0.as_nanos();
        if rest_ns == 0 {
            return formatter.write_str("0s");
        }
        for (unit_ns, name) in UNITS {
            if rest_ns >= unit_ns {
                write!(formatter, "{}{name}", rest_ns / unit_ns)?;
                rest_ns %= unit_ns;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Span;
    use std::time::Duration;

    #[test]
    fn a_span_is_written_exactly_in_its_units() {
        let cases = [
            (0, "0s"),
            (1, "1ns"),
            (524_288, "524us288ns"),
            (1_500_000_000, "1s500ms"),
            (60_000_000_000, "1m"),
            (5_400_000_000_000, "1h30m"),
            (86_400_000_000_000, "1d"),
            (31_622_400_000_000_000, "366d"),
        ];
        for (ns, text) in cases {
            assert_eq!(Span::of_ns(ns).to_string(), text);
        }
        assert!(
            Span(Duration::MAX)
                .to_string()
                .starts_with("213503982334601d7h")
        );
    }
}
