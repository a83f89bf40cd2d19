//! What many seeds came to: medians, the states they reached, where nodes died, and the verdict.

use std::io::{self, Write};

use sprag_paxos::simulation::Mark;
use sprag_sim::{FailureKind, Mix, Report, Setup, Tally};

use crate::table::{Table, percent};
use crate::verdict::Verdict;

/// From so many seeds with all faults on, each state must have been reached.
const SEEDS_FOR_ANY: u64 = 1000;

/// From so many, each must have been reached by one seed in a hundred.
const SEEDS_FOR_A_SHARE: u64 = 10_000;
const SHARE_LEAST: u64 = 100;

/// One number of each seed.
type Numbers = Vec<u64>;

/// The sum of what seeds came to.
pub(crate) struct Summary {
    from: u64,
    /// Whether all faults are on and no bug is planted: what isn't reached then never is.
    is_default: bool,
    seeds: u64,
    failed: [u64; FailureKind::ALL.len()],
    events: Numbers,
    lasted_ms: Numbers,
    elections: Numbers,
    decided: Numbers,
    restarts: Numbers,
    snapshots: Numbers,
    installed: Numbers,
    asked: Numbers,
    answered: u64,
    marks: Vec<u64>,
    deaths: Vec<Vec<u64>>,
    traces: u64,
}

impl Summary {
    /// Of no seed yet, the first of which will be `from`.
    pub(crate) fn new(from: u64, setup: &Setup) -> Self {
        let is_default = setup.mix == Mix::all() && setup.nodes.is_none() && setup.bug.is_none();
        Self {
            from,
            is_default,
            seeds: 0,
            failed: [0; FailureKind::ALL.len()],
            events: Vec::new(),
            lasted_ms: Vec::new(),
            elections: Vec::new(),
            decided: Vec::new(),
            restarts: Vec::new(),
            snapshots: Vec::new(),
            installed: Vec::new(),
            asked: Vec::new(),
            answered: 0,
            marks: vec![0; Mark::ALL.len()],
            deaths: vec![vec![0; Tally::roles().count()]; Tally::points().count()],
            traces: 0,
        }
    }

    /// Adds the next seed's.
    pub(crate) fn add(&mut self, report: &Report) {
        self.seeds += 1;
        if let Some(failure) = &report.failure {
            self.failed[failure.kind() as usize] += 1;
        }
        let tally = &report.tally;
        self.events.push(report.events);
        self.lasted_ms.push(tally.lasted_ms);
        self.elections.push(tally.elections);
        self.decided.push(tally.decided);
        self.restarts.push(tally.restarts);
        self.snapshots.push(tally.snapshots);
        self.installed.push(tally.installed);
        self.asked.push(tally.asked);
        self.answered += tally.answered;
        for (count, mark) in self.marks.iter_mut().zip(Mark::ALL) {
            *count += u64::from(report.marks.contains(*mark));
        }
        for (row, crashes) in self.deaths.iter_mut().zip(&tally.crashes) {
            for (count, crashes) in row.iter_mut().zip(crashes) {
                *count += u64::from(*crashes);
            }
        }
        self.traces = self.traces.wrapping_add(report.hash);
    }

