//! `sprag-sim`: runs seeds.

use std::process::ExitCode;

use clap::Parser;
use sprag_paxos::simulation::{Bug, Mark};
use sprag_sim::{Mix, Setup};

#[derive(Parser)]
struct Arguments {
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    #[arg(long, default_value_t = 0)]
    from: u64,
    #[arg(long)]
    nodes: Option<usize>,
    #[arg(long)]
    bug: Option<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let bug = arguments
        .bug
        .as_ref()
        .map(|name| *Bug::ALL.iter().find(|bug| bug.name() == name).expect("bug"));
    let setup = Setup {
        mix: Mix::all(),
        nodes: arguments.nodes,
        bug,
        looks_inside: true,
    };
    let mut marks = vec![0; Mark::ALL.len()];
    let (mut asked, mut answered, mut events, mut restarts, mut decided) = (0, 0, 0, 0, 0);
    for seed in arguments.from..arguments.from + arguments.seeds {
        let report = sprag_sim::run(seed, &setup);
        for (count, mark) in marks.iter_mut().zip(Mark::ALL) {
            *count += u64::from(report.marks.contains(*mark));
        }
        asked += report.tally.asked;
        answered += report.tally.answered;
        events += report.events;
        restarts += report.tally.restarts;
        decided += report.tally.decided;
        if let Some(failure) = report.failure {
            println!(
                "seed {seed}: {failure:?} {} strikes {} events",
                report.struck.len(),
                report.events
            );
            if bug.is_some() {
                break;
            }
        }
    }
    println!(
        "asked {asked} answered {answered} events {events} restarts {restarts} decided {decided}"
    );
    for (count, mark) in marks.iter().zip(Mark::ALL) {
        println!("{count:>6} {}", mark.name());
    }
    ExitCode::SUCCESS
}
