//! The checker, checked: against histories that others published, and against a search that leaves nothing out.

mod decree;
mod long;
mod objects;
mod oracle;
mod published;
mod random;
mod recording;

use super::{History, Model};

/// One operation of a history written by hand or by chance.
#[derive(Clone, Debug)]
struct Row<M: Model> {
    key: u64,
    operation: M::Operation,
    invoked_at: u64,
    returned: Option<(u64, M::Outcome)>,
}

/// An operation on key 0 that returned.
fn row<M: Model>(
    invoked_at: u64,
    returned_at: u64,
    operation: M::Operation,
    outcome: M::Outcome,
) -> Row<M> {
    Row {
        key: 0,
        operation,
        invoked_at,
        returned: Some((returned_at, outcome)),
    }
}

/// An operation on key 0 that never returned.
fn open<M: Model>(invoked_at: u64, operation: M::Operation) -> Row<M> {
    Row {
        key: 0,
        operation,
        invoked_at,
        returned: None,
    }
}

/// Records the rows as one who doesn't know the order within an instant: invocations first. Call `n` of the history is the `n`th
/// to be invoked, rows of one instant in their order.
fn history<M: Model>(rows: &[Row<M>]) -> History<M> {
    let mut events: Vec<(u64, bool, usize)> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        events.push((row.invoked_at, false, index));
        events.extend(row.returned.iter().map(|(at, _)| (*at, true, index)));
    }
    events.sort_unstable();
    let mut history = History::default();
    let mut ids = vec![None; rows.len()];
    for (at, is_return, index) in events {
        let row = &rows[index];
        if is_return {
            let (_, outcome) = row.returned.clone().unwrap();
            history.respond(at, ids[index].unwrap(), outcome);
        } else {
            ids[index] = Some(history.invoke(at, index as u64, row.key, row.operation.clone()));
        }
    }
    history
}
