//! Whoever checks several limits at once and is stopped or dies between two steps: others go on after a bounded
//! number of looks, find all of it or none, and what it does when it goes on changes nothing.

use super::*;
use crate::limit::Limit;
use crate::limiter::{Asked, Checked, LimiterRef, overflow_at, prepared};
use crate::limiter_key::LimiterKey;
use crate::region::Caps;
use crate::session::Process;
use crate::table::LIVE;

const KEYS: [&str; 3] = ["a", "b", "c"];

fn engine(limiter_keys: u32) -> (Engine, SessionId) {
    crate::stopped::engine(Caps {
        objects: 16,
        limiter_keys,
        ..Caps::default()
    })
}

impl Engine {
    fn set_limit(&self, text: &str, by: SessionId) -> LimiterRef {
        let limit: Limit = text.parse().unwrap();
        self.open_limiter(b"l", limit, true, by, 0).unwrap()
    }

    fn take_one(&self, limiter: &LimiterRef, key: &str, cost: u64, by: SessionId) -> Checked {
        self.check(limiter, key.as_bytes(), cost, by, 0).unwrap()
    }

    fn left(&self, limiter: &LimiterRef, key: &str) -> u64 {
        let peeked = self.peek(limiter, key.as_bytes(), 0).unwrap();
        peeked.decision.remaining()
    }

    fn lefts(&self, limiter: &LimiterRef) -> [u64; 3] {
        KEYS.map(|key| self.left(limiter, key))
    }

    fn take_of_each(&self, limiter: &LimiterRef, keys: &[&str], by: SessionId) -> Result<bool> {
        let asked = keys.iter().map(|key| Asked {
            limiter,
            key: key.as_bytes(),
            cost: 1,
        });
        self.check_all(asked, by, 0, 0, |_, _| {})
    }

    /// The steps of a call that takes one of each of `keys`, up to the one that decides.
    fn begin_charge<'e>(&'e self, limiter: &LimiterRef, keys: &[&str], by: SessionId) -> Begun<'e> {
        let charge = self.claim_charge(by, 0).unwrap();
        let mut words: Vec<(usize, KeyState, KeyState)> = Vec::new();
        for key in keys {
            let entry = LimiterKey::new(self, limiter, key.as_bytes());
            let found = self.limiter_keys.find(&self.region, entry.hash, &entry);
            let (at, state) = found.map_or_else(
                || {
                    let at = overflow_at(&self.region, limiter.id);
                    (at, self.region.wide(at).load())
                },
                |found| (found.at, found.state),
            );
            let before = KeyState(state);
            let moment = self.region.moment(0);
            let limit = prepared(&self.region, before.limit()).unwrap();
            let crate::limit::Verdict::Allowed { new_value } =
                limit.check(before.value(), moment, 1)
            else {
                panic!("there is room");
            };
            words.push((at, before, before.admitted(new_value)));
        }
        Begun { charge, words }
    }

    fn check_is_sound(&self) {
        let check = self.check_region();
        assert_eq!((check.charges, check.findings), (0, vec![]));
    }
}

/// A call under way, step by step.
struct Begun<'e> {
    charge: Charge<'e>,
    words: Vec<(usize, KeyState, KeyState)>,
}

impl Begun<'_> {
    /// Engages a word; `None` if it changed since.
    fn engage(&self, entry: usize) -> Option<KeyState> {
        let (at, before, after) = self.words[entry];
        let engaged = self.charge.enter(entry, at, before, after);
        let word = self.charge.region.wide(at);
        word.compare_exchange(before.0, engaged.0)
            .ok()
            .map(|()| engaged)
    }

    fn finish(&self, entry: usize, engaged: KeyState, is_taken: bool) -> bool {
        let (at, before, after) = self.words[entry];
        let state = if is_taken { after } else { before };
        let word = self.charge.region.wide(at);
        word.compare_exchange(engaged.0, state.0).is_ok()
    }
}

