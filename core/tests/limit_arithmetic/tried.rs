//! What is tried: awkward rates, times at the edges, costs, and strategies that draw them.

use super::*;

pub(crate) const AWKWARD_COUNTS: [u64; 9] = [0, 1, 7, 13, 100, 333, 4_096, 999_983, 1_000_003];
pub(crate) const AWKWARD_RATES: [(u64, u64); 8] = [
    (10_000_000_000, SECOND_NS),
    (1, YEAR_NS),
    (1, PERIOD_NS_MAX),
    (67_000_001, SECOND_NS),
    (1, 1),
    (999_983, 999_979),
    (3, 7),
    (COUNT_MAX, SECOND_NS),
];

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) time: Time,
    pub(crate) cost: Cost,
}

/// The next stamp; some are placed where a decision is about to change.
#[derive(Debug, Clone)]
pub(crate) enum Time {
    Same,
    Forward(u64),
    Back(u64),
    /// So many nanoseconds off the time at which the key is full.
    AtFull(i64),
    /// So many nanoseconds off the time at which a cost that is refused now is admitted.
    AtRetry(Cost, i64),
    /// So many nanoseconds off the end of the current period since the epoch.
    AtPeriodEnd(i64),
}

impl Time {
    /// At most 2^58. A special time beyond that leaves the time as it is.
    pub(crate) fn after(&self, subject: &Subject, now_ns: u64) -> u64 {
        let near = |time_ns: u64, off_ns: i64| {
            if time_ns > 1 << 58 {
                now_ns
            } else {
                time_ns.saturating_add_signed(off_ns)
            }
        };
        let next_ns = match self {
            Self::Same => now_ns,
            Self::Forward(ns) => now_ns + ns,
            Self::Back(ns) => now_ns.saturating_sub(*ns),
            Self::AtFull(off_ns) => {
                near(subject.prepared.full_at_ns(subject.value, BASE_NS), *off_ns)
            }
            Self::AtRetry(cost, off_ns) => {
                let (at, cost) = (moment(now_ns), cost.of(subject.limit));
                let verdict = subject.prepared.check(subject.value, at, cost);
                let decision = subject.prepared.decision(verdict, subject.value, at, cost);
                let wait_ns = decision.retry_after_ns().unwrap_or_default();
                near(now_ns.saturating_add(wait_ns), *off_ns)
            }
            Self::AtPeriodEnd(off_ns) => {
                let period_ns = subject.limit.period_ns();
                let end_ns = ((BASE_NS + now_ns) / period_ns + 1) * period_ns;
                near(end_ns - BASE_NS, *off_ns)
            }
        };
        next_ns.min(1 << 58)
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Cost {
    Zero,
    One,
    Some(u64),
    AllButOne,
    All,
    Above,
}

impl Cost {
    pub(crate) fn of(&self, limit: Limit) -> u64 {
        let all = limit.burst().unwrap_or(limit.count());
        match self {
            Self::Zero => 0,
            Self::One => 1,
            Self::Some(share) => share % all.saturating_add(1),
            Self::AllButOne => all.saturating_sub(1),
            Self::All => all,
            Self::Above => all.saturating_add(1),
        }
    }
}

pub(crate) fn steps() -> impl Strategy<Value = Step> {
    (later(), costs()).prop_map(|(time, cost)| Step { time, cost })
}

pub(crate) fn later() -> impl Strategy<Value = Time> {
    prop_oneof![
        2 => Just(Time::Same),
        2 => spans().prop_map(Time::Forward),
        1 => spans().prop_map(Time::Back),
        2 => (-2..=2_i64).prop_map(Time::AtFull),
        4 => (costs(), -2..=2_i64).prop_map(|(cost, off_ns)| Time::AtRetry(cost, off_ns)),
        2 => (-2..=2_i64).prop_map(Time::AtPeriodEnd),
    ]
}

pub(crate) fn spans() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..=3_u64,
        0..=1_000_u64,
        0..=SECOND_NS,
        0..=DAY_NS,
        0..=YEAR_NS
    ]
}

pub(crate) fn costs() -> impl Strategy<Value = Cost> {
    prop_oneof![
        1 => Just(Cost::Zero),
        4 => Just(Cost::One),
        3 => any::<u64>().prop_map(Cost::Some),
        1 => Just(Cost::AllButOne),
        2 => Just(Cost::All),
        1 => Just(Cost::Above),
    ]
}

pub(crate) fn times() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..=DAY_NS, 0..=1_u64 << 57, Just(1 << 57)]
}

pub(crate) fn rates() -> impl Strategy<Value = (u64, u64)> {
    let periods = prop::sample::select(vec![SECOND_NS, MINUTE_NS, HOUR_NS, DAY_NS]);
    prop_oneof![
        4 => (prop::sample::select(AWKWARD_COUNTS.to_vec()), periods),
        2 => prop::sample::select(AWKWARD_RATES.to_vec()),
        1 => (0..=67_000_000_u64, 1..=PERIOD_NS_MAX),
    ]
}

pub(crate) fn token_buckets() -> impl Strategy<Value = Limit> {
    let bursts = prop_oneof![
        Just(None),
        Just(Some(1)),
        Just(Some(2)),
        (1..=20_u64).prop_map(Some),
        (1..=10_000_000_u64).prop_map(Some),
        any::<u64>().prop_map(Some),
    ];
    (rates(), bursts).prop_filter_map("burst beyond the value", |((count, period_ns), burst)| {
        match burst {
            None => Limit::token_bucket(count, period_ns),
            Some(burst) => Limit::token_bucket_with_burst(count, period_ns, burst),
        }
        .or_else(|_| Limit::token_bucket_with_burst(count, period_ns, 20))
        .ok()
    })
}

pub(crate) fn fixed_windows() -> impl Strategy<Value = Limit> {
    rates().prop_filter_map("window out of bounds", |(count, period_ns)| {
        Limit::fixed_window(count, period_ns.max(WINDOW_PERIOD_NS_MIN)).ok()
    })
}

pub(crate) fn sliding_windows() -> impl Strategy<Value = Limit> {
    rates().prop_filter_map("window out of bounds", |(count, period_ns)| {
        let period_ns = period_ns.max(WINDOW_PERIOD_NS_MIN);
        let count_max = (1 << count_bits(period_ns)) - 1;
        Limit::sliding_window(count.min(count_max), period_ns).ok()
    })
}

pub(crate) fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![token_buckets(), fixed_windows(), sliding_windows()]
}

pub(crate) fn values() -> impl Strategy<Value = u128> {
    prop_oneof![
        any::<u128>(),
        0..=VALUE_MAX,
        Just(0),
        Just(VALUE_MAX),
        Just(u128::MAX)
    ]
}

/// Words at random, small words, and words that differ from valid ones in one place.
pub(crate) fn words() -> impl Strategy<Value = [u64; PREPARED_WORDS]> {
    prop_oneof![
        any::<[u64; PREPARED_WORDS]>(),
        prop::array::uniform5(0..8_u64),
        (limits(), 0..PREPARED_WORDS, any::<u64>(), 0..64_u32).prop_map(
            |(limit, index, word, bit)| {
                let mut words = limit.prepare().encode();
                words[index] = if bit == 0 {
                    word
                } else {
                    words[index] ^ (1 << bit)
                };
                words
            }
        ),
    ]
}
