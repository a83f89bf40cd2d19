//! Creating and opening: whole or not at all, and only what is a region.

use crate::support::*;
use sprag_core::key::Hasher;
use sprag_core::region::Caps;
use sprag_core::region::file::{self, OpenOptions};
use sprag_core::{Error, Result};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// Opens, and gives the error's name.
fn outcome(path: &Path) -> &'static str {
    name_of(&try_open(path, &OPTIONS).map(drop))
}

fn name_of(result: &Result<()>) -> &'static str {
    match result {
        Ok(()) => "ok",
        Err(Error::NotARegion { .. }) => "not a region",
        Err(Error::Incompatible { .. }) => "incompatible",
        Err(Error::Damaged { .. }) => "damaged",
        Err(Error::Permission { .. }) => "permission",
        Err(Error::NotFound { .. }) => "not found",
        Err(Error::OutOfRange { .. }) => "out of range",
        Err(Error::Io { .. }) => "io",
        Err(error) => panic!("unexpected: {error}"),
    }
}

#[test]
fn without_create_a_missing_region_is_not_found() {
    let (_directory, path) = place();
    let options = OpenOptions {
        create: false,
        ..OPTIONS
    };
    assert_eq!(name_of(&try_open(&path, &options).map(drop)), "not found");
    assert!(matches!(file::probe(&path), Err(Error::NotFound { .. })));
    assert!(matches!(
        file::remove(&path, true, BIRTH),
        Err(Error::NotFound { .. })
    ));
    assert!(!path.exists());
}

#[test]
fn threads_that_create_at_once_open_one_region() {
    for _ in 0..20 {
        let (directory, path) = place();
        let engines = at_once(8, |i| {
            let engine = open(&path);
            let me = session(&engine);
            assert!(acquire(&engine, me, &[i], 0).is_some());
            (engine, me)
        });
        // All locks are there for each, so all opened the same region.
        for (engine, me) in &engines {
            for i in 0..8 {
                assert!(acquire(engine, *me, &[i], 0).is_none());
            }
        }
        assert_eq!(names_in(directory.path()), ["region"]);
    }
}

#[test]
fn a_process_killed_at_any_system_call_of_creating_leaves_all_or_nothing() {
    let (directory, path) = place();
    let (mut whole, mut nothing) = (0, 0);
    kill_at_each_system_call(
        || {
            file::open(&path, &OPTIONS).unwrap();
        },
        |_| {
            if path.exists() {
                assert_eq!(names_in(directory.path()), ["region"]);
                let options = OpenOptions {
                    create: false,
                    ..OPTIONS
                };
                let engine = try_open(&path, &options).unwrap();
                let me = session(&engine);
                assert!(acquire(&engine, me, b"a", 0).is_some());
                fs::remove_file(&path).unwrap();
                whole += 1;
            } else {
                assert!(names_in(directory.path()).is_empty());
                nothing += 1;
            }
        },
    );
    assert!(nothing > 10 && whole > 2, "{nothing} and {whole}");
}

#[test]
fn the_mode_does_not_depend_on_the_umask() {
    for (umask, group_shared, mode) in [
        (0o777, false, 0o600),
        (0o000, false, 0o600),
        (0o777, true, 0o660),
        (0o000, true, 0o660),
    ] {
        let (_directory, path) = place();
        let code = in_child(|| {
            // SAFETY: takes no pointers; only this child's mask changes.
            unsafe { libc::umask(umask) };
            let options = OpenOptions {
                group_shared,
                ..OPTIONS
            };
            file::open(&path, &options).unwrap();
            0
        });
        assert_eq!(code, Some(0));
        let found = fs::metadata(&path).unwrap().mode() & 0o7777;
        assert_eq!(found, mode, "umask {umask:o}");
        assert_eq!(file::probe(&path).unwrap().group_shared, group_shared);
    }
}

