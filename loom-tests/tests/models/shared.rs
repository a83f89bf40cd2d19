//! What several hold at once: who is in counts once, whoever joins, leaves, or is ended by others, and who
//! waits is woken.

use sprag_core::admission::Wants;
use sprag_core::lock::{Attempt, Grant, Released, Upgrade};
use sprag_core::waiter::{Poll, Sleeper, Ticket, Wake};
use sprag_core::{Engine, Name, SessionId};
use sprag_loom_tests::{CAPS, MS, both, engine, model};

pub(crate) const LEASE: u64 = 1_000 * MS;
pub(crate) const DEADLINE: u64 = 2_000 * MS;

pub(crate) fn get(engine: &Engine, name: &Name, wants: Wants, by: SessionId) -> Option<Grant> {
    match engine.try_get(name, wants, by, MS, LEASE).unwrap() {
        Attempt::Granted(grant) => Some(grant),
        Attempt::Busy => None,
    }
}

fn share(engine: &Engine, name: &Name, by: SessionId) -> Grant {
    get(engine, name, Wants::Shared, by).expect("nobody has it alone")
}

pub(crate) fn release(engine: &Engine, grant: &Grant) -> Option<Wake> {
    match engine.release(grant, || MS) {
        Released::Done { wake } => wake,
        Released::NotHeld => panic!("only the holder: a hold was ended by someone else"),
    }
}

/// Checks that the region agrees with itself, and that all can be had by one when nobody has anything.
pub(crate) fn check_all_is_back(engine: &Engine, name: &Name, all: Wants, by: SessionId) {
    let found = engine.check_region().findings;
    assert!(found.is_empty(), "counted once: {found:?}");
    let grant = get(engine, name, all, by).expect("all is back: nobody has anything");
    release(engine, &grant);
}

/// Waits as a thread does, up to where it would go to sleep: `Err` with the signal that it would sleep
/// on.
pub(crate) fn wait(
    engine: &Engine,
    name: &Name,
    by: SessionId,
    ticket: &Ticket,
) -> Result<Grant, u32> {
    let signal = || engine.signal(ticket).get();
    loop {
        let before = signal();
        match engine.poll(ticket, name, by, MS, LEASE, false).unwrap() {
            Poll::Granted { grant, .. } => return Ok(grant),
            Poll::Waiting { .. } => {}
            Poll::Moved | Poll::Lost | Poll::Deadlock(_) => {
                panic!("what is waited for went away")
            }
        }
        engine.set_sleeper(ticket, Sleeper::Thread);
        if signal() == before {
            return Err(before);
        }
        engine.set_sleeper(ticket, Sleeper::Awake);
    }
}

/// Checks that a wait which would sleep was woken by one of `wakes`, and gets what it waits for.
pub(crate) fn woken(
    engine: &Engine,
    name: &Name,
    by: SessionId,
    ticket: &Ticket,
    outcome: Result<Grant, u32>,
    wakes: &[Option<Wake>],
) -> Grant {
    outcome.unwrap_or_else(|_| {
        let is_its = |wake: &Wake| {
            let word = engine.to_wake(*wake);
            word.is_some_and(|word| std::ptr::eq(word, engine.signal(ticket)))
        };
        assert!(
            wakes.iter().flatten().any(is_its),
            "lost wake: there is room, and who waits for it sleeps"
        );
        wait(engine, name, by, ticket).expect("lost turn: there is room, and it was refused")
    })
}

#[test]
fn one_who_joins_and_one_who_wants_the_lock_alone_never_both_have_it() {
    model("join against exclusive").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        let name = engine.lock_name(b"lock").unwrap();
        let first = share(&engine, &name, one);
        release(&engine, &first);
        let (shared, alone) = {
            let (engine_2, name_2) = (engine.clone(), name.clone());
            both(
                &engine,
                || get(&engine, &name, Wants::Shared, one),
                move || get(&engine_2, &name_2, Wants::Exclusive, two),
            )
        };
        assert!(
            shared.is_some() != alone.is_some(),
            "exclusion: one of the two has it"
        );
        release(&engine, &shared.or(alone).unwrap());
        check_all_is_back(&engine, &name, Wants::Exclusive, one);
    });
}

