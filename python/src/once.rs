//! Onces: idempotency keys, and the attempts at them.

use crate::error::{OrRaise, plain, released};
use crate::number::{lasting, seconds, whole};
use crate::text::told;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sprag::{Begun, OnceStatus};
use std::time::Duration;

/// A handle on an idempotency key: the first to begin owns it until a deadline, and may store a result.
#[pyclass(frozen, module = "sprag")]
pub(crate) struct Once {
    pub(crate) once: sprag::Once<'static>,
}

#[pymethods]
impl Once {
    /// An `Attempt` if the key is new or its last attempt is over: the caller owns it for `ttl`, 1 ms to 366 days.
    /// `InProgress` if another is at it, `Done` with the result if it was done. Each can be used in a `with`
    /// block.
    fn begin<'py>(&self, py: Python<'py>, ttl: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let ttl = lasting("ttl", ttl)?;
        match self.once.begin(ttl).or_raise(py)? {
            Begun::Started(attempt) => {
                let attempt = Attempt {
                    token: attempt.token(),
                    is_after_unfinished: attempt.is_after_unfinished(),
                    own: Mutex::new(Some(attempt)),
                };
                Ok(Bound::new(py, attempt)?.into_any())
            }
            Begun::InProgress {
                holder_pid,
                deadline_left,
            } => Ok(Bound::new(py, InProgress::new(holder_pid, deadline_left))?.into_any()),
            Begun::Done(result) => Ok(Bound::new(py, Done::new(py, &result, None))?.into_any()),
        }
    }

    /// What is known of the key; `None` if it is new. Creates nothing.
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        status(py, self.once.status().or_raise(py)?)
    }

    /// `Attempt.finish` by the attempt's token: the other half of `Attempt.detach`.
    #[pyo3(signature = (token, result, keep_for))]
    fn finish_token(
        &self,
        py: Python<'_>,
        token: &Bound<'_, PyAny>,
        result: &[u8],
        keep_for: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (token, keep_for) = (
            whole("token", Some(token), 0)?,
            lasting("keep_for", keep_for)?,
        );
        self.once.finish_token(token, result, keep_for).or_raise(py)
    }

    /// `Attempt.abandon` by the attempt's token.
    fn abandon_token(&self, py: Python<'_>, token: &Bound<'_, PyAny>) -> PyResult<()> {
        self.once
            .abandon_token(whole("token", Some(token), 0)?)
            .or_raise(py)
    }

    /// `Attempt.extend` by the attempt's token.
    fn extend_token(
        &self,
        py: Python<'_>,
        token: &Bound<'_, PyAny>,
        ttl: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (token, ttl) = (whole("token", Some(token), 0)?, lasting("ttl", ttl)?);
        self.once.extend_token(token, ttl).or_raise(py)
    }

    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        told(py, &self.once.name())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<sprag.Once {}>", self.name(py).repr()?))
    }
}

/// What is known of a key; `None` for a new one.
pub(crate) fn status(py: Python<'_>, status: OnceStatus) -> PyResult<Option<Bound<'_, PyAny>>> {
    Ok(Some(match status {
        OnceStatus::New => return Ok(None),
        OnceStatus::InProgress {
            holder_pid,
            deadline_left,
        } => Bound::new(py, InProgress::new(holder_pid, deadline_left))?.into_any(),
        OnceStatus::Done { result, kept_left } => {
            Bound::new(py, Done::new(py, &result, Some(kept_left)))?.into_any()
        }
        OnceStatus::Unfinished => Bound::new(py, Unfinished {})?.into_any(),
    }))
}

/// That another attempt is under way.
#[pyclass(frozen, get_all, module = "sprag")]
pub(crate) struct InProgress {
    /// The owner's process id in its own namespace; `None` if it is detached, or not known.
    holder_pid: Option<u32>,
    /// What is left until its deadline, in seconds.
    deadline_left: f64,
}

impl InProgress {
    fn new(holder_pid: Option<u32>, deadline_left: Duration) -> Self {
        Self {
            holder_pid,
            deadline_left: seconds(deadline_left),
        }
    }
}

#[pymethods]
impl InProgress {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("holder_pid", "deadline_left")
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (kind, error, trace))]
    #[expect(clippy::unused_self, reason = "a method of Python's")]
    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        trace: &Bound<'_, PyAny>,
    ) {
        let _ = (kind, error, trace);
    }

    fn __repr__(&self) -> String {
        format!("<sprag.InProgress deadline_left={:.3}>", self.deadline_left)
    }
}

/// That it was done, and the result.
#[pyclass(frozen, get_all, module = "sprag")]
pub(crate) struct Done {
    result: Py<PyBytes>,
    /// For how much longer the result is kept at least, in seconds; `None` from `begin`, which does not ask.
    kept_left: Option<f64>,
}

impl Done {
    fn new(py: Python<'_>, result: &[u8], kept_left: Option<Duration>) -> Self {
        Self {
            result: PyBytes::new(py, result).unbind(),
            kept_left: kept_left.map(seconds),
        }
    }
}

