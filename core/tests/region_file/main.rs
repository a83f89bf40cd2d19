//! Regions in files: created whole, opened only when they are what they say, shared by processes
//! that die at any moment, and never worse than wrong when their words are.
#![cfg(target_os = "linux")]

mod boot;
mod calls;
mod damage;
mod everything;
#[path = "../fuzz/mod.rs"]
mod fuzz;
mod opening;
mod processes;
mod replacing;
mod room;
mod support;
