//! What linearizable means, by trying everything: all orders that respect time, of all sets of unknown operations. It knows of
//! rows and of `apply`, and shares nothing with the search.

use std::collections::HashSet;

use super::super::Model;
use super::Row;

/// Whether an order exists, without any saving; for at most eight rows or so.
pub(super) fn is_linearizable<M: Model>(rows: &[Row<M>]) -> bool {
    goes_on(rows, 0, &M::initial(), &mut |_, _| true)
}

/// The same, but entering no set of rows and state twice; for at most sixteen rows or so.
pub(super) fn is_linearizable_remembering<M: Model>(rows: &[Row<M>]) -> bool {
    let mut entered = HashSet::new();
    goes_on(rows, 0, &M::initial(), &mut |placed, state| {
        entered.insert((placed, state.clone()))
    })
}

fn goes_on<M: Model>(
    rows: &[Row<M>],
    placed: u32,
    state: &M::State,
    enters: &mut dyn FnMut(u32, &M::State) -> bool,
) -> bool {
    let is_missing = |index: usize| placed >> index & 1 == 0;
    if rows
        .iter()
        .enumerate()
        .all(|(index, row)| !is_missing(index) || row.returned.is_none())
    {
        return true;
    }
    for (index, row) in rows.iter().enumerate() {
        let precedes = |other: &Row<M>| {
            other
                .returned
                .as_ref()
                .is_some_and(|(returned_at, _)| *returned_at < row.invoked_at)
        };
        let waits = |(other, row): (usize, &Row<M>)| is_missing(other) && precedes(row);
        if !is_missing(index) || rows.iter().enumerate().any(waits) {
            continue;
        }
        let (after, outcome) = M::apply(state, &row.operation);
        if row
            .returned
            .as_ref()
            .is_some_and(|(_, returned)| *returned != outcome)
        {
            continue;
        }
        let placed = placed | 1 << index;
        if enters(placed, &after) && goes_on(rows, placed, &after, enters) {
            return true;
        }
    }
    false
}

/// Whether this order of rows is one: it respects time, leaves out none that returned and gives each its outcome.
pub(super) fn is_an_order<M: Model>(rows: &[Row<M>], order: &[usize]) -> bool {
    let mut state = M::initial();
    let mut missing: HashSet<usize> = (0..rows.len()).collect();
    for &index in order {
        let row = &rows[index];
        let is_late = |other: &usize| {
            rows[*other]
                .returned
                .as_ref()
                .is_some_and(|(at, _)| *at < row.invoked_at)
        };
        if !missing.remove(&index) || missing.iter().any(is_late) {
            return false;
        }
        let (after, outcome) = M::apply(&state, &row.operation);
        if row
            .returned
            .as_ref()
            .is_some_and(|(_, returned)| *returned != outcome)
        {
            return false;
        }
        state = after;
    }
    missing.iter().all(|index| rows[*index].returned.is_none())
}
