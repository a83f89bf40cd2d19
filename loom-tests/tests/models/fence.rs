//! Fences: tokens never go back.

use sprag_core::lock::Attempt;
use sprag_loom_tests::{CAPS, MS, both, engine, model};

#[test]
fn a_fence_that_two_threads_raise_never_goes_back() {
    model("fence").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        let name = engine.fence_name(b"fence").unwrap();
        engine.admit(&name, one, MS, 1, false).unwrap().unwrap();

        let (admitted, seen) = {
            let (engine_2, name_2) = (engine.clone(), name.clone());
            both(
                &engine,
                || {
                    let admitted = [2, 4].map(|token| {
                        let admitted = engine.admit(&name, one, MS, token, false).unwrap();
                        (token, admitted, engine.fence_highest(&name))
                    });
                    admitted.to_vec()
                },
                move || {
                    let admitted = engine_2.admit(&name_2, two, MS, 3, false).unwrap();
                    vec![(3, admitted, engine_2.fence_highest(&name_2))]
                },
            )
        };
        for (token, admitted, highest) in admitted.into_iter().chain(seen) {
            match admitted {
                Ok(()) => assert!(highest >= token, "fence: it went back below {token}"),
                Err(stale) => assert!(
                    stale.highest > token && token < 4,
                    "fence: {token} was rejected though nothing higher was admitted"
                ),
            }
        }
        assert_eq!(
            engine.fence_highest(&name),
            4,
            "fence: the highest token is remembered"
        );
    });
}

#[test]
fn one_token_is_admitted_once_to_a_new_fence_however_many_bring_it() {
    model("fence, once").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        let name = engine.fence_name(b"fence").unwrap();

        let (first, second) = {
            let (engine_2, name_2) = (engine.clone(), name.clone());
            both(
                &engine,
                || engine.admit(&name, one, MS, 7, true).unwrap(),
                move || engine_2.admit(&name_2, two, MS, 7, true).unwrap(),
            )
        };
        assert!(
            first.is_ok() != second.is_ok(),
            "fence, once: exactly one admission"
        );
    });
}

#[test]
fn a_fence_in_the_cell_of_a_reclaimed_lock_never_shows_what_the_lock_left() {
    model("fence in a reused cell").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        // The second one has the cell that the fence looks at first.
        let [held, idle] = ["held", "b"].map(|name| engine.lock_name(name.as_bytes()).unwrap());
        for name in [&held, &idle] {
            let Attempt::Granted(grant) = engine.try_acquire(name, one, MS, 10 * MS).unwrap()
            else {
                unreachable!("a new lock is free");
            };
            if name.to_vec() == b"b" {
                engine.release(&grant, || MS);
            }
        }
        let name = engine.fence_name(b"fence").unwrap();
        let (seen, admitted) = {
            let (engine_2, name_2) = (engine.clone(), name.clone());
            both(
                &engine,
                || engine.fence_highest(&name),
                move || engine_2.admit(&name_2, two, MS, 7, false).unwrap(),
            )
        };
        assert_eq!(admitted, Ok(()), "fence: a new one admits any token");
        assert!(
            [0, 7].contains(&seen),
            "fence: {seen} was never admitted to it"
        );
    });
}
