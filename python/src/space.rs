//! Spaces: opened by URL, and asked for everything else.

use crate::clock::ManualClock;
use crate::error::{OrRaise, plain};
use crate::limiter::Limiter;
use crate::limits::limit_of;
use crate::lock::{Keep, Lock};
use crate::number::{duration, whole_u32};
use crate::source::Source;
use crate::text::bytes_of;
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::time::Duration;

/// A set of named objects, opened by URL.
#[pyclass(frozen, weakref, module = "sprag")]
pub(crate) struct Space {
    /// `None` once it was closed.
    space: Mutex<Option<sprag::Space>>,
    url: String,
}

/// Opens the space at `url`.
#[pyfunction]
#[pyo3(signature = (url, *, create=true, group_shared=false, session=true, share_percent=None, caps=None, clock=None))]
#[expect(clippy::too_many_arguments, reason = "each is an option by its name")]
#[expect(
    clippy::fn_params_excessive_bools,
    reason = "each is an option by its name"
)]
pub(crate) fn open(
    py: Python<'_>,
    url: &str,
    create: bool,
    group_shared: bool,
    session: bool,
    share_percent: Option<&Bound<'_, PyAny>>,
    caps: Option<&Bound<'_, Caps>>,
    clock: Option<&Bound<'_, ManualClock>>,
) -> PyResult<Space> {
    let mut builder = sprag::Space::builder()
        .create(create)
        .group_shared(group_shared);
    if !session {
        builder = builder.without_session();
    }
    if let Some(percent) = share_percent {
        builder = builder.share_percent(whole_u32("share_percent", percent, 1)?);
    }
    if let Some(caps) = caps {
        builder = builder.caps(caps.get().caps);
    }
    if let Some(clock) = clock {
        builder = builder.clock(&clock.get().clock);
    }
    let space = py.detach(|| builder.open(url)).or_raise(py)?;
    Ok(Space {
        space: Mutex::new(Some(space)),
        url: url.to_owned(),
    })
}

impl Space {
    /// The space itself, unless it was closed.
    pub(crate) fn space(&self, py: Python<'_>) -> PyResult<sprag::Space> {
        let space = self.space.lock().clone();
        space.ok_or_else(|| plain(py, "ClosedError", "the space was closed; open it again"))
    }
}

#[pymethods]
impl Space {
    #[pyo3(signature = (name, ttl=None, *, shared=false, keep_alive=false, on_lost=None))]
    fn lock(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        shared: bool,
        keep_alive: bool,
        on_lost: Option<Py<PyAny>>,
    ) -> PyResult<Lock> {
        let space = self.space(py)?;
        let lock = space.lock(bytes_of("name", name)?).or_raise(py)?;
        let lock = lock.ttl(ttl_of(ttl)?).or_raise(py)?.into_owned();
        let source = Source::Lock {
            lock,
            is_shared: shared,
        };
        let keep = Keep {
            is_alive: keep_alive,
            on_lost,
        };
        Ok(Lock::new(source, keep))
    }

    #[pyo3(signature = (name, limit, burst=None, *, window=None, update=false))]
    fn limiter(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        limit: &str,
        burst: Option<&Bound<'_, PyAny>>,
        window: Option<&str>,
        update: bool,
    ) -> PyResult<Limiter> {
        let space = self.space(py)?;
        let (name, limit) = (bytes_of("name", name)?, limit_of(limit, burst, window)?);
        let limiter = if update {
            // A change looks at every key of the region.
            py.detach(|| space.limiter_updated(name, &limit))
        } else {
            space.limiter(name, &limit)
        };
        limiter.or_raise(py).map(|limiter| Limiter { limiter })
    }

    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    fn close(&self, py: Python<'_>) {
        let space = self.space.lock().take();
        py.detach(|| drop(space));
    }

    #[getter]
    fn closed(&self) -> bool {
        self.space.lock().is_none()
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
    ) {
        let _ = (kind, error, trace);
        self.close(py);
    }

    fn __repr__(&self) -> String {
        let closed = if self.closed() { " closed" } else { "" };
        format!("<sprag.Space {}{closed}>", self.url)
    }
}

/// The lease of what is acquired: 30 s if not said otherwise.
pub(crate) fn ttl_of(ttl: Option<&Bound<'_, PyAny>>) -> PyResult<Duration> {
    ttl.map_or(Ok(Duration::from_secs(30)), |ttl| duration("ttl", ttl))
}

/// Caps of a region that is created.
#[pyclass(frozen, module = "sprag")]
pub(crate) struct Caps {
    caps: sprag::Caps,
}

#[pymethods]
impl Caps {
    #[new]
    #[pyo3(signature = (
        *, objects=None, limiter_keys=None, joint_keys=None, sessions=None, waiters=None, permits=None, key_chunks=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a cap by its name")]
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
        for (cap, what, value) in [
            (&mut caps.objects, "objects", objects),
            (&mut caps.limiter_keys, "limiter_keys", limiter_keys),
            (&mut caps.joint_keys, "joint_keys", joint_keys),
            (&mut caps.sessions, "sessions", sessions),
            (&mut caps.waiters, "waiters", waiters),
            (&mut caps.permits, "permits", permits),
            (&mut caps.key_chunks, "key_chunks", key_chunks),
        ] {
            if let Some(value) = value {
                *cap = whole_u32(what, value, 1)?;
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
