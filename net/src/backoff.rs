//! How long to wait before something that failed is tried again: longer each time, up to a bound, and not as long as others
//! who failed at the same time.

use std::time::Duration;

use fastrand::Rng;

/// Pauses that double. Each is between half of its bound and all of it, drawn from a seed.
#[derive(Debug)]
pub(crate) struct Backoff {
    least_ms: u64,
    most_ms: u64,
    next_ms: u64,
    jitter: Rng,
}

impl Backoff {
    /// Of `least_ms` the first time, and of `most_ms` at most.
    pub(crate) fn new(seed: u64, (least_ms, most_ms): (u64, u64)) -> Self {
        Self {
            least_ms,
            most_ms,
            next_ms: least_ms,
            jitter: Rng::with_seed(seed),
        }
    }

    /// It failed: how long to wait.
    pub(crate) fn pause(&mut self) -> Duration {
        let half_ms = self.next_ms / 2;
        let pause_ms = self.next_ms - half_ms + self.jitter.u64(0..=half_ms);
        self.next_ms = (2 * self.next_ms).min(self.most_ms);
        Duration::from_millis(pause_ms)
    }

    /// It didn't.
    pub(crate) fn reset(&mut self) {
        self.next_ms = self.least_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_bound_and_begin_anew_once_it_went_well() {
        for seed in 0..20 {
            let mut backoff = Backoff::new(seed, (10, 1_000));
            for _ in 0..2 {
                for most_ms in [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000] {
                    let pause = backoff.pause();
                    let (least, most) = (most_ms / 2, most_ms);
                    assert!(pause >= Duration::from_millis(least), "{pause:?}");
                    assert!(pause <= Duration::from_millis(most), "{pause:?}");
                }
                backoff.reset();
            }
        }
    }

    #[test]
    fn the_seed_decides_and_nothing_else() {
        let pauses = |seed| {
            let mut backoff = Backoff::new(seed, (100, 10_000));
            (0..9).map(|_| backoff.pause()).collect::<Vec<_>>()
        };
        assert_eq!(pauses(3), pauses(3));
        assert_ne!(pauses(3), pauses(4));
    }
}
