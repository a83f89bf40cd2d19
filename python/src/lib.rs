//! The compiled half of the Python package `sprag`: the nouns of the library as Python's objects.
//!
//! One file is one noun; `source` is what can be acquired and `wait` how a thread waits for it. What users see is
//! described in `sprag/_sprag.pyi`. Waits let the interpreter go, what takes nanoseconds doesn't.

mod acquire;
mod caps;
mod clock;
mod counter;
mod decision;
mod entered;
mod error;
mod fence;
mod hold;
mod info;
mod joint;
mod limiter;
mod limits;
mod lock;
mod lost;
mod metrics;
mod number;
mod once;
mod owner;
mod reactor;
mod semaphore;
mod source;
mod space;
mod text;
mod wait;

use pyo3::prelude::*;

/// The module `sprag._sprag`.
#[pymodule(gil_used = false)]
mod _sprag {
    #[pymodule_export]
    use crate::acquire::{Acquire, Completed};
    #[pymodule_export]
    use crate::caps::Caps;
    #[pymodule_export]
    use crate::clock::ManualClock;
    #[pymodule_export]
    use crate::counter::{Counter, StripedCounter};
    #[pymodule_export]
    use crate::decision::{Decision, Decisions};
    #[pymodule_export]
    use crate::fence::Fence;
    #[pymodule_export]
    use crate::hold::Hold;
    #[pymodule_export]
    use crate::joint::{JointDecision, JointLimiter};
    #[pymodule_export]
    use crate::limiter::Limiter;
    #[pymodule_export]
    use crate::lock::Lock;
    #[pymodule_export]
    use crate::lost::LostQueue;
    #[pymodule_export]
    use crate::once::{Attempt, Done, InProgress, Once, Unfinished};
    #[pymodule_export]
    use crate::owner::Owner;
    #[pymodule_export]
    use crate::reactor::Reactor;
    #[pymodule_export]
    use crate::semaphore::{Concurrency, Semaphore};
    #[pymodule_export]
    use crate::space::{Space, open};

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "as Python packages name it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
