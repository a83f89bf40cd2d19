//! `sprag lock` on a terminal: who is in the foreground, and what the keyboard's signals do. The shell
//! is `sh`, with job control (`set -m`) where a person would have it.
#![cfg(target_os = "linux")]

mod lock {
    pub(crate) mod pty;
    pub(crate) mod world;
}

use std::process::Command;

use lock::pty::{CTRL_C, CTRL_Z, Session};
use lock::world::{World, has_ended, number, state, until};

/// A session of `sh` that runs a script in which `LOCK` stands for `sprag --at URL lock`.
fn session(world: &World, script: &str) -> Session {
    let lock = format!("{} --at {} lock", env!("CARGO_BIN_EXE_sprag"), world.url());
    Session::start(Command::new("sh").args(["-c", &script.replace("LOCK", &lock)]))
}

/// Says which process group it is in, and which is in the terminal's foreground.
const WHERE: &str = r#"sed "s/.*) //" /proc/self/stat | cut -d" " -f3,6"#;

#[test]
fn a_command_alone_on_the_terminal_is_in_its_foreground() {
    let world = World::new();
    let mut session = session(
        &world,
        &format!(
            "set -m; LOCK front -- sh -c '{WHERE}; read line; echo got $line'; echo code $?; read line; echo back $line"
        ),
    );
    let groups = session.expect("\n");
    let (own, foreground) = groups.trim().split_once(' ').expect("two numbers");
    assert_eq!(own, foreground);
    session.write("typed\n");
    session.expect("got typed");
    session.expect("code 0");
    session.write("typed\n");
    session.expect("back typed");
    assert_eq!(session.code(), Some(0));
}

#[test]
fn a_line_of_a_script_shares_the_keyboards_signals_with_the_script() {
    let world = World::new();
    let command =
        r#"trap "echo inner; kill \$!; exit 4" INT; tail -f /dev/null & echo ready; wait"#;
    let mut session = session(
        &world,
        &format!("trap 'echo outer' INT; LOCK script -- sh -c '{command}'; echo code $?"),
    );
    session.expect("ready");
    session.write(CTRL_C);
    session.expect("inner");
    session.expect("outer");
    session.expect("code 4");
    assert_eq!(session.code(), Some(0));
}

#[test]
fn a_line_of_a_script_gets_the_terminal_when_it_reads_and_the_script_has_it_back() {
    let world = World::new();
    let mut session = session(
        &world,
        "LOCK reads -- sh -c 'echo ready; read line; echo inner $line'; read line; echo outer $line",
    );
    session.expect("ready");
    session.write("one\n");
    session.expect("inner one");
    session.write("two\n");
    session.expect("outer two");
    assert_eq!(session.code(), Some(0));
}

#[test]
fn a_pipelines_other_members_keep_the_terminal() {
    let world = World::new();
    let mut session = session(
        &world,
        "set -m; LOCK pipe -- sh -c 'echo piped; exec tail -f /dev/null' | \
         sh -c 'read line; echo $line; read key </dev/tty; trap \"\" INT; echo key $key; read more; echo end'; echo over",
    );
    session.expect("piped");
    session.write("q\n");
    session.expect("key q");
    session.write(CTRL_C);
    // The interrupt came through to the command, whose end is the pipe's end.
    session.expect("end");
    session.expect("over");
    assert!(world.is_free("pipe"));
}

#[test]
fn the_keyboards_interrupt_ends_the_command_and_the_loop_around_it() {
    let world = World::new();
    // The shell goes by how its commands end, and this one was interrupted: it ends its loop, and
    // itself likewise.
    let script = "set -m; while :; do LOCK keys -- sh -c 'echo ready; read line'; done";
    let mut looping = session(&world, script);
    looping.expect("ready");
    looping.write(CTRL_C);
    assert_eq!(looping.code(), None);

    // As the leader itself, to see how sprag ends: by the signal, not by a code.
    let mut alone =
        Session::start(
            world
                .lock()
                .args(["keys", "--", "sh", "-c", "echo ready; read line"]),
        );
    alone.expect("ready");
    alone.write(CTRL_C);
    assert_eq!(alone.code(), None);
    assert!(world.is_free("keys"));
}

#[test]
fn a_stopped_command_stops_sprag_and_both_are_continued_in_the_foreground() {
    let world = World::new();
    let mut session = session(
        &world,
        "set -m; LOCK job -- sh -c 'echo at $$; read line; echo got $line'; echo stopped $?; \
         read line; fg; echo code $?",
    );
    session.expect("at ");
    let command: i32 = number(&session.expect("\n"));
    session.write(CTRL_Z);
    // 128 and the signal that stops.
    session.expect("stopped 14");
    assert_eq!(state(command), Some('T'));
    assert!(!world.is_free("job"));
    session.write("go\n");
    session.write("typed\n");
    session.expect("got typed");
    session.expect("code 0");
    assert_eq!(session.code(), Some(0));
    assert!(world.is_free("job"));
}

#[test]
fn a_background_job_that_reads_the_terminal_stops_until_it_is_in_the_foreground() {
    let world = World::new();
    let mut session = session(
        &world,
        "set -m; LOCK job -- sh -c 'echo at $$; read line; echo got $line' & read line; fg; echo code $?",
    );
    session.expect("at ");
    let command: i32 = number(&session.expect("\n"));
    until("it is stopped", || state(command) == Some('T'));
    session.write("go\n");
    session.write("typed\n");
    session.expect("got typed");
    session.expect("code 0");
    assert_eq!(session.code(), Some(0));
}

#[test]
fn a_job_that_was_stopped_for_longer_than_its_lease_is_ended_and_not_continued() {
    let world = World::new();
    let mut session = session(
        &world,
        "set -m; LOCK --ttl 6s job -- sh -c 'echo at $$; read line; echo got $line'; echo stopped $?; \
         read line; fg; echo code $?; read line; echo back $line",
    );
    session.expect("at ");
    let command: i32 = number(&session.expect("\n"));
    session.write(CTRL_Z);
    session.expect("stopped 14");
    let space = world.space();
    let hold = space
        .lock("job")
        .and_then(|lock| lock.acquire())
        .expect("the space works");
    session.write("go\ntyped\n");
    let before = session.expect("code 123");
    assert!(
        before.contains("was lost") && !before.contains("got typed"),
        "{before}"
    );
    assert!(has_ended(command));
    hold.release().expect("still ours");
    session.expect("back typed");
    assert_eq!(session.code(), Some(0));
}

#[test]
fn a_sprag_that_nobody_could_continue_does_not_stop() {
    let world = World::new();
    // The leader of the session: no shell is there to say fg.
    let script = "trap 'echo continued; kill $!' CONT; tail -f /dev/null & echo ready; wait; read line; echo got $line";
    let mut session = Session::start(world.lock().args(["alone", "--", "sh", "-c", script]));
    session.expect("ready");
    session.write(CTRL_Z);
    session.expect("continued");
    session.write("typed\n");
    session.expect("got typed");
    assert_eq!(session.code(), Some(0));
}

#[test]
fn a_command_that_cannot_be_run_gives_the_terminal_back() {
    let world = World::new();
    // In the background sprag could not write: it would be stopped, or refused.
    let mut session = session(&world, "stty tostop; exec LOCK none -- /no/such/program");
    session.expect("cannot find '/no/such/program'");
    assert_eq!(session.code(), Some(127));
}
