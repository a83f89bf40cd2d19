//! Waits with the interpreter let go, and Ctrl-C while they last.

use crate::error::OrRaise;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::time::Duration;

/// How often one who waits for another thread of this process looks for signals.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// Runs `call`, which may wait, with the interpreter let go. Where this thread handles signals, one whose handler
/// raises ends the wait: it has left the queue then, and holds nothing.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    call: impl FnOnce() -> sprag::Result<T> + Send,
) -> PyResult<T> {
    // Others never need the interpreter before the end of their wait: so a daemon thread does not ask for
    // it while it is being torn down.
    if !handles_signals(py)? {
        return py.detach(call).or_raise(py);
    }
    let mut raised = None;
    let waited = py.detach(|| {
        let stop = || {
            Python::attach(|py| {
                raised = py.check_signals().err();
                raised.is_some()
            })
        };
        sprag::interruptible(stop, call)
    });
    match raised {
        // What was granted for all that, dropping it has released.
        Some(raised) => Err(raised),
        None => waited.or_raise(py),
    }
}

/// Whether this is the thread that Python runs signal handlers in.
fn handles_signals(py: Python<'_>) -> PyResult<bool> {
    static MAIN_THREAD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    // Asked each time: it is another thread's after a fork.
    let main = MAIN_THREAD
        .import(py, "threading", "main_thread")?
        .call0()?;
    let current = CURRENT.import(py, "threading", "get_ident")?.call0()?;
    main.getattr("ident")?.eq(current)
}
