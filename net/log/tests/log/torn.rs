//! What a log makes of records that a power cut tore, and of those that look like it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use sprag_log::{DiskFaults, Operation, Place};

use super::*;

const SEGMENT: &str = "segment-0000000000000001";
const SECTOR: usize = 512;

/// What survives a power cut: which sectors of the segment, or all but which; which removal. Where the segment's next body
/// goes, if astray. After how many operations the power goes.
#[derive(Default)]
struct Fate {
    surviving: BTreeSet<u64>,
    all_but: Option<u64>,
    astray: Option<u64>,
    removed: String,
    operations_left: Option<u64>,
}

#[derive(Clone, Default)]
struct Hook(Rc<RefCell<Fate>>);

impl DiskFaults for Hook {
    fn refuses(&mut self, _: Operation, _: &str, _: u64) -> Option<Fault> {
        let mut fate = self.0.borrow_mut();
        let left = fate.operations_left.as_mut()?;
        if *left == 0 {
            return Some(Fault::EIO);
        }
        *left -= 1;
        None
    }

    fn misdirects(&mut self, file: &str, offset: u64, _: u64) -> Option<Place> {
        if file != SEGMENT || offset < 4096 {
            return None;
        }
        let offset = self.0.borrow_mut().astray.take()?;
        let file = file.to_owned();
        Some(Place { file, offset })
    }

    fn change_survives(&mut self, operation: Operation, file: &str) -> bool {
        operation == Operation::Remove && self.0.borrow().removed == file
    }

    fn survives(&mut self, file: &str, sector: u64) -> bool {
        let fate = self.0.borrow();
        match fate.all_but {
            Some(torn) => (file, sector) != (SEGMENT, torn),
            None => file == SEGMENT && fate.surviving.contains(&sector),
        }
    }
}

fn disk() -> (SimulatedDisk, Hook) {
    let hook = Hook::default();
    (SimulatedDisk::new(SECTOR, hook.clone()), hook)
}

fn survive(hook: &Hook, sectors: &[u64]) {
    hook.0.borrow_mut().surviving = sectors.iter().copied().collect();
}

/// The power went when of a batch of two records only the first was there in full, and of the second its cells.
fn cut_in_a_batch() -> (SimulatedDisk, Hook) {
    let (disk, hook) = disk();
    let (mut log, _) = made(&disk);
    log.promise(ballot(8)).unwrap();
    let records = [accepted(1, 1, b"first"), accepted(2, 1, &[7; 900])];
    log.append(&records).unwrap();
    survive(&hook, &[0, 8]);
    let disk = disk.cut_power();
    survive(&hook, &[]);
    (disk, hook)
}

#[test]
fn what_is_torn_where_an_earlier_one_was_torn_was_never_written_either() {
    let (disk, hook) = cut_in_a_batch();
    let (mut log, found) = opened(&disk);
    assert_eq!(found.answer(Slot(1)), Answer::Accepted(vote(1, b"first")));
    assert_eq!(found.answer(Slot(2)), Answer::Never);
    log.append(&[accepted(2, 2, &[8; 900])]).unwrap();
    survive(&hook, &[0, 16]);
    let (_, found) = opened(&disk.cut_power());
    assert_eq!(found.answer(Slot(2)), Answer::Never);
}

#[test]
fn what_comes_after_a_batch_of_which_the_end_was_torn_survives_in_either_trace() {
    let header = Damage::Flipped { bit: 8 * 64 + 3 };
    for damage in [header, Damage::Unreadable, Damage::Zeroed] {
        let (disk, _) = cut_in_a_batch();
        let (mut log, _) = opened(&disk);
        log.append(&[accepted(3, 2, &[8; 900])]).unwrap();
        log.sync().unwrap();
        let disk = disk.cut_power();
        disk.damage(SEGMENT, 0, damage);
        let (_, found) = opened(&disk);
        assert_eq!(
            found.answer(Slot(3)),
            Answer::Accepted(vote(2, &[8; 900])),
            "{damage:?}"
        );
    }
}

