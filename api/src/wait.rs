//! How a thread waits for a lock: a short spin, then sleep on the waiter's own word, always timed.

use crate::metrics::{Often, Seldom};
use crate::space::Inner;
use crate::{Error, Result, stop};
use sprag_core::Name;
use sprag_core::admission::Wants;
use sprag_core::lock::{Attempt, Grant};
use sprag_core::waiter::{Poll, Sleeper, Ticket};
use std::time::Duration;

/// Looks at the signal this often before sleeping: about as long as a wake from sleep costs the
/// releaser and us together, so that spinning never more than doubles a wait. A few where a test kills
/// and stops at each look, since all are alike.
const SPINS: u32 = if cfg!(feature = "steps") { 4 } else { 1_000 };

/// What is waited for, and what its owner holds meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct Want<'a> {
    /// One name, unless several locks are wanted.
    pub(crate) names: &'a [Name],
    pub(crate) wants: Wants,
    pub(crate) holds: &'a [Grant],
}

impl<'a> Want<'a> {
    pub(crate) fn of(name: &'a Name, wants: Wants) -> Self {
        Self {
            names: std::slice::from_ref(name),
            wants,
            holds: &[],
        }
    }

    /// Takes it if it can be had at once.
    pub(crate) fn attempt(&self, inner: &Inner, now_ns: u64, lease_ns: u64) -> Result<Attempt> {
        let (engine, by) = (&inner.engine, inner.session);
        Ok(match (self.wants, self.names) {
            (Wants::Several, names) => engine.try_acquire_all(names, by, now_ns, lease_ns)?,
            (wants, [name, ..]) => engine.try_get(name, wants, by, now_ns, lease_ns)?,
            (_, []) => Attempt::Busy,
        })
    }

    pub(crate) fn enqueue(&self, inner: &Inner, now_ns: u64, until_ns: u64) -> Result<Ticket> {
        let (engine, by) = (&inner.engine, inner.session);
        let mut ticket = engine.enqueue_for(self.names, self.wants, by, now_ns, until_ns)?;
        engine.set_holds(&mut ticket, self.holds.to_vec());
        Ok(ticket)
    }

    pub(crate) fn poll(
        &self,
        inner: &Inner,
        ticket: &Ticket,
        now_ns: u64,
        lease_ns: u64,
        probe: bool,
    ) -> Result<Poll> {
        let (engine, by) = (&inner.engine, inner.session);
        Ok(engine.poll_for(ticket, self.names, by, now_ns, lease_ns, probe)?)
    }

    /// That the hold which was to be upgraded is lost.
    pub(crate) fn lost(&self) -> Error {
        let token = match self.wants {
            Wants::Upgrade(grant) => grant.token,
            _ => 0,
        };
        Error::lost(None, token)
    }
}

/// A place in a lock's queue that is left when dropped.
struct Place<'a> {
    inner: &'a Inner,
    ticket: Option<Ticket>,
}

impl<'a> Place<'a> {
    fn take(inner: &'a Inner, want: &Want<'_>, until_ns: u64) -> Result<Self> {
        let ticket = want.enqueue(inner, inner.now_ns(), until_ns)?;
        Ok(Self {
            inner,
            ticket: Some(ticket),
        })
    }

    fn ticket(&self) -> Option<&Ticket> {
        self.ticket.as_ref()
    }

    /// The queue was left by the engine.
    fn forget(&mut self) {
        self.ticket = None;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take()
            && self.inner.check_process().is_ok()
        {
            self.inner.leave(ticket);
        }
    }
}

/// A grant, and when the holder's own lease began.
pub(crate) struct Granted {
    pub(crate) grant: Grant,
    pub(crate) asked_at_ns: u64,
}

impl Inner {
    /// The region time at which a wait for `timeout` that begins now ends.
    pub(crate) fn until_ns(&self, timeout: Duration) -> u64 {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        self.precise_ns().saturating_add(timeout_ns)
    }

    /// Takes what is wanted if it can be had at once.
    pub(crate) fn try_get(&self, want: &Want<'_>, lease_ns: u64) -> Result<Option<Granted>> {
        self.check_process()?;
        // It may take the lock from a holder whose lease is over.
        let now_ns = self.precise_ns();
        self.check_in_place_now_and_then(now_ns)?;
        Ok(match want.attempt(self, now_ns, lease_ns)? {
            Attempt::Granted(grant) => {
                self.counts.often(Often::Acquired);
                Some(Granted {
                    grant,
                    asked_at_ns: now_ns,
                })
            }
            Attempt::Busy => None,
        })
    }