fn world(text: &str) -> (Engine, SessionId, LimiterRef) {
    let (engine, me) = engine(64);
    let limiter = engine.set_limit(text, me);
    for key in KEYS {
        assert!(engine.take_one(&limiter, key, 1, me).decision.is_allowed());
    }
    (engine, me, limiter)
}

#[test]
fn property_15_a_call_that_is_stopped_before_its_step_is_called_off_by_whoever_meets_it() {
    for engaged in 1..=KEYS.len() {
        let (engine, me, limiter) = world("9/day");
        let begun = engine.begin_charge(&limiter, &KEYS, me);
        let words: Vec<_> = (0..engaged)
            .map(|entry| begun.engage(entry).unwrap())
            .collect();
        // Another finds the value before, and takes its own.
        for key in KEYS {
            assert_eq!(engine.left(&limiter, key), 8, "stopped: nothing is taken");
            let checked = engine.take_one(&limiter, key, 1, me);
            assert_eq!(checked.decision.remaining(), 7);
        }
        // It goes on: no step of it finds what it expects.
        for entry in engaged..KEYS.len() {
            assert_eq!(begun.engage(entry), None);
        }
        assert!(!begun.charge.decide(), "stopped: it was called off");
        for (entry, word) in words.into_iter().enumerate() {
            assert!(!begun.finish(entry, word, false));
        }
        begun.charge.free();
        assert_eq!(engine.lefts(&limiter), [7; 3]);
        assert!(engine.take_of_each(&limiter, &KEYS, me).unwrap());
        assert_eq!(engine.lefts(&limiter), [6; 3]);
        engine.check_is_sound();
    }
}

#[test]
fn property_15_what_a_call_engages_after_it_was_called_off_is_put_back_by_whoever_meets_it() {
    let (engine, me, limiter) = world("9/day");
    let begun = engine.begin_charge(&limiter, &KEYS, me);
    let first = begun.engage(0).unwrap();
    assert!(engine.take_one(&limiter, "a", 1, me).decision.is_allowed());
    // Stopped before it engages the second word, it goes on.
    let second = begun.engage(1).unwrap();
    assert_eq!(engine.left(&limiter, "b"), 8, "stopped: nothing is taken");
    assert!(engine.take_one(&limiter, "b", 1, me).decision.is_allowed());
    assert!(begun.engage(2).is_some() && !begun.charge.decide());
    assert!(!begun.finish(0, first, false) && !begun.finish(1, second, false));
    assert_eq!(engine.lefts(&limiter), [7, 7, 8]);
    // It dies there; its charge is not free.
    assert_eq!(engine.check_region().charges, 1);
}

#[test]
fn property_10_a_call_that_is_stopped_after_its_step_is_finished_by_whoever_meets_it() {
    let (engine, me, limiter) = world("9/day");
    let begun = engine.begin_charge(&limiter, &KEYS, me);
    let words: Vec<_> = (0..3).map(|entry| begun.engage(entry).unwrap()).collect();
    assert!(begun.charge.decide());
    // One is put in its place by its caller, one by a look and one by a refund of what was taken before.
    assert!(begun.finish(0, words[0], true));
    assert_eq!(engine.lefts(&limiter), [7; 3], "all: it was decided");
    assert!(!begun.finish(1, words[1], true) && !begun.finish(2, words[2], true));
    begun.charge.free();
    engine.check_is_sound();
}

