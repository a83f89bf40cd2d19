//! The anchor that turns a time-stamp counter reading into boot time, and who renews it.
//!
//! The anchor's words lie on the process page, beside the fork id, and are wiped with it: a forked
//! child starts without an anchor, and a renewal that the fork cut in half is forgotten.
//!
//! `state` is a sequence lock whose writers never wait:
//!
//! | `VALID` (bit 0) | `LOCKED` (bit 1) | Meaning | Set by |
//! |---|---|---|---|
//! | 0 | 0 | no rate known yet, or the last two disagree | birth, fork, [`renew`] |
//! | 1 | 0 | the words belong together | [`renew`] when it's done |
//! | 0 | 1 | one thread is writing the words | [`renew`] at its start |
//! | 1 | 1 | never | |
//!
//! Bits 2 and up count the renewals. A thread that finds it locked, or that fails to lock it, asks
//! the kernel; so a writer stopped half-way costs the others the price of a kernel call and nothing else.

use super::counter::{self, serialised_ticks, ticks};
use super::real;
use crate::host::page::ProcessPage;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The oldest anchor to extrapolate from.
pub(crate) const TICKS_MAX: u64 = 1 << 22;
/// The shortest stretch to measure a rate over: as long as it will be used for, so that the error of
/// locating its ends isn't magnified.
const GAP_TICKS_MIN: u64 = TICKS_MAX;
/// The longest. Past it the process was idle, the last rate is as good as an average, and suspend is likelier.
const GAP_TICKS_MAX: u64 = 1 << 32;
/// A sample is good when the counter moved no more than this around the kernel's reading…
const SAMPLE_TICKS_GOOD: u64 = 1 << 9;
/// …and too wide to use past this: the thread was interrupted in between.
const SAMPLE_TICKS_MAX: u64 = 1 << 11;
const SAMPLE_TRIES: u32 = 4;
/// Rates are nanoseconds per tick, times 2^32. This one is sixteen nanoseconds per tick: below any counter in
/// question.
const RATE_MAX: u64 = 1 << 36;
const RATE_SHIFT: u32 = 32;

const VALID: u64 = 1;
const LOCKED: u64 = 2;
const ONE_RENEWAL: u64 = 4;

/// What the fast path reads: 32 bytes of one cache line.
#[derive(Debug)]
pub(crate) struct Anchor {
    state: AtomicU64,
    base_ticks: AtomicU64,
    base_ns: AtomicU64,
    rate: AtomicU64,
}

/// What only the holder of the anchor's lock writes: the last sample and what was learnt from it.
#[derive(Debug)]
pub(crate) struct CalibrationWords {
    ticks: AtomicU64,
    ns: AtomicU64,
    rate: AtomicU64,
    confirmed: AtomicU64,
}

/// One moment, by the counter and by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    ticks: u64,
    ns: u64,
}

/// What the samples so far say about the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Calibration {
    /// None until there is a first sample.
    last: Option<Sample>,
    /// Zero until there are two.
    rate: u64,
    /// Whether two stretches in a row agreed on the rate.
    is_confirmed: bool,
}

/// What to do with a new sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Too close to the last one to measure a rate; what is published stays.
    TooSoon,
    /// Remember it; a rate to trust needs another.
    Learning,
    /// It becomes the anchor, with the calibration's rate.
    Publish,
    /// Counter and kernel disagree with what they said before: suspend, another time namespace, or a counter gone
    /// bad.
    Suspicious,
}

impl Anchor {
    pub(crate) const fn new() -> Self {
        Self {
            state: AtomicU64::new(0),
            base_ticks: AtomicU64::new(0),
            base_ns: AtomicU64::new(0),
            rate: AtomicU64::new(0),
        }
    }

