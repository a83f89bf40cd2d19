//! Partitions, the table, and several locks at once: all of it is had or none, never by two, and nobody is
//! refused for the sake of one who gets nothing.

use sprag_core::admission::Wants;
use sprag_core::lock::{Attempt, Coarse, Grant, Released};
use sprag_core::region::Caps;
use sprag_core::waiter::{Poll, Sleeper, Ticket, Wake};
use sprag_core::{Engine, Name, SessionId};
use sprag_loom_tests::{CAPS, MS, Model, both, engine, model};

const LEASE: u64 = 1_000 * MS;
const DEADLINE: u64 = 2_000 * MS;
const PARTITION: Wants = Wants::Coarse(Coarse::Partition(0));
const TABLE: Wants = Wants::Coarse(Coarse::Table);

/// What one thread of a model wants.
#[derive(Clone)]
struct Want {
    wants: Wants,
    names: Vec<Name>,
}

impl Want {
    fn of(engine: &Engine, wants: Wants, names: &[&[u8]]) -> Self {
        let names = names.iter().map(|name| engine.lock_name(name).unwrap());
        Self {
            wants,
            names: names.collect(),
        }
    }

    fn get(&self, engine: &Engine, by: SessionId) -> Option<Grant> {
        let (wants, names) = (self.wants, &self.names);
        let attempt = match wants {
            Wants::Several => engine.try_acquire_all(names, by, MS, LEASE),
            Wants::Exclusive => engine.try_acquire(&names[0], by, MS, LEASE),
            wants => engine.try_get(&names[0], wants, by, MS, LEASE),
        };
        match attempt.unwrap() {
            Attempt::Granted(grant) => Some(grant),
            Attempt::Busy => None,
        }
    }

    /// Frees it all; who is to be woken.
    fn free(&self, engine: &Engine, grant: &Grant) -> Vec<Wake> {
        let mut wakes = Vec::new();
        match engine.release(grant, || MS) {
            Released::Done { wake } => wakes.extend(wake),
            Released::NotHeld => panic!("exclusion: a hold was ended by someone else"),
        }
        if self.wants == Wants::Several {
            engine.release_followers(grant, &self.names, MS, |wake| wakes.push(wake));
        }
        wakes
    }

    fn enqueue(&self, engine: &Engine, by: SessionId) -> Ticket {
        engine
            .enqueue_for(&self.names, self.wants, by, MS, DEADLINE)
            .unwrap()
    }

    /// Waits as a thread does, up to where it would go to sleep: `Err` with the signal that it would
    /// sleep on.
    fn wait(&self, engine: &Engine, by: SessionId, ticket: &Ticket) -> Result<Grant, u32> {
        let signal = || engine.signal(ticket).get();
        loop {
            let before = signal();
            let poll = engine.poll_for(ticket, &self.names, by, MS, LEASE, false);
            match poll.unwrap() {
                Poll::Granted { grant, .. } => return Ok(grant),
                Poll::Waiting { .. } => {}
                other => panic!("what is waited for went away: {other:?}"),
            }
            engine.set_sleeper(ticket, Sleeper::Thread);
            if signal() == before {
                return Err(before);
            }
            engine.set_sleeper(ticket, Sleeper::Awake);
        }
    }

    /// Checks that a wait which would sleep was woken by one of `wakes`, and gets what it waits for.
    fn woken(
        &self,
        engine: &Engine,
        by: SessionId,
        ticket: &Ticket,
        outcome: Result<Grant, u32>,
        wakes: &[Wake],
    ) -> Grant {
        outcome.unwrap_or_else(|_| {
            let is_its = |wake: &Wake| {
                let word = engine.to_wake(*wake);
                word.is_some_and(|word| std::ptr::eq(word, engine.signal(ticket)))
            };
            assert!(
                wakes.iter().any(is_its),
                "lost wake: it can be had, and who waits for it sleeps"
            );
            self.wait(engine, by, ticket)
                .expect("lost turn: it can be had, and it was refused")
        })
    }
}

