//! Concurrency limiters: no acquire goes by an old capacity once a change is through, nobody is refused for a
//! grant that is undone, and who waits is told of a change.

use crate::shared::{DEADLINE, check_all_is_back, get, release, wait, woken};
use sprag_core::admission::Wants;
use sprag_core::lock::{Attempt, Grant, HoldOf};
use sprag_core::waiter::Wake;
use sprag_core::{ConcurrencyRef, Engine, Error, Name, SessionId};
use sprag_loom_tests::{CAPS, MS, both, engine, model};
use std::sync::Arc;

struct Scene {
    engine: Arc<Engine>,
    one: SessionId,
    two: SessionId,
    limiter: ConcurrencyRef,
    name: Name,
}

impl Scene {
    fn new(capacity: u32) -> Self {
        let (engine, [one, two]) = engine(CAPS);
        let limiter = open(&engine, capacity, one, |_| {});
        let name = engine.slots_name(limiter, b"key").unwrap();
        Self {
            engine,
            one,
            two,
            limiter,
            name,
        }
    }

    fn wants(&self, amount: u32) -> Wants {
        Wants::slots(amount, self.limiter).unwrap()
    }

    fn update(&self, capacity: u32) -> Vec<Wake> {
        let mut wakes = Vec::new();
        open(&self.engine, capacity, self.one, |wake| wakes.push(wake));
        wakes
    }

    /// How much of the key is taken.
    fn used(&self) -> u32 {
        let status = self.engine.permits_status(HoldOf::Slots, &self.name, MS);
        status.map_or(0, |status| status.used)
    }

    fn check_all_is_back(&self, capacity: u32) {
        self.update(capacity);
        check_all_is_back(&self.engine, &self.name, self.wants(capacity), self.one);
    }
}

fn open(engine: &Engine, capacity: u32, by: SessionId, wake: impl FnMut(Wake)) -> ConcurrencyRef {
    let opened = engine.open_concurrency(b"limiter", capacity, true, by, MS, wake);
    opened.unwrap()
}

/// Takes what is wanted; `None` also if there can never be so much.
fn get_unless_above(engine: &Engine, name: &Name, wants: Wants, by: SessionId) -> Option<Grant> {
    match engine.try_get(name, wants, by, MS, 10 * MS) {
        Ok(Attempt::Granted(grant)) => Some(grant),
        Ok(Attempt::Busy) | Err(Error::AboveCapacity { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn nobody_joins_by_an_old_capacity_once_a_change_is_through() {
    model("capacity against join").check(|| {
        let scene = Scene::new(2);
        let (engine, name) = (&scene.engine, &scene.name);
        let held = get(engine, name, scene.wants(1), scene.one).expect("there is room");
        let (used, joined) = {
            let (engine, name, two) = (engine.clone(), name.clone(), scene.two);
            let wants = scene.wants(1);
            both(
                &scene.engine,
                || {
                    scene.update(1);
                    scene.used()
                },
                move || get(&engine, &name, wants, two),
            )
        };
        assert!(
            joined.is_none() || used == 2,
            "capacity: one joined by the old one after the change was through"
        );
        release(engine, &held);
        if let Some(joined) = joined {
            release(engine, &joined);
        }
        scene.check_all_is_back(2);
    });
}

#[test]
fn nobody_joins_a_new_key_by_an_old_capacity_once_a_change_is_through() {
    model("capacity against a new key")
        .with_fewer_preemptions()
        .check(|| {
            let scene = Scene::new(2);
            let (used, joined) = {
                let (engine, name, two) = (scene.engine.clone(), scene.name.clone(), scene.two);
                let wants = scene.wants(2);
                both(
                    &scene.engine,
                    || {
                        scene.update(1);
                        scene.used()
                    },
                    move || get_unless_above(&engine, &name, wants, two),
                )
            };
            assert!(
                joined.is_none() || used == 2,
                "capacity: one joined a new key by the old one after the change was through"
            );
            if let Some(joined) = joined {
                release(&scene.engine, &joined);
            }
            scene.check_all_is_back(2);
        });
}

#[test]
fn nobody_is_refused_for_a_grant_that_is_undone() {
    model("refusal against undoing")
        .with_fewer_preemptions()
        .check(|| {
            let scene = Scene::new(2);
            let (engine, name) = (&scene.engine, &scene.name);
            let before = get(engine, name, scene.wants(1), scene.one).expect("there is room");
            release(engine, &before);
            let (one, two) = {
                let (engine, name, two) = (engine.clone(), name.clone(), scene.two);
                let wants = scene.wants(2);
                both(
                    &scene.engine,
                    || {
                        scene.update(1);
                        get(&scene.engine, &scene.name, scene.wants(1), scene.one)
                    },
                    move || get_unless_above(&engine, &name, wants, two),
                )
            };
            assert!(
                one.is_some() || two.is_some(),
                "capacity: refused for a grant that was undone"
            );
            assert!(
                one.is_none() || two.is_none(),
                "capacity: more are out than there are"
            );
            release(engine, &one.or(two).unwrap());
            scene.check_all_is_back(2);
        });
}

#[test]
fn one_who_waits_is_woken_by_a_capacity_that_rises() {
    model("capacity against wait").check(|| {
        let scene = Scene::new(1);
        let (engine, name) = (&scene.engine, &scene.name);
        let held = get(engine, name, scene.wants(1), scene.one).expect("there is room");
        let (wakes, (ticket, outcome)) = {
            let (engine, name, two) = (engine.clone(), name.clone(), scene.two);
            let wants = scene.wants(1);
            both(
                &scene.engine,
                || scene.update(2),
                move || {
                    let names = std::slice::from_ref(&name);
                    let ticket = engine.enqueue_for(names, wants, two, MS, DEADLINE).unwrap();
                    let outcome = wait(&engine, &name, two, &ticket);
                    (ticket, outcome)
                },
            )
        };
        let wakes: Vec<_> = wakes.into_iter().map(Some).collect();
        let got = woken(engine, name, scene.two, &ticket, outcome, &wakes);
        for grant in [held, got] {
            release(engine, &grant);
        }
        scene.check_all_is_back(2);
    });
}
