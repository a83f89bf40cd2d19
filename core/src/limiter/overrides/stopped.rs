//! Whoever sets or clears an override, or moves a key on account of one, and is stopped or dies between two
//! steps, while everything moves on: no key may be decided by a limit that is over.

use super::*;
use crate::region::Caps;

const DAY: u64 = 86_400_000_000_000;

fn engine() -> (Engine, SessionId) {
    crate::stopped::engine(Caps {
        objects: 32,
        limiter_keys: 16,
        ..Caps::default()
    })
}

fn limit(text: &str) -> Limit {
    text.parse().unwrap()
}

/// An exchange of a key's word that somebody prepared and has yet to make.
struct Prepared {
    at: usize,
    before: u128,
    after: u128,
}

impl Engine {
    fn open(&self, name: &str, text: &str, by: SessionId) -> LimiterRef {
        self.open_limiter(name.as_bytes(), limit(text), true, by, 0)
            .unwrap()
    }

    fn give(&self, limiter: &LimiterRef, key: &str, text: &str, by: SessionId) {
        self.set_override(limiter, key.as_bytes(), limit(text), by, || 0)
            .unwrap();
    }

    /// The greatest cost that `key` may have at once, after it took 1.
    fn most(&self, limiter: &LimiterRef, key: &str, by: SessionId) -> u64 {
        let checked = self.check(limiter, key.as_bytes(), 1, by, 0).unwrap();
        checked.decision.limit()
    }

    fn cell(&self, limiter: &LimiterRef, key: &str) -> Found {
        let entry = LimiterKey::new(self, limiter, key.as_bytes());
        let found = self.limiter_keys.find(&self.region, entry.hash, &entry);
        found.unwrap()
    }

    fn found_override(&self, limiter: &LimiterRef, key: &str) -> Found {
        let pair = self.pair(limiter, key.as_bytes());
        self.find_object(&self.object(Kind::Override, &pair))
            .unwrap()
    }

    /// Takes an override away and dies before the key is brought back.
    fn clear_and_die(&self, limiter: &LimiterRef, key: &str) {
        let nothing = Chosen {
            current: None,
            next: None,
            is_settled: false,
        };
        let found = self.found_override(limiter, key);
        self.say(&found, nothing).unwrap();
    }

    /// The exchange that brings a key's cell under `to`, as one who read its word now would prepare it.
    fn prepare_move(&self, limiter: &LimiterRef, key: &str, to: u32) -> Prepared {
        let found = self.cell(limiter, key);
        let state = KeyState(found.state);
        Prepared {
            at: found.at,
            before: found.state,
            after: state.with_limit(to, state.value()).next_generation().0,
        }
    }

    fn is_late(&self, prepared: &Prepared) -> bool {
        let word = self.region.wide(prepared.at);
        word.compare_exchange(prepared.before, prepared.after)
            .is_err()
    }

    /// Takes every slot of a limit that is to be had.
    fn take_all_slots(&self, by: SessionId) -> u32 {
        let name = Name::new(&self.region, "name", b"taker").unwrap();
        let object = self.object(Kind::Limiter, &name);
        let cell = self.insert_object(&object, by, 0).unwrap().cell;
        let limit = limit("1/day").prepare();
        let taken = (0..u32::MAX).find(|_| {
            let role = super::super::definition::Role::First;
            self.new_limit(limit, &name, cell, role, by).is_err()
        });
        taken.unwrap()
    }
}

#[test]
fn property_12_a_move_prepared_before_an_override_was_set_fails_though_the_key_was_there_already() {
    let (engine, me) = engine();
    let limiter = engine.open("l", "3/day", me);
    engine.give(&limiter, "k", "9/day", me);
    assert_eq!(engine.most(&limiter, "k", me), 9);
    // Somebody finds no override, and the key under one, and is stopped.
    engine.clear_and_die(&limiter, "k");
    let prepared = engine.prepare_move(&limiter, "k", limiter.id);
    engine.give(&limiter, "k", "9/day", me);
    assert!(engine.is_late(&prepared), "the key leaves its override");
    assert_eq!(engine.most(&limiter, "k", me), 9);
}

