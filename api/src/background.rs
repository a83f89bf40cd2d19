//! The one thread of a space: renews leases that asked for it and wakes futures that wait.
//!
//! It starts with the first of either and ends with the last, at once: whoever ends the last rings, since
//! the thread keeps the space open for as long as it runs. It sleeps on the session's doorbell,
//! which whoever frees a lock rings for a waiting future, until the next lease is due or the next look.

use crate::hold::KeepAlive;
use crate::metrics::Seldom;
use crate::space::Inner;
use crate::wait::{Granted, Want};
use crate::{Error, Result};
use parking_lot::Mutex;
use sprag_core::lock::{Grant, Renewed};
use sprag_core::waiter::{PROBE_NS, Poll, Sleeper, Ticket};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;

/// A lease is renewed when this part of it is left: two more tries fit before it ends.
const RENEW_AT: u64 = 3;
/// Holds are looked at this often, so that one taken away by force is told of long before its renewal.
const LOOK_NS: u64 = 200_000_000;

#[derive(Default)]
pub(crate) struct Background {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_running: bool,
    /// Whether the thread looks again within [`PROBE_NS`], rather than for the leases.
    is_probing: bool,
    /// The last number given to a lease or to a future's wait.
    last_id: u64,
    leases: Vec<Renewal>,
    /// The futures that asked and were not woken since, by their waits.
    futures: HashMap<u64, Asked>,
    /// When all of those are woken, to look by themselves, in region time.
    look_at_ns: u64,
    /// Futures that wait, asked since or not: the thread must be there when one that was woken asks again.
    waits: usize,
}

impl State {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// The wakers of those whose turn it may be, and now and then of all.
    fn take_woken(&mut self, inner: &Inner, now_ns: u64) -> Vec<Waker> {
        // A clock moved by hand may have come to any deadline.
        let is_look_due = now_ns >= self.look_at_ns || inner.clock.is_manual();
        if is_look_due {
            self.look_at_ns = now_ns.saturating_add(PROBE_NS);
        }
        // Whoever hands on raises the signal, and then the bell. Acquire, both times: whose bell was heard, its
        // signal is seen.
        let woken = self.futures.extract_if(|_, asked| {
            is_look_due || inner.engine.signal_of(asked.slot).get() != asked.seen
        });
        woken.map(|(_, asked)| asked.waker).collect()
    }
}

/// A future that waits to be woken.
struct Asked {
    waker: Waker,
    /// Its place in the queue, and what the signal of that was before it looked.
    slot: u32,
    seen: u32,
}

/// A hold that is kept alive.
struct Renewal {
    id: u64,
    grant: Grant,
    lease_ns: u64,
    /// When it is next renewed.
    due_ns: u64,
    /// When renewing stops.
    until_ns: u64,
    deadline_ns: Arc<AtomicU64>,
    on_lost: Option<Arc<dyn Fn() + Send + Sync>>,
}

/// A hold that the background keeps alive; dropping it stops that.
pub(crate) struct Kept {
    id: u64,
    deadline_ns: Arc<AtomicU64>,
    inner: Weak<Inner>,
}

impl Kept {
    pub(crate) fn deadline_ns(&self) -> u64 {
        // Relaxed: one number, compared with a clock.
        self.deadline_ns.load(Ordering::Relaxed)
    }

    /// That the holder found the hold lost.
    pub(crate) fn note_loss(&self, inner: &Inner) {
        note_loss(inner, &self.deadline_ns);
    }

    /// Has the engine `change` the hold's grant for another, with `grant_of` the outcome; the same lease goes on
    /// with that. `None` if it cannot, or the background found the hold lost.
    pub(crate) fn exchange<T, E>(
        &self,
        inner: &Inner,
        change: impl FnOnce() -> Result<Option<T>, E>,
        grant_of: impl FnOnce(&T) -> Grant,
    ) -> Result<Option<T>, E> {
        // Under the lock, so that the background does not look for the one before, and find it lost.
        let mut state = inner.background.state.lock();
        let Some(lease) = state.leases.iter_mut().find(|lease| lease.id == self.id) else {
            return Ok(None);
        };
        let changed = change()?;
        if let Some(changed) = &changed {
            lease.grant = grant_of(changed);
        }
        Ok(changed)
    }

    /// Goes on with another grant of the same hold, and its deadline. [`Error::Lost`] if the background found
    /// the hold lost meanwhile.
    pub(crate) fn replace(&self, inner: &Inner, grant: Grant, deadline_ns: u64) -> Result<()> {
        let mut state = inner.background.state.lock();
        let Some(lease) = state.leases.iter_mut().find(|lease| lease.id == self.id) else {
            return Err(Error::lost(None, grant.token));
        };
        lease.grant = grant;
        self.deadline_ns.store(deadline_ns, Ordering::Relaxed);
        lease.due_ns = deadline_ns.saturating_sub(lease.lease_ns - lease.lease_ns / RENEW_AT);
        drop(state);
        ring(inner);
        Ok(())
    }

