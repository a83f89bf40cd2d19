//! One contestant of a case, ready to run, and the stop-watch.

use crate::Result;
use std::sync::Barrier;
use std::time::Instant;

/// One contestant of a case: set up, filled, and owning what it needs.
pub struct Side {
    threads: usize,
    operations: usize,
    work: Box<Work>,
}

type Work = dyn Fn(usize) -> Result<u64> + Send + Sync;

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// Nanoseconds per operation per thread.
    pub ns: f64,
    /// What was allowed or granted, of all threads together.
    pub admitted: u64,
}

impl Side {
    /// A contestant whose thread number `n` does its `operations` by calling `work(n)`, which says
    /// how many of them were admitted.
    pub fn new(
        threads: usize,
        operations: usize,
        work: impl Fn(usize) -> Result<u64> + Send + Sync + 'static,
    ) -> Self {
        Self {
            threads,
            operations,
            work: Box::new(work),
        }
    }

    /// One measurement: every thread starts at once and is timed by itself.
    pub fn run(&self) -> Result<Timed> {
        if self.threads == 1 {
            return self.run_thread(0);
        }
        let start = Barrier::new(self.threads);
        let timed: Vec<Result<Timed>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads)
                .map(|thread| {
                    let start = &start;
                    scope.spawn(move || {
                        start.wait();
                        self.run_thread(thread)
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        });
        let mut sum = Timed {
            ns: 0.0,
            admitted: 0,
        };
        for timed in timed {
            let timed = timed?;
            sum.ns += timed.ns / self.threads as f64;
            sum.admitted += timed.admitted;
        }
        Ok(sum)
    }

    fn run_thread(&self, thread: usize) -> Result<Timed> {
        let started = Instant::now();
        let admitted = (self.work)(thread)?;
        let ns = started.elapsed().as_nanos() as f64 / self.operations as f64;
        Ok(Timed { ns, admitted })
    }
}
