//! How many tests passed, failed and were skipped, as the test runner's own lines say.

use std::fmt;
use std::ops::AddAssign;

/// Sums of `test result:` lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Tests that ran and held.
    pub(crate) passed: u64,
    /// Tests that ran and did not.
    pub(crate) failed: u64,
    /// Tests marked to be ignored.
    pub(crate) skipped: u64,
}

impl Counts {
    /// Reads one line of output; `None` unless it is a complete result line.
    pub(crate) fn of_line(line: &str) -> Option<Self> {
        Self::of_rust(line).or_else(|| Self::of_pytest(line))
    }

    /// A test may print anything, so only a line that starts as a result line and has all three numbers counts.
    fn of_rust(line: &str) -> Option<Self> {
        let summary = line.trim_end().strip_prefix("test result: ")?;
        let number_before = |word: &str| {
            summary.split(';').find_map(|part| {
                let rest = part.trim().strip_suffix(word)?;
                rest.split_whitespace().next_back()?.parse::<u64>().ok()
            })
        };
        Some(Self {
            passed: number_before(" passed")?,
            failed: number_before(" failed")?,
            skipped: number_before(" ignored")?,
        })
    }

    /// Reads the line in which a program of ours, which is no Rust test, sums up: `N passed, N failed`, the two numbers
    /// and nothing else.
    pub(crate) fn of_own_line(line: &str) -> Option<Self> {
        let (passed, failed) = line.trim().split_once(", ")?;
        Some(Self {
            passed: passed.strip_suffix(" passed")?.parse().ok()?,
            failed: failed.strip_suffix(" failed")?.parse().ok()?,
            skipped: 0,
        })
    }

    /// pytest's last line, such as `1 failed, 144 passed, 2 skipped in 15.79s`: numbers and what they count, all of it
    /// known, and a time.
    fn of_pytest(line: &str) -> Option<Self> {
        let (summary, time) = line.trim_end().rsplit_once(" in ")?;
        let seconds = time.split_once('s')?.0;
        seconds.parse::<f64>().ok()?;
        let mut counts = Self::default();
        for part in summary.split(", ") {
            let (number, word) = part.split_once(' ')?;
            let number = number.parse::<u64>().ok()?;
            match word {
                "passed" | "xpassed" => counts.passed += number,
                "failed" | "error" | "errors" => counts.failed += number,
                "skipped" | "xfailed" => counts.skipped += number,
                "deselected" | "warning" | "warnings" => {}
                _ => return None,
            }
        }
        Some(counts)
    }

    /// Tests that ran, either way.
    pub(crate) fn ran(self) -> u64 {
        self.passed + self.failed
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(formatter, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

/// The test that a line of the runner's says has failed.
pub(crate) fn failed_test(line: &str) -> Option<&str> {
    let name = line.trim_end().strip_prefix("test ")?;
    name.strip_suffix(" ... FAILED")
        .map(|name| name.trim_end_matches(" - should panic"))
}

#[cfg(test)]
mod tests {
    use super::{Counts, failed_test};

    fn counts(passed: u64, failed: u64, skipped: u64) -> Counts {
        Counts {
            passed,
            failed,
            skipped,
        }
    }

    #[test]
    fn a_result_line_gives_its_three_numbers_and_nothing_else_does() {
        let tail = "0 measured; 7 filtered out; finished in 0.00s";
        let cases = [
            (
                format!("test result: ok. 12 passed; 0 failed; 3 ignored; {tail}"),
                Some(counts(12, 0, 3)),
            ),
            (
                format!("test result: FAILED. 5 passed; 2 failed; 0 ignored; {tail}\n"),
                Some(counts(5, 2, 0)),
            ),
            (
                format!("test result: \u{1b}[32mok\u{1b}[m. 4 passed; 0 failed; 0 ignored; {tail}"),
                Some(counts(4, 0, 0)),
            ),
            ("test result: ok. 12 passed".to_owned(), None),
            (
                "the test result: ok. 1 passed; 0 failed; 0 ignored".to_owned(),
                None,
            ),
            (
                "test result: ok. many passed; 0 failed; 0 ignored".to_owned(),
                None,
            ),
            ("test some::name ... ok".to_owned(), None),
            (String::new(), None),
        ];
        for (line, expected) in cases {
            assert_eq!(Counts::of_line(&line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_program_of_ours_sums_up_in_a_line_that_holds_nothing_else() {
        let cases = [
            ("3 passed, 1 failed\n", Some(counts(3, 1, 0))),
            ("3 passed, 1 failed, 2 skipped", None),
            ("in all 3 passed, 1 failed", None),
            ("3 passed", None),
        ];
        for (line, expected) in cases {
            assert_eq!(Counts::of_own_line(line), expected, "{line:?}");
        }
    }

    #[test]
    fn pytests_last_line_counts_and_nothing_like_it_does() {
        let cases = [
            ("145 passed in 15.79s", Some(counts(145, 0, 0))),
            (
                "1 failed, 144 passed, 2 skipped, 1 error in 75.03s (0:01:15)",
                Some(counts(144, 2, 2)),
            ),
            ("3 passed, 7 deselected in 0.10s\n", Some(counts(3, 0, 0))),
            ("no tests ran in 0.01s", None),
            ("3 passed", None),
            ("3 cows in 2s", None),
            ("we passed in 2s", None),
        ];
        for (line, expected) in cases {
            assert_eq!(Counts::of_line(line), expected, "{line:?}");
        }
    }

    #[test]
    fn sums_add_field_by_field() {
        let mut sum = counts(1, 2, 3);
        sum += counts(10, 20, 30);
        assert_eq!(sum, counts(11, 22, 33));
        assert_eq!(sum.ran(), 33);
    }

    #[test]
    fn the_closing_line_names_the_skipped_only_when_there_are_some() {
        assert_eq!(counts(3, 0, 0).to_string(), "3 passed, 0 failed");
        assert_eq!(counts(3, 1, 2).to_string(), "3 passed, 1 failed, 2 skipped");
    }

    #[test]
    fn a_failed_test_is_known_by_its_full_name() {
        assert_eq!(
            failed_test("test lock::tokens_rise ... FAILED"),
            Some("lock::tokens_rise")
        );
        assert_eq!(
            failed_test("test refuses_zero - should panic ... FAILED"),
            Some("refuses_zero")
        );
        assert_eq!(failed_test("test lock::tokens_rise ... ok"), None);
        assert_eq!(failed_test("lock::tokens_rise ... FAILED"), None);
    }
}
