//! Several workers at once: owns the threads or processes, their start together and their results.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::Ground;
use super::samples::Samples;
use super::worker::{self, Job, Plan};
use crate::error::Error;

/// Workers that wait for their plan.
pub(crate) enum Crew<'g> {
    Threads {
        ground: &'g Ground,
        job: Job,
        count: u32,
    },
    Processes(Vec<Process>),
}

impl<'g> Crew<'g> {
    /// Starts the workers: processes where the space is shared, else threads, as users would.
    pub(crate) fn hire(ground: &'g Ground, job: Job, count: u32) -> Result<Self, Error> {
        if !ground.is_shared() {
            return Ok(Self::Threads { ground, job, count });
        }
        let run = std::process::id().to_string();
        let keys = job.keys().to_string();
        let processes = (0..count).map(|_| Process::start(ground, &["worker", &run, &keys]));
        Ok(Self::Processes(processes.collect::<Result<_, _>>()?))
    }

    /// Lets all of them work by the plan, and gives what they measured together.
    pub(crate) fn work(self, plan: Plan) -> Result<Samples, Error> {
        let mut together = Samples::default();
        match self {
            Self::Threads { ground, job, count } => {
                let run = std::process::id();
                let results = std::thread::scope(|scope| {
                    let work = || worker::work(&ground.space, run, job, plan);
                    let threads: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
                    let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join();
                    threads.into_iter().map(join).collect::<Vec<_>>()
                });
                for result in results {
                    match result {
                        Ok(samples) => together.add(&samples?),
                        Err(panic) => std::panic::resume_unwind(panic),
                    }
                }
            }
            Self::Processes(mut processes) => {
                for process in &mut processes {
                    let Plan {
                        start_ns,
                        end_ns,
                        timed_every,
                    } = plan;
                    process.tell(&format!("{start_ns} {end_ns} {timed_every}"))?;
                }
                for process in &mut processes {
                    let samples = Samples::read(&mut process.output);
                    let source = |source| child("does not say what it measured", source);
                    together.add(&samples.map_err(source)?);
                }
            }
        }
        Ok(together)
    }
}

/// A process of the benchmark; ended when dropped.
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    pub(crate) output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts this program again as `sprag bench` with `args`, and waits until it is ready.
    pub(crate) fn start(ground: &Ground, args: &[&str]) -> Result<Self, Error> {
        let program = std::env::current_exe();
        let program = program.map_err(|source| child("is not found", source))?;
        let mut command = Command::new(program);
        command.args(["--at", &ground.url]);
        if ground.group_shared {
            command.arg("--group-shared");
        }
        command.arg("bench").args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut started = command
            .spawn()
            .map_err(|source| child("does not start", source))?;
        let (Some(input), Some(output)) = (started.stdin.take(), started.stdout.take()) else {
            let source = io::ErrorKind::BrokenPipe.into();
            return Err(child("has no pipes", source));
        };
        let mut process = Self {
            child: started,
            input: Some(input),
            output: BufReader::new(output),
        };
        process.hear("is not ready")?;
        Ok(process)
    }

    /// Writes a line to it.
    pub(crate) fn tell(&mut self, line: &str) -> Result<(), Error> {
        let Some(input) = &mut self.input else {
            return Ok(());
        };
        writeln!(input, "{line}")
            .and_then(|()| input.flush())
            .map_err(|source| child("does not listen", source))
    }

    /// Waits for a line from it.
    fn hear(&mut self, otherwise: &'static str) -> Result<String, Error> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(0) => Err(child(otherwise, io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => Ok(line),
            Err(source) => Err(child(otherwise, source)),
        }
    }

    /// Kills it as `kill -9` does.
    pub(crate) fn kill(&mut self) -> Result<(), Error> {
        self.child
            .kill()
            .map_err(|source| child("can't be killed", source))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that still waits for its plan sees the end of its input; one that works or sleeps is
        // killed. Either may be gone already.
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn child(what: &'static str, source: io::Error) -> Error {
    Error::Child { what, source }
}
