//! Locks, as objects: what is acquired in a `with` block, or by a call.

use crate::acquire::{Acquire, Completed, Of};
use crate::entered::{Entered, Who};
use crate::error::{OrRaise, plain};
use crate::hold::{Hold, leave};
use crate::lost::check_callable;
use crate::number::{seconds, timeout, whole};
use crate::source::{AnyHold, Source};
use crate::text::told;
use crate::wait::wait;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use sprag::KeepAlive;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A lock: by name, of a partition or the table, of an owner, or several at once.
///
/// `with lock as hold:` and `async with lock as hold:` acquire it, waiting in first-come order, and release it at
/// the end; `LostError` then if the hold was lost meanwhile, unless the body raised something itself. One object
/// serves any number of threads, tasks and greenlets: each leaves its block with its own hold.
#[pyclass(frozen, weakref, module = "sprag")]
pub(crate) struct Lock {
    acquirer: Acquirer,
}

/// What acquires, whatever it is of: by call and by `with`.
pub(crate) struct Acquirer {
    source: Source,
    keep: Keep,
    entered: Entered,
    /// The token of the last hold.
    last_token: AtomicU64,
}

/// Whether holds are kept alive, and who is told when they are lost.
pub(crate) struct Keep {
    is_alive: bool,
    on_lost: Option<Py<PyAny>>,
}

impl Keep {
    pub(crate) fn new(
        py: Python<'_>,
        is_alive: bool,
        on_lost: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        if let Some(on_lost) = &on_lost {
            check_callable(on_lost.bind(py))?;
        }
        Ok(Self { is_alive, on_lost })
    }
}

impl Acquirer {
    pub(crate) fn new(source: Source, keep: Keep) -> Self {
        Self {
            source,
            keep,
            entered: Entered::default(),
            last_token: AtomicU64::new(0),
        }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn entered(&self) -> &Entered {
        &self.entered
    }

    /// The object for what was acquired of `source`.
    #[inline]
    pub(crate) fn hold<'py>(&self, py: Python<'py>, hold: AnyHold) -> PyResult<Bound<'py, Hold>> {
        // Relaxed: a number to look for.
        self.last_token.store(hold.token(), Relaxed);
        let is_reentry = hold.is_reentry();
        let hold = Bound::new(py, Hold::new(hold))?;
        if !is_reentry && (self.keep.is_alive || self.keep.on_lost.is_some()) {
            let at_most = if self.keep.is_alive {
                KeepAlive::default().at_most
            } else {
                // Watched, and never renewed.
                Duration::ZERO
            };
            let on_lost = self.keep.on_lost.as_ref().map(|on_lost| on_lost.bind(py));
            Hold::keep(&hold, at_most, on_lost)?;
        }
        Ok(hold)
    }

    pub(crate) fn acquire<'py>(
        &self,
        py: Python<'py>,
        source: &Source,
        blocking: bool,
        timeout: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, Hold>>> {
        if !blocking && timeout.is_some() {
            return Err(PyValueError::new_err("a timeout is for a call that blocks"));
        }
        let at_most = self::timeout(timeout)?;
        let hold = match source.try_acquire().or_raise(py)? {
            None if blocking => wait(py, || source.acquire(at_most))?,
            tried => tried,
        };
        hold.map(|hold| self.hold(py, hold)).transpose()
    }

    #[inline]
    pub(crate) fn enter<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Hold>> {
        let hold = match self.source.try_acquire().or_raise(py)? {
            Some(hold) => hold,
            None => self.wait_to_enter(py)?,
        };
        let hold = self.hold(py, hold)?;
        self.entered.push(&hold, || Ok(Who::here(py)))?;
        Ok(hold)
    }

    #[cold]
    fn wait_to_enter(&self, py: Python<'_>) -> PyResult<AnyHold> {
        loop {
            // Without a timeout it is granted or fails, but the type does not say so.
            if let Some(hold) = wait(py, || self.source.acquire(None))? {
                return Ok(hold);
            }
        }
    }

    #[inline]
    pub(crate) fn exit(
        &self,
        py: Python<'_>,
        raised: &Bound<'_, PyAny>,
        who: impl FnOnce() -> PyResult<Who>,
    ) -> PyResult<()> {
        match self.entered.pop(py, who)? {
            Some(hold) => leave(hold.get().end(py), raised),
            None => Err(plain(
                py,
                "ReleasedError",
                "this lock was left more often than entered",
            )),
        }
    }

    /// Whether one of the holds that came of it holds still.
    pub(crate) fn owned(&self, py: Python<'_>) -> PyResult<bool> {
        if self.entered.any_live(py)? {
            return Ok(true);
        }
        let last = self.last_token.load(Relaxed);
        let pid = std::process::id();
        let infos = self.source.peek().or_raise(py)?.unwrap_or_default();
        let mut holds = infos.iter().flat_map(|info| &info.holds);
        Ok(holds.any(|hold| hold.is_live && hold.token == last && hold.pid == Some(pid)))
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.entered.traverse(visit)?;
        match &self.keep.on_lost {
            Some(on_lost) => visit.call(on_lost),
            None => Ok(()),
        }
    }
}

