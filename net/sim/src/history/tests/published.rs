//! Histories that others have judged, each with its source.

use super::super::{
    Cell, Issuer, Model, NextToken, Register, RegisterOperation, RegisterOutcome, Verdict,
};
use super::decree::{Decree, DecreeOperation};
use super::objects::{Plain, PlainOperation, PlainOutcome, Queue, QueueOperation};
use super::oracle::is_linearizable;
use super::{Row, history, open, row};

/// Checks each history of the table, and that the oracle agrees with its source too.
fn judge<M: Model>(cases: &[(&str, bool, Vec<Row<M>>)]) {
    for (source, expected, rows) in cases {
        let mut keys: Vec<u64> = rows.iter().map(|row| row.key).collect();
        keys.sort_unstable();
        keys.dedup();
        let alone = |key| {
            rows.iter()
                .filter(|row| row.key == key)
                .cloned()
                .collect::<Vec<_>>()
        };
        let by_oracle = keys.into_iter().all(|key| is_linearizable(&alone(key)));
        assert_eq!(by_oracle, *expected, "the oracle on {source}");
        let verdict = history(rows).check(10_000);
        let found = match &verdict {
            Verdict::Linearizable => true,
            Verdict::Violation(_) => false,
            Verdict::GaveUp { .. } => panic!("gave up on {source}"),
        };
        assert_eq!(found, *expected, "{source}: {verdict:?}");
    }
}

fn on<M: Model>(key: u64, row: Row<M>) -> Row<M> {
    Row { key, ..row }
}

#[test]
fn queues_of_herlihy_and_wing_are_judged_as_in_their_paper() {
    let add = |invoked_at, returned_at, item| {
        row::<Queue>(invoked_at, returned_at, QueueOperation::Add(item), None)
    };
    let take = |invoked_at, returned_at, item| {
        row::<Queue>(invoked_at, returned_at, QueueOperation::Take, Some(item))
    };
    judge(&[
        (
            "1990, figure 1 (a): added at once, taken in one of the two orders, a third begun",
            true,
            vec![
                add(1, 4, 'x'),
                add(2, 3, 'y'),
                take(5, 6, 'x'),
                take(7, 8, 'y'),
                open(9, QueueOperation::Add('z')),
            ],
        ),
        (
            "1990, figure 1 (b): x was in before y came, but y is taken",
            false,
            vec![add(1, 2, 'x'), add(3, 5, 'y'), take(4, 6, 'y')],
        ),
        (
            "1990, figure 1 (c): x is taken before the call that adds it returns",
            true,
            vec![open(1, QueueOperation::Add('x')), take(2, 3, 'x')],
        ),
        (
            "1990, figure 1 (d): y is taken twice",
            false,
            vec![
                add(1, 3, 'x'),
                add(2, 4, 'y'),
                take(5, 7, 'y'),
                take(6, 8, 'y'),
            ],
        ),
        (
            "1990, on locality: each process sees its own order on two queues, and one queue is wrong",
            false,
            vec![
                on(0, add(1, 2, 'x')),
                on(1, add(3, 4, 'y')),
                on(1, add(5, 6, 'x')),
                on(0, add(7, 8, 'y')),
                on(0, take(9, 10, 'y')),
                on(1, take(11, 12, 'x')),
            ],
        ),
    ]);
}

fn read(invoked_at: u64, returned_at: u64, value: u64) -> Row<Plain> {
    row(
        invoked_at,
        returned_at,
        PlainOperation::Read,
        PlainOutcome::Value(value),
    )
}

fn write(invoked_at: u64, returned_at: u64, value: u64) -> Row<Plain> {
    row(
        invoked_at,
        returned_at,
        PlainOperation::Write(value),
        PlainOutcome::Done,
    )
}

#[test]
fn registers_after_herlihy_and_wing_are_judged_as_their_paper_argues() {
    let prefix = || vec![write(1, 2, 5), write(3, 9, 1), read(4, 5, 1)];
    let with = |more: Row<Plain>| [prefix(), vec![more]].concat();
    judge(&[
        (
            "1990: a write takes effect before it returns",
            true,
            prefix(),
        ),
        ("1990: and stays in effect", true, with(read(6, 7, 1))),
        (
            "1990: so that the old value isn't read any more",
            false,
            with(read(6, 7, 5)),
        ),
        (
            "1990: unless a second write of it is under way",
            true,
            [with(read(6, 7, 5)), vec![open(5, PlainOperation::Write(5))]].concat(),
        ),
    ]);
}

#[test]
fn examples_of_porcupine_are_judged_as_there() {
    judge(&[
        (
            "porcupine_test.go TestRegisterModel, from the MIT 6.824 quiz of 2017: reads on both sides of a write",
            true,
            vec![write(0, 100, 100), read(25, 75, 100), read(30, 60, 0)],
        ),
        (
            "porcupine_test.go TestRegisterModel: an old read after a new one",
            false,
            vec![write(0, 100, 200), read(10, 30, 200), read(40, 90, 0)],
        ),
        (
            "porcupine_test.go TestZeroDuration: two reads within one instant",
            true,
            vec![
                write(0, 100, 100),
                read(25, 75, 100),
                read(30, 30, 0),
                read(30, 30, 0),
            ],
        ),
        (
            "porcupine_test.go TestZeroDuration: and an old read after them",
            false,
            vec![
                write(0, 100, 200),
                read(10, 10, 200),
                read(10, 10, 200),
                read(40, 90, 0),
            ],
        ),
    ]);
}

