//! Spreads work over threads; what comes of it is taken in order, whatever the number of threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};

/// Does `work` for each of 0 up to `count` on `jobs` threads, and has `take` take what came of each, in order, on this
/// one. Moves `bar` along.
pub(crate) fn in_order<T: Send, E>(
    count: u64,
    jobs: usize,
    work: impl Fn(u64) -> T + Sync,
    mut take: impl FnMut(u64, T) -> Result<(), E>,
    bar: &ProgressBar,
) -> Result<(), E> {
    let next = AtomicU64::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..jobs {
            let (next, work, sender) = (&next, &work, sender.clone());
            scope.spawn(move || {
                loop {
                    // Only the number counts; results are handed over by the channel.
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count || sender.send((number, work(number))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut wanted = 0;
        for (number, result) in receiver {
            early.insert(number, result);
            while let Some(result) = early.remove(&wanted) {
                take(wanted, result)?;
                wanted += 1;
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        Ok(())
    })
}

/// A bar of `count` steps.
pub(crate) fn bar(count: u64) -> ProgressBar {
    let bar = ProgressBar::new(count);
    match ProgressStyle::with_template("{human_pos} of {human_len} {wide_bar} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_taken_in_order_each_once() {
        for jobs in [1, 2, 7] {
            let mut taken = Vec::new();
            let work = |number: u64| number * 3;
            let take = |number: u64, result: u64| {
                taken.push((number, result));
                Ok::<(), ()>(())
            };
            in_order(100, jobs, work, take, &ProgressBar::hidden()).unwrap();
            let expected: Vec<_> = (0..100).map(|number| (number, number * 3)).collect();
            assert_eq!(taken, expected, "{jobs}");
        }
    }

    #[test]
    fn nothing_more_is_begun_after_an_error() {
        let take = |number: u64, ()| if number == 3 { Err("enough") } else { Ok(()) };
        let ended = in_order(u64::MAX, 2, |_| (), take, &ProgressBar::hidden());
        assert_eq!(ended, Err("enough"));
    }
}
