//! Numbers and durations as Python has them, checked against their bounds; an error names the argument.

use crate::error::bounds_error;
use crate::text::type_error;
use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyDeltaAccess, PyFloat, PyInt};
use std::time::Duration;

/// The longest time that nanoseconds in 64 bits hold, in whole seconds: 584 years.
const SECONDS_MAX: u64 = u64::MAX / 1_000_000_000;

/// The bounds of leases and the like, in seconds: 1 ms to 366 days.
const LASTING_SECONDS: (f64, f64) = (0.001, 31_622_400.0);

/// The most permits that there can be of one name.
const PERMITS_MAX: u32 = 16_777_215;

/// A whole number of at most 64 bits; `None` stands for what was left out.
#[inline]
pub(crate) fn whole(
    what: &'static str,
    value: Option<&Bound<'_, PyAny>>,
    or: u64,
) -> PyResult<u64> {
    match value {
        None => Ok(or),
        Some(value) => whole_within(what, value, 0, u64::MAX),
    }
}

/// A whole number within bounds.
pub(crate) fn whole_within(
    what: &'static str,
    value: &Bound<'_, PyAny>,
    min: u64,
    max: u64,
) -> PyResult<u64> {
    let Ok(number) = value.cast::<PyInt>() else {
        return Err(type_error(what, "an int", value));
    };
    match number.extract::<u64>() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        // One that does not fit 64 bits is out of bounds as well.
        _ => Err(bounds_error(what, value, min, max)),
    }
}

/// A whole number of at most 32 bits, within bounds.
pub(crate) fn whole_u32(
    what: &'static str,
    value: &Bound<'_, PyAny>,
    min: u32,
    max: u32,
) -> PyResult<u32> {
    whole_within(what, value, min.into(), max.into()).map(|number| number as u32)
}

/// How many permits a semaphore is to have.
pub(crate) fn permits(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    whole_u32("permits", value, 1, PERMITS_MAX)
}

/// A signed whole number of 64 bits.
pub(crate) fn signed(what: &'static str, value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let Ok(number) = value.cast::<PyInt>() else {
        return Err(type_error(what, "an int", value));
    };
    number
        .extract::<i64>()
        .map_err(|_| bounds_error(what, value, i64::MIN, i64::MAX))
}

/// A time to wait: seconds as a number, or a `timedelta`.
pub(crate) fn duration(what: &'static str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    duration_within(what, value, &(0.0, SECONDS_MAX as f64))
}

/// A time for which something is to last: a lease, a deadline, a result that is kept.
pub(crate) fn lasting(what: &'static str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    duration_within(what, value, &LASTING_SECONDS)
}

/// A duration. Its bounds are for what is none; whether one lies within them is checked where it is used.
fn duration_within(
    what: &'static str,
    value: &Bound<'_, PyAny>,
    &(min, max): &(f64, f64),
) -> PyResult<Duration> {
    let out_of_bounds = || bounds_error(what, value, min, max);
    if let Ok(number) = value.cast::<PyInt>() {
        let seconds = number.extract::<u64>().map_err(|_| out_of_bounds())?;
        return Some(Duration::from_secs(seconds))
            .filter(|_| seconds <= SECONDS_MAX)
            .ok_or_else(out_of_bounds);
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        // Neither negative nor infinite nor no number at all.
        return Duration::try_from_secs_f64(number.value())
            .ok()
            .filter(|time| time.as_secs() < SECONDS_MAX)
            .ok_or_else(out_of_bounds);
    }
    if let Ok(delta) = value.cast::<PyDelta>() {
        // Only its days are ever negative.
        let days = u64::try_from(delta.get_days()).map_err(|_| out_of_bounds())?;
        let seconds = days * 86_400 + u64::from(delta.get_seconds().unsigned_abs());
        let nanos = delta.get_microseconds().unsigned_abs() * 1_000;
        return Some(Duration::new(seconds, nanos))
            .filter(|_| seconds < SECONDS_MAX)
            .ok_or_else(out_of_bounds);
    }
    Err(type_error(
        what,
        "a number of seconds or a timedelta",
        value,
    ))
}

/// The lease of what is acquired: 30 s if not said otherwise.
pub(crate) fn ttl_of(ttl: Option<&Bound<'_, PyAny>>) -> PyResult<Duration> {
    ttl.map_or(Ok(Duration::from_secs(30)), |ttl| lasting("ttl", ttl))
}

/// A timeout; `None` for no end.
pub(crate) fn timeout(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Duration>> {
    value.map(|value| duration("timeout", value)).transpose()
}

/// Seconds, for attributes.
pub(crate) fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}
