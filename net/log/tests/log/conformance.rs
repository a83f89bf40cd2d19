//! What a log does on every disk, the real one and the simulated one alike.

use super::*;

pub(crate) fn a_new_log_remembers_nothing_but_its_voter<D: Disk>(disk: &D) {
    assert_eq!(
        Log::open(disk, CLUSTER, ME.node, &SMALL).map(drop),
        Err(OpenError::Missing)
    );
    let (_, found) = made(disk);
    let nothing = Found {
        voter: ME,
        lost: None,
        state: sprag_paxos::Recovered::default(),
    };
    assert_eq!(found, nothing);
    assert_eq!(found.answer(Slot(1)), Answer::Never);
}

pub(crate) fn what_was_synced_is_there_after_another_start<D: Disk>(disk: &D) {
    let (mut log, _) = made(disk);
    log.promise(ballot(1)).unwrap();
    let appended = log
        .append(&[
            accepted(1, 1, b"one"),
            accepted(2, 1, &[2; 5_000]),
            noop(3, 1),
        ])
        .unwrap();
    assert_eq!((appended, log.synced()), (Position(3), Position(0)));
    assert_eq!(log.sync().unwrap(), appended);
    log.append(&[accepted(2, 2, b"two"), Record::Decided(Slot(1))])
        .unwrap();
    log.promise(ballot(5)).unwrap();
    log.sync().unwrap();
    drop(log);
    for _ in 0..2 {
        let (mut log, found) = opened(disk);
        assert_eq!(
            (found.state.promised, found.state.decided),
            (ballot(5), Slot(1))
        );
        let expected = [
            vote(1, b"one"),
            vote(2, b"two"),
            Vote {
                ballot: ballot(1),
                entry: Entry::Noop,
            },
        ];
        let expected: BTreeMap<_, _> = (1..)
            .map(Slot)
            .zip(expected.map(Answer::Accepted))
            .collect();
        assert_eq!(found.state.answers, expected);
        for (slot, answer) in expected {
            assert_eq!(log.read(slot).unwrap(), answer);
        }
        assert_eq!(log.read(Slot(4)).unwrap(), Answer::Never);
    }
}

pub(crate) fn a_promise_never_goes_back<D: Disk>(disk: &D) {
    let (mut log, _) = made(disk);
    log.promise(ballot(3)).unwrap();
    log.promise(ballot(3)).unwrap();
    let (asked, promised) = (ballot(2), ballot(3));
    assert_eq!(
        log.promise(asked),
        Err(LogError::Backwards { asked, promised })
    );
    log.append(&[accepted(1, 9, b"x")]).unwrap();
    assert_eq!(log.promised(), ballot(9));
    // Not synced, and still promised: the promise comes first.
    drop(log);
    assert_eq!(opened(disk).1.state.promised, ballot(9));
}

pub(crate) fn of_a_slot_the_highest_ballot_counts<D: Disk>(disk: &D) {
    let (mut log, _) = made(disk);
    log.append(&[
        accepted(1, 2, b"two"),
        accepted(1, 3, b"three"),
        accepted(1, 1, b"one"),
    ])
    .unwrap();
    assert_eq!(
        log.read(Slot(1)).unwrap(),
        Answer::Accepted(vote(3, b"three"))
    );
    log.sync().unwrap();
    drop(log);
    assert_eq!(
        opened(disk).1.answer(Slot(1)),
        Answer::Accepted(vote(3, b"three"))
    );
}

