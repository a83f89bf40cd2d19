//! Which holds were entered by `with` and not left yet: so that a lock that several threads and tasks use as one
//! object is left by each with its own hold.

use crate::hold::Hold;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::{PyTraverseError, PyVisit};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Who entered: a thread, or a task or a greenlet in it. Never the same for two that are there at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Who(usize);

impl Who {
    /// This thread.
    #[inline]
    pub(crate) fn thread() -> Self {
        thread_local! {
            static NUMBER: Cell<usize> = const { Cell::new(0) };
        }
        NUMBER.with(|number| {
            if number.get() == 0 {
                static LAST: AtomicUsize = AtomicUsize::new(0);
                // Odd, as no address of an object is. Relaxed: a number.
                number.set(LAST.fetch_add(2, Relaxed) + 1);
            }
            Self(number.get())
        })
    }

    /// Whoever runs: the task or the greenlet, if this thread may have several; else the thread.
    pub(crate) fn here(py: Python<'_>) -> Self {
        static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let current = CURRENT
            .import(py, "sprag._who", "current")
            .and_then(PyAnyMethods::call0);
        match current {
            Ok(current) if !current.is_none() => Self(current.as_ptr() as usize),
            // Where nobody can be asked, as at the end of the interpreter, threads are told apart at least.
            _ => Self::thread(),
        }
    }

    /// Another one for each; never 0.
    pub(crate) fn number(self) -> usize {
        self.0
    }

    /// The task that runs, which outlives the block that it is in; else the thread.
    pub(crate) fn task(py: Python<'_>) -> PyResult<Self> {
        static CURRENT_TASK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let task = CURRENT_TASK
            .import(py, "asyncio", "current_task")?
            .call0()?;
        Ok(if task.is_none() {
            Self::thread()
        } else {
            Self(task.as_ptr() as usize)
        })
    }
}

#[derive(Default)]
pub(crate) struct Entered {
    /// Who entered first is not asked who it is: of all that are here at once, one at most is unnamed.
    holds: Mutex<Vec<(Option<Who>, Py<Hold>)>>,
}

impl Entered {
    #[inline]
    pub(crate) fn push(
        &self,
        hold: &Bound<'_, Hold>,
        who: impl FnOnce() -> PyResult<Who>,
    ) -> PyResult<()> {
        {
            let mut holds = self.holds.lock();
            if holds.is_empty() {
                holds.push((None, hold.clone().unbind()));
                return Ok(());
            }
        }
        // Asked without the mutex; should it be empty now, a name is no harm.
        let who = who()?;
        self.holds.lock().push((Some(who), hold.clone().unbind()));
        Ok(())
    }

    /// The latest hold that the caller entered; else the unnamed one; else, where callbacks leave for others, the
    /// latest that holds still; else the latest.
    #[inline]
    pub(crate) fn pop(
        &self,
        py: Python<'_>,
        who: impl FnOnce() -> PyResult<Who>,
    ) -> PyResult<Option<Py<Hold>>> {
        {
            let mut holds = self.holds.lock();
            if holds.len() <= 1 {
                return Ok(holds.pop().map(|(_, hold)| hold));
            }
        }
        self.pop_of_several(py, who()?)
    }

    #[cold]
    fn pop_of_several(&self, py: Python<'_>, who: Who) -> PyResult<Option<Py<Hold>>> {
        {
            let mut holds = self.holds.lock();
            let own = holds.iter().rposition(|(other, _)| *other == Some(who));
            let unnamed = || holds.iter().rposition(|(other, _)| other.is_none());
            if let Some(at) = own.or_else(unnamed) {
                return Ok(Some(holds.remove(at).1));
            }
        }
        self.pop_of_others(py)
    }

    #[cold]
    fn pop_of_others(&self, py: Python<'_>) -> PyResult<Option<Py<Hold>>> {
        // Asked without the mutex: to ask a hold may let the interpreter go.
        let mut latest = None;
        for hold in self.list(py).into_iter().rev() {
            if hold.get().is_live(py)? {
                latest = Some(hold);
                break;
            }
            if latest.is_none() {
                latest = Some(hold);
            }
        }
        let mut holds = self.holds.lock();
        let at = holds
            .iter()
            .rposition(|(_, hold)| latest.as_ref().is_some_and(|latest| latest.is(hold)));
        Ok(at.map(|at| holds.remove(at).1))
    }

    pub(crate) fn any_live(&self, py: Python<'_>) -> PyResult<bool> {
        for hold in self.list(py) {
            if hold.get().is_live(py)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn list(&self, py: Python<'_>) -> Vec<Py<Hold>> {
        let holds = self.holds.lock();
        holds.iter().map(|(_, hold)| hold.clone_ref(py)).collect()
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector must never wait.
        if let Some(holds) = self.holds.try_lock() {
            for (_, hold) in holds.iter() {
                visit.call(hold)?;
            }
        }
        Ok(())
    }
}
