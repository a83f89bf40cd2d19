//! Histories by chance: of an object that is atomic, then bent a little, each judged by the checker and by trying everything.

use std::fmt::Debug;
use std::mem::discriminant;

use fastrand::Rng;

use super::super::{
    Call, Cell, Fate, Issuer, Model, NextToken, Register, RegisterOperation, RegisterOutcome,
    Verdict,
};
use super::decree::{Decree, DecreeOperation};
use super::objects::{Plain, PlainOperation, PlainOutcome, Queue, QueueOperation};
use super::oracle::{is_an_order, is_linearizable, is_linearizable_remembering};
use super::{Row, history};

/// An object of which histories can be made by chance.
pub(super) trait Chance: Model {
    /// Any operation; what it stores is `fresh`.
    fn operation(rng: &mut Rng, fresh: u64) -> Self::Operation;

    /// Any outcome that the operation could have, after up to `stored` values were stored.
    fn outcome(rng: &mut Rng, operation: &Self::Operation, stored: u64) -> Self::Outcome;
}

fn any_value(rng: &mut Rng, stored: u64) -> Option<u64> {
    rng.bool().then(|| rng.u64(1..=stored))
}

impl Chance for Decree {
    fn operation(rng: &mut Rng, fresh: u64) -> DecreeOperation {
        if rng.bool() {
            DecreeOperation::Propose(fresh)
        } else {
            DecreeOperation::Learn
        }
    }

    fn outcome(rng: &mut Rng, _: &DecreeOperation, stored: u64) -> Option<u64> {
        any_value(rng, stored)
    }
}

impl Chance for Issuer {
    fn operation(_: &mut Rng, _: u64) -> NextToken {
        NextToken
    }

    fn outcome(rng: &mut Rng, _: &NextToken, stored: u64) -> u64 {
        rng.u64(1..=stored)
    }
}

impl Chance for Register {
    fn operation(rng: &mut Rng, fresh: u64) -> RegisterOperation {
        match rng.u8(0..5) {
            0 | 1 => RegisterOperation::Get,
            2 => RegisterOperation::Put(fresh),
            3 => RegisterOperation::Swap(fresh),
            _ => {
                let expected = rng.u64(0..=fresh / 2);
                RegisterOperation::CompareAndPut {
                    expected,
                    value: fresh,
                }
            }
        }
    }

    fn outcome(rng: &mut Rng, operation: &RegisterOperation, stored: u64) -> RegisterOutcome {
        let version = rng.u64(0..=stored / 2 + 1);
        let value = (version > 0).then(|| rng.u64(1..=stored));
        let cell = Cell { version, value };
        match operation {
            RegisterOperation::Get => RegisterOutcome::Found(cell),
            RegisterOperation::Put(_) => RegisterOutcome::Written(version + 1),
            RegisterOperation::CompareAndPut { expected, .. } if rng.bool() => {
                RegisterOutcome::Written(expected + 1)
            }
            RegisterOperation::CompareAndPut { .. } => RegisterOutcome::Refused(cell),
            RegisterOperation::Swap(_) => RegisterOutcome::Swapped(cell),
        }
    }
}

impl Chance for Plain {
    fn operation(rng: &mut Rng, _: u64) -> PlainOperation {
        match rng.u8(0..4) {
            0 | 1 => PlainOperation::Read,
            2 => PlainOperation::Write(rng.u64(0..4)),
            _ => PlainOperation::CompareAndSet(rng.u64(0..4), rng.u64(0..4)),
        }
    }

    fn outcome(rng: &mut Rng, operation: &PlainOperation, _: u64) -> PlainOutcome {
        match operation {
            PlainOperation::Read => PlainOutcome::Value(rng.u64(0..4)),
            PlainOperation::CompareAndSet(..) if rng.bool() => PlainOutcome::Differs,
            PlainOperation::Write(_) | PlainOperation::CompareAndSet(..) => PlainOutcome::Done,
        }
    }
}

impl Chance for Queue {
    fn operation(rng: &mut Rng, _: u64) -> QueueOperation {
        if rng.bool() {
            QueueOperation::Add(rng.char('a'..='d'))
        } else {
            QueueOperation::Take
        }
    }

