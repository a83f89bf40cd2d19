//! What a log finds of itself on a damaged disk.

use super::*;

#[test]
fn of_two_copies_of_the_vote_one_is_enough_and_none_ends_the_voter() {
    for copies in [&[0_u64][..], &[1], &[0, 1]] {
        let disk = SimulatedDisk::new(4096, NoFaults);
        let (mut log, _) = made(&disk);
        log.promise(ballot(4)).unwrap();
        for copy in copies {
            assert!(disk.damage("vote", *copy, Damage::Flipped { bit: 200 }));
        }
        match (copies.len(), Log::open(&disk, CLUSTER, ME.node, &SMALL)) {
            (1, Ok((_, found))) => assert_eq!(found.state.promised, ballot(4)),
            (2, Err(error)) => {
                assert_eq!(error, OpenError::VoteLost);
                assert_eq!(
                    Log::create(&disk, IDENTITY, &SMALL),
                    Err(OpenError::VoteLost)
                );
                Log::wipe(&disk).unwrap();
                made(&disk);
            }
            (_, other) => panic!("{copies:?}: {:?}", other.map(|(_, found)| found)),
        }
    }
}

/// The unit of the front, and those of the first two batches.
const FRONT: u64 = 0;
const FIRST: u64 = 1;
const SECOND: u64 = 2;

/// Three batches of one record each, of which the third is never proven to be durable.
fn three_batches() -> SimulatedDisk {
    batches(3)
}

/// Batches of one record each, three to a segment.
fn batches(count: u64) -> SimulatedDisk {
    let disk = SimulatedDisk::new(4096, NoFaults);
    let (mut log, _) = made(&disk);
    log.promise(ballot(8)).unwrap();
    for slot in 1..=count {
        log.append(&[accepted(slot, slot, b"value")]).unwrap();
        log.sync().unwrap();
    }
    disk
}

#[test]
fn a_record_survives_in_either_trace_and_without_its_payload_is_unknown() {
    for damage in [
        Damage::Unreadable,
        Damage::Zeroed,
        Damage::Flipped { bit: 8 * 64 + 3 },
    ] {
        let disk = three_batches();
        assert!(disk.damage("segment-0000000000000001", FRONT, damage));
        let (_, found) = opened(&disk);
        for slot in 1..=3 {
            assert_eq!(
                found.answer(Slot(slot)),
                Answer::Accepted(vote(slot, b"value")),
                "{damage:?}"
            );
        }

        for batch in 1..=3 {
            let disk = three_batches();
            assert!(disk.damage("segment-0000000000000001", batch, damage));
            let (mut log, found) = opened(&disk);
            assert_eq!((found.lost, found.state.promised), (None, ballot(8)));
            for slot in 1..=3 {
                let whole = Answer::Accepted(vote(slot, b"value"));
                let expected = if slot == batch {
                    Answer::Unknown(ballot(slot))
                } else {
                    whole
                };
                assert_eq!(
                    found.answer(Slot(slot)),
                    expected,
                    "{damage:?} of batch {batch}"
                );
            }
            // A later acceptance makes it known again.
            log.append(&[accepted(batch, 9, b"again")]).unwrap();
            log.sync().unwrap();
            assert_eq!(
                opened(&disk).1.answer(Slot(batch)),
                Answer::Accepted(vote(9, b"again"))
            );
        }
    }
}

#[test]
fn a_vote_after_what_could_not_be_read_is_never_taken_for_what_was_decided_there() {
    let learned = |slot| Record::Learned {
        slot: Slot(slot),
        entry: Entry::Commands(b"decided"[..].into()),
    };
    let disk = SimulatedDisk::new(4096, NoFaults);
    let (mut log, _) = made(&disk);
    for record in [learned(1), learned(2), Record::Decided(Slot(2))] {
        log.append(&[record]).unwrap();
    }
    log.sync().unwrap();
    disk.damage("segment-0000000000000001", 1, Damage::Unreadable);
    let (mut log, found) = opened(&disk);
    assert_eq!(found.state.decided, Slot(0));
    // Of an old ballot that proposed something else; and then what is missing comes again.
    for record in [accepted(2, 1, b"stale"), learned(1)] {
        log.append(&[record]).unwrap();
    }
    log.sync().unwrap();
    let (mut log, found) = opened(&disk);
    assert_eq!(found.state.decided, Slot(0));
    for record in [learned(1), learned(2), Record::Decided(Slot(2))] {
        log.append(&[record]).unwrap();
    }
    log.sync().unwrap();
    assert_eq!(opened(&disk).1.state.decided, Slot(2));
}