pub(crate) fn what_is_decided_is_what_was_accepted_or_learned_last<D: Disk>(disk: &D) {
    let (mut log, _) = made(disk);
    log.append(&[
        accepted(1, 1, b"one"),
        accepted(2, 1, b"stale"),
        accepted(3, 1, b"three"),
    ])
    .unwrap();
    log.append(&[
        learned(2, b"two"),
        learned(4, b"four"),
        learned(5, b"stale"),
        accepted(5, 2, b"five"),
    ])
    .unwrap();
    log.append(&[Record::Promised(ballot(7)), Record::Decided(Slot(6))])
        .unwrap();
    log.sync().unwrap();
    drop(log);
    let (_, found) = opened(disk);
    // Of slot 6 nothing is known, whatever is said of it.
    assert_eq!(
        (found.state.promised, found.state.decided),
        (ballot(7), Slot(5))
    );
    let learned = [(Slot(2), commands(b"two")), (Slot(4), commands(b"four"))];
    assert_eq!(found.state.learned, BTreeMap::from(learned));
    let votes = [
        (1, vote(1, b"one")),
        (2, vote(1, b"stale")),
        (3, vote(1, b"three")),
        (5, vote(2, b"five")),
    ];
    let votes = votes.map(|(slot, vote)| (Slot(slot), Answer::Accepted(vote)));
    assert_eq!(found.state.answers, BTreeMap::from(votes));
}

pub(crate) fn records_of_every_size_come_back_over_many_segments<D: Disk>(disk: &D) {
    let options = LogOptions {
        segments_max: 100,
        ..SMALL
    };
    let (mut log, _) = made(disk);
    drop(log);
    log = Log::open(disk, CLUSTER, ME.node, &options).unwrap().0;
    let largest = 3 * UNIT as usize - 64;
    let sizes = [
        0,
        1,
        63,
        64,
        65,
        4_031,
        4_032,
        4_033,
        8_128,
        largest - 1,
        largest,
    ];
    let entry = |slot: u64| vec![slot as u8; sizes[slot as usize % sizes.len()]];
    for slot in 1..=50 {
        log.append(&[accepted(slot, 1, &entry(slot))]).unwrap();
        if slot % 7 == 0 {
            log.sync().unwrap();
        }
    }
    log.sync().unwrap();
    drop(log);
    let (_, found) = Log::open(disk, CLUSTER, ME.node, &options).unwrap();
    assert_eq!(found.state.answers.len(), 50);
    for (slot, answer) in found.state.answers {
        assert_eq!(answer, Answer::Accepted(vote(1, &entry(slot.0))));
    }
}

pub(crate) fn a_batch_larger_than_a_segment_is_refused<D: Disk>(disk: &D) {
    let (mut log, _) = made(disk);
    let error = log
        .append(&[accepted(1, 1, &[0; 3 * UNIT as usize - 63])])
        .unwrap_err();
    let (records, records_max, bytes, bytes_max) = (1, 64, 3 * UNIT + 64, 3 * UNIT);
    assert_eq!(
        error,
        LogError::TooLarge {
            records,
            bytes,
            records_max,
            bytes_max
        }
    );
    let many: Vec<_> = (1..=65).map(|slot| noop(slot, 1)).collect();
    assert!(matches!(
        log.append(&many).unwrap_err(),
        LogError::TooLarge { records: 65, .. }
    ));
    log.append(&many[..64]).unwrap();
    log.sync().unwrap();
    drop(log);
    assert_eq!(opened(disk).1.state.answers.len(), 64);
}

pub(crate) fn slots_outside_of_the_bounds_are_refused<D: Disk>(disk: &D) {
    let (mut log, _) = made(disk);
    log.append(&[Record::Trimmed(Slot(10))]).unwrap();
    let (slot, trimmed, slots_max) = (Slot(10), Slot(10), 1_000);
    assert_eq!(
        log.append(&[noop(10, 1)]),
        Err(LogError::Trimmed { slot, trimmed })
    );
    assert_eq!(log.read(slot), Err(LogError::Trimmed { slot, trimmed }));
    let slot = Slot(1_011);
    assert_eq!(
        log.append(&[noop(1_011, 1)]),
        Err(LogError::TooFar {
            slot,
            trimmed,
            slots_max
        })
    );
    log.append(&[noop(1_010, 1), noop(11, 1)]).unwrap();
}

