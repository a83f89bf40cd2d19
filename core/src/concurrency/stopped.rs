//! Who wants permits of a limiter's key, and is stopped in the middle, while the capacity changes.

use super::{ConcurrencyRef, Rule};
use crate::admission::{Asker, Wants};
use crate::engine::Engine;
use crate::lock::{Attempt, Grant, HoldOf};
use crate::object::{Name, Objects};
use crate::region::Caps;
use crate::session::SessionId;
use crate::stopped::engine;
use crate::table::Flavour as _;
use core::sync::atomic::Ordering::Relaxed;

const LEASE: u64 = 30_000_000_000;

struct Scene {
    engine: Engine,
    me: SessionId,
    limiter: ConcurrencyRef,
    name: Name,
}

impl Scene {
    fn new(capacity: u32) -> Self {
        let (engine, me) = engine(Caps {
            objects: 8,
            ..Caps::default()
        });
        let limiter = engine
            .open_concurrency(b"limiter", capacity, false, me, 0, |_| {})
            .unwrap();
        let name = engine.slots_name(limiter, b"key").unwrap();
        Self {
            engine,
            me,
            limiter,
            name,
        }
    }

    fn update(&self, capacity: u32) {
        let updated = self
            .engine
            .open_concurrency(b"limiter", capacity, true, self.me, 0, |_| {});
        assert_eq!(updated.unwrap(), self.limiter);
    }

    fn wants(&self, amount: u32) -> Wants {
        Wants::slots(amount, self.limiter).unwrap()
    }

    fn get(&self, amount: u32) -> Attempt {
        let wants = self.wants(amount);
        self.engine
            .try_get(&self.name, wants, self.me, 0, LEASE)
            .unwrap()
    }

    fn used(&self) -> u32 {
        let status = self.engine.permits_status(HoldOf::Slots, &self.name, 0);
        status.map_or(0, |status| status.used)
    }

    fn asker(&self) -> Asker {
        Asker {
            by: self.me,
            number: None,
            now_ns: 0,
            lease_ns: LEASE,
            probe: true,
        }
    }

    /// Joins by the rule, and does not look again.
    fn join_only(&self, amount: u32, rule: Rule) -> Grant {
        let found = self.engine.find_slots(&self.name, self.me, 0).unwrap();
        let joined = self
            .engine
            .join_by(rule, &found, amount, &self.asker(), &mut None);
        joined.unwrap().expect("nobody else is about")
    }

    fn rule(&self) -> Rule {
        self.engine.rule(self.limiter).unwrap()
    }

    fn stands(&self, grant: &Grant) -> bool {
        self.engine.stands(self.limiter, grant, 0)
    }
}

#[test]
fn property_12_one_that_joined_by_a_capacity_that_is_another_by_now_leaves_again() {
    let scene = Scene::new(2);
    assert!(matches!(scene.get(1), Attempt::Granted(_)));
    let late = scene.join_only(1, scene.rule());
    scene.update(1);
    assert!(!scene.stands(&late));
    assert_eq!(scene.used(), 1);
    assert_eq!(scene.get(1), Attempt::Busy);
}

#[test]
fn property_15_also_where_the_capacity_came_back_meanwhile() {
    let scene = Scene::new(2);
    assert!(matches!(scene.get(1), Attempt::Granted(_)));
    // Stopped after it read the capacity, and again after it joined.
    let rule = scene.rule();
    scene.update(1);
    let late = scene.join_only(1, rule);
    scene.update(2);
    assert!(!scene.stands(&late));
    assert!(matches!(scene.get(1), Attempt::Granted(_)));
    assert_eq!(scene.used(), 2);
}

#[test]
fn property_12_nobody_is_refused_for_a_grant_that_is_undone() {
    let scene = Scene::new(2);
    let late = scene.join_only(2, scene.rule());
    scene.update(3);
    // Its room is given to one who needs it, and it finds that out however late it goes on.
    let Attempt::Granted(all) = scene.get(3) else {
        panic!("nobody has any");
    };
    assert!(!scene.stands(&late));
    assert!(scene.engine.is_held(&all, 0));
    assert_eq!(scene.used(), 3);
}

#[test]
fn property_12_a_grant_for_which_another_was_refused_stands() {
    let scene = Scene::new(2);
    let late = scene.join_only(2, scene.rule());
    assert_eq!(scene.get(1), Attempt::Busy);
    scene.update(1);
    assert!(scene.stands(&late));
    assert!(scene.engine.is_held(&late, 0));
}

#[test]
fn property_15_one_that_comes_late_decides_nothing_for_another_use_of_its_permit() {
    let scene = Scene::new(1);
    let late = scene.join_only(1, scene.rule());
    scene.update(2);
    let engine = &scene.engine;
    let other = late.permit().unwrap() + 1;
    engine.used.permit_hint.store(other, Relaxed);
    assert!(matches!(scene.get(2), Attempt::Granted(_)));
    // It is undone, and its permit is another's, which is undecided.
    engine
        .used
        .permit_hint
        .store(late.permit().unwrap(), Relaxed);
    scene.update(3);
    let next = scene.join_only(1, scene.rule());
    assert_eq!(next.permit(), late.permit());
    assert!(!scene.stands(&late));
    // Who shared a lock by it and is late with saying since when says nothing of it either.
    engine.note_permit(late.permit().unwrap(), 0);
    scene.update(2);
    assert!(!scene.stands(&next));
    assert_eq!(scene.used(), 2);
    // Nor where its permit is one that stands by now.
    scene.update(3);
    engine
        .used
        .permit_hint
        .store(late.permit().unwrap(), Relaxed);
    let Attempt::Granted(last) = scene.get(1) else {
        panic!("there is room");
    };
    assert_eq!(last.permit(), late.permit());
    assert!(!scene.stands(&late));
    assert!(engine.is_held(&last, 0));
}

#[test]
fn property_15_one_that_counts_members_leaves_a_cell_alone_that_is_being_claimed_by_then() {
    let scene = Scene::new(1);
    let engine = &scene.engine;
    let Attempt::Granted(grant) = scene.get(1) else {
        panic!("nobody has any");
    };
    // Stopped: it found no room, and has yet to look at the members.
    let found = engine.find_slots(&scene.name, scene.me, 0).unwrap();
    engine.release(&grant, || 0);
    let word = engine.region.wide(found.at);
    assert!(
        engine
            .objects
            .reclaim(&engine.region, found.cell, word.load())
    );
    let claim = crate::table::Claim {
        session: scene.me,
        home: 1,
        payload: 0,
    };
    let claimed = Objects::claimed(word.load(), claim);
    word.compare_exchange(word.load(), claimed).unwrap();
    let _ = engine.reap(found.cell, found.state, scene.me, 0, true);
    assert_eq!(word.load(), claimed);
}
