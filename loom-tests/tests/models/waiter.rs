//! Waiting: no wake is lost and nothing is left behind.

use sprag_core::lock::{Attempt, Grant, Released};
use sprag_core::region::Caps;
use sprag_core::session::Process;
use sprag_core::waiter::{PATIENCE_NS, Poll, Sleeper, Ticket, Wake};
use sprag_core::{Engine, Name, SessionId};
use sprag_loom_tests::{CAPS, MS, both, engine, model, three};

const LEASE: u64 = 1_000 * MS;
const DEADLINE: u64 = 2_000 * MS;

fn hold(engine: &Engine, name: &Name, by: SessionId) -> Grant {
    match engine.try_acquire(name, by, MS, LEASE).unwrap() {
        Attempt::Granted(grant) => grant,
        Attempt::Busy => unreachable!("the lock is free"),
    }
}

fn wake_of(released: Released) -> Option<Wake> {
    match released {
        Released::Done { wake } => wake,
        Released::NotHeld => panic!("only the holder: a hold was ended by someone else"),
    }
}

/// Waits as a thread does, up to where it would go to sleep: `Err` with the signal that it would
/// sleep on.
fn wait(engine: &Engine, name: &Name, by: SessionId, ticket: &Ticket) -> Result<Grant, u32> {
    let signal = || engine.signal(ticket).get();
    loop {
        let before = signal();
        match engine.poll(ticket, name, by, MS, LEASE, false).unwrap() {
            Poll::Granted { grant, .. } => return Ok(grant),
            Poll::Waiting { wake, .. } => assert_eq!(wake, None, "only a probe wakes others"),
            Poll::Moved | Poll::Lost | Poll::Deadlock(_) => {
                panic!("an entry with a queue was reclaimed")
            }
        }
        engine.set_sleeper(ticket, Sleeper::Thread);
        if signal() == before {
            return Err(before);
        }
        engine.set_sleeper(ticket, Sleeper::Awake);
    }
}

/// Checks that a wait that would sleep on `before` was woken if the lock is free; ends it.
fn check_woken(
    engine: &Engine,
    name: &Name,
    by: SessionId,
    ticket: &Ticket,
    before: u32,
    wakes: &[Option<Wake>],
) -> Grant {
    assert_ne!(
        engine.signal(ticket).get(),
        before,
        "lost wake: the lock is free and the first in its queue was not signalled"
    );
    assert!(
        wakes.iter().flatten().any(|wake| engine
            .to_wake(*wake)
            .is_some_and(|word| std::ptr::eq(word, engine.signal(ticket)))),
        "lost wake: a sleeping thread was taken for one awake"
    );
    match wait(engine, name, by, ticket) {
        Ok(grant) => grant,
        Err(error) => panic!("lost turn: the first in the queue was refused: {error}"),
    }
}

/// Checks that a region in which all is over holds no trace of a wait.
fn check_nothing_left(engine: &Engine, name: &Name, by: SessionId) {
    let left = engine.lock_status(name, MS).unwrap();
    assert_eq!(
        (left.holds, left.waiters),
        (Vec::new(), 0),
        "left behind: a wait"
    );
    let grant = hold(engine, name, by);
    assert_eq!(grant.token, left.token + 1, "tokens: they are consecutive");
    let tickets: Vec<Ticket> = (0..engine.region().caps().waiters)
        .map(|_| {
            let ticket = engine.enqueue(name, by, MS, DEADLINE);
            ticket.expect("left behind: the slot of a wait")
        })
        .collect();
    for ticket in tickets {
        cancel(engine, ticket);
    }
    assert_eq!(
        engine.release(&grant, || MS),
        Released::Done { wake: None },
        "left behind: someone to wake"
    );
}

/// Leaves the queue; who is to be woken.
fn cancel(engine: &Engine, ticket: Ticket) -> Option<Wake> {
    let mut woken = None;
    engine.cancel(ticket, MS, |wake| woken = Some(wake));
    woken
}

#[test]
fn a_waiter_that_enqueues_while_the_holder_releases_is_granted_or_signalled() {
    model("enqueue against release").check(|| {
        let (engine, [holder, waiter]) = engine(CAPS);
        let name = engine.lock_name(b"lock").unwrap();
        let grant = hold(&engine, &name, holder);

        let ((ticket, outcome), wake) = {
            let engine_2 = engine.clone();
            both(
                &engine,
                || {
                    let ticket = engine.enqueue(&name, waiter, MS, DEADLINE).unwrap();
                    let outcome = wait(&engine, &name, waiter, &ticket);
                    (ticket, outcome)
                },
                move || wake_of(engine_2.release(&grant, || MS)),
            )
        };
        let grant = outcome
            .unwrap_or_else(|before| check_woken(&engine, &name, waiter, &ticket, before, &[wake]));
        assert_eq!(wake_of(engine.release(&grant, || MS)), None);
        check_nothing_left(&engine, &name, holder);
    });
}

