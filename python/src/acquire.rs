//! The awaitable form of an acquire.
//!
//! ```text
//!        had at once                        granted, timed out, failed
//!  new ──────────────▶ over        waiting ───────────────────────────▶ ready ──▶ over
//!   └──(queued, yields a future of the loop's)──▲                         ▲
//!                       cancelled, closed or dropped: leaves the queue, or releases ┘
//! ```
//!
//! The library's future is polled in the loop's thread only, by whoever awaits or, once it was woken, by the reactor;
//! the task is resumed only once there is an outcome.

use crate::entered::Who;
use crate::error::OrRaise;
use crate::lock::{Acquirer, Lock};
use crate::reactor::Reactor;
use crate::semaphore::Semaphore;
use crate::source::{Acquiring, AnyHold};
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::task::{Context, Poll, Waker};

/// An acquire to be awaited, once: a coroutine, for `await`, `asyncio.create_task`, `asyncio.wait_for`.
#[pyclass(frozen, weakref, module = "sprag")]
pub(crate) struct Acquire {
    of: Of,
    /// Whether it is entered by `async with`.
    is_to_enter: bool,
    state: Mutex<State>,
}

/// Whose acquire it is.
pub(crate) enum Of {
    Lock(Py<Lock>),
    Semaphore(Py<Semaphore>, u32),
}

type Outcome = sprag::Result<Option<AnyHold>>;

enum State {
    New { timeout: Option<f64> },
    Waiting(Waiting),
    Ready(Outcome),
    Over,
}

impl State {
    /// How it is dropped: a hold that nobody got is released.
    fn give_up(self) {
        if let Self::Ready(Ok(Some(hold))) = self {
            hold.give_up();
        }
    }
}

struct Waiting {
    acquiring: Acquiring,
    waker: Waker,
    id: u64,
    reactor: Py<Reactor>,
    /// What the task waits for.
    resumed: Py<PyAny>,
    timer: Option<Py<PyAny>>,
}

impl Waiting {
    fn poll(&mut self) -> Option<Outcome> {
        poll(&mut self.acquiring, &self.waker)
    }

    /// Ends what the loop knows of it; the place in the queue goes with the library's future.
    fn end(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        self.reactor.get().forget(self.id);
        if let Some(timer) = self.timer {
            timer.bind(py).call_method0("cancel")?;
        }
        Ok(self.resumed.into_bound(py))
    }
}

fn poll(acquiring: &mut Acquiring, waker: &Waker) -> Option<Outcome> {
    let mut context = Context::from_waker(waker);
    match acquiring.as_mut().poll(&mut context) {
        Poll::Ready(outcome) => Some(outcome.map(Some)),
        Poll::Pending => None,
    }
}

impl Acquire {
    pub(crate) fn new(of: Of, is_to_enter: bool, timeout: Option<f64>) -> Self {
        Self {
            of,
            is_to_enter,
            state: Mutex::new(State::New { timeout }),
        }
    }

    fn acquirer(&self) -> &Acquirer {
        match &self.of {
            Of::Lock(lock) => lock.get().acquirer(),
            Of::Semaphore(semaphore, _) => semaphore.get().acquirer(),
        }
    }

    fn acquiring(&self) -> sprag::Result<Acquiring> {
        match &self.of {
            Of::Lock(lock) => lock.get().acquirer().source().acquire_async(),
            Of::Semaphore(semaphore, permits) => semaphore.get().source(*permits).acquire_async(),
        }
    }

    fn try_acquire(&self) -> Outcome {
        match &self.of {
            Of::Lock(lock) => lock.get().acquirer().source().try_acquire(),
            Of::Semaphore(semaphore, permits) => semaphore.get().source(*permits).try_acquire(),
        }
    }

