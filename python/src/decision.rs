//! Decisions: the answers of limiters, one by one and many at once. What costs a division is computed when asked for.

use crate::number::{seconds, whole};
use parking_lot::Mutex;
use pyo3::prelude::*;

/// The answer of a limiter; true if it admitted the cost.
#[pyclass(frozen, module = "sprag")]
pub(crate) struct Decision {
    decision: Mutex<sprag::Decision>,
    is_allowed: bool,
}

impl Decision {
    #[inline(always)]
    pub(crate) fn new(decision: sprag::Decision) -> Self {
        Self {
            is_allowed: decision.is_allowed(),
            decision: Mutex::new(decision),
        }
    }

    /// What can be given back, once.
    pub(crate) fn take(&self) -> sprag::Decision {
        self.decision.lock().take()
    }
}

#[pymethods]
impl Decision {
    #[getter]
    fn allowed(&self) -> bool {
        self.is_allowed
    }

    #[getter]
    fn limit(&self) -> u64 {
        self.decision.lock().limit()
    }

    #[getter]
    fn remaining(&self) -> u64 {
        self.decision.lock().remaining()
    }

    #[getter]
    fn retry_after(&self) -> Option<f64> {
        self.decision.lock().retry_after().map(seconds)
    }

    #[getter]
    fn reset_after(&self) -> Option<f64> {
        self.decision.lock().reset_after().map(seconds)
    }

    #[getter]
    fn act_after(&self) -> f64 {
        seconds(self.decision.lock().act_after())
    }

    #[getter]
    fn is_overflow(&self) -> bool {
        self.decision.lock().is_overflow()
    }

    fn retry_after_for(&self, cost: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        let cost = whole("cost", Some(cost), 0)?;
        Ok(self.decision.lock().retry_after_for(cost).map(seconds))
    }

    fn __bool__(&self) -> bool {
        self.is_allowed
    }

    fn __repr__(&self) -> String {
        let decision = self.decision.lock();
        let word = if self.is_allowed {
            "allowed"
        } else {
            "refused"
        };
        let (remaining, limit) = (decision.remaining(), decision.limit());
        format!("<sprag.Decision {word} remaining={remaining} limit={limit}>")
    }
}
