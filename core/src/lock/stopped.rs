//! One who takes a coarse lock, or several, or waits for one, and is stopped between two steps: others go on
//! without it, and what it does when it goes on fails or is harmless.

use super::coarse::Coarse;
use super::engaged::{Engaged, Role};
use super::together::Took;
use super::{Attempt, Grant, Released};
use crate::admission::{Answer, Asker, Wants};
use crate::check::Finding;
use crate::engine::Engine;
use crate::object::{Kind, Name};
use crate::once::{Begun, TTL_NS_MIN};
use crate::region::Caps;
use crate::session::{Process, SessionId};
use crate::stopped::engine;
use crate::table::Found;
use crate::waiter::{PATIENCE_NS, Poll, Ticket};
use core::sync::atomic::Ordering::Relaxed;

const SECOND: u64 = 1_000_000_000;
const LEASE_NS: u64 = 30 * SECOND;

fn asker(by: SessionId) -> Asker {
    Asker {
        by,
        number: None,
        now_ns: 0,
        lease_ns: LEASE_NS,
        probe: true,
    }
}

impl Engine {
    fn names(&self, names: &[&str]) -> Vec<Name> {
        let name = |name: &&str| self.lock_name(name.as_bytes()).unwrap();
        names.iter().map(name).collect()
    }

    fn found(&self, names: &[&str], by: SessionId) -> Vec<Found> {
        let names = self.names(names);
        let mut found: Vec<Found> = names
            .iter()
            .map(|name| self.find_lock(name, by, 0).unwrap())
            .collect();
        found.sort_by_key(|found| found.cell);
        found
    }

    fn key(&self, name: &str, by: SessionId) -> Option<Grant> {
        granted(
            self.try_acquire(&self.names(&[name])[0], by, 0, LEASE_NS)
                .unwrap(),
        )
    }

    fn all(&self, names: &[&str], by: SessionId) -> Option<Grant> {
        granted(
            self.try_acquire_all(&self.names(names), by, 0, LEASE_NS)
                .unwrap(),
        )
    }

    fn coarse(&self, coarse: Coarse, by: SessionId, now_ns: u64) -> Option<Grant> {
        let (name, wants) = (&self.names(&["-"])[0], Wants::Coarse(coarse));
        granted(self.try_get(name, wants, by, now_ns, LEASE_NS).unwrap())
    }

    fn wait_for(&self, name: &str, wants: Wants, by: SessionId) -> Ticket {
        let names = self.names(&[name]);
        self.enqueue_for(&names, wants, by, 0, u64::MAX).unwrap()
    }

    fn look_for(&self, name: &str, ticket: &Ticket, by: SessionId, now_ns: u64) -> Poll {
        let names = self.names(&[name]);
        self.poll_for(ticket, &names, by, now_ns, LEASE_NS, true)
            .unwrap()
    }

    fn free(&self, grant: &Grant) {
        assert!(matches!(self.release(grant, || 0), Released::Done { .. }));
    }

    fn session(&self) -> SessionId {
        self.open_session(Process::default(), 0).unwrap()
    }

    fn reclaim_lock(&self, cell: u32) {
        let state = self.objects.state(&self.region, cell).load();
        assert!(self.objects.reclaim(&self.region, cell, state));
    }
}

fn granted(attempt: Attempt) -> Option<Grant> {
    match attempt {
        Attempt::Granted(grant) => Some(grant),
        Attempt::Busy => None,
    }
}

/// Two names whose locks lie in one partition.
fn beside(engine: &Engine, name: &str) -> String {
    let partition = engine.partition_of(name.as_bytes());
    (0..10_000)
        .map(|i| format!("beside {i}"))
        .find(|other| engine.partition_of(other.as_bytes()) == partition)
        .unwrap()
}