    /// Goes on: what the task is to wait for, or, as `StopIteration`, what came of it.
    fn step<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let state = std::mem::replace(&mut *this.state.lock(), State::Over);
        match state {
            State::New { timeout } => match this.try_acquire().or_raise(py)? {
                None => Self::begin(slf, timeout),
                hold => this.finish(py, Ok(hold)),
            },
            State::Waiting(mut waiting) => {
                if !waiting.resumed.bind(py).call_method0("done")?.is_truthy()? {
                    // The one who waits is to be resumed still.
                    *this.state.lock() = State::Waiting(waiting);
                    let text = "this acquire is being awaited already";
                    return Err(PyRuntimeError::new_err(text));
                }
                if let Some(outcome) = waiting.poll() {
                    waiting.end(py)?;
                    return this.finish(py, outcome);
                }
                // Resumed by somebody else: it goes on waiting.
                let event_loop = waiting.resumed.bind(py).call_method0("get_loop")?;
                let (resumed, yielded) = to_wait_for(&event_loop)?;
                waiting.resumed = resumed.unbind();
                *this.state.lock() = State::Waiting(waiting);
                Ok(yielded)
            }
            State::Ready(outcome) => this.finish(py, outcome),
            State::Over => Err(PyRuntimeError::new_err("this acquire was awaited already")),
        }
    }

    /// Queues up.
    #[cold]
    fn begin<'py>(slf: &Bound<'py, Self>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if timeout == Some(0.0) {
            return this.finish(py, Ok(None));
        }
        let mut acquiring = this.acquiring().or_raise(py)?;
        let (event_loop, reactor) = Reactor::of_running_loop(py)?;
        let (id, waker) = reactor.get().register(slf);
        if let Some(outcome) = poll(&mut acquiring, &waker) {
            reactor.get().forget(id);
            return this.finish(py, outcome);
        }
        let prepare = || {
            let (resumed, yielded) = to_wait_for(&event_loop)?;
            let timer = timeout.map(|timeout| {
                event_loop.call_method1("call_later", (timeout, slf.getattr("_time_out")?))
            });
            Ok((resumed, yielded, timer.transpose()?))
        };
        let (resumed, yielded, timer) =
            prepare().inspect_err(|_: &PyErr| reactor.get().forget(id))?;
        *this.state.lock() = State::Waiting(Waiting {
            acquiring,
            waker,
            id,
            reactor: reactor.unbind(),
            resumed: resumed.unbind(),
            timer: timer.map(Bound::unbind),
        });
        Ok(yielded)
    }

    /// Ends the await with an outcome.
    #[inline]
    fn finish<'py>(&self, py: Python<'py>, outcome: Outcome) -> PyResult<Bound<'py, PyAny>> {
        let hold = match outcome.or_raise(py)? {
            Some(hold) => Some(self.acquirer().hold(py, hold)?),
            None => None,
        };
        if self.is_to_enter
            && let Some(hold) = &hold
        {
            self.acquirer().entered().push(hold, || Who::task(py))?;
        }
        Err(PyStopIteration::new_err((hold.map(Bound::unbind),)))
    }

    /// Polls after a wake, and resumes the task if there is an outcome.
    pub(crate) fn ask(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state.lock();
        let State::Waiting(waiting) = &mut *state else {
            return Ok(());
        };
        let Some(outcome) = waiting.poll() else {
            return Ok(());
        };
        let waited = std::mem::replace(&mut *state, State::Ready(outcome));
        drop(state);
        resume(py, waited)
    }

    /// Gives up, whatever it is at: what was granted is released.
    fn give_up(&self, py: Python<'_>) -> PyResult<()> {
        let state = std::mem::replace(&mut *self.state.lock(), State::Over);
        match state {
            State::Waiting(waiting) => waiting.end(py).map(drop),
            other => {
                other.give_up();
                Ok(())
            }
        }
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        std::mem::replace(self.state.get_mut(), State::Over).give_up();
    }
}

/// Ends a wait, and resumes its task unless that is about to happen anyway.
fn resume(py: Python<'_>, waited: State) -> PyResult<()> {
    if let State::Waiting(waiting) = waited {
        let resumed = waiting.end(py)?;
        if !resumed.call_method0("done")?.is_truthy()? {
            resumed.call_method1("set_result", (py.None(),))?;
        }
    }
    Ok(())
}

/// A future of the loop's, and what a task is to be given to wait for it.
fn to_wait_for<'py>(
    event_loop: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let resumed = event_loop.call_method0("create_future")?;
    let yielded = resumed
        .call_method0("__await__")?
        .call_method0("__next__")?;
    Ok((resumed, yielded))
}

#[pymethods]
impl Acquire {
    fn __await__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::step(slf)
    }

    fn send<'py>(slf: &Bound<'py, Self>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let _ = value;
        Self::step(slf)
    }

    /// Cancels: raises what it is given, with nothing held or queued.
    #[pyo3(signature = (kind, error=None, trace=None))]
    fn throw<'py>(
        &self,
        py: Python<'py>,
        kind: Bound<'py, PyAny>,
        error: Option<Bound<'py, PyAny>>,
        trace: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.give_up(py)?;
        let error = match error.filter(|error| !error.is_none()) {
            Some(error) => error,
            None if kind.is_instance_of::<pyo3::types::PyType>() => kind.call0()?,
            None => kind,
        };
        if let Some(trace) = trace.filter(|trace| !trace.is_none()) {
            error.setattr("__traceback__", trace)?;
        }
        Err(PyErr::from_value(error))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.give_up(py)
    }

    /// The loop's timer rang.
    fn _time_out(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state.lock();
        let State::Waiting(waiting) = &mut *state else {
            return Ok(());
        };
        // It may have been granted just now.
        let outcome = waiting.poll().unwrap_or(Ok(None));
        let waited = std::mem::replace(&mut *state, State::Ready(outcome));
        drop(state);
        resume(py, waited)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.of {
            Of::Lock(lock) => visit.call(lock)?,
            Of::Semaphore(semaphore, _) => visit.call(semaphore)?,
        }
        // The collector must never wait.
        if let Some(State::Waiting(waiting)) = self.state.try_lock().as_deref() {
            visit.call(&waiting.reactor)?;
            visit.call(&waiting.resumed)?;
            if let Some(timer) = &waiting.timer {
                visit.call(timer)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let state = std::mem::replace(&mut *self.state.lock(), State::Over);
        state.give_up();
    }

    fn __repr__(&self) -> &'static str {
        match &*self.state.lock() {
            State::New { .. } => "<sprag.Acquire new>",
            State::Waiting(_) => "<sprag.Acquire waiting>",
            State::Ready(_) => "<sprag.Acquire ready>",
            State::Over => "<sprag.Acquire over>",
        }
    }
}

/// What is done already, as something to await.
#[pyclass(frozen, module = "sprag")]
pub(crate) struct Completed {}

impl Completed {
    /// The one there is.
    pub(crate) fn get(py: Python<'_>) -> PyResult<Py<Self>> {
        static COMPLETED: pyo3::sync::PyOnceLock<Py<Completed>> = pyo3::sync::PyOnceLock::new();
        let completed = COMPLETED.get_or_try_init(py, || Py::new(py, Self {}))?;
        Ok(completed.clone_ref(py))
    }
}

#[pymethods]
#[expect(clippy::unused_self, reason = "methods of Python's")]
impl Completed {
    fn __await__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self) -> Option<()> {
        None
    }
}
