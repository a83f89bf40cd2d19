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
    for seed in 0..200 {
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
    for seed in 0..20 {
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
    for seed in 0..5 {
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

/// A run with some faults that a bug makes fail early, and so is quickly repeated.
fn failing() -> Script {
    for bug in Bug::ALL {
        for seed in 0..10 {
            let setup = setup(Mix::all(), Some(*bug));
            let report = run(seed, &setup);
            if let Some(failure) = report.failure
                && (5..100).contains(&report.struck.len())
                && report.events < 5000
            {
                let mut script = Script::new(seed, &setup, report.struck);
                script.fails = Some(failure.way());
                if !fails_alike(&script, &[]) {
                    return script;
                }
            }
        }
    }
    panic!("no bug fails early under few faults")
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
    let whole = failing();
    let small = shrink(whole.clone(), 3000);
    assert!(small.strikes.len() < whole.strikes.len());
    assert!(
        small
            .strikes
            .iter()
            .all(|strike| whole.strikes.contains(strike))
    );
    assert!(fails_alike(&whole, &small.strikes));
    for left_out in 0..small.strikes.len() {
        let mut rest = small.strikes.clone();
        rest.remove(left_out);
        assert!(!fails_alike(&whole, &rest), "{}", small.strikes[left_out]);
    }
}

#[test]
fn shrinking_stops_at_its_bound() {
    let whole = failing();
    assert_eq!(shrink(whole.clone(), 0), whole);
}
