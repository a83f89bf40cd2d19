//! How waits wake an event loop: whoever frees a lock leaves word and writes a byte to a socket that the loop
//! watches. It never waits for the interpreter; what was woken is asked again in the loop's own thread.

use crate::acquire::Acquire;
use parking_lot::Mutex;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::{PyTraverseError, PyVisit};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::{Wake, Waker};

/// What reaches a loop from other threads.
struct Woken {
    /// The waits that were woken and not asked since.
    ids: Mutex<Vec<u64>>,
    bell: UnixStream,
}

/// Wakes one wait.
struct WakeOne {
    woken: Arc<Woken>,
    id: u64,
}

impl Wake for WakeOne {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let is_first = {
            let mut ids = self.woken.ids.lock();
            ids.push(self.id);
            ids.len() == 1
        };
        if is_first {
            // A socket that is full has woken the loop already; one that is closed has no loop.
            let _ = (&self.woken.bell).write(&[1]);
        }
    }
}

/// The waits of one event loop.
#[pyclass(frozen, module = "sprag")]
pub(crate) struct Reactor {
    woken: Arc<Woken>,
    /// The loop's end of the socket.
    heard: UnixStream,
    waits: Mutex<Waits>,
}

#[derive(Default)]
struct Waits {
    last_id: u64,
    by_id: HashMap<u64, Py<Acquire>>,
}

impl Reactor {
    /// The loop that runs in this thread, and its reactor.
    pub(crate) fn of_running_loop(py: Python<'_>) -> PyResult<(Bound<'_, PyAny>, Bound<'_, Self>)> {
        static OF_RUNNING_LOOP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let (event_loop, reactor): (Bound<'_, PyAny>, Bound<'_, PyAny>) = OF_RUNNING_LOOP
            .import(py, "sprag._loops", "of_running_loop")?
            .call0()?
            .extract()?;
        Ok((event_loop, reactor.cast_into()?))
    }

    /// Has `acquire` asked again each time that the waker, which is made for it, is woken.
    pub(crate) fn register(&self, acquire: &Bound<'_, Acquire>) -> (u64, Waker) {
        let mut waits = self.waits.lock();
        waits.last_id += 1;
        let id = waits.last_id;
        waits.by_id.insert(id, acquire.clone().unbind());
        let woken = self.woken.clone();
        (id, Waker::from(Arc::new(WakeOne { woken, id })))
    }

    pub(crate) fn forget(&self, id: u64) {
        let wait = self.waits.lock().by_id.remove(&id);
        // It may be the last reference, whose end runs code of Python's.
        drop(wait);
    }
}

#[pymethods]
impl Reactor {
    #[new]
    fn new() -> PyResult<Self> {
        let pair = || {
            let (bell, heard) = UnixStream::pair()?;
            bell.set_nonblocking(true)?;
            heard.set_nonblocking(true)?;
            Ok((bell, heard))
        };
        let (bell, heard) = pair().map_err(|error: std::io::Error| PyOSError::new_err(error))?;
        let woken = Woken {
            ids: Mutex::default(),
            bell,
        };
        Ok(Self {
            woken: Arc::new(woken),
            heard,
            waits: Mutex::default(),
        })
    }

    fn fileno(&self) -> RawFd {
        self.heard.as_raw_fd()
    }

    /// Asks the waits that were woken: called by the loop.
    fn wake(&self, py: Python<'_>) -> PyResult<()> {
        let mut bytes = [0; 16];
        // Before the list is taken, so that who comes after that rings again.
        while matches!((&self.heard).read(&mut bytes), Ok(read) if read == bytes.len()) {}
        let ids = std::mem::take(&mut *self.woken.ids.lock());
        // One that cannot be told keeps none of the others from it.
        let mut told = Ok(());
        for id in ids {
            let wait = {
                let waits = self.waits.lock();
                waits.by_id.get(&id).map(|wait| wait.clone_ref(py))
            };
            told = told.and(wait.map_or(Ok(()), |wait| wait.get().ask(py)));
        }
        told
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector must never wait.
        if let Some(waits) = self.waits.try_lock() {
            for wait in waits.by_id.values() {
                visit.call(wait)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let waits = std::mem::take(&mut self.waits.lock().by_id);
        drop(waits);
    }
}
