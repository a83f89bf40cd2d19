//! Goes everywhere, breadth first.

use foldhash::HashSet;
use std::fmt;

use crate::atlas::Atlas;
use crate::bounds::Bounds;
use crate::invariant::{Broken, Chosen};
use crate::node::{Node, Step};

/// What came of a model.
#[derive(Debug)]
pub struct Report {
    /// How many states there are within the bounds, or were found before the search ended.
    pub states: usize,
    /// How many steps lead from one of them to another.
    pub steps: u64,
    /// How many states single nodes have.
    pub node_states: usize,
    /// How many different messages were sent.
    pub messages: usize,
    /// The most slots that every node of some state knows to be decided.
    pub decided_by_all: u64,
    /// The way to a broken invariant, if there is one.
    pub counterexample: Option<Counterexample>,
}

/// A shortest way to a broken invariant.
#[derive(Debug)]
pub struct Counterexample {
    /// The invariant.
    pub broken: Broken,
    /// The steps, as text, one a line.
    pub steps: Vec<String>,
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "  {step}")?;
        }
        write!(f, "{}", self.broken)
    }
}

/// A state of the whole: by node, the number of its state. What was sent is part of its sender.
type State<const NODES: usize> = [u32; NODES];

/// A state that was reached, and from which.
#[derive(Clone, Copy, Debug)]
struct Reached<const NODES: usize> {
    state: State<NODES>,
    from: u32,
}

struct Explorer<'a, const NODES: usize> {
    bounds: &'a Bounds,
    atlas: Atlas,
    seen: HashSet<State<NODES>>,
    /// In the order in which they were reached, which is the order in which they are left.
    reached: Vec<Reached<NODES>>,
    steps: u64,
    decided_by_all: u64,
}

/// Goes to every state within `bounds`, whose configuration has as many voters as there are `NODES`; stops at the first
/// broken invariant. Bugs that this thread has planted are in.
pub fn explore<const NODES: usize>(bounds: &Bounds) -> Report {
    let mut atlas = Atlas::new(bounds);
    let start: State<NODES> = std::array::from_fn(|index| atlas.number(Node::new(index, bounds)));
    let mut explorer = Explorer {
        bounds,
        atlas,
        seen: std::iter::once(start).collect(),
        reached: vec![Reached {
            state: start,
            from: 0,
        }],
        steps: 0,
        decided_by_all: 0,
    };
    let mut counterexample = None;
    let mut next = 0;
    while next < explorer.reached.len().min(bounds.states_max) {
        if let Err((broken, last)) = explorer.leave(next) {
            let mut steps = explorer.way_to(next);
            steps.push(last);
            counterexample = Some(Counterexample { broken, steps });
            break;
        }
        next += 1;
    }
    Report {
        states: explorer.reached.len(),
        steps: explorer.steps,
        node_states: explorer.atlas.len(),
        messages: explorer.atlas.letters.len(),
        decided_by_all: explorer.decided_by_all,
        counterexample,
    }
}

impl<const NODES: usize> Explorer<'_, NODES> {
    /// Takes every step from the state reached as number `from`.
    fn leave(&mut self, from: usize) -> Result<(), (Broken, String)> {
        let state = self.reached[from].state;
        self.look_who_decided(&state);
        let mut all = Vec::new();
        for index in 0..NODES {
            let transitions = self.transitions(&state, index);
            let transitions =
                transitions.map_err(|(broken, step)| (broken, self.text(index, step)))?;
            all.extend(
                transitions
                    .into_iter()
                    .map(|transition| (index, transition)),
            );
        }
        // Nothing is missed: see "What is left out" on the crate's page.
        let gain = all
            .iter()
            .position(|(_, transition)| self.atlas.transition(*transition).is_gain);
        if let Some(gain) = gain {
            all = vec![all[gain]];
        }
        for (index, transition) in all {
            self.take(from, index, transition).map_err(|broken| {
                (
                    broken,
                    self.text(index, self.atlas.transition(transition).step),
                )
            })?;
        }
        Ok(())
    }

    /// The transitions of the node at `index`: of its own, by each other's letters, and crashes if there may be one.
    fn transitions(
        &mut self,
        state: &State<NODES>,
        index: usize,
    ) -> Result<Vec<u32>, (Broken, Step)> {
        let mut transitions = Vec::new();
        for sender in 0..NODES {
            if sender == index {
                transitions.extend_from_slice(&self.atlas.own(index, state[index])?);
            } else {
                let mail = self.atlas.place(state[sender]).mail[index];
                transitions.extend_from_slice(&self.atlas.taking(index, state[index], mail)?);
            }
        }
        transitions.extend_from_slice(&self.atlas.crashes(index, state[index])?);
        Ok(transitions)
    }

    fn take(&mut self, from: usize, index: usize, transition: u32) -> Result<(), Broken> {
        let transition = self.atlas.transition(transition);
        let mut state = self.reached[from].state;
        state[index] = transition.to;
        self.steps += 1;
        if !transition.claims.is_empty() || transition.has_new_votes {
            let nodes = state.map(|number| &*self.atlas.place(number).node);
            let chosen = Chosen::by(&self.bounds.configuration, &nodes);
            if transition.has_new_votes {
                chosen.is_one()?;
            }
            for claim in &transition.claims {
                chosen.allows(claim)?;
            }
        }
        if self.seen.insert(state) {
            let from = from as u32;
            self.reached.push(Reached { state, from });
        }
        Ok(())
    }

    fn look_who_decided(&mut self, state: &State<NODES>) {
        let slots = state.map(|number| self.atlas.place(number).node.decided());
        let by_all = slots.iter().map(|slot| slot.0).min().unwrap_or_default();
        self.decided_by_all = self.decided_by_all.max(by_all);
    }

    /// The steps from the start to the state reached as number `to`.
    fn way_to(&mut self, to: usize) -> Vec<String> {
        let mut steps = Vec::new();
        let mut at = to;
        while at != 0 {
            let Reached { state, from } = self.reached[at];
            let before = self.reached[from as usize].state;
            let index = (0..NODES)
                .find(|index| before[*index] != state[*index])
                .unwrap_or_default();
            let transitions = self.transitions(&before, index).unwrap_or_default();
            let mut transitions = transitions
                .into_iter()
                .map(|transition| self.atlas.transition(transition));
            let transition = transitions.find(|transition| transition.to == state[index]);
            steps.extend(transition.map(|transition| self.text(index, transition.step)));
            at = from as usize;
        }
        steps.reverse();
        steps
    }

    fn text(&self, index: usize, step: Step) -> String {
        match step {
            Step::Takes(letter) => {
                let letter = self.atlas.letters.get(letter);
                format!("n{index} takes {:?} of n{}", letter.message, letter.from)
            }
            Step::Proposes(number) => {
                format!("n{index} proposes {:?}", self.bounds.proposals[number])
            }
            step => format!("n{index} {step:?}"),
        }
    }
}