    /// Boot time at the counter's present reading, or None without a fresh anchor. `ticks` isn't
    /// called unless there is an anchor: reading the counter can be slow or forbidden where the
    /// kernel doesn't use it.
    #[inline(always)]
    pub(crate) fn extrapolate(&self, ticks: impl FnOnce() -> u64) -> Option<u64> {
        // Acquire: pairs with the Release store in `unlock`, so that the words below are at least
        // as new as this state.
        let state = self.state.load(Ordering::Acquire);
        if state & VALID == 0 {
            return None;
        }
        let base_ticks = self.base_ticks.load(Ordering::Relaxed);
        let base_ns = self.base_ns.load(Ordering::Relaxed);
        let rate = self.rate.load(Ordering::Relaxed);
        // Pairs with the Release fence in `lock`: had any word above come from a later writer, this
        // load would see that writer's lock or what followed it.
        fence(Ordering::Acquire);
        if self.state.load(Ordering::Relaxed) != state {
            return None;
        }
        // A counter behind the anchor (reset, or read just before another thread renewed) wraps to a large age.
        let age_ticks = ticks().wrapping_sub(base_ticks);
        if age_ticks >= TICKS_MAX {
            return None;
        }
        // 22 bits times 36 bits at most. Wrapping, since whoever looks for a panic branch finds none.
        Some(base_ns.wrapping_add(age_ticks.wrapping_mul(rate) >> RATE_SHIFT))
    }

    /// The state to unlock with, if nobody holds the lock.
    fn lock(&self) -> Option<u64> {
        let state = self.state.load(Ordering::Relaxed);
        if state & LOCKED != 0 {
            return None;
        }
        // Acquire: pairs with the Release store of the writer before, whose calibration words are read next.
        self.state
            .compare_exchange(
                state,
                (state & !VALID) | LOCKED,
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .ok()?;
        // Pairs with the Acquire fence in `extrapolate`: nobody may see a word written after this
        // and still find the state that came before the lock.
        fence(Ordering::Release);
        Some(state)
    }

    /// Release: pairs with the Acquire loads in `extrapolate` and `lock`.
    fn unlock(&self, state: u64, is_valid: bool) {
        let next = (state & !(VALID | LOCKED)).wrapping_add(ONE_RENEWAL);
        self.state
            .store(next | u64::from(is_valid), Ordering::Release);
    }

    /// Only under the lock.
    fn write(&self, base: Sample, rate: u64) {
        self.base_ticks.store(base.ticks, Ordering::Relaxed);
        self.base_ns.store(base.ns, Ordering::Relaxed);
        self.rate.store(rate, Ordering::Relaxed);
    }

    /// For a forked child where the kernel didn't wipe the page. There are no other threads then.
    pub(crate) fn wipe(&self) {
        self.state.store(0, Ordering::Relaxed);
    }
}

impl CalibrationWords {
    #[cfg(any(test, not(unix)))]
    pub(crate) const fn new() -> Self {
        Self {
            ticks: AtomicU64::new(0),
            ns: AtomicU64::new(0),
            rate: AtomicU64::new(0),
            confirmed: AtomicU64::new(0),
        }
    }

    /// For a forked child where the kernel didn't wipe the page.
    pub(crate) fn wipe(&self) {
        self.store(Calibration::NONE);
    }

    /// Only under the lock, whose Acquire and Release order these words.
    fn load(&self) -> Calibration {
        let ns = self.ns.load(Ordering::Relaxed);
        Calibration {
            last: (ns != 0).then(|| Sample {
                ticks: self.ticks.load(Ordering::Relaxed),
                ns,
            }),
            rate: self.rate.load(Ordering::Relaxed),
            is_confirmed: self.confirmed.load(Ordering::Relaxed) != 0,
        }
    }

    fn store(&self, calibration: Calibration) {
        let last = calibration.last.unwrap_or(Sample { ticks: 0, ns: 0 });
        self.ticks.store(last.ticks, Ordering::Relaxed);
        self.ns.store(last.ns, Ordering::Relaxed);
        self.rate.store(calibration.rate, Ordering::Relaxed);
        self.confirmed
            .store(u64::from(calibration.is_confirmed), Ordering::Relaxed);
    }
}

impl Calibration {
    const NONE: Self = Self {
        last: None,
        rate: 0,
        is_confirmed: false,
    };