#[test]
fn a_waiter_that_was_passed_over_and_looks_again_while_the_holder_releases_is_granted_or_signalled()
{
    model("look again against release").check(|| {
        let (engine, [holder, waiter]) = engine(CAPS);
        let name = engine.lock_name(b"lock").unwrap();
        let grant = hold(&engine, &name, holder);
        let ticket = engine.enqueue(&name, waiter, MS, DEADLINE).unwrap();
        engine.release(&grant, || MS);
        // It lets the lock lie, and a newcomer takes it.
        let attempt = engine.try_acquire(&name, holder, MS + PATIENCE_NS, LEASE);
        let Attempt::Granted(grant) = attempt.unwrap() else {
            unreachable!("its patience is over");
        };

        let (outcome, wake) = {
            let engine_2 = engine.clone();
            both(
                &engine,
                || wait(&engine, &name, waiter, &ticket),
                move || wake_of(engine_2.release(&grant, || MS)),
            )
        };
        let grant = outcome
            .unwrap_or_else(|before| check_woken(&engine, &name, waiter, &ticket, before, &[wake]));
        assert_eq!(wake_of(engine.release(&grant, || MS)), None);
        check_nothing_left(&engine, &name, holder);
    });
}

#[test]
fn a_release_that_meets_the_first_waiter_cancelling_signals_the_next() {
    model("hand-off against cancel").check(|| {
        let (engine, [holder, waiter]) = engine(CAPS);
        let name = engine.lock_name(b"lock").unwrap();
        let grant = hold(&engine, &name, holder);
        let first = engine.enqueue(&name, waiter, MS, DEADLINE).unwrap();
        let second = engine.enqueue(&name, waiter, MS, DEADLINE).unwrap();
        let before = wait(&engine, &name, waiter, &second).expect_err("the lock is held");

        let (released, cancelled) = {
            let engine_2 = engine.clone();
            both(
                &engine,
                || wake_of(engine.release(&grant, || MS)),
                move || cancel(&engine_2, first),
            )
        };
        let wakes = [released, cancelled];
        let grant = check_woken(&engine, &name, waiter, &second, before, &wakes);
        assert_eq!(wake_of(engine.release(&grant, || MS)), None);
        check_nothing_left(&engine, &name, holder);
    });
}

#[test]
fn a_release_a_cancelling_waiter_and_a_waiting_one_lose_no_wake_between_them() {
    model("hand-off against cancel and wait")
        .threads(3)
        .check(|| {
            let (engine, [holder, waiter]) = engine(CAPS);
            let name = engine.lock_name(b"lock").unwrap();
            let grant = hold(&engine, &name, holder);
            let first = engine.enqueue(&name, waiter, MS, DEADLINE).unwrap();
            let second = engine.enqueue(&name, waiter, MS, DEADLINE).unwrap();

            let (outcome, cancelled, released) = {
                let (engine_2, engine_3) = (engine.clone(), engine.clone());
                three(
                    &engine,
                    || wait(&engine, &name, waiter, &second),
                    move || cancel(&engine_2, first),
                    move || wake_of(engine_3.release(&grant, || MS)),
                )
            };
            let wakes = [released, cancelled];
            let grant = outcome.unwrap_or_else(|before| {
                check_woken(&engine, &name, waiter, &second, before, &wakes)
            });
            assert_eq!(wake_of(engine.release(&grant, || MS)), None);
            check_nothing_left(&engine, &name, holder);
        });
}

#[test]
fn of_two_waiters_that_enqueue_while_the_holder_releases_one_is_granted_and_the_other_follows() {
    let caps = Caps {
        sessions: 3,
        ..CAPS
    };
    model("two enqueue against release").check(move || {
        let (engine, [holder, one]) = engine(caps);
        let two = engine.open_session(Process::default(), 0).unwrap();
        let name = engine.lock_name(b"lock").unwrap();
        let grant = hold(&engine, &name, holder);
        let ticket = engine.enqueue(&name, one, MS, DEADLINE).unwrap();

        let ((ticket_2, outcome), wakes) = {
            let engine_2 = engine.clone();
            both(
                &engine,
                || {
                    let ticket = engine.enqueue(&name, two, MS, DEADLINE).unwrap();
                    let outcome = wait(&engine, &name, two, &ticket);
                    (ticket, outcome)
                },
                move || {
                    let released = wake_of(engine_2.release(&grant, || MS));
                    [released, cancel(&engine_2, ticket)]
                },
            )
        };
        let grant = outcome
            .unwrap_or_else(|before| check_woken(&engine, &name, two, &ticket_2, before, &wakes));
        assert_eq!(wake_of(engine.release(&grant, || MS)), None);
        check_nothing_left(&engine, &name, holder);
    });
}