#[test]
fn property_12_a_move_prepared_before_an_override_was_cleared_fails_though_the_key_was_never_moved()
{
    let (engine, me) = engine();
    let limiter = engine.open("l", "3/day", me);
    assert_eq!(engine.most(&limiter, "k", me), 3);
    // Somebody sets it and dies before the key is moved; somebody else is about to move it, and is stopped.
    let prepared_limit = limit("9/day").prepare();
    let (slot, control) = engine
        .slot_of_overrides(&limiter, &limiter.name, prepared_limit, me)
        .unwrap();
    let pair = engine.pair(&limiter, b"k");
    let found = engine
        .insert_object(&engine.object(Kind::Override, &pair), me, 0)
        .unwrap();
    engine.choose(&found, (slot, control)).unwrap();
    let prepared = engine.prepare_move(&limiter, "k", slot);
    assert_eq!(
        engine.most(&limiter, "k", me),
        3,
        "set, and not yet in force"
    );
    assert!(engine.clear_override(&limiter, b"k", || 0).unwrap());
    assert!(
        engine.is_late(&prepared),
        "the key goes under an override that is gone"
    );
    assert_eq!(engine.most(&limiter, "k", me), 3);
}

#[test]
fn property_15_an_override_whose_setter_died_is_in_force_once_somebody_was_told_of_it() {
    let (engine, me) = engine();
    let limiter = engine.open("l", "3/day", me);
    engine.give(&limiter, "other", "9/day", me);
    assert_eq!(engine.most(&limiter, "k", me), 3);
    let slot = engine.override_for(&limiter, b"other").unwrap();
    let pair = engine.pair(&limiter, b"k");
    let object = engine.object(Kind::Override, &pair);
    let found = engine.insert_object(&object, me, 0).unwrap();
    engine.choose(&found, (slot.id, slot.control)).unwrap();
    let told = engine.override_of(&limiter, b"k", || 0).unwrap();
    assert_eq!(told, Some(limit("9/day")));
    assert_eq!(engine.most(&limiter, "k", me), 9);
    // And one that was cleared so is out of force.
    engine.clear_and_die(&limiter, "k");
    assert_eq!(engine.override_of(&limiter, b"k", || 0).unwrap(), None);
    assert_eq!(engine.most(&limiter, "k", me), 3);
}

#[test]
fn property_15_a_clear_that_finds_nothing_brings_back_what_somebody_died_in() {
    let (engine, me) = engine();
    let limiter = engine.open("l", "3/day", me);
    engine.give(&limiter, "k", "9/day", me);
    assert_eq!(engine.most(&limiter, "k", me), 9);
    engine.clear_and_die(&limiter, "k");
    let found = engine.found_override(&limiter, "k");
    assert!(
        engine
            .objects
            .reclaim(&engine.region, found.cell, found.state)
    );
    assert!(!engine.clear_override(&limiter, b"k", || 0).unwrap());
    assert_eq!(engine.most(&limiter, "k", me), 3);
}

#[test]
fn property_12_a_move_prepared_before_a_change_of_the_limit_fails() {
    let (engine, me) = engine();
    let limiter = engine.open("l", "3/day", me);
    engine.give(&limiter, "k", "9/day", me);
    assert_eq!(engine.most(&limiter, "k", me), 9);
    // Somebody finds no override, and which limit is the limiter's, and is stopped.
    engine.clear_and_die(&limiter, "k");
    let prepared = engine.prepare_move(&limiter, "k", limiter.id);
    let changed = engine.open("l", "5/day", me);
    assert_ne!(changed.id, limiter.id);
    assert!(
        engine.is_late(&prepared),
        "the key goes under a limit that is replaced"
    );
    // The change spared it, as it would one whose override stands.
    assert_eq!(engine.most(&changed, "k", me), 9);
    assert!(!engine.clear_override(&changed, b"k", || 0).unwrap());
    assert_eq!(engine.most(&changed, "k", me), 5);
}

