//! The independent model: a bucket of fluid tokens and a counter of windows, in exact rationals, and
//! the runs that hold the limits to it. Shares nothing with the arithmetic under test.

use super::*;

/// What a key under a limit has used, in exact rationals.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) limit: Limit,
    pub(crate) state: State,
}

#[derive(Debug, Clone)]
pub(crate) enum State {
    Fresh,
    /// So many tokens were missing at that time since the base.
    Bucket {
        missing: Exact,
        at_ns: u64,
    },
    /// So much was counted in that window since the epoch.
    Window {
        index: BigInt,
        counted: Exact,
    },
    /// Everything that was ever admitted: in which window since the epoch, and how much.
    Log(Vec<(BigInt, Exact)>),
}

impl Model {
    pub(crate) fn new(limit: Limit) -> Self {
        let state = State::Fresh;
        Self { limit, state }
    }

    pub(crate) fn capacity(&self) -> u64 {
        match self.limit.count() {
            0 => 0,
            count => self.limit.burst().unwrap_or(count),
        }
    }

    pub(crate) fn window_of(&self, unix_ns: &Exact) -> BigInt {
        (unix_ns / whole(self.limit.period_ns()))
            .floor()
            .to_integer()
    }

    pub(crate) fn used(&self, now_ns: impl Into<u128>) -> Exact {
        let now_ns = now_ns.into();
        match &self.state {
            State::Fresh => whole(0),
            State::Bucket { missing, at_ns } => {
                let passed = whole(now_ns) - whole(*at_ns);
                (missing - rate(self.limit) * passed).max(whole(0))
            }
            State::Window { index, counted } => {
                if self.window_of(&unix(now_ns)) > *index {
                    whole(0)
                } else {
                    counted.clone()
                }
            }
            State::Log(log) => {
                let (index, share_left) = self.sliding_at(now_ns);
                let counted = |index: BigInt| -> Exact {
                    let within = log.iter().filter(|(window, _)| *window == index);
                    within.map(|(_, cost)| cost).sum()
                };
                counted(&index - BigInt::from(1)) * share_left + counted(index)
            }
        }
    }

    /// Sliding window: the window that a request counts in, the latest one admitted to at the least, and
    /// the share of it that is left; all of it for a stamp from before.
    pub(crate) fn sliding_at(&self, now_ns: u128) -> (BigInt, Exact) {
        let stamped = self.window_of(&unix(now_ns));
        let latest = match &self.state {
            State::Log(log) => log.iter().map(|(window, _)| window).max(),
            _ => None,
        };
        match latest {
            Some(latest) if *latest > stamped => (latest.clone(), whole(1)),
            _ => {
                let periods = unix(now_ns) / whole(self.limit.period_ns());
                let share_left = Exact::from_integer(&stamped + BigInt::from(1)) - periods;
                (stamped, share_left)
            }
        }
    }

    pub(crate) fn remaining(&self, now_ns: u64) -> Exact {
        let left = whole(self.capacity()) - self.used(now_ns);
        left.floor().max(whole(0))
    }

    pub(crate) fn would_admit(&self, now_ns: impl Into<u128>, cost: u64) -> bool {
        cost == 0 || self.used(now_ns) + whole(cost) <= whole(self.capacity())
    }

    pub(crate) fn admit(&mut self, now_ns: u64, cost: u64) {
        if cost == 0 {
            return;
        }
        if self.limit.algorithm() == Algorithm::SlidingWindow {
            let (index, _) = self.sliding_at(now_ns.into());
            let mut log = match std::mem::replace(&mut self.state, State::Fresh) {
                State::Log(log) => log,
                _ => Vec::new(),
            };
            log.push((index, whole(cost)));
            self.state = State::Log(log);
            return;
        }
        let used = self.used(now_ns) + whole(cost);
        self.state = if self.limit.algorithm() == Algorithm::TokenBucket {
            State::Bucket {
                missing: used,
                at_ns: now_ns,
            }
        } else {
            let stamped = self.window_of(&unix(now_ns));
            let index = match &self.state {
                State::Window { index, .. } => stamped.max(index.clone()),
                _ => stamped,
            };
            State::Window {
                index,
                counted: used,
            }
        };
    }

