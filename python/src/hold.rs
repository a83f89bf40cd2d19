//! Holds: what was acquired, as an object that owns it. Whoever has the object has the hold, in whichever thread or
//! task.

use crate::entered::Who;
use crate::error::{OrRaise, plain, raised, released};
use crate::lost;
use crate::number::{duration, lasting, seconds, timeout};
use crate::source::AnyHold;
use crate::wait::{LOOK, wait};
use parking_lot::Mutex;
use pyo3::exceptions::{PyAttributeError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use sprag::KeepAlive;
use sprag::host::fork::fork_id;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// What was acquired: a lock, several, or permits. It belongs to whoever has the object, in whichever thread or
/// task, and ends by `release()`, at the end of its own `with` block, or with the object.
///
/// It can end before that: when its lease ends, or somebody breaks the lock. Ask `is_valid()` before each step
/// that needs the lock, and send `token` along to a fence, which is the only thing that stops a step already under
/// way.
#[pyclass(frozen, weakref, module = "sprag")]
pub(crate) struct Hold {
    state: Mutex<State>,
    /// Also once it is over.
    token: AtomicU64,
    /// The number of the thread that asks what may wait, and has the state meanwhile; 0 for none.
    asker: AtomicUsize,
    /// The process that it was made in.
    fork_id: u64,
    on_lost: Mutex<Option<Py<PyAny>>>,
}

enum State {
    Held(AnyHold),
    Over { was_lost: bool },
}

impl Hold {
    #[inline]
    pub(crate) fn new(hold: AnyHold) -> Self {
        Self {
            token: AtomicU64::new(hold.token()),
            state: Mutex::new(State::Held(hold)),
            asker: AtomicUsize::new(0),
            fork_id: fork_id(),
            on_lost: Mutex::new(None),
        }
    }

    /// The token, without asking what may be upgraded right now.
    pub(crate) fn last_token(&self) -> u64 {
        // Relaxed: a number that whoever reads it was given by the one who stored it.
        self.token.load(Relaxed)
    }

    /// Asks the state. One that another thread is upgrading is waited for, with the interpreter let go.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut State) -> T + Send,
    ) -> PyResult<T> {
        if let Some(mut state) = self.state.try_lock()
            && !matches!(&*state, State::Held(hold) if hold.may_wait())
        {
            return Ok(ask(&mut state));
        }
        self.with_waiting(py, ask)
    }

    #[cold]
    fn with_waiting<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut State) -> T + Send,
    ) -> PyResult<T> {
        let mut ask = Some(ask);
        loop {
            // Relaxed: only what this thread stored itself is of interest.
            if self.asker.load(Relaxed) == Who::thread().number() {
                let text = "this thread is in the midst of asking the hold, and cannot ask it again in a signal handler";
                return Err(PyRuntimeError::new_err(text));
            }
            let asked = wait(py, || {
                let state = self.state.try_lock_for(LOOK);
                Ok(state.and_then(|mut state| {
                    // Relaxed, both: a number that only this thread looks for.
                    self.asker.store(Who::thread().number(), Relaxed);
                    let answer = ask.take().map(|ask| ask(&mut state));
                    self.asker.store(0, Relaxed);
                    answer
                }))
            })?;
            match asked {
                Some(answer) => return Ok(answer),
                // Whoever has the state is a thread of the process that this one was forked from: it never ends.
                None if self.fork_id != fork_id() => return Err(raised(py, &sprag::Error::Forked)),
                None => py.check_signals()?,
            }
        }
    }

    /// Asks the hold; an error if it is over.
    fn with_held<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut AnyHold) -> sprag::Result<T> + Send,
    ) -> PyResult<T> {
        let asked = self.with(py, |state| match state {
            State::Held(hold) => Some(ask(hold)),
            State::Over { .. } => None,
        })?;
        match asked {
            Some(answer) => answer.or_raise(py),
            None => Err(self.over(py)),
        }
    }

    #[cold]
    fn over(&self, py: Python<'_>) -> PyErr {
        released(py, "hold", self.last_token())
    }

    /// Releases it unless that was done; whether it was held still, as a result.
    pub(crate) fn end(&self, py: Python<'_>) -> PyResult<()> {
        let ended = self.with(py, end)?;
        ended.unwrap_or(Ok(())).or_raise(py)
    }

    /// Whether it is over, or lost.
    pub(crate) fn is_live(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |state| match state {
            State::Held(hold) => hold.is_held(),
            State::Over { .. } => false,
        })
    }

    /// Has it kept alive for `at_most`, or only watched for zero.
    pub(crate) fn keep(
        slf: &Bound<'_, Self>,
        at_most: Duration,
        on_lost: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let options = KeepAlive {
            at_most,
            on_lost: on_lost.map(|_| lost::teller(slf)).transpose()?,
        };
        let before = {
            let callback = on_lost.map(|callback| callback.clone().unbind());
            std::mem::replace(&mut *this.on_lost.lock(), callback)
        };
        // May run code of Python's, so without the mutex.
        drop(before);
        this.with_held(py, |hold| hold.keep_alive(options))
    }
}