#[test]
fn property_10_one_stopped_with_the_leader_engaged_keeps_nobody_out_and_gets_nothing_late() {
    let (engine, me) = engine(Caps::default());
    let other = engine.session();
    let found = engine.found(&["a", "b"], me);
    let token = engine.engage(&found[0], Role::Leader(me)).unwrap();
    // Stopped. Whoever comes has both, one after the other or together.
    let grant = engine.all(&["a", "b"], other).expect("nobody holds them");
    assert!(grant.token > token, "the token is spent");
    // Goes on: the follower is not its to engage, and it decides nothing.
    let role = Role::Follower {
        leader: found[0].cell,
        tag: Engaged::tag_of(token),
    };
    assert!(engine.engage(&found[1], role).is_none());
    let decided = engine.decide(found[0].cell, token, &asker(me));
    assert!(matches!(decided, Took::Again));
    engine.call_off(found[0].cell, token, 0);
    engine.free_follower(found[1].cell, found[0].cell, Engaged::tag_of(token), 0);
    assert!(engine.is_held(&grant, 0));
    assert!(engine.key("a", me).is_none() && engine.key("b", me).is_none());
}

#[test]
fn property_10_one_stopped_before_it_decides_is_called_off_by_way_of_any_of_its_locks() {
    for name in ["a", "b"] {
        let (engine, me) = engine(Caps::default());
        let other = engine.session();
        let found = engine.found(&["a", "b"], me);
        let token = engine.engage(&found[0], Role::Leader(me)).unwrap();
        let leader = found[0].cell;
        let tag = Engaged::tag_of(token);
        engine.engage(&found[1], Role::Follower { leader, tag });
        // Stopped, while somebody takes the one and lets it go again.
        engine.free(&engine.key(name, other).expect("nobody holds it"));
        let grant = engine.key(name, other).unwrap();
        // Goes on.
        let decided = engine.decide(leader, token, &asker(me));
        assert!(
            matches!(decided, Took::Again),
            "it decides after it was called off"
        );
        engine.call_off(leader, token, 0);
        engine.free_follower(found[1].cell, leader, tag, 0);
        assert!(engine.is_held(&grant, 0));
        engine.free(&grant);
        assert!(engine.all(&["a", "b"], other).is_some());
    }
}

#[test]
fn property_10_what_followed_a_hold_that_is_over_follows_no_later_one() {
    let (engine, me) = engine(Caps::default());
    let other = engine.session();
    let grant = engine.all(&["a", "b"], me).unwrap();
    // Stopped after the leader is free.
    engine.free(&grant);
    let names = engine.names(&["a", "b"]);
    let leader = engine.lock_name(&engine.name_in(grant.cell())).unwrap();
    let again = granted(engine.try_acquire(&leader, other, 0, LEASE_NS).unwrap()).unwrap();
    let follows = if leader.to_vec() == b"a" { "b" } else { "a" };
    let late = engine.key(follows, other).expect("it follows nothing now");
    // Goes on: frees what follows its own hold only.
    engine.release_followers(&grant, &names, 0, |_| {});
    assert!(engine.is_held(&again, 0) && engine.is_held(&late, 0));
    assert_eq!(engine.release(&grant, || 0), Released::NotHeld);
}

impl Engine {
    fn name_in(&self, cell: u32) -> Vec<u8> {
        crate::object::Objects::name(&self.region, self.objects.at(cell))
    }
}

#[test]
fn property_11_one_that_goes_on_after_its_cells_were_reclaimed_takes_none_of_them() {
    let (engine, me) = engine(Caps {
        objects: 2,
        ..Caps::default()
    });
    let other = engine.session();
    let found = engine.found(&["a", "b"], me);
    let (leader, follower) = (found[0].cell, found[1].cell);
    let token = engine.engage(&found[0], Role::Leader(me)).unwrap();
    // Stopped; called off, and both entries go to others.
    engine.call_off(leader, token, 0);
    engine.reclaim_lock(leader);
    engine.reclaim_lock(follower);
    let grants: Vec<Grant> = ["c", "d"]
        .map(|name| engine.key(name, other).unwrap())
        .into();
    // Goes on.
    let tag = Engaged::tag_of(token);
    assert!(
        engine
            .engage(&found[1], Role::Follower { leader, tag })
            .is_none()
    );
    assert!(matches!(
        engine.decide(leader, token, &asker(me)),
        Took::Again
    ));
    engine.call_off(leader, token, 0);
    engine.free_follower(follower, leader, tag, 0);
    assert!(grants.iter().all(|grant| engine.is_held(grant, 0)));
}

