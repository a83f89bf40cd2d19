//! Plants each bug in turn and tells after how many seeds it is found: with the invariants, by what clients see alone, and,
//! if asked to, without each class of faults.

use std::collections::BTreeMap;
use std::io::{self, Write};

use sprag_paxos::simulation::Bug;

use crate::arguments::Arguments;
use crate::needs::{self, Needs};
use crate::section;
use crate::sound::SoundRuns;
use crate::table::Table;
use crate::verdict::Verdict;
use crate::{jobs, table};

/// Each bug is looked for in so many ranges of seeds, of which the median counts.
pub(crate) const RANGES: u64 = 5;

/// Of a hundred bugs, so many must be found by what clients see alone.
const BLACK_BOX_LEAST: usize = 80;

/// How a bug was found, or that it wasn't, in each range.
#[derive(Debug, Default)]
pub(crate) struct Hunt {
    /// After how many seeds, in each range in which it was found.
    seeds: Vec<u64>,
    /// In which ways those failed, and how often each.
    ways: BTreeMap<String, u32>,
}

impl Hunt {
    /// The median over the ranges; `None` if it wasn't found in most of them.
    pub(crate) fn median(&self) -> Option<u64> {
        let mut seeds = self.seeds.clone();
        seeds.sort_unstable();
        seeds.get(RANGES as usize / 2).copied()
    }

    /// The way in which it was found most often.
    fn way(&self) -> String {
        let most = self.ways.iter().rev().max_by_key(|(_, count)| **count);
        most.map_or_else(String::new, |(way, _)| way.clone())
    }
}

pub(crate) fn run(arguments: &Arguments, out: &mut dyn Write) -> io::Result<Verdict> {
    let bugs = arguments.bugs();
    let sound = SoundRuns::default();
    let (inside, outside) = hunts(arguments, &bugs, &sound)?;
    let needs = arguments
        .matrix
        .then(|| needs::find(arguments, &bugs, &inside, &sound))
        .transpose()?;
    let table = table_of(&bugs, &inside, &outside, needs.as_ref());
    let mut text = format!(
        "At most {} seeds in each range.\n\n{table}",
        arguments.seeds()
    );
    if let Some(needs) = &needs {
        text = format!("{text}\n{}", needs.by_class(&bugs));
    }
    writeln!(out, "{text}")?;
    if arguments.write {
        section::write("planted bugs", &text)?;
    }
    conclude(arguments, &inside, &outside, needs.as_ref(), out)
}

/// What each bug takes with invariants, and without.
fn hunts(
    arguments: &Arguments,
    bugs: &[Bug],
    sound: &SoundRuns,
) -> io::Result<(Vec<Hunt>, Vec<Hunt>)> {
    let count = bugs.len() as u64;
    let bar = jobs::bar(2 * count);
    let mut hunts = Vec::new();
    // The longest first: what clients don't see is looked for to the end.
    let work = |number: u64| {
        let bug = bugs[(number % count) as usize];
        hunt(arguments, bug, number >= count, sound)
    };
    let take = |_, hunt| {
        hunts.push(hunt);
        Ok::<(), io::Error>(())
    };
    jobs::in_order(2 * count, arguments.jobs(), work, take, &bar)?;
    let inside = hunts.split_off(bugs.len());
    Ok((inside, hunts))
}

fn hunt(arguments: &Arguments, bug: Bug, looks_inside: bool, sound: &SoundRuns) -> Hunt {
    let mut hunt = Hunt::default();
    for range in 0..RANGES {
        let from = arguments.from + range * arguments.seeds();
        let failed = (0..arguments.seeds()).find_map(|number| {
            let report = sound.run_with(bug, from + number, None, looks_inside)?;
            Some((number + 1, report.failure?.way()))
        });
        if let Some((seeds, way)) = failed {
            hunt.seeds.push(seeds);
            *hunt.ways.entry(way).or_default() += 1;
        }
        let missed = range + 1 - hunt.seeds.len() as u64;
        if missed > RANGES / 2 {
            break;
        }
    }
    hunt
}

fn table_of(bugs: &[Bug], inside: &[Hunt], outside: &[Hunt], needs: Option<&Needs>) -> Table {
    let mut head = vec![
        "bug",
        ">seeds, with invariants",
        "found most often by",
        ">seeds, by clients alone",
    ];
    if needs.is_some() {
        head.push("not found without");
    }
    let mut table = Table::new(&head);
    let number = |median: Option<u64>| median.map_or_else(|| "-".to_owned(), |n| n.to_string());
    for (index, bug) in bugs.iter().enumerate() {
        let mut row = vec![
            bug.name().to_owned(),
            number(inside[index].median()),
            inside[index].way(),
            number(outside[index].median()),
        ];
        row.extend(needs.map(|needs| needs.of_bug(index)));
        table.row(row);
    }
    table
}

fn conclude(
    arguments: &Arguments,
    inside: &[Hunt],
    outside: &[Hunt],
    needs: Option<&Needs>,
    out: &mut dyn Write,
) -> io::Result<Verdict> {
    let found = |hunts: &[Hunt]| hunts.iter().filter(|hunt| hunt.median().is_some()).count();
    let (bugs, inside, outside) = (inside.len(), found(inside), found(outside));
    let mut is_well = inside == bugs;
    // Of one bug no share can be told.
    is_well &= arguments.bug.is_some() || 100 * outside >= BLACK_BOX_LEAST * bugs;
    let mut decoration = String::new();
    if let Some(needs) = needs {
        let useless = needs.decoration();
        is_well &= useless.is_empty() || !arguments.strict;
        decoration = format!(", {} classes of faults are decoration", useless.len());
    }
    let verdict = if is_well {
        Verdict::Clean
    } else {
        Verdict::Safety
    };
    writeln!(
        out,
        "{bugs} bugs, {inside} found with invariants, {outside} ({} %) by clients alone{decoration}: {}",
        table::percent(outside as u64, bugs as u64),
        if is_well { "clean" } else { "NOT ENOUGH" }
    )?;
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use super::Hunt;

    #[test]
    fn the_median_is_over_all_ranges_found_or_not() {
        let of = |seeds: &[u64]| {
            Hunt {
                seeds: seeds.to_vec(),
                ..Hunt::default()
            }
            .median()
        };
        assert_eq!(of(&[5, 1, 4, 2, 3]), Some(3));
        assert_eq!(of(&[9, 1, 2]), Some(9));
        assert_eq!(of(&[1, 2]), None);
    }
}
