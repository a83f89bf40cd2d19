//! The models, a file for each noun. One target, so that whoever runs them builds and links once.
#![cfg(loom)]

mod coarse;
mod concurrency;
mod counter;
mod deadlock;
mod fence;
mod joint;
mod limiter;
mod lock;
mod once;
mod overrides;
mod several;
mod shared;
mod table;
mod waiter;
