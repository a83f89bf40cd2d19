//! Forks, programs executed, process ids used again, and the head of a queue dead or stopped.

use crate::actor::Actor;
use crate::journal::{Journal, Op};
use crate::process::{Fate, alone, fork, hang_guard, poll, signal, wait};
use crate::scene::{LONG_TTL, SMALL, directory, now_ns, say};
use crate::scenes_lock::KEY;
use sprag::Error;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::SeqCst;

/// A region of its own, and a way to make actors in it.
struct Place {
    journal: Journal,
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        hang_guard(60);
        Self {
            journal: Journal::new(),
            directory: directory(),
        }
    }

    fn actor(&self, role: usize) -> Actor {
        let url = format!("shm:{}", self.directory.path().join("region").display());
        Actor::new(self.journal, role, role as u64 + 1, &url, SMALL)
    }

    fn say(&self, flag: usize) {
        self.journal.flag(flag).store(1, SeqCst);
    }

    fn is_said(&self, flag: usize) -> bool {
        self.journal.flag(flag).load(SeqCst) != 0
    }

    fn hear(&self, flag: usize) {
        while !self.is_said(flag) {
            std::thread::yield_now();
        }
    }
}

const HELD: usize = 0;
const DONE: usize = 1;
const WAITS: usize = 2;
const OVER: usize = 3;

/// Holds the lock and stays until killed; in a child, which it returns.
fn holder(place: &Place, role: usize) -> libc::pid_t {
    let pid = fork(|| {
        let actor = place.actor(role);
        let space = actor.open();
        let held = actor.must_acquire(&space, KEY, LONG_TTL);
        place.say(HELD);
        place.hear(OVER);
        assert!(held.hold.is_held(), "somebody took it away");
    });
    place.hear(HELD);
    pid
}

// property 15
#[test]
fn a_forked_child_owns_nothing_and_what_it_drops_stays_its_parents() {
    let test = "processes::a_forked_child_owns_nothing_and_what_it_drops_stays_its_parents";
    alone(test, || {
        let place = Place::new();
        let parent = fork(|| {
            let actor = place.actor(0);
            let space = actor.open();
            let held = actor.must_acquire(&space, KEY, LONG_TTL);
            let limiter = space.limiter("api", "2/day").expect("a limiter");
            let fence = space.fence("f").expect("a fence");
            // Which copy drops first, and whether it opens a space of its own before, is all the same.
            for opens in [false, true] {
                let child = fork(|| {
                    assert!(!held.hold.is_valid(), "a child holds nothing");
                    let lock = space.lock("other").expect("a name");
                    assert!(matches!(lock.try_acquire(), Err(Error::Forked)));
                    assert!(matches!(lock.acquire(), Err(Error::Forked)));
                    assert!(matches!(lock.release_token(1), Err(Error::Forked)));
                    assert!(matches!(limiter.check("k", 1), Err(Error::Forked)));
                    assert!(matches!(fence.admit(1), Err(Error::Forked)));
                    assert!(matches!(space.break_lock("k1"), Err(Error::Forked)));
                    if opens {
                        let own = place.actor(1);
                        let fresh = own.open();
                        let tried = own.try_acquire(Op::Acquire, &fresh, KEY, LONG_TTL);
                        assert!(tried.expect("room").is_none(), "its parent holds it");
                        // SAFETY: the child's copies, which nobody drops again: it ends by _exit.
                        drop(unsafe { std::ptr::read(&raw const held) });
                        let tried = own.try_acquire(Op::Acquire, &fresh, KEY, LONG_TTL);
                        assert!(tried.expect("room").is_none(), "its parent holds it");
                    } else {
                        // SAFETY: as above.
                        drop(unsafe { std::ptr::read(&raw const held) });
                    }
                    // SAFETY: as above.
                    drop(unsafe { std::ptr::read(&raw const space) });
                });
                assert_eq!(wait(child), Fate::Exited(0), "the child");
                assert!(held.hold.is_held(), "its child released it");
            }
            assert!(actor.release(Op::Release, held), "its child released it");
        });
        assert_eq!(wait(parent), Fate::Exited(0), "the parent");
    });
}

