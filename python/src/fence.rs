//! Fences: the resource's side of a lock's token.

use crate::error::OrRaise;
use crate::number::whole;
use crate::text::told;
use pyo3::prelude::*;

/// The resource's side of a lock's token: remembers the highest that it admitted, and rejects older ones.
#[pyclass(frozen, module = "sprag")]
pub(crate) struct Fence {
    pub(crate) fence: sprag::Fence,
    pub(crate) name: Vec<u8>,
}

#[pymethods]
impl Fence {
    /// Admits a token not lower than the highest admitted. `StaleError` for a lower one.
    fn admit(&self, py: Python<'_>, token: &Bound<'_, PyAny>) -> PyResult<()> {
        self.fence
            .admit(whole("token", Some(token), 0)?)
            .or_raise(py)
    }

    /// Admits a token strictly higher than the highest admitted: each once.
    fn admit_once(&self, py: Python<'_>, token: &Bound<'_, PyAny>) -> PyResult<()> {
        self.fence
            .admit_once(whole("token", Some(token), 0)?)
            .or_raise(py)
    }

    /// The highest token admitted; 0 if none was.
    #[getter]
    fn highest(&self) -> u64 {
        self.fence.highest()
    }

    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        told(py, &self.name)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = told(py, &self.name).repr()?;
        Ok(format!("<sprag.Fence {name} highest={}>", self.highest()))
    }
}
