//! Who shares a lock or has permits, and is stopped or dies between two steps, while everything moves on.
//! Each test takes the first steps, lets others take theirs, then goes on.

use super::{ENDED, Permit};
use crate::Error;
use crate::admission::{Answer, Asker, Wants};
use crate::engine::Engine;
use crate::lock::{Attempt, Grant, HoldOf, Released, Upgrade};
use crate::object::{Kind, Name};
use crate::pool::{Mode, Pool};
use crate::region::Caps;
use crate::session::{Process, SessionId};
use crate::stopped::engine;
use crate::table::Found;
use crate::waiter::{PATIENCE_NS, Poll};

const SECOND: u64 = 1_000_000_000;
const LEASE: u64 = 30 * SECOND;
const LATER: u64 = 31 * SECOND;

/// Room for one permit, so that the next one to come has that of the last.
const ONE: Caps = Caps {
    objects: 4,
    limiter_keys: 4,
    joint_keys: 4,
    sessions: 4,
    waiters: 4,
    permits: 1,
    key_chunks: 4,
};

const FEW: Caps = Caps { permits: 4, ..ONE };

fn name(engine: &Engine) -> Name {
    engine.lock_name(b"shared").unwrap()
}

fn find(engine: &Engine) -> Found {
    let name = name(engine);
    engine
        .find_object(&engine.object(Kind::Lock, &name))
        .unwrap()
}

fn asker(by: SessionId, lease_ns: u64) -> Asker {
    Asker {
        by,
        number: None,
        now_ns: 0,
        lease_ns,
        probe: true,
    }
}

fn another(engine: &Engine) -> SessionId {
    engine.open_session(Process::default(), 0).unwrap()
}

fn get(engine: &Engine, wants: Wants, by: SessionId, now_ns: u64) -> Grant {
    match engine.try_get(&name(engine), wants, by, now_ns, LEASE) {
        Ok(Attempt::Granted(grant)) => grant,
        other => panic!("not to be had: {other:?}"),
    }
}

fn share(engine: &Engine, by: SessionId, now_ns: u64) -> Grant {
    get(engine, Wants::Shared, by, now_ns)
}

fn pool(engine: &Engine, cell: u32) -> Pool {
    Pool::decode(engine.objects.state(&engine.region, cell).load())
}

/// Joins a lock that others share, as far as the exchange that decides it; what was exchanged for what.
fn join_only(engine: &Engine, cell: u32, by: SessionId) -> (u32, u128) {
    let claim = engine.claim_permit(by, cell, LEASE / 1_000, 1, 0).unwrap();
    let word = engine.objects.state(&engine.region, cell);
    let raw = word.load();
    let joined = Pool::decode(raw).joined(claim.index, 1).unwrap().encode();
    word.compare_exchange(raw, joined).unwrap();
    (claim.index, joined)
}

fn is_unfollowed(engine: &Engine, index: u32) -> bool {
    !Permit::decode(engine.permit(index).load()).is_member()
}

#[test]
fn property_15_a_late_joiner_gets_no_share_of_what_changed_meanwhile() {
    let (engine, me) = engine(FEW);
    let first = share(&engine, me, 0);
    let cell = first.cell();
    let raw = engine.objects.state(&engine.region, cell).load();
    let claim = engine.claim_permit(me, cell, LEASE / 1_000, 1, 0).unwrap();
    // Stopped before it joins: the lock is another's alone by then, and after that free again.
    engine.release(&first, || 0);
    let alone = get(&engine, Wants::Exclusive, me, 0);
    let join = || engine.join(cell, raw, Pool::decode(raw), &claim, 1);
    assert_eq!(join(), None);
    engine.release(&alone, || 0);
    assert_eq!(join(), None);
    assert!(engine.is_held(&share(&engine, me, 0), 0));
    assert_eq!(join(), None);
    assert_eq!(pool(&engine, cell).used, 1);
}

#[test]
fn property_15_one_that_dies_when_it_has_joined_is_found_and_its_share_comes_back() {
    let (engine, me) = engine(FEW);
    let other = another(&engine);
    let first = share(&engine, me, 0);
    let (index, _) = join_only(&engine, first.cell(), other);
    assert!(is_unfollowed(&engine, index));
    engine.close_session(other);
    engine.release(&first, || 0);
    let alone = get(&engine, Wants::Exclusive, me, 0);
    assert!(engine.is_held(&alone, 0));
    assert!(Permit::decode(engine.permit(index).load()).is_free());
}