#[test]
fn property_15_a_helper_that_was_stopped_changes_nothing_of_a_later_call() {
    let (engine, me, limiter) = world("9/day");
    let begun = engine.begin_charge(&limiter, &KEYS[..1], me);
    let engaged = begun.engage(0).unwrap();
    // Stopped with this exchange prepared: the word engaged for the one before.
    let late = |expected: KeyState| {
        let (at, before, _) = begun.words[0];
        let word = engine.region.wide(at);
        word.compare_exchange(expected.0, before.0)
    };
    assert!(begun.finish(0, engaged, false));
    begun.charge.free();
    let again = engine.begin_charge(&limiter, &KEYS[..1], me);
    assert_eq!(again.charge.index, begun.charge.index, "the same charge");
    let engaged_again = again.engage(0).unwrap();
    assert!(
        late(engaged).is_err(),
        "stopped: a call has a number of its own"
    );
    assert!(again.charge.decide());
    assert!(again.finish(0, engaged_again, true));
    // Nor does the first free the second's charge.
    begun.charge.free();
    assert!(engine.charges_in_use() == 1);
    again.charge.free();
    engine.check_is_sound();
}

#[test]
fn property_11_charges_of_the_dead_are_free_once_they_are_needed_and_those_of_the_living_an_error()
{
    let (engine, me, limiter) = world("9/day");
    let dead = engine.open_session(Process::default(), 0).unwrap();
    for _ in 1..CHARGES {
        engine.claim_charge(dead, 0).unwrap();
    }
    let begun = engine.begin_charge(&limiter, &KEYS, dead);
    for entry in 0..3 {
        assert!(begun.engage(entry).is_some());
    }
    let living = engine.take_of_each(&limiter, &KEYS, me);
    assert!(matches!(living, Err(Error::Full { cap, .. }) if cap == u64::from(CHARGES)));
    assert_eq!(engine.lefts(&limiter), [8; 3], "refused: nothing is taken");
    engine.close_session(dead);
    assert!(engine.take_of_each(&limiter, &KEYS, me).unwrap());
    assert_eq!(engine.lefts(&limiter), [7; 3]);
    engine.check_is_sound();
}

#[test]
fn property_10_what_the_dead_had_decided_is_so_once_their_charge_is_needed() {
    for (is_decided, left) in [(false, 8), (true, 7)] {
        let (engine, me, limiter) = world("9/day");
        let dead = engine.open_session(Process::default(), 0).unwrap();
        let begun = engine.begin_charge(&limiter, &KEYS, dead);
        for entry in 0..3 {
            assert!(begun.engage(entry).is_some());
        }
        assert!(!is_decided || begun.charge.decide());
        engine.close_session(dead);
        // Its id comes round.
        engine.end_charges_of(dead.index());
        let is_engaged = |(at, ..): &(usize, KeyState, KeyState)| {
            KeyState(engine.region.wide(*at).load()).is_engaged()
        };
        assert!(
            !begun.words.iter().any(is_engaged),
            "the dead: no word is left"
        );
        assert_eq!(engine.lefts(&limiter), [left; 3]);
        assert!(engine.take_of_each(&limiter, &KEYS, me).unwrap());
        engine.check_is_sound();
    }
}

#[test]
fn property_12_a_change_of_the_limit_takes_along_what_a_stopped_call_had_decided() {
    for (is_decided, left) in [(false, 10), (true, 9)] {
        let (engine, me, limiter) = world("9/day");
        let begun = engine.begin_charge(&limiter, &KEYS, me);
        let words: Vec<_> = (0..3).map(|entry| begun.engage(entry).unwrap()).collect();
        assert!(!is_decided || begun.charge.decide());
        let wider = engine.set_limit("11/day", me);
        assert_eq!(
            engine.lefts(&wider),
            [left; 3],
            "one is used, two if it was decided"
        );
        assert!(!begun.charge.decide());
        for (entry, word) in words.into_iter().enumerate() {
            assert!(!begun.finish(entry, word, is_decided));
        }
        begun.charge.free();
        assert!(engine.take_of_each(&limiter, &KEYS, me).unwrap());
        assert_eq!(engine.lefts(&wider), [left - 1; 3]);
        engine.check_is_sound();
    }
}

