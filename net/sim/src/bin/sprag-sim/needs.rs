//! Which classes of faults it takes to find each bug: those without which it isn't found any more.

use std::io;
use std::ops::Range;

use sprag_paxos::simulation::Bug;
use sprag_sim::Class;

use crate::arguments::Arguments;
use crate::jobs;
use crate::mutants::Hunt;
use crate::sound::SoundRuns;
use crate::table::Table;

/// So many runs that fail are looked at: a class that struck in none of one's faults wasn't needed for it.
const FAILED: usize = 12;

/// A class that struck in all of them counts as needed if without it no run fails in so many times as many seeds as it
/// usually takes, within these bounds. If it made no difference, one in a thousand would still not be found after ten
/// times as many.
const MEDIANS: u64 = 20;
const SEEDS_LEAST: u64 = 300;
pub(crate) const SEEDS_MOST: u64 = 10_000;

/// By bug, the classes that it needs.
#[derive(Debug)]
pub(crate) struct Needs(Vec<Vec<Class>>);

/// Looks which classes each bug needs that `hunts` found.
pub(crate) fn find(
    arguments: &Arguments,
    bugs: &[Bug],
    hunts: &[Hunt],
    sound: &SoundRuns,
) -> io::Result<Needs> {
    let mut needs = Needs(Vec::new());
    let work = |number: u64| {
        let index = number as usize;
        hunts[index].median().map_or_else(Vec::new, |median| {
            let seeds = (MEDIANS * median).clamp(SEEDS_LEAST, SEEDS_MOST);
            let seeds = arguments.from..arguments.from + seeds;
            needed(bugs[index], seeds, sound)
        })
    };
    let take = |_, classes| {
        needs.0.push(classes);
        Ok::<(), io::Error>(())
    };
    let count = bugs.len() as u64;
    jobs::in_order(count, arguments.jobs(), work, take, &jobs::bar(count))?;
    Ok(needs)
}

/// The classes without which `bug` isn't found in `seeds`.
fn needed(bug: Bug, seeds: Range<u64>, sound: &SoundRuns) -> Vec<Class> {
    let runs = |without| {
        let run = move |seed| sound.run_with(bug, seed, without, true);
        let runs = seeds.clone().filter_map(run);
        runs.filter(|report| report.failure.is_some())
    };
    let mut classes = Class::ALL.to_vec();
    for report in runs(None).take(FAILED) {
        classes.retain(|class| report.struck.iter().any(|strike| strike.class == *class));
    }
    classes.retain(|class| runs(Some(*class)).next().is_none());
    classes
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
