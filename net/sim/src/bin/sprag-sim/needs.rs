//! Which classes of faults it takes to find each bug: those without which it isn't found any more.

use std::io;

use sprag_paxos::simulation::Bug;
use sprag_sim::{Class, Mix, Setup};

use crate::arguments::Arguments;
use crate::jobs;
use crate::mutants::{self, Hunt};
use crate::table::Table;

/// A bug counts as not found after so many times as many seeds as it usually takes, within these bounds. If a class made no
/// difference, one in a thousand would still not be found after ten times as many.
const MEDIANS: u64 = 20;
const SEEDS_LEAST: u64 = 300;
const SEEDS_MOST: u64 = 10_000;

/// By bug, the classes that it needs.
#[derive(Debug)]
pub(crate) struct Needs(Vec<Vec<Class>>);

/// Looks for each bug that `hunts` found, with each class left out in turn.
pub(crate) fn find(arguments: &Arguments, bugs: &[Bug], hunts: &[Hunt]) -> io::Result<Needs> {
    let classes = Class::ALL.len() as u64;
    let count = bugs.len() as u64 * classes;
    let mut needs = Needs(vec![Vec::new(); bugs.len()]);
    let place = |number: u64| {
        let class = Class::ALL[(number % classes) as usize];
        ((number / classes) as usize, class)
    };
    let work = |number: u64| {
        let (bug, class) = place(number);
        hunts[bug]
            .median()
            .is_some_and(|median| needs_class(arguments, bugs[bug], class, median))
    };
    let take = |number: u64, is_needed| {
        let (bug, class) = place(number);
        if is_needed {
            needs.0[bug].push(class);
        }
        Ok::<(), io::Error>(())
    };
    jobs::in_order(count, arguments.jobs(), work, take, &jobs::bar(count))?;
    Ok(needs)
}

fn needs_class(arguments: &Arguments, bug: Bug, class: Class, median: u64) -> bool {
    let others = Class::ALL.iter().filter(|other| **other != class);
    let setup = Setup {
        mix: Mix::Swarm(others.copied().collect()),
        nodes: None,
        bug: Some(bug),
        looks_inside: true,
    };
    let seeds = (MEDIANS * median).clamp(SEEDS_LEAST, SEEDS_MOST);
    mutants::found(&setup, arguments.from, seeds).is_none()
}

impl Needs {
    /// What the bug at `index` needs, as a cell.
    pub(crate) fn of_bug(&self, index: usize) -> String {
        let names: Vec<&str> = self.0[index].iter().map(|class| class.name()).collect();
        names.join(", ")
    }

    /// By class, the bugs that need it.
    pub(crate) fn by_class(&self, bugs: &[Bug]) -> Table {
        let mut table = Table::new(&["without", "these are not found"]);
        for class in Class::ALL {
            let needing = bugs.iter().zip(&self.0);
            let needing = needing.filter(|(_, classes)| classes.contains(class));
            let names: Vec<&str> = needing.map(|(bug, _)| bug.name()).collect();
            table.row(vec![class.name().to_owned(), names.join(", ")]);
        }
        table
    }

    /// The classes that no bug needs.
    pub(crate) fn decoration(&self) -> Vec<Class> {
        let is_needed = |class: &Class| self.0.iter().any(|classes| classes.contains(class));
        Class::ALL
            .iter()
            .filter(|class| !is_needed(class))
            .copied()
            .collect()
    }
}
