//! Several processes on one region: exclusion, tokens, and what is left when one of them dies.

use crate::support::*;
use sprag_core::lock::Released;
use sprag_core::once::{OnceStatus, TTL_NS_MAX};
use sprag_core::region::file;
use sprag_core::session::Process;
use sprag_core::waiter::{PATIENCE_NS, Poll};
use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// Not a test: what the children of the tests do.
#[test]
fn roles() {
    let (Ok(role), Ok(path)) = (std::env::var(ROLE), std::env::var(PATH)) else {
        return;
    };
    let path = PathBuf::from(path);
    match role.as_str() {
        "create" => {
            say("ready");
            listen();
            let engine = open(&path);
            let me = session(&engine);
            say(me.index());
            listen();
        }
        "hold" => {
            let engine = open(&path);
            let me = session(&engine);
            let hold = acquire(&engine, me, b"a", 0).unwrap();
            say(hold.token);
            listen();
        }
        "wait" => {
            let engine = open(&path);
            let me = session(&engine);
            let name = engine.lock_name(b"a").unwrap();
            engine.enqueue(&name, me, 0, 60 * SECOND).unwrap();
            say("queued");
            listen();
        }
        "count" => count(&path),
        "leave a child" => leave_a_child(&path, true),
        "leave a careless child" => leave_a_child(&path, false),
        "fill" => crate::room::fill(&path),
        _ => panic!("no such role"),
    }
}

const ROUNDS: u64 = 300;

/// Adds to a file what only a holder may: read, then write, with the token beside it.
fn count(path: &std::path::Path) {
    let engine = open(path);
    let me = session(&engine);
    let ledger = path.with_file_name("ledger");
    let total = path.with_file_name("total");
    listen();
    for _ in 0..ROUNDS {
        let hold = loop {
            match acquire(&engine, me, b"a", 0) {
                Some(hold) => break hold,
                None => std::thread::yield_now(),
            }
        };
        let before: u64 = fs::read_to_string(&total).unwrap().parse().unwrap();
        fs::write(&total, (before + 1).to_string()).unwrap();
        let mut ledger = fs::File::options().append(true).open(&ledger).unwrap();
        writeln!(ledger, "{}", hold.token).unwrap();
        assert_ne!(engine.release(&hold, || 0), Released::NotHeld);
    }
    say("done");
}

#[test]
fn processes_that_create_at_once_open_one_region() {
    for _ in 0..3 {
        let (directory, path) = place();
        let mut actors: Vec<_> = (0..4).map(|_| Actor::start("create", &path)).collect();
        for actor in &mut actors {
            assert_eq!(actor.hear(), "ready");
        }
        for actor in &mut actors {
            actor.nudge();
        }
        let mut sessions: Vec<_> = actors.iter_mut().map(Actor::hear).collect();
        sessions.sort();
        sessions.dedup();
        assert_eq!(sessions.len(), 4, "each has a session of its own in it");
        assert_eq!(file::probe(&path).unwrap().sessions, 4);
        assert_eq!(names_in(directory.path()), ["region"]);
        for mut actor in actors {
            actor.nudge();
            actor.finish();
        }
        assert_eq!(file::probe(&path).unwrap().sessions, 0);
    }
}

#[test]
fn two_holds_never_overlap_and_tokens_rise_across_processes() {
    let (_directory, path) = place();
    let (ledger, total) = (path.with_file_name("ledger"), path.with_file_name("total"));
    fs::write(&ledger, "").unwrap();
    fs::write(&total, "0").unwrap();
    let mut actors: Vec<_> = (0..3).map(|_| Actor::start("count", &path)).collect();
    for actor in &mut actors {
        actor.nudge();
    }
    for mut actor in actors {
        assert_eq!(actor.hear(), "done");
        actor.finish();
    }
    assert_eq!(
        fs::read_to_string(&total).unwrap(),
        (3 * ROUNDS).to_string()
    );
    let tokens: Vec<u64> = fs::read_to_string(&ledger)
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!(tokens.len() as u64, 3 * ROUNDS);
    assert!(tokens.windows(2).all(|pair| pair[0] + 1 == pair[1]));
}

