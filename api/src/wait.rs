//! How a thread waits for a lock: a short spin, then sleep on the waiter's own word, always timed.

use crate::space::Inner;
use crate::{Error, Result};
use sprag_core::Name;
use sprag_core::admission::Wants;
use sprag_core::lock::Grant;
use sprag_core::waiter::{Poll, Sleeper, Ticket};

/// Looks at the signal this often before sleeping: about as long as a wake from sleep costs the
/// releaser and us together, so that spinning never more than doubles a wait. A few where a test kills
/// and stops at each look, since all are alike.
const SPINS: u32 = if cfg!(feature = "steps") { 4 } else { 1_000 };

/// A place in a lock's queue that is left when dropped.
pub(crate) struct Place<'a> {
    inner: &'a Inner,
    ticket: Option<Ticket>,
}

impl<'a> Place<'a> {
    pub(crate) fn take(inner: &'a Inner, name: &Name, wants: Wants, until_ns: u64) -> Result<Self> {
        let now_ns = inner.now_ns();
        let ticket = inner
            .engine
            .enqueue_for(name, wants, inner.session, now_ns, until_ns)?;
        Ok(Self {
            inner,
            ticket: Some(ticket),
        })
    }

    pub(crate) fn ticket(&self) -> Option<&Ticket> {
        self.ticket.as_ref()
    }

    /// The queue was left by the engine.
    pub(crate) fn forget(&mut self) {
        self.ticket = None;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take()
            && self.inner.check_process().is_ok()
        {
            let wake = self.inner.engine.cancel(ticket, self.inner.precise_ns());
            self.inner.wake(wake);
        }
    }
}

/// A grant, and when the holder's own lease began.
pub(crate) struct Granted {
    pub(crate) grant: Grant,
    pub(crate) asked_at_ns: u64,
}

/// That the hold which was to be upgraded is lost.
pub(crate) fn lost(wants: Wants) -> Error {
    let token = match wants {
        Wants::Upgrade(grant) => grant.token,
        _ => 0,
    };
    Error::lost(None, token)
}

/// Waits in the lock's queue until `until_ns` of region time; `None` when that has come.
pub(crate) fn wait(
    inner: &Inner,
    name: &Name,
    wants: Wants,
    lease_ns: u64,
    until_ns: u64,
) -> Result<Option<Granted>> {
    let mut place = Place::take(inner, name, wants, until_ns)?;
    // Whoever waits was just told, by a probe, that the holder lives.
    let mut probe = false;
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
        match inner
            .engine
            .poll(ticket, name, inner.session, now_ns, lease_ns, probe)?
        {
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
                place = Place::take(inner, name, wants, until_ns)?;
                probe = true;
            }
            Poll::Lost => {
                place.forget();
                return Err(lost(wants));
            }
            Poll::Waiting {
                look_again_ns,
                wake,
            } => {
                inner.wake(wake);
                if now_ns >= until_ns {
                    return Ok(None);
                }
                let sleep_ns = look_again_ns.min(until_ns).saturating_sub(now_ns);
                probe = !sleep(inner, ticket, seen, sleep_ns);
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
