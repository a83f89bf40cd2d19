//! Counters: signed 64-bit numbers by name, whole or in several parts.

use crate::error::OrRaise;
use crate::number::signed;
use crate::text::told;
use pyo3::prelude::*;
use sprag::Added;
use std::ops::RangeInclusive;

/// A signed 64-bit number by name. Each call is one step.
#[pyclass(frozen, module = "sprag")]
pub(crate) struct Counter {
    pub(crate) counter: sprag::Counter<'static>,
}

/// A counter in several parts. Adding is fast; what needs the whole number has to gather it.
#[pyclass(frozen, module = "sprag")]
pub(crate) struct StripedCounter {
    counter: sprag::StripedCounter<'static>,
}

/// The bounds of an addition: what is left out is the end of the numbers.
fn bounds(
    minimum: Option<&Bound<'_, PyAny>>,
    maximum: Option<&Bound<'_, PyAny>>,
) -> PyResult<RangeInclusive<i64>> {
    let minimum = minimum.map_or(Ok(i64::MIN), |minimum| signed("minimum", minimum))?;
    let maximum = maximum.map_or(Ok(i64::MAX), |maximum| signed("maximum", maximum))?;
    Ok(minimum..=maximum)
}

#[pymethods]
impl Counter {
    /// Adds `delta`, and returns the sum. `CounterOverflowError` if that does not fit 64 bits.
    #[pyo3(signature = (delta=None), text_signature = "($self, delta=1)")]
    fn add(&self, py: Python<'_>, delta: Option<&Bound<'_, PyAny>>) -> PyResult<i64> {
        let delta = delta.map_or(Ok(1), |delta| signed("delta", delta))?;
        self.counter.add(delta).or_raise(py)
    }

    /// Adds `delta` if the sum lies within the bounds, and returns it; else changes nothing: `None`.
    #[pyo3(signature = (delta, minimum=None, maximum=None))]
    fn add_within(
        &self,
        py: Python<'_>,
        delta: &Bound<'_, PyAny>,
        minimum: Option<&Bound<'_, PyAny>>,
        maximum: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<i64>> {
        let bounds = bounds(minimum, maximum)?;
        let delta = signed("delta", delta)?;
        Ok(match self.counter.add_within(delta, bounds).or_raise(py)? {
            Added::To(sum) => Some(sum),
            Added::Refused(_) => None,
        })
    }

    /// The number.
    fn get(&self, py: Python<'_>) -> PyResult<i64> {
        self.counter.get().or_raise(py)
    }

    /// Sets the number, and returns what it was.
    fn swap(&self, py: Python<'_>, new: &Bound<'_, PyAny>) -> PyResult<i64> {
        self.counter.swap(signed("new", new)?).or_raise(py)
    }

    /// Sets the number to `new` if it is `expected`; whether it was.
    fn compare_exchange(
        &self,
        py: Python<'_>,
        expected: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let (expected, new) = (signed("expected", expected)?, signed("new", new)?);
        let exchanged = self.counter.compare_exchange(expected, new).or_raise(py)?;
        Ok(exchanged.is_ok())
    }

    /// The same counter in several parts, for additions by many threads or processes at once.
    fn striped(&self, py: Python<'_>) -> PyResult<StripedCounter> {
        let counter = self.counter.clone().striped().or_raise(py)?;
        Ok(StripedCounter { counter })
    }

    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        told(py, &self.counter.name())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<sprag.Counter {}>", self.name(py).repr()?))
    }
}

#[pymethods]
impl StripedCounter {
    /// Adds `delta`. The sum is not told: nobody knows it without looking at all parts.
    #[pyo3(signature = (delta=None), text_signature = "($self, delta=1)")]
    fn add(&self, py: Python<'_>, delta: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let delta = delta.map_or(Ok(1), |delta| signed("delta", delta))?;
        self.counter.add(delta).or_raise(py)
    }

    /// Adds `delta` if the sum lies within the bounds; whether it did.
    #[pyo3(signature = (delta, minimum=None, maximum=None))]
    fn add_within(
        &self,
        py: Python<'_>,
        delta: &Bound<'_, PyAny>,
        minimum: Option<&Bound<'_, PyAny>>,
        maximum: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let bounds = bounds(minimum, maximum)?;
        let delta = signed("delta", delta)?;
        Ok(self.counter.add_within(delta, bounds).or_raise(py)?.is_ok())
    }

    fn get(&self, py: Python<'_>) -> PyResult<i64> {
        self.counter.get().or_raise(py)
    }

    fn swap(&self, py: Python<'_>, new: &Bound<'_, PyAny>) -> PyResult<i64> {
        self.counter.swap(signed("new", new)?).or_raise(py)
    }

    fn compare_exchange(
        &self,
        py: Python<'_>,
        expected: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let (expected, new) = (signed("expected", expected)?, signed("new", new)?);
        let exchanged = self.counter.compare_exchange(expected, new).or_raise(py)?;
        Ok(exchanged.is_ok())
    }

    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        told(py, &self.counter.name())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<sprag.StripedCounter {}>", self.name(py).repr()?))
    }
}
