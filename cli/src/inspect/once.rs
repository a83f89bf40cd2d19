//! Idempotency keys in `sprag inspect`. Owns the form of their rows.

use std::time::Duration;

use serde::Serialize;
use sprag::{OnceInfo, OnceStatus};

use crate::printable::{self, Name};
use crate::span;

#[derive(Debug, Serialize)]
pub(super) struct OnceRow {
    #[serde(flatten)]
    name: Name,
    /// `in progress`, `done` or `unfinished`.
    status: &'static str,
    /// Null unless in progress, and if detached or not known.
    holder_pid: Option<u32>,
    /// Until the deadline, or for which the result is kept; 0 if unfinished.
    left_ns: u64,
    /// Null unless done.
    result_bytes: Option<usize>,
    #[serde(skip)]
    shown: String,
}

impl OnceRow {
    pub(super) fn new(once: &OnceInfo) -> Self {
        let (status, holder_pid, left, result_bytes) = match &once.status {
            OnceStatus::New => ("new", None, Duration::ZERO, None),
            OnceStatus::InProgress {
                holder_pid,
                deadline_left,
            } => ("in progress", *holder_pid, *deadline_left, None),
            OnceStatus::Done { result, kept_left } => {
                ("done", None, *kept_left, Some(result.len()))
            }
            OnceStatus::Unfinished => ("unfinished", None, Duration::ZERO, None),
        };
        Self {
            shown: printable::name(&once.name),
            name: Name::new(&once.name),
            status,
            holder_pid,
            left_ns: span::nanoseconds(left),
            result_bytes,
        }
    }

    pub(super) fn cells(&self) -> Vec<String> {
        let none = || "-".to_owned();
        let holder = match self.holder_pid {
            Some(pid) => format!("pid {pid}"),
            None if self.status == "in progress" => "detached".to_owned(),
            None => none(),
        };
        let left = match self.left_ns {
            0 => none(),
            ns => span::passed(Duration::from_nanos(ns)),
        };
        let result = self.result_bytes;
        vec![
            self.status.to_owned(),
            holder,
            left,
            result.map_or_else(none, |bytes| format!("{bytes} bytes")),
            self.shown.clone(),
        ]
    }
}
