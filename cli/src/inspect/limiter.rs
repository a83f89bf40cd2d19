//! Limiters of rates in `sprag inspect`, of one limit and of several. Owns the form of their rows.

use serde::Serialize;
use sprag::{JointLimiterInfo, Limit, LimiterInfo};

use crate::printable::{self, Name};

#[derive(Debug, Serialize)]
pub(super) struct LimiterRow {
    #[serde(flatten)]
    name: Name,
    limit: String,
    keys: u64,
    #[serde(skip)]
    shown: String,
}

#[derive(Debug, Serialize)]
pub(super) struct JointLimiterRow {
    #[serde(flatten)]
    name: Name,
    limits: Vec<String>,
    keys: u64,
    #[serde(skip)]
    shown: String,
}

impl LimiterRow {
    pub(super) fn new(limiter: &LimiterInfo) -> Self {
        Self {
            shown: printable::name(&limiter.name),
            name: Name::new(&limiter.name),
            limit: limiter.limit.to_string(),
            keys: limiter.keys,
        }
    }

    pub(super) fn cells(&self) -> Vec<String> {
        vec![
            self.limit.clone(),
            self.keys.to_string(),
            self.shown.clone(),
        ]
    }
}

impl JointLimiterRow {
    pub(super) fn new(limiter: &JointLimiterInfo) -> Self {
        Self {
            shown: printable::name(&limiter.name),
            name: Name::new(&limiter.name),
            limits: limiter.limits.iter().map(Limit::to_string).collect(),
            keys: limiter.keys,
        }
    }

    pub(super) fn cells(&self) -> Vec<String> {
        vec![
            self.limits.join(" and "),
            self.keys.to_string(),
            self.shown.clone(),
        ]
    }
}