#[test]
fn a_region_that_others_can_reach_is_refused() {
    let (_directory, path) = place();
    open(&path);
    for (mode, alone, with_group) in [
        (0o600, "ok", "ok"),
        (0o660, "permission", "ok"),
        (0o620, "permission", "ok"),
        (0o640, "permission", "ok"),
        (0o604, "permission", "permission"),
        (0o602, "permission", "permission"),
        (0o601, "permission", "permission"),
        (0o666, "permission", "permission"),
    ] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        for (group_shared, expected) in [(false, alone), (true, with_group)] {
            let options = OpenOptions {
                group_shared,
                ..OPTIONS
            };
            let found = name_of(&try_open(&path, &options).map(drop));
            assert_eq!(found, expected, "{mode:o}, group shared: {group_shared}");
        }
    }
}

#[test]
fn a_region_of_another_user_is_refused_unless_its_directory_is_the_groups() {
    let (directory, path) = place();
    // SAFETY: takes no pointers.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: giving files away needs root");
        return;
    }
    let shared = OpenOptions {
        group_shared: true,
        ..OPTIONS
    };
    try_open(&path, &shared).unwrap();
    std::os::unix::fs::chown(&path, Some(4_321), Some(8_765)).unwrap();
    let opened = |options| name_of(&try_open(&path, options).map(drop));
    assert_eq!(opened(&shared), "permission", "another group's directory");
    std::os::unix::fs::chown(directory.path(), None, Some(8_765)).unwrap();
    assert_eq!(opened(&shared), "ok");
    assert_eq!(opened(&OPTIONS), "permission");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o1777)).unwrap();
    assert_eq!(opened(&shared), "permission", "everybody's directory");
}

#[test]
fn what_is_not_a_file_is_refused() {
    let (directory, path) = place();
    open(&path);
    let link = directory.path().join("link");
    symlink(&path, &link).unwrap();
    assert_eq!(outcome(&link), "permission");
    assert_eq!(outcome(directory.path()), "not a region");
    assert_eq!(outcome(Path::new("/")), "not a region");
    assert_eq!(outcome(&directory.path().join("..")), "not a region");
    assert_eq!(outcome(Path::new("/dev/null")), "not a region");
    let pipe = directory.path().join("pipe");
    let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: the name is NUL-terminated and outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    assert_eq!(outcome(&pipe), "not a region");
    let socket = directory.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert_eq!(outcome(&socket), "not a region");
    assert_eq!(outcome(&path), "ok");
}

#[test]
fn caps_out_of_bounds_create_nothing() {
    let (_directory, path) = place();
    for caps in [
        Caps { objects: 0, ..CAPS },
        Caps {
            sessions: 4_096,
            ..CAPS
        },
        Caps {
            waiters: u32::MAX,
            ..CAPS
        },
    ] {
        let options = OpenOptions { caps, ..OPTIONS };
        let result = try_open(&path, &options).map(drop);
        assert_eq!(name_of(&result), "out of range");
        assert!(!path.exists());
    }
}

#[test]
fn an_existing_region_keeps_its_caps_seed_and_time() {
    let (_directory, path) = place();
    open(&path);
    let mut options = OPTIONS;
    options.caps.objects = 99;
    options.birth.hash_seed = 99;
    options.birth.unix_ns += 99;
    options.birth.boot_ns += 99;
    let engine = try_open(&path, &options).unwrap();
    assert_eq!(engine.region().caps(), CAPS);
    assert_eq!(engine.region().base_unix_ns(), UNIX_NS);
    assert_eq!(engine.region().base_boot_ns(), 1_000 * SECOND.cast_signed());
    let info = file::probe(&path).unwrap();
    assert_eq!((info.caps, info.sessions), (CAPS, 0));
    assert_eq!(info.created_unix_ns, UNIX_NS);
    assert_eq!(info.len_bytes, engine.region().len_bytes());
    let me = session(&engine);
    assert_eq!(file::probe(&path).unwrap().sessions, 1);
    let other = open(&path);
    session(&other);
    assert_eq!(file::probe(&path).unwrap().sessions, 2);
    engine.close_session(me);
    assert_eq!(file::probe(&path).unwrap().sessions, 1);
    drop(other);
    assert_eq!(file::probe(&path).unwrap().sessions, 0);
}