// property 15
#[test]
fn a_child_that_outlives_its_parent_does_not_keep_the_parents_session_alive() {
    let test =
        "processes::a_child_that_outlives_its_parent_does_not_keep_the_parents_session_alive";
    alone(test, || {
        // A forked child; a child that executes a program; the process itself executing one.
        for way in 0..3 {
            let place = Place::new();
            let parent = fork(|| {
                let actor = place.actor(0);
                let space = actor.open();
                std::mem::forget(actor.must_acquire(&space, KEY, LONG_TTL));
                let mut sleep = Command::new("sleep");
                sleep.arg("600").stdin(Stdio::null());
                match way {
                    0 => {
                        // Not ended with its parent: that is the point.
                        // SAFETY: the child only waits.
                        if unsafe { libc::fork() } == 0 {
                            place.say(HELD);
                            place.hear(OVER);
                            // SAFETY: ends the child at once.
                            unsafe { libc::_exit(0) };
                        }
                    }
                    1 => {
                        let mut child = sleep.spawn().expect("sleep starts");
                        place.journal.flag(8).store(child.id().into(), SeqCst);
                        place.say(HELD);
                        // Killed long before.
                        child.wait().expect("sleep ends");
                    }
                    _ => {
                        place.say(HELD);
                        panic!("sleep starts: {}", sleep.exec());
                    }
                }
                place.hear(OVER);
            });
            place.hear(HELD);
            if way < 2 {
                signal(parent, libc::SIGKILL);
                assert_eq!(wait(parent), Fate::Killed(libc::SIGKILL));
            }
            let actor = place.actor(1);
            let next = fork(|| {
                hang_guard(60);
                let space = actor.open();
                let held = actor.must_catch(&space, KEY, LONG_TTL);
                assert!(actor.release(Op::Release, held));
            });
            assert_eq!(wait(next), Fate::Exited(0), "who comes next, way {way}");
            place.say(OVER);
            match way {
                1 => {
                    let child = place.journal.flag(8).load(SeqCst);
                    signal(child.try_into().expect("a pid"), libc::SIGKILL);
                }
                2 => {
                    assert_eq!(poll(parent), None, "it is a program that still runs");
                    signal(parent, libc::SIGKILL);
                    assert_eq!(wait(parent), Fate::Killed(libc::SIGKILL));
                }
                _ => {}
            }
        }
    });
}

/// Runs `body` as process 1 of a pid namespace of its own; `None` where there are none to be had.
fn as_process_one(body: impl FnOnce()) -> Option<libc::pid_t> {
    let (ours, theirs) = std::io::pipe().expect("a pipe");
    let outer = fork(|| {
        // SAFETY: takes no pointers.
        let made = unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWPID) } == 0;
        std::io::Write::write_all(&mut &theirs, &[u8::from(made)]).expect("a pipe");
        if !made {
            return;
        }
        let one = fork(|| {
            assert_eq!(std::process::id(), 1, "the first of its namespace");
            body();
        });
        assert_eq!(wait(one), Fate::Exited(0), "process 1");
    });
    let mut made = [0];
    std::io::Read::read_exact(&mut &ours, &mut made).expect("a pipe");
    if made == [0] {
        assert_eq!(wait(outer), Fate::Exited(0));
        return None;
    }
    Some(outer)
}

// property 15
#[test]
fn a_process_id_used_again_is_neither_taken_for_the_living_nor_for_the_dead() {
    let test =
        "processes::a_process_id_used_again_is_neither_taken_for_the_living_nor_for_the_dead";
    alone(test, || {
        let place = Place::new();
        // The file belongs to a user that the namespaces know.
        drop(place.actor(0).open());
        let first = as_process_one(|| {
            let actor = place.actor(0);
            let space = actor.open();
            let held = actor.must_acquire(&space, KEY, LONG_TTL);
            place.say(HELD);
            place.hear(DONE);
            // Killed with its namespace, from outside.
            std::mem::forget(held);
            std::mem::forget(space);
        });
        let Some(first) = first else {
            say("skipped: this system has no pid namespaces for us\n");
            return;
        };
        place.hear(HELD);
        // Another process 1, while the first lives.
        let second = as_process_one(|| {
            let actor = place.actor(1);
            let space = actor.open();
            let tried = actor.try_acquire(Op::Acquire, &space, KEY, LONG_TTL);
            assert!(tried.expect("room").is_none(), "the first one lives");
        });
        assert_eq!(second.map(wait), Some(Fate::Exited(0)), "the second one");
        place.say(DONE);
        assert_eq!(wait(first), Fate::Exited(0), "the first one");
        // And another, when it is gone.
        let third = as_process_one(|| {
            hang_guard(60);
            let actor = place.actor(2);
            let space = actor.open();
            let held = actor.must_catch(&space, KEY, LONG_TTL);
            assert!(actor.release(Op::Release, held));
        });
        assert_eq!(third.map(wait), Some(Fate::Exited(0)), "the third one");
    });
}

