//! No test sleeps to wait for something: it waits on what it waits for. A sleep is either too short
//! on a busy machine or too long on every other.

use super::Violation;
use super::rust_text::RustText;
use super::words::contains_word;

/// Checks the test code of one source file.
pub(super) fn check(file: &str, source: &RustText) -> Vec<Violation> {
    let start = if is_test_file(file) {
        0
    } else {
        first_test_line(&source.code)
    };
    source
        .code
        .iter()
        .enumerate()
        .skip(start)
        .filter(|(_, code)| names_sleep(code))
        .map(|(line, _)| {
            let what = "a sleep in a test: wait on the event itself, or move the test's clock";
            Violation::at(file, line + 1, what)
        })
        .collect()
}

fn is_test_file(file: &str) -> bool {
    file.starts_with("loom-tests/")
        || file.ends_with("/tests.rs")
        || file.ends_with("_tests.rs")
        || file.split('/').any(|part| part == "tests")
}

/// Where the tests of a source file begin: they stand last, in a module of their own.
fn first_test_line(code: &[String]) -> usize {
    code.iter()
        .position(|line| line.trim_start().starts_with("#[cfg(") && contains_word(line, "test"))
        .unwrap_or(code.len())
}

/// Any spelling that reaches the sleeping functions of `std::thread`.
fn names_sleep(code: &str) -> bool {
    let Some((_, after)) = code.split_once("thread::") else {
        return false;
    };
    after.starts_with("sleep")
        || after.contains("thread::sleep")
        || (after.starts_with('{') && contains_word(after, "sleep"))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::house::rust_text::RustText;

    fn complaints(file: &str, source: &str) -> usize {
        check(file, &RustText::of(source)).len()
    }

    #[test]
    fn sleeps_are_found_in_tests_and_left_alone_elsewhere() {
        let sleep = "std::thread::sleep(PAUSE);";
        let in_module = format!("{sleep}\n#[cfg(test)]\nmod tests {{ {sleep} }}");
        let cases = [
            ("api/tests/locks.rs", sleep, 1),
            ("core/src/lock/tests.rs", sleep, 1),
            ("loom-tests/src/lib.rs", sleep, 1),
            ("core/src/lock.rs", sleep, 0),
            ("core/src/lock.rs", in_module.as_str(), 1),
            ("api/tests/a.rs", "use std::thread::{self, sleep};", 1),
            ("api/tests/a.rs", "use std::thread::sleep;", 1),
            (
                "api/tests/a.rs",
                "thread::spawn(|| thread::sleep(PAUSE));",
                1,
            ),
            ("api/tests/a.rs", "// thread::sleep is not for tests", 0),
            ("api/tests/a.rs", "let text = \"thread::sleep\";", 0),
            ("api/tests/a.rs", "thread::spawn(worker);", 0),
        ];
        for (file, source, expected) in cases {
            assert_eq!(complaints(file, source), expected, "{file}: {source}");
        }
    }
}
