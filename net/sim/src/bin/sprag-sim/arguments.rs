//! The command line.

use std::fmt::Write;
use std::path::PathBuf;
use std::thread;

use clap::error::ErrorKind;
use clap::{ArgGroup, CommandFactory, Parser};
use sprag_paxos::simulation::Bug;
use sprag_sim::{Class, Mix, NODES_MAX, Setup};

use crate::mutants::RANGES;
use crate::needs;
use crate::verdict::EXIT_CODES;

/// A whole cluster in one thread, from one seed, under every fault that it must bear
///
/// Without further options 1,000 seeds are run, each with faults of its own. What is printed depends on the arguments
/// alone, never on the machine or the number of jobs.
#[derive(Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(name = "sprag-sim", version, about, long_about, after_help = EXIT_CODES)]
#[command(group = ArgGroup::new("chore").args(["script", "mutants", "regressions"]))]
#[command(group = ArgGroup::new("writes").args(["mutants", "regressions"]).multiple(true))]
pub(crate) struct Arguments {
    /// How many seeds to run, 1 and up; with --mutants, after how many in each of five ranges to give up on a bug
    /// [default: 1000, with --mutants 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=SEEDS_MAX))]
    seeds: Option<u64>,

    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) from: u64,

    /// How many nodes, 1 to 15 [default: each seed draws from 1 to 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=NODES_MAX as u64))]
    nodes: Option<u64>,

    /// Which classes of faults there are: all (each on for half of the seeds), none, names (on for every seed), or
    /// names behind no- (all but these), with commas between
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = faults)]
    faults: Mix,

    /// How many seeds to run at once [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    jobs: Option<u64>,

    /// Check only what clients see, not what is inside the nodes
    #[arg(long)]
    black_box: bool,

    /// Plant this bug; with --mutants, this one only
    #[arg(long, value_name = "NAME", value_parser = sprag_sim::bug)]
    pub(crate) bug: Option<Bug>,

    /// Run what this script says, and show its last events
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "from", "nodes", "faults", "black_box", "bug"])]
    pub(crate) script: Option<PathBuf>,

    /// Plant each bug there is, and tell after how many seeds it is found
    #[arg(long, conflicts_with_all = ["black_box", "nodes", "faults"])]
    pub(crate) mutants: bool,

    /// With --mutants: tell, too, which classes of faults it takes to find each bug
    #[arg(long, requires = "mutants")]
    pub(crate) matrix: bool,

    /// With --matrix: a class of faults that no bug needs is a failure
    #[arg(long, requires = "matrix")]
    pub(crate) strict: bool,

    /// Run the committed scripts, each with its bug and without it
    #[arg(long, conflicts_with_all = ["seeds", "from", "nodes", "faults", "black_box"])]
    pub(crate) regressions: bool,

    /// With --mutants or --regressions: write what was found into README.md, or those scripts anew that no longer hold
    #[arg(long, requires = "writes")]
    pub(crate) write: bool,
}

/// The most seeds of one run: what is kept of each is some numbers.
const SEEDS_MAX: u64 = 1_000_000_000;

impl Arguments {
    /// Reads them. If they are wrong, says so and ends the process.
    pub(crate) fn read() -> Self {
        let arguments = Self::parse();
        let seeds = if arguments.mutants {
            (arguments.seeds() * RANGES).max(needs::SEEDS_MOST)
        } else {
            arguments.seeds()
        };
        if let Err(why) = check(arguments.from, seeds) {
            Self::command()
                .error(ErrorKind::ValueValidation, why)
                .exit();
        }
        arguments
    }

    pub(crate) fn seeds(&self) -> u64 {
        self.seeds
            .unwrap_or(if self.mutants { 10_000 } else { 1000 })
    }

    pub(crate) fn jobs(&self) -> usize {
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        self.jobs.map_or_else(cores, |jobs| jobs as usize)
    }

