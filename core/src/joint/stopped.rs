//! Whoever checks by several limits and is stopped or dies between two steps, while everything moves on: no limit
//! admits more than it should, and nothing is counted twice.

use super::*;
use crate::joint_key::JointKeys;
use crate::region::Caps;
use crate::session::Process;
use crate::table::{CLAIMED, Claim, EMPTY, Flavour as _, LIVE, phase};

const SECOND: u64 = 1_000_000_000;
/// Drained by the next second, and not for a day.
const LIMITS: [&str; 2] = ["3/second", "6/day"];

fn engine(joint_keys: u32) -> (Engine, SessionId) {
    crate::stopped::engine(Caps {
        // One partition, so that the keys' table is small too.
        objects: 16,
        joint_keys,
        ..Caps::default()
    })
}

fn limits(texts: [&str; 2]) -> [Limit; 2] {
    texts.map(|text| text.parse().unwrap())
}

impl Engine {
    fn both(&self, by: SessionId) -> JointRef {
        self.open_joint(b"j", &limits(LIMITS), by, 0).unwrap()
    }

    /// Where the entry of a key is, and its state.
    fn entry_of(&self, joint: &JointRef, key: &str) -> (usize, State) {
        let entry = JointKey::new(self, joint, key.as_bytes());
        let found = self.joint_keys.find(&self.region, entry.hash, &entry);
        let found = found.unwrap();
        (found.at, State(found.state))
    }

    fn joint_left(&self, joint: &JointRef, key: &str, now_ns: u64) -> Vec<u64> {
        let peeked = self.peek_joint(joint, key.as_bytes(), now_ns).unwrap();
        peeked
            .decisions()
            .map(|decision| decision.remaining())
            .collect()
    }

    fn is_taken(&self, joint: &JointRef, key: &str, by: SessionId, now_ns: u64) -> bool {
        let checked = self.check_joint(joint, key.as_bytes(), 1, by, now_ns);
        checked.unwrap().is_allowed()
    }

    /// Every key's cell made empty.
    fn reclaim_joint_keys(&self) {
        let mut live = Vec::new();
        self.joint_keys.for_each(&self.region, |cell, _, state| {
            if phase(state) == LIVE {
                live.push((cell, state));
            }
        });
        for (cell, state) in live {
            assert!(self.joint_keys.reclaim(&self.region, cell, state));
        }
    }
}

/// One who has closed the entry of `key`, for an admission at a second: with what to go on.
fn closer(engine: &Engine, joint: &JointRef, key: &str, me: SessionId) -> (usize, State) {
    assert!(engine.is_taken(joint, key, me, 0));
    let (at, state) = engine.entry_of(joint, key);
    let closed = entry::close(&engine.region, at, state).unwrap();
    (at, closed)
}

#[test]
fn property_12_a_closer_that_was_stopped_takes_nothing_once_somebody_else_opened_the_entry() {
    let (engine, me) = engine(64);
    let joint = engine.both(me);
    let (at, closed) = closer(&engine, &joint, "k", me);
    // Others look and go on, and do not wait for it.
    assert_eq!(engine.joint_left(&joint, "k", SECOND), [3, 5]);
    assert!(engine.is_taken(&joint, "k", me, SECOND));
    assert_eq!(engine.joint_left(&joint, "k", SECOND), [2, 4]);
    // It goes on: its values are old, and the entry is not as it left it.
    entry::include(&engine.region, Some(&joint.limits), at, closed);
    assert!(!entry::take(&engine.region, at, closed, 1, SECOND));
    assert_eq!(engine.joint_left(&joint, "k", SECOND), [2, 4]);
    assert_eq!(engine.check_region().findings, []);
}

#[test]
fn property_10_a_closer_that_died_took_nothing_whatever_it_had_written() {
    for written in 0..=2 {
        let (engine, me) = engine(64);
        let joint = engine.both(me);
        let (at, closed) = closer(&engine, &joint, "k", me);
        for index in 0..written {
            entry::include_in(&engine.region, &joint.limits[index], at, index, closed);
        }
        assert_eq!(engine.joint_left(&joint, "k", SECOND), [3, 5]);
        for left in (0..3).rev() {
            assert!(engine.is_taken(&joint, "k", me, SECOND));
            assert_eq!(engine.joint_left(&joint, "k", SECOND), [left, left + 2]);
        }
        assert!(!engine.is_taken(&joint, "k", me, SECOND));
    }
}

#[test]
fn property_15_a_closer_that_was_stopped_leaves_the_key_alone_that_has_the_cell_by_now() {
    let (engine, me) = engine(1);
    let joint = engine.both(me);
    let (at, closed) = closer(&engine, &joint, "k", me);
    // Reclaimed as it is, closed.
    engine.reclaim_joint_keys();
    let other = (0..1_000)
        .map(|i| format!("other {i}"))
        .find(|key| {
            assert!(engine.is_taken(&joint, key, me, SECOND));
            if engine.entry_of(&joint, key).0 == at {
                return true;
            }
            engine.reclaim_joint_keys();
            false
        })
        .expect("some key comes to lie in the cell");
    entry::include(&engine.region, Some(&joint.limits), at, closed);
    assert!(!entry::take(&engine.region, at, closed, 1, SECOND));
    assert_eq!(engine.joint_left(&joint, &other, SECOND), [2, 5]);
    assert_eq!(engine.check_region().findings, []);
}

