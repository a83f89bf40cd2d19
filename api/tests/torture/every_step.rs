//! Each operation, killed and stopped before each of its steps.

use crate::journal::{Journal, Op};
use crate::process::{alone, fork, in_lanes, shared_words, wait};
use crate::report::{self, Row};
use crate::scene::{Case, LONG_TTL, SHORT_TTL, Scene, Struck, directory};
use crate::{
    scenes_change, scenes_charge, scenes_concurrency, scenes_counter, scenes_joint, scenes_limiter,
    scenes_lock, scenes_many, scenes_once, scenes_override, scenes_refund, scenes_shared,
    scenes_table,
};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// More processes than processors: most of a case is waiting for one another.
const LANES: usize = 6;
/// No operation takes more steps.
const STEPS_MAX: usize = 4_096;

/// Scenes, each with the leases that tell something about it.
fn scenes(signal: i32, ttls: &[Duration]) -> Vec<(&'static Scene, Duration)> {
    let only = std::env::var("SPRAG_TORTURE_ONLY").unwrap_or_default();
    let with = |scenes: &'static [Scene], ttls: &[Duration]| {
        let ttls = ttls.to_vec();
        scenes
            .iter()
            .filter(move |scene| signal == libc::SIGKILL || !scene.is_for_kills_only)
            .flat_map(move |scene| ttls.clone().into_iter().map(move |ttl| (scene, ttl)))
    };
    with(&scenes_lock::SCENES, ttls)
        .chain(with(&scenes_shared::SCENES, ttls))
        .chain(with(&scenes_concurrency::SCENES, ttls))
        .chain(with(&scenes_many::SCENES, ttls))
        .chain(with(&scenes_table::SCENES, ttls))
        .chain(with(&scenes_once::SCENES, ttls))
        // Counters and limiters hold nothing.
        .chain(with(&scenes_counter::SCENES, &ttls[..1]))
        .chain(with(&scenes_limiter::SCENES, &ttls[..1]))
        .chain(with(&scenes_charge::SCENES, &ttls[..1]))
        .chain(with(&scenes_refund::SCENES, &ttls[..1]))
        .chain(with(&scenes_change::SCENES, &ttls[..1]))
        .chain(with(&scenes_override::SCENES, &ttls[..1]))
        .chain(with(&scenes_joint::SCENES, &ttls[..1]))
        .filter(|(scene, _)| scene.op.name().contains(&only))
        .collect()
}

