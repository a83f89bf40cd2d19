//! What snapshots do on every disk, the real one and the simulated one alike.

use super::*;

pub(crate) fn what_was_saved_is_found_at_the_next_start<D: Disk>(disk: &D) {
    for (through, length) in (1..).zip([0, 1, 447, 448, 449, 4_032, 4_033, (2 << 20) + 5]) {
        let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        let mut snapshots = opened(disk, 0).0;
        let job = snapshots.begin_save(Slot(through), content.clone());
        let done = job.unwrap().unwrap().run();
        assert!(matches!(snapshots.finish(done), Ok(Finished::Saved(_))));
        let newest = snapshots.newest();
        drop(snapshots);
        for _ in 0..2 {
            let (snapshots, found) = opened(disk, through);
            let found = found.unwrap();
            assert_eq!(
                (found.snapshot.through, found.snapshot.bytes),
                (Slot(through), length)
            );
            assert_eq!((Some(found.snapshot), snapshots.newest()), (newest, newest));
            assert!(found.content == content, "{length}");
        }
    }
}

pub(crate) fn the_newest_two_are_kept<D: Disk>(disk: &D) {
    let mut snapshots = none(disk);
    for through in 1..=4 {
        save(&mut snapshots, through);
    }
    assert_eq!(files(disk), [file(3), file(4)]);
    drop(snapshots);
    let (_, found) = opened(disk, 3);
    assert_eq!(found.unwrap().content, content(4));
    assert_eq!(files(disk), [file(3), file(4)]);
    // Below what is trimmed, it is of no use.
    opened(disk, 4);
    assert_eq!(files(disk), [file(4)]);
}

pub(crate) fn one_that_is_asked_for_is_kept_until_it_no_longer_is<D: Disk>(disk: &D) {
    let mut snapshots = none(disk);
    let slow = save(&mut snapshots, 1);
    for through in 2..=4 {
        let chunk = snapshots.chunk(Some((slow, 3)), 10).unwrap().unwrap();
        assert_eq!((chunk.snapshot, chunk.offset), (slow, 3));
        assert_eq!(chunk.bytes, content(1)[3..13]);
        save(&mut snapshots, through);
    }
    assert_eq!(files(disk), [file(1), file(3), file(4)]);
    assert_eq!(snapshots.trimmable(), Slot(3));
    save(&mut snapshots, 5);
    assert_eq!(files(disk), [file(4), file(5)]);
    let chunk = snapshots.chunk(Some((slow, 3)), 10).unwrap().unwrap();
    assert_eq!((chunk.snapshot.through, chunk.offset), (Slot(5), 0));
    // Of those that a job takes away, nothing is given while it runs.
    let gone = Some((foreign(4).snapshot, 3));
    let job = snapshots.begin_save(Slot(6), content(6)).unwrap().unwrap();
    let chunk = snapshots.chunk(gone, 10).unwrap().unwrap();
    assert_eq!((chunk.snapshot.through, chunk.offset), (Slot(5), 0));
    snapshots.finish(job.run()).unwrap();
    assert_eq!(files(disk), [file(5), file(6)]);
}

pub(crate) fn the_log_may_be_trimmed_up_to_the_last_but_one_or_one_that_was_installed<D: Disk>(
    disk: &D,
) {
    let mut snapshots = none(disk);
    let mut trimmable = Vec::new();
    for through in 1..=5 {
        if through == 3 {
            install(&mut snapshots, through);
        } else {
            save(&mut snapshots, through);
        }
        trimmable.push(snapshots.trimmable().0);
        let trimmed = trimmable.last().copied().unwrap();
        snapshots = opened(disk, trimmed).0;
        assert_eq!(snapshots.trimmable(), Slot(trimmed), "after a start");
    }
    assert_eq!(trimmable, [0, 1, 3, 3, 4]);
}

pub(crate) fn parts_of_any_size_make_the_whole<D: Disk>(disk: &D) {
    let mut snapshots = none(disk);
    for (through, length) in (1..).zip([0_u64, 1, 4_095, 4_096, 4_097, 8_192, 9_000]) {
        let whole: Vec<u8> = (0..length).map(|at| (at % 253) as u8).collect();
        let job = snapshots.begin_save(Slot(through), whole.clone());
        let done = job.unwrap().unwrap().run();
        snapshots.finish(done).unwrap();
        let newest = snapshots.newest().unwrap();
        for bytes_max in [1, 1_000, 4_095, 4_096, 4_097, usize::MAX] {
            let mut given = Vec::new();
            loop {
                let asked = (newest, given.len() as u64);
                let chunk = snapshots.chunk(Some(asked), bytes_max).unwrap().unwrap();
                assert_eq!((chunk.snapshot, chunk.offset), asked);
                assert!(chunk.bytes.len() <= bytes_max);
                if chunk.bytes.is_empty() {
                    break;
                }
                given.extend(chunk.bytes);
            }
            assert!(given == whole, "{length} {bytes_max}");
        }
    }
}

