//! `sprag lock` between its caller and its command: signals, stops, deaths.
#![cfg(target_os = "linux")]

mod lock {
    pub(crate) mod world;
}

use std::os::unix::process::CommandExt;
use std::process::Command;

use lock::world::{Running, World, has_ended, number, send, state, until};

/// A command that says its process id, then lasts until its input ends.
const LAST: &str = "ulimit -c 0; echo $$; exec cat";

#[test]
fn each_signal_that_can_be_is_passed_on() {
    let world = World::new();
    // Those that end a process which does nothing about them.
    let deadly = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGABRT,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGALRM,
        libc::SIGTERM,
        libc::SIGSTKFLT,
        libc::SIGXCPU,
        libc::SIGVTALRM,
        libc::SIGPROF,
        libc::SIGIO,
        libc::SIGPWR,
    ];
    for signal in deadly
        .into_iter()
        .chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
    {
        let running = world.start(&["signals"], LAST);
        running.line();
        running.signal(signal);
        let finished = running.finish_with_open_input();
        assert_eq!(finished.code, Some(128 + signal), "signal {signal}");
        assert_eq!(finished.err, "", "signal {signal}");
    }
    for signal in [libc::SIGWINCH, libc::SIGURG] {
        let script =
            format!("trap 'kill $!; exit 9' {signal}; tail -f /dev/null & echo ready; wait");
        let running = world.start(&["signals"], &script);
        running.line();
        running.signal(signal);
        assert_eq!(
            running.finish_with_open_input().code,
            Some(9),
            "signal {signal}"
        );
    }
}

#[test]
fn the_whole_group_of_the_command_gets_the_signal() {
    let world = World::new();
    let running = world.start(&["group"], "tail -f /dev/null & echo $!; wait");
    let in_background: i32 = number(&running.line());
    running.signal(libc::SIGTERM);
    assert_eq!(
        running.finish_with_open_input().code,
        Some(128 + libc::SIGTERM)
    );
    until("what the shell started is gone too", || {
        has_ended(in_background)
    });
}

#[test]
fn a_command_that_handles_a_signal_goes_on_under_the_lock() {
    let world = World::new();
    let script = "trap '' HUP; tail -f /dev/null & trap 'echo again' HUP; echo ready; while :; do wait; done";
    let running = world.start(&["handled"], script);
    running.line();
    for _ in 0..2 {
        running.signal(libc::SIGHUP);
        assert_eq!(running.line(), "again");
        assert!(!world.is_free("handled"));
    }
    running.signal(libc::SIGTERM);
    assert_eq!(
        running.finish_with_open_input().code,
        Some(128 + libc::SIGTERM)
    );
}

#[test]
fn without_a_terminal_a_stopped_command_keeps_the_lock_until_it_is_continued() {
    let world = World::new();
    for stop in [libc::SIGTSTP, libc::SIGSTOP] {
        let running = world.start(&["--ttl", "9s", "stopped"], LAST);
        let command: i32 = number(&running.line());
        if stop == libc::SIGSTOP {
            send(command, stop);
        } else {
            running.signal(stop);
        }
        until("the command is stopped", || state(command) == Some('T'));
        // Renewals go on: what is left of the lease grows.
        let space = world.space();
        let left = || {
            let locks = space.inspect("stopped").expect("the space can be read");
            locks.first().expect("it is there").lease_left
        };
        let mut least = left();
        until("the lease is renewed", || {
            let is_renewed = left() > least;
            least = least.min(left());
            is_renewed
        });
        assert_eq!(state(command), Some('T'));
        running.signal(libc::SIGCONT);
        until("the command goes on", || state(command) != Some('T'));
        assert_eq!(running.finish().code, Some(0));
    }
}

