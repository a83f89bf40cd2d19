//! `cargo xtask mutants`: breaks the code on purpose, one line at a time, in a scratch copy, and sees
//! that the named test goes red. `xtask/mutants` holds the breaks; a test that stays green under a
//! break proves nothing about its property.

mod properties;
mod run;
mod scratch;
mod table;
mod test_command;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::Args;

use self::run::{Outcome, Runner};
use self::table::Mutant;
use crate::house::{self, Violation};
use crate::step::seconds;
use crate::workspace::Workspace;

/// Options of `mutants`.
#[derive(Args)]
pub(crate) struct Options {
    /// Run only the mutants whose property, break, file or test contains this; a number names a
    /// property.
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
    /// How many mutants to try at once; each has a scratch copy and a build of its own.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
    /// Only check the table against the sources; build and run nothing.
    #[arg(long)]
    check: bool,
}

/// Tries the mutants and prints which test caught which.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, String> {
    let mutants = table::read(workspace)?;
    let violations = violations(workspace, &mutants);
    for violation in &violations {
        println!("{violation}");
    }
    if options.check || !violations.is_empty() {
        println!(
            "{} mutants, {} faults in the table",
            mutants.len(),
            violations.len()
        );
        return Ok(violations.is_empty());
    }
    let chosen: Vec<&Mutant> = mutants
        .iter()
        .filter(|mutant| options.only.as_deref().is_none_or(|only| mutant.fits(only)))
        .collect();
    if chosen.is_empty() {
        return Err(format!(
            "no mutant to try: loosen --only, or add to {}",
            table::DIRECTORY
        ));
    }
    let runner = Runner::new(workspace);
    let green = runner.baselines(&chosen)?;
    let outcomes = runner.outcomes(&chosen, &green, usize::from(options.jobs))?;
    Ok(conclude(&chosen, &outcomes))
}

/// Checks the table against the sources, and that every property that a test names has a mutant.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<Violation>, String> {
    let mutants = table::read(workspace)?;
    Ok(violations(workspace, &mutants))
}

fn violations(workspace: &Workspace, mutants: &[Mutant]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for mutant in mutants {
        for fault in mutant.faults(workspace) {
            violations.push(Violation::of(
                &mutant.table,
                format!("{}: {fault}", mutant.breaks),
            ));
        }
    }
    let mut names = BTreeSet::new();
    for mutant in mutants {
        if !names.insert(&mutant.breaks) {
            let what = format!("{}: stands twice, name the breaks apart", mutant.breaks);
            violations.push(Violation::of(&mutant.table, what));
        }
    }
    let broken: BTreeSet<u8> = mutants.iter().map(|mutant| mutant.property).collect();
    for (number, file) in named_in_tests(workspace) {
        if !broken.contains(&number) {
            let name = properties::name(number).unwrap_or("unknown");
            violations.push(Violation::of(
                table::DIRECTORY,
                format!(
                    "property {number} ({name}) is tested in {file} and has no mutant: add one"
                ),
            ));
        }
    }
    violations
}

/// The properties that the sources' tests name, each with the first file that does. The chores'
/// own tests speak of properties without testing any.
fn named_in_tests(workspace: &Workspace) -> BTreeMap<u8, String> {
    let mut named = BTreeMap::new();
    for file in workspace.files() {
        if !house::is_rust(&file) || file.starts_with("xtask/") {
            continue;
        }
        for number in workspace
            .read(&file)
            .map(|source| properties::named_in(&source))
            .unwrap_or_default()
        {
            named.entry(number).or_insert_with(|| file.clone());
        }
    }
    named
}

fn conclude(mutants: &[&Mutant], outcomes: &[(Outcome, Duration)]) -> bool {
    let mut caught = 0;
    println!("\nproperty | break | result | test that went red | time");
    for (mutant, (outcome, took)) in mutants.iter().zip(outcomes) {
        let name = properties::name(mutant.property).unwrap_or("unknown");
        let (result, test) = outcome.in_words();
        println!(
            "{} {name} | {} | {result} | {test} | {}",
            mutant.property,
            mutant.breaks,
            seconds(*took)
        );
        caught += usize::from(outcome.is_caught());
    }
    for (mutant, (outcome, _)) in mutants.iter().zip(outcomes) {
        if let Some(advice) = outcome.advice() {
            println!("{}: {advice}; its test: {}", mutant.breaks, mutant.test);
        }
    }
    println!("{caught} of {} mutants caught", mutants.len());
    caught == mutants.len()
}