/// Makes words live, so that a model starts where nothing is to be inserted.
fn make_live(engine: &Engine, wants: &[&Want], by: SessionId) {
    for want in wants {
        let grant = want.get(engine, by).expect("nobody holds anything");
        want.free(engine, &grant);
    }
}

/// Two who want what excludes each other, and keep it: one of them gets it.
fn one_of_two(model: Model, one: (Wants, &'static [&[u8]]), two: (Wants, &'static [&[u8]])) {
    // No cells but those that are needed: each is one more for every scan to read.
    let is_of_keys = |(wants, _)| !matches!(wants, Wants::Coarse(_));
    let caps = Caps {
        objects: if is_of_keys(one) || is_of_keys(two) {
            2
        } else {
            1
        },
        waiters: 1,
        ..CAPS
    };
    model.check(move || {
        let (engine, [by_one, by_two]) = engine(caps);
        let one = Want::of(&engine, one.0, one.1);
        let two = Want::of(&engine, two.0, two.1);
        make_live(&engine, &[&one, &two], by_one);
        let (a, b) = {
            let (engine_2, two) = (engine.clone(), two.clone());
            both(
                &engine,
                || one.get(&engine, by_one),
                move || two.get(&engine_2, by_two),
            )
        };
        assert!(
            a.is_none() || b.is_none(),
            "exclusion: both have it at once"
        );
        let (want, grant) = match (a, b) {
            (Some(grant), _) => (&one, grant),
            (_, Some(grant)) => (&two, grant),
            _ => panic!("refused: both, and nobody else wants anything"),
        };
        want.free(&engine, &grant);
        // Nothing of it is left.
        make_live(&engine, &[&one, &two], by_one);
    });
}

#[test]
fn one_key_and_its_partition_exclude_each_other_and_one_is_had() {
    one_of_two(
        model("key against partition"),
        (Wants::Exclusive, &[b"a"]),
        (PARTITION, &[b"-"]),
    );
}

#[test]
fn a_partition_and_the_table_exclude_each_other_and_one_is_had() {
    one_of_two(
        model("partition against table"),
        (PARTITION, &[b"-"]),
        (TABLE, &[b"-"]),
    );
}

#[test]
fn two_who_want_the_same_locks_in_either_order_exclude_each_other_and_one_has_them() {
    one_of_two(
        model("several against several").with_fewer_preemptions(),
        (Wants::Several, &[b"a", b"b"]),
        (Wants::Several, &[b"b", b"a"]),
    );
}

#[test]
fn several_locks_and_one_of_them_exclude_each_other_and_one_is_had() {
    const KEYS: [&[&[u8]]; 2] = [&[b"a"], &[b"b"]];
    for one in KEYS {
        one_of_two(
            model("several against one"),
            (Wants::Several, &[b"a", b"b"]),
            (Wants::Exclusive, one),
        );
    }
}

#[test]
fn several_locks_and_their_partition_exclude_each_other_and_one_is_had() {
    one_of_two(
        model("several against partition").with_fewer_preemptions(),
        (Wants::Several, &[b"a", b"b"]),
        (PARTITION, &[b"-"]),
    );
}

#[test]
fn one_who_waits_for_a_lock_that_follows_is_woken_by_the_release_of_all() {
    for waits_for in [b"a", b"b"] {
        model("release of several against wait").check(move || {
            let (engine, [holder, waiter]) = engine(CAPS);
            let several = Want::of(&engine, Wants::Several, &[b"a", b"b"]);
            let one = Want::of(&engine, Wants::Exclusive, &[waits_for]);
            let grant = several.get(&engine, holder).unwrap();
            let ((ticket, outcome), wakes) = {
                let engine_2 = engine.clone();
                both(
                    &engine,
                    || {
                        let ticket = one.enqueue(&engine, waiter);
                        let outcome = one.wait(&engine, waiter, &ticket);
                        (ticket, outcome)
                    },
                    move || several.free(&engine_2, &grant),
                )
            };
            let grant = one.woken(&engine, waiter, &ticket, outcome, &wakes);
            one.free(&engine, &grant);
        });
    }
}