#[test]
fn property_15_a_permit_follows_its_step_also_while_the_rest_of_the_word_changes() {
    let (engine, me) = engine(FEW);
    let first = share(&engine, me, 0);
    let cell = first.cell();
    let (index, joined) = join_only(&engine, cell, me);
    // Others queue, which is no step; whoever read the word before sees to it that the permit follows.
    let ticket = engine.enqueue(&name(&engine), me, 0, LEASE).unwrap();
    assert_ne!(engine.objects.state(&engine.region, cell).load(), joined);
    engine.follow_step(cell, joined);
    assert!(!is_unfollowed(&engine, index));
    engine.cancel(ticket, 0, |_| {});
}

#[test]
fn property_15_a_late_follower_changes_no_later_use_of_the_permit() {
    let (engine, me) = engine(ONE);
    let first = share(&engine, me, 0);
    let (cell, index) = (first.cell(), first.permit().unwrap());
    let joined = engine.objects.state(&engine.region, cell).load();
    engine.release(&first, || 0);
    // The next one has the same permit, claimed and not yet joined; then it has joined.
    let claim = engine.claim_permit(me, cell, LEASE / 1_000, 1, 0).unwrap();
    assert_eq!(claim.index, index);
    let claimed = engine.permit(index).load();
    engine.follow_step(cell, joined);
    assert_eq!(engine.permit(index).load(), claimed);
    engine.abandon_permit(&claim);
    let next = share(&engine, me, 0);
    engine.follow_step(cell, joined);
    assert!(engine.is_held(&next, 0));
}

#[test]
fn property_15_a_late_leaver_takes_nobody_else_out() {
    let (engine, me) = engine(ONE);
    let first = share(&engine, me, 0);
    let (cell, index) = (first.cell(), first.permit().unwrap());
    // Stopped: it decided that its hold is over, and has not left.
    let end = |permit: Permit| Some(permit.in_phase(ENDED));
    let ended = engine.change_permit(index, first.word(), end).unwrap();
    // Another needs the room, and takes it out.
    let other = another(&engine);
    assert!(engine.is_held(&get(&engine, Wants::Exclusive, other, 0), 0));
    assert!(!engine.take_out(index, ended.encode(), 0));
    engine.break_lock(&name(&engine), Process::default(), 0);
    let next = share(&engine, other, 0);
    assert_eq!(next.permit(), Some(index));
    assert!(!engine.take_out(index, ended.encode(), 0));
    assert!(engine.is_held(&next, 0));
    assert_eq!(pool(&engine, cell).used, 1);
    assert_eq!(engine.release(&first, || 0), Released::NotHeld);
}

#[test]
fn property_15_a_late_end_of_an_upgrade_ends_nobody_elses() {
    let (engine, me) = engine(Caps { permits: 2, ..ONE });
    let other = another(&engine);
    let late = share(&engine, me, 0);
    let stays = share(&engine, other, 0);
    let index = late.permit().unwrap();
    assert_eq!(
        engine.try_upgrade(&late, 0, LEASE).unwrap(),
        Upgrade::Shared
    );
    // Stopped before it says that it does not wait; it is broken off, and its permit is another's.
    engine.release(&late, || 0);
    engine.used.permit_hint.store(index, super::Relaxed);
    let next = share(&engine, other, 0);
    assert_eq!(next.permit(), Some(index));
    assert_eq!(
        engine.try_upgrade(&next, 0, LEASE).unwrap(),
        Upgrade::Shared
    );
    assert_eq!(engine.end_upgrade(&late, 0), None);
    assert_eq!(pool(&engine, next.cell()).mode(), Mode::Upgrading(index));
    assert!(engine.is_held(&stays, 0));
}

#[test]
fn property_15_a_late_downgrade_lets_nobody_in_beside_the_next_one() {
    let (engine, me) = engine(ONE);
    let alone = |by, now_ns| {
        let grant = share(&engine, by, now_ns);
        match engine.try_upgrade(&grant, now_ns, LEASE).unwrap() {
            Upgrade::Granted(grant) => grant,
            other => panic!("nobody shares it: {other:?}"),
        }
    };
    let late = alone(me, 0);
    let index = late.permit().unwrap();
    // Stopped right before the lock's word says that it is shared: its lease ends, and another has it
    // alone, by the same permit.
    let next = alone(another(&engine), LATER);
    assert_eq!(next.permit(), Some(index));
    assert_eq!(
        engine.share_plainly(&late, Mode::Exclusive(index), LATER),
        None
    );
    assert_eq!(engine.downgrade(&late, LATER).unwrap(), None);
    assert!(!engine.is_shared(&next));
    let attempt = engine.try_acquire_shared(&name(&engine), me, LATER, LEASE);
    assert_eq!(attempt.unwrap(), Attempt::Busy);
}

