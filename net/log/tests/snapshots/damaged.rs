//! What is found of snapshots on a damaged disk: the one before, or that none is left; never another content.

use super::*;

const DAMAGES: [Damage; 3] = [
    Damage::Unreadable,
    Damage::Zeroed,
    Damage::Flipped { bit: 513 },
];

/// Three that are whole, of which the newest two are kept.
fn made(sector: usize) -> SimulatedDisk {
    let disk = SimulatedDisk::new(sector, NoFaults);
    let mut snapshots = none(&disk);
    for through in [4, 8, 12] {
        save(&mut snapshots, through);
    }
    disk
}

#[test]
fn whatever_sector_goes_bad_the_one_before_is_found() {
    for sector_bytes in [512, 4096] {
        for damage in DAMAGES {
            for sector in 0..made(sector_bytes).sectors(&file(12)) {
                let disk = made(sector_bytes);
                assert!(disk.damage(&file(12), sector, damage));
                let (mut snapshots, found) = opened(&disk, 8);
                assert_eq!(found.unwrap().content, content(8), "{sector} {damage:?}");
                assert_eq!(
                    (snapshots.trimmable(), files(&disk)),
                    (Slot::NONE, vec![file(8)])
                );
                save(&mut snapshots, 12);

                // The other one costs nothing, but that the next counts before more is trimmed.
                disk.damage(&file(8), sector % disk.sectors(&file(8)), damage);
                let (mut snapshots, found) = opened(&disk, 8);
                assert_eq!(found.unwrap().content, content(12), "{sector} {damage:?}");
                assert_eq!(snapshots.trimmable(), Slot::NONE);
                save(&mut snapshots, 16);
                assert_eq!(snapshots.trimmable(), Slot(12));
            }
        }
    }
}

#[test]
fn where_none_is_left_that_reaches_up_to_the_log_that_is_told() {
    for damage in DAMAGES {
        let disk = made(512);
        for through in [8, 12] {
            disk.damage(&file(through), 1, damage);
        }
        let lost = Snapshots::open(&disk, CLUSTER, Slot(8), BYTES_MAX);
        assert_eq!(
            lost.map(drop),
            Err(OpenError::SnapshotLost { trimmed: Slot(8) })
        );
        // Where nothing is trimmed, the log has all of it.
        none(&disk);
        assert_eq!(files(&disk), Vec::<String>::new());
    }
}

#[test]
fn one_that_goes_bad_while_it_is_fetched_is_given_to_nobody_any_more() {
    for damage in DAMAGES {
        one_that_goes_bad_while_it_is_fetched(damage);
    }
}

fn one_that_goes_bad_while_it_is_fetched(damage: Damage) {
    let disk = made(512);
    let (mut snapshots, found) = opened(&disk, 0);
    let newest = found.unwrap().snapshot;
    // Behind the first 4,096 bytes of the content.
    disk.damage(&file(12), 9, damage);
    assert!(snapshots.chunk(Some((newest, 0)), 4_096).unwrap().is_some());
    assert_eq!(snapshots.chunk(Some((newest, 4_095)), 2), Ok(None));
    let chunk = snapshots.chunk(Some((newest, 500)), 100).unwrap().unwrap();
    assert_eq!((chunk.snapshot.through, chunk.offset), (Slot(8), 0));
    assert_eq!(snapshots.newest(), Some(chunk.snapshot));
    // It counts for none of those that are kept.
    assert_eq!(snapshots.trimmable(), Slot::NONE);
    save(&mut snapshots, 16);
    assert_eq!(
        (snapshots.trimmable(), files(&disk)),
        (Slot(8), vec![file(8), file(16)])
    );
    assert_eq!(opened(&disk, 8).1.unwrap().content, content(16));
}

#[test]
fn one_that_comes_onto_a_bad_sector_is_not_installed() {
    for sector in 0..3 {
        let disk = made(512);
        let (mut snapshots, _) = opened(&disk, 8);
        let whole = foreign(20);
        receive(&mut snapshots, &whole).unwrap();
        // Nothing of it is synced, so the cache is read: only what is unreadable is noticed here.
        let job = snapshots.begin_install().unwrap().unwrap();
        disk.open("snapshot.in").unwrap().sync().unwrap();
        disk.damage("snapshot.in", sector, Damage::Unreadable);
        let done = job.run();
        assert_eq!(
            snapshots.finish(done),
            Ok(Finished::Damaged(whole.snapshot))
        );
        assert_eq!(files(&disk), [file(8), file(12)]);
        install(&mut snapshots, 20);
    }
}