#[test]
fn property_10_of_two_names_one_cell_was_found_for_none_is_left_out() {
    let (engine, me) = engine(Caps {
        objects: 1,
        ..Caps::default()
    });
    let first = engine.found(&["a"], me);
    // Stopped between the two searches, while the cell becomes the second name's.
    engine.reclaim_lock(first[0].cell);
    let second = (0..1_000)
        .find_map(|i| {
            let found = engine.found(&[&format!("other {i}")], me);
            let is_there = found[0].cell == first[0].cell;
            if !is_there {
                engine.reclaim_lock(found[0].cell);
            }
            is_there.then_some(found)
        })
        .expect("some name comes to lie in the cell");
    for found in [[first[0], second[0]], [second[0], first[0]]] {
        let took = engine.take_found(found.into(), &asker(me)).unwrap();
        assert!(
            matches!(took, Took::Again),
            "it is granted with one of the two alone"
        );
    }
}

#[test]
fn property_8_what_followed_a_lock_leaves_the_counter_alone_that_has_its_cell_by_now() {
    let (engine, me) = engine(Caps::default());
    let grant = engine.all(&["a", "b"], me).unwrap();
    let found = engine.found(&["a", "b"], me);
    let (leader, follower) = (found[0], found[1]);
    assert_eq!(leader.cell, grant.cell());
    // Stopped after the leader is free; its cell becomes a counter's, that counts to a number which looks, there,
    // like a lock that is held under the same token.
    engine.free(&grant);
    let held = leader.state;
    let at = leader.at;
    let meta = engine.region.word(at + crate::object::META);
    let freed = engine.region.wide(at).load();
    engine
        .region
        .wide(at)
        .compare_exchange(freed, held)
        .unwrap();
    meta.store(meta.load(Relaxed) & !0xff | Kind::Counter as u64, Relaxed);
    let attempt = engine.is_free(&follower, &asker(me));
    assert!(matches!(attempt, Answer::Again), "it is void");
    let state = engine.region.wide(follower.at).load();
    assert!(
        super::State::is_plainly_free(state),
        "it is held by a counter"
    );
    assert_eq!(engine.region.wide(at).load(), held);
}

#[test]
fn property_1_one_stopped_over_a_partition_keeps_out_nobody_beneath_and_finds_out() {
    for coarse in [Coarse::Partition(0), Coarse::Table] {
        let (engine, me) = engine(Caps::default());
        let other = engine.session();
        let coarse = match coarse {
            Coarse::Partition(_) => Coarse::Partition(engine.partition_of(b"a")),
            table @ Coarse::Table => table,
        };
        engine.free(&engine.key("a", other).unwrap());
        let words = engine.words_of(coarse);
        let token = engine.engage(&words[0], Role::Leader(me)).unwrap();
        let role = Role::Follower {
            leader: words[0].cell,
            tag: Engaged::tag_of(token),
        };
        for word in &words[1..] {
            engine.engage(word, role).unwrap();
        }
        // Stopped before it looks, or after: somebody beneath gets in.
        let grant = engine
            .key("a", other)
            .expect("undecided, it keeps out nobody");
        let decided = engine.decide(words[0].cell, token, &asker(me));
        assert!(
            matches!(decided, Took::Again),
            "exclusion: it decides after it was called off"
        );
        assert!(engine.coarse(coarse, me, 0).is_none());
        engine.free(&grant);
        assert!(engine.coarse(coarse, me, 0).is_some());
    }
}

