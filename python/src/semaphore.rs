//! Semaphores and concurrency limiters: what is acquired is permits.

use crate::acquire::{Acquire, Completed, Of};
use crate::entered::Who;
use crate::error::OrRaise;
use crate::hold::Hold;
use crate::info;
use crate::lock::{Acquirer, Keep};
use crate::number::{seconds, timeout, ttl_of, whole, whole_u32};
use crate::source::{AnyHold, Source};
use crate::text::{bytes_of, told};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

/// A number of permits by name, or those of a key of a concurrency limiter. Each hold has a lease, a token and as
/// many permits as it asked for at once. In `with` and `async with` blocks it is one.
#[pyclass(frozen, weakref, module = "sprag")]
pub(crate) struct Semaphore {
    semaphore: sprag::Semaphore<'static>,
    /// Of one permit.
    acquirer: Acquirer,
}

impl Semaphore {
    pub(crate) fn new(semaphore: sprag::Semaphore<'static>, keep: Keep) -> Self {
        let source = Source::Permits {
            semaphore: semaphore.clone(),
            permits: 1,
        };
        Self {
            semaphore,
            acquirer: Acquirer::new(source, keep),
        }
    }

    pub(crate) fn acquirer(&self) -> &Acquirer {
        &self.acquirer
    }

    /// How many permits are asked for; 1 if nothing is said.
    fn asked(&self, permits: Option<&Bound<'_, PyAny>>) -> PyResult<u32> {
        let Some(permits) = permits else {
            return Ok(1);
        };
        // What the engine refuses, it says more of.
        whole_u32("permits", permits, 0, u32::MAX)
            .or_else(|_| whole_u32("permits", permits, 1, self.semaphore.permits()))
    }

    pub(crate) fn source(&self, permits: u32) -> Source {
        Source::Permits {
            semaphore: self.semaphore.clone(),
            permits,
        }
    }
}

#[pymethods]
impl Semaphore {
    /// Takes `permits` at once, in first-come order, as `Lock.acquire`.
    #[pyo3(signature = (permits=None, blocking=true, timeout=None), text_signature = "($self, permits=1, blocking=True, timeout=None)")]
    fn acquire<'py>(
        &self,
        py: Python<'py>,
        permits: Option<&Bound<'py, PyAny>>,
        blocking: bool,
        timeout: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, Hold>>> {
        let permits = self.asked(permits)?;
        self.acquirer
            .acquire(py, &self.source(permits), blocking, timeout)
    }

    fn __enter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Hold>> {
        self.acquirer.enter(py)
    }

    #[pyo3(signature = (kind, error, trace))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (error, trace);
        self.acquirer.exit(py, kind, || Ok(Who::here(py)))
    }

    /// Takes `permits` at once when awaited, as `Lock.acquire_async`.
    #[pyo3(signature = (permits=None, timeout=None), text_signature = "($self, permits=1, timeout=None)")]
    fn acquire_async(
        slf: Bound<'_, Self>,
        permits: Option<&Bound<'_, PyAny>>,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Acquire> {
        let permits = slf.get().asked(permits)?;
        let timeout = self::timeout(timeout)?.map(seconds);
        Ok(Acquire::new(
            Of::Semaphore(slf.unbind(), permits),
            false,
            timeout,
        ))
    }

    fn __aenter__(slf: Bound<'_, Self>) -> Acquire {
        Acquire::new(Of::Semaphore(slf.unbind(), 1), true, None)
    }

    /// Released at once: there is nothing to wait for, and so nothing to cancel.
    #[pyo3(signature = (kind, error, trace))]
    fn __aexit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        trace: &Bound<'_, PyAny>,
    ) -> PyResult<Py<Completed>> {
        let _ = (error, trace);
        self.acquirer.exit(py, kind, || Who::task(py))?;
        Completed::get(py)
    }

    /// Who has permits and who waits for some, changing nothing.
    fn peek<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let info = py.detach(|| self.semaphore.peek()).or_raise(py)?;
        info::semaphore(py, &info)
    }

    /// How many there are in all.
    #[getter]
    fn permits(&self) -> u32 {
        self.semaphore.permits()
    }

    /// The name; of a limiter's key the key.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        told(py, &self.semaphore.name())
    }

    /// Ends the hold with this token, as `Lock.release_token`.
    fn release_token(&self, py: Python<'_>, token: &Bound<'_, PyAny>) -> PyResult<()> {
        let token = whole("token", Some(token), 0)?;
        self.semaphore.release_token(token).or_raise(py)
    }

    /// Sets the lease of the hold with this token to this object's, from now.
    fn renew_token(&self, py: Python<'_>, token: &Bound<'_, PyAny>) -> PyResult<()> {
        let token = whole("token", Some(token), 0)?;
        self.semaphore.renew_token(token).or_raise(py)
    }

    /// Takes over the hold with this token, and all its permits.
    fn adopt_token<'py>(
        &self,
        py: Python<'py>,
        token: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Hold>> {
        let token = whole("token", Some(token), 0)?;
        let hold = self.semaphore.adopt_token(token).or_raise(py)?;
        self.acquirer.hold(py, AnyHold::One(hold))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.acquirer.traverse(&visit)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = self.name(py).repr()?;
        Ok(format!(
            "<sprag.Semaphore {name} permits={}>",
            self.permits()
        ))
    }
}

/// At every instant at most so many at once of each key, leased as a semaphore's permits are.
#[pyclass(frozen, module = "sprag")]
pub(crate) struct Concurrency {
    pub(crate) limiter: sprag::Concurrency<'static>,
}

#[pymethods]
impl Concurrency {
    /// What `key` can have at once.
    #[pyo3(signature = (key, ttl=None, *, keep_alive=false, on_lost=None), text_signature = "($self, key, ttl=30, *, keep_alive=False, on_lost=None)")]
    fn key(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        keep_alive: bool,
        on_lost: Option<Py<PyAny>>,
    ) -> PyResult<Semaphore> {
        let semaphore = self.limiter.key(bytes_of("key", key)?).or_raise(py)?;
        let semaphore = semaphore.ttl(ttl_of(ttl)?).or_raise(py)?;
        Ok(Semaphore::new(
            semaphore,
            Keep::new(py, keep_alive, on_lost)?,
        ))
    }

    /// How many each key can have at once now.
    #[getter]
    fn permits(&self, py: Python<'_>) -> PyResult<u32> {
        self.limiter.permits().or_raise(py)
    }

    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        told(py, &self.limiter.name())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<sprag.Concurrency {}>", self.name(py).repr()?))
    }
}
