//! The last breaks in `sprag inspect`. Owns the form of their rows.

use serde::Serialize;
use sprag::BreakRecord;

use crate::printable::{self, Name};
use crate::span;

#[derive(Debug, Serialize)]
pub(super) struct BreakRow {
    #[serde(flatten)]
    name: Name,
    /// The token that was ended.
    token: u64,
    /// Of the process that broke it.
    by_pid: u32,
    at_unix_ns: u64,
    #[serde(skip)]
    shown: String,
}

impl BreakRow {
    pub(super) fn new(record: &BreakRecord) -> Self {
        Self {
            shown: printable::name(&record.name),
            name: Name::new(&record.name),
            token: record.token,
            by_pid: record.by_pid,
            at_unix_ns: record.at_ns,
        }
    }

    pub(super) fn cells(&self) -> Vec<String> {
        vec![
            span::utc(self.at_unix_ns),
            self.token.to_string(),
            self.by_pid.to_string(),
            self.shown.clone(),
        ]
    }
}
