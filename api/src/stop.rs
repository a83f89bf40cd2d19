//! A caller's own reason to give up a wait: asked while it sleeps, whatever it waits for.

use crate::{Error, Result};
use std::cell::Cell;
use std::ptr::NonNull;

/// Waits that nothing interrupts ask this often.
pub(crate) const LOOK_NS: u64 = 100_000_000;

type Stop = dyn FnMut() -> bool;

thread_local! {
    /// What this thread's waits ask; it outlives the call that it was installed for.
    static STOP: Cell<Option<NonNull<Stop>>> = const { Cell::new(None) };
}

/// Runs `call`. Each wait in it, on this thread, asks `stop` whenever it was woken from its sleep without having what
/// it waits for, also by a signal that the thread handles; and several times a second in any case. Until `stop` says
/// true the wait keeps its place in the queue; then it leaves that, with nothing held, and fails with
/// [`Error::Stopped`].
///
/// For hosts that must act on signals while a thread waits: an interpreter, a command. Futures are not
/// concerned, they are dropped. `stop` may call anything of this crate; a wait in it has no stop of its own.
///
/// ```
/// use sprag::{Error, Space};
///
/// let space = Space::open("mem:")?;
/// let lock = space.lock("a")?;
/// let _hold = lock.acquire()?;
/// let mut asked = 0;
/// let waited = sprag::interruptible(
///     || {
///         asked += 1;
///         asked == 2
///     },
///     || lock.acquire(),
/// );
/// assert!(matches!(waited, Err(Error::Stopped)));
/// # Ok::<(), sprag::Error>(())
/// ```
pub fn interruptible<T>(mut stop: impl FnMut() -> bool, call: impl FnOnce() -> T) -> T {
    /// Puts back what was installed before, also after a panic.
    struct Before(Option<NonNull<Stop>>);

    impl Drop for Before {
        fn drop(&mut self) {
            STOP.set(self.0);
        }
    }

    let stop: &mut (dyn FnMut() -> bool + '_) = &mut stop;
    let stop: NonNull<dyn FnMut() -> bool + '_> = NonNull::from(stop);
    // SAFETY: the two types differ in a lifetime alone. The pointer is used by `check` on this thread only, and it is
    // taken out again, by `Before`, before the closure that it points at is dropped.
    let stop: NonNull<Stop> = unsafe { std::mem::transmute(stop) };
    let _before = Before(STOP.replace(Some(stop)));
    call()
}

/// Whether this thread's waits are to ask.
pub(crate) fn is_installed() -> bool {
    STOP.get().is_some()
}

/// Asks: [`Error::Stopped`] if the wait is to end. Called with no mutex held, since the answer may take anything.
pub(crate) fn check() -> Result<()> {
    /// Installs it again once it has answered, also after a panic.
    struct Again(NonNull<Stop>);

    impl Drop for Again {
        fn drop(&mut self) {
            STOP.set(Some(self.0));
        }
    }

    let Some(stop) = STOP.take() else {
        return Ok(());
    };
    let mut again = Again(stop);
    // SAFETY: it was installed by a call of `interruptible` further up on this thread's stack, which keeps the
    // closure. It is out of the cell while it runs, so that nothing else refers to it.
    let is_over = unsafe { again.0.as_mut()() };
    if is_over { Err(Error::Stopped) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use crate::{Error, KeepAlive, Owner, Space};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread;
    use std::time::{Duration, Instant};

    type Waits<'a> = Vec<(&'a str, Box<dyn FnMut() -> Result<(), Error> + 'a>)>;

    #[test]
    fn every_kind_of_wait_stops_when_told_to_and_leaves_nothing_behind() {
        let space = Space::open("mem:").unwrap();
        let (other, owner) = (space.owner(), space.owner());
        let taken = space.lock("taken").unwrap().acquire().unwrap();
        let permits = space.semaphore("permits", 1).unwrap();
        let permit = permits.acquire(1).unwrap();
        let beneath = space.partition(space.partition_of("taken")).unwrap();
        let others = other.lock("other's").unwrap().acquire().unwrap();
        let shared = space.lock("shared").unwrap();
        let mut mine = shared.acquire_shared().unwrap();
        let theirs = shared.acquire_shared().unwrap();
        let lock = space.lock("taken").unwrap();
        let several = space.locks(["free", "taken"]).unwrap();
        let table = space.table().unwrap();
        let long = Duration::from_hours(1);

        let mut waits: Waits<'_> = vec![
            ("a lock", Box::new(|| lock.acquire().map(drop))),
            (
                "a lock, timed",
                Box::new(|| lock.acquire_timeout(long).map(drop)),
            ),
            ("a share", Box::new(|| lock.acquire_shared().map(drop))),
            ("several", Box::new(|| several.acquire().map(drop))),
            ("permits", Box::new(|| permits.acquire(1).map(drop))),
            ("a partition", Box::new(|| beneath.acquire().map(drop))),
            ("the table", Box::new(|| table.acquire().map(drop))),
            (
                "an owner's lock",
                Box::new(|| owner.lock("other's")?.acquire().map(drop)),
            ),
            (
                "several of an owner",
                Box::new(|| several.acquire_for(&owner, long).map(drop)),
            ),
            (
                "the table for an owner",
                Box::new(|| table.acquire_for(&owner, long).map(drop)),
            ),
            ("an upgrade", Box::new(|| mine.upgrade())),
        ];
        for (what, wait) in &mut waits {
            let mut asked = 0;
            let waited = super::interruptible(
                || {
                    asked += 1;
                    asked == 2
                },
                wait,
            );
            assert!(matches!(waited, Err(Error::Stopped)), "{what}: {waited:?}");
            assert_eq!(asked, 2, "{what}");
        }
        drop(waits);
        assert!(mine.is_shared() && mine.is_held());
        drop((mine, theirs));
        taken.release().unwrap();
        permit.release().unwrap();
        others.release().unwrap();
        for info in space
            .inspect("")
            .unwrap()
            .iter()
            .chain(&space.inspect_coarse().unwrap())
        {
            assert_eq!((info.holders, info.waiters), (0, 0), "{info:?}");
        }
        assert_eq!(permits.peek().unwrap().waiters, 0);
        assert!(table.try_acquire().unwrap().is_some());
    }

    #[test]
    fn who_is_behind_another_of_its_owner_stops_too() {
        fn blocked<'a>(owner: &Owner, space: &'a Space) -> crate::Hold<'a> {
            let taken = space.lock("a").unwrap().acquire().unwrap();
            let owner = owner.clone();
            std::thread::spawn(move || owner.lock("a").unwrap().acquire().map(drop));
            while space.inspect("a").unwrap()[0].waiters == 0 {
                std::thread::yield_now();
            }
            taken
        }
        let space = Space::open("mem:").unwrap();
        let owner = space.owner();
        let taken = blocked(&owner, &space);
        let lock = owner.lock("a").unwrap();
        let waited = super::interruptible(|| true, || lock.acquire());
        assert!(matches!(waited, Err(Error::Stopped)));
        drop(taken);
        assert!(lock.acquire().is_ok());
    }

    #[test]
    fn one_who_is_woken_all_the_time_is_asked_meanwhile() {
        let space = Space::open("mem:").unwrap();
        let owner = space.owner();
        let taken = space.lock("a").unwrap().acquire().unwrap();
        let is_asked = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| owner.lock("a").unwrap().acquire().map(drop));
            while space.inspect("a").unwrap()[0].waiters == 0 {
                thread::yield_now();
            }
            let busy = scope.spawn(|| {
                let other = owner.lock("b").unwrap();
                // Far longer than between two looks.
                let end = Instant::now() + Duration::from_secs(10);
                while !is_asked.load(Relaxed) && Instant::now() < end {
                    drop(other.acquire().unwrap());
                }
                is_asked.load(Relaxed)
            });
            let waited = super::interruptible(
                || {
                    is_asked.store(true, Relaxed);
                    true
                },
                || owner.lock("a").unwrap().acquire().map(drop),
            );
            assert!(matches!(waited, Err(Error::Stopped)));
            assert!(busy.join().unwrap(), "asked only once it was quiet");
            drop(taken);
        });
    }

    #[test]
    fn a_question_that_panics_leaves_the_owner_what_it_had() {
        fn panics(wait: impl FnOnce()) {
            let waited = AssertUnwindSafe(|| super::interruptible(|| panic!("as asked"), wait));
            assert!(catch_unwind(waited).is_err());
            assert!(!super::is_installed());
        }
        let space = Space::open("mem:").unwrap();
        let owner = space.owner();
        let lock = owner.lock("a").unwrap();
        let taken = space.lock("a").unwrap().acquire_shared().unwrap();
        panics(|| drop(lock.acquire()));
        let mine = lock.try_acquire_shared().unwrap().unwrap();
        panics(|| drop(mine.upgrade()));
        let again = lock.try_acquire_shared().unwrap().unwrap();
        assert_eq!(again.token(), mine.token());
        drop(taken);
        mine.upgrade().unwrap();
    }

    #[test]
    fn a_wait_that_was_stopped_counts_as_cancelled() {
        let space = Space::open("mem:").unwrap();
        let lock = space.lock("a").unwrap();
        let taken = lock.acquire().unwrap();
        let waited = super::interruptible(|| true, || lock.acquire());
        assert!(matches!(waited, Err(Error::Stopped)));
        let acquires = space.metrics().unwrap().acquires;
        let told = (
            acquires.at_once,
            acquires.after_wait,
            acquires.timed_out,
            acquires.cancelled,
        );
        assert_eq!(told, (1, 0, 0, 1));
        drop(taken);
    }

    #[test]
    fn a_question_may_wait_itself_and_is_put_again() {
        let space = Space::open("mem:").unwrap();
        let lock = space.lock("a").unwrap();
        let mut held = Some(lock.acquire().unwrap());
        held.as_mut()
            .unwrap()
            .keep_alive(KeepAlive::default())
            .unwrap();
        let mut asked = 0;
        let hold = super::interruptible(
            || {
                asked += 1;
                let short = Duration::from_millis(1);
                assert!(lock.acquire_timeout(short).unwrap().is_none());
                if asked == 2 {
                    held = None;
                }
                false
            },
            || lock.acquire(),
        );
        assert!(hold.unwrap().is_held());
        assert!(asked >= 2 && !super::is_installed());
    }
}
