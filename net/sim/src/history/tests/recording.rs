//! What a history records and refuses, and how a violation reads.

use super::super::{
    Cell, History, Issuer, NextToken, Register, RegisterOperation, RegisterOutcome, Verdict,
};
use super::{history, open, row};

const STEPS_MAX: u64 = 1_000;

fn put_then_get(get_first: bool) -> Verdict<Register> {
    let mut history = History::<Register>::default();
    let put = history.invoke(10, 1, 0, RegisterOperation::Put(7));
    let get = get_first.then(|| history.invoke(20, 2, 0, RegisterOperation::Get));
    history.respond(20, put, RegisterOutcome::Written(1));
    let get = get.unwrap_or_else(|| history.invoke(20, 2, 0, RegisterOperation::Get));
    history.respond(
        20,
        get,
        RegisterOutcome::Found(Cell {
            version: 0,
            value: None,
        }),
    );
    history.check(STEPS_MAX)
}

#[test]
fn events_of_one_instant_are_ordered_as_they_were_recorded() {
    assert_eq!(put_then_get(true), Verdict::Linearizable);
    assert!(matches!(put_then_get(false), Verdict::Violation(_)));
}

#[test]
fn what_never_ran_explains_nothing_and_its_value_may_be_stored_again() {
    let mut history = History::<Register>::default();
    let refused = history.invoke(1, 1, 0, RegisterOperation::Put(7));
    let get = history.invoke(2, 2, 0, RegisterOperation::Get);
    history.respond(
        3,
        get,
        RegisterOutcome::Found(Cell {
            version: 1,
            value: Some(7),
        }),
    );
    assert_eq!(history.check(STEPS_MAX), Verdict::Linearizable);
    history.never_ran(refused);
    assert!(matches!(history.check(STEPS_MAX), Verdict::Violation(_)));
    let put = history.invoke(4, 1, 0, RegisterOperation::Put(7));
    history.respond(5, put, RegisterOutcome::Written(1));
    // It was read before it was put, and that can't be.
    let Verdict::Violation(violation) = history.check(STEPS_MAX) else {
        panic!()
    };
    assert_eq!(violation.culprit.client, 2);
}

#[test]
fn keys_are_objects_of_their_own() {
    let mut history = History::<Issuer>::default();
    let mut next = |key, token| {
        let id = history.invoke(1, 0, key, NextToken);
        history.respond(1, id, token);
        history.check(STEPS_MAX)
    };
    for (key, token) in [(5, 1), (3, 1), (3, 2), (4, 1), (5, 2)] {
        assert_eq!(next(key, token), Verdict::Linearizable);
    }
    let Verdict::Violation(violation) = next(4, 1) else {
        panic!()
    };
    assert_eq!((violation.key, violation.contradiction.len()), (4, 2));
}

#[test]
fn too_few_steps_are_a_failure_unless_another_key_is_in_violation() {
    let rows: Vec<_> = (1..=5)
        .map(|token| row::<Issuer>(token, token, NextToken, token))
        .collect();
    assert_eq!(history(&rows).check(4), Verdict::GaveUp { key: 0 });
    assert_eq!(history(&rows).check(5), Verdict::Linearizable);
    let mut both = rows.clone();
    let mut wrong = row::<Issuer>(9, 9, NextToken, 2);
    wrong.key = 1;
    both.push(wrong);
    assert!(matches!(history(&both).check(4), Verdict::Violation(violation) if violation.key == 1));
}

#[test]
#[should_panic(expected = "7 is stored twice under key 3")]
fn a_value_stored_twice_is_refused() {
    let mut history = History::<Register>::default();
    history.invoke(1, 1, 3, RegisterOperation::Put(7));
    history.invoke(2, 1, 3, RegisterOperation::Swap(7));
}

#[test]
#[should_panic(expected = "an event at 4 after one at 5")]
fn time_that_goes_back_is_refused() {
    let mut history = History::<Issuer>::default();
    let id = history.invoke(5, 1, 0, NextToken);
    history.respond(4, id, 1);
}

#[test]
#[should_panic(expected = "ends twice")]
fn a_second_response_is_refused() {
    let mut history = History::<Issuer>::default();
    let id = history.invoke(5, 1, 0, NextToken);
    history.respond(6, id, 1);
    history.respond(7, id, 1);
}

#[test]
fn a_violation_reads_as_the_few_operations_that_contradict_each_other() {
    let mut rows = Vec::new();
    for version in 1..=12 {
        let at = version * 10;
        let outcome = RegisterOutcome::Written(version);
        rows.push(row::<Register>(
            at,
            at + 3,
            RegisterOperation::Put(100 + version),
            outcome,
        ));
        rows.push(open(at, RegisterOperation::Put(200 + version)));
    }
    let stale = Cell {
        version: 7,
        value: Some(107),
    };
    rows.push(row(
        94,
        106,
        RegisterOperation::Get,
        RegisterOutcome::Found(stale),
    ));
    let Verdict::Violation(violation) = history(&rows).check(STEPS_MAX) else {
        panic!()
    };
    let expected = "\
Key 0 is not linearizable: whatever its other 19 operations did,
no order gives these outcomes:
  client  invoked  returned  operation  outcome
      16       90        93  Put(109)   Written(9)
      24       94       106  Get        Found(107 version 7)
An order of 10 operations explains all responses before; it ends with:
  client  invoked  returned  operation  outcome               state after
       4       30        33  Put(103)   Written(3)            103 version 3
       6       40        43  Put(104)   Written(4)            104 version 4
       8       50        53  Put(105)   Written(5)            105 version 5
      10       60        63  Put(106)   Written(6)            106 version 6
      12       70        73  Put(107)   Written(7)            107 version 7
      14       80        83  Put(108)   Written(8)            108 version 8
      16       90        93  Put(109)   Written(9)            109 version 9
      18      100       103  Put(110)   Written(10)           110 version 10
      24       94       106  Get        Found(107 version 7)  impossible
";
    assert_eq!(violation.to_string(), expected);
}
