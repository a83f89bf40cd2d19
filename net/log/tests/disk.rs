//! What every disk does, the real one and the simulated one alike; then what only the simulated one can show.

#[macro_use]
mod support;

use std::cell::RefCell;
use std::rc::Rc;

use sprag_log::{
    Damage, Disk, DiskError, DiskFaults, DiskFile, Fault, NoFaults, Operation, Place, RealDisk,
    SimulatedDisk,
};

mod conformance {
    use super::*;

    pub(crate) fn a_new_file_reads_as_zeros_and_has_the_length_that_was_asked<D: Disk>(disk: &D) {
        let file = disk.create("a", 10_000).unwrap();
        assert_eq!(file.length().unwrap(), 10_000);
        assert_eq!(read(&file, 0, 10_000), vec![0; 10_000]);
        assert_eq!(disk.create("empty", 0).unwrap().length().unwrap(), 0);
    }

    pub(crate) fn what_was_written_is_read_through_every_handle<D: Disk>(disk: &D) {
        let file = disk.create("a", 10_000).unwrap();
        file.write(4_000, &[7; 1_000]).unwrap();
        file.write(4_500, b"over").unwrap();
        file.sync().unwrap();
        for file in [file.clone(), disk.open("a").unwrap()] {
            assert_eq!(read(&file, 3_999, 3), [0, 7, 7]);
            assert_eq!(read(&file, 4_499, 6), *b"\x07over\x07");
            assert_eq!(read(&file, 4_999, 2), [7, 0]);
        }
    }

    pub(crate) fn reading_past_the_end_says_how_much_there_was<D: Disk>(disk: &D) {
        let file = disk.create("a", 100).unwrap();
        let error = file.read(90, &mut [0; 20]).unwrap_err();
        let (done, asked) = (10, 20);
        assert_eq!(
            said(&error),
            (Operation::Read, Fault::Short { done, asked })
        );
    }

    pub(crate) fn a_name_is_taken_once<D: Disk>(disk: &D) {
        disk.create("a", 1).unwrap();
        let error = disk.create("a", 1).map(drop).unwrap_err();
        assert_eq!(said(&error), (Operation::Create, Fault::Exists));
    }

    pub(crate) fn what_is_not_there_is_not_found<D: Disk>(disk: &D) {
        let error = disk.open("a").map(drop).unwrap_err();
        assert_eq!(said(&error), (Operation::Open, Fault::NotFound));
        assert_eq!(
            said(&disk.rename("a", "b").unwrap_err()),
            (Operation::Rename, Fault::NotFound)
        );
        assert_eq!(
            said(&disk.remove("a").unwrap_err()),
            (Operation::Remove, Fault::NotFound)
        );
    }

    pub(crate) fn names_are_listed_in_order<D: Disk>(disk: &D) {
        for name in ["b", "c", "a"] {
            disk.create(name, 1).unwrap();
        }
        disk.sync_directory().unwrap();
        assert_eq!(disk.list().unwrap(), ["a", "b", "c"]);
        disk.remove("b").unwrap();
        assert_eq!(disk.list().unwrap(), ["a", "c"]);
    }

    pub(crate) fn a_renamed_file_takes_the_place_of_another_and_its_handles_go_on<D: Disk>(
        disk: &D,
    ) {
        let file = disk.create("a", 4).unwrap();
        disk.create("b", 9).unwrap();
        file.write(0, b"one").unwrap();
        disk.rename("a", "b").unwrap();
        file.write(0, b"two").unwrap();
        file.sync().unwrap();
        assert_eq!(disk.list().unwrap(), ["b"]);
        let renamed = disk.open("b").unwrap();
        assert_eq!(renamed.length().unwrap(), 4);
        assert_eq!(read(&renamed, 0, 3), *b"two");
    }

    pub(crate) fn an_error_names_the_file_and_what_was_asked<D: Disk>(disk: &D) {
        let text = disk.open("nowhere").map(drop).unwrap_err().to_string();
        assert!(text.starts_with("opening "), "{text}");
        assert!(text.ends_with("nowhere: no such file"), "{text}");
    }
}

on_every_disk!(
    a_new_file_reads_as_zeros_and_has_the_length_that_was_asked,
    what_was_written_is_read_through_every_handle,
    reading_past_the_end_says_how_much_there_was,
    a_name_is_taken_once,
    what_is_not_there_is_not_found,
    names_are_listed_in_order,
    a_renamed_file_takes_the_place_of_another_and_its_handles_go_on,
    an_error_names_the_file_and_what_was_asked,
);

