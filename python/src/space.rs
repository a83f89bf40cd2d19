//! Spaces: opened by URL, and asked for everything else.

use crate::clock::ManualClock;
use crate::counter::Counter;
use crate::decision::Decisions;
use crate::error::{OrRaise, plain};
use crate::fence::Fence;
use crate::info;
use crate::joint::JointLimiter;
use crate::limiter::Limiter;
use crate::limits::limit_of;
use crate::lock::{Keep, Lock};
use crate::number::{duration, whole, whole_u32};
use crate::once::Once;
use crate::owner::Owner;
use crate::semaphore::{Concurrency, Semaphore};
use crate::source::Source;
use crate::text::bytes_of;
use parking_lot::Mutex;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
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
    /// What `list` finds by the prefix of its name; the interpreter is let go meanwhile.
    fn list<T: Send>(
        &self,
        py: Python<'_>,
        prefix: Option<&Bound<'_, PyAny>>,
        list: impl FnOnce(&sprag::Space, &[u8]) -> sprag::Result<Vec<T>> + Send,
    ) -> PyResult<Vec<T>> {
        let space = self.space(py)?;
        let prefix = prefix.map_or(Ok(&b""[..]), |prefix| bytes_of("prefix", prefix))?;
        py.detach(|| list(&space, prefix)).or_raise(py)
    }

    /// The space itself, unless it was closed.
    pub(crate) fn space(&self, py: Python<'_>) -> PyResult<sprag::Space> {
        let space = self.space.lock().clone();
        space.ok_or_else(|| plain(py, "ClosedError", "the space was closed; open it again"))
    }
}

