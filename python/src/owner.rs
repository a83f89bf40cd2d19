//! Owners: handles whose locks are re-entrant, and whose deadlocks are found.

use crate::error::OrRaise;
use crate::lock::{Keep, Lock};
use crate::number::{ttl_of, whole_u32};
use crate::source::Source;
use crate::text::{bytes_of, names_of};
use pyo3::prelude::*;

/// Who holds, when locks are to be re-entrant and deadlocks found: an object, never a thread.
///
/// An owner that acquires a lock it already holds gets the same hold again; the lock is released with the last of
/// them. Owners that wait for each other in a circle, in whichever threads and processes they are, find that out
/// at once: the one that began to wait last gets a `DeadlockError`.
#[pyclass(frozen, weakref, module = "sprag")]
pub(crate) struct Owner {
    pub(crate) owner: sprag::Owner,
    pub(crate) space: sprag::Space,
}

#[pymethods]
impl Owner {
    /// A handle on the lock `name`, re-entrant for this owner.
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
        let lock = self.owner.lock(bytes_of("name", name)?).or_raise(py)?;
        let lock = lock.ttl(ttl_of(ttl)?).or_raise(py)?.into_owned();
        let source = Source::Owner {
            lock,
            is_shared: shared,
        };
        Ok(Lock::new(source, Keep::new(py, keep_alive, on_lost)?))
    }

    /// Several locks, as `Space.locks`; not re-entrant.
    #[pyo3(signature = (names, ttl=None, *, keep_alive=false, on_lost=None), text_signature = "($self, names, ttl=30, *, keep_alive=False, on_lost=None)")]
    fn locks(
        &self,
        py: Python<'_>,
        names: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        keep_alive: bool,
        on_lost: Option<Py<PyAny>>,
    ) -> PyResult<Lock> {
        let locks = self.space.locks(names_of(names)?).or_raise(py)?;
        let locks = locks.ttl(ttl_of(ttl)?).or_raise(py)?.into_owned();
        let source = Source::SeveralOf(locks, self.owner.clone());
        Ok(Lock::new(source, Keep::new(py, keep_alive, on_lost)?))
    }

    /// The lock of a partition, as `Space.partition`; not re-entrant.
    #[pyo3(signature = (partition, ttl=None, *, keep_alive=false, on_lost=None), text_signature = "($self, partition, ttl=30, *, keep_alive=False, on_lost=None)")]
    fn partition(
        &self,
        py: Python<'_>,
        partition: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        keep_alive: bool,
        on_lost: Option<Py<PyAny>>,
    ) -> PyResult<Lock> {
        let partition = whole_u32("partition", partition, 0, self.space.partitions() - 1)?;
        let lock = self.space.partition(partition).or_raise(py)?;
        let lock = lock.ttl(ttl_of(ttl)?).or_raise(py)?.into_owned();
        let source = Source::CoarseOf(lock, self.owner.clone());
        Ok(Lock::new(source, Keep::new(py, keep_alive, on_lost)?))
    }

    /// The lock of the table, as `Space.table`; not re-entrant.
    #[pyo3(signature = (ttl=None, *, keep_alive=false, on_lost=None), text_signature = "($self, ttl=30, *, keep_alive=False, on_lost=None)")]
    fn table(
        &self,
        py: Python<'_>,
        ttl: Option<&Bound<'_, PyAny>>,
        keep_alive: bool,
        on_lost: Option<Py<PyAny>>,
    ) -> PyResult<Lock> {
        let lock = self.space.table().or_raise(py)?;
        let lock = lock.ttl(ttl_of(ttl)?).or_raise(py)?.into_owned();
        let source = Source::CoarseOf(lock, self.owner.clone());
        Ok(Lock::new(source, Keep::new(py, keep_alive, on_lost)?))
    }
}
