//! Owners that wait for each other: of two who close a circle at once, one is told.

use sprag_core::admission::Wants;
use sprag_core::lock::{Attempt, Deadlock, Grant};
use sprag_core::waiter::{Poll, Sleeper, Ticket, Wake};
use sprag_core::{Engine, Name, SessionId};
use sprag_loom_tests::{CAPS, MS, both, engine, model};

const LEASE: u64 = 1_000 * MS;
const DEADLINE: u64 = 2_000 * MS;

fn hold(engine: &Engine, name: &Name, by: SessionId) -> Grant {
    match engine.try_acquire(name, by, MS, LEASE).unwrap() {
        Attempt::Granted(grant) => grant,
        Attempt::Busy => unreachable!("a new lock is free"),
    }
}

/// Looks until it would go to sleep or is told; whom it is to wake by that.
fn wait(
    engine: &Engine,
    name: &Name,
    by: SessionId,
    ticket: &Ticket,
) -> (Option<Deadlock>, Vec<Wake>) {
    let names = std::slice::from_ref(name);
    let mut wakes = Vec::new();
    loop {
        let before = engine.signal(ticket).get();
        let poll = engine.poll_for(ticket, names, by, MS, LEASE, false);
        match poll.unwrap() {
            Poll::Waiting { wake, .. } => wakes.extend(wake),
            Poll::Deadlock(deadlock) => return (Some(deadlock), wakes),
            other => panic!("exclusion: {other:?} of a lock that is held"),
        }
        engine.set_sleeper(ticket, Sleeper::Thread);
        if engine.signal(ticket).get() == before {
            return (None, wakes);
        }
        engine.set_sleeper(ticket, Sleeper::Awake);
    }
}

/// Waits for `name` while `held` is the waiter's.
fn wait_holding(
    engine: &Engine,
    name: &Name,
    held: Grant,
    by: SessionId,
) -> (Ticket, Option<Deadlock>, Vec<Wake>) {
    let names = std::slice::from_ref(name);
    let mut ticket = engine
        .enqueue_for(names, Wants::Exclusive, by, MS, DEADLINE)
        .unwrap();
    engine.set_holds(&mut ticket, vec![held]);
    let (told, wakes) = wait(engine, name, by, &ticket);
    (ticket, told, wakes)
}

#[test]
fn of_two_owners_who_close_a_circle_at_once_exactly_one_is_told() {
    model("two close a circle").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        let [a, b] = [b"a", b"b"].map(|name| engine.lock_name(name).unwrap());
        let (held_a, held_b) = (hold(&engine, &a, one), hold(&engine, &b, two));
        let ((first, told_first, wakes), (second, told_second, wakes_2)) = {
            let (engine_2, a) = (engine.clone(), a.clone());
            both(
                &engine,
                || wait_holding(&engine, &b, held_a, one),
                move || wait_holding(&engine_2, &a, held_b, two),
            )
        };
        assert!(
            told_first.is_none() || told_second.is_none(),
            "deadlock: both are told, and one would do"
        );
        // The older one may be the one that sees the circle. Then the younger one is woken to see it too.
        let is_woken = |ticket: &Ticket| {
            wakes.iter().chain(&wakes_2).any(|wake| {
                let word = engine.to_wake(*wake);
                word.is_some_and(|word| std::ptr::eq(word, engine.signal(ticket)))
            })
        };
        let again = |told: Option<Deadlock>, ticket: &Ticket, name: &Name, by: SessionId| {
            told.or_else(|| {
                is_woken(ticket)
                    .then(|| wait(&engine, name, by, ticket).0)
                    .flatten()
            })
        };
        let told = match (told_first, told_second) {
            (None, None) => again(None, &first, &b, one).or_else(|| again(None, &second, &a, two)),
            (first, second) => first.or(second),
        };
        let told = told.expect("deadlock: two wait for each other, and neither is told");
        assert_eq!(told.waits.len(), 2);
    });
}