#[test]
fn a_start_gives_a_damaged_record_both_its_cells_again() {
    for (first, then) in [(FIRST, FRONT), (FRONT, FIRST)] {
        // In a segment that is proven in full.
        let disk = batches(7);
        disk.damage("segment-0000000000000001", first, Damage::Zeroed);
        opened(&disk);
        disk.damage("segment-0000000000000001", then, Damage::Zeroed);
        let (_, found) = opened(&disk);
        assert_eq!(found.answer(Slot(1)), Answer::Unknown(ballot(1)));
        for slot in 2..=7 {
            let whole = Answer::Accepted(vote(slot, b"value"));
            assert_eq!(found.answer(Slot(slot)), whole);
        }
    }
}

#[test]
fn where_both_traces_are_gone_every_slot_is_unknown_up_to_the_promise() {
    let disk = three_batches();
    for unit in [FRONT, SECOND] {
        disk.damage("segment-0000000000000001", unit, Damage::Zeroed);
    }
    let (mut log, found) = opened(&disk);
    assert_eq!(found.lost, Some(ballot(8)));
    for slot in 1..=4 {
        assert_eq!(found.answer(Slot(slot)), Answer::Unknown(ballot(8)));
    }
    // Until something is accepted above it.
    log.append(&[accepted(2, 9, b"again")]).unwrap();
    log.sync().unwrap();
    assert_eq!(
        log.read(Slot(2)).unwrap(),
        Answer::Accepted(vote(9, b"again"))
    );
    assert_eq!(log.read(Slot(3)).unwrap(), Answer::Unknown(ballot(8)));
    assert!(opened(&disk).1.lost >= Some(ballot(8)));
}

#[test]
fn a_segment_that_is_gone_is_a_loss_and_one_of_another_disk_is_never_taken() {
    let foreign = |cluster, voter| {
        let disk = SimulatedDisk::new(512, NoFaults);
        Log::create(&disk, Identity { cluster, voter }, &SMALL).unwrap();
        let (mut log, _) = Log::open(&disk, cluster, voter.node, &SMALL).unwrap();
        log.append(&[accepted(1, 1, b"foreign")]).unwrap();
        log.sync().unwrap();
        let mut bytes = vec![0; 4 * UNIT as usize];
        disk.open("segment-0000000000000001")
            .unwrap()
            .read(0, &mut bytes)
            .unwrap();
        Some(bytes)
    };
    let cases = [
        None,
        foreign(ClusterId(8), ME),
        foreign(
            CLUSTER,
            Voter {
                node: NodeId(2),
                ..ME
            },
        ),
        foreign(
            CLUSTER,
            Voter {
                disk: DiskId(2),
                ..ME
            },
        ),
        Some(vec![0; 1_000]),
    ];
    for (case, bytes) in cases.into_iter().enumerate() {
        let disk = SimulatedDisk::new(512, NoFaults);
        let (mut log, _) = made(&disk);
        for slot in 1..=5 {
            log.append(&[accepted(slot, 1, b"own")]).unwrap();
        }
        log.sync().unwrap();
        disk.remove("segment-0000000000000001").unwrap();
        if let Some(bytes) = bytes {
            let file: SimulatedFile = disk
                .create("segment-0000000000000001", bytes.len() as u64)
                .unwrap();
            file.write(0, &bytes).unwrap();
        }
        let (_, found) = opened(&disk);
        assert_eq!(found.lost, Some(ballot(1)), "case {case}");
        assert_eq!(
            found.answer(Slot(1)),
            Answer::Unknown(ballot(1)),
            "case {case}"
        );
    }
}