#[test]
fn property_12_a_slot_that_is_freed_takes_no_key_along() {
    let (engine, me) = engine();
    let limiter = engine.open("l", "3/day", me);
    engine.give(&limiter, "k", "9/day", me);
    assert_eq!(engine.most(&limiter, "k", me), 9);
    assert_eq!(engine.most(&limiter, "plain", me), 3);
    let slot = KeyState(engine.cell(&limiter, "k").state).limit();
    // Stopped: one who read that `plain` is under that override, as it was once.
    let prepared = engine.prepare_move(&limiter, "plain", slot);
    engine.clear_and_die(&limiter, "k");
    assert_eq!(
        engine.take_all_slots(me),
        LIMITS - 1,
        "all but the limiter's own"
    );
    assert!(!engine.is_of_overrides(slot));
    assert!(
        engine.is_late(&prepared),
        "a key goes under another limiter's limit"
    );
    assert_eq!(engine.most(&limiter, "k", me), 3);
}

#[test]
fn property_12_a_slot_that_was_freed_before_it_was_named_is_not_named() {
    let (engine, me) = engine();
    let limiter = engine.open("l", "3/day", me);
    engine.give(&limiter, "k", "9/day", me);
    // Stopped: it found the slot, and has yet to name it.
    let slot = engine.override_for(&limiter, b"k").unwrap();
    engine.clear_override(&limiter, b"k", || 0).unwrap();
    assert_eq!(engine.take_all_slots(me), LIMITS - 1);
    let pair = engine.pair(&limiter, b"k");
    let object = engine.object(Kind::Override, &pair);
    let found = engine.insert_object(&object, me, 0).unwrap();
    assert!(engine.choose(&found, (slot.id, slot.control)).is_none());
    assert_eq!(engine.override_of(&limiter, b"k", || 0).unwrap(), None);
}

#[test]
fn property_12_a_slot_is_not_freed_while_somebody_names_it() {
    let (engine, me) = engine();
    let limiter = engine.open("l", "3/day", me);
    engine.give(&limiter, "k", "9/day", me);
    let slot = engine.override_for(&limiter, b"k").unwrap();
    engine.clear_override(&limiter, b"k", || 0).unwrap();
    // Stopped: it has named the slot as the next, and keeps it.
    let pair = engine.pair(&limiter, b"k");
    let object = engine.object(Kind::Override, &pair);
    let found = engine.insert_object(&object, me, 0).unwrap();
    let next = Chosen {
        current: None,
        next: Some(slot.id),
        is_settled: false,
    };
    let found = engine.say(&found, next).unwrap();
    assert!(engine.join_slot(slot.id, slot.control));
    assert_eq!(engine.take_all_slots(me), LIMITS - 2);
    // It goes on.
    engine
        .say(
            &found,
            Chosen {
                current: Some(slot.id),
                next: None,
                ..next
            },
        )
        .unwrap();
    assert_eq!(
        engine.override_of(&limiter, b"k", || 0).unwrap(),
        Some(limit("9/day"))
    );
}

#[test]
fn property_11_limits_that_no_override_names_any_more_make_room_for_others() {
    let (engine, me) = engine();
    let limiter = engine.open("l", "3/day", me);
    engine.give(&limiter, "stays", "7/day", me);
    for count in 1..=2 * u64::from(LIMITS) {
        let own = Limit::token_bucket(count + 10, DAY).unwrap();
        engine.set_override(&limiter, b"k", own, me, || 0).unwrap();
        if count % 500 == 0 {
            assert_eq!(engine.most(&limiter, "k", me), count + 10);
        }
    }
    assert_eq!(engine.most(&limiter, "stays", me), 7);
}

#[test]
fn property_11_an_override_for_which_there_is_no_limit_leaves_no_object() {
    let (engine, me) = engine();
    let limiter = engine.open("l", "3/day", me);
    engine.take_all_slots(me);
    let before = engine.objects.live_count(&engine.region);
    let error = engine
        .set_override(&limiter, b"k", limit("9/day"), me, || 0)
        .unwrap_err();
    assert!(
        matches!(
            error,
            Error::Full {
                what: "limit definition",
                ..
            }
        ),
        "{error}"
    );
    // No cap of the region is that of limits.
    assert!(!error.to_string().contains("resize"), "{error}");
    assert_eq!(engine.objects.live_count(&engine.region), before);
}