/// Strikes every scene at every step, with leases of each of `ttls`.
fn strike_every_step(title: &str, what: &str, signal: i32, ttls: &[Duration]) {
    let kinds = scenes(signal, ttls);
    // How many steps each takes: the most and the fewest of a few plays. They differ by where keys happen
    // to lie, and by who comes first.
    let (steps, fewest) = (shared_words(kinds.len()), shared_words(kinds.len()));
    for fewest in fewest {
        fewest.store(u64::MAX, SeqCst);
    }
    let describe = |at: usize| {
        kinds.get(at / 4).map_or_else(String::new, |(scene, ttl)| {
            format!("{:?}, lease {ttl:?}, unstruck", scene.op)
        })
    };
    in_lanes(LANES, kinds.len() * 4, describe, |next| {
        let (journal, directory) = (Journal::new(), directory());
        while let Some(at) = next() {
            let (scene, ttl) = kinds[at / 4];
            let case = Case {
                step: u64::MAX,
                signal,
                ttl,
            };
            journal.steps(scene.op).store(0, SeqCst);
            scene.play(journal, directory.path(), case);
            let taken = journal.steps_of_victim();
            steps[at / 4].fetch_max(taken, SeqCst);
            fewest[at / 4].fetch_min(taken, SeqCst);
        }
    });
    let cases: Vec<(usize, u64)> = steps
        .iter()
        .enumerate()
        .flat_map(|(kind, most)| (1..=most.load(SeqCst)).map(move |step| (kind, step)))
        .collect();
    let struck = shared_words(kinds.len() * STEPS_MAX);
    let describe = |at: usize| {
        cases.get(at).map_or_else(String::new, |&(kind, step)| {
            let (scene, ttl) = kinds[kind];
            format!("{:?}, lease {ttl:?}, step {step}", scene.op)
        })
    };
    in_lanes(LANES, cases.len(), describe, |next| {
        let (journal, directory) = (Journal::new(), directory());
        while let Some(at) = next() {
            let (kind, step) = cases[at];
            let (scene, ttl) = kinds[kind];
            let case = Case { step, signal, ttl };
            // A play that takes fewer steps than the longest is played again.
            for _ in 0..16 {
                if scene.play(journal, directory.path(), case) != Struck::Missed {
                    struck[kind * STEPS_MAX + step as usize - 1].fetch_add(1, SeqCst);
                    break;
                }
                // On a busy machine all the plays above may have gone a longer way: a lease of theirs was
                // over.
                fewest[kind].fetch_min(journal.steps_of_victim(), SeqCst);
            }
        }
    });
    let mut ops: Vec<Op> = kinds.iter().map(|(scene, _)| scene.op).collect();
    ops.dedup();
    let rows: Vec<Row> = ops
        .into_iter()
        .map(|op| {
            let mut by_step = Vec::new();
            for (kind, _) in kinds
                .iter()
                .enumerate()
                .filter(|(_, (scene, _))| scene.op == op)
            {
                let most = steps[kind].load(SeqCst) as usize;
                by_step.resize(by_step.len().max(most), 0);
                for (step, sum) in by_step.iter_mut().enumerate() {
                    *sum += struck[kind * STEPS_MAX + step].load(SeqCst);
                }
            }
            Row::of(op, &by_step)
        })
        .collect();
    report::print(title, what, &rows, "every one of them inside its operation");
    for row in rows {
        assert!(row.count > 0, "{:?} was never struck", row.op);
    }
    for (kind, (scene, ttl)) in kinds.iter().enumerate() {
        for step in 1..=fewest[kind].load(SeqCst) as usize {
            let count = struck[kind * STEPS_MAX + step - 1].load(SeqCst);
            assert!(count > 0, "{:?}, lease {ttl:?}: step {step}", scene.op);
        }
    }
}

// property 1, property 2, property 4, property 11, property 12, property 15
#[test]
fn a_process_killed_before_any_step_leaves_a_region_that_the_next_one_uses() {
    let test =
        "every_step::a_process_killed_before_any_step_leaves_a_region_that_the_next_one_uses";
    alone(test, || {
        strike_every_step(
            "Killed before every step",
            "kills",
            libc::SIGKILL,
            &[LONG_TTL],
        );
    });
}

// property 1, property 2, property 5, property 12, property 15
#[test]
fn a_process_stopped_before_any_step_holds_nobody_up_and_its_stale_step_changes_nothing() {
    let test = "every_step::\
        a_process_stopped_before_any_step_holds_nobody_up_and_its_stale_step_changes_nothing";
    alone(test, || {
        strike_every_step(
            "Stopped before every step, others going on",
            "stops",
            libc::SIGSTOP,
            &[SHORT_TTL, LONG_TTL],
        );
    });
}

#[test]
fn a_play_that_is_not_struck_is_told_apart() {
    let test = "every_step::a_play_that_is_not_struck_is_told_apart";
    alone(test, || {
        let (journal, directory) = (Journal::new(), directory());
        let scene = &scenes_lock::SCENES[0];
        assert_eq!(scene.op, Op::Acquire);
        for (step, signal, struck) in [
            (u64::MAX, libc::SIGKILL, Struck::Missed),
            (1, libc::SIGKILL, Struck::Killed),
            (1, libc::SIGSTOP, Struck::Stopped),
        ] {
            let case = Case {
                step,
                signal,
                ttl: LONG_TTL,
            };
            assert_eq!(scene.play(journal, directory.path(), case), struck);
        }
        // What is forked ends with its parent's knowledge.
        assert_eq!(wait(fork(|| {})), crate::process::Fate::Exited(0));
    });
}