/// Releases what is held; `None` if nothing was.
#[inline]
fn end(state: &mut State) -> Option<sprag::Result<()>> {
    match std::mem::replace(state, State::Over { was_lost: false }) {
        State::Held(hold) => {
            let released = hold.release();
            *state = State::Over {
                was_lost: matches!(released, Err(sprag::Error::Lost { .. })),
            };
            Some(released)
        }
        over @ State::Over { .. } => {
            *state = over;
            None
        }
    }
}

#[pymethods]
impl Hold {
    /// The fencing token: higher than that of every earlier hold of this lock. Of several locks, see `tokens`.
    #[getter]
    fn token(&self, py: Python<'_>) -> PyResult<u64> {
        let token = self.with(py, |state| match state {
            State::Held(hold) if hold.is_of_several() => None,
            State::Held(hold) => Some(hold.token()),
            State::Over { .. } => Some(self.last_token()),
        })?;
        token.ok_or_else(|| {
            PyAttributeError::new_err("each of several locks has a token of its own: see tokens")
        })
    }

    /// The tokens, of several locks in the order of their names.
    #[getter]
    fn tokens(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        self.with(py, |state| match state {
            State::Held(hold) => hold.tokens(),
            State::Over { .. } => vec![self.last_token()],
        })
    }

    /// Whether the lease still runs, by the holder's own clock. Errs towards false near the end.
    fn is_valid(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |state| match state {
            State::Held(hold) => hold.is_valid(),
            State::Over { .. } => false,
        })
    }

    /// Whether it still holds, by the engine's word: also notices a broken lock.
    fn is_held(&self, py: Python<'_>) -> PyResult<bool> {
        self.is_live(py)
    }

    /// Whether others may hold the lock beside this one.
    #[getter]
    fn is_shared(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |state| match state {
            State::Held(hold) => hold.is_shared(),
            State::Over { .. } => false,
        })
    }

    /// Whether it ended, or is about to, though nobody gave it up.
    #[getter]
    fn lost(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |state| match state {
            State::Held(hold) => !hold.is_held(),
            State::Over { was_lost } => *was_lost,
        })
    }

    /// What is left of the lease, in seconds; 0 once it is over.
    #[getter]
    fn lease_left(&self, py: Python<'_>) -> PyResult<f64> {
        let left = self.with(py, |state| match state {
            State::Held(hold) => hold.lease_left(),
            State::Over { .. } => Duration::ZERO,
        })?;
        Ok(seconds(left))
    }

    /// Starts the lease anew, from now, with the length it had. `LostError` once it is over.
    fn renew(&self, py: Python<'_>) -> PyResult<()> {
        self.with_held(py, AnyHold::renew)
    }

    /// `renew` with another length: 1 ms to 366 days.
    fn extend(&self, py: Python<'_>, ttl: &Bound<'_, PyAny>) -> PyResult<()> {
        let ttl = lasting("ttl", ttl)?;
        self.with_held(py, |hold| hold.extend(ttl))
    }

    /// Has the lease renewed in the background, by one thread for the whole space, for `at_most`, 24 hours if not
    /// said. `on_lost` is called with the hold once that is lost, in a thread of its own. A second call replaces
    /// what the first asked for.
    #[pyo3(signature = (at_most=None, on_lost=None))]
    fn keep_alive(
        slf: &Bound<'_, Self>,
        at_most: Option<&Bound<'_, PyAny>>,
        on_lost: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let at_most = match at_most {
            Some(at_most) => duration("at_most", at_most)?,
            None => KeepAlive::default().at_most,
        };
        if let Some(on_lost) = on_lost {
            lost::check_callable(on_lost)?;
        }
        Self::keep(slf, at_most, on_lost)
    }

    /// Takes alone what this hold shares, waiting for the others to release it; the token is a new one then. False
    /// if they share it still when `timeout` is over. `UpgradeConflictError` if another waits for the same.
    #[pyo3(signature = (timeout=None))]
    fn upgrade(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let at_most = self::timeout(timeout)?;
        let upgraded = self.with_waiting(py, |state| match state {
            State::Held(hold) => {
                let upgraded = hold.upgrade(at_most);
                // Relaxed: a number.
                self.token.store(hold.token(), Relaxed);
                upgraded.map(Some)
            }
            State::Over { .. } => Ok(None),
        });
        let upgraded = upgraded?.or_raise(py)?;
        match upgraded {
            Some(Some(upgraded)) => Ok(upgraded),
            Some(None) => Err(cannot_share(py)),
            None => Err(self.over(py)),
        }
    }

    /// Goes on sharing the lock instead of having it alone.
    fn downgrade(&self, py: Python<'_>) -> PyResult<()> {
        if self.with_held(py, AnyHold::downgrade)? {
            Ok(())
        } else {
            Err(cannot_share(py))
        }
    }

    /// Gives it up. `LostError` if somebody else has taken it since, `ReleasedError` if that was done before.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        match self.with(py, end)? {
            Some(released) => released.or_raise(py),
            None => Err(self.over(py)),
        }
    }

    /// Lets the hold live on without this process until its lease ends, which starts anew, or somebody releases it
    /// by the token returned.
    fn detach(&self, py: Python<'_>) -> PyResult<u64> {
        let detached = self.with(py, |state| {
            if matches!(state, State::Held(hold) if !hold.can_detach()) {
                return Some(None);
            }
            match std::mem::replace(state, State::Over { was_lost: false }) {
                State::Held(hold) => {
                    let detached = hold.detach()?;
                    *state = State::Over {
                        was_lost: matches!(detached, Err(sprag::Error::Lost { .. })),
                    };
                    Some(Some(detached))
                }
                over @ State::Over { .. } => {
                    *state = over;
                    None
                }
            }
        })?;
        match detached {
            Some(Some(detached)) => detached.or_raise(py),
            Some(None) => Err(plain(
                py,
                "UnsupportedError",
                "holds of several locks and of owners end with this process; hold each lock by itself to detach it",
            )),
            None => Err(self.over(py)),
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
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
        leave(self.end(py), kind)
    }

    /// What is called back once the hold is lost.
    #[getter]
    fn _on_lost(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.on_lost
            .lock()
            .as_ref()
            .map(|callback| callback.clone_ref(py))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Held by nobody while the collector runs, but it must never wait.
        match self.on_lost.try_lock().as_deref() {
            Some(Some(callback)) => visit.call(callback),
            _ => Ok(()),
        }
    }

    fn __clear__(&self) {
        let callback = self.on_lost.lock().take();
        drop(callback);
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let token = self.last_token();
        self.with(py, |state| match state {
            State::Held(hold) if hold.is_of_several() => {
                format!(
                    "<sprag.Hold tokens={:?} lease_left={:.3}>",
                    hold.tokens(),
                    seconds(hold.lease_left())
                )
            }
            State::Held(hold) => {
                format!(
                    "<sprag.Hold token={} lease_left={:.3}>",
                    hold.token(),
                    seconds(hold.lease_left())
                )
            }
            State::Over { was_lost: true } => format!("<sprag.Hold token={token} lost>"),
            State::Over { .. } => format!("<sprag.Hold token={token} released>"),
        })
    }
}

/// The end of a block whose hold ended so: that it was lost is not to hide what the body raised.
#[inline]
pub(crate) fn leave(ended: PyResult<()>, raised: &Bound<'_, PyAny>) -> PyResult<()> {
    if raised.is_none() { ended } else { Ok(()) }
}

#[cold]
fn cannot_share(py: Python<'_>) -> PyErr {
    let text = "only a hold of one lock by its name can be upgraded or downgraded";
    plain(py, "UnsupportedError", text)
}

impl Drop for Hold {
    fn drop(&mut self) {
        let state = std::mem::replace(self.state.get_mut(), State::Over { was_lost: false });
        if let State::Held(hold) = state {
            hold.give_up();
        }
    }
}