#[test]
fn property_12_what_was_written_of_a_closed_entry_is_not_counted_again_when_its_key_is_reclaimed() {
    let (engine, me) = engine(1);
    let joint = engine.both(me);
    let (at, closed) = closer(&engine, &joint, "k", me);
    entry::include(&engine.region, Some(&joint.limits), at, closed);
    let cell = |at| JointKeys::idle(&engine.region, 0, at, closed.0, 0, &mut |_| true);
    let crate::table::Idle::At(at_ns) = cell(at) else {
        panic!("it is full again in a day");
    };
    assert_eq!(at_ns, 4 * 3_600 * SECOND, "one of six a day");
}

#[test]
fn property_12_a_check_that_found_no_room_charges_nothing_after_its_key_was_inserted() {
    let (engine, me) = engine(1);
    let joint = engine.both(me);
    assert!(engine.is_taken(&joint, "full", me, 0));
    for _ in 0..2 {
        let checked = engine.check_joint(&joint, b"k", 1, me, 0).unwrap();
        assert!(checked.is_allowed() && checked.is_overflow);
    }
    let region = &engine.region;
    let overflow_at = definition::overflow_at(region, joint.id);
    // It found no room, and is stopped before it charges.
    let before = State(region.wide(overflow_at).load());
    engine.reclaim_joint_keys();
    assert_eq!(engine.joint_left(&joint, "k", 0), [1, 4]);
    assert!(engine.is_taken(&joint, "k", me, 0));
    assert_eq!(
        engine.joint_left(&joint, "k", 0),
        [0, 3],
        "it starts at the level"
    );
    let late = engine.check_joint_at(&joint, overflow_at, before, 1, 0);
    assert!(late.is_none());
    // Nor where it had closed the shared entry before.
    engine.reclaim_joint_keys();
    let closed = State(region.wide(overflow_at).load());
    let closed = entry::close(region, overflow_at, closed).unwrap();
    assert!(engine.is_taken(&joint, "k", me, 0));
    assert!(!entry::take(region, overflow_at, closed, 1, 0));
    assert_eq!(engine.joint_left(&joint, "k", 0), [0, 3]);
}

#[test]
fn property_12_a_key_whose_insertion_two_finish_starts_once() {
    let (engine, me) = engine(64);
    let joint = engine.both(me);
    let region = &engine.region;
    let mut empty = None;
    engine.joint_keys.for_each(region, |cell, at, state| {
        if phase(state) == EMPTY {
            empty = empty.or(Some((cell, at, state)));
        }
    });
    // A table grows as it is used.
    assert!(engine.is_taken(&joint, "first", me, 0));
    engine.joint_keys.for_each(region, |cell, at, state| {
        if phase(state) == EMPTY {
            empty = empty.or(Some((cell, at, state)));
        }
    });
    let (_, at, state) = empty.unwrap();
    let claim = Claim {
        session: me,
        home: 0,
        payload: joint.id | 1 << 12,
    };
    let claimed = JointKeys::claimed(state, claim);
    assert_eq!(phase(claimed), CLAIMED);
    region.wide(at).compare_exchange(state, claimed).unwrap();
    entry::prepare(region, &joint.limits, at, State(claimed).generation());
    let live = JointKeys::live(region, at, claimed);
    assert!(region.wide(at).compare_exchange(claimed, live).is_ok());
    let (checked, state) = ([0; LIMITS_MAX], State(live));
    let mut values = checked;
    let taken = entry::check(region, &joint.limits, at, state, 2, 0, &mut values);
    assert!(taken.is_some_and(Refusals::are_none));
    // Its values are to have something used, and not only its batch.
    let closed = entry::close(region, at, State(region.wide(at).load())).unwrap();
    assert!(entry::open(region, Some(&joint.limits), at, closed));
    let used = entry::seen(region, &joint.limits, at, State(region.wide(at).load()));
    // The other one comes late, and changes nothing of a key that is in use.
    let _ = JointKeys::live(region, at, claimed);
    assert_eq!(
        entry::seen(region, &joint.limits, at, State(region.wide(at).load())),
        used
    );
}

#[test]
fn property_15_a_slot_that_a_dead_session_claimed_is_used_again_and_a_named_one_never() {
    let (engine, me) = engine(64);
    let dead = engine.open_session(Process::default(), 0).unwrap();
    let kept = engine
        .open_joint(b"kept", &limits(LIMITS), dead, 0)
        .unwrap();
    let mut lost = 0;
    // Sixteen objects are all that there is room for: the rest of the slots it takes and does not name.
    while engine.claim_joint_of(dead) {
        lost += 1;
    }
    assert_eq!(lost, crate::region::JOINTS - 1);
    let refused = engine.open_joint(b"new", &limits(LIMITS), me, 0);
    let error = refused.map(drop).unwrap_err();
    assert!(matches!(error, Error::Full { cap: 256, .. }), "{error}");
    assert!(!error.to_string().contains("resize"), "{error}");
    engine.close_session(dead);
    let new = engine.open_joint(b"new", &limits(LIMITS), me, 0).unwrap();
    assert_ne!(new.id, kept.id);
    assert_eq!(engine.both(me).limits(), limits(LIMITS));
    let again = engine.open_joint(b"kept", &limits(LIMITS), me, 0).unwrap();
    assert_eq!(again.id, kept.id);
}