#[test]
fn a_directory_is_one_nodes_until_its_last_file_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node");
    let disk = RealDisk::open(&path).unwrap();
    let file = disk.create("a", 1).unwrap();
    let locked =
        |path| said(&RealDisk::open(path).unwrap_err()) == (Operation::Lock, Fault::Locked);
    assert!(locked(&path));
    drop(disk);
    assert!(locked(&path));
    drop(file);
    RealDisk::open(&path).unwrap();
}

#[test]
fn a_real_disk_is_for_its_owners_eyes() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node");
    RealDisk::open(&path).unwrap().create("a", 1).unwrap();
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&path.join("a"))), (0o700, 0o600));
}

#[test]
fn a_full_device_is_told_from_a_failing_one() {
    let directory = tempfile::tempdir().unwrap();
    let disk = RealDisk::open(directory.path()).unwrap();
    std::os::unix::fs::symlink("/dev/full", directory.path().join("full")).unwrap();
    let error = disk.open("full").unwrap().write(0, b"x").unwrap_err();
    assert_eq!(said(&error), (Operation::Write, Fault::Full));
}

#[test]
fn without_luck_a_power_cut_takes_what_was_not_synced() {
    let disk = SimulatedDisk::new(512, NoFaults);
    let file = disk.create("a", 2_048).unwrap();
    disk.create("b", 1).unwrap();
    disk.sync_directory().unwrap();
    file.write(0, &[1; 600]).unwrap();
    file.sync().unwrap();
    file.write(0, &[2; 600]).unwrap();
    disk.create("c", 1).unwrap();
    disk.remove("b").unwrap();
    let disk = disk.cut_power();
    assert_eq!(disk.list().unwrap(), ["a", "b"]);
    assert_eq!(read(&disk.open("a").unwrap(), 599, 2), [1, 0]);
    assert!(matches!(
        file.write(0, b"x").unwrap_err().fault,
        Fault::Io { .. }
    ));
}

#[test]
fn each_unsynced_sector_and_each_version_of_it_survives_on_its_own() {
    struct Middle(u32);
    impl DiskFaults for Middle {
        fn survives(&mut self, _: &str, sector: u64) -> bool {
            // Of sector 1 the older of two versions, of sector 3 the only one; nothing else.
            self.0 += u32::from(sector == 1);
            (sector == 1 && self.0 == 2) || sector == 3
        }
    }
    let disk = SimulatedDisk::new(512, Middle(0));
    let file = disk.create("a", 2_048).unwrap();
    disk.sync_directory().unwrap();
    file.write(0, &[1; 2_048]).unwrap();
    file.write(512, &[2; 512]).unwrap();
    let file = disk.cut_power().open("a").unwrap();
    assert_eq!(
        [0, 512, 1_024, 1_536].map(|at| read(&file, at, 1)[0]),
        [0, 1, 0, 1]
    );
}

#[test]
fn changes_of_the_directory_survive_each_on_its_own() {
    struct Renames;
    impl DiskFaults for Renames {
        fn change_survives(&mut self, operation: Operation, _: &str) -> bool {
            operation == Operation::Rename
        }
    }
    let disk = SimulatedDisk::new(512, Renames);
    disk.create("a", 1).unwrap();
    disk.sync_directory().unwrap();
    disk.create("x", 1).unwrap();
    disk.rename("a", "b").unwrap();
    disk.rename("x", "y").unwrap();
    assert_eq!(disk.cut_power().list().unwrap(), ["b"]);
}

/// Refuses the operations that a test says.
#[derive(Clone, Default)]
struct Refuse(Rc<RefCell<Option<(Operation, Fault)>>>);

impl DiskFaults for Refuse {
    fn refuses(&mut self, operation: Operation, _: &str, _: u64) -> Option<Fault> {
        let refused = *self.0.borrow();
        refused
            .filter(|(refused, _)| *refused == operation)
            .map(|(_, fault)| fault)
    }
}

#[test]
fn after_a_failed_sync_a_later_one_succeeds_and_writes_nothing() {
    let refuse = Refuse::default();
    let disk = SimulatedDisk::new(512, refuse.clone());
    let file = disk.create("a", 512).unwrap();
    disk.sync_directory().unwrap();
    file.write(0, b"x").unwrap();
    *refuse.0.borrow_mut() = Some((Operation::Sync, Fault::EIO));
    file.sync().unwrap_err();
    *refuse.0.borrow_mut() = None;
    file.sync().unwrap();
    // Whoever starts anew reads it from the cache, and still it is not there.
    let disk = disk.kill();
    assert_eq!(read(&disk.open("a").unwrap(), 0, 1), *b"x");
    assert_eq!(read(&disk.cut_power().open("a").unwrap(), 0, 1), [0]);
}