    fn outcome(rng: &mut Rng, operation: &QueueOperation, _: u64) -> Option<char> {
        match operation {
            QueueOperation::Add(_) => None,
            QueueOperation::Take => rng.bool().then(|| rng.char('a'..='d')),
        }
    }
}

/// How a run of clients looks.
pub(super) struct Shape {
    pub(super) calls: usize,
    pub(super) clients: usize,
    /// How many of a hundred operations get no response.
    pub(super) unknown: u8,
    /// The longest time from invocation to effect, from effect to response, and from response to the next invocation.
    pub(super) pause_max: u64,
}

/// What clients of an atomic object see: each operation takes effect at an instant between its invocation and its
/// response; half of those without response take effect at some time, the others never.
pub(super) fn run<M: Chance>(rng: &mut Rng, shape: &Shape) -> Vec<Row<M>> {
    let mut free_at = vec![0; shape.clients];
    let mut effects = Vec::new();
    let mut rows = Vec::new();
    for index in 0..shape.calls {
        let client = rng.usize(0..shape.clients);
        let mut pause = || rng.u64(0..=shape.pause_max);
        let invoked_at = free_at[client] + pause();
        let effect_at = invoked_at + pause();
        let returned_at = effect_at + pause();
        free_at[client] = returned_at;
        let is_unknown = rng.u8(0..100) < shape.unknown;
        if !is_unknown {
            effects.push((effect_at, index, Some(returned_at)));
        } else if rng.bool() {
            effects.push((invoked_at + rng.u64(0..=shape.pause_max * 10), index, None));
        }
        let operation = M::operation(rng, index as u64 + 1);
        rows.push(Row {
            key: 0,
            operation,
            invoked_at,
            returned: None,
        });
    }
    effects.sort_unstable();
    let mut state = M::initial();
    for (_, index, returned_at) in effects {
        let row: &mut Row<M> = &mut rows[index];
        let (after, outcome) = M::apply(&state, &row.operation);
        state = after;
        row.returned = returned_at.map(|at| (at, outcome));
    }
    rows
}

/// Changes one thing: an outcome, a time, what was asked, or whether there was a response.
pub(super) fn bend<M: Chance>(rng: &mut Rng, rows: &mut [Row<M>]) {
    let stored = rows.len() as u64;
    let index = rng.usize(0..rows.len());
    let other = rng.usize(0..rows.len());
    let end = rows
        .iter()
        .map(|row| row.returned.as_ref().map_or(0, |(at, _)| *at))
        .max();
    let change = rng.u8(0..10);
    let (before, bent) = (rows[other].clone(), &mut rows[index]);
    match (change, &mut bent.returned) {
        (0..4, Some((_, outcome))) => *outcome = M::outcome(rng, &bent.operation, stored),
        (4, Some((at, _))) => *at = rng.u64(bent.invoked_at..=*at),
        (5, Some((at, _))) => bent.invoked_at = rng.u64(bent.invoked_at..=*at),
        (6, Some((at, _))) => {
            let length = *at - bent.invoked_at;
            bent.invoked_at = rng.u64(0..=end.unwrap_or(0));
            *at = bent.invoked_at + length;
        }
        (7, _) if discriminant(&before.operation) == discriminant(&bent.operation) => {
            rows[other].operation = std::mem::replace(&mut bent.operation, before.operation);
        }
        (8, returned) => *returned = None,
        (9, returned @ None) => {
            let at = bent.invoked_at + rng.u64(0..=end.unwrap_or(0));
            *returned = Some((at, M::outcome(rng, &bent.operation, stored)));
        }
        _ => {}
    }
}