pub(crate) fn a_full_log_takes_nothing_until_it_is_trimmed<D: Disk>(disk: &D) {
    let (mut log, _) = made(disk);
    let fill = |log: &mut Log<D>, from: u64| {
        for slot in from.. {
            match log.append(&[accepted(slot, 1, &[1; 100]), Record::Decided(Slot(slot))]) {
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error, LogError::Full { segments_max: 3 });
                    return slot - 1;
                }
            }
        }
        unreachable!()
    };
    let last = fill(&mut log, 1);
    assert_eq!(last, 9);
    log.sync().unwrap();
    log.append(&[Record::Trimmed(Slot(last - 2))]).unwrap();
    // The third segment holds slot 8.
    let last = fill(&mut log, last + 1);
    assert_eq!(last, 14);
    log.sync().unwrap();
    assert_eq!(fill(&mut log, last + 1), last);
    drop(log);
    let (_, found) = opened(disk);
    assert_eq!(
        (found.state.trimmed, found.state.answers.len() as u64),
        (Slot(7), last - 7)
    );
}

pub(crate) fn trimmed_segments_are_used_again<D: Disk>(disk: &D) {
    let (mut log, _) = made(disk);
    for slot in 1..=200 {
        log.append(&[accepted(slot, 1, &[slot as u8; 100])])
            .unwrap();
        log.sync().unwrap();
        log.append(&[Record::Trimmed(Slot(slot.saturating_sub(2)))])
            .unwrap();
        log.sync().unwrap();
        log.upkeep().unwrap();
        assert!(disk.list().unwrap().len() <= 6, "{:?}", disk.list());
    }
    drop(log);
    let (_, found) = opened(disk);
    let slots: Vec<_> = found.state.answers.keys().map(|slot| slot.0).collect();
    assert_eq!((found.state.trimmed, slots), (Slot(198), vec![199, 200]));
}

pub(crate) fn a_trim_counts_for_what_comes_after_it_in_its_batch<D: Disk>(disk: &D) {
    let trim = |slot| Record::Trimmed(Slot(slot));
    let (mut log, _) = made(disk);
    log.append(&[noop(1, 1), noop(2, 1), trim(2), noop(3, 1), trim(1)])
        .unwrap();
    assert_eq!(log.trimmed(), Slot(2));
    let trimmed = |slot, trimmed| {
        let (slot, trimmed) = (Slot(slot), Slot(trimmed));
        Err(LogError::Trimmed { slot, trimmed })
    };
    assert_eq!(
        log.append(&[noop(3, 1), trim(3), noop(3, 2)]),
        trimmed(3, 3)
    );
    assert_eq!(
        log.append(&[trim(3), trim(2), learned(3, b"x")]),
        trimmed(3, 3)
    );
    // Nothing was written.
    assert_eq!((log.appended(), log.trimmed()), (Position(5), Slot(2)));
    log.append(&[noop(1_002, 1), trim(1_000), noop(2_000, 1)])
        .unwrap();
    let (slot, trimmed, slots_max) = (Slot(2_002), Slot(1_001), 1_000);
    let too_far = LogError::TooFar {
        slot,
        trimmed,
        slots_max,
    };
    // Of one batch, wherever it stands.
    assert_eq!(log.append(&[noop(2_002, 1), trim(1_001)]), Err(too_far));
    log.append(&[noop(2_001, 1), trim(1_001)]).unwrap();
    log.sync().unwrap();
    drop(log);
    let (_, found) = opened(disk);
    let slots: Vec<_> = found.state.answers.keys().map(|slot| slot.0).collect();
    assert_eq!(
        (found.state.trimmed, slots),
        (Slot(1_001), vec![1_002, 2_000, 2_001])
    );
}

