//! Files that once were regions, spoilt anywhere: opening, probing, resizing and removing one, and using
//! what opens. Each ends in a typed error or in answers, which may be wrong; none in a panic, an access
//! outside the file, or a loop without end.
#![cfg(target_os = "linux")]

#[path = "../region_file/everything.rs"]
mod everything;
#[path = "../fuzz/mod.rs"]
mod fuzz;
mod image;
#[path = "../region_file/support.rs"]
#[allow(dead_code)]
mod support;

use everything::{Answers, kind, kind_of_finding, use_everything};
use fastrand::Rng;
use fuzz::Campaign;
use image::{Image, bases, image, memory_directory};
use sprag_core::Result;
use sprag_core::region::{Caps, file};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use support::{BIRTH, CAPS, OPTIONS, SECOND, try_open};

/// Images that failed once, or nearly did: always tried.
fn regressions() -> Vec<Image> {
    let highest = &[0xff; 8];
    vec![
        // A hint at its end.
        image("in use", &[(192, highest), (216, highest)], None, false, 2),
        // A clock past all times, in another boot.
        image("of another boot", &[(152, highest)], None, false, 2),
        // Other caps, and the file as it was.
        image("in use", &[(24, b"\x01\0\0\0\0\0\0\0")], None, true, 2),
        image("fresh", &[], Some(0), false, 2),
    ]
}

#[test]
fn a_spoilt_region_ends_in_a_typed_error_or_in_answers() {
    let directory = memory_directory();
    let path = directory.path().join("region");
    Campaign {
        test: "a_spoilt_region_ends_in_a_typed_error_or_in_answers",
        corpus: bases(),
        regressions: regressions(),
        dictionary: &[],
        inputs: 1_000,
        soak_times: 200,
        batch: 1,
    }
    .run(|image| try_image(image, &path));
}

/// What came of an image: of each call, which error; then what was found and what was answered.
fn try_image(image: &Image, path: &Path) -> (Vec<&'static str>, Answers, Answers) {
    let bytes = image.bytes();
    write(path, &bytes);
    let mut birth = BIRTH;
    birth.boot_id = image.boot_id();
    birth.unix_ns += SECOND;
    birth.boot_ns += SECOND;
    let options = file::OpenOptions {
        create: false,
        birth,
        ..OPTIONS
    };
    let mut ends = vec![end(file::probe(path))];
    let (mut findings, mut answers) = (Answers::new(), Answers::new());
    match try_open(path, &options) {
        Ok(engine) => {
            ends.push("opened");
            findings = findings_in(&engine);
            answers = use_everything(&engine, 4, &mut Rng::with_seed(image.seed));
            engine.check_region();
            ends.push(end(file::remove(path, false, birth)));
        }
        Err(error) => ends.push(kind(&error)),
    }

    // As it was, or used.
    if image.seed & 1 == 0 || !path.exists() {
        let _ = std::fs::remove_file(path);
        write(path, &bytes);
    }
    let caps = if image.seed & 2 == 0 {
        CAPS
    } else {
        Caps {
            objects: 100,
            key_chunks: 20,
            ..CAPS
        }
    };
    let resized = file::resize(path, caps, birth);
    ends.push(end(resized));
    if let Ok(engine) = try_open(path, &options) {
        let caps_now = engine.region().caps();
        if ends.last() == Some(&"done") {
            assert_eq!(caps_now, caps, "it is what it was made");
            assert_eq!(
                findings_in(&engine),
                Answers::new(),
                "a new region is sound"
            );
        }
        use_everything(&engine, 1, &mut Rng::with_seed(image.seed));
    }
    let removed = end(file::remove(path, false, birth));
    ends.push(removed);
    assert_eq!(path.exists(), removed != "done", "{removed}");
    if path.exists() {
        ends.push(end(file::remove(path, true, birth)));
        let _ = std::fs::remove_file(path);
    }
    (ends, findings, answers)
}

fn end<T>(result: Result<T>) -> &'static str {
    match result {
        Ok(_) => "done",
        Err(error) => {
            assert!(!error.to_string().is_empty());
            kind(&error)
        }
    }
}

fn findings_in(engine: &sprag_core::Engine) -> Answers {
    let findings = engine.check_region().findings;
    for finding in &findings {
        assert!(!finding.to_string().is_empty());
    }
    findings.iter().map(kind_of_finding).collect()
}

fn write(path: &Path, bytes: &[u8]) {
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .unwrap();
    file.write_all(bytes).unwrap();
}