    /// Counts a wait that began at `began_ns` and was granted.
    pub(crate) fn count_wait(&self, began_ns: u64, granted: &Granted) {
        // When it asked and was granted. The clock that is fast may be a little behind what it said before.
        self.counts
            .waited(granted.asked_at_ns.saturating_sub(began_ns));
    }

    /// Counts a wait that failed, if it is by a deadlock.
    pub(crate) fn count_failed_wait(&self, error: &Error) {
        match error {
            Error::Deadlock { .. } => self.counts.seldom(Seldom::Deadlock),
            Error::Stopped => self.counts.seldom(Seldom::Cancelled),
            _ => {}
        }
    }

    /// Takes what is wanted, waiting until `until_ns` of region time.
    pub(crate) fn get(
        &self,
        want: &Want<'_>,
        lease_ns: u64,
        until_ns: u64,
    ) -> Result<Option<Granted>> {
        match self.try_get(want, lease_ns)? {
            None if until_ns <= self.precise_ns() => {
                self.counts.seldom(Seldom::Busy);
                Ok(None)
            }
            None => wait(self, want, lease_ns, until_ns),
            granted => Ok(granted),
        }
    }
}

/// Waits in the queue until `until_ns` of region time; `None` when that has come.
pub(crate) fn wait(
    inner: &Inner,
    want: &Want<'_>,
    lease_ns: u64,
    until_ns: u64,
) -> Result<Option<Granted>> {
    let began_ns = inner.now_ns();
    let waited = wait_in_queue(inner, want, lease_ns, until_ns);
    match &waited {
        Ok(None) => inner.counts.seldom(Seldom::TimedOut),
        Ok(Some(granted)) => inner.count_wait(began_ns, granted),
        Err(error) => inner.count_failed_wait(error),
    }
    waited
}

fn wait_in_queue(
    inner: &Inner,
    want: &Want<'_>,
    lease_ns: u64,
    until_ns: u64,
) -> Result<Option<Granted>> {
    let mut place = Place::take(inner, want, until_ns)?;
    // Whoever waits was just told, by a probe, that the holder lives.
    let mut probe = false;
    let mut has_slept = false;
    loop {
        // A thread that forked while another waited, or a child that goes on waiting.
        inner.check_process()?;
        let Some(ticket) = place.ticket() else {
            return Err(Error::Forked);
        };
        let signal = inner.engine.signal(ticket);
        let seen = signal.get();
        // A probe takes holds from those whose lease is over, so it asks the system's own clock; the
        // fast one may be ahead, but by less than a holder stops before its end.
        let now_ns = if probe {
            inner.precise_ns()
        } else {
            inner.now_ns()
        };
        if probe {
            inner.check_in_place()?;
        }
        match want.poll(inner, ticket, now_ns, lease_ns, probe)? {
            Poll::Granted { grant, wake } => {
                inner.wake(wake);
                place.forget();
                return Ok(Some(Granted {
                    grant,
                    asked_at_ns: now_ns,
                }));
            }
            Poll::Moved => {
                place.forget();
                place = Place::take(inner, want, until_ns)?;
                probe = true;
            }
            Poll::Lost => {
                place.forget();
                return Err(want.lost());
            }
            Poll::Deadlock(deadlock) => {
                place.forget();
                return Err(Error::Deadlock { deadlock });
            }
            Poll::Waiting {
                look_again_ns,
                wake,
            } => {
                inner.wake(wake);
                if now_ns >= until_ns {
                    return Ok(None);
                }
                // Whatever woke it: who is woken often would not be asked else.
                if has_slept {
                    stop::check()?;
                }
                let mut sleep_ns = look_again_ns.min(until_ns).saturating_sub(now_ns);
                if stop::is_installed() {
                    sleep_ns = sleep_ns.min(stop::LOOK_NS);
                }
                probe = !sleep(inner, ticket, seen, sleep_ns);
                has_slept = true;
            }
        }
    }
}

/// Waits for the signal to differ from `seen`, for `sleep_ns` at most; whether it does.
fn sleep(inner: &Inner, ticket: &Ticket, seen: u32, sleep_ns: u64) -> bool {
    let engine = &inner.engine;
    let signal = engine.signal(ticket);
    for _ in 0..SPINS {
        if signal.get() != seen {
            return true;
        }
        std::hint::spin_loop();
    }
    engine.set_sleeper(ticket, Sleeper::Thread);
    if signal.get() == seen {
        inner.sleep_on(signal, seen, sleep_ns);
    }
    engine.set_sleeper(ticket, Sleeper::Awake);
    signal.get() != seen
}
