//! A full file system: an error that says so, never a signal; and on it goes once there is room.

use crate::support::*;
use sprag_core::Error;
use sprag_core::lock::Attempt;
use sprag_core::region::Caps;
use sprag_core::region::file::{self, OpenOptions};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// On a small file system that nobody else sees: fills it, sees that the region can't grow, makes
/// room, sees that it can.
pub(crate) fn fill(directory: &Path) {
    let caps = Caps {
        objects: 4_096,
        limiter_keys: 4_096,
        key_chunks: 4_096,
        ..CAPS
    };
    let options = OpenOptions { caps, ..OPTIONS };
    let path = directory.join("region");
    let ballast = directory.join("ballast");

    fill_up(&ballast);
    let result = file::open(&path, &options).map(drop);
    assert!(matches!(result, Err(Error::NoSpace { .. })), "{result:?}");
    assert_eq!(names_in(directory), ["ballast"]);

    fs::remove_file(&ballast).unwrap();
    let engine = try_open(&path, &options).unwrap();
    let me = session(&engine);
    acquire(&engine, me, b"first", 0).unwrap();
    fill_up(&ballast);
    let mut refused = 0;
    for i in 0..1_000u32 {
        for name in [i.to_string(), format!("{i:0>48}")] {
            let name = engine.lock_name(name.as_bytes()).unwrap();
            match engine.try_acquire(&name, me, 0, SECOND) {
                Ok(Attempt::Granted(_)) => {}
                Err(Error::NoSpace { .. }) => refused += 1,
                result => panic!("{result:?}"),
            }
        }
    }
    assert!(refused > 0, "the file system was not full");

    fs::remove_file(&ballast).unwrap();
    for i in 0..1_000u32 {
        for name in [i.to_string(), format!("{i:0>48}")] {
            let name = engine.lock_name(name.as_bytes()).unwrap();
            engine.try_acquire(&name, me, 0, SECOND).unwrap();
        }
    }
    assert_eq!(engine.check_region().findings, []);
    say("done");
}

/// Writes a file until nothing fits any more.
fn fill_up(path: &Path) {
    use std::io::Write;
    let mut file = fs::File::create(path).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
}

#[test]
fn a_full_file_system_is_an_error_and_no_signal_and_it_goes_on_once_there_is_room() {
    let (directory, _) = place();
    // In namespaces of its own, so that nobody else sees the mount and it goes with the child.
    let script = r#"mount -t tmpfs -o size=2m tmpfs "$SPRAG_TEST_PATH" && exec "$0" "$@""#;
    let mut reasons = Vec::new();
    for flags in [&["-m"][..], &["-U", "-r", "-m"]] {
        let output = Command::new("unshare")
            .args(flags)
            .args(["sh", "-c", script])
            .arg(std::env::current_exe().unwrap())
            .args(role_arguments())
            .env(ROLE, "fill")
            .env(PATH, directory.path())
            .stdin(Stdio::null())
            .output();
        match output {
            Ok(output) if output.status.success() => {
                let said = String::from_utf8_lossy(&output.stdout);
                assert!(said.contains("role: done"), "{said}");
                return;
            }
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stdout);
                let complained = String::from_utf8_lossy(&output.stderr);
                // The test ran, and failed or was killed.
                assert!(!said.contains("running"), "{said}{complained}");
                reasons.push(complained.into_owned());
            }
            Err(error) => reasons.push(error.to_string()),
        }
    }
    eprintln!("skipped: no file system can be mounted here: {reasons:?}");
}

#[test]
fn a_long_key_that_others_leave_no_room_for_is_decided_by_the_shared_bucket() {
    let (_directory, path) = place();
    // Half of the chunks for each.
    let others = [b'a', b'b'].map(|first| {
        let engine = open(&path);
        let me = session(&engine);
        for len in [200, 201, 202, 203, 204, 205, 60] {
            acquire(&engine, me, &vec![first; len], 0).unwrap();
        }
        engine
    });
    let engine = open(&path);
    let me = session(&engine);
    let limit = "10/h".parse().unwrap();
    let limiter = engine.open_limiter(b"api", limit, false, me, 0).unwrap();
    for key in [[b'k'; 17], [b'l'; 17]] {
        let checked = engine.check(&limiter, &key, 1, me, 0).unwrap();
        assert!(checked.is_overflow);
    }
    drop(others);
}
