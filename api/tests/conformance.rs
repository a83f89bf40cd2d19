//! What a space does, as its documentation has it, for each reach alike: one list of cases, run for each
//! tier. Adding a tier is one line below, and a [`Tier`](tier::Tier) beside the others.

#[path = "conformance/mod.rs"]
mod conformance;

conformance::suite!(mem, Mem);
#[cfg(target_os = "linux")]
conformance::suite!(shm, Shm);