#[test]
fn examples_of_knossos_are_judged_as_there() {
    let set = |invoked_at, returned_at, old, new, outcome| {
        row::<Plain>(
            invoked_at,
            returned_at,
            PlainOperation::CompareAndSet(old, new),
            outcome,
        )
    };
    judge(&[
        (
            "README.md: a crashed write is read",
            true,
            vec![read(1, 4, 3), open(2, PlainOperation::Write(3))],
        ),
        (
            "linear_test.clj crash-test: a crashed write alone",
            true,
            vec![open(1, PlainOperation::Write(1))],
        ),
        (
            "README.md, rethink-fail-minimal.edn: a value is read that nobody wrote",
            false,
            vec![write(1, 2, 0), read(3, 5, 3), write(4, 6, 4), read(7, 8, 4)],
        ),
        (
            "linear_test.clj read-wrong-initial-value-test",
            false,
            vec![read(1, 2, 1)],
        ),
        (
            "linear_test.clj bad-analysis-test-2, cas-failure.edn in short: the write of 2 can only follow the \
             reads of 0, and one more reads 0",
            false,
            vec![
                write(1, 2, 0),
                read(3, 6, 0),
                write(4, 7, 2),
                read(5, 8, 0),
                open(5, PlainOperation::CompareAndSet(1, 1)),
                read(9, 10, 0),
            ],
        ),
        (
            "the crashed compare-and-set of the same, if it could have written 0",
            true,
            vec![
                write(1, 2, 0),
                read(3, 6, 0),
                write(4, 7, 2),
                open(5, PlainOperation::CompareAndSet(2, 0)),
                read(9, 10, 0),
            ],
        ),
        (
            "model.clj cas-register: only one of two from the same value succeeds",
            false,
            vec![
                set(1, 4, 0, 1, PlainOutcome::Done),
                set(2, 3, 0, 2, PlainOutcome::Done),
                read(5, 6, 2),
            ],
        ),
    ]);
}

fn cell(version: u64, value: u64) -> Cell {
    Cell {
        version,
        value: Some(value),
    }
}

fn put(invoked_at: u64, returned_at: u64, value: u64, version: u64) -> Row<Register> {
    let outcome = RegisterOutcome::Written(version);
    row(
        invoked_at,
        returned_at,
        RegisterOperation::Put(value),
        outcome,
    )
}

fn get(invoked_at: u64, returned_at: u64, cell: Cell) -> Row<Register> {
    row(
        invoked_at,
        returned_at,
        RegisterOperation::Get,
        RegisterOutcome::Found(cell),
    )
}

fn compare(
    invoked_at: u64,
    returned_at: u64,
    (expected, value): (u64, u64),
    outcome: RegisterOutcome,
) -> Row<Register> {
    row(
        invoked_at,
        returned_at,
        RegisterOperation::CompareAndPut { expected, value },
        outcome,
    )
}

