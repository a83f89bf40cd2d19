//! One key's operations, as the search needs them: those that must be placed, and those that may be.

use std::collections::BTreeMap;

use super::{Call, Fate, Known, Model};

/// One operation that may have run, and what the search is told of it.
#[derive(Clone, Copy)]
pub(super) struct Observed<'a, M: Model> {
    /// Its index in the history.
    pub(super) call: usize,
    pub(super) operation: &'a M::Operation,
    /// Its invocation's place in the order of events.
    pub(super) invoked: usize,
    /// Its response's place, and the outcome.
    pub(super) returned: Option<(usize, &'a M::Outcome)>,
}

/// The operations to put in order.
pub(super) struct Problem<M: Model> {
    /// Those that took effect, by invocation.
    pub(super) definite: Vec<Definite<M>>,
    /// Those that may have, in classes of equal operations.
    pub(super) classes: Vec<Class<M>>,
}

/// An operation that took effect, between two events.
pub(super) struct Definite<M: Model> {
    pub(super) call: usize,
    pub(super) operation: M::Operation,
    pub(super) known: Known<M>,
    pub(super) invoked: usize,
    pub(super) returned: usize,
}

/// Operations without response that are equal in all that anyone can tell.
pub(super) struct Class<M: Model> {
    pub(super) operation: M::Operation,
    /// Where each was invoked, and its index in the history; by invocation.
    pub(super) members: Vec<(usize, usize)>,
}

impl<'a, M: Model> Observed<'a, M> {
    /// `None` if the call certainly never ran.
    pub(super) fn new(index: usize, call: &'a Call<M>) -> Option<Self> {
        let returned = match &call.fate {
            Fate::Unknown => None,
            Fate::Returned { outcome, order, .. } => Some((*order, outcome)),
            Fate::NeverRan => return None,
        };
        let Call {
            operation, invoked, ..
        } = call;
        Some(Self {
            call: index,
            operation,
            invoked: *invoked,
            returned,
        })
    }
}

impl<M: Model> Problem<M> {
    /// Two reductions keep unknown operations from multiplying the search. Neither changes the verdict.
    ///
    /// *Seen*: a value has one writer, so if an outcome shows the value of an unknown operation, that operation ran, left
    /// the state that the outcome shows, and did so before that outcome's response. It is placed like one that
    /// returned then. If two outcomes show the value in different states, no order exists, and none is found,
    /// since the later of them fits nowhere.
    ///
    /// *Unseen*: a value that no outcome shows may be any other that no outcome shows. In any order of the
    /// operations, renaming those values in the operations and in the states between them changes no outcome that
    /// anyone knows, for [`Model::writes`] says that nothing else depends on them. So all get the same one, and
    /// operations that differed only in it become equal: a class.
    pub(super) fn new(observed: &[Observed<M>]) -> Self {
        let mut seen: BTreeMap<u64, (usize, M::State)> = BTreeMap::new();
        for (order, outcome) in observed.iter().filter_map(|observed| observed.returned) {
            if let Some((value, state)) = M::shows(outcome)
                && seen.get(&value).is_none_or(|(first, _)| order < *first)
            {
                seen.insert(value, (order, state));
            }
        }
        let mut problem = Self {
            definite: Vec::new(),
            classes: Vec::new(),
        };
        let mut unseen = None;
        for &Observed {
            call,
            operation,
            invoked,
            returned,
        } in observed
        {
            let value = M::writes(operation);
            let shown = value.and_then(|value| seen.get(&value));
            let (known, returned) = match (returned, shown) {
                (Some((order, outcome)), _) => (Known::Outcome(outcome.clone()), order),
                (None, Some((order, state))) => (Known::Leaves(state.clone()), *order),
                (None, None) => {
                    let operation = match value {
                        Some(value) => M::storing(operation, *unseen.get_or_insert(value)),
                        None => operation.clone(),
                    };
                    problem.join_class(operation, (invoked, call));
                    continue;
                }
            };
            let operation = operation.clone();
            problem.definite.push(Definite {
                call,
                operation,
                known,
                invoked,
                returned,
            });
        }
        problem
    }

    fn join_class(&mut self, operation: M::Operation, member: (usize, usize)) {
        match self
            .classes
            .iter_mut()
            .find(|class| class.operation == operation)
        {
            Some(class) => class.members.push(member),
            None => self.classes.push(Class {
                operation,
                members: vec![member],
            }),
        }
    }
}