    /// Renews the hold on its holder's behalf, with a length that the background goes on with. Not one that the
    /// background found lost, though the engine may have it for a moment longer.
    pub(crate) fn renew(&self, inner: &Inner, grant: &Grant, lease_ns: u64) -> Result<Renewed> {
        // Under the lock, so that no renewal of the background's comes between the engine's word and
        // the deadline told here.
        let mut state = inner.background.state.lock();
        let Some(lease) = state.leases.iter_mut().find(|lease| lease.id == self.id) else {
            return Ok(Renewed::NotHeld);
        };
        let now_ns = inner.precise_ns();
        let renewed = inner.engine.renew(grant, now_ns, lease_ns)?;
        if let Renewed::Until(_) = renewed {
            let deadline_ns = now_ns.saturating_add(lease_ns);
            self.deadline_ns.store(deadline_ns, Ordering::Relaxed);
            lease.lease_ns = lease_ns;
            lease.due_ns = now_ns.saturating_add(lease_ns / RENEW_AT);
            drop(state);
            ring(inner);
        }
        Ok(renewed)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.upgrade()
            && inner.check_process().is_ok()
        {
            let mut state = inner.background.state.lock();
            let found = state.leases.iter().position(|lease| lease.id == self.id);
            let lease = found.map(|at| state.leases.swap_remove(at));
            drop(state);
            // With its callback, whose captures may have a hold of their own to drop.
            drop(lease);
            ring(&inner);
        }
    }
}

fn ring(inner: &Inner) {
    let bell = inner.engine.doorbell(inner.session);
    bell.raise();
    inner.wake_all(bell);
}

impl Background {
    pub(crate) fn keep(
        &self,
        inner: &Arc<Inner>,
        grant: Grant,
        deadline: Arc<AtomicU64>,
        lease_ns: u64,
        options: KeepAlive,
    ) -> Result<Kept> {
        let at_most_ns = u64::try_from(options.at_most.as_nanos()).unwrap_or(u64::MAX);
        let now_ns = inner.precise_ns();
        // Relaxed: one number, compared with a clock.
        let deadline_ns = deadline.load(Ordering::Relaxed);
        let mut state = self.state.lock();
        Self::start(inner, &mut state)?;
        let id = state.next_id();
        state.leases.push(Renewal {
            id,
            grant,
            lease_ns,
            due_ns: deadline_ns.saturating_sub(lease_ns - lease_ns / RENEW_AT),
            until_ns: now_ns.saturating_add(at_most_ns),
            deadline_ns: deadline.clone(),
            on_lost: options.on_lost,
        });
        drop(state);
        ring(inner);
        Ok(Kept {
            id,
            deadline_ns: deadline,
            inner: Arc::downgrade(inner),
        })
    }

    fn start(inner: &Arc<Inner>, state: &mut State) -> Result<()> {
        if state.is_running {
            return Ok(());
        }
        let weak = Arc::downgrade(inner);
        std::thread::Builder::new()
            .name("sprag".to_owned())
            .spawn(move || run(&weak))
            .map_err(|source| Error::Thread { source })?;
        state.is_running = true;
        Ok(())
    }
}

fn run(space: &Weak<Inner>) {
    // The space is held only while something is to be done, and let go before sleeping would be
    // better still; but the doorbell lies in its memory, so it is held while there is work at all.
    while let Some(inner) = space.upgrade() {
        let bell = inner.engine.doorbell(inner.session);
        let heard = bell.get();
        let now_ns = inner.precise_ns();
        let mut lost = Vec::new();
        let mut state = inner.background.state.lock();
        let wakers = state.take_woken(&inner, now_ns);
        let is_in_place = state.leases.is_empty() || inner.check_in_place().is_ok();
        state.leases.retain_mut(|lease| {
            let is_kept = is_in_place && keep(&inner, lease, now_ns);
            if !is_kept {
                note_loss(&inner, &lease.deadline_ns);
                lost.extend(lease.on_lost.take());
            }
            is_kept
        });
        let next_ns = state.leases.iter().map(|lease| lease.due_ns).min();
        let is_waiting = !wakers.is_empty() || !state.futures.is_empty();
        let look_at_ns = state.look_at_ns;
        state.is_running = state.waits > 0 || next_ns.is_some();
        state.is_probing = is_waiting || next_ns.is_none();
        let is_over = !state.is_running;
        drop(state);
        // A waker or a callback that panics must not end the renewal of the others.
        for waker in wakers {
            let _ = catch_unwind(AssertUnwindSafe(move || waker.wake()));
        }
        for on_lost in lost {
            let _ = catch_unwind(AssertUnwindSafe(move || on_lost()));
        }
        if is_over {
            return;
        }
        let mut sleep_ns = next_ns.map_or(PROBE_NS, |next_ns| {
            next_ns.saturating_sub(now_ns).min(LOOK_NS)
        });
        if is_waiting {
            sleep_ns = sleep_ns.min(look_at_ns.saturating_sub(now_ns));
        }
        inner.sleep_on(bell, heard, sleep_ns);
    }
}