#[test]
fn known_faults_of_replicated_registers_are_violations() {
    let none = Cell {
        version: 0,
        value: None,
    };
    let swap = |invoked_at, returned_at, value, previous| {
        let outcome = RegisterOutcome::Swapped(previous);
        row::<Register>(
            invoked_at,
            returned_at,
            RegisterOperation::Swap(value),
            outcome,
        )
    };
    judge(&[
        (
            "stale read (Jepsen, \"MongoDB stale reads\", 2015): the old primary answers after the new one wrote",
            false,
            vec![put(1, 2, 10, 1), put(3, 4, 11, 2), get(5, 6, cell(1, 10))],
        ),
        (
            "the same read while the write is under way",
            true,
            vec![put(1, 2, 10, 1), put(3, 6, 11, 2), get(5, 7, cell(1, 10))],
        ),
        (
            "split brain (Ongaro, \"Consensus\", 2014, section 6.4): two leaders answer by turns",
            false,
            vec![
                put(1, 2, 10, 1),
                put(3, 9, 11, 2),
                get(4, 5, cell(2, 11)),
                get(6, 7, cell(1, 10)),
            ],
        ),
        (
            "lost acknowledged write (Jepsen, \"Redis\", 2013): fail-over forgets a put",
            false,
            vec![put(1, 2, 10, 1), put(3, 4, 11, 1), get(5, 6, cell(1, 11))],
        ),
        (
            "dirty read (Jepsen, \"MongoDB\", 2013): a write is read, then rolled back",
            false,
            vec![
                open(1, RegisterOperation::Put(10)),
                get(2, 3, cell(1, 10)),
                put(4, 5, 11, 1),
            ],
        ),
        (
            "lost update (Berenson et al., \"A critique of ANSI SQL isolation levels\", 1995): both from version 1",
            false,
            vec![
                put(1, 2, 10, 1),
                compare(3, 6, (1, 11), RegisterOutcome::Written(2)),
                compare(4, 5, (1, 12), RegisterOutcome::Written(2)),
            ],
        ),
        (
            "the same, one of them refused",
            true,
            vec![
                put(1, 2, 10, 1),
                compare(3, 6, (1, 11), RegisterOutcome::Refused(cell(2, 12))),
                compare(4, 5, (1, 12), RegisterOutcome::Written(2)),
            ],
        ),
        (
            "retry run twice (Ongaro, \"Consensus\", 2014, section 6.3)",
            false,
            vec![
                open(1, RegisterOperation::Put(10)),
                get(2, 3, cell(1, 10)),
                put(4, 5, 11, 2),
                get(6, 7, cell(3, 10)),
            ],
        ),
        (
            "one unknown put fills the one gap in versions",
            true,
            vec![
                open(1, RegisterOperation::Put(10)),
                open(1, RegisterOperation::Swap(11)),
                put(2, 3, 12, 2),
                put(4, 5, 13, 3),
            ],
        ),
        (
            "but it was asked for after the gap",
            false,
            vec![put(2, 3, 12, 2), open(4, RegisterOperation::Put(10))],
        ),
        (
            "a compare-and-put fills no gap but its own",
            false,
            vec![
                open(
                    1,
                    RegisterOperation::CompareAndPut {
                        expected: 1,
                        value: 10,
                    },
                ),
                put(2, 3, 12, 2),
            ],
        ),
        (
            "two swaps replace the same value",
            false,
            vec![swap(1, 4, 10, none), swap(2, 3, 11, none)],
        ),
        (
            "two swaps replace each other's",
            false,
            vec![swap(1, 4, 10, cell(1, 11)), swap(2, 3, 11, cell(1, 10))],
        ),
        (
            "a swap replaces the other's",
            true,
            vec![swap(1, 4, 10, cell(1, 11)), swap(2, 3, 11, none)],
        ),
        (
            "a value is read before anyone asks to store it",
            false,
            vec![get(1, 2, cell(1, 10)), open(3, RegisterOperation::Put(10))],
        ),
    ]);
}

#[test]
fn known_faults_of_a_decree_are_violations() {
    let propose = |invoked_at, returned_at, value, decided| {
        row::<Decree>(
            invoked_at,
            returned_at,
            DecreeOperation::Propose(value),
            Some(decided),
        )
    };
    let learn = |invoked_at, returned_at, decided| {
        row::<Decree>(invoked_at, returned_at, DecreeOperation::Learn, decided)
    };
    judge(&[
        (
            "agreement (Lamport, \"Paxos made simple\", 2001): two values are chosen",
            false,
            vec![propose(1, 4, 10, 10), propose(2, 3, 11, 11)],
        ),
        (
            "non-triviality (the same): a value is chosen that nobody proposed",
            false,
            vec![propose(1, 4, 10, 12)],
        ),
        (
            "a proposal without answer is chosen",
            true,
            vec![
                open(1, DecreeOperation::Propose(12)),
                propose(2, 4, 10, 12),
                learn(5, 6, Some(12)),
            ],
        ),
        (
            "a value is chosen before it was proposed",
            false,
            vec![propose(2, 4, 10, 12), open(5, DecreeOperation::Propose(12))],
        ),
        (
            "what was learnt is forgotten",
            false,
            vec![
                propose(1, 9, 10, 10),
                learn(2, 3, Some(10)),
                learn(4, 5, None),
            ],
        ),
        (
            "what isn't decided yet is learnt as nothing",
            true,
            vec![
                propose(1, 9, 10, 10),
                learn(2, 3, None),
                learn(4, 5, Some(10)),
            ],
        ),
    ]);
}

#[test]
fn known_faults_of_an_issuer_are_violations() {
    let next =
        |invoked_at, returned_at, token| row::<Issuer>(invoked_at, returned_at, NextToken, token);
    judge(&[
        (
            "a token issued twice (Kleppmann, \"How to do distributed locking\", 2016)",
            false,
            vec![next(1, 2, 1), next(3, 6, 2), next(4, 5, 2)],
        ),
        (
            "tokens that fall over time",
            false,
            vec![next(1, 2, 2), next(3, 4, 1)],
        ),
        (
            "tokens that fall at once",
            true,
            vec![next(1, 4, 2), next(2, 3, 1)],
        ),
        (
            "a token that nobody got",
            false,
            vec![next(1, 2, 1), next(3, 4, 3)],
        ),
        (
            "a token that went to someone unknown",
            true,
            vec![next(1, 2, 1), open(2, NextToken), next(3, 4, 3)],
        ),
        (
            "who asked too late for it",
            false,
            vec![next(1, 2, 1), next(3, 4, 3), open(5, NextToken)],
        ),
    ]);
}
