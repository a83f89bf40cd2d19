//! Whoever changes a limit, or checks against one, and is stopped or dies between two steps, while
//! everything moves on: no other limiter, and no key, may notice.

use super::*;
use crate::limiter_key::claimed_limit;
use crate::object::Kind;
use crate::region::{CELLS_PER_BLOCK, Caps, LIMITS};
use crate::session::Process;
use crate::table::{CLAIMED, CellOwner, Claim, EMPTY, Entry as _, Flavour as _, Found};
use core::sync::atomic::Ordering::Release;
use std::cell::Cell;

const SECOND: u64 = 1_000_000_000;

fn engine(limiter_keys: u32) -> (Engine, SessionId) {
    crate::stopped::engine(Caps {
        // One partition, so that the keys' table is small too.
        objects: 16,
        limiter_keys,
        ..Caps::default()
    })
}

fn limit(text: &str) -> Limit {
    text.parse().unwrap()
}

impl Engine {
    fn set(&self, name: &str, text: &str, by: SessionId) -> LimiterRef {
        self.open_limiter(name.as_bytes(), limit(text), true, by, 0)
            .unwrap()
    }

    fn hit(&self, limiter: &LimiterRef, key: &str, by: SessionId, now_ns: u64) -> Checked {
        self.check(limiter, key.as_bytes(), 1, by, now_ns).unwrap()
    }

    /// Claims a cell as if to insert a key under `limiter`; how to empty it again.
    fn claim_cell(&self, limiter: &LimiterRef, by: SessionId) -> (u32, u128) {
        let claim = Claim {
            session: by,
            home: 0,
            payload: limiter.id | 1 << 12,
        };
        let mut cells = Vec::new();
        self.limiter_keys.for_each(&self.region, |cell, _, state| {
            if phase(state) == EMPTY {
                cells.push((cell, state));
            }
        });
        let (cell, empty) = cells[0];
        let claimed = LimiterKeys::claimed(empty, claim);
        let word = self.limiter_keys.state(&self.region, cell);
        word.compare_exchange(empty, claimed).unwrap();
        (cell, claimed)
    }

    /// The steps of inserting a key up to the one that decides.
    fn claim_to_insert(&self, entry: &LimiterKey<'_>, by: SessionId) -> u32 {
        let home = self.limiter_keys.home(entry.hash);
        let cell = home * CELLS_PER_BLOCK;
        let at = self.limiter_keys.at(cell);
        let claim = Claim {
            session: by,
            home,
            payload: entry.payload(),
        };
        let (word, section) = (self.region.wide(at), LimiterKeys::section(&self.region));
        self.region.reach(section, home).unwrap();
        let claimed = LimiterKeys::claimed(word.load(), claim);
        word.compare_exchange(word.load(), claimed).unwrap();
        let owner = CellOwner {
            table: LimiterKeys::COUNTER as u8,
            cell,
            incarnation: 0,
        };
        entry.write(&self.region, at, home, owner).unwrap();
        let insertion = self.region.word(section.at(home));
        insertion.store(u64::from(cell + 1), Release);
        cell
    }

    /// Names another limit, as whoever changes it does before it looks for keys under the old one.
    fn name(&self, limiter: &LimiterRef, text: &str, by: SessionId) {
        let found = self.find_limiter(&limiter.name);
        let next = limit(text).prepare();
        assert!(self.name_limit(&limiter.name, &found, next, by).unwrap());
    }

    fn find_limiter(&self, name: &Name) -> Found {
        let object = self.object(Kind::Limiter, name);
        let found = self.find_object(&object);
        found.unwrap()
    }

    /// A limiter of 1 in the slot `id`, which is free.
    fn set_in_slot(&self, id: u32, by: SessionId) -> LimiterRef {
        // Each change takes the next slot.
        (0..2 * LIMITS)
            .map(|i| self.set("other", ["1/day", "1/hour"][i as usize % 2], by))
            .find(|limiter| limiter.id == id)
            .unwrap()
    }
}

#[test]
fn property_15_a_key_that_a_dead_process_was_inserting_does_not_hold_up_a_change() {
    let (engine, me) = engine(64);
    let first = engine.set("l", "1/day", me);
    let _ = engine.hit(&first, "k", me, 0);
    let dead = engine.open_session(Process::default(), 0).unwrap();
    engine.claim_cell(&first, dead);
    engine.close_session(dead);
    for text in ["2/day", "3/day", "4/day"] {
        assert_eq!(engine.set("l", text, me).limit(), limit(text));
    }
}