#[pymethods]
impl Space {
    #[pyo3(signature = (name, ttl=None, *, shared=false, keep_alive=false, on_lost=None), text_signature = "($self, name, ttl=30, *, shared=False, keep_alive=False, on_lost=None)")]
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
        Ok(Lock::new(source, Keep::new(keep_alive, on_lost)))
    }

    #[pyo3(signature = (names, ttl=None, *, keep_alive=false, on_lost=None), text_signature = "($self, names, ttl=30, *, keep_alive=False, on_lost=None)")]
    fn locks(
        &self,
        py: Python<'_>,
        names: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        keep_alive: bool,
        on_lost: Option<Py<PyAny>>,
    ) -> PyResult<Lock> {
        let space = self.space(py)?;
        let locks = space.locks(names_of(names)?).or_raise(py)?;
        let locks = locks.ttl(ttl_of(ttl)?).or_raise(py)?.into_owned();
        Ok(Lock::new(
            Source::Several(locks),
            Keep::new(keep_alive, on_lost),
        ))
    }

    #[pyo3(signature = (partition, ttl=None, *, keep_alive=false, on_lost=None), text_signature = "($self, partition, ttl=30, *, keep_alive=False, on_lost=None)")]
    fn partition(
        &self,
        py: Python<'_>,
        partition: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        keep_alive: bool,
        on_lost: Option<Py<PyAny>>,
    ) -> PyResult<Lock> {
        let space = self.space(py)?;
        let partition = whole_u32("partition", partition, 0)?;
        let lock = space.partition(partition).or_raise(py)?;
        let lock = lock.ttl(ttl_of(ttl)?).or_raise(py)?.into_owned();
        Ok(Lock::new(
            Source::Coarse(lock),
            Keep::new(keep_alive, on_lost),
        ))
    }

    #[pyo3(signature = (ttl=None, *, keep_alive=false, on_lost=None), text_signature = "($self, ttl=30, *, keep_alive=False, on_lost=None)")]
    fn table(
        &self,
        py: Python<'_>,
        ttl: Option<&Bound<'_, PyAny>>,
        keep_alive: bool,
        on_lost: Option<Py<PyAny>>,
    ) -> PyResult<Lock> {
        let space = self.space(py)?;
        let lock = space.table().or_raise(py)?;
        let lock = lock.ttl(ttl_of(ttl)?).or_raise(py)?.into_owned();
        Ok(Lock::new(
            Source::Coarse(lock),
            Keep::new(keep_alive, on_lost),
        ))
    }

    fn owner(&self, py: Python<'_>) -> PyResult<Owner> {
        let space = self.space(py)?;
        Ok(Owner {
            owner: space.owner(),
            space,
        })
    }

    #[pyo3(signature = (name, permits, ttl=None, *, keep_alive=false, on_lost=None), text_signature = "($self, name, permits, ttl=30, *, keep_alive=False, on_lost=None)")]
    fn semaphore(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        permits: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        keep_alive: bool,
        on_lost: Option<Py<PyAny>>,
    ) -> PyResult<Semaphore> {
        let (space, permits) = (self.space(py)?, whole_u32("permits", permits, 0)?);
        let semaphore = space
            .semaphore(bytes_of("name", name)?, permits)
            .or_raise(py)?;
        let semaphore = semaphore.ttl(ttl_of(ttl)?).or_raise(py)?.into_owned();
        Ok(Semaphore::new(semaphore, Keep::new(keep_alive, on_lost)))
    }

    #[pyo3(signature = (name, permits, *, update=false))]
    fn concurrency(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        permits: &Bound<'_, PyAny>,
        update: bool,
    ) -> PyResult<Concurrency> {
        let (space, permits) = (self.space(py)?, whole_u32("permits", permits, 0)?);
        let name = bytes_of("name", name)?;
        let limiter = if update {
            space.concurrency_updated(name, permits)
        } else {
            space.concurrency(name, permits)
        };
        let limiter = limiter.or_raise(py)?.into_owned();
        Ok(Concurrency { limiter })
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

    fn find_limiter(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<Option<Limiter>> {
        let space = self.space(py)?;
        let limiter = space.find_limiter(bytes_of("name", name)?).or_raise(py)?;
        Ok(limiter.map(|limiter| Limiter { limiter }))
    }

    fn find_concurrency(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Concurrency>> {
        let space = self.space(py)?;
        let limiter = space
            .find_concurrency(bytes_of("name", name)?)
            .or_raise(py)?;
        let limiter = limiter.map(sprag::Concurrency::into_owned);
        Ok(limiter.map(|limiter| Concurrency { limiter }))
    }

    fn joint_limiter(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        limits: &Bound<'_, PyAny>,
    ) -> PyResult<JointLimiter> {
        let (space, name) = (self.space(py)?, bytes_of("name", name)?);
        let limits: Vec<String> = limits.extract()?;
        let limiter = space.joint_limiter(name, &limits).or_raise(py)?;
        Ok(JointLimiter { limiter })
    }

    /// Several limiters in one call: each is given with its key, and its cost if that is not 1.
    fn check_all(&self, py: Python<'_>, checks: &Bound<'_, PyAny>) -> PyResult<Decisions> {
        let space = self.space(py)?;
        let mut asked = Vec::new();
        for check in checks.try_iter()? {
            let check = check?;
            let Ok(check) = check.cast_into::<PyTuple>() else {
                return Err(PyTypeError::new_err(OF_CHECKS));
            };
            let (limiter, key, cost) = match check.len() {
                2 => (check.get_item(0)?, check.get_item(1)?, None),
                3 => (
                    check.get_item(0)?,
                    check.get_item(1)?,
                    Some(check.get_item(2)?),
                ),
                _ => return Err(PyTypeError::new_err(OF_CHECKS)),
            };
            let Ok(limiter) = limiter.cast_into::<Limiter>() else {
                return Err(PyTypeError::new_err(OF_CHECKS));
            };
            asked.push((limiter, key, whole("cost", cost.as_ref(), 1)?));
        }
        let mut borrowed = Vec::with_capacity(asked.len());
        for (limiter, key, cost) in &asked {
            borrowed.push((&limiter.get().limiter, bytes_of("key", key)?, *cost));
        }
        let decisions = space.check_all(&borrowed).or_raise(py)?;
        Ok(Decisions::new(decisions.into_iter().collect()))
    }

    fn counter(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<Counter> {
        let space = self.space(py)?;
        let counter = space
            .counter(bytes_of("name", name)?)
            .or_raise(py)?
            .into_owned();
        Ok(Counter { counter })
    }

    fn once(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Once> {
        let space = self.space(py)?;
        let once = space.once(bytes_of("key", key)?).or_raise(py)?.into_owned();
        Ok(Once { once })
    }

    fn fence(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<Fence> {
        let (space, name) = (self.space(py)?, bytes_of("name", name)?);
        Ok(Fence {
            fence: space.fence(name).or_raise(py)?,
            name: name.to_vec(),
        })
    }

    /// The token of the hold that was ended, if there was one.
    fn break_lock(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let (space, name) = (self.space(py)?, bytes_of("name", name)?);
        py.detach(|| space.break_lock(name)).or_raise(py)
    }

    fn breaks<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        info::breaks(py, &self.space(py)?.breaks())
    }

    #[pyo3(signature = (prefix=None), text_signature = "($self, prefix='')")]
    fn inspect<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        info::locks(py, &self.list(py, prefix, sprag::Space::inspect)?)
    }

    fn inspect_coarse<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let space = self.space(py)?;
        let locks = py.detach(|| space.inspect_coarse()).or_raise(py)?;
        info::locks(py, &locks)
    }

    #[pyo3(signature = (prefix=None), text_signature = "($self, prefix='')")]
    fn semaphores<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        info::semaphores(py, &self.list(py, prefix, sprag::Space::semaphores)?)
    }

    #[pyo3(signature = (prefix=None), text_signature = "($self, prefix='')")]
    fn concurrency_limiters<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let limiters = self.list(py, prefix, sprag::Space::concurrency_limiters)?;
        info::concurrency_limiters(py, &limiters)
    }

    #[pyo3(signature = (prefix=None), text_signature = "($self, prefix='')")]
    fn limiters<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        info::limiters(py, &self.list(py, prefix, sprag::Space::limiters)?)
    }

    #[pyo3(signature = (prefix=None), text_signature = "($self, prefix='')")]
    fn joint_limiters<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        info::joint_limiters(py, &self.list(py, prefix, sprag::Space::joint_limiters)?)
    }

    #[pyo3(signature = (prefix=None), text_signature = "($self, prefix='')")]
    fn overrides<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        info::overrides(py, &self.list(py, prefix, sprag::Space::overrides)?)
    }

    #[pyo3(signature = (prefix=None), text_signature = "($self, prefix='')")]
    fn counters<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        info::counters(py, &self.list(py, prefix, sprag::Space::counters)?)
    }

    #[pyo3(signature = (prefix=None), text_signature = "($self, prefix='')")]
    fn onces<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        info::onces(py, self.list(py, prefix, sprag::Space::onces)?)
    }

    fn partition_of(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<u32> {
        Ok(self.space(py)?.partition_of(bytes_of("key", key)?))
    }

    #[getter]
    fn partitions(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.space(py)?.partitions())
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

/// Names of several locks.
pub(crate) fn names_of(names: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<u8>>> {
    // One name would be a name for each of its letters.
    if names.is_instance_of::<PyString>() || names.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err("names must be several names, not one"));
    }
    let names = names.try_iter()?;
    names
        .map(|name| Ok(bytes_of("name", &name?)?.to_vec()))
        .collect()
}

const OF_CHECKS: &str =
    "each check must be a tuple of a Limiter, a key and, if it is not 1, a cost";

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