/// Makes an entry of some kind by a name.
type Put<'a> = &'a dyn Fn(&Engine, &[u8], SessionId) -> Option<Found>;

#[test]
fn property_1_one_stopped_between_two_looks_at_a_lock_leaves_what_has_its_cell_by_then_alone() {
    // What may read as a lock, held or waited for.
    let fence = |engine: &Engine, name: &[u8], me| {
        let name = engine.fence_name(name).unwrap();
        engine.admit(&name, me, 0, 5, false).unwrap().unwrap();
        engine.find_object(&engine.object(Kind::Fence, &name))
    };
    let once_begun_again = |engine: &Engine, name: &[u8], me| {
        let name = engine.once_name(name).unwrap();
        for now_ns in [0, 2 * TTL_NS_MIN] {
            assert!(matches!(
                engine.begin(&name, me, now_ns, TTL_NS_MIN).unwrap(),
                Begun::Started(_)
            ));
        }
        engine.find_object(&engine.object(Kind::Once, &name))
    };
    let once_begun = |engine: &Engine, name: &[u8], me| {
        let name = engine.once_name(name).unwrap();
        let _ = engine.begin(&name, me, 0, TTL_NS_MIN).unwrap();
        engine.find_object(&engine.object(Kind::Once, &name))
    };
    for put in [&fence as Put<'_>, &once_begun, &once_begun_again] {
        let (engine, me) = engine(Caps {
            objects: 1,
            ..Caps::default()
        });
        let grant = engine.key("a", me).unwrap();
        let cell = grant.cell();
        let held = engine.found(&["a"], me)[0];
        // Stopped, having seen that it is held.
        engine.free(&grant);
        engine.reclaim_lock(cell);
        let later = (0..1_000)
            .find_map(|i| {
                let found = put(&engine, format!("later {i}").as_bytes(), me).unwrap();
                if found.cell != cell {
                    engine.reclaim_lock(found.cell);
                }
                (found.cell == cell).then_some(found)
            })
            .expect("some name comes to lie in the cell");
        let waiter = Asker {
            number: Some(1),
            ..asker(me)
        };
        assert_eq!(engine.held_until_ns(held, &waiter), None, "it is no lock");
        assert_eq!(engine.held_until_ns(later, &waiter), None, "it is no lock");
        assert_eq!(engine.hand_on_now(cell, 0), None);
        engine.end_hold_of(me.index(), cell, held.state, 0);
        engine.end_hold_of(me.index(), cell, later.state, 0);
        let state = engine.region.wide(later.at).load();
        assert_eq!(
            state, later.state,
            "exclusion: another entry's word was exchanged"
        );
    }
}

#[test]
fn property_15_a_stopped_waiter_beneath_keeps_no_partition_from_who_waits_for_it() {
    let (engine, me) = engine(Caps::default());
    let other = engine.session();
    let held = engine.key("a", me).unwrap();
    let key = engine.wait_for("a", Wants::Exclusive, other);
    let partition = Wants::Coarse(Coarse::Partition(engine.partition_of(b"a")));
    let ticket = engine.wait_for("-", partition, me);
    engine.free(&held);
    // The one who waits for the key is stopped. The other one looks as often as it has to.
    let mut now_ns = 0;
    let is_granted = |now_ns| {
        matches!(
            engine.look_for("-", &ticket, me, now_ns),
            Poll::Granted { .. }
        )
    };
    while !is_granted(now_ns) {
        now_ns += PATIENCE_NS / 4;
        assert!(now_ns <= 2 * PATIENCE_NS, "it is kept waiting for ever");
    }
    // It goes on, and has its turn after.
    let look = engine.look_for("a", &key, other, now_ns);
    assert!(matches!(look, Poll::Waiting { .. }));
}