#[test]
fn two_who_join_are_counted_and_have_tokens_of_their_own() {
    model("two join").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        let name = engine.lock_name(b"lock").unwrap();
        let before = share(&engine, &name, one);
        release(&engine, &before);
        let (a, b) = {
            let (engine_2, name_2) = (engine.clone(), name.clone());
            both(
                &engine,
                || share(&engine, &name, one),
                move || share(&engine_2, &name_2, two),
            )
        };
        let mut tokens = [a.token, b.token];
        tokens.sort_unstable();
        assert_eq!(
            tokens,
            [before.token + 1, before.token + 2],
            "tokens: they are consecutive"
        );
        assert_eq!(
            get(&engine, &name, Wants::Exclusive, one),
            None,
            "exclusion: two share it"
        );
        release(&engine, &a);
        release(&engine, &b);
        check_all_is_back(&engine, &name, Wants::Exclusive, one);
    });
}

#[test]
fn one_who_joins_while_the_last_one_leaves_has_its_share() {
    model("join against last leave").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        let name = engine.lock_name(b"lock").unwrap();
        let first = share(&engine, &name, one);
        let (second, ()) = {
            let engine_2 = engine.clone();
            both(
                &engine,
                || share(&engine, &name, two),
                move || {
                    release(&engine_2, &first);
                },
            )
        };
        assert!(
            engine.is_held(&second, MS),
            "only the holder: a share was ended by someone else"
        );
        assert_eq!(
            get(&engine, &name, Wants::Exclusive, one),
            None,
            "exclusion: one has a share"
        );
        release(&engine, &second);
        check_all_is_back(&engine, &name, Wants::Exclusive, one);
    });
}

#[test]
fn one_who_leaves_late_while_another_takes_it_out_is_counted_once() {
    let all = Wants::permits(2, 2).unwrap();
    model("leave against reap").check(move || {
        let (engine, [late, other]) = engine(CAPS);
        let name = engine.semaphore_name(b"s").unwrap();
        let one = Wants::permits(1, 2).unwrap();
        let grant = get(&engine, &name, one, late).unwrap();
        let stays = engine.try_get(&name, one, late, MS, 10 * LEASE).unwrap();
        let now_ns = MS + LEASE;
        let taken = {
            let (engine_2, name_2) = (engine.clone(), name.clone());
            let ((), taken) = both(
                &engine,
                // In time or not: either is an answer.
                || {
                    engine.release(&grant, || MS);
                },
                move || {
                    engine_2
                        .try_get(&name_2, one, other, now_ns, LEASE)
                        .unwrap()
                },
            );
            taken
        };
        let Attempt::Granted(taken) = taken else {
            panic!("all is back: what was over, or left, was not to be had");
        };
        let Attempt::Granted(stays) = stays else {
            unreachable!("there were two");
        };
        assert_eq!(
            get(&engine, &name, one, late),
            None,
            "exclusion: more are out than there are"
        );
        release(&engine, &taken);
        release(&engine, &stays);
        check_all_is_back(&engine, &name, all, other);
    });
}

/// One who waits for what another has, and the other who gives it back.
fn wait_against_release(model_name: &'static str, has: Wants, wants: Wants) {
    model(model_name).check(move || {
        let (engine, [holder, waiter]) = engine(CAPS);
        let name = engine.lock_name(b"name").unwrap();
        let grant = get(&engine, &name, has, holder).unwrap();
        let ticket = engine.enqueue_for(std::slice::from_ref(&name), wants, waiter, MS, DEADLINE);
        let ticket = ticket.unwrap();
        let (outcome, wake) = {
            let engine_2 = engine.clone();
            both(
                &engine,
                || wait(&engine, &name, waiter, &ticket),
                move || release(&engine_2, &grant),
            )
        };
        let grant = woken(&engine, &name, waiter, &ticket, outcome, &[wake]);
        release(&engine, &grant);
        check_all_is_back(&engine, &name, wants, holder);
    });
}

#[test]
fn the_last_who_leaves_wakes_who_waits_to_have_the_lock_alone() {
    wait_against_release("last leave against wait", Wants::Shared, Wants::Exclusive);
}

#[test]
fn a_release_of_permits_wakes_who_waits_for_them() {
    let two = Wants::permits(2, 2).unwrap();
    wait_against_release("permits against wait", two, two);
}