impl Lock {
    pub(crate) fn new(source: Source, keep: Keep) -> Self {
        Self {
            acquirer: Acquirer::new(source, keep),
        }
    }

    pub(crate) fn acquirer(&self) -> &Acquirer {
        &self.acquirer
    }

    /// What is to be done by a token, of the kinds of locks that know how.
    fn by_token<T>(
        &self,
        py: Python<'_>,
        of_lock: impl FnOnce(&sprag::Lock<'static>) -> sprag::Result<T>,
        of_coarse: impl FnOnce(&sprag::CoarseLock<'static>) -> sprag::Result<T>,
    ) -> PyResult<T> {
        match self.acquirer.source() {
            Source::Lock { lock, .. } => of_lock(lock).or_raise(py),
            Source::Coarse(lock) | Source::CoarseOf(lock, _) => of_coarse(lock).or_raise(py),
            _ => Err(plain(
                py,
                "UnsupportedError",
                "tokens are released, renewed and adopted lock by lock, and not by an owner",
            )),
        }
    }
}

#[pymethods]
impl Lock {
    /// Acquires it; `None` if `blocking` is false and it can't be had at once, or its turn did not come within
    /// `timeout`. Other threads run meanwhile, and Ctrl-C ends the wait with nothing held.
    ///
    /// Keep the hold that it returns, or enter it by `with`: one that nobody has any more is released.
    #[pyo3(signature = (blocking=true, timeout=None))]
    fn acquire<'py>(
        &self,
        py: Python<'py>,
        blocking: bool,
        timeout: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, Hold>>> {
        let acquirer = &self.acquirer;
        acquirer.acquire(py, acquirer.source(), blocking, timeout)
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

    /// Acquires it when awaited: without a trip through the loop if it is free. Cancelling leaves nothing held or
    /// queued. asyncio and its like only.
    #[pyo3(signature = (timeout=None))]
    fn acquire_async(
        slf: Bound<'_, Self>,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Acquire> {
        let timeout = self::timeout(timeout)?.map(seconds);
        Ok(Acquire::new(Of::Lock(slf.unbind()), false, timeout))
    }

    fn __aenter__(slf: Bound<'_, Self>) -> Acquire {
        Acquire::new(Of::Lock(slf.unbind()), true, None)
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

    /// Whether anybody holds it, here or in another process; of several, any of them.
    fn locked(&self, py: Python<'_>) -> PyResult<bool> {
        match self.acquirer.source().peek().or_raise(py)? {
            Some(infos) => Ok(infos.iter().any(|info| info.is_held)),
            None => Err(plain(
                py,
                "UnsupportedError",
                "ask the space's own lock of this name",
            )),
        }
    }

    /// Whether a hold that came of this object holds still: one that a block entered, or the last one acquired.
    fn owned(&self, py: Python<'_>) -> PyResult<bool> {
        self.acquirer.owned(py)
    }

    /// Ends the hold with this token, whoever took it: the other half of `Hold.detach`. `LostError` if the lock is
    /// not held under this token.
    fn release_token(&self, py: Python<'_>, token: &Bound<'_, PyAny>) -> PyResult<()> {
        let token = whole("token", Some(token), 0)?;
        self.by_token(
            py,
            |lock| lock.release_token(token),
            |lock| lock.release_token(token),
        )
    }

    /// Sets the lease of the hold with this token to this object's, from now.
    fn renew_token(&self, py: Python<'_>, token: &Bound<'_, PyAny>) -> PyResult<()> {
        let token = whole("token", Some(token), 0)?;
        self.by_token(
            py,
            |lock| lock.renew_token(token),
            |lock| lock.renew_token(token),
        )
    }

    /// Takes over the hold with this token from whoever has it: how a hold goes from one process to another.
    fn adopt_token<'py>(
        &self,
        py: Python<'py>,
        token: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Hold>> {
        let token = whole("token", Some(token), 0)?;
        let hold = self.by_token(
            py,
            |lock| lock.adopt_token(token),
            |lock| lock.adopt_token(token),
        )?;
        self.acquirer.hold(py, AnyHold::One(hold))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.acquirer.traverse(&visit)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = |name: &[u8]| told(py, name).repr().map(|text| text.to_string());
        Ok(match self.acquirer.source() {
            Source::Lock { lock, is_shared } => {
                let shared = if *is_shared { " shared" } else { "" };
                format!("<sprag.Lock {}{shared}>", name(&lock.name())?)
            }
            Source::Several(locks) | Source::SeveralOf(locks, _) => {
                let names = locks.names();
                let names: PyResult<Vec<_>> = names.iter().map(|each| name(each)).collect();
                format!("<sprag.Lock {}>", names?.join(", "))
            }
            Source::Coarse(lock) | Source::CoarseOf(lock, _) => format!("<sprag.Lock {lock:?}>"),
            Source::Owner { lock, .. } => format!("<sprag.Lock {lock:?}>"),
            Source::Permits { semaphore, .. } => format!("<sprag.Lock {semaphore:?}>"),
        })
    }
}