pub(crate) fn one_that_comes_in_parts_is_installed_in_place_of_all<D: Disk>(disk: &D) {
    let mut giver = none(&SimulatedDisk::new(512, NoFaults));
    let snapshot = save(&mut giver, 30);
    let mut snapshots = none(disk);
    save(&mut snapshots, 1);
    save(&mut snapshots, 2);
    snapshots.chunk(None, 1).unwrap();
    let mut asked = None;
    loop {
        let Chunk {
            snapshot,
            offset,
            bytes,
        } = giver.chunk(asked, 333).unwrap().unwrap();
        assert!(
            snapshots.begin_install().unwrap().is_none(),
            "not all of it is here"
        );
        let next = snapshots.receive(snapshot, offset, &bytes).unwrap();
        if next == snapshot.bytes {
            break;
        }
        asked = Some((snapshot, next));
    }
    let job = snapshots.begin_install().unwrap().unwrap();
    assert_eq!(
        snapshots.receive(snapshot, 0, b""),
        Err(SnapshotError::Busy)
    );
    let done = job.run();
    let content = content(30);
    let whole = Loaded { snapshot, content };
    assert_eq!(
        snapshots.finish(done),
        Ok(Finished::Installed(whole.clone()))
    );
    assert_eq!(files(disk), [file(30)]);
    assert_eq!(opened(disk, 30).1, Some(whole));
}

pub(crate) fn what_comes_out_of_turn_changes_nothing<D: Disk>(disk: &D) {
    let mut snapshots = none(disk);
    let Loaded { snapshot, content } = foreign(9);
    let out_of_turn = |offset, expected| {
        Err(SnapshotError::OutOfTurn {
            snapshot,
            offset,
            expected,
        })
    };
    assert_eq!(snapshots.receive(snapshot, 5, b"x"), out_of_turn(5, 0));
    assert_eq!(snapshots.receive(snapshot, 0, &content[..100]), Ok(100));
    assert_eq!(
        snapshots.receive(snapshot, 99, &content[99..]),
        out_of_turn(99, 100)
    );
    assert_eq!(snapshots.receive(snapshot, 101, b""), out_of_turn(101, 100));
    let other = foreign(10).snapshot;
    let refused = snapshots.receive(other, 100, b"x");
    assert!(matches!(
        refused,
        Err(SnapshotError::OutOfTurn { expected: 0, .. })
    ));
    for offset in [100, u64::MAX] {
        let end = offset.saturating_add(content.len() as u64);
        let refused = Err(SnapshotError::TooLong { snapshot, end });
        assert_eq!(snapshots.receive(snapshot, offset, &content), refused);
    }
    assert_eq!(
        snapshots.receive(snapshot, 100, &content[100..]),
        Ok(snapshot.bytes)
    );
    let done = snapshots.begin_install().unwrap().unwrap().run();
    let whole = Loaded { snapshot, content };
    assert_eq!(snapshots.finish(done), Ok(Finished::Installed(whole)));
}

pub(crate) fn one_that_begins_anew_leaves_nothing_of_what_came_before<D: Disk>(disk: &D) {
    let mut snapshots = none(disk);
    let first = foreign(9);
    receive(&mut snapshots, &first).unwrap();
    // Another that is shorter; and the same again.
    install(&mut snapshots, 8);
    snapshots.receive(first.snapshot, 0, &[0xff; 800]).unwrap();
    install(&mut snapshots, 9);
}

pub(crate) fn one_that_is_not_what_its_name_says_is_not_installed<D: Disk>(disk: &D) {
    let mut snapshots = none(disk);
    save(&mut snapshots, 2);
    for at in [0, 800, 1_699] {
        let mut whole = foreign(8);
        let length = whole.content.len();
        whole.content[at % length] ^= 1;
        receive(&mut snapshots, &whole).unwrap();
        let done = snapshots.begin_install().unwrap().unwrap().run();
        assert_eq!(
            snapshots.finish(done),
            Ok(Finished::Damaged(whole.snapshot))
        );
        assert_eq!(files(disk), [file(2)]);
    }
    install(&mut snapshots, 8);
}

pub(crate) fn one_is_made_at_a_time_and_none_that_is_not_newer<D: Disk>(disk: &D) {
    let mut snapshots = none(disk);
    let save_now = |snapshots: &mut Snapshots<D>, through| {
        snapshots
            .begin_save(Slot(through), content(through))
            .unwrap()
    };
    let job = save_now(&mut snapshots, 5).unwrap();
    assert!(save_now(&mut snapshots, 6).is_none());
    // What comes from another goes on, and waits for its turn.
    receive(&mut snapshots, &foreign(5)).unwrap();
    assert!(snapshots.begin_install().unwrap().is_none());
    let done = job.run();
    snapshots.finish(done).unwrap();
    assert!(save_now(&mut snapshots, 5).is_none());
    assert!(save_now(&mut snapshots, 4).is_none());
    assert!(snapshots.begin_install().unwrap().is_none());
    assert_eq!(files(disk), [file(5)]);
    save(&mut snapshots, 6);
}