#[test]
fn property_15_one_who_waits_for_the_table_shuts_the_gates_anew_after_it_was_passed_over() {
    let (engine, me) = engine(Caps::default());
    let other = engine.session();
    let held = engine.key("a", other).unwrap();
    let ticket = engine.wait_for("-", Wants::Coarse(Coarse::Table), me);
    assert!(engine.key("b", other).is_none(), "it waits");
    // Stopped: those who come are let by after a while, and find the gates shut for nobody.
    let late_ns = PATIENCE_NS + 1;
    let name = &engine.names(&["b"])[0];
    for _ in 0..3 {
        let attempt = engine.try_acquire(name, other, late_ns, LEASE_NS).unwrap();
        if let Some(grant) = granted(attempt) {
            engine.free(&grant);
        }
    }
    // Goes on.
    let look = engine.look_for("-", &ticket, me, late_ns);
    assert!(matches!(look, Poll::Waiting { .. }));
    let attempt = engine.try_acquire(name, other, late_ns, LEASE_NS).unwrap();
    assert_eq!(attempt, Attempt::Busy, "newcomers go before it again");
    engine.free(&held);
    let look = engine.look_for("-", &ticket, me, late_ns);
    assert!(matches!(look, Poll::Granted { .. }));
}

#[test]
fn property_15_newcomers_beneath_do_not_call_off_one_who_waits_and_is_at_it() {
    let (engine, me) = engine(Caps::default());
    let other = engine.session();
    let partition = Coarse::Partition(engine.partition_of(b"a"));
    engine.free(&engine.key("a", other).unwrap());
    let _ticket = engine.wait_for("-", Wants::Coarse(partition), me);
    let words = engine.words_of(partition);
    let token = engine.engage(&words[0], Role::Leader(me)).unwrap();
    assert!(engine.key("a", other).is_none(), "it waits");
    let decided = engine.decide(words[0].cell, token, &asker(me));
    assert!(
        matches!(decided, Took::Granted(_)),
        "it was called off by one who came after it"
    );
}

#[test]
fn property_15_one_who_waits_for_a_partition_and_is_stopped_at_it_is_passed_over() {
    let (engine, me) = engine(Caps::default());
    let other = engine.session();
    let partition = Coarse::Partition(engine.partition_of(b"a"));
    let _ticket = engine.wait_for("-", Wants::Coarse(partition), me);
    let words = engine.words_of(partition);
    let token = engine.engage(&words[0], Role::Leader(me)).unwrap();
    let name = &engine.names(&["a"])[0];
    // The first to come calls it off, from when on its patience counts.
    let attempt = |now_ns| granted(engine.try_acquire(name, other, now_ns, LEASE_NS).unwrap());
    let is_had = [1, 2].map(|times| attempt(times * (PATIENCE_NS + 1)).is_some());
    assert_eq!(is_had, [false, true]);
    let decided = engine.decide(words[0].cell, token, &asker(me));
    assert!(matches!(decided, Took::Again));
}

#[test]
fn property_4_a_session_that_has_the_id_of_a_dead_one_has_none_of_its_coarse_locks() {
    for coarse in [Coarse::Partition(3), Coarse::Table] {
        let (engine, me) = engine(Caps {
            sessions: 2,
            ..Caps::default()
        });
        let dead = engine.session();
        let grant = engine.coarse(coarse, dead, 0).unwrap();
        // As well: one that it was about to take.
        let found = engine.found(&["a"], me);
        engine.close_session(dead);
        let engaged = engine.engage(&found[0], Role::Leader(dead));
        assert!(engaged.is_some());
        for _ in 0..64 {
            let next = engine.session();
            if next == dead {
                break;
            }
            engine.close_session(next);
        }
        assert!(engine.is_alive(dead), "its id came round");
        assert!(!engine.is_held(&grant, 0), "it holds what the dead one did");
        let state = engine.region.wide(found[0].at).load();
        assert!(super::State::is_plainly_free(state));
        assert!(engine.coarse(coarse, me, 0).is_some());
    }
}