    fn learn(self, sample: Sample) -> (Self, Verdict) {
        let seen = Self {
            last: Some(sample),
            ..self
        };
        let start_again = Self {
            rate: 0,
            is_confirmed: false,
            ..seen
        };
        let Some(last) = self.last else {
            return (start_again, Verdict::Learning);
        };
        let (Some(gap_ticks), Some(gap_ns)) = (
            sample.ticks.checked_sub(last.ticks),
            sample.ns.checked_sub(last.ns),
        ) else {
            return (start_again, Verdict::Suspicious);
        };
        if gap_ticks < GAP_TICKS_MIN {
            return (self, Verdict::TooSoon);
        }
        if gap_ticks > GAP_TICKS_MAX {
            let verdict = if self.is_confirmed {
                Verdict::Publish
            } else {
                Verdict::Learning
            };
            return (seen, verdict);
        }
        let rate = (u128::from(gap_ns) << RATE_SHIFT) / u128::from(gap_ticks);
        let Some(rate) = u64::try_from(rate).ok().filter(|&rate| rate <= RATE_MAX) else {
            return (start_again, Verdict::Suspicious);
        };
        let (is_confirmed, verdict) = if self.rate == 0 {
            (false, Verdict::Learning)
        } else if rate.abs_diff(self.rate) <= self.rate / 8 {
            (true, Verdict::Publish)
        } else {
            (false, Verdict::Suspicious)
        };
        let measured = Self {
            rate,
            is_confirmed,
            ..seen
        };
        (measured, verdict)
    }
}

/// Renews the anchor if this thread can have it, and returns the kernel's time either way.
pub(crate) fn renew(page: &ProcessPage) -> u64 {
    // Without the lock, so perhaps of two minds; it only saves the work of finding out `TooSoon`.
    let last_ticks = page.calibration.ticks.load(Ordering::Relaxed);
    if !counter::is_usable() || ticks().wrapping_sub(last_ticks) < GAP_TICKS_MIN {
        return real::host_ns();
    }
    let Some(state) = page.anchor.lock() else {
        return real::host_ns();
    };
    let (sample, now_ns) = take_sample();
    let Some(sample) = sample else {
        page.anchor.unlock(state, state & VALID != 0);
        return now_ns;
    };
    let (calibration, verdict) = page.calibration.load().learn(sample);
    page.calibration.store(calibration);
    match verdict {
        Verdict::TooSoon => page.anchor.unlock(state, state & VALID != 0),
        Verdict::Learning => page.anchor.unlock(state, false),
        Verdict::Publish => {
            page.anchor.write(sample, calibration.rate);
            page.anchor.unlock(state, true);
        }
        Verdict::Suspicious => {
            counter::recheck();
            // An offset that can't be told now stays what it was; the next open reports it.
            let has_moved = real::settle_offset().unwrap_or(false);
            if has_moved {
                page.calibration.store(Calibration::NONE);
            }
            page.anchor.unlock(state, false);
            if has_moved {
                return real::host_ns();
            }
        }
    }
    now_ns
}

/// The narrowest of a few readings of the kernel's clock between two of the counter, if narrow
/// enough, and the kernel's latest time.
fn take_sample() -> (Option<Sample>, u64) {
    let mut best = None;
    let mut best_width = SAMPLE_TICKS_MAX + 1;
    let mut now_ns = 0;
    for _ in 0..SAMPLE_TRIES {
        let before = serialised_ticks();
        now_ns = real::host_ns();
        let width = serialised_ticks().wrapping_sub(before);
        if width < best_width {
            best_width = width;
            best = Some(Sample {
                ticks: before.wrapping_add(width / 2),
                ns: now_ns,
            });
        }
        if best_width <= SAMPLE_TICKS_GOOD {
            break;
        }
    }
    (best, now_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    const THREE_GHZ: u64 = (1 << RATE_SHIFT) / 3;

    fn sample(ticks: u64, ns: u64) -> Sample {
        Sample { ticks, ns }
    }

    #[test]
    fn a_rate_is_trusted_once_two_stretches_agree_and_dropped_once_one_does_not() {
        const STEP: u64 = 6_000_000;
        let start = 1_000_000_000;
        // (case, ticks since the last sample, nanoseconds since then, verdict)
        let story = [
            ("the first sample", 0, 0, Verdict::Learning),
            ("the first rate", STEP, STEP / 3, Verdict::Learning),
            ("the same again", STEP, STEP / 3, Verdict::Publish),
            ("asked too soon", 1_000, 333, Verdict::TooSoon),
            (
                "a slew of 5 %",
                STEP,
                STEP / 3 * 105 / 100,
                Verdict::Publish,
            ),
            (
                "a counter that stood still in suspend",
                STEP,
                9_000_000_000,
                Verdict::Suspicious,
            ),
            ("after that", STEP, STEP / 3, Verdict::Learning),
            ("and confirmed", STEP, STEP / 3, Verdict::Publish),
            (
                "an idle hour",
                3 * 3_600_000_000_000,
                3_600_000_000_000,
                Verdict::Publish,
            ),
            (
                "a step within reason but not in line",
                STEP,
                STEP,
                Verdict::Suspicious,
            ),
            ("the old rate again", STEP, STEP / 3, Verdict::Suspicious),
            ("and confirmed once more", STEP, STEP / 3, Verdict::Publish),
        ];
        let mut calibration = Calibration::NONE;
        let mut last = sample(start, start);
        for (case, ticks, ns, expected) in story {
            let next = sample(last.ticks + ticks, last.ns + ns);
            let (learnt, verdict) = calibration.learn(next);
            assert_eq!(verdict, expected, "{case}");
            calibration = learnt;
            if verdict != Verdict::TooSoon {
                last = next;
            }
        }
        let (learnt, verdict) = calibration.learn(sample(5, last.ns + 1));
        assert_eq!(verdict, Verdict::Suspicious, "a counter that was reset");
        assert_eq!(learnt.rate, 0);
        let (learnt, verdict) = calibration.learn(sample(last.ticks + STEP, last.ns - 1));
        assert_eq!(verdict, Verdict::Suspicious, "a clock that went back");
        assert_eq!((learnt.rate, learnt.is_confirmed), (0, false));
    }

    #[test]
    fn an_anchor_answers_only_while_it_is_valid_and_young() {
        let anchor = Anchor::new();
        let never = || -> u64 { panic!("the counter must not be read without an anchor") };
        assert_eq!(anchor.extrapolate(never), None);

        let state = anchor.lock().expect("nobody else has it");
        assert_eq!(anchor.lock(), None, "a second writer is turned away");
        assert_eq!(anchor.extrapolate(never), None);
        anchor.write(sample(9_000, 77_000), THREE_GHZ);
        anchor.unlock(state, true);

        let youngest = 9_000;
        let oldest = 9_000 + TICKS_MAX - 1;
        assert_eq!(anchor.extrapolate(|| youngest), Some(77_000));
        assert_eq!(anchor.extrapolate(|| 9_300), Some(77_099));
        assert_eq!(
            anchor.extrapolate(|| oldest),
            Some(77_000 + (((TICKS_MAX - 1) * THREE_GHZ) >> 32))
        );
        assert_eq!(anchor.extrapolate(|| oldest + 1), None, "too old");
        assert_eq!(anchor.extrapolate(|| 8_999), None, "a counter behind it");

        // A writer that stops here leaves everyone else without an anchor, not without an answer.
        let stuck = anchor.lock();
        assert!(stuck.is_some());
        assert_eq!(anchor.extrapolate(never), None);
        anchor.wipe();
        assert!(anchor.lock().is_some(), "a forked child is not bound by it");
    }

    #[test]
    fn words_of_two_anchors_are_never_mixed() {
        const RENEWALS: u64 = 200_000;
        let anchor = Anchor::new();
        let is_done = AtomicBool::new(false);
        let answers = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut answers = 0_u64;
                while !is_done.load(Ordering::Acquire) {
                    // Every anchor written below says (k, 1000 k, rate k): read at k + 2^10 with one
                    // whole rate, so that any mixture shows.
                    let mut at = 0;
                    let answer = anchor.extrapolate(|| {
                        at = anchor.base_ticks.load(Ordering::Relaxed);
                        at + 1_024
                    });
                    if let Some(ns) = answer {
                        let k = ns / 1_000;
                        let ticks = at + 1_024 - k;
                        let expected = k * 1_000 + ((ticks * (k << 20)) >> RATE_SHIFT);
                        assert_eq!(ns, expected, "at {at}");
                        answers += 1;
                    }
                }
                answers
            });
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..RENEWALS {
                            if let Some(state) = anchor.lock() {
                                let k = anchor.base_ticks.load(Ordering::Relaxed) % 900 + 1;
                                anchor.write(sample(k, k * 1_000), k << 20);
                                anchor.unlock(state, true);
                            }
                            std::hint::spin_loop();
                        }
                    })
                })
                .collect();
            for writer in writers {
                writer.join().expect("a writer panicked");
            }
            is_done.store(true, Ordering::Release);
            reader.join().expect("the reader panicked")
        });
        println!("{answers} answers under {RENEWALS} renewals by each of two writers");
    }
}