#[test]
fn property_9_pairs_that_run_together_alike_are_different_keys() {
    let (engine, me) = engine();
    for (name, key, text) in [("ab", "c", "5/day"), ("a", "bc", "6/day")] {
        let limiter = engine.open(name, "3/day", me);
        engine.give(&limiter, key, text, me);
    }
    let long = "x".repeat(1024);
    let limiter = engine.open(&long, "3/day", me);
    engine.give(&limiter, &long, "8/day", me);
    for (name, key, most) in [
        ("ab", "c", 5),
        ("a", "bc", 6),
        ("ab", "bc", 3),
        (&*long, &*long, 8),
    ] {
        let limiter = engine.open(name, "3/day", me);
        assert_eq!(engine.most(&limiter, key, me), most, "{key}");
    }
    assert!(engine.check_region().findings.is_empty());
}

#[test]
fn property_12_a_move_prepared_before_an_override_was_set_fails_though_a_check_got_in_between_and_came_back()
 {
    let (engine, me) = engine();
    let limiter = engine.open("l", "3/day", me);
    engine.give(&limiter, "k", "9/day", me);
    assert_eq!(engine.most(&limiter, "k", me), 9);
    // Somebody finds no override, and the key under one, and is stopped.
    engine.clear_and_die(&limiter, "k");
    let prepared = engine.prepare_move(&limiter, "k", limiter.id);
    // Whoever sets it anew finds the key where it belongs, and a check gets in between.
    let found = engine.cell(&limiter, "k");
    let checked = engine.check(&limiter, b"k", 1, me, 0).unwrap();
    engine.outdate(found.at, found.state).unwrap();
    let _ = engine.refund(&limiter, checked, || 0).unwrap();
    assert!(engine.is_late(&prepared), "the key leaves its override");
}

#[test]
fn property_12_an_override_set_by_a_reference_from_before_a_change_takes_no_key_of_the_limiter_that_has_the_slot_by_now()
 {
    let (engine, me) = engine();
    let stale = engine.open("l", "3/day", me);
    let fresh = engine.open("l", "4/day", me);
    // Each change takes the next slot.
    let other = (0..2 * LIMITS)
        .map(|i| engine.open("other", ["1/day", "1/hour"][i as usize % 2], me))
        .find(|other| other.id == stale.id)
        .unwrap();
    let keys: Vec<_> = (0..10).map(|i| format!("key {i}")).collect();
    for key in &keys {
        assert_eq!(engine.most(&other, key, me), 1);
    }
    // Some lie where a search for the same key of the first limiter passes by.
    for key in &keys {
        engine.give(&stale, key, "9/day", me);
        assert_eq!(
            engine.override_of(&stale, key.as_bytes(), || 0).unwrap(),
            Some(limit("9/day"))
        );
    }
    for key in &keys {
        let checked = engine.check(&other, key.as_bytes(), 1, me, 0).unwrap();
        assert_eq!(
            (checked.decision.limit(), checked.decision.is_allowed()),
            (1, false)
        );
    }
    assert_eq!(engine.most(&fresh, &keys[0], me), 9);
    assert!(engine.check_region().findings.is_empty());
}

#[test]
fn property_12_a_key_of_another_limiter_that_was_found_by_a_reference_from_before_a_change_is_not_moved()
 {
    let (engine, me) = engine();
    let (limiter, other) = (
        engine.open("l", "3/day", me),
        engine.open("other", "1/day", me),
    );
    engine.give(&limiter, "k", "9/day", me);
    assert_eq!(engine.most(&other, "k", me), 1);
    // As if its slot had been the first limiter's when the search began.
    let found = engine.cell(&other, "k");
    engine.move_key(&limiter, b"k", &found, 0);
    let state = engine.region.wide(found.at).load();
    assert_eq!(state, found.state, "it is another limiter's");
}
