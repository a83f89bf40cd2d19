//! Inspection: what is known of locks, limiters and the like, as the objects of `sprag/_info.py`.

use crate::number::seconds;
use crate::once;
use crate::text::told;
use pyo3::IntoPyObjectExt;
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::{PyModule, PyTuple};

/// An object of a class of a module, by its fields in their order.
pub(crate) fn object<'py>(
    py: Python<'py>,
    module: &str,
    class: &str,
    fields: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    PyModule::import(py, module)?.getattr(class)?.call1(fields)
}

const MODULE: &str = "sprag._info";

type Objects<'py> = PyResult<Vec<Bound<'py, PyAny>>>;

fn holds<'py>(py: Python<'py>, holds: &[sprag::HoldInfo]) -> Objects<'py> {
    let holds = holds.iter().map(|hold| {
        let fields = (
            hold.token,
            hold.permits,
            hold.is_live,
            hold.pid,
            hold.is_detached,
            seconds(hold.lease_left),
            hold.held_for.map(seconds),
        );
        object(py, MODULE, "HoldInfo", fields)
    });
    holds.collect()
}

pub(crate) fn locks<'py>(py: Python<'py>, locks: &[sprag::LockInfo]) -> Objects<'py> {
    let locks = locks.iter().map(|lock| {
        // More fields than a tuple of conversions has.
        let fields = [
            told(py, &lock.name),
            lock.token.into_bound_py_any(py)?,
            lock.is_held.into_bound_py_any(py)?,
            lock.is_holder_dead.into_bound_py_any(py)?,
            lock.is_shared.into_bound_py_any(py)?,
            lock.holders.into_bound_py_any(py)?,
            holds(py, &lock.holds)?.into_bound_py_any(py)?,
            lock.holder_pid.into_bound_py_any(py)?,
            lock.is_detached.into_bound_py_any(py)?,
            seconds(lock.lease_left).into_bound_py_any(py)?,
            lock.held_for.map(seconds).into_bound_py_any(py)?,
            lock.waiters.into_bound_py_any(py)?,
            lock.waiters_dead.into_bound_py_any(py)?,
        ];
        object(py, MODULE, "LockInfo", PyTuple::new(py, fields)?)
    });
    locks.collect()
}

pub(crate) fn semaphore<'py>(
    py: Python<'py>,
    semaphore: &sprag::SemaphoreInfo,
) -> PyResult<Bound<'py, PyAny>> {
    let fields = (
        told(py, &semaphore.name),
        semaphore.permits,
        semaphore.used(),
        semaphore.remaining(),
        semaphore.holders,
        holds(py, &semaphore.holds)?,
        semaphore.waiters,
        semaphore.waiters_dead,
    );
    object(py, MODULE, "SemaphoreInfo", fields)
}

pub(crate) fn semaphores<'py>(
    py: Python<'py>,
    semaphores: &[sprag::SemaphoreInfo],
) -> Objects<'py> {
    semaphores.iter().map(|each| semaphore(py, each)).collect()
}

pub(crate) fn concurrency_limiters<'py>(
    py: Python<'py>,
    limiters: &[sprag::ConcurrencyInfo],
) -> Objects<'py> {
    let limiters = limiters.iter().map(|limiter| {
        let name = told(py, &limiter.name);
        object(
            py,
            MODULE,
            "ConcurrencyInfo",
            (name, limiter.permits, semaphores(py, &limiter.keys)?),
        )
    });
    limiters.collect()
}

pub(crate) fn limiters<'py>(py: Python<'py>, limiters: &[sprag::LimiterInfo]) -> Objects<'py> {
    let limiters = limiters.iter().map(|limiter| {
        let name = told(py, &limiter.name);
        object(
            py,
            MODULE,
            "LimiterInfo",
            (name, limiter.limit.to_string(), limiter.keys),
        )
    });
    limiters.collect()
}

pub(crate) fn joint_limiters<'py>(
    py: Python<'py>,
    limiters: &[sprag::JointLimiterInfo],
) -> Objects<'py> {
    let limiters = limiters.iter().map(|limiter| {
        let limits: Vec<_> = limiter.limits.iter().map(ToString::to_string).collect();
        object(
            py,
            MODULE,
            "JointLimiterInfo",
            (told(py, &limiter.name), limits, limiter.keys),
        )
    });
    limiters.collect()
}

pub(crate) fn overrides<'py>(py: Python<'py>, overrides: &[sprag::OverrideInfo]) -> Objects<'py> {
    let overrides = overrides.iter().map(|each| {
        let (limiter, key) = (told(py, &each.limiter), told(py, &each.key));
        object(
            py,
            MODULE,
            "OverrideInfo",
            (limiter, key, each.limit.to_string()),
        )
    });
    overrides.collect()
}

pub(crate) fn counters<'py>(py: Python<'py>, counters: &[sprag::CounterInfo]) -> Objects<'py> {
    let counters = counters.iter().map(|counter| {
        object(
            py,
            MODULE,
            "CounterInfo",
            (told(py, &counter.name), counter.number),
        )
    });
    counters.collect()
}

pub(crate) fn onces(py: Python<'_>, onces: Vec<sprag::OnceInfo>) -> Objects<'_> {
    let mut infos = Vec::new();
    for info in onces {
        // New ones are not listed.
        if let Some(status) = once::status(py, info.status)? {
            infos.push(object(
                py,
                MODULE,
                "OnceInfo",
                (told(py, &info.name), status),
            )?);
        }
    }
    Ok(infos)
}

pub(crate) fn breaks<'py>(py: Python<'py>, breaks: &[sprag::BreakRecord]) -> Objects<'py> {
    let breaks = breaks.iter().map(|record| {
        let at = seconds(std::time::Duration::from_nanos(record.at_ns));
        object(
            py,
            MODULE,
            "BreakInfo",
            (at, record.token, record.by_pid, told(py, &record.name)),
        )
    });
    breaks.collect()
}