#[test]
fn property_15_a_key_that_a_stopped_process_is_inserting_does_not_hold_up_a_change() {
    let (engine, me) = engine(64);
    let first = engine.set("l", "1/day", me);
    let _ = engine.hit(&first, "k", me, 0);
    let (cell, _) = engine.claim_cell(&first, me);
    let mut last = first;
    for text in ["2/day", "3/day", "4/day"] {
        last = engine.set("l", text, me);
        assert_eq!(last.limit(), limit(text));
    }
    // The claim moved along: once its key is written it is inserted under the limit of then.
    let claimed = engine.limiter_keys.state(&engine.region, cell).load();
    assert_eq!((phase(claimed), claimed_limit(claimed)), (CLAIMED, last.id));
}

#[test]
fn property_12_a_change_that_was_stopped_leaves_the_limiter_alone_that_has_its_slot_by_now() {
    let (engine, me) = engine(64);
    let first = engine.set("l", "1/day", me);
    let _ = engine.hit(&first, "k", me, 0);
    // Stopped in the middle of the change.
    engine.name(&first, "9/day", me);
    let change = engine
        .change_under_way(engine.find_limiter(&first.name).at)
        .unwrap();
    assert_eq!(change.previous, first.id);
    engine.set("l", "9/day", me);
    let other = engine.set_in_slot(first.id, me);
    assert!(engine.hit(&other, "k", me, 0).decision.is_allowed());
    engine.sweep(&change, &|| 0);
    let fresh = engine.limiter(b"other").unwrap().unwrap();
    for limiter in [&other, &fresh] {
        let checked = engine.hit(limiter, "k", me, 0);
        assert!(!checked.decision.is_allowed() && !checked.is_overflow);
        assert_eq!(checked.decision.limit(), 1);
    }
    let bucket = overflow(&engine.region, other.id);
    assert_eq!(phase(bucket.load()), LIVE);
}

#[test]
fn property_12_a_reference_from_during_a_change_takes_no_key_of_the_limiter_that_has_the_slot_by_now()
 {
    let (engine, me) = engine(64);
    let first = engine.set("l", "1/day", me);
    let _ = engine.hit(&first, "k", me, 0);
    engine.name(&first, "100/day", me);
    let during = engine.limiter(b"l").unwrap().unwrap();
    assert_eq!(during.previous, Some(first.id));
    engine.set("l", "100/day", me);
    let other = engine.set_in_slot(first.id, me);
    let keys: Vec<_> = (0..30).map(|i| format!("key {i}")).collect();
    for key in &keys {
        assert!(engine.hit(&other, key, me, 0).decision.is_allowed());
    }
    // Some lie where a search for the same key of the first limiter passes by.
    for key in &keys {
        assert_eq!(
            engine
                .peek(&during, key.as_bytes(), 0)
                .unwrap()
                .decision
                .remaining(),
            100
        );
        let checked = engine.hit(&during, key, me, 0);
        assert_eq!(checked.decision.remaining(), 99);
        assert!(!engine.hit(&other, key, me, 0).decision.is_allowed());
    }
}

#[test]
fn property_12_a_key_that_leaves_the_shared_bucket_during_a_change_starts_at_its_level() {
    let (engine, me) = engine(1);
    let first = engine.set("l", "4/day", me);
    assert!(!engine.hit(&first, "full", me, 0).is_overflow);
    for _ in 0..4 {
        assert!(engine.hit(&first, "k", me, 0).is_overflow);
    }
    // Another limit is named; whoever did it dies before it moves the bucket's level.
    let found = engine.find_limiter(&first.name);
    let second = limit("5/day").prepare();
    assert!(engine.name_limit(&first.name, &found, second, me).unwrap());
    // The one key in the table is gone, and there is room for another.
    engine
        .limiter_keys
        .for_each(&engine.region, |cell, _, state| {
            if phase(state) == LIVE {
                assert!(engine.limiter_keys.reclaim(&engine.region, cell, state));
            }
        });
    let checked = engine.hit(&first, "k", me, 0);
    assert!(checked.decision.is_allowed() && !checked.is_overflow);
    assert!(!engine.hit(&first, "k", me, 0).decision.is_allowed());
}

#[test]
fn property_12_a_key_whose_insertion_is_finished_after_its_bucket_was_closed_starts_at_its_level() {
    let (engine, me) = engine(1);
    let limiter = engine.set("l", "4/day", me);
    let bucket = overflow(&engine.region, limiter.id);
    let open = bucket.load();
    let used = KeyState(open & !7 | CLAIMED).with_value(77);
    bucket.compare_exchange(open, used.0).unwrap();
    assert_eq!(first_value(&engine.region, limiter.id), 77);
}