    /// The same use under another limit; exact, so a window may count fractions.
    pub(crate) fn changed(self, limit: Limit, now_ns: u64) -> Self {
        let is_sliding = |limit: Limit| limit.algorithm() == Algorithm::SlidingWindow;
        if is_sliding(self.limit)
            && is_sliding(limit)
            && self.limit.period_ns() == limit.period_ns()
        {
            return Self { limit, ..self };
        }
        let used = self.used(now_ns);
        let mut unix_ns = unix(now_ns);
        let latest = match &self.state {
            State::Window { index, .. } => Some(index),
            State::Log(log) => log.iter().map(|(window, _)| window).max(),
            _ => None,
        };
        if let Some(index) = latest {
            let start = Exact::from_integer(index.clone()) * whole(self.limit.period_ns());
            unix_ns = unix_ns.max(start);
        }
        let mut model = Self::new(limit);
        model.state = match limit.algorithm() {
            Algorithm::TokenBucket => {
                let since_base = (unix_ns - whole(BASE_NS)).to_integer();
                State::Bucket {
                    missing: used,
                    at_ns: u64::try_from(since_base).expect("a time of the test"),
                }
            }
            Algorithm::SlidingWindow => State::Log(vec![(model.window_of(&unix_ns), used)]),
            _ => State::Window {
                index: model.window_of(&unix_ns),
                counted: used,
            },
        };
        model
    }
}

/// The module under test, one key.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) limit: Limit,
    pub(crate) prepared: Prepared,
    pub(crate) value: u128,
}

impl Subject {
    pub(crate) fn new(limit: Limit) -> Self {
        Self {
            limit,
            prepared: limit.prepare(),
            value: 0,
        }
    }

    pub(crate) fn change(&mut self, limit: Limit, now_ns: u64) {
        let prepared = limit.prepare();
        self.value = convert(&self.prepared, self.value, &prepared, moment(now_ns));
        (self.limit, self.prepared) = (limit, prepared);
    }

    /// What the value says is used, read by its documented layout.
    pub(crate) fn used_exactly(&self, now_ns: u64) -> Exact {
        match self.limit.algorithm() {
            Algorithm::TokenBucket => {
                let [_, units_per_ns, units_per_token, ..] = self.prepared.encode();
                let owed = whole(self.value) - whole(now_ns) * whole(units_per_ns);
                owed.max(whole(0)) / whole(units_per_token)
            }
            Algorithm::SlidingWindow => {
                let bits = count_bits(self.limit.period_ns());
                let index = self.value >> (2 * bits);
                let [previous, current] =
                    [bits, 0].map(|shift| whole(self.value >> shift & ((1 << bits) - 1)));
                let periods = unix(now_ns) / whole(self.limit.period_ns());
                let into = (periods - whole(index)).max(whole(0));
                let decayed = |count: Exact, into: Exact| count * (whole(1) - into).max(whole(0));
                if into < whole(1) {
                    decayed(previous, into) + current
                } else {
                    decayed(current, into - whole(1))
                }
            }
            _ => {
                let window = u128::from((BASE_NS + now_ns) / self.limit.period_ns());
                let is_over = window > self.value >> 40;
                whole(if is_over { 0 } else { self.value % (1 << 40) })
            }
        }
    }
}

/// Runs the steps on both and compares everything that a caller can see.
pub(crate) fn run_against_model(
    limit: Limit,
    start_ns: u64,
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let (mut subject, mut model) = (Subject::new(limit), Model::new(limit));
    let mut now_ns = start_ns;
    for step in steps {
        now_ns = step.time.after(&subject, now_ns);
        let (at, cost) = (moment(now_ns), step.cost.of(limit));
        let verdict = subject.prepared.check(subject.value, at, cost);
        let decision = subject.prepared.decision(verdict, subject.value, at, cost);

        let expected = model.would_admit(now_ns, cost);
        prop_assert_eq!(
            is_allowed(verdict),
            expected,
            "{} of {} at {}",
            cost,
            limit,
            now_ns
        );
        prop_assert_eq!(decision.is_allowed(), expected);
        prop_assert_eq!(verdict == Verdict::Never, cost > model.capacity());
        if let Verdict::Allowed { new_value } = verdict {
            prop_assert!(new_value <= VALUE_MAX);
            subject.value = new_value;
            model.admit(now_ns, cost);
        }
        prop_assert_eq!(decision.limit(), model.capacity());
        prop_assert_eq!(whole(decision.remaining()), model.remaining(now_ns));

        let after = |wait_ns| u128::from(now_ns) + u128::from(wait_ns);
        match decision.retry_after_ns() {
            Some(0) => prop_assert!(expected),
            Some(wait_ns) => {
                prop_assert!(!expected && cost <= model.capacity());
                prop_assert!(!model.would_admit(after(wait_ns) - 1, cost));
                // The greatest wait stands for all that are beyond 64 bits.
                prop_assert!(wait_ns == u64::MAX || model.would_admit(after(wait_ns), cost));
                if after(wait_ns) <= u128::from(TIME_NS_MAX) {
                    let retry = |ns| subject.prepared.check(subject.value, moment(ns), cost);
                    prop_assert!(is_allowed(retry(now_ns + wait_ns)));
                    prop_assert_eq!(retry(now_ns + wait_ns - 1), Verdict::Refused);
                }
            }
            None => prop_assert!(cost > model.capacity()),
        }
        match decision.wait_ns_for(cost) {
            Some(0) => prop_assert!(cost == 0 || model.would_admit(u128::from(now_ns), cost)),
            Some(wait_ns) => {
                prop_assert!(!model.would_admit(after(wait_ns) - 1, cost));
                prop_assert!(wait_ns == u64::MAX || model.would_admit(after(wait_ns), cost));
            }
            None => prop_assert!(cost > model.capacity()),
        }
        match decision.reset_after_ns() {
            Some(0) => prop_assert_eq!(model.used(now_ns), whole(0)),
            Some(wait_ns) => {
                prop_assert!(model.used(after(wait_ns) - 1) > whole(0));
                prop_assert!(wait_ns == u64::MAX || model.used(after(wait_ns)) == whole(0));
            }
            None => prop_assert!(false, "nothing was ever used under a count of 0"),
        }
        prop_assert_eq!(
            subject.prepared.is_full(subject.value, at),
            model.used(now_ns) == whole(0)
        );
    }
    Ok(())
}