#[test]
fn one_who_waits_for_a_partition_is_woken_by_the_release_of_a_lock_in_it() {
    model("release of key against wait for partition").check(|| {
        let (engine, [holder, waiter]) = engine(CAPS);
        let key = Want::of(&engine, Wants::Exclusive, &[b"a"]);
        let partition = Want::of(&engine, PARTITION, &[b"-"]);
        make_live(&engine, &[&partition], holder);
        let grant = key.get(&engine, holder).unwrap();
        let ((ticket, outcome), wakes) = {
            let engine_2 = engine.clone();
            both(
                &engine,
                || {
                    let ticket = partition.enqueue(&engine, waiter);
                    let outcome = partition.wait(&engine, waiter, &ticket);
                    (ticket, outcome)
                },
                move || key.free(&engine_2, &grant),
            )
        };
        let grant = partition.woken(&engine, waiter, &ticket, outcome, &wakes);
        partition.free(&engine, &grant);
    });
}

#[test]
fn one_who_waits_for_a_lock_is_woken_by_the_release_of_its_partition() {
    model("release of partition against wait for key").check(|| {
        let (engine, [holder, waiter]) = engine(CAPS);
        let key = Want::of(&engine, Wants::Exclusive, &[b"a"]);
        let partition = Want::of(&engine, PARTITION, &[b"-"]);
        make_live(&engine, &[&key], holder);
        let grant = partition.get(&engine, holder).unwrap();
        let ((ticket, outcome), wakes) = {
            let engine_2 = engine.clone();
            both(
                &engine,
                || {
                    let ticket = key.enqueue(&engine, waiter);
                    let outcome = key.wait(&engine, waiter, &ticket);
                    (ticket, outcome)
                },
                move || {
                    let wakes = partition.free(&engine_2, &grant);
                    let next = |wake: &Wake| engine_2.next_wake(*wake);
                    let all = wakes
                        .into_iter()
                        .flat_map(|wake| std::iter::successors(Some(wake), next));
                    all.collect::<Vec<_>>()
                },
            )
        };
        let grant = key.woken(&engine, waiter, &ticket, outcome, &wakes);
        key.free(&engine, &grant);
    });
}

#[test]
fn a_gate_that_is_opened_for_want_of_waiters_is_shut_for_one_who_comes_meanwhile() {
    model("gate opened against wait").check(|| {
        let (engine, [holder, waiter]) = engine(CAPS);
        let (held, key) = (
            Want::of(&engine, Wants::Exclusive, &[b"a"]),
            Want::of(&engine, Wants::Exclusive, &[b"b"]),
        );
        let partition = Want::of(&engine, PARTITION, &[b"-"]);
        make_live(&engine, &[&held, &key], holder);
        let grant = held.get(&engine, holder).unwrap();
        // Whoever waits for the table shuts the gates of all partitions. One who gave up leaves them shut, for
        // nobody.
        let gone = Want::of(&engine, TABLE, &[b"-"]).enqueue(&engine, waiter);
        engine.cancel(gone, MS, |_| {});
        let ((ticket, outcome), other) = {
            let (engine_2, key) = (engine.clone(), key.clone());
            both(
                &engine,
                || {
                    let ticket = partition.enqueue(&engine, waiter);
                    let outcome = partition.wait(&engine, waiter, &ticket);
                    (ticket, outcome)
                },
                move || key.get(&engine_2, holder),
            )
        };
        assert!(outcome.is_err(), "exclusion: a lock beneath is held");
        if let Some(other) = other {
            key.free(&engine, &other);
        }
        assert!(
            key.get(&engine, holder).is_none(),
            "gate: it is open, and somebody waits"
        );
        let wakes = held.free(&engine, &grant);
        let grant = partition.woken(&engine, waiter, &ticket, outcome, &wakes);
        partition.free(&engine, &grant);
    });
}