    /// The bugs that a chore is about: the one that is named, else all.
    pub(crate) fn bugs(&self) -> Vec<Bug> {
        self.bug.map_or_else(|| Bug::ALL.to_vec(), |bug| vec![bug])
    }

    pub(crate) fn setup(&self) -> Setup {
        Setup {
            mix: self.faults.clone(),
            nodes: self.nodes.map(|nodes| nodes as usize),
            bug: self.bug,
            looks_inside: !self.black_box,
        }
    }

    /// The command that runs `seed` alone in the same way.
    pub(crate) fn again(&self, seed: u64) -> String {
        let mut command = format!("cargo run --release -p sprag-sim -- --seeds 1 --from {seed}");
        if let Some(nodes) = self.nodes {
            let _ = write!(command, " --nodes {nodes}");
        }
        if self.faults != Mix::all() {
            let _ = write!(command, " --faults {}", list_of(&self.faults));
        }
        if self.black_box {
            command.push_str(" --black-box");
        }
        if let Some(bug) = self.bug {
            let _ = write!(command, " --bug {}", bug.name());
        }
        command
    }
}

fn check(from: u64, seeds: u64) -> Result<(), String> {
    match from.checked_add(seeds) {
        Some(_) => Ok(()),
        None => Err(format!(
            "--from {from} leaves fewer than {seeds} seeds up to {}; begin lower, or run fewer",
            u64::MAX
        )),
    }
}

fn faults(list: &str) -> Result<Mix, String> {
    match list {
        "all" => return Ok(Mix::all()),
        "none" => return Ok(Mix::none()),
        _ => {}
    }
    let words: Vec<&str> = list.split(',').map(str::trim).collect();
    let without: Vec<&str> = words
        .iter()
        .filter_map(|word| word.strip_prefix("no-"))
        .collect();
    if without.is_empty() {
        return Ok(Mix::Always(classes(&words)?));
    }
    if without.len() < words.len() {
        return Err(
            "classes with and without no- in one list: name those to have, or those not to"
                .to_owned(),
        );
    }
    let without = classes(&without)?;
    let rest = Class::ALL.iter().filter(|class| !without.contains(class));
    Ok(Mix::Swarm(rest.copied().collect()))
}

fn classes(names: &[&str]) -> Result<Vec<Class>, String> {
    names.iter().map(|name| name.parse()).collect()
}

/// The list that [`faults`] reads `mix` from.
fn list_of(mix: &Mix) -> String {
    let names = |classes: &mut dyn Iterator<Item = &Class>, before: &str| {
        let names: Vec<String> = classes
            .map(|class| format!("{before}{}", class.name()))
            .collect();
        names.join(",")
    };
    match mix {
        Mix::Always(classes) if classes.is_empty() => "none".to_owned(),
        Mix::Always(classes) => names(&mut classes.iter(), ""),
        Mix::Swarm(classes) if classes.len() == Class::ALL.len() => "all".to_owned(),
        Mix::Swarm(classes) => names(
            &mut Class::ALL.iter().filter(|class| !classes.contains(class)),
            "no-",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_list_of_faults_is_read_as_it_is_written() {
        for list in ["all", "none", "loss,crash", "no-loss,no-crash"] {
            assert_eq!(list_of(&faults(list).unwrap()), list);
        }
    }

    #[test]
    fn a_wrong_list_of_faults_is_told_what_would_be_right() {
        let cases = [
            ("fire", "the classes are loss, "),
            ("no-fire", "the classes are loss, "),
            ("", "the classes are loss, "),
            ("loss,no-crash", "name those to have, or those not to"),
        ];
        for (list, part) in cases {
            let error = faults(list).unwrap_err();
            assert!(error.contains(part), "{list:?}: {error}");
        }
    }

    #[test]
    fn the_seeds_end_before_the_numbers_do() {
        assert_eq!(check(0, SEEDS_MAX), Ok(()));
        assert_eq!(check(u64::MAX - 1, 1), Ok(()));
        assert!(check(u64::MAX, 1).is_err());
    }
}