/// Has a loss show in the hold as well, and counts it unless that was done before. Relaxed: of all who find the same
/// loss, one exchanges the deadline.
fn note_loss(inner: &Inner, deadline_ns: &AtomicU64) {
    if deadline_ns.swap(0, Ordering::Relaxed) != 0 {
        inner.counts.seldom(Seldom::Lost);
    }
}

/// Looks at a hold, and renews its lease if that is due; `false` when it is lost.
fn keep(inner: &Inner, lease: &mut Renewal, now_ns: u64) -> bool {
    if !inner.engine.is_held(&lease.grant, now_ns) {
        return false;
    }
    if now_ns < lease.due_ns {
        return true;
    }
    if now_ns >= lease.until_ns {
        // Asked for: the hold now ends with its lease, by the holder's own clock.
        lease.due_ns = lease.deadline_ns.load(Ordering::Relaxed);
        return now_ns < lease.due_ns;
    }
    let renewed = inner.engine.renew(&lease.grant, now_ns, lease.lease_ns);
    if let Ok(Renewed::Until(_)) = renewed {
        lease
            .deadline_ns
            .store(now_ns.saturating_add(lease.lease_ns), Ordering::Relaxed);
        lease.due_ns = now_ns.saturating_add(lease.lease_ns / RENEW_AT);
        inner.counts.seldom(Seldom::Renewed);
        return true;
    }
    false
}

/// A future's place in a lock's queue.
pub(crate) struct Wait {
    inner: Arc<Inner>,
    /// Names its waker; its address could not, for a future moves.
    id: u64,
    ticket: Option<Ticket>,
    /// When it began, in region time.
    began_ns: u64,
    /// Whether it failed, so that dropping it cancels nothing.
    has_failed: bool,
}

impl Wait {
    pub(crate) fn begin(inner: &Arc<Inner>, want: &Want<'_>) -> Result<Self> {
        inner.check_session()?;
        let began_ns = inner.precise_ns();
        let ticket = want.enqueue(inner, began_ns, u64::MAX)?;
        inner.engine.set_sleeper(&ticket, Sleeper::Doorbell);
        let mut state = inner.background.state.lock();
        let id = state.next_id();
        state.waits += 1;
        drop(state);
        Ok(Self {
            inner: inner.clone(),
            id,
            ticket: Some(ticket),
            began_ns,
            has_failed: false,
        })
    }

    /// `None`: not yet; `waker` is woken when it may be.
    pub(crate) fn poll(
        &mut self,
        want: &Want<'_>,
        lease_ns: u64,
        waker: &Waker,
    ) -> Result<Option<Granted>> {
        let polled = self.poll_in_queue(want, lease_ns, waker);
        match &polled {
            Ok(None) => {}
            Ok(Some(granted)) => self.inner.count_wait(self.began_ns, granted),
            Err(error) => {
                self.has_failed = true;
                self.inner.count_failed_wait(error);
            }
        }
        polled
    }

    fn poll_in_queue(
        &mut self,
        want: &Want<'_>,
        lease_ns: u64,
        waker: &Waker,
    ) -> Result<Option<Granted>> {
        loop {
            self.inner.check_process()?;
            let Some(ticket) = &self.ticket else {
                return Err(Error::Forked);
            };
            // Registered before the lock is looked at, so that a wake in between is not lost.
            self.register(ticket, waker.clone())?;
            let inner = &*self.inner;
            let now_ns = inner.precise_ns();
            inner.check_in_place_now_and_then(now_ns)?;
            match want.poll(inner, ticket, now_ns, lease_ns, true)? {
                Poll::Granted { grant, wake } => {
                    inner.wake(wake);
                    self.ticket = None;
                    return Ok(Some(Granted {
                        grant,
                        asked_at_ns: now_ns,
                    }));
                }
                Poll::Moved => {
                    self.ticket = None;
                    let began_ns = self.began_ns;
                    *self = Self::begin(&self.inner.clone(), want)?;
                    self.began_ns = began_ns;
                }
                Poll::Waiting { wake, .. } => {
                    inner.wake(wake);
                    return Ok(None);
                }
                Poll::Lost => {
                    self.ticket = None;
                    return Err(want.lost());
                }
                Poll::Deadlock(deadlock) => {
                    self.ticket = None;
                    return Err(Error::Deadlock { deadlock });
                }
            }
        }
    }

