//! The project's own chores, as `cargo xtask NAME`: one file per chore. The chores decide what to
//! run and judge what came back; they hold no test of Sprag itself.

#![forbid(unsafe_code)]

mod c;
mod child;
mod compare;
mod counts;
mod fix;
mod header;
mod house;
mod install;
mod library;
mod loom;
mod mutants;
mod python;
mod sim;
mod soak;
mod step;
mod stress;
mod symbols;
mod tally;
mod test;
mod tool;
mod verify;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

use crate::workspace::Workspace;

/// The project's own chores.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Chore {
    /// Run every test there is: units, docs, models, torture. Ends with the count.
    Test(test::Options),
    /// Check format, lints, docs, dependencies and house rules. Writes no source file.
    Verify,
    /// Apply what `verify` can repair: format and machine-applicable lints.
    Fix,
    /// Write `include/sprag.h` from the source of the C ABI, or check that it is up to date.
    Header(header::Options),
    /// Build the C library and lay it down with its headers and what build systems ask for.
    Install(install::Options),
    /// Test the C library as it is installed: by its headers, and by programs in C and C++.
    C(c::Options),
    /// Break the code on purpose, one line at a time, and see that a test goes red.
    Mutants(mutants::Options),
    /// Run the interleaving models and tell how many executions each took.
    Loom(loom::Options),
    /// Run the long forms of the torture, churn and fuzz tests, round after round.
    Soak(soak::Options),
    /// Build the Python package, and test it as it is installed; arguments go to pytest.
    Python(python::Options),
    /// Drive one region from processes in every language at once, and kill some of them.
    Stress(stress::Options),
    /// Run the cluster simulator: its seeds, the scripts of its planted bugs, debug against release.
    Sim(sim::Options),
    /// Compare with peers, side by side in one run; arguments go to the comparison.
    Compare(compare::Options),
}

fn main() -> ExitCode {
    let chore = Chore::parse();
    let outcome = child::end_with_us()
        .and_then(|()| Workspace::find())
        .and_then(|workspace| match chore {
            Chore::Test(options) => test::run(&workspace, &options),
            Chore::Verify => verify::run(&workspace),
            Chore::Fix => fix::run(&workspace),
            Chore::Header(options) => header::run(&workspace, &options),
            Chore::C(options) => c::run(&workspace, &options),
            Chore::Install(options) => install::run(&workspace, &options),
            Chore::Mutants(options) => mutants::run(&workspace, &options),
            Chore::Loom(options) => loom::run(&workspace, &options),
            Chore::Soak(options) => soak::run(&workspace, &options),
            Chore::Python(options) => python::run(&workspace, &options),
            Chore::Stress(options) => stress::run(&workspace, &options),
            Chore::Sim(options) => sim::run(&workspace, &options),
            Chore::Compare(options) => compare::run(&workspace, &options),
        });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Chore;

    #[test]
    fn the_command_line_is_consistent() {
        Chore::command().debug_assert();
    }
}
