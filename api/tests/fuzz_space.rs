//! URLs, names of regions and values of `$SPRAG_DIR`, spoilt anywhere: each opens the space that it
//! names, or is refused for what is wrong with it, and nothing is ever created.
#![cfg(target_os = "linux")]

#[path = "../../core/tests/fuzz/mod.rs"]
mod fuzz;

use fuzz::{Bytes, Campaign};
use sprag::region::{self, RegionName};
use sprag::{Caps, EngineError, Error, Space};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use tempfile::TempDir;

const CAPS: Caps = Caps {
    objects: 8,
    limiter_keys: 8,
    joint_keys: 8,
    sessions: 2,
    waiters: 2,
    permits: 2,
    key_chunks: 8,
};

/// A directory with one region in it, which is also the directory that this process works in.
fn world() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::env::set_current_dir(&directory).unwrap();
    let url = format!("shm:{}/orders.sprag", directory.path().display());
    Space::builder().caps(CAPS).open(&url).unwrap();
    directory
}

fn set_directory(value: impl Into<OsString>) {
    // SAFETY: the child process that tries inputs runs this one test, and its other thread, which only
    // watches the time, reads no environment.
    unsafe { std::env::set_var("SPRAG_DIR", value.into()) };
}

fn names_in(directory: &Path) -> Vec<OsString> {
    std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect()
}

fn open(url: &str) -> sprag::Result<Space> {
    Space::builder().caps(CAPS).create(false).open(url)
}

#[test]
fn a_text_opens_the_space_that_it_names_or_is_refused() {
    let directory = world();
    set_directory(directory.path());
    let long = format!("shm:{}", "n".repeat(200));
    let deep = format!("shm:/{}", "d/".repeat(300));
    Campaign {
        test: "a_text_opens_the_space_that_it_names_or_is_refused",
        corpus: Bytes::all(&[
            b"mem:",
            b"shm:orders",
            b"shm:a.b_c-D9",
            b"shm:/proc/self/cwd/orders.sprag",
            b"shm:/sprag-is-not-here/a/b.region",
            b"quic://a:1,b:2",
            long.as_bytes(),
            deep.as_bytes(),
        ]),
        regressions: Bytes::all(&[
            b"",
            b":",
            b"shm:",
            b"shm:/",
            b"shm://",
            b"shm:/a/..",
            b"shm:/a/.",
            b"shm:/a\0b",
            b"shm:/proc/self/cwd",
            b"shm:/proc/self/cwd/orders.sprag/x",
            b"mem::",
        ]),
        dictionary: &[
            b"mem:",
            b"shm:",
            b"shm:/",
            b"quic:",
            b":",
            b"/",
            b".",
            b"..",
            b"/..",
            b"/.",
            b"//",
            b"\0",
            b".sprag",
            b"orders",
            b"/proc/self/cwd/",
            b"%00",
            b"?",
            b"#",
            b"\xc3\xa9",
            b"\n",
            b" ",
            b"~",
        ],
        inputs: 3_000,
        soak_times: 100,
        batch: 1,
    }
    .run(|Bytes(bytes)| {
        let text = String::from_utf8_lossy(bytes);
        let end = try_url(&text);
        assert_eq!(names_in(directory.path()), ["orders.sprag"]);
        let depth = text.matches('/').count().min(4);
        (end, depth, magnitude(text.len()))
    });
}

/// A length, roughly.
fn magnitude(len: usize) -> u32 {
    len.checked_ilog2().map_or(0, |bits| bits + 1)
}