    fn register(&self, ticket: &Ticket, waker: Waker) -> Result<()> {
        let mut state = self.inner.background.state.lock();
        Background::start(&self.inner, &mut state)?;
        let before = self.take_waker(&mut state);
        let slot = ticket.slot();
        let seen = self.inner.engine.signal_of(slot).get();
        state.futures.insert(self.id, Asked { waker, slot, seen });
        // Asleep until some lease is due, it would not see in time that a holder died or was late.
        let is_asleep = !state.is_probing;
        drop(state);
        drop(before);
        if is_asleep {
            ring(&self.inner);
        }
        Ok(())
    }

    /// Its waker, to be dropped without the lock: that may drop a task with all that it has.
    fn take_waker(&self, state: &mut State) -> Option<Waker> {
        state.futures.remove(&self.id).map(|asked| asked.waker)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if self.inner.check_process().is_err() {
            return;
        }
        let mut state = self.inner.background.state.lock();
        let waker = self.take_waker(&mut state);
        state.waits -= 1;
        let is_last = state.is_running && state.leases.is_empty() && state.waits == 0;
        drop(state);
        drop(waker);
        if is_last {
            ring(&self.inner);
        }
        if let Some(ticket) = self.ticket.take() {
            if !self.has_failed {
                self.inner.counts.seldom(Seldom::Cancelled);
            }
            self.inner.leave(ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, PROBE_NS, State};
    use crate::{Error, KeepAlive, ManualClock, Space};
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Waker};
    use std::time::Duration;

    #[test]
    fn property_5_a_hold_that_was_told_lost_is_not_renewed() {
        let clock = ManualClock::new();
        let space = Space::builder().clock(&clock).open("mem:").unwrap();
        // The engine counts leases in microseconds, and rounds up: the holder's own deadline comes first.
        clock.advance(Duration::from_nanos(1));
        let lease = Duration::from_secs(1);
        let mut hold = space
            .lock("a")
            .unwrap()
            .ttl(lease)
            .unwrap()
            .acquire()
            .unwrap();
        let told = Arc::new(AtomicBool::new(false));
        let tell = told.clone();
        hold.keep_alive(KeepAlive {
            at_most: Duration::ZERO,
            on_lost: Some(Arc::new(move || tell.store(true, Ordering::Relaxed))),
        })
        .unwrap();
        clock.advance(lease);
        while !told.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        assert!(matches!(hold.renew(), Err(Error::Lost { .. })));
        assert!(matches!(hold.downgrade(), Err(Error::Lost { .. })));
        assert!(!hold.is_valid());
    }

    #[test]
    fn who_is_not_next_sleeps_on_until_all_look() {
        let space = Space::open("mem:").unwrap();
        let inner = &*space.inner;
        let mut state = State::default();
        let ask = |state: &mut State| {
            for slot in 0..3 {
                let seen = inner.engine.signal_of(slot).get();
                let waker = Waker::noop().clone();
                state
                    .futures
                    .insert(slot.into(), Asked { waker, slot, seen });
            }
        };
        ask(&mut state);
        assert_eq!(state.take_woken(inner, 1_000).len(), 3, "the first look");
        ask(&mut state);
        assert_eq!(state.take_woken(inner, 1_001).len(), 0);
        inner.engine.signal_of(1).raise();
        assert_eq!(state.take_woken(inner, 1_002).len(), 1);
        assert!(!state.futures.contains_key(&1), "until it asks again");
        assert_eq!(state.take_woken(inner, 1_000 + PROBE_NS).len(), 2);
    }

    #[test]
    fn the_last_wait_to_end_wakes_the_thread_so_that_it_ends_too() {
        let space = Space::open("mem:").unwrap();
        let lock = space.lock("a").unwrap();
        let _hold = lock.acquire().unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let rings = || space.inner.engine.doorbell(space.inner.session).get();
        let mut first = Box::pin(lock.acquire_async());
        assert!(first.as_mut().poll(&mut context).is_pending());
        {
            let mut other = pin!(lock.acquire_async());
            assert!(other.as_mut().poll(&mut context).is_pending());
        }
        let is_running = || space.inner.background.state.lock().is_running;
        let before = rings();
        assert!(is_running(), "one is left, woken or not");
        drop(first);
        assert_ne!(rings(), before);
        while is_running() {
            std::thread::yield_now();
        }
    }
}
