//! Spaces: opened by URL, and asked for everything else.

use crate::caps::Caps;
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
use crate::metrics;
use crate::number::{permits, ttl_of, whole, whole_u32};
use crate::once::Once;
use crate::owner::Owner;
use crate::semaphore::{Concurrency, Semaphore};
use crate::source::Source;
use crate::text::{bytes_of, names_of};
use parking_lot::Mutex;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A set of named objects, opened by URL with `open`.
///
/// What is made of it (locks, limiters) keeps its session; that ends with the last of them, and what it still held
/// is then free for others.
#[pyclass(frozen, weakref, module = "sprag")]
pub(crate) struct Space {
    /// `None` once it was closed.
    space: Mutex<Option<sprag::Space>>,
    url: String,
}

/// Opens the space at `url`: `mem:`, `shm:NAME` or `shm:/path`.
///
/// Each `mem:` is a space of its own, for the threads of this process; share the object. `shm:NAME` is the file
/// `NAME.sprag` in `$SPRAG_DIR`, or else in `/dev/shm/sprag-UID`, shared by all processes of this host that may
/// open it.
///
/// - `create`: whether to create the region if there is none, or raise `PlaceError`.
/// - `group_shared`: whether the group may use the region too, mode 0660 instead of 0600.
/// - `session`: without one, it is enough to look, to break, and to release and renew by token.
/// - `share_percent`: how much of each cap of a shared region this session may fill, 1 to 100.
/// - `caps`: of the region, if this call creates it.
/// - `clock`: one that a test moves by hand; `mem:` only.
///
/// Costs some dozen system calls; a region that another process is resizing or making is waited for, for up to 10
/// s. A process that was forked from one with an open space gets `ForkedError` until it opens its own.
#[pyfunction]
#[pyo3(
    signature = (url, *, create=true, group_shared=false, session=true, share_percent=None, caps=None, clock=None),
    text_signature = "(url, *, create=True, group_shared=False, session=True, share_percent=75, caps=None, clock=None)"
)]
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
        builder = builder.share_percent(whole_u32("share_percent", percent, 1, 100)?);
    }
    if let Some(caps) = caps {
        builder = builder.caps(caps.get().caps());
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
    /// A handle on the lock `name`. Nothing is created before it is acquired; cheap to make, cheaper to keep.
    ///
    /// - `ttl`: the lease of its holds, 1 ms to 366 days. One that is not renewed ends then, whatever its holder
    ///   does.
    /// - `shared`: whether its holds share the lock with each other.
    /// - `keep_alive`: whether the lease is renewed in the background, for up to 24 hours.
    /// - `on_lost`: called with a hold once that is lost, in a thread of its own, within about 200 ms; also
    ///   without `keep_alive`, when the lease is over.
    ///
    /// Not re-entrant: a second acquire waits for the first hold. For re-entry see `owner`.
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
        Ok(Lock::new(source, Keep::new(py, keep_alive, on_lost)?))
    }

    /// Several locks, 1 to 64, acquired all at once or not at all. In whatever order they are named, such acquires
    /// never deadlock with each other. Its hold has `tokens`.
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
            Keep::new(py, keep_alive, on_lost)?,
        ))
    }

    /// The lock of a partition, of those that `partition_of` counts: it excludes the locks of all keys in it.
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
        let partition = whole_u32("partition", partition, 0, space.partitions() - 1)?;
        let lock = space.partition(partition).or_raise(py)?;
        let lock = lock.ttl(ttl_of(ttl)?).or_raise(py)?.into_owned();
        Ok(Lock::new(
            Source::Coarse(lock),
            Keep::new(py, keep_alive, on_lost)?,
        ))
    }

    /// The lock of the table: it excludes all locks of keys and of partitions.
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
            Keep::new(py, keep_alive, on_lost)?,
        ))
    }

    /// An owner, whose locks are re-entrant and whose deadlocks are found.
    fn owner(&self, py: Python<'_>) -> PyResult<Owner> {
        let space = self.space(py)?;
        Ok(Owner {
            owner: space.owner(),
            space,
        })
    }

    /// The semaphore `name`, which has `permits`: 1 to 16,777,215, each leased. That it exists with another number
    /// is found out by acquiring: `LimitDiffersError`.
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
        let (space, permits) = (self.space(py)?, self::permits(permits)?);
        let semaphore = space
            .semaphore(bytes_of("name", name)?, permits)
            .or_raise(py)?;
        let semaphore = semaphore.ttl(ttl_of(ttl)?).or_raise(py)?.into_owned();
        Ok(Semaphore::new(
            semaphore,
            Keep::new(py, keep_alive, on_lost)?,
        ))
    }

    /// The concurrency limiter `name`: of each key at most `permits` are held at once, 1 to 16,777,215.
    /// `LimitDiffersError` if it allows another number, unless `update`, which changes it for everybody.
    #[pyo3(signature = (name, permits, *, update=false))]
    fn concurrency(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        permits: &Bound<'_, PyAny>,
        update: bool,
    ) -> PyResult<Concurrency> {
        let (space, permits) = (self.space(py)?, self::permits(permits)?);
        let name = bytes_of("name", name)?;
        let limiter = if update {
            space.concurrency_updated(name, permits)
        } else {
            space.concurrency(name, permits)
        };
        let limiter = limiter.or_raise(py)?.into_owned();
        Ok(Concurrency { limiter })
    }

    /// The limiter `name`, created with `limit` if there is none. Open it once and keep it.
    ///
    /// `limit` is a text such as "100/minute", "5/10s" or "30/second;burst=5"; `burst` and `window` can be given
    /// beside it. A token bucket, unless `window` says otherwise. `LimitError` if it is no limit,
    /// `LimitDiffersError` if the limiter has another one, unless `update`, which changes it and keeps what each
    /// key has used.
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

    /// The limiter `name` with whatever limit it has; `None` if there is none.
    fn find_limiter(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<Option<Limiter>> {
        let space = self.space(py)?;
        let limiter = space.find_limiter(bytes_of("name", name)?).or_raise(py)?;
        Ok(limiter.map(|limiter| Limiter { limiter }))
    }

    /// The concurrency limiter `name` as it is; `None` if there is none.
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

    /// 2 to 6 limits that each key is under at once: all of them admit, or nothing is taken. `LimitDiffersError`
    /// if it has others.
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

    /// Checks 1 to 8 limiters of this space, each with a key and a cost, 1 if not given: all are allowed and all
    /// is taken, or nothing is.
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
        let mut decisions = Decisions::with_capacity(borrowed.len());
        for decision in space.check_all(&borrowed).or_raise(py)? {
            decisions.push(decision);
        }
        Ok(decisions)
    }

    /// The counter `name`, 0 until somebody changes it.
    fn counter(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<Counter> {
        let space = self.space(py)?;
        let counter = space
            .counter(bytes_of("name", name)?)
            .or_raise(py)?
            .into_owned();
        Ok(Counter { counter })
    }

    /// A handle on an idempotency key.
    fn once(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Once> {
        let space = self.space(py)?;
        let once = space.once(bytes_of("key", key)?).or_raise(py)?.into_owned();
        Ok(Once { once })
    }

    /// The fence `name`, created when it first admits a token. It stays for as long as the region does.
    fn fence(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<Fence> {
        let (space, name) = (self.space(py)?, bytes_of("name", name)?);
        Ok(Fence {
            fence: space.fence(name).or_raise(py)?,
            name: name.to_vec(),
        })
    }

    /// Takes the lock away from whoever holds it, and notes who did; the token that was ended, or `None` if it was
    /// not held. What the holder still writes, a fence rejects.
    fn break_lock(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let (space, name) = (self.space(py)?, bytes_of("name", name)?);
        py.detach(|| space.break_lock(name)).or_raise(py)
    }

    /// What this process did with the space since it was opened, and how full its region is. Stops nobody; some
    /// microseconds.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        metrics::metrics(py, &self.space(py)?.metrics().or_raise(py)?)
    }

    /// The last forced releases, oldest first, at most 64.
    fn breaks<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        info::breaks(py, &self.space(py)?.breaks())
    }

    /// The locks whose names begin with `prefix`, by name. Like all lists here it reads the whole table, and stops
    /// no one.
    #[pyo3(signature = (prefix=None), text_signature = "($self, prefix='')")]
    fn inspect<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        info::locks(py, &self.list(py, prefix, sprag::Space::inspect)?)
    }

    /// The locks of partitions and of the table that are held or waited for.
    fn inspect_coarse<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let space = self.space(py)?;
        let locks = py.detach(|| space.inspect_coarse()).or_raise(py)?;
        info::locks(py, &locks)
    }

    /// The semaphores whose names begin with `prefix`, by name.
    #[pyo3(signature = (prefix=None), text_signature = "($self, prefix='')")]
    fn semaphores<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        info::semaphores(py, &self.list(py, prefix, sprag::Space::semaphores)?)
    }

    /// The concurrency limiters whose names begin with `prefix`, by name, and what is held of their keys.
    #[pyo3(signature = (prefix=None), text_signature = "($self, prefix='')")]
    fn concurrency_limiters<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let limiters = self.list(py, prefix, sprag::Space::concurrency_limiters)?;
        info::concurrency_limiters(py, &limiters)
    }

    /// The limiters whose names begin with `prefix`, by name.
    #[pyo3(signature = (prefix=None), text_signature = "($self, prefix='')")]
    fn limiters<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        info::limiters(py, &self.list(py, prefix, sprag::Space::limiters)?)
    }

    /// The joint limiters whose names begin with `prefix`, by name.
    #[pyo3(signature = (prefix=None), text_signature = "($self, prefix='')")]
    fn joint_limiters<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        info::joint_limiters(py, &self.list(py, prefix, sprag::Space::joint_limiters)?)
    }

    /// The overrides of limiters whose names begin with `prefix`, by limiter and key.
    #[pyo3(signature = (prefix=None), text_signature = "($self, prefix='')")]
    fn overrides<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        info::overrides(py, &self.list(py, prefix, sprag::Space::overrides)?)
    }

    /// The counters that are not at 0 and whose names begin with `prefix`, by name.
    #[pyo3(signature = (prefix=None), text_signature = "($self, prefix='')")]
    fn counters<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        info::counters(py, &self.list(py, prefix, sprag::Space::counters)?)
    }

    /// The idempotency keys that begin with `prefix`, by name, but for new ones.
    #[pyo3(signature = (prefix=None), text_signature = "($self, prefix='')")]
    fn onces<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        info::onces(py, self.list(py, prefix, sprag::Space::onces)?)
    }

    /// The partition that a key falls into, counted from 0.
    fn partition_of(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<u32> {
        Ok(self.space(py)?.partition_of(bytes_of("key", key)?))
    }

    /// How many partitions there are: a power of two, at most 64.
    #[getter]
    fn partitions(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.space(py)?.partitions())
    }

    /// The URL that it was opened by.
    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    /// Gives the space up: all that is asked of it then is a `ClosedError`. What was made of it goes on, and keeps
    /// the session.
    fn close(&self, py: Python<'_>) {
        let space = self.space.lock().take();
        py.detach(|| drop(space));
    }

    /// Whether it was closed.
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

const OF_CHECKS: &str =
    "each check must be a tuple of a Limiter, a key and, if it is not 1, a cost";