#[test]
fn property_12_the_bucket_of_keys_without_room_is_charged_and_moved_as_a_key_is() {
    for (is_decided, left) in [(false, 8), (true, 7)] {
        let (engine, me) = engine(1);
        let limiter = engine.set_limit("9/day", me);
        assert!(!engine.take_one(&limiter, "full", 1, me).is_overflow);
        let one = engine.take_one(&limiter, "a", 1, me);
        assert!(one.is_overflow);
        let begun = engine.begin_charge(&limiter, &["full", "a"], me);
        assert!(begun.engage(0).is_some() && begun.engage(1).is_some());
        assert!(!is_decided || begun.charge.decide());
        // Given back by somebody who finds it engaged.
        assert_eq!(engine.refund(&limiter, one, || 0).unwrap().cost(), 1);
        assert_eq!(engine.left(&limiter, "a"), left + 1, "one came back");
        begun.charge.free();
        let begun = engine.begin_charge(&limiter, &["full", "a"], me);
        assert!(begun.engage(0).is_some() && begun.engage(1).is_some());
        assert!(!is_decided || begun.charge.decide());
        let wider = engine.set_limit("11/day", me);
        let left = if is_decided { left + 2 } else { left + 3 };
        assert_eq!(engine.left(&wider, "a"), left, "the level moved along");
    }
}

#[test]
fn property_12_keys_without_room_are_checked_and_looked_at_though_their_bucket_is_engaged() {
    for is_looked_at in [false, true] {
        let (engine, me) = engine(1);
        let limiter = engine.set_limit("9/day", me);
        assert!(!engine.take_one(&limiter, "full", 1, me).is_overflow);
        // More than a mark would say.
        assert!(engine.take_one(&limiter, "a", 3, me).is_overflow);
        let begun = engine.begin_charge(&limiter, &["full", "a"], me);
        assert!(begun.engage(0).is_some() && begun.engage(1).is_some() && begun.charge.decide());
        if is_looked_at {
            assert_eq!(engine.left(&limiter, "b"), 5, "all: it was decided");
        }
        let checked = engine.take_one(&limiter, "b", 1, me);
        assert!(checked.is_overflow);
        assert_eq!(checked.decision.remaining(), 4, "all: it was decided");
    }
}

#[test]
fn property_12_a_key_that_leaves_a_bucket_which_is_engaged_starts_at_its_level() {
    let (engine, me) = engine(1);
    let limiter = engine.set_limit("9/day", me);
    assert!(!engine.take_one(&limiter, "full", 1, me).is_overflow);
    // More than a mark would say.
    assert!(engine.take_one(&limiter, "a", 3, me).is_overflow);
    let begun = engine.begin_charge(&limiter, &["full", "a"], me);
    assert!(begun.engage(1).is_some());
    assert!(begun.engage(0).is_some() && begun.charge.decide());
    let level = crate::limiter::first_value(&engine.region, limiter.id);
    assert_eq!(level, begun.words[1].2.value(), "the level, not the mark");
    // The one key in the table is gone, and there is room for another.
    engine
        .limiter_keys
        .for_each(&engine.region, |cell, at, state| {
            if crate::table::phase(state) == LIVE {
                let state = settle(&engine.region, at).unwrap();
                assert!(engine.limiter_keys.reclaim(&engine.region, cell, state));
            }
        });
    let checked = engine.take_one(&limiter, "a", 1, me);
    assert!(!checked.is_overflow);
    assert_eq!(
        checked.decision.remaining(),
        4,
        "what the bucket has used counts"
    );
}

#[test]
fn property_11_an_idle_key_makes_room_though_a_stopped_call_has_it_engaged() {
    let (engine, me) = engine(1);
    let limiter = engine.set_limit("9/day", me);
    assert!(!engine.take_one(&limiter, "old", 0, me).is_overflow);
    let begun = engine.begin_charge(&limiter, &["old"], me);
    assert!(begun.engage(0).is_some());
    let checked = engine.take_one(&limiter, "new", 1, me);
    assert!(!checked.is_overflow, "room: the old key has nothing used");
    assert!(!begun.charge.decide());
}

