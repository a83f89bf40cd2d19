//! What a new region is to have room for.

use crate::number::whole_u32;
use pyo3::prelude::*;

/// What a region that is created has room for; what is not said keeps its default.
#[pyclass(frozen, module = "sprag")]
pub(crate) struct Caps {
    caps: sprag::Caps,
}

impl Caps {
    pub(crate) fn caps(&self) -> sprag::Caps {
        self.caps
    }
}

#[pymethods]
impl Caps {
    #[new]
    #[pyo3(signature = (
        *, objects=None, limiter_keys=None, joint_keys=None, sessions=None, waiters=None, permits=None, key_chunks=None
    ))]
    /// - `objects`: locks, semaphores, fences, counters, limiter names, overrides, keys of concurrency limiters
    ///   and onces together: 1 to 2^26; 65,536 if not said.
    /// - `limiter_keys`: keys of all limiters together: 1 to 2^28; 262,144.
    /// - `joint_keys`: keys of all joint limiters together: 1 to 2^26; 65,536.
    /// - `sessions`: open spaces at one time: 1 to 4,095; 1,024.
    /// - `waiters`: waits at one time: 1 to 65,536; 4,096.
    /// - `permits`: shared holds and holds of semaphores at one time: 1 to 65,536; 8,192.
    /// - `key_chunks`: chunks of 48 bytes for long names and results: 1 to 2^28; 262,144.
    fn new(
        objects: Option<&Bound<'_, PyAny>>,
        limiter_keys: Option<&Bound<'_, PyAny>>,
        joint_keys: Option<&Bound<'_, PyAny>>,
        sessions: Option<&Bound<'_, PyAny>>,
        waiters: Option<&Bound<'_, PyAny>>,
        permits: Option<&Bound<'_, PyAny>>,
        key_chunks: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut caps = sprag::Caps::default();
        for (cap, what, value, max) in [
            (&mut caps.objects, "objects", objects, 1 << 26),
            (
                &mut caps.limiter_keys,
                "limiter_keys",
                limiter_keys,
                1 << 28,
            ),
            (&mut caps.joint_keys, "joint_keys", joint_keys, 1 << 26),
            (&mut caps.sessions, "sessions", sessions, 4_095),
            (&mut caps.waiters, "waiters", waiters, 1 << 16),
            (&mut caps.permits, "permits", permits, 1 << 16),
            (&mut caps.key_chunks, "key_chunks", key_chunks, 1 << 28),
        ] {
            if let Some(value) = value {
                *cap = whole_u32(what, value, 1, max)?;
            }
        }
        Ok(Self { caps })
    }

    fn __repr__(&self) -> String {
        let sprag::Caps {
            objects,
            limiter_keys,
            joint_keys,
            sessions,
            waiters,
            permits,
            key_chunks,
        } = self.caps;
        format!(
            "sprag.Caps(objects={objects}, limiter_keys={limiter_keys}, joint_keys={joint_keys}, \
             sessions={sessions}, waiters={waiters}, permits={permits}, key_chunks={key_chunks})"
        )
    }
}
