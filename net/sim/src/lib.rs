//! A whole cluster in one thread.

pub mod history;
