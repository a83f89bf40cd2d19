//! Two contestants, measured in turn.

use crate::Plan;
use sprag_benches::{Result, Side, Timed};

/// What a row came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// Ours and the peer's, in the row's unit.
    pub(crate) ours: f64,
    pub(crate) peer: f64,
    /// What each admitted in all rounds that count.
    pub(crate) ours_admitted: u64,
    pub(crate) peer_admitted: u64,
}

/// Measures both in turn; who goes first changes with every round.
pub(crate) fn between(ours: &Side, peer: &Side, plan: Plan) -> Result<Outcome> {
    alternate(plan, || ours.run(), || peer.run())
}

/// [`between`], of anything that can be measured.
pub(crate) fn alternate(
    plan: Plan,
    mut ours: impl FnMut() -> Result<Timed>,
    mut peer: impl FnMut() -> Result<Timed>,
) -> Result<Outcome> {
    // Memory is touched and branches are learnt before it counts.
    ours()?;
    peer()?;
    let mut measured = [Vec::new(), Vec::new()];
    for round in 0..plan.rounds {
        if round % 2 == 0 {
            measured[0].push(ours()?);
            measured[1].push(peer()?);
        } else {
            measured[1].push(peer()?);
            measured[0].push(ours()?);
        }
    }
    let [ours, peer] = measured;
    let admitted = |timed: &[Timed]| timed.iter().map(|timed| timed.admitted).sum();
    Ok(Outcome {
        ours_admitted: admitted(&ours),
        peer_admitted: admitted(&peer),
        ours: median(ours.iter().map(|timed| timed.ns).collect()),
        peer: median(peer.iter().map(|timed| timed.ns).collect()),
    })
}

/// The middle value, or the mean of the two middle ones; not a number for none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.len() % 2, values.get(middle)) {
        (1, Some(&value)) => value,
        (_, Some(&upper)) => f64::midpoint(values[middle - 1], upper),
        (_, None) => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::{alternate, median};
    use crate::Plan;
    use sprag_benches::{Effort, Timed};
    use std::cell::RefCell;

    #[test]
    fn the_median_is_the_middle_in_order() {
        for (values, expected) in [
            (vec![3.0], 3.0),
            (vec![9.0, 1.0, 2.0], 2.0),
            (vec![4.0, 1.0, 2.0, 9.0], 3.0),
        ] {
            assert!((median(values) - expected).abs() < 1e-9);
        }
        assert!(median(vec![]).is_nan());
    }

    #[test]
    fn contestants_take_turns_and_the_first_round_does_not_count() {
        let order = RefCell::new(String::new());
        let side = |name, ns| {
            let order = &order;
            move || {
                order.borrow_mut().push(name);
                Ok(Timed { ns, admitted: 1 })
            }
        };
        let plan = Plan {
            rounds: 3,
            effort: Effort { divisor: 1 },
        };
        let outcome = alternate(plan, side('o', 2.0), side('p', 4.0)).unwrap();
        assert_eq!(order.borrow().as_str(), "opoppoop");
        assert_eq!((outcome.ours_admitted, outcome.peer_admitted), (3, 3));
        assert!(outcome.ours < outcome.peer);
    }
}
