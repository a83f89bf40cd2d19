//! How long a command may go on under its claim: decides, from what is known of the hold, when it must
//! be told to end and when it must be ended. Reads no clock and sends no signal.
//!
//! ```text
//!            a quarter of the lease left,                    an eighth left, or the grace
//!            or the hold taken away                          after it was taken away over
//!   Held ──────────────────────────────────▶ Terminating ───────────────────────────────▶ Killed
//!     └──────────────── an eighth left, or none: we were stopped or starved ────────────────▲
//! ```
//!
//! A renewal is due when a third of the lease has passed, and is tried for as long as the hold lasts;
//! so three quarters without one mean that none will come.
//!
//! **What this guarantees**: while this process runs, the command is sent `SIGKILL` before its lease
//! ends, so before anybody can be given the lock by the lease's end. **What it can't**: a hold that is
//! taken away by force is somebody else's at once, and the command runs on until that is noticed and
//! its grace is over; and a process that is stopped, or its machine suspended, sends no signals at
//! all. Only a fence that checks the token holds then.

use std::fmt;
use std::time::Duration;

use crate::span::nanoseconds;

/// The shortest lease that can be guarded: its eighth must be long enough to send two signals in.
pub(crate) const TTL_MIN: Duration = Duration::from_millis(100);

/// How often the hold is looked at, at least: a lock taken away by force is noticed within this.
const LOOK_EVERY_NS: u64 = 200_000_000;

/// How a hold was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Somebody broke the lock, or the region is gone.
    TakenAway,
    /// The lease ran out, or nearly.
    NotRenewed,
}

impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TakenAway => "it was broken, or the space's region was removed or replaced",
            Self::NotRenewed => {
                "its lease could not be renewed in time, for sprag was stopped or held up for longer than --ttl"
            }
        })
    }
}

/// What is to be done to the command now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    GoOn,
    /// Ask it to end.
    Terminate,
    /// End it.
    Kill,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Held,
    Terminating { kill_at_ns: u64 },
    Killed,
}

/// The watch over one hold. Times are nanoseconds of boot time.
#[derive(Debug)]
pub(super) struct Guard {
    ttl_ns: u64,
    grace_ns: u64,
    /// The end of the lease as last seen while it was held.
    deadline_ns: u64,
    state: State,
    loss: Option<Loss>,
}

impl Guard {
    /// A watch over a hold of which `left` is left at `now_ns`, of leases `ttl` long. A command whose
    /// lock is taken away by force has `grace` to end in.
    pub(super) fn new(now_ns: u64, left: Duration, ttl: Duration, grace: Duration) -> Self {
        Self {
            ttl_ns: nanoseconds(ttl),
            grace_ns: nanoseconds(grace),
            deadline_ns: now_ns.saturating_add(nanoseconds(left)),
            state: State::Held,
            loss: None,
        }
    }

    /// What to do at `now_ns`, when `held_for` is left of the lease, or the hold is gone. Each of
    /// [`Terminate`](Verdict::Terminate) and [`Kill`](Verdict::Kill) comes once at most.
    pub(super) fn look(&mut self, now_ns: u64, held_for: Option<Duration>) -> Verdict {
        if let Some(left) = held_for {
            self.deadline_ns = now_ns.saturating_add(nanoseconds(left));
        }
        let last_call_ns = self.deadline_ns.saturating_sub(self.ttl_ns / 8);
        let (loss, kill_at_ns) = match (self.state, held_for) {
            (State::Killed, _) => return Verdict::GoOn,
            // Once asked to end it is asked for good: a renewal that succeeds late changes nothing.
            (State::Terminating { kill_at_ns }, _) => (Loss::NotRenewed, kill_at_ns),
            (State::Held, Some(_)) if now_ns < self.deadline_ns.saturating_sub(self.ttl_ns / 4) => {
                return Verdict::GoOn;
            }
            (State::Held, None) if now_ns < self.deadline_ns => {
                let grace_over_ns = now_ns.saturating_add(self.grace_ns);
                (Loss::TakenAway, last_call_ns.min(grace_over_ns))
            }
            (State::Held, _) => (Loss::NotRenewed, last_call_ns),
        };
        self.loss.get_or_insert(loss);
        if now_ns >= kill_at_ns {
            self.state = State::Killed;
            Verdict::Kill
        } else if self.state == State::Held {
            self.state = State::Terminating { kill_at_ns };
            Verdict::Terminate
        } else {
            Verdict::GoOn
        }
    }