    /// How many seeds failed.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.iter().sum()
    }

    /// Prints all of it, the verdict as the last line.
    pub(crate) fn conclude(mut self, out: &mut dyn Write) -> io::Result<Verdict> {
        self.print_medians(out)?;
        self.print_marks(out)?;
        self.print_deaths(out)?;
        let lacks = self.lacks();
        for lack in &lacks {
            writeln!(out, "{lack}")?;
        }
        let kinds = FailureKind::ALL.iter().zip(self.failed);
        let verdict = kinds
            .filter(|(_, count)| *count > 0)
            .map(|(kind, _)| Verdict::from(*kind))
            .min()
            .unwrap_or(if lacks.is_empty() {
                Verdict::Clean
            } else {
                Verdict::TooRough
            });
        let failed: Vec<String> = FailureKind::ALL
            .iter()
            .zip(self.failed)
            .map(|(kind, count)| format!("{} {count}", kind.name()))
            .collect();
        writeln!(
            out,
            "{} seeds from {}, traces {:016x}, failed: {}: {}",
            self.seeds,
            self.from,
            self.traces,
            failed.join(", "),
            verdict.in_words()
        )?;
        Ok(verdict)
    }

    fn print_medians(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let asked: u64 = self.asked.iter().sum();
        let mut table = Table::new(&["of each seed", ">median", ">least", ">most"]);
        let rows = [
            ("events", &mut self.events),
            ("milliseconds", &mut self.lasted_ms),
            ("elections", &mut self.elections),
            ("slots decided", &mut self.decided),
            ("restarts", &mut self.restarts),
            ("snapshots", &mut self.snapshots),
            ("snapshots installed", &mut self.installed),
            ("calls", &mut self.asked),
        ];
        for (name, numbers) in rows {
            numbers.sort_unstable();
            let at = |index: usize| numbers.get(index).copied().unwrap_or(0).to_string();
            let last = numbers.len().saturating_sub(1);
            table.row(vec![name.to_owned(), at(last / 2), at(0), at(last)]);
        }
        writeln!(out, "{table}")?;
        writeln!(
            out,
            "{asked} calls, {} % of them answered\n",
            percent(self.answered, asked)
        )
    }

    fn print_marks(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new(&["state", ">% of seeds"]);
        for (mark, count) in Mark::ALL.iter().zip(&self.marks) {
            table.row(vec![mark.name().to_owned(), percent(*count, self.seeds)]);
        }
        writeln!(out, "{table}")
    }

    fn print_deaths(&self, out: &mut dyn Write) -> io::Result<()> {
        let roles = Tally::roles().map(|role| format!(">{role}"));
        let head: Vec<String> = ["died before".to_owned()]
            .into_iter()
            .chain(roles)
            .collect();
        let mut table = Table::new(&head);
        for (point, row) in Tally::points().zip(&self.deaths) {
            let counts = row.iter().map(ToString::to_string);
            table.row([point.to_owned()].into_iter().chain(counts).collect());
        }
        writeln!(out, "{table}")
    }

    /// What was tried too little.
    fn lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        let asked: u64 = self.asked.iter().sum();
        if 2 * self.answered < asked {
            lacks.push(
                "The mix is too rough: less than half of the calls were answered.".to_owned(),
            );
        }
        if !self.is_default || self.seeds < SEEDS_FOR_ANY {
            return lacks;
        }
        for (mark, count) in Mark::ALL.iter().zip(&self.marks) {
            if *count == 0 {
                lacks.push(format!("No seed reached: {}.", mark.name()));
            } else if self.seeds >= SEEDS_FOR_A_SHARE && count * SHARE_LEAST < self.seeds {
                lacks.push(format!(
                    "Less than 1 % of the seeds reached: {}.",
                    mark.name()
                ));
            }
        }
        for (point, row) in Tally::points().zip(&self.deaths) {
            for (role, count) in Tally::roles().zip(row) {
                if *count == 0 && Tally::is_wanted(point, role) {
                    lacks.push(format!("No node died before {point}, {role}."));
                }
            }
        }
        lacks
    }
}

#[cfg(test)]
mod tests {
    use sprag_sim::{Broken, Failure};

    use super::*;

    fn setup(mix: Mix) -> Setup {
        Setup {
            mix,
            nodes: None,
            bug: None,
            looks_inside: true,
        }
    }

    fn report(failure: Option<Failure>, answered: u64) -> Report {
        Report {
            failure,
            hash: 1,
            events: 1,
            tally: Tally {
                asked: 10,
                answered,
                ..Tally::default()
            },
            marks: sprag_paxos::simulation::Marks::default(),
            asked: sprag_paxos::simulation::Bugs::default(),
            struck: Vec::new(),
            tail: Vec::new(),
        }
    }

    fn verdict(mix: Mix, reports: impl IntoIterator<Item = Report>) -> Verdict {
        let mut summary = Summary::new(0, &setup(mix));
        for report in reports {
            summary.add(&report);
        }
        summary.conclude(&mut io::sink()).unwrap()
    }

    #[test]
    fn the_gravest_failure_of_all_is_told() {
        let safety = || {
            Some(Failure::Safety(Broken {
                invariant: "agreement",
                source: "",
                what: String::new(),
            }))
        };
        let liveness = || Some(Failure::Liveness(String::new()));
        let crash = || Some(Failure::Crash(String::new()));
        let cases = [
            (vec![None, None], Verdict::Clean),
            (vec![None, liveness()], Verdict::Liveness),
            (vec![liveness(), crash(), None], Verdict::Crash),
            (vec![liveness(), crash(), safety()], Verdict::Safety),
        ];
        for (failures, expected) in cases {
            let reports = failures.into_iter().map(|failure| report(failure, 10));
            assert_eq!(verdict(Mix::all(), reports), expected);
        }
    }

    #[test]
    fn less_than_half_of_the_calls_answered_is_too_rough() {
        let of = |answered| verdict(Mix::none(), [report(None, answered)]);
        assert_eq!(of(5), Verdict::Clean);
        assert_eq!(of(4), Verdict::TooRough);
    }

    #[test]
    fn what_no_seed_of_many_reached_is_a_failure_under_all_faults_only() {
        let of = |mix, seeds| verdict(mix, (0..seeds).map(|_| report(None, 10)));
        assert_eq!(of(Mix::all(), SEEDS_FOR_ANY - 1), Verdict::Clean);
        assert_eq!(of(Mix::all(), SEEDS_FOR_ANY), Verdict::TooRough);
        assert_eq!(of(Mix::none(), SEEDS_FOR_ANY), Verdict::Clean);
    }
}