#[test]
fn one_who_waits_to_have_alone_what_it_shares_gets_it_or_is_woken_when_the_other_leaves() {
    model("waiting upgrade against leave").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        let name = engine.lock_name(b"lock").unwrap();
        let (a, b) = (share(&engine, &name, one), share(&engine, &name, two));
        assert_eq!(engine.try_upgrade(&a, MS, LEASE).unwrap(), Upgrade::Shared);
        let ticket = engine.enqueue_for(
            std::slice::from_ref(&name),
            Wants::Upgrade(a),
            one,
            MS,
            DEADLINE,
        );
        let ticket = ticket.unwrap();
        let (outcome, wake) = {
            let engine_2 = engine.clone();
            both(
                &engine,
                || wait(&engine, &name, one, &ticket),
                move || release(&engine_2, &b),
            )
        };
        let grant = woken(&engine, &name, one, &ticket, outcome, &[wake]);
        assert!(!engine.is_shared(&grant), "upgrade: it has it alone");
        assert_eq!(grant.token, b.token + 1, "tokens: they are consecutive");
        release(&engine, &grant);
        check_all_is_back(&engine, &name, Wants::Exclusive, two);
    });
}

#[test]
fn one_who_asks_to_have_alone_what_it_shares_while_the_other_leaves_has_it_or_may_wait() {
    model("upgrade against leave").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        let name = engine.lock_name(b"lock").unwrap();
        let (a, b) = (share(&engine, &name, one), share(&engine, &name, two));
        let (answer, ()) = {
            let engine_2 = engine.clone();
            both(
                &engine,
                || engine.try_upgrade(&a, MS, LEASE).unwrap(),
                move || {
                    release(&engine_2, &b);
                },
            )
        };
        let grant = match answer {
            Upgrade::Granted(grant) => grant,
            Upgrade::Shared => {
                assert_eq!(
                    get(&engine, &name, Wants::Shared, two),
                    None,
                    "upgrade: who waits for it lets nobody new in"
                );
                match engine.try_upgrade(&a, MS, LEASE).unwrap() {
                    Upgrade::Granted(grant) => grant,
                    answer => panic!("upgrade: nobody else shares it, and it is {answer:?}"),
                }
            }
            answer => panic!("upgrade: {answer:?} where nobody else asks"),
        };
        assert_eq!(
            get(&engine, &name, Wants::Shared, two),
            None,
            "exclusion: it is had alone"
        );
        release(&engine, &grant);
        check_all_is_back(&engine, &name, Wants::Exclusive, two);
    });
}

#[test]
fn one_who_has_the_only_share_and_wants_the_lock_alone_never_has_it_beside_one_who_joins() {
    model("upgrade against join").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        let name = engine.lock_name(b"lock").unwrap();
        let a = share(&engine, &name, one);
        let (answer, joined) = {
            let (engine_2, name_2) = (engine.clone(), name.clone());
            both(
                &engine,
                || engine.try_upgrade(&a, MS, LEASE).unwrap(),
                move || get(&engine_2, &name_2, Wants::Shared, two),
            )
        };
        let held = match (answer, joined) {
            (Upgrade::Granted(grant), None) => vec![grant],
            (Upgrade::Shared, Some(joined)) => vec![a, joined],
            other => panic!("exclusion: {other:?}"),
        };
        for grant in &held {
            assert!(
                engine.is_held(grant, MS),
                "only the holder: a hold was ended"
            );
            release(&engine, grant);
        }
        check_all_is_back(&engine, &name, Wants::Exclusive, two);
    });
}

#[test]
fn of_two_who_want_alone_what_they_share_one_is_told() {
    model("two upgrades").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        let name = engine.lock_name(b"lock").unwrap();
        let (a, b) = (share(&engine, &name, one), share(&engine, &name, two));
        let (x, y) = {
            let engine_2 = engine.clone();
            both(
                &engine,
                || engine.try_upgrade(&a, MS, LEASE).unwrap(),
                move || engine_2.try_upgrade(&b, MS, LEASE).unwrap(),
            )
        };
        let (waits, leaves) = match (x, y) {
            (Upgrade::Shared, Upgrade::Conflict) => (a, b),
            (Upgrade::Conflict, Upgrade::Shared) => (b, a),
            other => panic!("upgrade: one waits and one is told, not {other:?}"),
        };
        release(&engine, &leaves);
        let Upgrade::Granted(grant) = engine.try_upgrade(&waits, MS, LEASE).unwrap() else {
            panic!("upgrade: nobody else shares it");
        };
        release(&engine, &grant);
        check_all_is_back(&engine, &name, Wants::Exclusive, one);
    });
}
