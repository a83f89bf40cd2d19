//! `sprag-sim`: runs seeds, scripts, planted bugs and regressions, and says what came of them. What is simulated, and
//! how, lives in the library; here is who asks for it and what is printed.

mod arguments;
mod jobs;
mod mutants;
mod needs;
mod regressions;
mod script;
mod section;
mod seeds;
mod sound;
mod summary;
mod table;
mod verdict;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::verdict::Verdict;

fn main() -> ExitCode {
    let arguments = Arguments::read();
    let mut out = io::stdout().lock();
    let ended = run(&arguments, &mut out).and_then(|verdict| {
        out.flush()?;
        Ok(verdict)
    });
    match ended {
        Ok(verdict) => verdict.code(),
        // Whoever read it has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sprag-sim: {error}");
            Verdict::Usage.code()
        }
    }
}

fn run(arguments: &Arguments, out: &mut dyn Write) -> io::Result<Verdict> {
    if let Some(path) = &arguments.script {
        script::run(path, out)
    } else if arguments.mutants {
        mutants::run(arguments, out)
    } else if arguments.regressions {
        regressions::run(arguments, out)
    } else {
        seeds::run(arguments, out)
    }
}
