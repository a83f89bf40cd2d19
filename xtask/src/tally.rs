//! Tests that a chore runs itself, counted and told as the test runner of Rust tells its own, so that one reader of
//! results does for both.

use crate::counts::Counts;

/// What the tests of one run came to, so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: Counts,
}

impl Tally {
    /// Runs one test. One that fails says why, and the others go on.
    pub(crate) fn check(&mut self, name: &str, test: impl FnOnce() -> Result<(), String>) -> bool {
        let outcome = test();
        match &outcome {
            Ok(()) => {
                println!("test {name} ... ok");
                self.counts.passed += 1;
            }
            Err(why) => {
                println!("test {name} ... FAILED");
                println!("{}", indented(why));
                self.counts.failed += 1;
            }
        }
        outcome.is_ok()
    }

    /// Notes a test that cannot run here, and what it would take.
    pub(crate) fn skip(&mut self, name: &str, why: &str) {
        println!("test {name} ... ignored, {why}");
        self.counts.skipped += 1;
    }

    /// Adds the tests that a program of ours ran and counted, given how it ended. Its last line says what they came to:
    /// `N passed, N failed`.
    pub(crate) fn add(&mut self, name: &str, ending: &Result<String, String>) {
        let said = ending
            .as_ref()
            .unwrap_or_else(|error| error)
            .lines()
            .rev()
            .find_map(Counts::of_own_line);
        match (ending, said) {
            (Ok(_), Some(counts)) if counts.failed == 0 && counts.passed > 0 => {
                println!("test {name} ... ok, {counts}");
                self.counts += counts;
            }
            (Ok(output) | Err(output), said) => {
                println!("test {name} ... FAILED");
                println!("{}", indented(output));
                let mut counts = said.unwrap_or_default();
                counts.failed = counts.failed.max(1);
                self.counts += counts;
            }
        }
    }

    /// Prints the result line. Returns whether tests ran and all held.
    pub(crate) fn conclude(&self) -> bool {
        println!("\n{}", self.result_line());
        self.holds()
    }

    fn holds(&self) -> bool {
        self.counts.failed == 0 && self.counts.passed > 0
    }

    fn result_line(&self) -> String {
        let Counts {
            passed,
            failed,
            skipped,
        } = self.counts;
        let word = if self.holds() { "ok" } else { "FAILED" };
        format!("test result: {word}. {passed} passed; {failed} failed; {skipped} ignored")
    }
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("    {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::Tally;
    use crate::counts::Counts;

    fn counts(passed: u64, failed: u64, skipped: u64) -> Counts {
        Counts {
            passed,
            failed,
            skipped,
        }
    }

    #[test]
    fn every_test_counts_once_and_none_that_failed_is_forgotten() {
        let mut tally = Tally::default();
        assert!(tally.check("a", || Ok(())));
        tally.skip("b", "no compiler");
        assert!(tally.conclude());
        assert!(!tally.check("c", || Err("broken".to_owned())));
        assert!(!tally.conclude());
        assert_eq!(tally.counts, counts(1, 1, 1));
        assert_eq!(Counts::of_line(&tally.result_line()), Some(counts(1, 1, 1)));
    }

    #[test]
    fn without_a_test_nothing_holds() {
        let mut tally = Tally::default();
        tally.skip("a", "no compiler");
        assert!(!tally.conclude());
    }

    #[test]
    fn a_program_counts_for_itself_and_never_passes_by_silence_or_a_bad_end() {
        let cases = [
            (Ok("x\n3 passed, 0 failed\n"), counts(3, 0, 0)),
            (Ok("3 passed, 1 failed\n"), counts(3, 1, 0)),
            (Ok("0 passed, 0 failed\n"), counts(0, 1, 0)),
            (Ok("all is well\n"), counts(0, 1, 0)),
            (Err("3 passed, 0 failed\nkilled"), counts(3, 1, 0)),
            (Err("did not build"), counts(0, 1, 0)),
        ];
        for (ending, expected) in cases {
            let mut tally = Tally::default();
            tally.add("program", &ending.map(str::to_owned).map_err(str::to_owned));
            assert_eq!(tally.counts, expected, "{ending:?}");
        }
    }
}
