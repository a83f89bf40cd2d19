//! Metrics, as the objects of `sprag/_metrics.py`.

use crate::info::object;
use crate::number::seconds;
use pyo3::prelude::*;
use sprag::{Fill, Metrics};

const MODULE: &str = "sprag._metrics";

pub(crate) fn metrics<'py>(py: Python<'py>, metrics: &Metrics) -> PyResult<Bound<'py, PyAny>> {
    let (checks, acquires) = (metrics.checks, metrics.acquires);
    let (waits, onces, region) = (metrics.waits, metrics.onces, metrics.region);
    let fill = |fill: Fill| object(py, MODULE, "Fill", (fill.used, fill.cap));
    let fields = (
        object(
            py,
            MODULE,
            "CheckCounts",
            (checks.allowed, checks.refused, checks.overflow),
        )?,
        object(
            py,
            MODULE,
            "AcquireCounts",
            (
                acquires.at_once,
                acquires.after_wait,
                acquires.busy,
                acquires.timed_out,
                acquires.cancelled,
                acquires.deadlocks,
            ),
        )?,
        object(
            py,
            MODULE,
            "WaitTimes",
            (waits.buckets.to_vec(), seconds(waits.sum)),
        )?,
        metrics.renewals,
        metrics.holds_lost,
        object(
            py,
            MODULE,
            "OnceCounts",
            (
                onces.started,
                onces.in_progress,
                onces.done,
                onces.finished,
                onces.unfinished,
            ),
        )?,
        object(
            py,
            MODULE,
            "Usage",
            (
                fill(region.objects)?,
                fill(region.limiter_keys)?,
                fill(region.joint_keys)?,
                fill(region.sessions)?,
                fill(region.waiters)?,
                fill(region.permits)?,
                fill(region.limits)?,
                fill(region.joint_limiters)?,
            ),
        )?,
    );
    object(py, MODULE, "Metrics", fields)
}
