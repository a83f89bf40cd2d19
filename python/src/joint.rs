//! Several limits at once: those of a joint limiter, and calls of several limiters.

use crate::decision::Decision;
use crate::error::OrRaise;
use crate::number::{seconds, whole};
use crate::text::{bytes_of, told};
use pyo3::prelude::*;

/// Several limits over keys, decided together: all of them admit a cost, or nothing is taken.
#[pyclass(frozen, module = "sprag")]
pub(crate) struct JointLimiter {
    pub(crate) limiter: sprag::JointLimiter,
}

#[pymethods]
impl JointLimiter {
    /// Checks `cost` of `key`, at most 67,108,863, and takes it from all if all allow it.
    #[pyo3(signature = (key, cost=None), text_signature = "($self, key, cost=1)")]
    fn hit(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        cost: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<JointDecision> {
        let (key, cost) = (bytes_of("key", key)?, whole("cost", cost, 1)?);
        let decision = slf.get().limiter.check(key, cost).or_raise(slf.py())?;
        Ok(JointDecision::new(decision, slf))
    }

    /// What a hit of cost 0 would find; changes nothing.
    fn test(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<JointDecision> {
        let decision = slf
            .get()
            .limiter
            .peek(bytes_of("key", key)?)
            .or_raise(slf.py())?;
        Ok(JointDecision::new(decision, slf))
    }

    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        told(py, &self.limiter.name())
    }

    /// The limits, in their order.
    #[getter]
    fn limits(&self) -> Vec<String> {
        self.limiter
            .limits()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = told(py, &self.limiter.name()).repr()?;
        Ok(format!(
            "<sprag.JointLimiter {name} {}>",
            self.limits().join(", ")
        ))
    }
}

/// The answer of a joint limiter; true if every limit admitted the cost. As `Decision`, of all limits together.
#[pyclass(frozen, module = "sprag")]
pub(crate) struct JointDecision {
    /// Borrows from the limiter, see `new`.
    decision: sprag::JointDecision<'static>,
    _limiter: Py<JointLimiter>,
}

impl JointDecision {
    fn new(decision: sprag::JointDecision<'_>, limiter: &Bound<'_, JointLimiter>) -> Self {
        Self {
            // SAFETY: the decision borrows from the limiter within `limiter`: an object whose contents are never
            // moved or changed, the class being frozen, and that lives for as long as the reference beside. It is
            // not handed out for longer than `self`.
            decision: unsafe {
                std::mem::transmute::<sprag::JointDecision<'_>, sprag::JointDecision<'static>>(
                    decision,
                )
            },
            _limiter: limiter.clone().unbind(),
        }
    }
}

#[pymethods]
impl JointDecision {
    #[getter]
    fn allowed(&self) -> bool {
        self.decision.is_allowed()
    }

    /// Which limit refuses longest, by its place; `None` if all admitted.
    #[getter]
    fn refused_by(&self) -> Option<usize> {
        self.decision.refused_by()
    }

    /// What each limit says for itself.
    #[getter]
    fn each(&self) -> Vec<Decision> {
        (0..)
            .map_while(|place| self.decision.of(place))
            .map(Decision::new)
            .collect()
    }

    #[getter]
    fn limit(&self) -> u64 {
        self.decision.limit()
    }

    #[getter]
    fn remaining(&self) -> u64 {
        self.decision.remaining()
    }

    #[getter]
    fn retry_after(&self) -> Option<f64> {
        self.decision.retry_after().map(seconds)
    }

    #[getter]
    fn reset_after(&self) -> Option<f64> {
        self.decision.reset_after().map(seconds)
    }

    #[getter]
    fn is_overflow(&self) -> bool {
        self.decision.is_overflow()
    }

    fn retry_after_for(&self, cost: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        let cost = whole("cost", Some(cost), 0)?;
        Ok(self.decision.retry_after_for(cost).map(seconds))
    }

    fn __bool__(&self) -> bool {
        self.decision.is_allowed()
    }

    fn __repr__(&self) -> String {
        let word = if self.allowed() { "allowed" } else { "refused" };
        format!(
            "<sprag.JointDecision {word} remaining={} limit={}>",
            self.remaining(),
            self.limit()
        )
    }
}
