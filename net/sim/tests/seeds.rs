//! Runs of seeds: clean, repeatable, and shrinkable where they fail.

use sprag_paxos::simulation::Bug;
use sprag_sim::{Class, Mix, NODES_MAX, Script, Setup, Strike, replay, run, shrink};

fn setup(mix: Mix, bug: Option<Bug>) -> Setup {
    Setup {
        mix,
        nodes: None,
        bug,
        looks_inside: true,
    }
}

#[test]
fn the_first_seeds_are_clean_under_every_fault() {
    for seed in 0..100 {
        let report = run(seed, &setup(Mix::all(), None));
        assert_eq!(report.failure, None, "seed {seed}");
    }
}

#[test]
fn a_seed_repeats_itself_and_so_do_its_faults_as_a_script() {
    let mut struck = 0;
    for seed in 0..10 {
        let setup = setup(Mix::all(), None);
        let first = run(seed, &setup);
        assert_eq!(run(seed, &setup).hash, first.hash, "seed {seed}");
        let scripted = replay(seed, &setup, &first.struck);
        assert_eq!(scripted.hash, first.hash, "seed {seed}");
        assert_eq!(scripted.struck, first.struck, "seed {seed}");
        struck += first.struck.len();
    }
    assert!(struck > 0);
}

#[test]
fn a_bug_that_a_run_never_asked_for_changes_nothing_in_it() {
    for seed in 0..4 {
        let sound = run(seed, &setup(Mix::all(), None));
        let unasked = Bug::ALL.iter().filter(|bug| !sound.asked.contains(**bug));
        for bug in unasked {
            let hash = run(seed, &setup(Mix::all(), Some(*bug))).hash;
            assert_eq!(hash, sound.hash, "seed {seed}, {}", bug.name());
        }
    }
}

#[test]
fn who_looks_inside_changes_nothing() {
    for seed in 0..10 {
        let setup = setup(Mix::all(), None);
        let outside = Setup {
            looks_inside: false,
            ..setup.clone()
        };
        assert_eq!(
            run(seed, &outside).hash,
            run(seed, &setup).hash,
            "seed {seed}"
        );
    }
}

#[test]
fn no_faults_are_an_empty_script() {
    for seed in 0..10 {
        let scripted = replay(seed, &setup(Mix::all(), None), &[]);
        let none = run(seed, &setup(Mix::none(), None));
        assert_eq!(scripted.hash, none.hash, "seed {seed}");
    }
}

#[test]
fn no_two_seeds_make_the_same_run() {
    let mut hashes: Vec<u64> = (0..30)
        .map(|seed| run(seed, &setup(Mix::none(), None)).hash)
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 30);
}

#[test]
fn without_faults_nobody_waits_for_long() {
    for seed in 0..10 {
        let report = run(seed, &setup(Mix::none(), None));
        assert_eq!(report.failure, None, "seed {seed}");
        assert_eq!(report.struck, [], "seed {seed}");
        let (asked, answered) = (report.tally.asked, report.tally.answered);
        // What clients were waiting for when the run ended isn't answered.
        assert!(
            answered * 100 >= asked * 90,
            "seed {seed}: {answered} of {asked}"
        );
    }
}

#[test]
fn with_every_message_doubled_all_is_as_safe_and_everybody_is_answered() {
    let ends = || (0..=NODES_MAX as u16).filter(|end| *end < 7 || *end == NODES_MAX as u16);
    let links = ends().flat_map(|from| ends().map(move |to| 16 * from + to));
    let strikes = links.flat_map(|site| {
        (0..4000).map(move |occasion| Strike {
            class: Class::Duplication,
            site,
            occasion,
        })
    });
    let script: Vec<Strike> = strikes.collect();
    for seed in 0..2 {
        let report = replay(seed, &setup(Mix::none(), None), &script);
        assert_eq!(report.failure, None, "seed {seed}");
        assert!(report.struck.len() > 2000, "seed {seed}");
        let (asked, answered) = (report.tally.asked, report.tally.answered);
        assert!(
            answered * 100 >= asked * 90,
            "seed {seed}: {answered} of {asked}"
        );
    }
}

/// Some runs that a bug makes fail early, and so are quickly repeated, but not without faults.
fn failing() -> Vec<Script> {
    let mut scripts = Vec::new();
    for seed in 0..20 {
        for bug in Bug::ALL {
            let setup = setup(Mix::all(), Some(*bug));
            let report = run(seed, &setup);
            let Some(failure) = report.failure else {
                continue;
            };
            if report.events > 2000 || !(5..100).contains(&report.struck.len()) {
                continue;
            }
            let mut script = Script::new(seed, &setup, report.struck);
            script.fails = Some(failure.way());
            if !fails_alike(&script, &[]) {
                scripts.push(script);
            }
            if scripts.len() == 3 {
                return scripts;
            }
        }
    }
    panic!("hardly any bug fails early under few faults")
}

fn fails_alike(script: &Script, strikes: &[Strike]) -> bool {
    let part = Script {
        strikes: strikes.to_vec(),
        ..script.clone()
    };
    part.replay().failure.map(|failure| failure.way()) == script.fails
}

#[test]
fn a_shrunk_script_fails_alike_and_needs_each_of_its_faults() {
    for whole in failing() {
        let small = shrink(whole.clone(), 3000).strikes;
        assert!(small.len() < whole.strikes.len());
        assert!(small.iter().all(|strike| whole.strikes.contains(strike)));
        assert!(fails_alike(&whole, &small));
        for left_out in 0..small.len() {
            let mut rest = small.clone();
            rest.remove(left_out);
            assert!(!fails_alike(&whole, &rest), "{}", small[left_out]);
        }
    }
}

#[test]
fn shrinking_stops_at_its_bound() {
    let whole = failing().remove(0);
    assert_eq!(shrink(whole.clone(), 0), whole);
}
