//! The clock that tests move by hand.

use crate::number::duration;
use pyo3::prelude::*;

/// A clock for tests: it shows the same time until it is moved. Timeouts go by it as well.
#[pyclass(frozen, module = "sprag")]
pub(crate) struct ManualClock {
    pub(crate) clock: sprag::ManualClock,
}

#[pymethods]
impl ManualClock {
    #[new]
    fn new() -> Self {
        Self {
            clock: sprag::ManualClock::new(),
        }
    }

    /// Moves the clock forward.
    fn advance(&self, by: &Bound<'_, PyAny>) -> PyResult<()> {
        self.clock.advance(duration("by", by)?);
        Ok(())
    }

    /// Nanoseconds of boot time, by which leases and limits run.
    #[getter]
    fn boot_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Nanoseconds of unix time; moves together with boot time.
    #[getter]
    fn unix_ns(&self) -> u64 {
        self.clock.unix_ns()
    }

    fn __repr__(&self) -> String {
        format!("<sprag.ManualClock unix_ns={}>", self.clock.unix_ns())
    }
}