#[test]
fn what_is_written_anew_after_a_failed_sync_is_synced() {
    let refuse = Refuse::default();
    let disk = SimulatedDisk::new(512, refuse.clone());
    let file = disk.create("a", 512).unwrap();
    disk.sync_directory().unwrap();
    file.write(0, b"x").unwrap();
    *refuse.0.borrow_mut() = Some((Operation::Sync, Fault::EIO));
    file.sync().unwrap_err();
    *refuse.0.borrow_mut() = None;
    file.write(0, b"x").unwrap();
    file.sync().unwrap();
    assert_eq!(read(&disk.cut_power().open("a").unwrap(), 0, 1), *b"x");
}

#[test]
fn a_short_write_takes_the_first_bytes() {
    let refuse = Refuse::default();
    let disk = SimulatedDisk::new(512, refuse.clone());
    let file = disk.create("a", 512).unwrap();
    *refuse.0.borrow_mut() = Some((Operation::Write, Fault::Short { done: 2, asked: 4 }));
    file.write(0, b"abcd").unwrap_err();
    assert_eq!(read(&file, 0, 4), *b"ab\0\0");
}

#[test]
fn a_misdirected_write_is_where_it_should_be_until_the_power_goes() {
    struct Misdirect;
    impl DiskFaults for Misdirect {
        fn misdirects(&mut self, file: &str, offset: u64, _: u64) -> Option<Place> {
            let elsewhere = Place {
                file: "b".into(),
                offset: 512,
            };
            (file == "a" && offset == 0).then_some(elsewhere)
        }
    }
    let disk = SimulatedDisk::new(512, Misdirect);
    let (a, b) = (
        disk.create("a", 1_024).unwrap(),
        disk.create("b", 1_024).unwrap(),
    );
    disk.sync_directory().unwrap();
    a.write(0, &[1; 512]).unwrap();
    a.sync().unwrap();
    assert_eq!((read(&a, 0, 1)[0], read(&b, 512, 1)[0]), (1, 0));
    let disk = disk.cut_power();
    let (a, b) = (disk.open("a").unwrap(), disk.open("b").unwrap());
    assert_eq!((read(&a, 0, 1)[0], read(&b, 512, 1)[0]), (0, 1));
}

#[test]
fn a_write_misdirected_within_its_file_lands_there_though_the_file_was_renamed() {
    struct Misdirect;
    impl DiskFaults for Misdirect {
        fn misdirects(&mut self, file: &str, offset: u64, _: u64) -> Option<Place> {
            let (file, elsewhere) = (file.to_owned(), 512);
            (offset == 0).then_some(Place {
                file,
                offset: elsewhere,
            })
        }
    }
    let disk = SimulatedDisk::new(512, Misdirect);
    let file = disk.create("a", 1_024).unwrap();
    disk.rename("a", "b").unwrap();
    disk.sync_directory().unwrap();
    file.write(0, &[1; 512]).unwrap();
    file.sync().unwrap();
    let file = disk.cut_power().open("b").unwrap();
    assert_eq!((read(&file, 0, 1)[0], read(&file, 512, 1)[0]), (0, 1));
}

#[test]
fn damage_is_read_until_it_is_written_over() {
    let disk = SimulatedDisk::new(512, NoFaults);
    let file = disk.create("a", 1_024).unwrap();
    disk.sync_directory().unwrap();
    file.write(0, &[1; 1_024]).unwrap();
    file.sync().unwrap();
    assert!(disk.damage("a", 0, Damage::Flipped { bit: 9 }));
    assert_eq!(read(&file, 0, 3), [1, 3, 1]);
    assert!(disk.damage("a", 1, Damage::Unreadable));
    assert!(matches!(
        file.read(0, &mut [0; 1_024]).unwrap_err().fault,
        Fault::Io { .. }
    ));
    file.write(512, &[4; 512]).unwrap();
    file.sync().unwrap();
    assert_eq!(read(&file, 512, 1), [4]);
    assert!(disk.damage("a", 1, Damage::Zeroed));
    assert_eq!(read(&file, 1_023, 1), [0]);
    assert!(!disk.damage("a", 2, Damage::Zeroed));
    assert_eq!(disk.sectors("a"), 2);
}

fn read<F: DiskFile>(file: &F, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0xff; length];
    file.read(offset, &mut bytes).unwrap();
    bytes
}

fn said(error: &DiskError) -> (Operation, Fault) {
    (error.operation, error.fault)
}
