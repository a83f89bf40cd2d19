//! Fences one step after another, against a map of the highest tokens.

mod support;

use proptest::prelude::*;
use std::collections::BTreeMap;
use support::{NAMES, SMALL, engine_with_session, model_config};

proptest! {
    #![proptest_config(model_config())]

    #[test]
    fn fences_admit_what_a_map_of_highest_tokens_does(
        steps in prop::collection::vec(
            (0..3_usize, prop_oneof![0..6_u64, Just((1 << 53) - 2), Just((1 << 53) - 1)], any::<bool>()),
            1..60,
        ),
    ) {
        let (engine, me) = engine_with_session(SMALL);
        let mut highest: BTreeMap<usize, u64> = BTreeMap::new();
        for (name, token, once) in steps {
            let core_name = engine.fence_name(NAMES[name]).unwrap();
            let highest = highest.entry(name).or_default();
            let fresh = token > 0 && (token > *highest || (!once && token == *highest));
            match engine.admit(&core_name, me, 0, token, once).unwrap() {
                Ok(()) => {
                    prop_assert!(fresh);
                    *highest = token;
                }
                Err(stale) => {
                    prop_assert!(!fresh);
                    prop_assert_eq!((stale.token, stale.highest), (token, *highest));
                }
            }
            prop_assert_eq!(engine.fence_highest(&core_name), *highest);
        }
    }
}