#[test]
fn a_body_that_went_astray_is_unknown_wherever_it_landed_and_stays_so() {
    for sector in 0..32 {
        for length in [5, 300, 900] {
            let (disk, hook) = disk();
            let (mut log, _) = made(&disk);
            log.promise(ballot(8)).unwrap();
            hook.0.borrow_mut().astray = Some(sector * SECTOR as u64);
            let value = vec![9; length];
            log.append(&[accepted(1, 1, &value)]).unwrap();
            log.sync().unwrap();
            let mut disk = disk.cut_power();
            for start in 0..3 {
                let (_, found) = opened(&disk);
                let expected = if sector == 8 {
                    Answer::Accepted(vote(1, &value))
                } else {
                    Answer::Unknown(ballot(1))
                };
                assert_eq!(
                    found.answer(Slot(1)),
                    expected,
                    "{length} bytes at {sector}, start {start}"
                );
                disk = disk.cut_power();
            }
        }
    }
}

#[test]
fn a_power_cut_while_a_start_makes_good_what_went_astray_does_not_make_it_forgotten() {
    for sector in 0..32 {
        for operations in 0..60 {
            for half in 0..3 {
                let (disk, hook) = disk();
                let (mut log, _) = made(&disk);
                log.promise(ballot(8)).unwrap();
                hook.0.borrow_mut().astray = Some(sector * SECTOR as u64);
                log.append(&[accepted(1, 1, &[9; 900])]).unwrap();
                log.sync().unwrap();
                let disk = disk.cut_power();
                hook.0.borrow_mut().operations_left = Some(operations);
                let ended = Log::open(&disk, CLUSTER, ME.node, &SMALL).is_ok();
                hook.0.borrow_mut().operations_left = None;
                let surviving = (0..64).filter(|sector| half == 2 || sector % 2 == half);
                survive(&hook, &surviving.collect::<Vec<_>>());
                let (_, found) = opened(&disk.cut_power());
                assert_ne!(
                    found.answer(Slot(1)),
                    Answer::Never,
                    "at {sector}, after {operations} operations, {half}"
                );
                if ended {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_power_cut_while_a_start_removes_what_comes_after_the_end_loses_nothing() {
    for operations in 0..60 {
        for removed in [2, 3] {
            let (disk, hook) = disk();
            let (mut log, _) = made(&disk);
            log.promise(ballot(8)).unwrap();
            log.append(&[accepted(1, 1, &[9; 900])]).unwrap();
            log.sync().unwrap();
            // Three segments full, of which all survives but a sector of what was not synced first.
            for slot in 2..=9 {
                log.append(&[accepted(slot, 1, &[9; 900])]).unwrap();
            }
            hook.0.borrow_mut().all_but = Some(17);
            let disk = disk.cut_power();
            let removed = format!("segment-{removed:016x}");
            *hook.0.borrow_mut() = Fate {
                removed,
                operations_left: Some(operations),
                ..Fate::default()
            };
            let ended = Log::open(&disk, CLUSTER, ME.node, &SMALL).is_ok();
            hook.0.borrow_mut().operations_left = None;
            let (_, found) = opened(&disk.cut_power());
            assert_eq!(found.lost, None, "after {operations} operations");
            let slots: Vec<_> = found.state.answers.into_keys().collect();
            assert_eq!(slots, [Slot(1)], "after {operations} operations");
            if ended {
                assert!(operations > 10, "{operations}");
                break;
            }
        }
    }
}

#[test]
fn what_loses_both_traces_is_told_of_though_its_place_was_never_written() {
    let (disk, hook) = disk();
    let (mut log, _) = made(&disk);
    log.promise(ballot(8)).unwrap();
    let nowhere = 1 << 20;
    hook.0.borrow_mut().astray = Some(nowhere);
    for slot in 1..=3 {
        log.append(&[accepted(slot, 1, b"value")]).unwrap();
        log.sync().unwrap();
    }
    let disk = disk.cut_power();
    for sector in 0..8 {
        disk.damage(SEGMENT, sector, Damage::Zeroed);
    }
    assert_eq!(opened(&disk).1.lost, Some(ballot(8)));
}
