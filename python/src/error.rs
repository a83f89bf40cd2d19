//! From the library's errors to Python's: which class, and what it carries.
//!
//! The classes are written in Python, in `sprag/_errors.py`; they keep every keyword that they are given as an
//! attribute.

use crate::number::seconds;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule};
use sprag::{EngineError, Error};

/// The module of the classes.
fn classes(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || {
        PyModule::import(py, "sprag._errors").map(Bound::unbind)
    })?;
    Ok(module.bind(py))
}

/// An error on its way to Python: its class, its text and its attributes.
struct Raised<'py> {
    class: &'static str,
    text: String,
    details: Bound<'py, PyDict>,
}

impl<'py> Raised<'py> {
    fn new(py: Python<'py>, class: &'static str, text: &impl ToString) -> Self {
        Self {
            class,
            text: text.to_string(),
            details: PyDict::new(py),
        }
    }

    fn with(self, name: &str, value: impl IntoPyObjectExt<'py>) -> PyResult<Self> {
        self.details
            .set_item(name, value.into_py_any(self.details.py())?)?;
        Ok(self)
    }

    fn of_class(mut self, class: &'static str) -> Self {
        self.class = class;
        self
    }

    fn bounds(
        self,
        argument: &str,
        value: impl IntoPyObjectExt<'py>,
        min: impl IntoPyObjectExt<'py>,
        max: impl IntoPyObjectExt<'py>,
    ) -> PyResult<Self> {
        self.of_class("BoundsError")
            .with("argument", argument)?
            .with("value", value)?
            .with("minimum", min)?
            .with("maximum", max)
    }

    fn finish(self) -> PyResult<PyErr> {
        let class = classes(self.details.py())?.getattr(self.class)?;
        let error = class.call((self.text,), Some(&self.details))?;
        Ok(PyErr::from_value(error))
    }
}

/// Turns a result of the library's into one of Python's.
pub(crate) trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for sprag::Result<T> {
    #[inline(always)]
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        match self {
            Ok(value) => Ok(value),
            Err(error) => Err(raised(py, &error)),
        }
    }
}

/// The exception for an error of the library's.
#[cold]
#[inline(never)]
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    of(py, error)
        .and_then(Raised::finish)
        .unwrap_or_else(|failed| failed)
}

/// The exception of a class that carries nothing but what it says.
#[cold]
pub(crate) fn plain(py: Python<'_>, class: &'static str, text: &str) -> PyErr {
    Raised::new(py, class, &text)
        .finish()
        .unwrap_or_else(|failed| failed)
}

/// That a hold or an attempt is over, by its own holder.
#[cold]
pub(crate) fn released(py: Python<'_>, what: &str, token: u64) -> PyErr {
    let text = format!("the {what} with token {token} was given up already");
    Raised::new(py, "ReleasedError", &text)
        .with("token", token)
        .and_then(Raised::finish)
        .unwrap_or_else(|failed| failed)
}

/// That an argument is out of its bounds.
#[cold]
pub(crate) fn bounds_error<'py, N>(what: &str, value: &Bound<'py, PyAny>, min: N, max: N) -> PyErr
where
    N: IntoPyObjectExt<'py> + std::fmt::Display,
{
    // Python refuses to write an int of thousands of digits.
    let given = value.str();
    let given = given.map_or_else(
        |_| "a number of too many digits".to_owned(),
        |given| given.to_string(),
    );
    let text = format!("{what} is {given}; it must be {min} to {max}");
    Raised::new(value.py(), "BoundsError", &text)
        .bounds(what, value, min, max)
        .and_then(Raised::finish)
        .unwrap_or_else(|failed| failed)
}

fn of<'py>(py: Python<'py>, error: &Error) -> PyResult<Raised<'py>> {
    let raised = |class| Raised::new(py, class, error);
    match error {
        Error::Engine(engine) => of_engine(py, engine),
        Error::Place(_) => Ok(raised("PlaceError")),
        Error::Host(_) | Error::Thread { .. } => Ok(raised("HostError")),
        Error::Limit(_) => Ok(raised("LimitError")),
        Error::Stale { fence, stale } => raised("StaleError")
            .with("fence", fence.as_str())?
            .with("token", stale.token)?
            .with("highest", stale.highest),
        Error::Forked => Ok(raised("ForkedError")),
        Error::NoSession => Ok(raised("NoSessionError")),
        Error::Lost { lock, token } => raised("LostError")
            .with("name", lock.as_deref())?
            .with("token", *token),
        Error::AttemptLost { once, token } => raised("LostError")
            .with("name", once.as_str())?
            .with("token", *token),
        Error::UpgradeConflict { lock } => {
            raised("UpgradeConflictError").with("name", lock.as_deref())
        }
        Error::Deadlock { deadlock } => {
            let waits = deadlock.waits.iter().map(|wait| {
                let pid = wait.process.map(|process| process.pid);
                (crate::text::told(py, &wait.lock), pid)
            });
            raised("DeadlockError").with("waits", waits.collect::<Vec<_>>())
        }
        Error::OwnerShares { lock } => raised("OwnerSharesError").with("name", lock.as_str()),
        Error::Duration {
            what,
            value,
            min,
            max,
        } => raised("BoundsError").bounds(what, seconds(*value), seconds(*min), seconds(*max)),
        Error::NotHere { .. } => Ok(raised("UnsupportedError")),
        Error::OtherSpace { limiter } => raised("OtherSpaceError").with("name", limiter.as_str()),
        // What the caller's own check raised takes this one's place.
        _ => Ok(raised("Error")),
    }
}