#[test]
fn files_that_are_no_region_give_a_typed_error() {
    let (_directory, path) = place();
    open(&path);
    let good = fs::read(&path).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut noise = vec![0; good.len()];
    random.fill(&mut noise);
    let mut magic_then_noise = noise.clone();
    magic_then_noise[..8].copy_from_slice(&good[..8]);
    let mut version_then_noise = noise.clone();
    version_then_noise[..16].copy_from_slice(&good[..16]);
    let with_end = |len: usize| {
        let mut bytes = good.clone();
        bytes.resize(len, 0);
        bytes
    };
    for (what, bytes, expected) in [
        ("empty", vec![], "not a region"),
        ("a byte", b"S".to_vec(), "not a region"),
        ("a text", b"hello\n".repeat(1_000), "not a region"),
        ("zeros", vec![0; good.len()], "not a region"),
        ("noise", noise, "not a region"),
        ("magic, then noise", magic_then_noise, "incompatible"),
        ("version, then noise", version_then_noise, "damaged"),
        ("half a header", good[..128].to_vec(), "not a region"),
        ("a header", good[..256].to_vec(), "damaged"),
        ("a header page", good[..4_096].to_vec(), "damaged"),
        ("a byte short", with_end(good.len() - 1), "damaged"),
        ("a page short", with_end(good.len() - 4_096), "damaged"),
        ("a byte long", with_end(good.len() + 1), "damaged"),
        ("a page long", with_end(good.len() + 4_096), "damaged"),
        ("itself", good.clone(), "ok"),
    ] {
        fs::write(&path, &bytes).unwrap();
        assert_eq!(outcome(&path), expected, "{what}");
        assert_eq!(
            fs::read(&path).unwrap().len(),
            bytes.len(),
            "{what}: the file was changed"
        );
    }
}

#[test]
fn a_flipped_bit_in_what_never_changes_is_noticed() {
    let (_directory, path) = place();
    open(&path);
    let good = fs::read(&path).unwrap();
    for at in 0..CHECKSUM {
        for bit in 0..8 {
            scribble(&path, at as u64, &[good[at] ^ 1 << bit]);
            let expected = match at {
                0..8 => "not a region",
                8..16 => "incompatible",
                _ => "damaged",
            };
            assert_eq!(outcome(&path), expected, "byte {at}, bit {bit}");
        }
        scribble(&path, at as u64, &good[at..=at]);
    }
    assert_eq!(outcome(&path), "ok");
}

#[test]
fn a_flipped_byte_in_the_rest_of_the_header_page_breaks_nothing() {
    let (_directory, path) = place();
    let engine = open(&path);
    drop(engine);
    let good = fs::read(&path).unwrap();
    for at in CHECKSUM..4_096 {
        scribble(&path, at as u64, &[!good[at]]);
        // The boot id and the clock's words may be anything; then it opens, and works.
        if let Ok(engine) = try_open(&path, &OPTIONS) {
            let me = session(&engine);
            let name = engine.lock_name(b"a").unwrap();
            let _ = engine.try_acquire(&name, me, SECOND, SECOND);
        }
        scribble(&path, 0, &good);
    }
}