#[pymethods]
impl Done {
    #[classattr]
    fn __match_args__() -> (&'static str,) {
        ("result",)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (kind, error, trace))]
    #[expect(clippy::unused_self, reason = "a method of Python's")]
    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        trace: &Bound<'_, PyAny>,
    ) {
        let _ = (kind, error, trace);
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<sprag.Done {}>", self.result.bind(py).repr()?))
    }
}

/// That the last attempt ended unfinished, so that its work may have been done in part.
#[pyclass(frozen, module = "sprag")]
pub(crate) struct Unfinished {}

#[pymethods]
impl Unfinished {
    #[expect(clippy::unused_self, reason = "a method of Python's")]
    fn __repr__(&self) -> &'static str {
        "<sprag.Unfinished>"
    }
}

/// An attempt of one's own at a key. It ends by `finish` or `abandon`; dropped without either, it frees the key at
/// once, and the next attempt is told that one ended unfinished. So it is when its `with` block raises.
#[pyclass(frozen, weakref, module = "sprag")]
pub(crate) struct Attempt {
    /// `None` once it is over.
    own: Mutex<Option<sprag::Attempt<'static>>>,
    token: u64,
    is_after_unfinished: bool,
}

impl Attempt {
    fn with<T>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut sprag::Attempt<'static>) -> sprag::Result<T>,
    ) -> PyResult<T> {
        let asked = self.own.lock().as_mut().map(ask);
        self.told(py, asked)
    }

    /// What an attempt answered, if there was one. Not with the mutex: to make an error runs code of Python's, and so
    /// lets other threads come here.
    fn told<T>(&self, py: Python<'_>, asked: Option<sprag::Result<T>>) -> PyResult<T> {
        match asked {
            Some(answer) => answer.or_raise(py),
            None => Err(released(py, "attempt", self.token)),
        }
    }

    fn take(&self, py: Python<'_>) -> PyResult<sprag::Attempt<'static>> {
        let attempt = self.own.lock().take();
        attempt.ok_or_else(|| released(py, "attempt", self.token))
    }
}

#[pymethods]
impl Attempt {
    /// Higher than that of every attempt at this key before; a fence admits it as it does a lock's.
    #[getter]
    fn token(&self) -> u64 {
        self.token
    }

    /// Whether an attempt before ended unfinished, so that its work may have been done in part.
    #[getter]
    fn is_after_unfinished(&self) -> bool {
        self.is_after_unfinished
    }

    /// Whether the deadline is still to come, by the owner's own clock.
    fn is_valid(&self) -> bool {
        self.own
            .lock()
            .as_ref()
            .is_some_and(sprag::Attempt::is_valid)
    }

    /// Whether the key is still this attempt's, by the engine's word.
    fn is_held(&self) -> bool {
        self.own
            .lock()
            .as_ref()
            .is_some_and(sprag::Attempt::is_held)
    }

    /// What is left until the deadline, in seconds.
    #[getter]
    fn deadline_left(&self) -> f64 {
        self.own
            .lock()
            .as_ref()
            .map_or(0.0, |attempt| seconds(attempt.deadline_left()))
    }

    /// Stores the result for `keep_for`: from then on `begin` gives it to everybody. `LostError` once the deadline
    /// has passed.
    #[pyo3(signature = (result, keep_for))]
    fn finish(&self, py: Python<'_>, result: &[u8], keep_for: &Bound<'_, PyAny>) -> PyResult<()> {
        let keep_for = lasting("keep_for", keep_for)?;
        let finished = {
            let mut own = self.own.lock();
            let finished = own.as_mut().map(|own| own.finish(result, keep_for));
            // With an argument out of its bounds, or no room for the result, it goes on.
            if let Some(Ok(()) | Err(sprag::Error::AttemptLost { .. })) = &finished {
                *own = None;
            }
            finished
        };
        self.told(py, finished)
    }

    /// Frees the key at once, as if this attempt had not been.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.take(py)?.abandon().or_raise(py)
    }

    /// Starts the time until the deadline anew.
    fn renew(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, sprag::Attempt::renew)
    }

    /// `renew` with another length.
    fn extend(&self, py: Python<'_>, ttl: &Bound<'_, PyAny>) -> PyResult<()> {
        let ttl = lasting("ttl", ttl)?;
        self.with(py, |attempt| attempt.extend(ttl))
    }

    /// Lets the attempt go on without this process; its token.
    fn detach(&self, py: Python<'_>) -> PyResult<u64> {
        self.take(py)?.detach().or_raise(py)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// A body that raised leaves it unfinished; one that did not must have finished or abandoned it.
    #[pyo3(signature = (kind, error, trace))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (error, trace);
        let unfinished = self.own.lock().take();
        if unfinished.is_some() && kind.is_none() {
            let text = "the block ended, and neither finished the attempt nor abandoned it; it counts as unfinished";
            return Err(plain(py, "UnfinishedError", text));
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        let over = if self.own.lock().is_none() {
            " over"
        } else {
            ""
        };
        format!("<sprag.Attempt token={}{over}>", self.token)
    }
}
