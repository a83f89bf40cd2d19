//! The search for an order: Wing & Gong's ("Testing and verifying concurrent objects", JPDC 1993) with Lowe's cache
//! ("Testing for linearizability", 2017).
//!
//! Operations are placed one after another; the next must be one that was invoked before the first response among
//! those not yet placed. A configuration that was met before isn't entered again. Beyond that, without changing
//! the verdict:
//!
//! - *Read at once.* An operation that fits and whose outcome says that it changes nothing, wherever it stands, is placed
//!   now, with no alternative: in any order that goes on from here it can be moved to the front, where it may stand,
//!   and the others see the same states.
//! - *Without effect, without mention.* An unknown operation that changes nothing isn't placed: taking it out of an
//!   order changes nothing either. Nor is one placed after the last operation that must be.
//! - *Equals in turn.* Of equal unknown operations the one invoked first goes first: in any order, exchanging it
//!   with another of them leaves the same states; it may stand as early as the other, and the other as late as any.
//! - *Ruled out.* Where an operation that must be placed no longer can be, the way ends. Where one that may be
//!   can no longer change anything, whether it was placed makes no difference to what can follow: the cache
//!   takes it for placed.

use std::collections::HashSet;

use super::problem::Problem;
use super::{Known, Model};

/// What a search found.
pub(super) enum Found {
    /// An order that explains all: the history's indices of those placed.
    Order(Vec<usize>),
    /// That there is none.
    Nothing,
    /// That it takes more steps.
    GaveUp,
}

/// Looks for an order. Takes what it uses from `steps`, and gives up when that is 0.
pub(super) fn search<M: Model>(problem: &Problem<M>, steps: &mut u64) -> Found {
    let mut place = Place::new(problem);
    let mut cache = HashSet::new();
    let mut placed: Vec<Choice> = Vec::new();
    // One more than there are placed: what may come after each of them, the next to try at the end.
    let mut open = vec![place.choices(&M::initial())];
    while place.missing > 0 {
        let Some(choices) = open.last_mut() else {
            return Found::Nothing;
        };
        let Some((choice, state)) = choices.pop() else {
            open.pop();
            if let Some(choice) = placed.pop() {
                place.take_back(choice);
            }
            continue;
        };
        if *steps == 0 {
            return Found::GaveUp;
        }
        *steps -= 1;
        place.put(choice);
        let configuration = (place.key(&state), state);
        if cache.contains(&configuration) {
            place.take_back(choice);
            continue;
        }
        placed.push(choice);
        open.push(place.choices(&configuration.1));
        cache.insert(configuration);
    }
    Found::Order(place.calls(&placed))
}

/// An operation to place next.
#[derive(Clone, Copy)]
enum Choice {
    /// One that must be placed: its index.
    Definite(usize),
    /// The next of a class: the class's index.
    Member(usize),
}

/// Which operations are placed.
struct Place<'a, M: Model> {
    problem: &'a Problem<M>,
    /// A bit for each that must be.
    definite: Vec<u64>,
    /// The first of them that isn't placed.
    first: usize,
    /// How many of them aren't placed.
    missing: usize,
    /// How many of each class are.
    members: Vec<usize>,
}

impl<'a, M: Model> Place<'a, M> {
    fn new(problem: &'a Problem<M>) -> Self {
        let missing = problem.definite.len();
        Self {
            problem,
            definite: vec![0; missing / 64 + 1],
            first: 0,
            missing,
            members: vec![0; problem.classes.len()],
        }
    }

    fn has(&self, index: usize) -> bool {
        self.definite[index / 64] >> (index % 64) & 1 == 1
    }

    fn put(&mut self, choice: Choice) {
        match choice {
            Choice::Definite(index) => {
                self.definite[index / 64] |= 1 << (index % 64);
                self.missing -= 1;
                while self.first < self.problem.definite.len() && self.has(self.first) {
                    self.first += 1;
                }
            }
            Choice::Member(class) => self.members[class] += 1,
        }
    }

    fn take_back(&mut self, choice: Choice) {
        match choice {
            Choice::Definite(index) => {
                self.definite[index / 64] &= !(1 << (index % 64));
                self.missing += 1;
                self.first = self.first.min(index);
            }
            Choice::Member(class) => self.members[class] -= 1,
        }
    }

    /// What may be placed next, with the state that it leaves; the likeliest last.
    fn choices(&self, state: &M::State) -> Vec<(Choice, M::State)> {
        let mut definite = Vec::new();
        let mut first_return = usize::MAX;
        for (index, candidate) in self.problem.definite.iter().enumerate().skip(self.first) {
            if self.has(index) {
                continue;
            }
            // Those further on were invoked later still, and return later than they were invoked.
            if candidate.invoked > first_return {
                break;
            }
            first_return = first_return.min(candidate.returned);
            if M::is_ruled_out(state, &candidate.operation, &candidate.known) {
                return Vec::new();
            }
            let (after, outcome) = M::apply(state, &candidate.operation);
            if candidate.known.fits(&outcome, &after) {
                let choice = (Choice::Definite(index), after);
                if candidate.known.only_reads(&candidate.operation) {
                    return vec![choice];
                }
                definite.push(choice);
            }
        }
        let mut choices = Vec::new();
        for (index, class) in self.problem.classes.iter().enumerate() {
            let next = class.members.get(self.members[index]);
            if next.is_some_and(|(invoked, _)| *invoked < first_return) {
                let (after, _) = M::apply(state, &class.operation);
                if after != *state {
                    choices.push((Choice::Member(index), after));
                }
            }
        }
        choices.extend(definite.into_iter().rev());
        choices
    }

    /// What is placed, in as few words as tell it from any other: the first missing one's word and those after it up to
    /// the last that isn't 0, then how many of each class.
    fn key(&self, state: &M::State) -> Box<[u64]> {
        let start = self.first / 64;
        let end = self
            .definite
            .iter()
            .rposition(|word| *word != 0)
            .map_or(start, |last| last + 1);
        let words = self.definite.get(start..end).unwrap_or_default();
        let members = self
            .problem
            .classes
            .iter()
            .zip(&self.members)
            .map(|(class, placed)| {
                let spent = M::is_ruled_out(state, &class.operation, &Known::Nothing);
                if spent {
                    class.members.len() as u64
                } else {
                    *placed as u64
                }
            });
        std::iter::once(start as u64)
            .chain(words.iter().copied())
            .chain(members)
            .collect()
    }

    fn calls(&self, placed: &[Choice]) -> Vec<usize> {
        let mut members = vec![0; self.members.len()];
        let call = |choice: &Choice| match *choice {
            Choice::Definite(index) => self.problem.definite[index].call,
            Choice::Member(class) => {
                members[class] += 1;
                self.problem.classes[class].members[members[class] - 1].1
            }
        };
        placed.iter().map(call).collect()
    }
}