/// How it ended, which is as the manual has it.
fn try_url(text: &str) -> String {
    let end = match open(text) {
        Ok(_) => "opened".to_owned(),
        Err(error) => kind(&error),
    };
    match region::probe(text, false) {
        Ok(info) => assert_eq!((info.caps, &*end), (CAPS, "opened")),
        Err(error) if end == "opened" => assert_eq!((text, &*kind(&error)), ("mem:", "NotHere")),
        Err(error) => assert_eq!(kind(&error), end),
    }
    let expected: &[&str] = match text.split_once(':') {
        Some(("mem", "")) => &["opened"],
        Some(("quic", _)) => &["Unsupported"],
        Some(("shm", path)) if path.starts_with("//") => &["Unsupported"],
        Some(("shm", path)) if path.starts_with('/') => {
            let is_a_file = !path.contains('\0') && !path.ends_with('/');
            let last = path.rsplit('/').find(|part| *part != ".");
            if is_a_file && !matches!(last, None | Some("" | "..")) {
                &[
                    "opened",
                    "NotFound",
                    "NoParent",
                    "Read",
                    "NotARegion",
                    "Permission",
                    "Io",
                    "NotOfThisHost",
                ]
            } else if is_a_file {
                // "/a//." is the directory "/a" in other words.
                &[
                    "BadPath",
                    "NotFound",
                    "NoParent",
                    "Read",
                    "NotARegion",
                    "Io",
                    "NotOfThisHost",
                ]
            } else {
                &["BadPath"]
            }
        }
        Some(("shm", name)) => {
            let parsed = RegionName::parse(name);
            assert_eq!(parsed.is_ok(), is_region_name(name), "{name:?}");
            match parsed {
                Ok(parsed) => {
                    assert_eq!((parsed.as_str(), &*parsed.to_string()), (name, name));
                    assert_eq!(RegionName::of_file(&parsed.file_name()), Some(parsed));
                    if name == "orders" {
                        &["opened"]
                    } else {
                        &["NotFound"]
                    }
                }
                Err(error) => {
                    assert!(!error.to_string().contains(char::is_control), "{error}");
                    &["BadName"]
                }
            }
        }
        _ => &["UnknownUrl"],
    };
    assert!(
        expected.contains(&&*end),
        "{text:?}: {end}, not {expected:?}"
    );
    end
}

/// What may name a region, as the manual has it.
fn is_region_name(name: &str) -> bool {
    let allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    (1..=200).contains(&name.len())
        && name.chars().all(|char| allowed.contains(char))
        && !name.starts_with('.')
}

/// The variant.
fn kind(error: &Error) -> String {
    assert!(!error.to_string().is_empty());
    let debug = match error {
        Error::Place(error) => {
            assert!(!error.to_string().contains(char::is_control), "{error}");
            format!("{error:?}")
        }
        Error::Engine(error) => format!("{error:?}"),
        other => format!("{other:?}"),
    };
    debug.split([' ', '(', '{']).next().unwrap().to_owned()
}

#[test]
fn a_value_of_the_variable_is_a_directory_or_is_refused() {
    let directory = world();
    Campaign {
        test: "a_value_of_the_variable_is_a_directory_or_is_refused",
        corpus: Bytes::all(&[
            b"/proc/self/cwd/.",
            b"/proc/self/cwd",
            b"/proc/self/cwd/orders.sprag",
            b"/sprag-is-not-here/a",
            b"relative/path",
            b"/",
        ]),
        regressions: Bytes::all(&[
            b"",
            b".",
            b"\xff",
            b"/\xff",
            b"/proc/self/cwd/./\n",
            &[b'/'; 5_000],
        ]),
        dictionary: &[
            b"/",
            b".",
            b"..",
            b"//",
            b"/proc/self/cwd/",
            b"\xff",
            b"\xc3\xa9",
            b"\n",
            b"shm:",
            b"~",
        ],
        inputs: 3_000,
        soak_times: 100,
        batch: 1,
    }
    .run(|Bytes(bytes)| {
        // A variable can't have a zero byte.
        let value: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
        set_directory(OsString::from_vec(value.clone()));
        let end = try_directory(&value);
        assert_eq!(names_in(directory.path()), ["orders.sprag"]);
        (end, magnitude(value.len()))
    });
}

/// How opening and listing ended.
fn try_directory(value: &[u8]) -> [String; 3] {
    let is_default = value.is_empty();
    let is_absolute = is_default || value.starts_with(b"/");
    let open = |url: &str| match open(url) {
        Ok(_) => "opened".to_owned(),
        // The file's name can be too long where the directory's is not.
        Err(
            error @ (Error::Place(_)
            | Error::Engine(EngineError::NotFound { .. } | EngineError::Io { .. })),
        ) => kind(&error),
        Err(error) => panic!("{error}"),
    };
    let [there, not_there] = ["shm:orders", "shm:sprag-is-not-here"].map(open);
    let listed = match region::list() {
        Ok(regions) => {
            let has_orders = regions
                .iter()
                .any(|region| region.name.as_str() == "orders");
            assert!(there != "opened" || has_orders);
            assert!(is_absolute);
            regions.len().min(2).to_string()
        }
        Err(error) => kind(&error),
    };
    if is_default {
        return [not_there, String::new(), String::new()];
    }
    assert_ne!(not_there, "opened");
    let is_refused = |end: &str| end == "DirectoryNotAbsolute";
    assert_eq!(is_refused(&there), !is_absolute, "{there}");
    assert_eq!(is_refused(&not_there), !is_absolute, "{not_there}");
    assert_eq!(is_refused(&listed), !is_absolute, "{listed}");
    [there, not_there, listed]
}