#[test]
fn property_12_a_key_that_takes_a_reclaimed_one_s_place_counts_what_its_window_was_preceded_by() {
    let (engine, me) = engine(1);
    let minute_ns = 60 * SECOND;
    let limiter = engine.set("l", "4/minute;window=sliding", me);
    let first_ns = minute_ns - engine.region.base_unix_ns() % minute_ns;
    assert!(!engine.hit(&limiter, "full", me, first_ns).is_overflow);
    for _ in 0..4 {
        let checked = engine.hit(&limiter, "k", me, first_ns);
        assert!(checked.is_overflow && checked.decision.is_allowed());
    }
    // A minute and a half later the one key has been reclaimed and another is inserted: half of what
    // the shared bucket counted in the minute before still counts.
    LimiterKeys::note_reclaim(&engine.region, first_ns + minute_ns * 3 / 2);
    let value = first_value(&engine.region, limiter.id);
    let late = engine.region.moment(first_ns + minute_ns);
    let then = engine.region.moment(first_ns + minute_ns * 3 / 2);
    let limit = limiter.prepared;
    assert_eq!(limit.peek(value, then).remaining(), 2);
    assert_eq!(limit.peek(value, late).remaining(), 0);
}

#[test]
fn property_12_a_key_used_during_a_change_is_carried_over_as_of_now() {
    let (engine, me) = engine(64);
    let first = engine.set("l", "1000/second;burst=10", me);
    let now_ns = 100 * SECOND;
    let _ = engine.hit(&first, "k", me, now_ns);
    // The change began long before the key was used, and comes to it now.
    let clock = Cell::new(0);
    let read = || clock.replace(now_ns);
    let second = engine
        .open_limiter_by_clock(b"l", limit("10/minute"), true, me, read)
        .unwrap();
    let state = engine.peek(&second, b"k", now_ns).unwrap();
    assert_eq!(state.decision.remaining(), 9);
}

#[test]
fn property_12_old_references_decide_by_the_new_limit_though_its_changer_died() {
    let (engine, me) = engine(64);
    let first = engine.set("l", "4/day", me);
    let _ = engine.hit(&first, "k", me, 0);
    // The change cannot be finished, as if its changer had died in the sweep before the key.
    engine.claim_cell(&first, me);
    let found = engine.find_limiter(&first.name);
    let second = limit("2/day").prepare();
    assert!(engine.name_limit(&first.name, &found, second, me).unwrap());
    let change = engine
        .change_under_way(engine.find_limiter(&first.name).at)
        .unwrap();
    engine.mark_replaced(&change);
    let checked = engine.hit(&first, "k", me, 0);
    assert_eq!(
        (checked.decision.is_allowed(), checked.decision.limit()),
        (true, 2)
    );
    assert!(!engine.hit(&first, "k", me, 0).decision.is_allowed());
}

#[test]
fn property_12_a_key_of_another_limiter_that_changes_meanwhile_is_not_taken_for_the_one_looked_for()
{
    let (engine, me) = engine(64);
    let (first, other) = (
        engine.set("l", "9/day", me),
        engine.set("other", "9/day", me),
    );
    let _ = engine.hit(&other, "k", me, 0);
    let its = LimiterKey::new(&engine, &other, b"k");
    let found = engine
        .limiter_keys
        .find(&engine.region, its.hash, &its)
        .unwrap();
    // A check of it gets in between the reads, and comes back by a refund: what is prepared from the word that was
    // read first would succeed.
    let _ = engine.hit(&other, "k", me, 0);
    let wanted = LimiterKey::new(&engine, &first, b"k");
    let line = engine.region.line(found.at);
    assert!(!wanted.matches(&engine.region, line, found.state));
}

#[test]
fn property_12_a_key_whose_insertion_is_decided_is_not_decided_on_as_one_without_room() {
    let (engine, me) = engine(64);
    let limiter = engine.set("l", "9/day", me);
    let entry = LimiterKey::new(&engine, &limiter, b"k");
    // Stopped: the key's cell is claimed and written, its insertion decided, and the bucket's level read.
    let cell = engine.claim_to_insert(&entry, me);
    let level = first_value(&engine.region, limiter.id);
    let (ask, mut under) = (Ask::check(1), limiter.clone());
    let place = (0..2).find_map(|_| engine.place(&mut under, &entry, ask, None, 0).unwrap());
    let (place, _) = place.unwrap();
    assert!(
        !place.is_overflow,
        "what it takes is not counted in {level}"
    );
    assert_eq!(place.at, engine.limiter_keys.at(cell));
}