    /// How long after `now_ns` to look again, at the latest.
    pub(super) fn look_again(&self, now_ns: u64) -> Duration {
        let every_ns = LOOK_EVERY_NS.min(self.ttl_ns / 16);
        Duration::from_nanos(match self.state {
            State::Terminating { kill_at_ns } => every_ns.min(kill_at_ns.saturating_sub(now_ns)),
            State::Held | State::Killed => every_ns,
        })
    }

    /// Whether and how the hold was lost.
    pub(super) fn loss(&self) -> Option<Loss> {
        self.loss
    }
}

#[cfg(test)]
mod tests {
    use super::{Guard, Loss, Verdict};
    use std::time::Duration;

    const MS: u64 = 1_000_000;
    const TTL_MS: u64 = 8_000;
    const GRACE: Duration = Duration::from_secs(1);

    /// Looks at the given times, in milliseconds after the hold was granted for 8 s; the second number
    /// is what is left of the lease, `None` where the hold is gone.
    fn verdicts(looks: &[(u64, Option<u64>)]) -> (Vec<Verdict>, Option<Loss>) {
        let ttl = Duration::from_millis(TTL_MS);
        let mut guard = Guard::new(0, ttl, ttl, GRACE);
        let verdicts = looks
            .iter()
            .map(|&(at_ms, left_ms)| guard.look(at_ms * MS, left_ms.map(Duration::from_millis)))
            .collect();
        (verdicts, guard.loss())
    }

    #[test]
    fn a_command_ends_before_its_lease_and_no_sooner_than_need_be() {
        use Verdict::{GoOn, Kill, Terminate};
        /// When it is looked, and what is left then; what is to be done; how the hold was lost.
        type Case<'a> = (&'a [(u64, Option<u64>)], &'a [Verdict], Option<Loss>);
        let taken = Some(Loss::TakenAway);
        let late = Some(Loss::NotRenewed);
        let cases: [Case<'_>; 9] = [
            // Renewed as it should be.
            (
                &[(0, Some(8_000)), (2_000, Some(8_000)), (9_999, Some(8_000))],
                &[GoOn, GoOn, GoOn],
                None,
            ),
            // Not renewed: a quarter and an eighth of the lease before its end.
            (
                &[(5_999, Some(2_001)), (6_000, Some(2_000))],
                &[GoOn, Terminate],
                late,
            ),
            (
                &[
                    (6_000, Some(2_000)),
                    (6_999, Some(1_001)),
                    (7_000, Some(1_000)),
                ],
                &[Terminate, GoOn, Kill],
                late,
            ),
            // A late renewal doesn't call it back.
            (
                &[
                    (6_000, Some(2_000)),
                    (6_500, Some(8_000)),
                    (7_000, Some(7_500)),
                ],
                &[Terminate, GoOn, Kill],
                late,
            ),
            // Taken away: at once, and a second later.
            (
                &[(100, None), (1_099, None), (1_100, None), (1_101, None)],
                &[Terminate, GoOn, Kill, GoOn],
                taken,
            ),
            // Taken away near the end: the lease's end counts.
            (
                &[(5_000, Some(3_000)), (6_500, None), (7_000, None)],
                &[GoOn, Terminate, Kill],
                taken,
            ),
            (&[(5_000, Some(3_000)), (7_500, None)], &[GoOn, Kill], taken),
            // Stopped for longer than the lease.
            (&[(10, Some(7_990)), (8_000, None)], &[GoOn, Kill], late),
            (
                &[(10, Some(7_990)), (7_800, Some(200))],
                &[GoOn, Kill],
                late,
            ),
        ];
        for (looks, expected, loss) in cases {
            assert_eq!(verdicts(looks), (expected.to_vec(), loss), "{looks:?}");
        }
    }

    #[test]
    fn the_hold_is_looked_at_often_enough_for_its_lease() {
        for (ttl_ms, every_us) in [(30_000, 200_000), (1_600, 100_000), (100, 6_250)] {
            let ttl = Duration::from_millis(ttl_ms);
            let guard = Guard::new(0, ttl, ttl, GRACE);
            assert_eq!(guard.look_again(0), Duration::from_micros(every_us));
        }
        let ttl = Duration::from_millis(TTL_MS);
        let mut guard = Guard::new(0, ttl, ttl, GRACE);
        assert_eq!(guard.look(100 * MS, None), Verdict::Terminate);
        assert_eq!(guard.look_again(1_050 * MS), Duration::from_millis(50));
        assert_eq!(guard.look_again(2_000 * MS), Duration::ZERO);
    }
}
