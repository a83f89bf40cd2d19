//! What rows with two threads rest on: how long a cache line takes from one core to the other.
//!
//! On one machine it can be several times what it is on another, or was a minute ago: two virtual
//! cores may share a physical one or not. Ratios of rows with two threads compare only where this does.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TIME: Duration = Duration::from_millis(100);
/// Hand-offs that are timed together.
const BATCH: u64 = 64;

/// What to know about rows with two threads.
pub(crate) fn two_threads() -> String {
    match line_hand_off_ns() {
        Some(ns) => format!("Two threads hand a cache line to each other in {ns:.0} ns."),
        None => {
            "Two threads never ran at once: the machine is too busy for rows with two.".to_owned()
        }
    }
}

/// Nanoseconds that a line takes from thread to thread, both spinning: the shortest of many short
/// stretches, since on a busy machine most of them see one of the threads put aside.
fn line_hand_off_ns() -> Option<f64> {
    let turn = Line(AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    let mut best = f64::INFINITY;
    std::thread::scope(|scope| {
        let (turn, is_over) = (&turn.0, &is_over);
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                pass_on(turn, 1);
            }
        });
        let started = Instant::now();
        while started.elapsed() < TIME {
            let batch = Instant::now();
            let from = turn.load(Ordering::Relaxed);
            while turn.load(Ordering::Relaxed) < from + BATCH && started.elapsed() < TIME {
                pass_on(turn, 0);
            }
            let passed = turn.load(Ordering::Relaxed) - from;
            if passed >= BATCH {
                best = best.min(batch.elapsed().as_nanos() as f64 / passed as f64);
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    best.is_finite().then_some(best)
}

/// Passes the turn on if it is that of `parity`.
fn pass_on(turn: &AtomicU64, parity: u64) {
    let now = turn.load(Ordering::Acquire);
    if now % 2 == parity {
        turn.store(now + 1, Ordering::Release);
    } else {
        std::hint::spin_loop();
    }
}

/// A line of its own, away from the flag.
#[repr(align(128))]
struct Line(AtomicU64);
