//! Processes that are killed and stopped at every step of every operation, and at random.
//!
//! Workers open one shared region and write what they are about to do, and what came of it, to a
//! journal in a mapping of their own. The oracle judges by the journal alone: exclusion, tokens,
//! limits, capacity. It never asks the region's own inspection.
//!
//! - [`every_step`]: each operation, killed and stopped before each of its atomic steps, others going on;
//! - [`random`]: a mixed load, killed some thousands of times;
//! - [`processes`]: forks, programs executed, reused process ids, the head of a queue dead or stopped.
//!
//! Runs with `--features steps` only, which counts the steps and sends the signals. `SPRAG_SOAK=1`
//! multiplies the random kills; `SPRAG_TORTURE_ONLY=WORD` plays only the scenes of operations whose name, as
//! the report says it, contains the word.

#![cfg(all(target_os = "linux", feature = "steps"))]

mod actor;
mod every_step;
mod journal;
mod oracle;
mod oracle_counter;
mod process;
mod processes;
mod random;
mod report;
mod scene;
mod scenes_change;
mod scenes_charge;
mod scenes_concurrency;
mod scenes_counter;
mod scenes_joint;
mod scenes_limiter;
mod scenes_lock;
mod scenes_many;
mod scenes_once;
mod scenes_override;
mod scenes_refund;
mod scenes_shared;
mod scenes_table;
