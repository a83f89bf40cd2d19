//! Limiters: a rate over keys.

use crate::decision::{Decision, Decisions};
use crate::error::OrRaise;
use crate::number::{duration, whole};
use crate::text::{bytes_of, told};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use sprag::Refunded;

/// A rate over keys, shared by everyone who opens it, exact to its formula.
#[pyclass(frozen, module = "sprag")]
pub(crate) struct Limiter {
    pub(crate) limiter: sprag::Limiter,
}

#[pymethods]
impl Limiter {
    /// Checks `cost` of `key` and takes it if allowed; a cost of 0 takes nothing. Never waits.
    #[pyo3(signature = (key, cost=None), text_signature = "($self, key, cost=1)")]
    fn hit(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        cost: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Decision> {
        let (key, cost) = (bytes_of("key", key)?, whole("cost", cost, 1)?);
        let decision = self.limiter.check(key, cost).or_raise(py)?;
        Ok(Decision::new(decision))
    }

    /// What `hit` would find; changes nothing. Its `remaining` is what there is before.
    #[pyo3(signature = (key, cost=None), text_signature = "($self, key, cost=1)")]
    fn test(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        cost: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Decision> {
        let (key, cost) = (bytes_of("key", key)?, whole("cost", cost, 1)?);
        let decision = self.limiter.peek(key).or_raise(py)?;
        Ok(Decision::of_look(decision, cost))
    }

    /// `hit` for many keys, each on its own and in order, at less than half the price.
    #[pyo3(signature = (keys, cost=None), text_signature = "($self, keys, cost=1)")]
    fn hit_many(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        cost: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Decisions> {
        let cost = whole("cost", cost, 1)?;
        let items: Vec<Bound<'_, PyAny>> = match keys.cast::<PyList>() {
            Ok(keys) => keys.iter().collect(),
            Err(_) if keys.is_instance_of::<PyString>() || keys.is_instance_of::<PyBytes>() => {
                // One key would be a key for each of its letters.
                return Err(PyTypeError::new_err("keys must be several keys, not one"));
            }
            Err(_) => keys.try_iter()?.collect::<PyResult<_>>()?,
        };
        let mut bytes = Vec::with_capacity(items.len());
        for item in &items {
            bytes.push(bytes_of("key", item)?);
        }
        let mut decisions = Decisions::with_capacity(bytes.len());
        self.limiter
            .check_batch(&bytes, cost, |_, decision| decisions.push(decision))
            .or_raise(py)?;
        Ok(decisions)
    }

    /// Takes `cost` now, to be acted on after `Decision.act_after`, which is at most `wait_max`. Not under a
    /// sliding window.
    #[pyo3(signature = (key, cost, wait_max))]
    fn reserve(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        cost: &Bound<'_, PyAny>,
        wait_max: &Bound<'_, PyAny>,
    ) -> PyResult<Decision> {
        let (key, cost) = (bytes_of("key", key)?, whole("cost", Some(cost), 1)?);
        let wait_max = duration("wait_max", wait_max)?;
        let decision = self.limiter.reserve(key, cost, wait_max).or_raise(py)?;
        Ok(Decision::new(decision))
    }

    /// Gives back what a hit or a reservation took, as far as that raises no interval above the limit: how much
    /// that was. `None` where it is not known how much still counts, and when it was given back before.
    fn refund(&self, py: Python<'_>, decision: &Bound<'_, Decision>) -> PyResult<Option<f64>> {
        Ok(
            match self.limiter.refund(decision.get().take()).or_raise(py)? {
                Refunded::Given(amount) => Some(amount.as_f64()),
                Refunded::Over => Some(0.0),
                _ => None,
            },
        )
    }

    /// Gives `key` a limit of its own, for all who use the limiter, until it is cleared.
    fn set_override(&self, py: Python<'_>, key: &Bound<'_, PyAny>, limit: &str) -> PyResult<()> {
        let key = bytes_of("key", key)?;
        self.limiter.set_override(key, limit).or_raise(py)
    }

    /// Takes it away again; whether it had one.
    fn clear_override(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.limiter
            .clear_override(bytes_of("key", key)?)
            .or_raise(py)
    }

    /// The limit that `key` has instead of the limiter's.
    fn override_of(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        let limit = self
            .limiter
            .override_of(bytes_of("key", key)?)
            .or_raise(py)?;
        Ok(limit.map(|limit| limit.to_string()))
    }

    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        told(py, &self.limiter.name())
    }

    /// The limit that it was opened with, as it is written.
    #[getter]
    fn limit(&self) -> String {
        self.limiter.limit().to_string()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = told(py, &self.limiter.name()).repr()?;
        Ok(format!("<sprag.Limiter {name} {}>", self.limiter.limit()))
    }
}