#[test]
fn threads_that_open_a_session_at_once_in_one_opening_get_one_that_lives() {
    for _ in 0..50 {
        let (_directory, path) = place();
        let engine = open(&path);
        let opened = at_once(4, |_| engine.open_session(Process::default(), 0).ok());
        let opened: Vec<_> = opened.into_iter().flatten().collect();
        assert_eq!(opened.len(), 1);
        assert!(engine.is_alive(opened[0]));
        assert!(open(&path).is_alive(opened[0]));
        assert_eq!(file::probe(&path).unwrap().sessions, 1);
    }
}

#[test]
fn the_lock_of_a_killed_process_is_taken_over_under_the_next_token() {
    let (_directory, path) = place();
    let mut holder = Actor::start("hold", &path);
    let token: u64 = holder.hear().parse().unwrap();
    let engine = open(&path);
    let me = session(&engine);
    assert!(acquire(&engine, me, b"a", 0).is_none(), "its holder lives");
    holder.kill();
    assert_eq!(acquire(&engine, me, b"a", 0).unwrap().token, token + 1);
}

#[test]
fn the_wait_of_a_killed_process_holds_nobody_up() {
    let (_directory, path) = place();
    let engine = open(&path);
    let me = session(&engine);
    let hold = acquire(&engine, me, b"a", 0).unwrap();
    let mut waiter = Actor::start("wait", &path);
    assert_eq!(waiter.hear(), "queued");
    let name = engine.lock_name(b"a").unwrap();
    assert_eq!(engine.lock_status(&name, 0).unwrap().waiters, 1);
    waiter.kill();
    engine.release(&hold, || 0);
    assert!(acquire(&engine, me, b"a", 0).is_some());
    assert_eq!(engine.check_region().findings, []);
}

/// Takes a lock, forks, and lives on. The child keeps the mapping, and closes the session's
/// descriptor if it is careful.
fn leave_a_child(path: &std::path::Path, is_careful: bool) {
    let engine = open(path);
    let me = session(&engine);
    acquire(&engine, me, b"a", 0).unwrap();
    // SAFETY: the parent has one thread that does anything; its child writes a line, and waits.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        if is_careful {
            // SAFETY: the child's own copy, which nothing uses any more.
            unsafe { libc::close(engine.session_fd().unwrap()) };
        }
        say("forked");
        listen();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(0) }
    }
    // Not by `listen`: what the test says is for the child.
    // SAFETY: takes no pointers.
    unsafe { libc::pause() };
}

#[test]
fn a_forked_child_that_closes_the_sessions_descriptor_owns_nothing() {
    let (_directory, path) = place();
    let mut parent = Actor::start("leave a child", &path);
    assert_eq!(parent.hear(), "forked");
    let engine = open(&path);
    let me = session(&engine);
    assert!(acquire(&engine, me, b"a", 0).is_none());
    let input = parent.kill();
    // The child lives, and has the region mapped.
    assert!(acquire(&engine, me, b"a", 0).is_some());
    drop(input);
}

#[test]
fn a_forked_child_that_keeps_the_sessions_descriptor_keeps_its_parents_session_alive() {
    let (_directory, path) = place();
    let mut parent = Actor::start("leave a careless child", &path);
    assert_eq!(parent.hear(), "forked");
    let engine = open(&path);
    let me = session(&engine);
    let input = parent.kill();
    assert!(acquire(&engine, me, b"a", 0).is_none(), "the child lives");
    drop(input);
    // The child ends now: nobody is left who has a copy.
    while acquire(&engine, me, b"a", 0).is_none() {
        std::thread::yield_now();
    }
}

// property 11
#[test]
fn sessions_that_a_process_had_before_it_replaced_itself_are_no_part_of_its_share() {
    // As after execve: same pid, same start; the kernel closed the descriptor, nobody closed the line.
    let (_directory, path) = place();
    let process = Process {
        pid: 7,
        start_ns: 9,
        pid_namespace: 3,
    };
    for opening in 0..20 {
        let engine = open(&path);
        let opened = engine.open_session(process, UNIX_NS);
        assert!(opened.is_ok(), "opening {opening}: {opened:?}");
    }
}

