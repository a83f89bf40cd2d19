//! A caller that is stopped between two steps, while everything moves on: what it does when it goes on
//! must fail or be harmless. Each test takes the first steps, lets others take theirs, then goes on.

use crate::engine::Engine;
use crate::lock::{Attempt, Grant};
use crate::object::Kind;
use crate::region::{Birth, Caps, Region, header};
use crate::session::{Process, SessionId};
use core::sync::atomic::Ordering::Relaxed;

const SECOND: u64 = 1_000_000_000;

pub(crate) fn engine(caps: Caps) -> (Engine, SessionId) {
    let birth = Birth {
        hash_seed: 7,
        unix_ns: 1_800_000_000 * SECOND,
        boot_ns: 0,
        boot_id: [1, 2],
        floor: 0,
    };
    let engine = Engine::local(Region::anonymous(caps, birth).unwrap());
    let session = engine.open_session(Process::default(), 0).unwrap();
    (engine, session)
}

fn acquire(engine: &Engine, by: SessionId, name: &[u8]) -> Grant {
    let name = engine.lock_name(name).unwrap();
    match engine.try_acquire(&name, by, 0, 30 * SECOND).unwrap() {
        Attempt::Granted(grant) => grant,
        Attempt::Busy => panic!("it is free"),
    }
}

fn reclaim(engine: &Engine, cell: u32) {
    let state = engine.objects.state(&engine.region, cell).load();
    assert!(engine.objects.reclaim(&engine.region, cell, state));
}

#[test]
fn property_1_a_break_that_was_stopped_spares_the_lock_that_has_the_cell_by_now() {
    let (engine, me) = engine(Caps {
        objects: 1,
        ..Caps::default()
    });
    let name = engine.lock_name(b"broken").unwrap();
    let object = engine.object(Kind::Lock, &name);
    let grant = acquire(&engine, me, b"broken");
    let cell = grant.cell();
    // Stopped: the lock was found, and not yet broken.
    engine.release(&grant, || 0);
    reclaim(&engine, cell);
    let grant = (0..1_000)
        .find_map(|i| {
            let grant = acquire(&engine, me, format!("other {i}").as_bytes());
            if grant.cell() == cell {
                return Some(grant);
            }
            engine.release(&grant, || 0);
            reclaim(&engine, grant.cell());
            None
        })
        .expect("some name comes to lie in the cell");
    assert_eq!(
        engine.break_found(&object, cell, Process::default(), 0),
        None
    );
    assert!(engine.is_held(&grant, 0));
    assert!(engine.breaks().is_empty());
}

#[test]
fn property_11_a_sweep_that_was_stopped_does_not_say_that_all_is_quiet_after_an_insertion() {
    let (engine, me) = engine(Caps::default());
    // The word that a sweep reads before it looks and exchanges after: locks and limiter keys.
    let quiet = |counters| engine.region.word(counters + 16).load(Relaxed);
    let before = quiet(header::OBJECTS);
    let _ = acquire(&engine, me, b"new");
    assert_ne!(quiet(header::OBJECTS), before);

    let limit = "1/s".parse().unwrap();
    let limiter = engine.open_limiter(b"l", limit, false, me, 0).unwrap();
    let before = quiet(header::LIMITER_KEYS);
    let _ = engine.check(&limiter, b"new", 1, me, 0).unwrap();
    assert_ne!(quiet(header::LIMITER_KEYS), before);
}
