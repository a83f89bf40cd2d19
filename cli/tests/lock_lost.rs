//! `sprag lock` when the lock is lost while the command runs. Property 5: losing a hold is told.
#![cfg(target_os = "linux")]

mod lock {
    pub(crate) mod world;
}

use lock::world::{World, has_ended, number, send, state, until};

#[test]
fn a_command_whose_lock_is_broken_is_told_to_end() {
    let world = World::new();
    // What it left running ignores the request.
    let script = "trap '' TERM; tail -f /dev/null & \
                  trap 'echo tidied; exit 5' TERM; echo $!; wait";
    let running = world.start(&["--kill-after", "5m", "--ttl", "1h", "broken"], script);
    let in_background: i32 = number(&running.line());
    let broken = world.space().break_lock("broken").expect("the space works");
    assert!(broken.is_some());
    let finished = running.finish_with_open_input();
    assert_eq!(
        (finished.out.as_str(), finished.code),
        ("tidied\n", Some(123))
    );
    let error = finished.error();
    for part in [
        "'broken'",
        "lost",
        "it was broken",
        "'sh' ended with code 5",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    until("what it left running is gone too", || {
        has_ended(in_background)
    });
}

#[test]
fn a_command_that_does_not_end_when_told_is_killed() {
    let world = World::new();
    let running = world.start(
        &["--ttl", "1h", "stubborn"],
        "trap '' TERM; echo ready; exec cat",
    );
    running.line();
    assert!(
        world
            .space()
            .break_lock("stubborn")
            .expect("the space works")
            .is_some()
    );
    let finished = running.finish_with_open_input();
    assert_eq!(finished.code, Some(123));
    assert!(
        finished.error().contains("ended by signal 9"),
        "{}",
        finished.err
    );
}

#[test]
fn a_command_that_is_stopped_when_the_lock_is_lost_never_goes_on() {
    let world = World::new();
    let running = world.start(
        &["--kill-after", "1h", "--ttl", "3h", "stopped"],
        "echo $$; kill -STOP $$; echo went on",
    );
    let command: i32 = number(&running.line());
    until("it is stopped", || state(command) == Some('T'));
    assert!(
        world
            .space()
            .break_lock("stopped")
            .expect("the space works")
            .is_some()
    );
    let finished = running.finish_with_open_input();
    assert_eq!((finished.out.as_str(), finished.code), ("", Some(123)));
    assert!(
        finished.error().contains("ended by signal 9"),
        "{}",
        finished.err
    );
}

#[test]
fn a_command_that_stops_when_it_is_told_to_end_never_goes_on() {
    let world = World::new();
    let running = world.start(
        &["--kill-after", "1h", "--ttl", "3h", "stops"],
        "trap 'kill -STOP $$; echo went on' TERM; echo ready; while :; do read x; done",
    );
    running.line();
    let broken = world.space().break_lock("stops").expect("the space works");
    assert!(broken.is_some());
    let finished = running.finish_with_open_input();
    assert_eq!((finished.out.as_str(), finished.code), ("", Some(123)));
}

#[test]
fn a_sprag_that_was_stopped_for_longer_than_the_lease_kills_its_command_first_of_all() {
    let world = World::new();
    let running = world.start(
        &["--ttl", "6s", "late"],
        "trap 'echo tidied' TERM CONT; echo $$; while read x; do :; done",
    );
    let command: i32 = number(&running.line());
    running.signal(libc::SIGSTOP);
    // Property 15: a stopped holder delays others by no more than its lease.
    let space = world.space();
    let hold = space
        .lock("late")
        .and_then(|lock| lock.acquire())
        .expect("the space works");
    assert!(!has_ended(command), "nobody was there to end it");
    running.signal(libc::SIGCONT);
    let finished = running.finish_with_open_input();
    assert_eq!((finished.out.as_str(), finished.code), ("", Some(123)));
    let error = finished.error();
    assert!(
        error.contains("--ttl") && error.contains("signal 9"),
        "{error}"
    );
    // Property 3: the late release freed nothing of the new holder's.
    hold.release().expect("still ours");
}

#[test]
fn a_lock_whose_region_is_removed_is_lost() {
    let world = World::new();
    let running = world.start(&["--ttl", "1h", "gone"], "echo ready; exec cat");
    running.line();
    std::fs::remove_file(world.path("region")).expect("it is there");
    let finished = running.finish_with_open_input();
    assert_eq!(finished.code, Some(123));
    assert!(
        finished.error().contains("removed or replaced"),
        "{}",
        finished.err
    );
}

#[test]
fn a_lock_that_was_lost_at_the_last_moment_was_lost() {
    let world = World::new();
    // By its own code all was well; but somebody else could have had the lock before it ended.
    let mut running = world.start(&["late"], "echo ready; read go");
    running.line();
    let pid = running.pid();
    send(pid, libc::SIGSTOP);
    until("sprag is stopped", || state(pid) == Some('T'));
    assert!(
        world
            .space()
            .break_lock("late")
            .expect("the space works")
            .is_some()
    );
    running.write("go\n");
    let shell = children(pid);
    until("the command has ended", || {
        shell.iter().all(|&child| has_ended(child))
    });
    send(pid, libc::SIGCONT);
    let finished = running.finish();
    assert_eq!(finished.code, Some(123));
    assert!(
        finished.error().contains("ended with code 0"),
        "{}",
        finished.err
    );
}

fn children(pid: i32) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let list = list.expect("the kernel tells");
    list.split_whitespace().map(number).collect()
}

#[test]
fn a_lock_outlasts_its_lease_while_the_command_runs() {
    let world = World::new();
    let running = world.start(&["--ttl", "9s", "long"], "echo ready; exec cat");
    running.line();
    let start = std::time::Instant::now();
    let space = world.space();
    until("its first lease is over", || {
        let locks = space.inspect("long").expect("the space can be read");
        assert!(locks.iter().any(|lock| lock.is_held), "{locks:?}");
        start.elapsed() > std::time::Duration::from_secs(10)
    });
    let finished = running.finish();
    assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""));
}
