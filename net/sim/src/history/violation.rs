//! Why a history isn't linearizable, in as few operations as show it.

use std::fmt::{self, Display, Formatter};

use super::problem::{Observed, Problem};
use super::search::{Found, search};
use super::{Call, Fate, Model};

/// How many operations of the explained prefix a table shows.
const ROWS_MAX: usize = 8;

/// A key whose operations no order explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation<M: Model> {
    /// The key.
    pub key: u64,
    /// How many operations on it had been invoked when the culprit returned.
    pub calls: usize,
    /// Operations whose outcomes contradict each other, whatever the other calls did and returned; by invocation. None can be
    /// left out, unless finding that took too many steps.
    pub contradiction: Vec<Call<M>>,
    /// An order that explains every response before the culprit's; `None` if finding it took too many steps.
    pub prefix: Option<Vec<Step<M>>>,
    /// The operation whose response no order explains.
    pub culprit: Call<M>,
}

/// An operation in an order, and the state that it leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<M: Model> {
    /// The operation.
    pub call: Call<M>,
    /// The state.
    pub after: M::State,
}

/// Explains why no order of `observed`, of which there is at least one with a response, exists.
///
/// Two facts make it short. A prefix of a linearizable history is linearizable, so there is a first response that
/// can't be explained. And if a history is linearizable, it still is when less is known of it; so if there is no order even
/// when some outcomes are forgotten, the others are the reason.
pub(super) fn explain<M: Model>(
    key: u64,
    calls: &[Call<M>],
    observed: &[Observed<M>],
    steps_max: u64,
) -> Violation<M> {
    let mut responses: Vec<(usize, usize)> = observed
        .iter()
        .filter_map(|observed| Some((observed.returned?.0, observed.call)))
        .collect();
    responses.sort_unstable();
    // Up to `explained` responses an order exists, or is too hard to find; up to `unexplained` none does.
    let (mut explained, mut unexplained) = (0, responses.len());
    let mut prefix = Some(Vec::new());
    while explained + 1 < unexplained {
        let middle = usize::midpoint(explained, unexplained);
        let part = up_to(observed, responses[middle - 1].0);
        let mut steps = steps_max;
        match search(&Problem::new(&part), &mut steps) {
            Found::Order(order) => (explained, prefix) = (middle, Some(order)),
            Found::GaveUp => (explained, prefix) = (middle, None),
            Found::Nothing => unexplained = middle,
        }
    }
    let (last, culprit) = responses[unexplained - 1];
    let part = up_to(observed, last);
    Violation {
        key,
        calls: part.len(),
        contradiction: contradiction(part, steps_max)
            .into_iter()
            .map(|call| calls[call].clone())
            .collect(),
        prefix: prefix.map(|order| replay(calls, &order)),
        culprit: calls[culprit].clone(),
    }
}

/// What had happened when the event `last` had.
fn up_to<'a, M: Model>(observed: &[Observed<'a, M>], last: usize) -> Vec<Observed<'a, M>> {
    let invoked = observed.iter().filter(|observed| observed.invoked <= last);
    invoked
        .map(|observed| Observed {
            returned: observed.returned.filter(|(order, _)| *order <= last),
            ..*observed
        })
        .collect()
}

/// Forgets outcomes, first many at a time and then one by one, as long as there is no order; returns the calls whose outcomes are
/// left.
fn contradiction<M: Model>(mut part: Vec<Observed<M>>, mut steps: u64) -> Vec<usize> {
    let mut size = part.len();
    while size > 0 {
        let mut start = 0;
        while start < part.len() {
            let end = part.len().min(start + size);
            let forgotten = start..end;
            let kept: Vec<_> = part[forgotten.clone()]
                .iter()
                .map(|call| call.returned)
                .collect();
            for call in &mut part[forgotten.clone()] {
                call.returned = None;
            }
            if kept.iter().any(Option::is_some)
                && !matches!(search(&Problem::new(&part), &mut steps), Found::Nothing)
            {
                for (call, returned) in part[forgotten].iter_mut().zip(kept) {
                    call.returned = returned;
                }
            }
            start = end;
        }
        size /= 2;
    }
    part.iter()
        .filter(|call| call.returned.is_some())
        .map(|call| call.call)
        .collect()
}

fn replay<M: Model>(calls: &[Call<M>], order: &[usize]) -> Vec<Step<M>> {
    let mut state = M::initial();
    let step = |call: &usize| {
        let call = calls[*call].clone();
        state = M::apply(&state, &call.operation).0;
        Step {
            call,
            after: state.clone(),
        }
    };
    order.iter().map(step).collect()
}

impl<M: Model> Display for Violation<M> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Self {
            key,
            calls,
            contradiction,
            prefix,
            culprit,
        } = self;
        let others = calls - contradiction.len();
        writeln!(
            f,
            "Key {key} is not linearizable: whatever its other {others} operations did,"
        )?;
        writeln!(f, "no order gives these outcomes:")?;
        let rows = contradiction
            .iter()
            .map(|call| cells(call, String::new()))
            .collect();
        table(f, rows, "")?;
        let Some(prefix) = prefix else { return Ok(()) };
        let shown = &prefix[prefix.len().saturating_sub(ROWS_MAX)..];
        let of = prefix.len();
        writeln!(
            f,
            "An order of {of} operations explains all responses before; it ends with:"
        )?;
        let step = |step: &Step<M>| cells(&step.call, format!("{:?}", step.after));
        let mut rows: Vec<_> = shown.iter().map(step).collect();
        rows.push(cells(culprit, "impossible".to_owned()));
        table(f, rows, "state after")
    }
}

fn cells<M: Model>(call: &Call<M>, after: String) -> [String; 6] {
    let (returned, outcome) = match &call.fate {
        Fate::Returned { outcome, at, .. } => (at.to_string(), format!("{outcome:?}")),
        Fate::Unknown | Fate::NeverRan => ("never".to_owned(), "unknown".to_owned()),
    };
    let operation = format!("{:?}", call.operation);
    [
        call.client.to_string(),
        call.invoked_at.to_string(),
        returned,
        operation,
        outcome,
        after,
    ]
}

fn table(f: &mut Formatter, rows: Vec<[String; 6]>, last: &str) -> fmt::Result {
    let head = [
        "client",
        "invoked",
        "returned",
        "operation",
        "outcome",
        last,
    ]
    .map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let [client, invoked, returned, operation, outcome, _] = [0, 1, 2, 3, 4, 5].map(width);
    for row in &rows {
        let line = format!(
            "  {:>client$}  {:>invoked$}  {:>returned$}  {:operation$}  {:outcome$}  {}",
            row[0], row[1], row[2], row[3], row[4], row[5]
        );
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}