pub(crate) fn what_makes_room_is_taken_by_a_full_log_with_all_that_waits_beside_it<D: Disk>(
    disk: &D,
) {
    let (mut log, _) = made(disk);
    for slot in 1..=9 {
        log.append(&[noop(slot, 1)]).unwrap();
    }
    // What isn't decided may be needed to decide it.
    log.append(&[noop(10, 1)]).unwrap();
    log.append(&[Record::Decided(Slot(2))]).unwrap();
    log.append(&[noop(11, 1)]).unwrap();
    log.append(&[Record::Decided(Slot(10))]).unwrap();
    let full = LogError::Full { segments_max: 3 };
    log.append(&[noop(12, 1), noop(13, 1)]).unwrap();
    log.append(&[noop(14, 1)]).unwrap();
    assert_eq!(log.append(&[noop(15, 1)]), Err(full));
    log.append(&[noop(15, 1), Record::Trimmed(Slot(5)), noop(16, 1)])
        .unwrap();
    assert_eq!(segments(disk), 6);
    log.sync().unwrap();
    log.upkeep().unwrap();
    // To go back changes nothing.
    log.append(&[Record::Trimmed(Slot(6)), Record::Trimmed(Slot(1))])
        .unwrap();
    log.sync().unwrap();
    log.upkeep().unwrap();
    assert_eq!(segments(disk), 5);
    drop(log);
    let (_, found) = opened(disk);
    let slots: Vec<_> = found.state.answers.keys().map(|slot| slot.0).collect();
    assert_eq!((found.state.trimmed, slots), (Slot(6), (7..=16).collect()));
}

pub(crate) fn a_store_gives_a_trim_to_a_full_log_in_as_many_batches_as_it_takes<D: Disk>(disk: &D) {
    let (mut log, _) = made(disk);
    for slot in 1..=9 {
        log.append(&[noop(slot, 1), Record::Decided(Slot(slot))])
            .unwrap();
    }
    log.sync().unwrap();
    let mut store = Store::new(log);
    let mut ticket = Ticket::NONE;
    let mut persist = |store: &mut Store<D>, record| {
        ticket = Ticket(ticket.0 + 1);
        store.persist(ticket, record).unwrap();
    };
    // More than a segment has room for, further than slots may reach, and what makes room comes last.
    for slot in [10, 11, 1_009] {
        persist(&mut store, accepted(slot, 1, &[1; 8_000]));
    }
    let refused = store.begin_sync().map(drop);
    assert!(
        matches!(refused, Err(LogError::TooFar { .. })),
        "{refused:?}"
    );
    persist(&mut store, accepted(1_002, 1, b"x"));
    persist(&mut store, Record::Trimmed(Slot(9)));
    persist(&mut store, accepted(13, 1, b"x"));
    let done = store.begin_sync().unwrap().unwrap().run();
    assert_eq!(store.durable(), Ticket::NONE);
    store.finish_sync(done).unwrap();
    assert_eq!(store.durable(), Ticket(6));
    drop(store);
    let (_, found) = opened(disk);
    let slots: Vec<_> = found.state.answers.keys().map(|slot| slot.0).collect();
    assert_eq!(
        (found.state.trimmed, slots),
        (Slot(9), vec![10, 11, 13, 1_002, 1_009])
    );
}

pub(crate) fn what_nobody_waits_for_is_written_once_there_is_much_of_it<D: Disk>(disk: &D) {
    for (bytes, expected) in [(0, 1_025), (8_000, 132)] {
        Log::wipe(disk).unwrap();
        let (log, _) = made(disk);
        let mut store = Store::new(log);
        let learn = |slot| learned(slot, &vec![1; bytes]);
        let mut slots = (1..).take_while(|slot| {
            store.persist(Ticket(*slot), learn(*slot)).unwrap();
            !store.wants_sync()
        });
        assert_eq!(slots.by_ref().count() + 1, expected, "{bytes}");
    }
}

pub(crate) fn what_is_trimmed_stays_decided<D: Disk>(disk: &D) {
    let decided = |slot| Record::Decided(Slot(slot));
    let trim = |slot| Record::Trimmed(Slot(slot));
    let learn = |slot| learned(slot, b"x");
    let (mut log, _) = made(disk);
    let steps: [(&[Record], u64); 5] = [
        (&[learn(1), learn(2)], 0),
        (&[decided(2)], 2),
        // Of a snapshot that came from another: nothing up to there is on record.
        (&[trim(8), learn(9)], 8),
        (&[decided(3)], 8),
        (&[decided(9), decided(4), trim(8)], 8),
    ];
    for (records, decided) in steps {
        log.append(records).unwrap();
        assert_eq!(log.decided(), Slot(decided));
        log.sync().unwrap();
        drop(log);
        let (again, found) = opened(disk);
        assert_eq!(
            (found.state.decided, again.decided()),
            (Slot(decided), Slot(decided))
        );
        log = again;
    }
}