/// A header whose checksum is right, and one word is not.
fn with_word(good: &[u8], at: usize, value: u64) -> Vec<u8> {
    let mut bytes = good.to_vec();
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    let checksum = Hasher::new(0).hash(&bytes[..CHECKSUM]);
    bytes[CHECKSUM..CHECKSUM + 8].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn a_header_of_a_release_to_come_is_incompatible_and_one_out_of_bounds_damaged() {
    let (_directory, path) = place();
    open(&path);
    let good = fs::read(&path).unwrap();
    for (what, at, value, expected) in [
        ("the next version", 8, 4, "incompatible"),
        ("the version before", 8, 2, "incompatible"),
        ("version 0", 8, 0, "incompatible"),
        ("a compatible feature", 16, 1, "ok"),
        ("all compatible features", 16, u64::from(u32::MAX), "ok"),
        ("an incompatible feature", 16, 1 << 32, "incompatible"),
        ("another hash", 88, 2, "incompatible"),
        ("another seed", 80, 99, "ok"),
        ("no objects", 24, 0, "damaged"),
        ("too many objects", 24, u64::MAX, "damaged"),
        ("objects past 32 bits", 24, 1 << 32 | 64, "damaged"),
        ("all objects that there can be", 24, 1 << 26, "damaged"),
        ("more limiter keys", 32, 65_536, "damaged"),
        ("no sessions", 40, 0, "damaged"),
        ("too many sessions", 40, 4_096, "damaged"),
        ("no waiters", 48, 0, "damaged"),
        ("no chunks", 56, 0, "damaged"),
        ("more chunks", 56, 65_536, "damaged"),
        ("no permits", 64, 0, "damaged"),
        ("too many permits", 64, 65_537, "damaged"),
        ("no joint keys", 72, 0, "damaged"),
        ("more joint keys", 72, 65_536, "damaged"),
    ] {
        fs::write(&path, with_word(&good, at, value)).unwrap();
        assert_eq!(outcome(&path), expected, "{what}");
    }
}

#[test]
fn a_relative_path_stays_the_same_file_when_the_working_directory_changes() {
    let (directory, path) = place();
    let elsewhere = tempfile::tempdir().unwrap();
    let code = in_child(|| {
        std::env::set_current_dir(directory.path()).unwrap();
        let engine = open(Path::new("region"));
        std::env::set_current_dir(elsewhere.path()).unwrap();
        engine.region().check_in_place().unwrap();
        session(&engine);
        0
    });
    assert_eq!(code, Some(0));
    assert!(path.exists());
}

#[test]
fn no_descriptor_takes_the_place_of_a_closed_standard_one() {
    let (_directory, path) = place();
    let code = in_child(|| {
        for fd in 0..3 {
            // SAFETY: closes this child's own descriptors.
            unsafe { libc::close(fd) };
        }
        for _ in 0..2 {
            let engine = open(&path);
            if engine.session_fd().is_none_or(|fd| fd < 3) {
                return 1;
            }
            for fd in 0..3 {
                // SAFETY: takes no pointers.
                if unsafe { libc::fcntl(fd, libc::F_GETFD) } != -1 {
                    return 2;
                }
            }
        }
        0
    });
    assert_eq!(code, Some(0));
}

#[test]
fn every_descriptor_is_closed_when_another_program_is_run() {
    let (_directory, path) = place();
    let engine = open(&path);
    session(&engine);
    let inode = fs::metadata(&path).unwrap().ino();
    let mut found = 0;
    for fd in 3..256 {
        let link = format!("/proc/self/fd/{fd}");
        if fs::metadata(link).is_ok_and(|metadata| metadata.ino() == inode) {
            // SAFETY: takes no pointers.
            let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
            assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
            found += 1;
        }
    }
    assert_eq!(found, 1, "the session's; what is mapped needs none");
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_not_the_end() {
    let (directory, path) = place();
    let code = in_child(|| {
        let limit = libc::rlimit {
            rlim_cur: 4_096,
            rlim_max: 4_096,
        };
        // SAFETY: `limit` outlives the call; only this child is limited.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
        i32::from(!matches!(
            file::open(&path, &OPTIONS),
            Err(Error::NoSpace { .. })
        ))
    });
    assert_eq!(code, Some(0));
    assert!(names_in(directory.path()).is_empty());
}

#[test]
fn an_unwritable_directory_is_told_from_a_missing_one() {
    let (directory, path) = place();
    assert_eq!(outcome(&directory.path().join("no/region")), "io");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o555)).unwrap();
    let code = in_child(|| {
        // SAFETY: takes no pointers. Root may write anywhere, so this child is root no more; anyone
        // else already is not, and the call fails.
        unsafe { libc::seteuid(4_321) };
        i32::from(outcome(&path) != "permission")
    });
    assert_eq!(code, Some(0));
}

#[test]
fn a_new_region_takes_little_of_its_length() {
    let (_directory, path) = place();
    let options = OpenOptions {
        caps: Caps::default(),
        ..OPTIONS
    };
    let engine = try_open(&path, &options).unwrap();
    let info = file::probe(&path).unwrap();
    assert!(info.len_bytes > 30 << 20);
    assert!(info.allocated_bytes < 3 << 19, "{}", info.allocated_bytes);
    assert!(info.allocated_bytes >= engine.region().allocated_bytes());
    let me = session(&engine);
    acquire(&engine, me, b"a", 0).unwrap();
    let grown = File::open(&path).unwrap().metadata().unwrap().blocks() * 512;
    assert!(grown > info.allocated_bytes);
    assert!(grown >= engine.region().allocated_bytes());
}