/// A process that waits for the lock, and says when it is in the queue.
fn waiter(place: &Place, role: usize) -> libc::pid_t {
    fork(|| {
        let actor = place.actor(role);
        let space = actor.open();
        // Longer than anybody else has patience: what is stopped never gives up.
        let held = actor.acquire(Op::Wait, &space, KEY, LONG_TTL, LONG_TTL);
        let held = held.expect("no error").expect("its turn comes");
        assert!(actor.release(Op::HandOn, held));
    })
}

fn waiters(space: &sprag::Space) -> u32 {
    let locks = space.inspect("k1").expect("an inspection");
    locks.first().map_or(0, |lock| lock.waiters)
}

// property 4, property 15
#[test]
fn the_head_of_a_queue_that_is_dead_or_stopped_lets_the_others_pass() {
    let test = "processes::the_head_of_a_queue_that_is_dead_or_stopped_lets_the_others_pass";
    alone(test, || {
        for strike in [libc::SIGKILL, libc::SIGSTOP] {
            // The head is struck while the lock is held; the holder releases, or dies as well. Others
            // wait behind it, or nobody does.
            for (holder_dies, others) in [(false, 2), (true, 2), (false, 0), (true, 0)] {
                let place = Place::new();
                let holding = holder(&place, 0);
                let looking = fork(|| {
                    hang_guard(60);
                    let space = place.actor(5).open();
                    while waiters(&space) == 0 {
                        std::thread::yield_now();
                    }
                    place.say(WAITS);
                    while waiters(&space) < 1 + others {
                        std::thread::yield_now();
                    }
                });
                let head = waiter(&place, 1);
                place.hear(WAITS);
                let others: Vec<_> = (0..others as usize)
                    .map(|number| waiter(&place, 2 + number))
                    .collect();
                assert_eq!(wait(looking), Fate::Exited(0), "all wait");
                signal(head, strike);
                if strike == libc::SIGKILL {
                    assert_eq!(wait(head), Fate::Killed(libc::SIGKILL));
                } else {
                    assert_eq!(wait(head), Fate::Stopped);
                }
                if holder_dies {
                    signal(holding, libc::SIGKILL);
                    assert_eq!(wait(holding), Fate::Killed(libc::SIGKILL));
                } else {
                    place.say(OVER);
                    assert_eq!(wait(holding), Fate::Exited(0), "the holder");
                }
                for other in others {
                    assert_eq!(wait(other), Fate::Exited(0), "another waiter");
                }
                // One who only tries gets it as well.
                let trying = fork(|| {
                    hang_guard(60);
                    let actor = place.actor(4);
                    let space = actor.open();
                    let held = actor.must_catch(&space, KEY, LONG_TTL);
                    assert!(actor.release(Op::Release, held));
                });
                assert_eq!(wait(trying), Fate::Exited(0), "one who only tries");
                if strike == libc::SIGSTOP {
                    signal(head, libc::SIGCONT);
                    assert_eq!(wait(head), Fate::Exited(0), "its turn comes after all");
                }
            }
        }
    });
}

// property 5, property 15
#[test]
fn a_holder_that_is_stopped_past_its_lease_finds_out_when_it_goes_on() {
    let test = "processes::a_holder_that_is_stopped_past_its_lease_finds_out_when_it_goes_on";
    alone(test, || {
        let place = Place::new();
        let stopped = fork(|| {
            let actor = place.actor(0);
            let space = actor.open();
            let ttl = std::time::Duration::from_millis(20);
            let mut held = actor.must_acquire(&space, KEY, ttl);
            place.say(HELD);
            place.hear(DONE);
            assert!(!held.hold.is_valid() && !held.hold.is_held());
            assert!(!actor.renew(Op::Renew, &mut held), "a late renewal");
            assert!(!actor.release(Op::Release, held), "a late release");
        });
        place.hear(HELD);
        signal(stopped, libc::SIGSTOP);
        assert_eq!(wait(stopped), Fate::Stopped);
        let next = fork(|| {
            hang_guard(60);
            let actor = place.actor(1);
            let space = actor.open();
            let held = actor.must_acquire(&space, KEY, LONG_TTL);
            place.say(DONE);
            place.hear(OVER);
            assert!(held.hold.is_held(), "a stale step ended it");
            assert!(actor.release(Op::Release, held));
        });
        place.hear(DONE);
        let before_ns = now_ns();
        signal(stopped, libc::SIGCONT);
        assert_eq!(wait(stopped), Fate::Exited(0), "the stopped one");
        assert!(now_ns() >= before_ns);
        place.say(OVER);
        assert_eq!(wait(next), Fate::Exited(0), "the next one");
    });
}