#[test]
fn property_3_a_token_that_comes_late_is_not_noted_for_the_next_hold() {
    let (engine, me) = engine(ONE);
    let first = share(&engine, me, 0);
    let index = first.permit().unwrap();
    let permit = Permit::decode(first.word());
    // Stopped before it noted what it was upgraded to; others come, among them one whose lock had the
    // same token.
    engine.release(&first, || 0);
    let next = share(&engine, me, 0);
    let token = engine.permit_record(index).token;
    engine.replace_permit_token(index, permit, permit.with_token(token), token + 5);
    assert_eq!(engine.permit_record(index).token, next.token);
    let released = engine.release_by_name(HoldOf::Lock, &name(&engine), next.token, 0);
    assert_eq!(released, Released::Done { wake: None });
}

#[test]
fn property_3_the_token_of_an_upgrade_replaces_the_one_before() {
    let (engine, me) = engine(ONE);
    let first = share(&engine, me, 0);
    let Upgrade::Granted(alone) = engine.try_upgrade(&first, 0, LEASE).unwrap() else {
        panic!("nobody else shares it");
    };
    let release = |token| engine.release_by_name(HoldOf::Lock, &name(&engine), token, 0);
    assert_eq!(release(first.token), Released::NotHeld);
    assert_eq!(release(alone.token), Released::Done { wake: None });
}

#[test]
fn property_1_a_break_that_was_stopped_spares_those_who_share_the_lock_that_has_the_cell_by_now() {
    let (engine, me) = engine(Caps { objects: 1, ..ONE });
    let broken = share(&engine, me, 0);
    let cell = broken.cell();
    let mut next = None;
    engine.end_members(cell, 0, |raw| {
        // Stopped: its members were gathered. They go, and so does the lock.
        engine.release(&broken, || 0);
        let state = engine.objects.state(&engine.region, cell).load();
        assert!(engine.objects.reclaim(&engine.region, cell, state));
        next = (0..1_000).find_map(|i| {
            let name = engine.lock_name(format!("other {i}").as_bytes()).unwrap();
            let attempt = engine.try_acquire_shared(&name, me, 0, LEASE).unwrap();
            let Attempt::Granted(grant) = attempt else {
                panic!("it is free");
            };
            if grant.cell() == cell {
                return Some(grant);
            }
            engine.release(&grant, || 0);
            let state = engine.objects.state(&engine.region, grant.cell()).load();
            assert!(engine.objects.reclaim(&engine.region, grant.cell(), state));
            None
        });
        // As it was when it was asked, right before.
        raw != 0
    });
    assert!(engine.is_held(&next.expect("some name comes to lie in the cell"), 0));
}

#[test]
fn a_break_ends_those_who_renew_meanwhile_as_well() {
    let (engine, me) = engine(FEW);
    let grants = [share(&engine, me, 0), share(&engine, another(&engine), 0)];
    engine.end_members(grants[0].cell(), 0, |_| {
        for grant in &grants {
            engine.renew(grant, 0, LEASE * 2).unwrap();
        }
        true
    });
    assert!(grants.iter().all(|grant| !engine.is_held(grant, 0)));
}

#[test]
fn property_4_who_died_or_was_late_while_it_waited_to_have_a_lock_alone_is_in_nobodys_way() {
    let (engine, me) = engine(FEW);
    for (is_late, now_ns) in [(false, 0), (true, LATER)] {
        let other = another(&engine);
        let mine = engine.try_get(&name(&engine), Wants::Shared, me, 0, 4 * LEASE);
        let Ok(Attempt::Granted(mine)) = mine else {
            panic!("it is free");
        };
        let theirs = share(&engine, other, 0);
        assert_eq!(
            engine.try_upgrade(&theirs, 0, LEASE).unwrap(),
            Upgrade::Shared
        );
        assert_eq!(
            engine.try_upgrade(&mine, 0, LEASE).unwrap(),
            Upgrade::Conflict
        );
        if !is_late {
            engine.close_session(other);
        }
        match engine.try_upgrade(&mine, now_ns, LEASE).unwrap() {
            Upgrade::Granted(alone) => engine.release(&alone, || now_ns),
            answer => panic!("nobody else is there: {answer:?}"),
        };
    }
}