// property 5
#[test]
fn a_lost_session_is_noticed_though_another_has_its_line() {
    let (_directory, path) = place();
    let engine = open(&path);
    let mine = session(&engine);
    engine.check_in_place().unwrap();
    let null = fs::File::open("/dev/null").unwrap();
    let descriptor = engine.session_fd().unwrap();
    // SAFETY: both are open, and nobody uses the second but the engine, which is to find out.
    let duplicated = unsafe { libc::dup2(null.as_raw_fd(), descriptor) };
    assert_eq!(duplicated, descriptor);
    assert!(engine.check_in_place().is_err());
    let mut others = Vec::new();
    loop {
        let other = open(&path);
        let is_its = session(&other).index() == mine.index();
        others.push(other);
        if is_its {
            break;
        }
    }
    assert!(engine.check_in_place().is_err(), "says that all is well");
}

// property 15
#[test]
fn a_stopped_process_costs_others_their_patience_once_however_many_waits_it_has() {
    let (_directory, path) = place();
    let (engine, other) = (open(&path), open(&path));
    let (me, stopped) = (session(&engine), session(&other));
    let name = engine.lock_name(b"a").unwrap();
    let hold = acquire(&engine, me, b"a", 0).unwrap();
    for _ in 0..8 {
        other.enqueue(&name, stopped, 0, u64::MAX).unwrap();
    }
    let ticket = engine.enqueue(&name, me, 0, u64::MAX).unwrap();
    engine.release(&hold, || 2_000);
    let poll = |now_ns| {
        engine
            .poll(&ticket, &name, me, now_ns, 30 * SECOND, false)
            .unwrap()
    };
    assert!(matches!(poll(PATIENCE_NS), Poll::Waiting { .. }), "early");
    assert!(matches!(
        poll(2_000 + PATIENCE_NS),
        Poll::Granted { grant: _, .. }
    ));
}

// property 6
#[test]
fn one_who_was_passed_over_and_then_died_is_cleared_away_by_the_next_who_come() {
    let (_directory, path) = place();
    let (engine, other) = (open(&path), open(&path));
    let (me, stopped) = (session(&engine), session(&other));
    let name = engine.lock_name(b"a").unwrap();
    let hold = acquire(&engine, me, b"a", 0).unwrap();
    other.enqueue(&name, stopped, 0, u64::MAX).unwrap();
    engine.release(&hold, || 2_000);
    let now_ns = 2_000 + PATIENCE_NS;
    let hold = acquire(&engine, me, b"a", now_ns).expect("it is passed over");
    let ticket = engine.enqueue(&name, me, now_ns, u64::MAX).unwrap();
    drop(other);
    let waiters = || {
        let status = engine.lock_status(&name, now_ns).unwrap();
        (status.waiters, status.waiters_dead)
    };
    assert_eq!(waiters(), (1, 1));
    engine.release(&hold, || now_ns);
    let poll = engine.poll(&ticket, &name, me, now_ns, 30 * SECOND, true);
    assert!(matches!(poll.unwrap(), Poll::Granted { grant: _, .. }));
    engine.enqueue(&name, me, now_ns, u64::MAX).unwrap();
    assert_eq!(waiters(), (1, 0));
}

// property 15
#[test]
fn what_dead_processes_left_is_no_later_ones_though_its_session_id_comes_round() {
    let (_directory, path) = place();
    let mut first = None;
    let mut rounds = 0;
    // Twice the sessions that the lines can tell apart.
    for _ in 0..2 * 64 * CAPS.sessions {
        let engine = open(&path);
        let me = session(&engine);
        if *first.get_or_insert(me) == me {
            rounds += 1;
            let mut held = 0;
            engine.for_each_lock(b"", 0, |lock| {
                held += u32::from(lock.holds.iter().any(|hold| hold.is_alive));
            });
            engine.for_each_once(b"", 0, |_, status| {
                held += u32::from(status != OnceStatus::Unfinished);
            });
            assert_eq!(held, 0, "of the dead");
            let once = engine.once_name(&[rounds]).unwrap();
            engine.begin(&once, me, 0, TTL_NS_MAX).unwrap();
            // A name of its own, so that nobody asks for it again.
            acquire(&engine, me, &[rounds], 0).unwrap();
        }
    }
    assert!(rounds > 1, "the id never came round");
}
