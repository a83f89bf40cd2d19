//! Counters in `sprag inspect`. Owns the form of their rows.

use serde::Serialize;
use sprag::CounterInfo;

use crate::printable::{self, Name};

#[derive(Debug, Serialize)]
pub(super) struct CounterRow {
    #[serde(flatten)]
    name: Name,
    number: i64,
    #[serde(skip)]
    shown: String,
}

impl CounterRow {
    pub(super) fn new(counter: &CounterInfo) -> Self {
        Self {
            shown: printable::name(&counter.name),
            name: Name::new(&counter.name),
            number: counter.number,
        }
    }

    pub(super) fn cells(&self) -> Vec<String> {
        vec![self.number.to_string(), self.shown.clone()]
    }
}
