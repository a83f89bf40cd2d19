//! Decisions: the answers of limiters, one by one and many at once. What costs a division is computed when asked for.

use crate::number::{seconds, whole};
use parking_lot::Mutex;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};

/// The answer of a limiter, and the key's state right after it; true if it admitted the cost. What costs a
/// division is computed when asked for. Times are seconds, `None` for never.
#[pyclass(frozen, module = "sprag")]
pub(crate) struct Decision {
    answer: Mutex<sprag::Decision>,
    is_allowed: bool,
    /// The cost that a look was for, which takes nothing itself; 0 of all others.
    looked_for: u64,
}

impl Decision {
    #[inline(always)]
    pub(crate) fn new(decision: sprag::Decision) -> Self {
        Self {
            is_allowed: decision.is_allowed(),
            answer: Mutex::new(decision),
            looked_for: 0,
        }
    }

    /// What a check of `cost` would have found.
    pub(crate) fn of_look(decision: sprag::Decision, cost: u64) -> Self {
        Self {
            is_allowed: decision
                .retry_after_for(cost)
                .is_some_and(|wait| wait.is_zero()),
            answer: Mutex::new(decision),
            looked_for: cost,
        }
    }

    /// What can be given back, once.
    pub(crate) fn take(&self) -> sprag::Decision {
        self.answer.lock().take()
    }
}

#[pymethods]
impl Decision {
    /// Whether the cost was admitted.
    #[getter]
    fn allowed(&self) -> bool {
        self.is_allowed
    }

    /// The most that can be admitted at once: the burst, or a window's count.
    #[getter]
    fn limit(&self) -> u64 {
        self.answer.lock().limit()
    }

    /// The greatest cost that another hit at the same instant would be allowed.
    #[getter]
    fn remaining(&self) -> u64 {
        self.answer.lock().remaining()
    }

    /// How long until the same cost would be allowed, if nobody else takes any; 0 if it was.
    #[getter]
    fn retry_after(&self) -> Option<f64> {
        let decision = self.answer.lock();
        let retry_after = match self.looked_for {
            0 => decision.retry_after(),
            cost => decision.retry_after_for(cost),
        };
        retry_after.map(seconds)
    }

    /// How long until nothing is used any more, if nobody takes any.
    #[getter]
    fn reset_after(&self) -> Option<f64> {
        self.answer.lock().reset_after().map(seconds)
    }

    /// How long to wait before acting on a reservation; 0 of all else.
    #[getter]
    fn act_after(&self) -> f64 {
        seconds(self.answer.lock().act_after())
    }

    /// Whether the region had no room for the key, so that a bucket shared by all such keys decided.
    #[getter]
    fn is_overflow(&self) -> bool {
        self.answer.lock().is_overflow()
    }

    /// How long until a further `cost` would be allowed, if nobody else takes any.
    fn retry_after_for(&self, cost: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        let cost = whole("cost", Some(cost), 0)?;
        Ok(self.answer.lock().retry_after_for(cost).map(seconds))
    }

    fn __bool__(&self) -> bool {
        self.is_allowed
    }

    fn __repr__(&self) -> String {
        let decision = self.answer.lock();
        let word = if self.is_allowed {
            "allowed"
        } else {
            "refused"
        };
        let (remaining, limit) = (decision.remaining(), decision.limit());
        format!("<sprag.Decision {word} remaining={remaining} limit={limit}>")
    }
}

/// The answers to many checks, in their order; true if all were admitted, as `all_allowed`.
#[pyclass(frozen, sequence, module = "sprag")]
pub(crate) struct Decisions {
    each: Mutex<Vec<Given>>,
    refused: Vec<usize>,
}

/// A decision, before and after somebody asked for its object.
enum Given {
    Plain(sprag::Decision),
    Object(Py<Decision>),
}

impl Decisions {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            each: Mutex::new(Vec::with_capacity(capacity)),
            refused: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, decision: sprag::Decision) {
        let each = self.each.get_mut();
        if !decision.is_allowed() {
            self.refused.push(each.len());
        }
        each.push(Given::Plain(decision));
    }
}

#[pymethods]
impl Decisions {
    /// Whether all were admitted.
    #[getter]
    fn all_allowed(&self) -> bool {
        self.refused.is_empty()
    }

    /// Which were refused, as places.
    #[getter]
    fn refused(&self) -> Vec<usize> {
        self.refused.clone()
    }

    /// The longest of those that were refused; 0 if none was.
    #[getter]
    fn retry_after(&self, py: Python<'_>) -> Option<f64> {
        let each = self.each.lock();
        let mut longest = 0.0_f64;
        for at in &self.refused {
            let retry_after = match each.get(*at)? {
                Given::Plain(decision) => decision.retry_after().map(seconds),
                Given::Object(object) => object.bind(py).get().retry_after(),
            };
            longest = longest.max(retry_after?);
        }
        Some(longest)
    }

    fn __len__(&self) -> usize {
        self.each.lock().len()
    }

    fn __bool__(&self) -> bool {
        self.refused.is_empty()
    }

    fn __getitem__(&self, py: Python<'_>, at: isize) -> PyResult<Py<Decision>> {
        let mut each = self.each.lock();
        let from_end = if at < 0 { each.len() } else { 0 };
        let given = from_end
            .checked_add_signed(at)
            .and_then(|at| each.get_mut(at));
        let Some(given) = given else {
            return Err(PyIndexError::new_err("there are not so many decisions"));
        };
        match given {
            Given::Object(object) => Ok(object.clone_ref(py)),
            Given::Plain(decision) => {
                let object = Py::new(py, Decision::new(decision.take()))?;
                *given = Given::Object(object.clone_ref(py));
                Ok(object)
            }
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let each: PyResult<Vec<_>> = (0_isize..)
            .take(self.__len__())
            .map(|at| self.__getitem__(py, at))
            .collect();
        PyList::new(py, each?)?.try_iter()
    }

    fn __repr__(&self) -> String {
        format!(
            "<sprag.Decisions {} of {} refused>",
            self.refused.len(),
            self.__len__()
        )
    }
}
