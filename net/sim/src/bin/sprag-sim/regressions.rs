//! The committed scripts, one for each bug: each fails with its bug, in the way that it says, and passes without. When the
//! order of events changes, those that no longer hold are written anew.

use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use sprag_paxos::simulation::Bug;
use sprag_sim::{Mix, Script, Setup, shrink};

use crate::arguments::Arguments;
use crate::jobs;
use crate::script;
use crate::sound::SoundRuns;
use crate::verdict::Verdict;

/// More faults than these tell a reader nothing.
const STRIKES_MAX: usize = 60;

/// Of so many seeds that fail, those that fail first are shrunk: they are quickly run.
const SEEDS_FAILING: usize = 8;
const SEEDS_SHRUNK: usize = 2;

/// If none of them becomes small enough, so many times in all.
const TRIES: usize = 8;

/// The most runs it takes to shrink one: what is kept may take its time.
const REPLAYS_MAX: u32 = 20_000;

/// After so many seeds one that fails is enough.
const SEEDS_EASY: u64 = 500;

/// After so many seeds a bug counts as not found.
const SEEDS_MAX: u64 = 10_000;

pub(crate) fn run(arguments: &Arguments, out: &mut dyn Write) -> io::Result<Verdict> {
    let bugs = arguments.bugs();
    let count = bugs.len() as u64;
    let (mut failed, mut missing) = (0, 0);
    let sound = SoundRuns::default();
    let work = |number: u64| {
        let bug = bugs[number as usize];
        if !arguments.write && !path_of(bug).exists() {
            return Ok(None);
        }
        let checked = check(bug);
        if arguments.write && checked.is_err() {
            renew(bug, &sound)?;
            return check(bug).map(Some);
        }
        checked.map(Some)
    };
    let bar = jobs::bar(count);
    let take = |number: u64, checked: Result<Option<usize>, String>| -> io::Result<()> {
        let name = bugs[number as usize].name();
        bar.suspend(|| match checked {
            Ok(Some(faults)) => writeln!(out, "{name}: {faults} faults, ok"),
            Ok(None) => {
                missing += 1;
                writeln!(out, "{name}: no script, --write makes one")
            }
            Err(why) => {
                failed += 1;
                writeln!(out, "{name}: FAILED, {why}")
            }
        })
    };
    jobs::in_order(count, arguments.jobs(), work, take, &bar)?;
    for path in strays()? {
        let name = path.display();
        if arguments.write {
            fs::remove_file(&path)?;
            writeln!(out, "{name}: removed, its bug is no more")?;
        } else {
            failed += 1;
            writeln!(out, "{name}: FAILED, there is no such bug")?;
        }
    }
    let (verdict, word) = match failed {
        0 => (Verdict::Clean, "clean"),
        _ => (
            Verdict::Safety,
            "DIFFERENT; if events come in another order for a good reason, add --write",
        ),
    };
    let scripts = count - missing;
    writeln!(
        out,
        "{scripts} scripts, {failed} failed; {missing} bugs have none: {word}"
    )?;
    Ok(verdict)
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions")
}

fn path_of(bug: Bug) -> PathBuf {
    directory().join(format!("{}.script", bug.name()))
}

/// The files beside the scripts of the bugs there are, by name.
fn strays() -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory())?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.retain(|path| Bug::ALL.iter().all(|bug| path_of(*bug) != *path));
    paths.sort_unstable();
    Ok(paths)
}

/// Checks the script of `bug`; gives the number of its faults.
fn check(bug: Bug) -> Result<usize, String> {
    let script = script::read(&path_of(bug)).map_err(|error| error.to_string())?;
    let faults = script.strikes.len();
    if script.bug != Some(bug) {
        return Err(format!(
            "its script plants another bug than `{}`",
            bug.name()
        ));
    }
    if faults > STRIKES_MAX {
        return Err(format!("{faults} faults, more than {STRIKES_MAX}"));
    }
    let way = |script: &Script| script.replay().failure.map(|failure| failure.way());
    let fails = way(&script);
    if fails.is_none() || fails != script.fails {
        let fails = fails.unwrap_or_else(|| "not at all".to_owned());
        let expected = script.fails.unwrap_or_else(|| "nothing".to_owned());
        return Err(format!("fails by `{fails}`, and says `{expected}`"));
    }
    let sound = Script {
        bug: None,
        ..script
    };
    match way(&sound) {
        None => Ok(faults),
        Some(way) => Err(format!("fails without the bug, too, by `{way}`")),
    }
}

/// Writes the script of `bug` anew.
fn renew(bug: Bug, sound: &SoundRuns) -> Result<(), String> {
    let mut seeds = 0..SEEDS_MAX;
    let mut smallest: Option<Script> = None;
    for _ in 0..TRIES {
        let shrunk = failing(bug, &mut seeds, sound).into_iter();
        let shrunk = shrunk.map(|script| shrink(script, REPLAYS_MAX));
        smallest = shrunk
            .chain(smallest)
            .min_by_key(|script| (script.strikes.len(), script.seed));
        let is_enough = |script: &Script| script.strikes.len() <= STRIKES_MAX;
        if smallest.as_ref().is_some_and(is_enough) {
            break;
        }
    }
    let smallest = smallest.ok_or_else(|| format!("not found within {SEEDS_MAX} seeds"))?;
    let path = path_of(bug);
    let wrong = |error: io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(directory()).map_err(wrong)?;
    fs::write(&path, smallest.to_string()).map_err(wrong)
}

/// Of the next of `seeds` that fail, some that are quickly run.
fn failing(bug: Bug, seeds: &mut Range<u64>, sound: &SoundRuns) -> Vec<Script> {
    let setup = Setup {
        mix: Mix::all(),
        nodes: None,
        bug: Some(bug),
        looks_inside: true,
    };
    let mut failing = Vec::new();
    for seed in seeds {
        let report = sound.run_with(bug, seed, None, true);
        if let Some(report) = report
            && let Some(failure) = report.failure
        {
            let mut script = Script::new(seed, &setup, report.struck);
            script.fails = Some(failure.way());
            failing.push((report.events, seed, script));
        }
        if failing.len() == SEEDS_FAILING || (seed >= SEEDS_EASY && !failing.is_empty()) {
            break;
        }
    }
    failing.sort_unstable_by_key(|(events, seed, _)| (*events, *seed));
    failing.truncate(SEEDS_SHRUNK);
    failing.into_iter().map(|(.., script)| script).collect()
}
