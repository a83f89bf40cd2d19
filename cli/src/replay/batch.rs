//! A batch of requests in an arena that is used over and over: owns the measuring of decisions. Parsing
//! fills it and reporting empties it, so that nothing but decisions happens while the watch runs.

use std::time::{Duration, Instant};

use super::decide::{Decide, RefusedBy};

/// How many requests a batch holds.
pub(crate) const REQUESTS_MAX: usize = 4_096;

/// Requests and, once decided, what became of them.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    keys: Vec<u8>,
    requests: Vec<Request>,
    refused_by: Vec<RefusedBy>,
}

/// A request as it stands in a batch.
#[derive(Debug, Clone, Copy)]
struct Request {
    /// Where its key lies in `keys`.
    key_start: usize,
    key_end: usize,
    at_ns: i64,
    line: u64,
}

/// A decision on one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decided<'a> {
    /// The line's number in the log, from 1.
    pub(crate) line: u64,
    /// The request's key.
    pub(crate) key: &'a [u8],
    /// By which limits it was refused.
    pub(crate) refused_by: RefusedBy,
}

/// Why a decision failed, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The number of the line that there is no decision on.
    pub(crate) line: u64,
    /// The engine's words.
    pub(crate) reason: String,
}

impl Batch {
    /// Adds the request on `line` for `key` at `at_ns`.
    pub(crate) fn push(&mut self, line: u64, key: &[u8], at_ns: i64) {
        let key_start = self.keys.len();
        self.keys.extend_from_slice(key);
        self.requests.push(Request {
            key_start,
            key_end: self.keys.len(),
            at_ns,
            line,
        });
    }

    /// Whether it is time to decide.
    pub(crate) fn is_full(&self) -> bool {
        self.requests.len() >= REQUESTS_MAX
    }

    /// When the first request came, if there is one.
    pub(crate) fn first_at_ns(&self) -> Option<i64> {
        self.requests.first().map(|request| request.at_ns)
    }

    /// Decides all requests in order, and tells how long that took. After a failure, those before it
    /// stand decided.
    pub(crate) fn decide(
        &mut self,
        engine: &mut impl Decide,
        cost: u64,
    ) -> (Duration, Result<(), Failure>) {
        self.refused_by.clear();
        self.refused_by.reserve(self.requests.len());
        let started = Instant::now();
        for request in &self.requests {
            let key = &self.keys[request.key_start..request.key_end];
            match engine.decide(key, request.at_ns, cost) {
                Ok(refused_by) => self.refused_by.push(refused_by),
                Err(reason) => {
                    let line = request.line;
                    return (started.elapsed(), Err(Failure { line, reason }));
                }
            }
        }
        (started.elapsed(), Ok(()))
    }

    /// The decisions, in the order of lines.
    pub(crate) fn decided(&self) -> impl Iterator<Item = Decided<'_>> {
        let decided = self.requests.iter().zip(&self.refused_by);
        decided.map(|(request, &refused_by)| Decided {
            line: request.line,
            key: &self.keys[request.key_start..request.key_end],
            refused_by,
        })
    }

    /// Forgets all requests and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.requests.clear();
        self.refused_by.clear();
    }
}