#[test]
fn the_command_has_the_dispositions_and_the_mask_that_we_were_given() {
    let world = World::new();
    let bit = |signal: i32| 1_u64 << (signal - 1);
    let cases = [
        (0, 0),
        (
            bit(libc::SIGHUP) | bit(libc::SIGCHLD) | bit(libc::SIGTSTP),
            0,
        ),
        (
            bit(libc::SIGINT),
            bit(libc::SIGUSR1) | bit(libc::SIGRTMIN()),
        ),
    ];
    let show = ["cat", "/proc/self/status"];
    for (ignored, blocked) in cases {
        let set_up = move || {
            for signal in 1..=64 {
                if ignored & bit(signal) != 0 {
                    // SAFETY: async-signal-safe.
                    unsafe { libc::signal(signal, libc::SIG_IGN) };
                }
            }
            // SAFETY: all zeros is the empty set here; the calls are async-signal-safe.
            unsafe {
                let mut set = std::mem::zeroed();
                libc::sigemptyset(&raw mut set);
                for signal in 1..=64 {
                    if blocked & bit(signal) != 0 {
                        libc::sigaddset(&raw mut set, signal);
                    }
                }
                libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
            }
            Ok(())
        };
        let signals_of = |command: &mut Command| {
            // SAFETY: the closure only makes calls that are async-signal-safe.
            unsafe { command.pre_exec(set_up) };
            let status = Running::start(command).finish().out;
            let fields = status
                .lines()
                .filter(|line| line.starts_with("Sig") && !line.starts_with("SigQ"));
            fields.map(str::to_owned).collect::<Vec<_>>()
        };
        let plain = signals_of(Command::new(show[0]).args(&show[1..]));
        assert_eq!(
            plain.len(),
            4,
            "pending, blocked, ignored, caught: {plain:?}"
        );
        let locked = signals_of(world.lock().args(["given", "--"]).args(show));
        assert_eq!(locked, plain);
    }
}

#[test]
fn a_command_whose_sprag_is_killed_is_killed_and_the_lock_passes_on() {
    let world = World::new();
    let running = world.start(
        &["--ttl", "1h", "orphan"],
        "trap '' TERM HUP INT; echo $$; while read x; do :; done",
    );
    let command: i32 = number(&running.line());
    running.signal(libc::SIGKILL);
    // Property 15, and the lease has an hour to go.
    let finished = world.run(["--wait", "2m", "orphan", "--", "echo", "mine"]);
    assert_eq!((finished.out.as_str(), finished.code), ("mine\n", Some(0)));
    until("the command is gone", || has_ended(command));
    assert_eq!(running.finish_with_open_input().code, None);
}

#[test]
fn a_wait_that_is_interrupted_leaves_the_queue() {
    let world = World::new();
    let mut holder = world.start(&["queue"], "echo in; read go");
    holder.line();
    let space = world.space();
    let waiters = || {
        let locks = space.inspect("queue").expect("the space can be read");
        let lock = locks.first().expect("it is held");
        (lock.waiters, lock.waiters_dead)
    };
    for (signal, args) in [
        (libc::SIGINT, &["queue"][..]),
        (libc::SIGTERM, &["--wait", "1h", "queue"]),
        (libc::SIGHUP, &["queue"]),
    ] {
        let waiter = world.start(args, "echo never");
        until("it waits", || waiters() == (1, 0));
        waiter.signal(signal);
        let finished = waiter.finish_with_open_input();
        assert_eq!((finished.out.as_str(), finished.err.as_str()), ("", ""));
        assert_eq!((finished.code, finished.signal), (None, Some(signal)));
        assert_eq!(waiters(), (0, 0), "signal {signal}");
    }
    let next = world.start(&["queue"], "echo mine");
    holder.write("go\n");
    assert_eq!(next.line(), "mine");
    assert_eq!(next.finish().code, Some(0));
    assert_eq!(holder.finish().code, Some(0));
}

#[test]
fn commands_may_nest_under_several_locks() {
    let world = World::new();
    let inner = format!(
        "{sprag} --at {url} lock inner -- sh -c 'echo $SPRAG_KEY; echo $$; exec cat'; echo code $?",
        sprag = env!("CARGO_BIN_EXE_sprag"),
        url = world.url()
    );
    let running = world.start(&["outer"], &format!("trap : INT; {inner}"));
    assert_eq!(running.line(), "inner");
    let innermost: i32 = number(&running.line());
    assert!(!world.is_free("outer") && !world.is_free("inner"));
    running.signal(libc::SIGINT);
    assert_eq!(running.line(), "code 130");
    until("the innermost is gone", || has_ended(innermost));
    assert_eq!(running.finish_with_open_input().code, Some(0));
    assert!(world.is_free("outer") && world.is_free("inner"));
}
