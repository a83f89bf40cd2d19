//! What snapshots do when the disk refuses.

use std::cell::Cell;
use std::rc::Rc;

use super::*;

/// Refuses one operation, and says which it was.
#[derive(Clone)]
struct RefuseOne {
    until: Rc<Cell<u64>>,
    fault: Fault,
}

impl RefuseOne {
    fn new(until: u64, fault: Fault) -> RefuseOne {
        let until = Rc::new(Cell::new(until));
        RefuseOne { until, fault }
    }
}

impl DiskFaults for RefuseOne {
    fn refuses(&mut self, _: Operation, _: &str, _: u64) -> Option<Fault> {
        let until = self.until.get();
        self.until.set(until.wrapping_sub(1));
        (until == 0).then_some(self.fault)
    }

    fn survives(&mut self, _: &str, sector: u64) -> bool {
        sector.is_multiple_of(2)
    }
}

const FAULTS: [Fault; 5] = [
    Fault::Full,
    Fault::ReadOnly,
    Fault::Permission,
    Fault::Short { done: 0, asked: 1 },
    Fault::EIO,
];

/// Saves one, or installs one.
fn make(
    snapshots: &mut Snapshots<SimulatedDisk>,
    installs: bool,
) -> Result<Finished, SnapshotError> {
    let job = if installs {
        receive(snapshots, &foreign(30))?;
        snapshots.begin_install()?
    } else {
        snapshots.begin_save(Slot(30), content(30))?
    };
    snapshots.finish(job.unwrap().run())
}

#[test]
fn whatever_is_refused_nothing_durable_is_lost_and_without_room_nothing_is_left_behind() {
    let mut seen = Vec::new();
    for (installs, fault) in [false, true]
        .into_iter()
        .flat_map(|installs| FAULTS.map(|fault| (installs, fault)))
    {
        for until in 0.. {
            let disk = SimulatedDisk::new(512, NoFaults);
            let mut snapshots = none(&disk);
            for through in [10, 20] {
                save(&mut snapshots, through);
            }
            let faults = RefuseOne::new(until, fault);
            disk.set_faults(faults.clone());
            let made = make(&mut snapshots, installs);
            let is_refused = faults.until.get() > until;
            disk.set_faults(RefuseOne::new(u64::MAX, fault));
            if !is_refused {
                assert!(until > 5, "{until}");
                assert!(matches!(
                    made,
                    Ok(Finished::Saved(_) | Finished::Installed(_))
                ));
                break;
            }
            let case = format!("{installs} {fault} {until}: {made:?}");
            let is_over = match made {
                Ok(Finished::NoRoom(error)) | Err(SnapshotError::DiskFull(error)) => {
                    assert_eq!(error.fault, Fault::Full, "{case}");
                    assert_eq!(files(&disk), [file(10), file(20)], "{case}");
                    assert_eq!(snapshots.trimmable(), Slot(10), "{case}");
                    seen.push((error.operation, "no room"));
                    // There is room again.
                    assert!(matches!(
                        make(&mut snapshots, installs),
                        Ok(Finished::Saved(_) | Finished::Installed(_))
                    ));
                    true
                }
                Err(SnapshotError::Disk(error)) => {
                    assert_eq!(error.fault, fault, "{case}");
                    seen.push((error.operation, "stopped"));
                    stopped(&mut snapshots, error);
                    false
                }
                // Read back, and bad.
                Ok(Finished::Damaged(_)) => false,
                made => panic!("{made:?} {case}"),
            };
            let disk = if until % 2 == 0 {
                disk.kill()
            } else {
                disk.cut_power()
            };
            let found = opened(&disk, 10).1.unwrap();
            let through = found.snapshot.through.0;
            assert!(
                through == 30 || through == 20 && !is_over,
                "{case} {through}"
            );
            assert_eq!(found.content, content(through), "{case}");
        }
    }
    seen.sort_unstable();
    seen.dedup();
    for operation in [
        Operation::Create,
        Operation::Write,
        Operation::Sync,
        Operation::Rename,
    ] {
        // Of a sync nobody knows what it did.
        let may_go_on = operation != Operation::Sync;
        assert_eq!(
            seen.contains(&(operation, "no room")),
            may_go_on,
            "{operation} {seen:?}"
        );
        assert!(
            seen.contains(&(operation, "stopped")),
            "{operation} {seen:?}"
        );
    }
    for operation in [Operation::SyncDirectory, Operation::Remove, Operation::Read] {
        assert!(
            seen.contains(&(operation, "stopped")),
            "{operation} {seen:?}"
        );
    }
}

fn stopped(snapshots: &mut Snapshots<SimulatedDisk>, error: DiskError) {
    let stopped = SnapshotError::Stopped(error);
    let whole = foreign(40);
    let save = snapshots.begin_save(Slot(40), content(40));
    assert_eq!(save.map(drop), Err(stopped.clone()));
    let received = snapshots.receive(whole.snapshot, 0, &whole.content);
    assert_eq!(received, Err(stopped.clone()));
    assert_eq!(snapshots.begin_install().map(drop), Err(stopped.clone()));
    assert_eq!(snapshots.chunk(None, 10), Err(stopped));
}

#[test]
fn a_disk_that_refuses_is_not_opened_and_loses_nothing() {
    for fault in FAULTS {
        for until in 0.. {
            let disk = SimulatedDisk::new(512, NoFaults);
            let mut snapshots = none(&disk);
            for through in [10, 20] {
                save(&mut snapshots, through);
            }
            disk.create("snapshot.new", 100).unwrap();
            let faults = RefuseOne::new(until, fault);
            disk.set_faults(faults.clone());
            let refused = Snapshots::open(&disk, CLUSTER, Slot(10), BYTES_MAX);
            let is_refused = faults.until.get() > until;
            disk.set_faults(NoFaults);
            match refused {
                Ok((_, found)) if !is_refused => {
                    assert_eq!(found.unwrap().content, content(20));
                    break;
                }
                Err(OpenError::Disk(error)) => assert_eq!(error.fault, fault),
                // A read that was refused for a bad place, as damage is.
                Ok((_, found)) => {
                    let through = found.unwrap().snapshot.through;
                    assert!(fault == FAULTS[3] || fault == FAULTS[4], "{fault}");
                    assert!(through == Slot(10) || through == Slot(20));
                    continue;
                }
                Err(error) => panic!("{error}"),
            }
            assert_eq!(
                opened(&disk.cut_power(), 10).1.unwrap().content,
                content(20)
            );
        }
    }
}

#[test]
fn what_is_found_is_durable_though_the_directory_could_not_be_synced_before() {
    let disk = SimulatedDisk::new(512, NoFaults);
    let mut snapshots = none(&disk);
    let job = snapshots.begin_save(Slot(5), content(5)).unwrap().unwrap();
    disk.set_faults(RefuseSyncs);
    assert!(matches!(
        snapshots.finish(job.run()),
        Err(SnapshotError::Disk(_))
    ));
    disk.set_faults(NoFaults);
    let disk = disk.kill();
    assert_eq!(opened(&disk, 0).1.unwrap().content, content(5));
    assert_eq!(opened(&disk.cut_power(), 5).1.unwrap().content, content(5));
}

/// Refuses to sync the directory.
struct RefuseSyncs;

impl DiskFaults for RefuseSyncs {
    fn refuses(&mut self, operation: Operation, _: &str, _: u64) -> Option<Fault> {
        (operation == Operation::SyncDirectory).then_some(Fault::EIO)
    }
}
