//! Where regions live, on real directories.

#![cfg(target_os = "linux")]

use sprag::host::directory::{RegionDirectory, Sharing};
use sprag::host::place::{Place, PlaceError, RegionName, Url};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn name(name: &str) -> RegionName {
    RegionName::parse(name).expect("a good name")
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path)
        .expect("it is there")
        .permissions()
        .mode()
        & 0o7777
}

#[test]
fn a_missing_directory_is_made_for_its_owner_or_its_group_and_used_as_it_is_after() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    for (sharing, mode) in [(Sharing::Owner, 0o700), (Sharing::Group, 0o2770)] {
        let path = scratch.path().join(format!("{sharing:?}"));
        let directory = RegionDirectory::at(&path).expect("absolute");
        assert_eq!(directory.regions().expect("none"), Vec::new());
        assert!(!path.exists(), "listing creates nothing");
        for _ in 0..2 {
            let place = directory.place(&name("orders"), sharing).expect("a place");
            assert_eq!(place.path, path.join("orders.sprag"));
            assert_eq!(mode_of(&path), mode);
        }
    }
}

#[test]
fn a_directory_that_is_not_one_or_not_safe_is_refused_by_name() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let at = |part: &str| scratch.path().join(part);
    fs::write(at("file"), "").expect("a file");
    fs::create_dir(at("real")).expect("a directory");
    symlink(at("real"), at("link")).expect("a link");
    fs::create_dir(at("open")).expect("a directory");
    fs::set_permissions(at("open"), Permissions::from_mode(0o1777)).expect("its mode");
    let cases = [
        ("file", "is a file, not a directory"),
        ("link", "is a symbolic link, not a directory"),
        ("open", "chmod 1755"),
        ("missing/deep", "cannot create the region directory"),
    ];
    for (part, expected) in cases {
        let path = at(part);
        let error = RegionDirectory::at(&path)
            .expect("absolute")
            .place(&name("orders"), Sharing::Owner)
            .expect_err(part)
            .to_string();
        assert!(error.contains(expected), "{part}: {error}");
        assert!(error.contains(path.to_str().expect("plain")), "{error}");
    }
    let error = RegionDirectory::at("relative").expect_err("relative");
    assert!(matches!(error, PlaceError::DirectoryNotAbsolute { .. }));
}

#[test]
fn regions_are_listed_by_name_and_nothing_else_is() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let directory = RegionDirectory::at(scratch.path()).expect("absolute");
    for file in ["b.sprag", "a.sprag", ".c.sprag", "d", "e.sprag.tmp"] {
        fs::write(scratch.path().join(file), "12345").expect("a file");
    }
    fs::create_dir(scratch.path().join("f.sprag")).expect("a directory");
    symlink("a.sprag", scratch.path().join("g.sprag")).expect("a link");
    let found: Vec<(String, u64)> = directory
        .regions()
        .expect("readable")
        .into_iter()
        .map(|region| {
            assert_eq!(region.path, scratch.path().join(region.name.file_name()));
            assert!(region.modified.is_some());
            (region.name.to_string(), region.bytes)
        })
        .collect();
    assert_eq!(found, [("a".to_owned(), 5), ("b".to_owned(), 5)]);
    let not_a_directory = RegionDirectory::at(scratch.path().join("d")).expect("absolute");
    assert!(not_a_directory.regions().is_err());
}

#[test]
fn a_path_is_used_as_it_is_if_its_directory_exists() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let path = scratch.path().join("any name");
    let url = format!("shm:{}", path.display());
    let parsed = Url::parse(&url).expect("a good URL");
    let place = Place::of(&parsed, Sharing::Owner).expect("a place");
    assert_eq!(place, Some(Place { path: path.clone() }));
    assert!(!path.exists(), "nothing is created");
    assert_eq!(Place::of(&Url::Mem, Sharing::Owner).expect("no file"), None);

    fs::write(&path, "").expect("a file");
    assert_eq!(Place::at(&path).expect("a place").path, path);
    let cases = [
        (path.join("below"), "is not a directory"),
        (scratch.path().join("no/such"), "does not exist"),
        ("relative/file".into(), "is not absolute"),
    ];
    for (path, expected) in cases {
        let error = Place::at(&path).expect_err("no place").to_string();
        assert!(error.contains(expected), "{}: {error}", path.display());
    }
}
