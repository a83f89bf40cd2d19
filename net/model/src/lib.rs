//! Every state that a small cluster of voters can come to, and what must hold in each.
//!
//! What runs is `sprag-paxos` itself: each step of a node is a call of [`Executor`](sprag_paxos::Executor) and the effects
//! that come of it. Chance is in the choice of the next step alone, and all choices are tried, breadth first, so that the
//! way to a broken invariant is among the shortest.
//!
//! # What a step is, and why that is all there can be
//!
//! - **The network** keeps every message for ever, and may hand over each at any time, any number of times, or never: it
//!   loses, doubles, delays and reorders without a bound. So a message needs no step of its own to get lost, and what was
//!   ever sent is part of its sender.
//! - **Time** stands still and all waits are zero, so that each timer is always due: a tick may come whenever it likes.
//!   How many ticks a node sees is bounded, and so is the number of ballots.
//! - **The disk** has a queue of records. The first one, two, or more of it become durable; then the executor hears of it.
//!   The disk of a node that can't crash any more is done at once: what it has to say may come late all the same. That its
//!   own vote counts later than others' is tried on the nodes that can.
//! - **A crash** leaves any subset of what wasn't durable, and optionally makes one vote unreadable. The node is back at
//!   once: a node that is down does the same as one that takes no step. A crash between two effects needs no step either:
//!   it leaves what a crash after all of them leaves when the later records are lost and the later messages aren't taken.
//!
//! # When two states are one
//!
//! States are compared whole, never by a digest. What is in an executor counts, but for its random numbers, which say
//! when something is done and never what, and for effects held back twice, which are the network's to double. On a disk,
//! the order of records counts within a slot only, and of promises only the highest: that is what recovery looks at.
//!
//! # What is left out, and why nothing is missed
//!
//! - A node's step depends on nothing but its state, so it is run once from each, however many states of the whole have
//!   that: a state of the whole is but a number for each node.
//! - A step of which nothing comes but more letters is a gain: whatever could follow without them can follow with them, as
//!   letters may stay unread, and no invariant is kept by saying more. So where there is a gain, no other step is tried first.

mod atlas;
mod bounds;
mod disk;
mod explorer;
mod invariant;
mod letter;
mod node;

pub use bounds::{Bounds, Proposal};
pub use explorer::{Counterexample, Report, explore};
pub use invariant::Broken;