/// Checks what the verdict says of the rows: whether `is_linearizable`, and if not, each claim of the explanation.
fn compare<M: Model>(rows: &[Row<M>], is_linearizable: bool, seed: u64) {
    let found = history(rows).check(1_000_000);
    let Verdict::Violation(violation) = found else {
        assert!(
            is_linearizable,
            "seed {seed}: {found:?}, but nothing explains {rows:#?}"
        );
        assert_eq!(found, Verdict::Linearizable, "seed {seed}");
        return;
    };
    assert!(
        !is_linearizable,
        "seed {seed}: {violation}but there is an order of {rows:#?}"
    );
    // The client is the row's index.
    let place = |call: &Call<M>| call.client as usize;
    let reasons: Vec<usize> = violation.contradiction.iter().map(place).collect();
    let culprit = place(&violation.culprit);
    assert!(reasons.contains(&culprit), "seed {seed}: {violation}");
    // What the reasons prove, they prove of what was invoked before the culprit returned.
    let response = |call: &Call<M>| match call.fate {
        Fate::Returned { order, .. } => Some(order),
        Fate::Unknown | Fate::NeverRan => None,
    };
    let last = response(&violation.culprit).unwrap();
    let calls = history(rows);
    let in_time: Vec<usize> = calls
        .calls()
        .iter()
        .filter(|call| call.invoked < last)
        .map(place)
        .collect();
    let invoked: Vec<Row<M>> = in_time.iter().map(|index| rows[*index].clone()).collect();
    assert_eq!(violation.calls, invoked.len(), "seed {seed}");
    let forgetting = |forgotten: Option<usize>| {
        let mut rows = invoked.clone();
        for (row, index) in rows.iter_mut().zip(&in_time) {
            row.returned
                .take_if(|_| !reasons.contains(index) || Some(*index) == forgotten);
        }
        is_linearizable_remembering(&rows)
    };
    assert!(
        !forgetting(None),
        "seed {seed}: no contradiction in {violation}"
    );
    for reason in &reasons {
        assert!(
            forgetting(Some(*reason)),
            "seed {seed}: {reason} isn't needed in {violation}"
        );
    }
    // The prefix explains all that had returned before.
    let mut before = rows.to_vec();
    for call in calls.calls() {
        before[place(call)]
            .returned
            .take_if(|_| response(call) >= Some(last));
    }
    let order: Vec<usize> = violation
        .prefix
        .iter()
        .flatten()
        .map(|step| place(&step.call))
        .collect();
    assert!(is_an_order(&before, &order), "seed {seed}: {violation}");
}

/// Makes `histories`, each once straight and once bent, and asserts that both verdicts come often.
fn agree<M: Chance + Debug>(histories: u64, calls: usize, decide: fn(&[Row<M>]) -> bool) {
    let mut linearizable = 0;
    for seed in 0..histories {
        let mut rng = Rng::with_seed(seed);
        let shape = Shape {
            calls: rng.usize(3..=calls),
            clients: rng.usize(2..=4),
            unknown: rng.u8(0..50),
            pause_max: rng.u64(1..=4),
        };
        let mut rows = run::<M>(&mut rng, &shape);
        assert!(
            decide(&rows),
            "seed {seed}: an atomic object, and yet {rows:#?}"
        );
        compare(&rows, true, seed);
        for _ in 0..rng.u8(1..=6) {
            bend(&mut rng, &mut rows);
        }
        let expected = decide(&rows);
        linearizable += u64::from(expected);
        compare(&rows, expected, seed);
    }
    let often = histories / 5..=histories / 5 * 4;
    assert!(
        often.contains(&linearizable),
        "{linearizable} of {histories} are linearizable"
    );
}

#[test]
fn small_histories_are_judged_as_by_trying_every_order() {
    const HISTORIES: u64 = 5_000;
    agree::<Decree>(HISTORIES, 7, is_linearizable);
    agree::<Register>(HISTORIES, 7, is_linearizable);
    agree::<Issuer>(HISTORIES, 7, is_linearizable);
    agree::<Plain>(HISTORIES, 7, is_linearizable);
    agree::<Queue>(HISTORIES, 7, is_linearizable);
}

#[test]
fn larger_histories_are_judged_as_by_trying_every_set_and_state() {
    const HISTORIES: u64 = 1_000;
    agree::<Decree>(HISTORIES, 12, is_linearizable_remembering);
    agree::<Register>(HISTORIES, 12, is_linearizable_remembering);
    agree::<Issuer>(HISTORIES, 12, is_linearizable_remembering);
    agree::<Plain>(HISTORIES, 12, is_linearizable_remembering);
    agree::<Queue>(HISTORIES, 12, is_linearizable_remembering);
}
