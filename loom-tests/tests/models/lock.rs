//! Holding: exclusion, tokens, leases.

use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use sprag_core::lock::{Attempt, Released, Renewed};
use sprag_core::{Engine, Name, SessionId};
use sprag_loom_tests::{CAPS, MS, both, engine, model};
use std::sync::Arc;

/// Tries to take the lock, and adds one to what it guards if that worked. Returns the token.
fn add_one(engine: &Engine, name: &Name, by: SessionId, guarded: &AtomicU64) -> Option<u64> {
    let Attempt::Granted(grant) = engine.try_acquire(name, by, MS, 10 * MS).unwrap() else {
        return None;
    };
    // In two steps and relaxed: right only if the lock keeps others out and orders those before.
    guarded.store(guarded.load(Relaxed) + 1, Relaxed);
    let released = engine.release(&grant, || 2 * MS);
    assert_eq!(
        released,
        Released::Done { wake: None },
        "exclusion: a hold was ended by someone else"
    );
    Some(grant.token)
}

#[test]
fn two_threads_never_hold_one_lock_at_once_and_their_tokens_are_consecutive() {
    model("exclusion").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        let name = engine.lock_name(b"lock").unwrap();
        let guarded = Arc::new(AtomicU64::new(0));
        let first = add_one(&engine, &name, one, &guarded).unwrap();

        let (a, b) = {
            let (engine_2, name_2, guarded_2) = (engine.clone(), name.clone(), guarded.clone());
            both(
                &engine,
                || [(); 2].map(|()| add_one(&engine, &name, one, &guarded)),
                move || add_one(&engine_2, &name_2, two, &guarded_2),
            )
        };
        let mut tokens: Vec<u64> = a.into_iter().chain([b]).flatten().collect();
        tokens.sort_unstable();
        let expected: Vec<u64> = (first + 1..).take(tokens.len()).collect();
        assert_eq!(tokens, expected, "tokens: they are consecutive");
        assert!(!tokens.is_empty(), "exclusion: somebody gets a free lock");
        assert_eq!(
            guarded.load(Relaxed),
            tokens.len() as u64 + 1,
            "exclusion: one hold at a time"
        );
    });
}

#[test]
fn a_renewal_and_a_takeover_of_an_expired_hold_never_both_succeed() {
    model("renewal against takeover").check(|| {
        let (engine, [holder, thief]) = engine(CAPS);
        let name = engine.lock_name(b"lock").unwrap();
        let Attempt::Granted(grant) = engine.try_acquire(&name, holder, MS, 10 * MS).unwrap()
        else {
            unreachable!("a new lock is free");
        };
        let end = grant.deadline_ns;

        let (renewed, stolen) = {
            let thief_engine = engine.clone();
            both(
                &engine,
                // The holder's clock is a microsecond behind the thief's.
                || engine.renew(&grant, end - 1_000, 10 * MS).unwrap(),
                move || {
                    thief_engine
                        .try_acquire(&name, thief, end, 10 * MS)
                        .unwrap()
                },
            )
        };
        let renewed = renewed != Renewed::NotHeld;
        let stolen = matches!(stolen, Attempt::Granted(_));
        assert!(
            !(renewed && stolen),
            "lease: a renewal and a takeover both succeeded"
        );
        assert!(
            renewed || stolen,
            "lease: neither a renewal nor a takeover succeeded"
        );
    });
}