#[test]
fn property_11_a_word_that_no_charge_knows_is_damage_and_not_waited_for() {
    let (engine, me, limiter) = world("9/day");
    let begun = engine.begin_charge(&limiter, &KEYS, me);
    let words: Vec<_> = (0..3).map(|entry| begun.engage(entry).unwrap()).collect();
    // Its charge is freed with its words engaged, as no one does.
    begun.charge.free();
    let checked = engine.check(&limiter, b"a", 1, me, 0);
    assert!(matches!(checked, Err(Error::Damaged { .. })));
    let all = engine.take_of_each(&limiter, &KEYS, me);
    assert!(matches!(all, Err(Error::Damaged { .. })));
    assert_eq!(engine.check_region().findings.len(), words.len());
}

#[test]
fn property_15_a_key_gets_and_loses_an_override_though_a_call_that_has_engaged_it_stands_still() {
    for is_taken in [false, true] {
        let (engine, me, limiter) = world("9/day");
        let set = |text: &str| {
            let limit = text.parse().unwrap();
            engine
                .set_override(&limiter, b"a", limit, me, || 0)
                .unwrap();
        };
        let clear = |_: &str| assert!(engine.clear_override(&limiter, b"a", || 0).unwrap());
        let change = |_: &str| drop(engine.set_limit("19/day", me));
        let steps = [
            (&set as &dyn Fn(&str), "99/day", 98),
            (&set, "29/day", 28),
            (&clear, "", 8),
            (&set, "99/day", 98),
            (&change, "", 98),
        ];
        let mut taken = 0;
        for (step, text, left) in steps {
            let limiter = engine.limiter_ref(limiter.name()).unwrap();
            let begun = engine.begin_charge(&limiter, &["a"], me);
            let engaged = begun.engage(0).unwrap();
            assert!(!is_taken || begun.charge.decide());
            taken += u64::from(is_taken);
            step(text);
            let limiter = engine.limiter_ref(limiter.name()).unwrap();
            assert_eq!(
                engine.left(&limiter, "a"),
                left - taken,
                "{text}: all of it or none"
            );
            assert!(
                !begun.finish(0, engaged, is_taken),
                "{text}: somebody else did it"
            );
            begun.charge.free();
            assert_eq!(engine.left(&limiter, "a"), left - taken, "{text}: once");
        }
        engine.check_is_sound();
    }
}

#[test]
fn property_15_a_limit_is_fresh_though_a_stopped_call_engages_the_bucket_of_the_one_whose_slot_it_has()
 {
    for is_taken in [false, true] {
        let (engine, me) = engine(1);
        let limiter = engine.set_limit("9/day", me);
        assert!(!engine.take_one(&limiter, "full", 1, me).is_overflow);
        let set = |key: &str, text: &str| {
            let limit = text.parse().unwrap();
            engine.set_override(&limiter, key.as_bytes(), limit, me, || 0)
        };
        set("a", "99/day").unwrap();
        assert!(engine.take_one(&limiter, "a", 1, me).is_overflow);
        let own = engine.override_for(&limiter, b"a").unwrap();
        // Stopped: it has yet to engage that bucket. The limit is no key's any more, and its slot is free.
        let begun = engine.begin_charge(&own, &["a"], me);
        assert!(engine.clear_override(&limiter, b"a", || 0).unwrap());
        engine.free_unnamed_overrides();
        let word = begun.engage(0).unwrap();
        assert!(!is_taken || begun.charge.decide());
        set("b", "77/day").unwrap();
        assert_eq!(engine.override_for(&limiter, b"b").unwrap().id, own.id);
        let checked = engine.take_one(&limiter, "b", 1, me);
        assert!(checked.is_overflow);
        assert_eq!(checked.decision.remaining(), 76, "nothing of it is used");
        assert!(!begun.finish(0, word, is_taken));
        begun.charge.free();
        assert_eq!(engine.left(&limiter, "b"), 76, "nor of the one before");
        engine.check_is_sound();
    }
}
