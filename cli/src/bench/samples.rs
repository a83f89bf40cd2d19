//! What a worker measured: owns the histogram, the samples that tell hand-offs, and their form on a
//! pipe. Never measures.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

use hdrhistogram::Histogram;

/// One token in so many is sampled, since all would fill the memory.
pub(crate) const TOKENS_PER_SAMPLE: u64 = 8;
/// Spans above this are counted as this: an hour, in nanoseconds.
const SPAN_NS_MAX: u64 = 3_600_000_000_000;
/// Grants and releases that one worker remembers.
const MARKS_MAX: usize = 1 << 20;

/// An empty histogram of nanoseconds, exact to three digits.
pub(crate) fn spans() -> Histogram<u64> {
    Histogram::new_with_bounds(1, SPAN_NS_MAX, 3).expect("the bounds and digits are allowed")
}

/// When a token was asked for and granted. All times are of the boot clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) token: u64,
    pub(crate) asked_ns: u64,
    pub(crate) at_ns: u64,
}

/// What one worker measured, or several together.
#[derive(Debug)]
pub(crate) struct Samples {
    /// Operations finished while it counted.
    pub(crate) operations: u64,
    /// How long each timed operation took.
    pub(crate) spans: Histogram<u64>,
    grants: Vec<Granted>,
    /// When a token's release began.
    releases: Vec<(u64, u64)>,
}

impl Default for Samples {
    fn default() -> Self {
        Self {
            operations: 0,
            spans: spans(),
            grants: Vec::new(),
            releases: Vec::new(),
        }
    }
}

impl Samples {
    /// Remembers a grant if its token is one of the sampled.
    pub(crate) fn granted(&mut self, granted: Granted) {
        if granted.token.is_multiple_of(TOKENS_PER_SAMPLE) && self.grants.len() < MARKS_MAX {
            self.grants.push(granted);
        }
    }

    /// Remembers when the release of `token` began, if the next token is one of the sampled.
    pub(crate) fn released(&mut self, token: u64, at_ns: u64) {
        if (token + 1).is_multiple_of(TOKENS_PER_SAMPLE) && self.releases.len() < MARKS_MAX {
            self.releases.push((token, at_ns));
        }
    }

    /// Takes in what another worker measured.
    pub(crate) fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        // Both have the same bounds.
        let _ = self.spans.add(&other.spans);
        self.grants.extend_from_slice(&other.grants);
        self.releases.extend_from_slice(&other.releases);
    }

    /// From a release to the next grant, where the next holder asked before that release.
    pub(crate) fn hand_offs(&self) -> Histogram<u64> {
        let releases: HashMap<u64, u64> = self.releases.iter().copied().collect();
        let mut spans = spans();
        for grant in &self.grants {
            if let Some(&released_ns) = releases.get(&(grant.token - 1))
                && grant.asked_ns < released_ns
            {
                spans.saturating_record(grant.at_ns.saturating_sub(released_ns));
            }
        }
        spans
    }

    /// Writes it as lines of words.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "operations {}", self.operations)?;
        for value in self.spans.iter_recorded() {
            let ns = value.value_iterated_to();
            writeln!(out, "span {ns} {}", value.count_at_value())?;
        }
        for grant in &self.grants {
            let Granted {
                token,
                asked_ns,
                at_ns,
            } = grant;
            writeln!(out, "grant {token} {asked_ns} {at_ns}")?;
        }
        for (token, at_ns) in &self.releases {
            writeln!(out, "release {token} {at_ns}")?;
        }
        writeln!(out, "end")
    }

    /// Reads what [`Samples::write`] wrote, up to its last line.
    pub(crate) fn read(lines: &mut impl BufRead) -> io::Result<Self> {
        let mut samples = Self::default();
        let mut line = String::new();
        loop {
            line.clear();
            if lines.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut words = line.split_ascii_whitespace();
            let what = words.next().unwrap_or_default();
            let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
            match (what, &numbers[..]) {
                ("operations", &[count]) => samples.operations = count,
                ("span", &[ns, count]) => samples.spans.saturating_record_n(ns, count),
                ("grant", &[token, asked_ns, at_ns]) => samples.grants.push(Granted {
                    token,
                    asked_ns,
                    at_ns,
                }),
                ("release", &[token, at_ns]) => samples.releases.push((token, at_ns)),
                ("end", []) => return Ok(samples),
                _ => return Err(io::Error::new(io::ErrorKind::InvalidData, line.trim_end())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(token: u64, asked_ns: u64, at_ns: u64) -> Granted {
        Granted {
            token,
            asked_ns,
            at_ns,
        }
    }

    #[test]
    fn a_hand_off_is_from_the_release_of_the_token_before_to_one_who_waited() {
        let mut holder = Samples::default();
        let mut waiter = Samples::default();
        for (token, at_ns) in [(6, 50), (7, 100), (15, 200), (23, 300)] {
            holder.released(token, at_ns);
        }
        waiter.granted(granted(7, 10, 60)); // Not sampled.
        waiter.granted(granted(8, 90, 130)); // Waited.
        waiter.granted(granted(16, 201, 230)); // Came after the release.
        waiter.granted(granted(32, 310, 400)); // Its release is not known.
        holder.add(&waiter);
        let spans = holder.hand_offs();
        assert_eq!((spans.len(), spans.max()), (1, 30));
    }

    #[test]
    fn samples_go_through_a_pipe_unchanged_and_a_cut_one_is_an_error() {
        let mut samples = Samples {
            operations: 7,
            ..Samples::default()
        };
        for ns in [0, 1, 41, 41, 99_999, u64::MAX] {
            samples.spans.saturating_record(ns);
        }
        samples.granted(granted(8, 1, 2));
        samples.released(7, 3);
        let mut bytes = Vec::new();
        samples.write(&mut bytes).unwrap();
        let read = Samples::read(&mut &bytes[..]).unwrap();
        assert_eq!(read.operations, 7);
        assert_eq!(read.spans, samples.spans);
        assert_eq!(
            (read.grants, read.releases),
            (samples.grants, samples.releases)
        );
        for cut in [0, 5, bytes.len() - 4] {
            assert!(Samples::read(&mut &bytes[..cut]).is_err(), "{cut}");
        }
        assert!(Samples::read(&mut &b"span 1\nend\n"[..]).is_err());
    }
}
