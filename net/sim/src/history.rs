//! What clients saw, and whether one copy of the object could have shown it to them.
//!
//! A [`History`] is recorded as the run goes; [`History::check`] says whether each key's operations are linearizable
//! (Herlihy & Wing, "Linearizability: a correctness condition for concurrent objects", TOPLAS 1990) under a sequential
//! [`Model`]. Nothing here knows of nodes, messages or time limits: only of invocations, responses and their order.
//!
//! **Order.** A history is a sequence of events; one operation precedes another if its response was recorded before
//! the other's invocation. Two events at one virtual instant are thus ordered as they were recorded. That invents no
//! violation: the simulator is one thread, an event can only affect those that it makes happen later, so that an
//! operation's effect lies between its two events in that very sequence. It is also what makes checking key by key
//! exact: locality holds for sequences of events, and would not if instants were shared. Whoever doesn't know
//! the order within an instant records invocations before responses, which orders the least.
//!
//! **Unknown and undone.** An operation without response took effect at any time after its invocation, or never,
//! and its outcome is anything. One that certainly never ran is left out.

mod calls;
mod issuer;
mod model;
mod problem;
mod register;
mod search;
#[cfg(test)]
mod tests;
mod violation;

pub use calls::{Call, CallId, Fate, History, Verdict};
pub use issuer::{Issuer, NextToken};
pub use model::{Known, Model};
pub use register::{Cell, Register, RegisterOperation, RegisterOutcome};
pub use violation::{Step, Violation};