pub(crate) fn a_sync_covers_what_was_appended_before_it_began<D: Disk>(disk: &D) {
    let (mut log, _) = made(disk);
    assert!(log.begin_sync().unwrap().is_none());
    log.append(&[noop(1, 1)]).unwrap();
    let job = log.begin_sync().unwrap().unwrap();
    for slot in 2..=9 {
        log.append(&[noop(slot, 1)]).unwrap();
    }
    assert!(log.begin_sync().unwrap().is_none());
    assert_eq!(log.sync(), Err(LogError::Busy("sync")));
    let done = job.run();
    assert_eq!(log.finish_sync(done).unwrap(), Position(1));
    assert_eq!(log.sync().unwrap(), Position(9));
    drop(log);
    assert_eq!(opened(disk).1.state.answers.len(), 9);
}

pub(crate) fn while_the_next_segment_is_made_elsewhere_a_full_one_waits<D: Disk>(disk: &D) {
    let (mut log, _) = made(disk);
    let job = log.begin_upkeep().unwrap().unwrap();
    assert!(log.begin_upkeep().unwrap().is_none());
    for slot in 1..=3 {
        log.append(&[noop(slot, 1)]).unwrap();
    }
    assert_eq!(log.append(&[noop(4, 1)]), Err(LogError::Busy("upkeep")));
    let done = job.run();
    log.finish_upkeep(done).unwrap();
    log.append(&[noop(4, 1)]).unwrap();
    log.sync().unwrap();
    drop(log);
    assert_eq!(opened(disk).1.state.answers.len(), 4);
}

pub(crate) fn a_disk_is_made_for_one_voter_and_opened_for_no_other<D: Disk>(disk: &D) {
    made(disk);
    let other = Identity {
        cluster: CLUSTER,
        voter: Voter {
            disk: DiskId(2),
            ..ME
        },
    };
    assert_eq!(
        Log::create(disk, other, &SMALL),
        Err(OpenError::Exists { disk: 0xd15c })
    );
    let (found, expected) = (CLUSTER, ClusterId(8));
    let refused = Log::open(disk, expected, ME.node, &SMALL).map(drop);
    assert_eq!(refused, Err(OpenError::OtherCluster { found, expected }));
    let (found, expected) = (ME.node, NodeId(2));
    let refused = Log::open(disk, CLUSTER, expected, &SMALL).map(drop);
    assert_eq!(refused, Err(OpenError::OtherNode { found, expected }));
    Log::wipe(disk).unwrap();
    assert_eq!(disk.list().unwrap(), Vec::<String>::new());
    Log::create(disk, other, &SMALL).unwrap();
    assert_eq!(opened(disk).1.voter, other.voter);
}

pub(crate) fn options_out_of_bounds_are_named<D: Disk>(disk: &D) {
    let cases = [
        (
            LogOptions {
                segment_bytes: 4_097,
                ..SMALL
            },
            "segment_bytes is 4097",
        ),
        (
            LogOptions {
                segment_bytes: 12_288,
                ..SMALL
            },
            "segment_bytes is 12288",
        ),
        (
            LogOptions {
                segment_bytes: (1 << 30) + 4_096,
                ..SMALL
            },
            "segment_bytes is 1073745920",
        ),
        (
            LogOptions {
                segments_max: 1,
                ..SMALL
            },
            "segments_max is 1",
        ),
        (
            LogOptions {
                slots_max: 0,
                ..SMALL
            },
            "slots_max is 0",
        ),
    ];
    for (options, text) in cases {
        let error = Log::create(disk, IDENTITY, &options).unwrap_err();
        assert!(error.to_string().starts_with(text), "{error}");
    }
    let error = Log::create(
        disk,
        IDENTITY,
        &LogOptions {
            slots_max: 0,
            ..SMALL
        },
    )
    .unwrap_err();
    assert_eq!(error, OpenError::Options(OptionsError::Slots));
}
