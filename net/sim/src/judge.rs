//! Judges what clients saw: each slot is a decree, and what its clients were told must have an order.

use sprag_paxos::Entry;

use crate::failure::Failure;
use crate::history::{Decree, DecreeOperation, History, Verdict};
use crate::invariant::Broken;
use crate::world::World;

/// How many steps the search of one slot may take: a thousand times what the longest has taken. One that takes more is a
/// failure: nothing was shown.
const STEPS_MAX: u64 = 1_000_000;

pub(crate) fn judge(world: &World) -> Result<(), Failure> {
    let what = match history(world).check(STEPS_MAX) {
        Verdict::Linearizable => return Ok(()),
        Verdict::Violation(violation) => violation.to_string(),
        Verdict::GaveUp { key } => format!("no verdict on slot {key} after {STEPS_MAX} steps"),
    };
    Err(Failure::Safety(Broken {
        invariant: "linearizable history",
        source: "Herlihy and Wing, Linearizability, 1990, section 2",
        what,
    }))
}

/// Something that a client saw, in the order of virtual time; at one instant, calls come before answers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    at_ns: u64,
    is_answer: bool,
    call: usize,
}

fn history(world: &World) -> History<Decree> {
    let calls: Vec<_> = world.calls().collect();
    let mut seen = Vec::new();
    for (index, (_, call)) in calls.iter().enumerate() {
        let answered_ns = call.answer.as_ref().map(|(at_ns, _)| *at_ns);
        let times = [(Some(call.began_ns), false), (answered_ns, true)];
        seen.extend(times.iter().filter_map(|(at_ns, is_answer)| {
            Some(Seen {
                at_ns: (*at_ns)?,
                is_answer: *is_answer,
                call: index,
            })
        }));
    }
    seen.sort_unstable();
    let mut history = History::default();
    let mut ids = vec![None; calls.len()];
    for Seen { at_ns, call, .. } in seen {
        let (client, asked) = calls[call];
        if let Some(id) = ids[call] {
            let answer = asked.answer.as_ref().map(|(_, entry)| value(entry));
            history.respond(at_ns, id, answer);
        } else {
            let propose = DecreeOperation::Propose(value(&asked.entry));
            ids[call] = Some(history.invoke(at_ns, client as u64, asked.slot.0, propose));
        }
    }
    history
}

/// The number of a client's command. A no-op is 0, which nobody asks for.
fn value(entry: &Entry) -> u64 {
    let Entry::Commands(bytes) = entry else {
        return 0;
    };
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