fn of_engine<'py>(py: Python<'py>, error: &EngineError) -> PyResult<Raised<'py>> {
    let raised = |class| Raised::new(py, class, error);
    match error {
        EngineError::NameLength { what, len, max } => {
            raised("BoundsError").bounds(what, *len, 1, *max)
        }
        EngineError::OutOfRange {
            what,
            value,
            min,
            max,
        } => raised("BoundsError").bounds(what, *value, *min, *max),
        EngineError::CounterOverflow { value, delta, .. } => raised("CounterOverflowError")
            .with("argument", "delta")?
            .with("value", *delta)?
            .with("minimum", i64::MIN.saturating_sub(*value).min(0))?
            .with("maximum", i64::MAX.saturating_sub(*value).max(0))?
            .with("number", *value),
        EngineError::NoBounds { min, max } => {
            raised("BoundsError").bounds("minimum", *min, i64::MIN, *max)
        }
        EngineError::Full { what, cap } => {
            raised("FullError").with("what", *what)?.with("cap", *cap)
        }
        EngineError::ShareExceeded { what, used } => {
            raised("FullError").with("what", *what)?.with("used", *used)
        }
        EngineError::NoSpace { source } => raised("FullError").with("errno", source.raw_os_error()),
        EngineError::LimitDiffers {
            limiter,
            existing,
            asked,
        } => {
            let text = format!(
                "the limiter {limiter} exists as {existing} and was asked for as {asked}; open it with the same \
                 limit, or change it with update=True"
            );
            differs(
                Raised::new(py, "LimitDiffersError", &text),
                limiter,
                existing.as_str(),
                asked.as_str(),
            )
        }
        EngineError::JointLimitsDiffer {
            limiter,
            existing,
            asked,
        } => differs(
            raised("LimitDiffersError"),
            limiter,
            existing.as_str(),
            asked.as_str(),
        ),
        EngineError::CapacityDiffers {
            semaphore,
            existing,
            asked,
        } => differs(raised("LimitDiffersError"), semaphore, *existing, *asked),
        EngineError::ConcurrencyDiffers {
            limiter,
            existing,
            asked,
        } => {
            let text = format!(
                "the limiter {limiter} allows {existing} at once of each key and was opened with {asked}; open it \
                 with the same number, or change it with update=True"
            );
            differs(
                Raised::new(py, "LimitDiffersError", &text),
                limiter,
                *existing,
                *asked,
            )
        }
        EngineError::AboveCapacity {
            limiter,
            capacity,
            asked,
        } => {
            let text = format!(
                "the limiter {limiter} allows {capacity} at once of each key, so {asked} can never be had; ask for \
                 fewer, or raise it with update=True"
            );
            Raised::new(py, "BoundsError", &text).bounds("permits", *asked, 1, *capacity)
        }
        EngineError::LimiterGone { limiter } => {
            raised("LimiterGoneError").with("name", limiter.as_str())
        }
        EngineError::NotALock { .. }
        | EngineError::NoReservations { .. }
        | EngineError::Unsupported { .. } => Ok(raised("UnsupportedError")),
        EngineError::Replaced { .. } | EngineError::SessionLost { .. } => {
            Ok(raised("ReplacedError"))
        }
        EngineError::Damaged { .. } | EngineError::TokensExhausted { .. } => {
            Ok(raised("DamagedError"))
        }
        EngineError::NotARegion { path, .. }
        | EngineError::Incompatible { path, .. }
        | EngineError::NotFound { path }
        | EngineError::InUse { path, .. }
        | EngineError::TokensAhead { path, .. }
        | EngineError::Permission { path, .. } => {
            raised("PlaceError").with("path", path.as_os_str())
        }
        EngineError::Io { path, source, .. } => raised("PlaceError")
            .with("path", path.as_os_str())?
            .with("errno", source.raw_os_error()),
        EngineError::NoKernelLock { source } => {
            raised("PlaceError").with("errno", source.raw_os_error())
        }
        EngineError::Contended { .. } => Ok(raised("PlaceError")),
        _ => Ok(raised("Error")),
    }
}

fn differs<'py>(
    raised: Raised<'py>,
    name: &str,
    existing: impl IntoPyObjectExt<'py>,
    asked: impl IntoPyObjectExt<'py>,
) -> PyResult<Raised<'py>> {
    raised
        .with("name", name)?
        .with("existing", existing)?
        .with("asked", asked)
}
