//! The lock-free engine of Sprag.
//!
//! Locks with fencing tokens and leases, semaphores, fences, counters, onces, rate and concurrency limiters on one
//! flat, pointer-free area of memory: anonymous, for the threads of a process, or a mapped file, for the processes
//! of a host, where any of them may die or be stopped at any instruction. No network, no async, no thread and no
//! clock of its own: time, identity and randomness are arguments.
//!
//! Most users want the `sprag` crate, which brings a clock, waiting and handles. One file per noun: start at
//! [`engine`](Engine), then [`lock`], [`waiter`], [`semaphore`], [`fence`], [`counter`], [`once`], [`limiter`],
//! [`concurrency`], [`joint`], and below them `table`, `object`, `limiter_key`, `joint_key` and [`region`].

// The file comments speak to those who read the code as much as to those who use it.
#![allow(rustdoc::private_intra_doc_links)]
// A model has no files, so what would fail, or need `self`, for their sake does neither there.
#![cfg_attr(loom, allow(clippy::unnecessary_wraps, clippy::unused_self))]

pub mod admission;
mod cell_key;
mod check;
mod chunk;
pub mod concurrency;
pub mod counter;
mod engine;
pub mod error;
pub mod fence;
pub mod joint;
mod joint_key;
pub mod key;
pub mod limit;
pub mod limiter;
mod limiter_key;
pub mod lock;
mod object;
pub mod once;
mod permit;
mod pool;
pub mod readable;
pub mod region;
pub mod semaphore;
pub mod session;
mod slot;
pub mod span;
#[cfg(all(test, not(loom)))]
mod stopped;
pub mod sync;
mod table;
pub mod usage;
pub mod waiter;

pub use check::{Check, Finding};
pub use concurrency::ConcurrencyRef;
pub use counter::{Added, CounterRef, StripedRef};
pub use engine::Engine;
pub use error::{Error, Result};
pub use fence::{Fence, Stale};
pub use joint::{JointChecked, JointRef};
pub use limit::Limit;
pub use limiter::{Checked, LimiterRef, Refunded};
pub use object::{Name, TOKEN_MAX};
pub use session::SessionId;