/// Runs the steps on both without comparing; also the last time.
pub(crate) fn run(limit: Limit, start_ns: u64, steps: &[Step]) -> (Subject, Model, u64) {
    let (mut subject, mut model) = (Subject::new(limit), Model::new(limit));
    let mut now_ns = start_ns;
    for step in steps {
        now_ns = step.time.after(&subject, now_ns);
        let cost = step.cost.of(limit);
        let verdict = subject.prepared.check(subject.value, moment(now_ns), cost);
        if let Verdict::Allowed { new_value } = verdict {
            subject.value = new_value;
        }
        if model.would_admit(now_ns, cost) {
            model.admit(now_ns, cost);
        }
    }
    (subject, model, now_ns)
}

/// Stamps and positive costs that the module alone admits, in the order of the calls.
pub(crate) fn admissions(limit: Limit, start_ns: u64, steps: &[Step]) -> Vec<(u64, u64)> {
    let (mut subject, mut now_ns, mut admitted) = (Subject::new(limit), start_ns, Vec::new());
    for step in steps {
        now_ns = step.time.after(&subject, now_ns);
        let cost = step.cost.of(limit);
        let verdict = subject.prepared.check(subject.value, moment(now_ns), cost);
        if let Verdict::Allowed { new_value } = verdict {
            subject.value = new_value;
            if cost > 0 {
                admitted.push((now_ns, cost));
            }
        }
    }
    admitted
}

pub(crate) fn pairs(admitted: &[(u64, u64)]) -> impl Iterator<Item = (u64, u64)> + '_ {
    admitted.iter().flat_map(move |(from_ns, _)| {
        let not_before = admitted.iter().filter(move |(to_ns, _)| to_ns >= from_ns);
        not_before.map(move |(to_ns, _)| (*from_ns, *to_ns))
    })
}

/// Whether the model's use, after a change, is below what a value can hold.
pub(crate) fn is_within_value(model: &Model, now_ns: u64) -> bool {
    let used = model.used(now_ns);
    match model.limit.algorithm() {
        Algorithm::TokenBucket => {
            let [_, units_per_ns, units_per_token, ..] = model.limit.prepare().encode();
            let owed = used * whole(units_per_token);
            whole(now_ns) * whole(units_per_ns) + owed + whole(1) <= whole(VALUE_MAX)
        }
        Algorithm::SlidingWindow => {
            used <= whole((1_u64 << count_bits(model.limit.period_ns())) - 1)
        }
        _ => used < whole(1_u64 << 40),
    }
}

/// Bits of each count of a sliding window, by the documented layout.
pub(crate) fn count_bits(period_ns: u64) -> u32 {
    (85 - (64 - period_ns.ilog2())) / 2
}

/// The denominator of the rate in tokens per nanosecond; that of 0 is 1.
pub(crate) fn reduced_period(limit: Limit) -> BigInt {
    rate(limit).denom().clone()
}

pub(crate) fn rate(limit: Limit) -> Exact {
    whole(limit.count()) / whole(limit.period_ns())
}

pub(crate) fn unix(now_ns: impl Into<BigInt>) -> Exact {
    whole(BASE_NS) + whole(now_ns)
}

pub(crate) fn whole(number: impl Into<BigInt>) -> Exact {
    Exact::from_integer(number.into())
}

pub(crate) fn moment(now_ns: u64) -> Moment {
    Moment {
        now_ns,
        base_ns: BASE_NS,
    }
}

pub(crate) fn prepared(text: &str) -> Prepared {
    Limit::parse(text).expect(text).prepare()
}

pub(crate) fn is_allowed(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Allowed { .. })
}

pub(crate) fn new_value(verdict: Verdict) -> u128 {
    match verdict {
        Verdict::Allowed { new_value } => new_value,
        refused => panic!("{refused:?}"),
    }
}
