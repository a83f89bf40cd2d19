//! What a log does when the disk refuses.

use super::*;

/// Refuses one kind of operation from some time on.
#[derive(Clone, Copy)]
struct Refuse(Operation, Fault);

impl DiskFaults for Refuse {
    fn refuses(&mut self, operation: Operation, _: &str, _: u64) -> Option<Fault> {
        (operation == self.0).then_some(self.1)
    }
}

#[test]
fn after_a_write_or_sync_that_failed_the_log_has_stopped() {
    let (done, asked) = (100, 4096);
    let faults = [
        Fault::Full,
        Fault::ReadOnly,
        Fault::Permission,
        Fault::Short { done, asked },
        Fault::EIO,
    ];
    for (operation, fault) in [Operation::Write, Operation::Sync]
        .into_iter()
        .flat_map(|o| faults.map(|f| (o, f)))
    {
        let disk = SimulatedDisk::new(512, NoFaults);
        let (mut log, _) = made(&disk);
        log.append(&[accepted(1, 1, b"one")]).unwrap();
        log.sync().unwrap();
        disk.set_faults(Refuse(operation, fault));
        let error = log
            .append(&[accepted(2, 1, b"two")])
            .and_then(|_| log.sync())
            .unwrap_err();
        let LogError::Disk(error) = error else {
            panic!("{error}")
        };
        assert_eq!((error.operation, error.fault), (operation, fault));
        disk.set_faults(NoFaults);
        let stopped = LogError::Stopped(error);
        assert_eq!(log.append(&[]), Err(stopped.clone()));
        assert_eq!(log.sync(), Err(stopped.clone()));
        assert_eq!(log.begin_sync().map(drop), Err(stopped.clone()));
        assert_eq!(log.promise(ballot(9)), Err(stopped.clone()));
        assert_eq!(
            log.append(&[Record::Trimmed(Slot(1))]),
            Err(stopped.clone())
        );
        assert_eq!(log.read(Slot(1)), Err(stopped.clone()));
        assert_eq!(log.upkeep(), Err(stopped));
        let (_, found) = opened(&disk.cut_power());
        assert_eq!(found.answer(Slot(1)), Answer::Accepted(vote(1, b"one")));
        assert_eq!(found.answer(Slot(2)), Answer::Never);
    }
}

#[test]
fn a_disk_without_room_for_another_segment_is_told_before_anything_is_written() {
    let disk = SimulatedDisk::new(512, NoFaults);
    let (mut log, _) = made(&disk);
    for slot in 1..=3 {
        log.append(&[noop(slot, 1)]).unwrap();
    }
    disk.set_faults(Refuse(Operation::Create, Fault::Full));
    assert!(matches!(
        log.append(&[noop(4, 1)]),
        Err(LogError::DiskFull(_))
    ));
    disk.set_faults(NoFaults);
    log.append(&[noop(4, 1)]).unwrap();
    log.sync().unwrap();
    assert_eq!(opened(&disk.cut_power()).1.state.answers.len(), 4);
}

#[test]
fn a_sync_that_found_no_room_has_failed_like_any_other() {
    for operation in [Operation::Sync, Operation::SyncDirectory] {
        let disk = SimulatedDisk::new(512, NoFaults);
        let (mut log, _) = made(&disk);
        disk.set_faults(Refuse(operation, Fault::Full));
        let error = log.upkeep().unwrap_err();
        assert!(matches!(error, LogError::Disk(_)), "{error}");
        assert!(log.stopped().is_some());
    }
}

#[test]
fn a_disk_that_refuses_is_not_opened_and_says_why() {
    for fault in [Fault::ReadOnly, Fault::Permission, Fault::Full] {
        let disk = SimulatedDisk::new(512, NoFaults);
        made(&disk);
        disk.set_faults(Refuse(Operation::Write, fault));
        let Err(OpenError::Disk(error)) = Log::open(&disk, CLUSTER, ME.node, &SMALL) else {
            panic!()
        };
        assert_eq!((error.operation, error.fault), (Operation::Write, fault));
        disk.set_faults(NoFaults);
        opened(&disk);
    }
}
