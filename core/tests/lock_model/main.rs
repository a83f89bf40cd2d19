//! Locks one step after another, against naive models: maps and lists that say what a reader of the
//! documentation would. Times are arguments and only rise.

mod step;
#[path = "../support/mod.rs"]
mod support;
mod world;

use proptest::prelude::*;
use sprag_core::lock::{Attempt, Grant, Released};
use sprag_core::region::Caps;
use std::collections::BTreeMap;
use step::step;
use support::{FLOOR, NAMES, SMALL, engine_with_session, model_config};
use world::World;

proptest! {
    #![proptest_config(model_config())]

    // property 1, property 2, property 3, property 4, property 5, property 6
    #[test]
    fn locks_do_what_a_naive_model_does(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        for name in 0..NAMES.len() {
            world.look(name);
        }
    }

    // property 2, property 11
    #[test]
    fn tokens_rise_for_ever_at_a_cap_that_reclaims_and_a_full_table_has_only_holds(
        steps in prop::collection::vec((0..12_u8, any::<bool>()), 1..200),
    ) {
        const CAP: usize = 4;
        let (engine, me) = engine_with_session(Caps { objects: CAP as u32, ..SMALL });
        let mut last = BTreeMap::new();
        let mut held: BTreeMap<u8, Grant> = BTreeMap::new();
        for (name, is_acquire) in steps {
            if !is_acquire {
                if let Some(grant) = held.remove(&name) {
                    prop_assert_eq!(engine.release(&grant, || 0), Released::Done { wake: None });
                }
                continue;
            }
            let long = vec![name; if name.is_multiple_of(2) { 2 } else { 100 }];
            let core_name = engine.lock_name(&long).unwrap();
            match engine.try_acquire(&core_name, me, 0, 1_000_000_000) {
                Ok(Attempt::Granted(grant)) => {
                    prop_assert!(held.len() < CAP);
                    prop_assert!(grant.token > last.insert(name, grant.token).unwrap_or(FLOOR));
                    prop_assert!(held.insert(name, grant).is_none(), "held twice");
                }
                Ok(Attempt::Busy) => prop_assert!(held.contains_key(&name)),
                Err(error) => {
                    prop_assert!(matches!(error, sprag_core::Error::Full { cap: 4, .. }), "{error}");
                    prop_assert_eq!(held.len(), CAP);
                }
            }
        }
    }
}
