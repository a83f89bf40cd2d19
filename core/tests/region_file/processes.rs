//! Several processes on one region: exclusion, tokens, and what is left when one of them dies.

use crate::support::*;
use sprag_core::lock::Released;
use sprag_core::region::file;
use sprag_core::session::Process;
use std::fs;
use std::io::Write;
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