#[test]
fn property_15_a_partition_beside_a_stopped_taker_of_the_table_is_had() {
    let (engine, me) = engine(Caps::default());
    let other = engine.session();
    let words = engine.words_of(Coarse::Table);
    let token = engine.engage(&words[0], Role::Leader(me)).unwrap();
    let role = Role::Follower {
        leader: words[0].cell,
        tag: Engaged::tag_of(token),
    };
    // Stopped with half of the gates engaged.
    for word in &words[1..words.len() / 2] {
        engine.engage(word, role).unwrap();
    }
    let first = engine.coarse(Coarse::Partition(0), other, 0).unwrap();
    let last = engine.region.partitions() - 1;
    let second = engine.coarse(Coarse::Partition(last), other, 0).unwrap();
    let decided = engine.decide(words[0].cell, token, &asker(me));
    assert!(matches!(decided, Took::Again));
    assert!(engine.is_held(&first, 0) && engine.is_held(&second, 0));
    assert!(engine.coarse(Coarse::Table, me, 0).is_none());
}

#[test]
fn property_14_marks_of_a_wait_that_is_over_say_nothing() {
    let (engine, me) = engine(Caps::default());
    let (a, b) = (engine.key("a", me).unwrap(), engine.key("b", me).unwrap());
    let wait = |name, holds: &Grant| {
        let mut ticket = engine.wait_for(name, Wants::Exclusive, me);
        engine.set_holds(&mut ticket, vec![*holds]);
        ticket
    };
    // Who has `a` waits for `b`, dies with its mark in place, and its slot goes to another wait.
    let first = wait("b", &a);
    assert!(matches!(
        engine.look_for("b", &first, me, 0),
        Poll::Waiting { .. }
    ));
    let slot = first.slot();
    engine.end_waits_of(me.index());
    let next = wait("b", &b);
    assert_eq!(next.slot(), slot);
    engine.end_waits_of(me.index());
    let next = engine.wait_for("b", Wants::Exclusive, me);
    assert_eq!(next.slot(), slot);
    // Who has `b` waits for `a`: whoever has that does not wait.
    let second = wait("a", &b);
    assert!(
        matches!(engine.look_for("a", &second, me, 0), Poll::Waiting { .. }),
        "a deadlock with a wait that is over"
    );
    let beside = beside(&engine, "a");
    assert!(engine.key(&beside, me).is_some());
}

#[test]
fn property_15_a_region_check_tells_what_no_coarse_lock_and_no_follower_ever_is() {
    let (engine, me) = engine(Caps::default());
    let finds = |finding: Finding| engine.check_region().findings == [finding];
    let table = engine.coarse_cell(Coarse::Table);
    let grant = engine.coarse(Coarse::Table, me, 0).unwrap();
    assert_eq!(engine.check_region().findings, []);
    let set = |at: usize, to: u128| {
        let word = engine.region.wide(at);
        let before = word.load();
        word.compare_exchange(before, to).unwrap();
        before
    };
    let at = engine.region.coarse_at(1);
    let before = set(at, crate::table::LIVE | crate::pool::POOLED);
    assert!(finds(Finding::Coarse { index: 1 }));
    let by_key = Engaged {
        queue: false,
        role: Role::Follower { leader: 0, tag: 1 },
        token: 1,
    };
    set(at, by_key.encode());
    let cell = super::coarse::COARSE | 1;
    assert!(finds(Finding::Leader { cell, leader: 0 }));
    set(at, before);
    engine.free(&grant);
    let found = engine.found(&["a"], me)[0];
    for leader in [found.cell, table] {
        let of_itself = Engaged {
            role: Role::Follower { leader, tag: 1 },
            ..by_key
        };
        set(found.at, of_itself.encode());
        let cell = found.cell;
        assert!(finds(Finding::Leader { cell, leader }));
    }
}