pub(crate) fn one_that_is_too_large_is_neither_made_nor_taken<D: Disk>(disk: &D) {
    let (mut snapshots, _) = Snapshots::open(disk, CLUSTER, Slot::NONE, 1_000).unwrap();
    let refused = |bytes| {
        let bytes_max = 1_000;
        Err(SnapshotError::TooLarge { bytes, bytes_max })
    };
    let job = snapshots.begin_save(Slot(1), vec![0; 1_001]);
    assert_eq!(job.map(drop), refused(1_001));
    let mut snapshot = foreign(7).snapshot;
    assert_eq!(snapshot.bytes, 1_000);
    for bytes in [1_001, u64::MAX] {
        snapshot.bytes = bytes;
        assert_eq!(
            snapshots.receive(snapshot, 0, b"x").map(drop),
            refused(bytes)
        );
    }
    assert_eq!(files(disk), Vec::<String>::new());
    install(&mut snapshots, 7);
    save(&mut snapshots, 14);
}

pub(crate) fn of_one_that_is_gone_the_newest_is_given_instead<D: Disk>(disk: &D) {
    let mut snapshots = none(disk);
    assert_eq!(snapshots.chunk(None, 10), Ok(None));
    assert_eq!(
        snapshots.chunk(Some((foreign(1).snapshot, 0)), 10),
        Ok(None)
    );
    let here = save(&mut snapshots, 2);
    let bytes = here.bytes;
    let cases = [
        (None, 0, 1_700),
        (Some((foreign(1).snapshot, 5)), 0, 1_700),
        (Some((here, 0)), 0, 1_700),
        (Some((here, bytes - 3)), bytes - 3, 3),
        (Some((here, bytes)), bytes, 0),
        (Some((here, bytes + 1)), 0, 1_700),
    ];
    for (asked, offset, length) in cases {
        let chunk = snapshots.chunk(asked, 1_700).unwrap().unwrap();
        assert_eq!((chunk.snapshot, chunk.offset), (here, offset));
        assert_eq!(
            chunk.bytes,
            content(2)[offset as usize..][..length],
            "{asked:?}"
        );
    }
}

pub(crate) fn what_was_never_finished_is_gone_after_the_next_start<D: Disk>(disk: &D) {
    save(&mut none(disk), 1);
    for leftover in ["snapshot.new", "snapshot.in"] {
        disk.create(leftover, 100).unwrap();
    }
    let (mut snapshots, found) = opened(disk, 1);
    assert_eq!(found.unwrap().content, content(1));
    assert_eq!(files(disk), [file(1)]);
    receive(&mut snapshots, &foreign(2)).unwrap();
    drop(snapshots);
    assert_eq!(opened(disk, 0).1.unwrap().content, content(1));
    assert_eq!(files(disk), [file(1)]);
}

pub(crate) fn one_of_another_cluster_or_another_name_is_never_taken<D: Disk>(disk: &D) {
    let lost = |trimmed| {
        let trimmed = Slot(trimmed);
        Err(OpenError::SnapshotLost { trimmed })
    };
    save(&mut none(disk), 3);
    let other = Snapshots::open(disk, ClusterId(8), Slot(3), BYTES_MAX);
    assert_eq!(other.map(drop), lost(3));
    let beyond = Snapshots::open(disk, CLUSTER, Slot(4), BYTES_MAX);
    assert_eq!(beyond.map(drop), lost(4));
    // Nothing was touched.
    assert_eq!(opened(disk, 3).1.unwrap().content, content(3));
    disk.rename(&file(3), &file(4)).unwrap();
    let renamed = Snapshots::open(disk, CLUSTER, Slot(3), BYTES_MAX);
    assert_eq!(renamed.map(drop), lost(3));
}

pub(crate) fn a_log_that_is_given_up_takes_its_snapshots_with_it<D: Disk>(disk: &D) {
    let voter = Voter {
        node: NodeId(1),
        disk: DiskId(0xd15c),
    };
    let identity = Identity {
        cluster: CLUSTER,
        voter,
    };
    let others = ["snapshot-1", "snapshot-000000000000000A", "snapshot.old"];
    for other in others {
        disk.create(other, 10).unwrap();
    }
    for leftover in ["snapshot.in", "snapshot.new"] {
        disk.create(leftover, 10).unwrap();
    }
    save(&mut none(disk), 10);
    disk.create("snapshot.in", 10).unwrap();
    disk.create("snapshot.new", 10).unwrap();
    Log::create(disk, identity, &LogOptions::default()).unwrap();
    let mut expected = others.to_vec();
    expected.sort_unstable();
    assert_eq!(files(disk), expected);
    save(&mut none(disk), 10);
    Log::wipe(disk).unwrap();
    assert_eq!(disk.list().unwrap(), expected);
}