#[test]
fn property_11_claims_and_shares_of_the_dead_make_room_for_permits_and_for_long_names() {
    let (engine, me) = engine(Caps {
        key_chunks: 2,
        ..ONE
    });
    let dead = another(&engine);
    let long = |byte: u8| engine.lock_name(&[byte; 90]).unwrap();
    let get = |name: &Name, by: SessionId| engine.try_acquire_shared(name, by, 0, LEASE);
    assert!(matches!(get(&long(b'a'), dead), Ok(Attempt::Granted(_))));
    assert!(matches!(get(&long(b'b'), me), Err(Error::Full { .. })));
    engine.close_session(dead);
    // The name of what the dead shares has all the chunks, and it the one permit.
    let grant = get(&long(b'b'), me);
    let Ok(Attempt::Granted(grant)) = grant else {
        panic!("{grant:?}");
    };
    engine.release(&grant, || 0);

    let dead = another(&engine);
    engine
        .claim_permit(dead, grant.cell(), LEASE / 1_000, 1, 0)
        .unwrap();
    assert!(matches!(get(&long(b'b'), me), Err(Error::Full { .. })));
    engine.close_session(dead);
    assert!(matches!(get(&long(b'b'), me), Ok(Attempt::Granted(_))));
}

#[test]
fn property_8_one_who_waits_for_a_semaphore_that_was_made_anew_with_another_capacity_is_told() {
    let (engine, me) = engine(FEW);
    let (other, name) = (another(&engine), name(&engine));
    let wants = |capacity| Wants::permits(1, capacity).unwrap();
    let Ok(Attempt::Granted(grant)) = engine.try_get(&name, wants(1), other, 0, LEASE) else {
        panic!("it is free");
    };
    let ticket = engine
        .enqueue_for(std::slice::from_ref(&name), wants(1), me, 0, u64::MAX)
        .unwrap();
    engine.release(&grant, || 0);
    // It lets the permit lie, and is passed over; its semaphore is forgotten, and made anew.
    let now_ns = PATIENCE_NS;
    let attempt = engine
        .try_get(&name, wants(1), other, now_ns, LEASE)
        .unwrap();
    let Attempt::Granted(grant) = attempt else {
        panic!("its patience is over");
    };
    engine.release(&grant, || now_ns);
    let found = engine
        .find_object(&engine.object(Kind::Semaphore, &name))
        .unwrap();
    assert!(
        engine
            .objects
            .reclaim(&engine.region, found.cell, found.state)
    );
    let attempt = engine.try_get(&name, wants(3), other, now_ns, LEASE);
    assert!(matches!(attempt, Ok(Attempt::Granted(_))));
    let poll = engine
        .poll(&ticket, &name, me, now_ns, LEASE, true)
        .unwrap();
    assert_eq!(poll, Poll::Moved);
    let again = engine.enqueue_for(std::slice::from_ref(&name), wants(1), me, now_ns, u64::MAX);
    assert!(matches!(
        again,
        Err(Error::CapacityDiffers {
            existing: 3,
            asked: 1,
            ..
        })
    ));
}

#[test]
fn property_6_whoever_comes_and_goes_keeps_nobody_from_an_answer() {
    let (engine, me) = engine(FEW);
    let first = share(&engine, me, 0);
    let found = find(&engine);
    let asker = asker(me, LEASE);
    // Between its look at the word and its look at who shares the lock, another comes.
    let second = share(&engine, me, 0);
    let answer = engine.answer(&found, Wants::Exclusive, &asker);
    assert!(
        matches!(answer, Answer::No { look_again_ns } if look_again_ns >= LEASE),
        "two share it still"
    );
    // And goes.
    let found = find(&engine);
    engine.release(&second, || 0);
    let answer = engine.answer(&found, Wants::Upgrade(first), &asker);
    assert!(
        matches!(answer, Answer::Again),
        "nobody else shares it any more"
    );
}

#[test]
fn property_5_an_upgrade_never_shortens_the_lease_that_it_keeps() {
    let (engine, me) = engine(FEW);
    let first = share(&engine, me, 0);
    let found = find(&engine);
    let asker = asker(me, SECOND);
    // Another comes before the exchange: no upgrade, and the hold is what it was.
    share(&engine, me, 0);
    assert_eq!(engine.complete_upgrade(&found, first, &asker), None);
    assert!(engine.is_held(&first, LEASE - SECOND));
}

#[test]
fn property_6_a_wait_for_an_upgrade_that_cannot_be_hides_nobody_behind_it() {
    let (engine, me) = engine(FEW);
    let (mine, theirs) = (share(&engine, me, 0), share(&engine, me, 0));
    let upgrade = engine.try_upgrade(&mine, 0, LEASE).unwrap();
    assert_eq!(upgrade, Upgrade::Shared);
    let names = [name(&engine)];
    let enqueue = |wants| engine.enqueue_for(&names, wants, me, 0, LATER).unwrap();
    let _upgrade = enqueue(Wants::Upgrade(mine));
    let _behind = enqueue(Wants::Shared);
    // What was to be upgraded is gone, and who waits for that has not looked since.
    let released = engine.release(&mine, || 0);
    assert!(
        matches!(released, Released::Done { wake: Some(_) }),
        "it is the turn of the one behind"
    );
    assert!(engine.is_held(&theirs, 0));
}
