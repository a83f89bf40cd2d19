//! How a loss is told: the thread of the space that finds it out never waits for the interpreter, since it renews the
//! leases of others. It leaves word here, and a thread of Python's own calls back.

use crate::hold::Hold;
use crate::text::type_error;
use parking_lot::{Condvar, Mutex};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyWeakrefReference;
use std::collections::VecDeque;
use std::sync::Arc;

/// A weak reference to a hold: that it is watched does not keep it, nor what its callback refers to.
type Watched = Py<PyWeakrefReference>;

#[derive(Default)]
struct Queue {
    lost: Mutex<VecDeque<Arc<Watched>>>,
    more: Condvar,
}

/// Losses that are to be told.
#[pyclass(frozen, module = "sprag")]
#[derive(Default)]
pub(crate) struct LostQueue {
    queue: Arc<Queue>,
}

#[pymethods]
impl LostQueue {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// A weak reference to the next hold that was lost; waits until there is one.
    fn next(&self, py: Python<'_>) -> Watched {
        let queue = &*self.queue;
        let next = py.detach(|| {
            let mut lost = queue.lost.lock();
            loop {
                match lost.pop_front() {
                    Some(next) => return next,
                    None => queue.more.wait(&mut lost),
                }
            }
        });
        next.clone_ref(py)
    }
}

/// Refuses what could not be called back, before there is a loss that nobody would be told of.
pub(crate) fn check_callable(on_lost: &Bound<'_, PyAny>) -> PyResult<()> {
    if on_lost.is_callable() {
        Ok(())
    } else {
        Err(type_error("on_lost", "a function of the hold", on_lost))
    }
}

/// What the space's own thread calls: it leaves word, and waits for nothing.
pub(crate) fn teller(hold: &Bound<'_, Hold>) -> PyResult<Arc<dyn Fn() + Send + Sync>> {
    static QUEUE_OF_THREAD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = hold.py();
    let queue = QUEUE_OF_THREAD
        .import(py, "sprag._told", "queue")?
        .call0()?
        .cast_into::<LostQueue>()?
        .get()
        .queue
        .clone();
    let hold = Arc::new(PyWeakrefReference::new(hold.as_any())?.unbind());
    Ok(Arc::new(move || {
        queue.lost.lock().push_back(hold.clone());
        queue.more.notify_one();
    }))
}
