//! The arithmetic of limits against a model that shares nothing with it: buckets of fluid tokens and
//! counted windows in exact rationals.
//!
//! Property 12 (limits are exact against their stated formula) and property 8 (no silent change), as
//! far as one key's value goes. `PROPTEST_CASES` sets how much is tried.

mod model;
mod slots;
mod tried;

use num_bigint::BigInt;
use num_rational::Ratio;
use proptest::prelude::*;
use sprag_core::limit::{
    Algorithm, COUNT_MAX, Limit, LimitError, Moment, PERIOD_NS_MAX, PREPARED_WORDS, Prepared,
    Records, Refund, Reserve, TIME_NS_MAX, VALUE_MAX, Verdict, WINDOW_PERIOD_NS_MIN, convert,
};

type Exact = Ratio<BigInt>;

const SECOND_NS: u64 = 1_000_000_000;
const MINUTE_NS: u64 = 60 * SECOND_NS;
const HOUR_NS: u64 = 60 * MINUTE_NS;
const DAY_NS: u64 = 24 * HOUR_NS;
const YEAR_NS: u64 = 365 * DAY_NS;
/// Somewhere in 2026, on no boundary of anything.
const BASE_NS: u64 = 1_780_000_123_456_789_012;

use model::*;
use tried::*;

proptest! {
    // A failure prints its smallest case, which then becomes a test of its own.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_decision_of_a_token_bucket_equals_the_fluid_model(
        limit in token_buckets(),
        start_ns in times(),
        steps in prop::collection::vec(steps(), 1..60),
    ) {
        run_against_model(limit, start_ns, &steps)?;
    }

    #[test]
    fn every_decision_of_a_fixed_window_equals_the_counting_model(
        limit in fixed_windows(),
        start_ns in times(),
        steps in prop::collection::vec(steps(), 1..60),
    ) {
        run_against_model(limit, start_ns, &steps)?;
    }

    #[test]
    fn every_decision_of_a_sliding_window_equals_the_model_that_keeps_all_admissions(
        limit in sliding_windows(),
        start_ns in times(),
        steps in prop::collection::vec(steps(), 1..60),
    ) {
        run_against_model(limit, start_ns, &steps)?;
    }

    #[test]
    fn no_interval_between_admitted_stamps_exceeds_burst_plus_rate_times_length(
        limit in token_buckets(),
        start_ns in times(),
        steps in prop::collection::vec(steps(), 1..40),
    ) {
        let admitted = admissions(limit, start_ns, &steps);
        let burst = whole(limit.burst().unwrap_or_default());
        for (from_ns, to_ns) in pairs(&admitted) {
            let within: u128 = admitted
                .iter()
                .filter(|(stamp_ns, _)| (from_ns..=to_ns).contains(stamp_ns))
                .map(|(_, cost)| u128::from(*cost))
                .sum();
            let bound = &burst + rate(limit) * whole(to_ns - from_ns);
            prop_assert!(whole(within) <= bound, "{within} in {from_ns}..={to_ns} under {limit}");
        }
    }

    #[test]
    fn no_aligned_window_admits_more_than_its_count(
        limit in fixed_windows(),
        start_ns in times(),
        steps in prop::collection::vec(steps(), 1..60),
    ) {
        // In the order of the calls, a stamp from the past counts in the latest window.
        let mut window = 0;
        let mut used = 0_u128;
        for (stamp_ns, cost) in admissions(limit, start_ns, &steps) {
            let stamped = (BASE_NS + stamp_ns) / limit.period_ns();
            if stamped > window {
                (window, used) = (stamped, 0);
            }
            used += u128::from(cost);
            prop_assert!(used <= u128::from(limit.count()));
        }
    }

    #[test]
    fn a_sliding_window_admits_at_most_its_count_and_in_an_interval_its_share_of_another(
        limit in sliding_windows(),
        start_ns in times(),
        steps in prop::collection::vec(steps(), 1..40),
    ) {
        // In the order of the calls, a stamp from before the latest window counts as its start.
        let period_ns = limit.period_ns();
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        let mut window = 0;
        for (stamp_ns, cost) in admissions(limit, start_ns, &steps) {
            let unix_ns = BASE_NS + stamp_ns;
            window = window.max(unix_ns / period_ns);
            admitted.push((unix_ns.max(window * period_ns), cost));
            // The formula holds at the stamp and at every later one that was admitted before.
            let in_window = |index: u64| -> u128 {
                let within = admitted.iter().filter(|(at_ns, _)| at_ns / period_ns == index);
                within.map(|(_, cost)| u128::from(*cost)).sum()
            };
            let latest_ns = admitted.iter().map(|(at_ns, _)| *at_ns).max().unwrap_or_default();
            for at_ns in [unix_ns.max(window * period_ns), latest_ns] {
                let left = u128::from((window + 1) * period_ns - at_ns);
                let previous = in_window(window.wrapping_sub(1)) * left;
                let used = previous + in_window(window) * u128::from(period_ns);
                prop_assert!(used <= u128::from(limit.count()) * u128::from(period_ns));
            }
        }
        for (from_ns, to_ns) in pairs(&admitted) {
            let within: u128 = admitted
                .iter()
                .filter(|(at_ns, _)| (from_ns..=to_ns).contains(at_ns))
                .map(|(_, cost)| u128::from(*cost))
                .sum();
            let bound = whole(limit.count()) + rate(limit) * whole(to_ns - from_ns);
            prop_assert!(whole(within) <= bound, "{within} in {from_ns}..={to_ns} under {limit}");
        }
    }

    #[test]
    fn a_changed_limit_admits_what_exact_numbers_would_and_never_more(
        old in limits(),
        new in limits(),
        start_ns in times(),
        steps in prop::collection::vec(steps(), 1..30),
        later in later(),
    ) {
        let (mut subject, mut model, at_ns) = run(old, start_ns, &steps);
        let now_ns = later.after(&subject, at_ns);
        subject.change(new, now_ns);
        model = model.changed(new, now_ns);

        let remaining = subject.prepared.peek(subject.value, moment(now_ns)).remaining();
        prop_assert!(subject.value <= VALUE_MAX);
        prop_assert!(whole(remaining) <= model.remaining(now_ns), "from {old} to {new}");
        if is_within_value(&model, now_ns) {
            let (counted, exact) = (subject.used_exactly(now_ns), model.used(now_ns));
            match (old.algorithm(), new.algorithm()) {
                (Algorithm::TokenBucket | Algorithm::SlidingWindow, Algorithm::TokenBucket) => {
                    prop_assert!(counted >= exact);
                    prop_assert!(counted - exact < Exact::new(1.into(), reduced_period(new)));
                }
                // A window counts whole costs, and so does what a window hands on.
                (_, Algorithm::FixedWindow) => prop_assert_eq!(counted, exact.ceil()),
                (Algorithm::SlidingWindow, Algorithm::SlidingWindow)
                    if old.period_ns() == new.period_ns() =>
                {
                    prop_assert_eq!(counted, exact);
                }
                (_, Algorithm::SlidingWindow) => prop_assert_eq!(counted, exact.ceil()),
                _ => prop_assert_eq!(counted, exact),
            }
        }
    }

    #[test]
    fn changing_only_the_burst_keeps_the_value(
        limit in token_buckets(),
        burst in 1..=20_u64,
        start_ns in times(),
        steps in prop::collection::vec(steps(), 1..30),
    ) {
        let (subject, _, at_ns) = run(limit, start_ns, &steps);
        let new = Limit::token_bucket_with_burst(limit.count(), limit.period_ns(), burst)
            .map_err(|error| TestCaseError::fail(error.to_string()))?
            .prepare();
        let changed = convert(&subject.prepared, subject.value, &new, moment(at_ns));
        prop_assert_eq!(changed, subject.prepared.advanced(subject.value, moment(at_ns)));
    }

    #[test]
    fn a_full_key_can_not_be_told_from_a_fresh_one(
        limit in limits(),
        start_ns in times(),
        steps in prop::collection::vec(steps(), 1..30),
        cost in costs(),
        later_ns in spans(),
    ) {
        let (subject, _, _) = run(limit, start_ns, &steps);
        let (prepared, value) = (subject.prepared, subject.value);
        let full_at_ns = prepared.full_at_ns(value, BASE_NS);
        prop_assume!(full_at_ns <= 1 << 58);
        if full_at_ns > 0 {
            prop_assert!(!prepared.is_full(value, moment(full_at_ns - 1)));
        }
        let cost = cost.of(limit);
        for at in [moment(full_at_ns), moment(full_at_ns + later_ns)] {
            prop_assert!(prepared.is_full(value, at));
            if cost > 0 {
                prop_assert_eq!(prepared.check(value, at, cost), prepared.check(0, at, cost));
            }
            let (full, fresh) = (prepared.peek(value, at), prepared.peek(0, at));
            prop_assert_eq!(full.remaining(), fresh.remaining());
            prop_assert_eq!(full.reset_after_ns(), Some(0));
        }
    }

    #[test]
    fn a_value_that_was_full_at_a_moment_admits_no_more_before_it_than_a_fresh_one(
        limit in limits(),
        at_ns in times(),
        back_ns in 0..=HOUR_NS,
        cost in costs(),
    ) {
        let prepared = limit.prepare();
        let (at, cost) = (moment(at_ns), cost.of(limit));
        let value = prepared.advanced(0, at);
        prop_assert!(prepared.is_full(value, at));
        if cost > 0 {
            prop_assert_eq!(prepared.check(value, at, cost), prepared.check(0, at, cost));
        }
        let before = moment(at_ns.saturating_sub(back_ns));
        let remaining = |value| prepared.peek(value, before).remaining();
        prop_assert!(remaining(value) <= remaining(0));
    }

    #[test]
    fn an_advanced_value_acts_alike_from_then_on_and_knows_that_time_has_come(
        limit in limits(),
        start_ns in times(),
        steps in prop::collection::vec(steps(), 1..30),
        to in later(),
        then in later(),
    ) {
        let (subject, _, at_ns) = run(limit, start_ns, &steps);
        let to_ns = to.after(&subject, at_ns);
        let advanced = subject.prepared.advanced(subject.value, moment(to_ns));
        prop_assert!(advanced <= VALUE_MAX);
        let remaining = |value, ns| subject.prepared.peek(value, moment(ns)).remaining();
        for now_ns in [to_ns, then.after(&subject, to_ns)] {
            if now_ns >= to_ns {
                prop_assert_eq!(remaining(advanced, now_ns), remaining(subject.value, now_ns));
            } else {
                prop_assert!(remaining(advanced, now_ns) <= remaining(advanced, to_ns));
            }
        }
    }

    #[test]
    fn no_words_values_or_moments_make_anything_panic(
        raw_words in words(),
        raw_value in values(),
        now_ns in any::<u64>(),
        base_ns in any::<u64>(),
        cost in any::<u64>(),
        other in limits(),
    ) {
        let decoded = Prepared::decode(raw_words);
        let valid = other.prepare();
        let at = Moment { now_ns, base_ns };
        for prepared in decoded.iter().chain([&valid]) {
            for cost in [cost, 0, 1, prepared.limit(), prepared.limit() / 2] {
                let verdict = prepared.check(raw_value, at, cost);
                if let Verdict::Allowed { new_value } = verdict {
                    prop_assert!(cost == 0 || new_value <= VALUE_MAX);
                }
                let decision = prepared.decision(verdict, raw_value, at, cost);
                let _ = (decision.retry_after_ns(), decision.reset_after_ns());
                let reserved = prepared.reserve(raw_value, at, cost, now_ns);
                if let Reserve::Taken { new_value, .. } = reserved {
                    prop_assert!(cost == 0 || new_value <= VALUE_MAX);
                }
                for (value, end) in [(raw_value, raw_value), (raw_value, raw_value / 2), (0, raw_value)] {
                    let refund = prepared.refund(value, base_ns % 2 == 0, end, cost, at);
                    if let Refund::Given { new_value, amount, .. } = refund {
                        prop_assert!(new_value <= VALUE_MAX && amount.cost() <= cost);
                    }
                }
                prop_assert!(decision.remaining() <= decision.limit());
            }
            let _ = (prepared.is_full(raw_value, at), prepared.full_at_ns(raw_value, base_ns));
            prop_assert!(prepared.advanced(0, at) <= VALUE_MAX);
            prop_assert!(prepared.advanced(raw_value & VALUE_MAX, at) <= VALUE_MAX);
            prop_assert!(convert(prepared, raw_value, &valid, at) <= VALUE_MAX);
            prop_assert!(convert(&valid, raw_value, prepared, at) <= VALUE_MAX);
        }
        if let Some(prepared) = decoded {
            prop_assert_eq!(prepared.encode(), raw_words);
        }
    }

    #[test]
    fn what_was_encoded_decodes_to_the_same(limit in limits()) {
        let prepared = limit.prepare();
        prop_assert_eq!(Prepared::decode(prepared.encode()), Some(prepared));
        prop_assert_eq!(prepared.definition(), limit);
    }

    #[test]
    fn what_was_displayed_parses_to_the_same(limit in limits()) {
        prop_assert_eq!(Limit::parse(&limit.to_string()), Ok(limit));
    }

    #[test]
    fn a_definition_is_kept_exactly_or_refused_and_every_hint_is_accepted(
        count in prop_oneof![any::<u64>(), 0..=COUNT_MAX],
        period_ns in prop_oneof![any::<u64>(), 0..=PERIOD_NS_MAX, Just(SECOND_NS), Just(DAY_NS)],
        burst in any::<u64>(),
    ) {
        match Limit::token_bucket_with_burst(count, period_ns, burst) {
            Ok(limit) => prop_assert_eq!(
                (limit.count(), limit.period_ns(), limit.burst()),
                (count, period_ns, Some(burst))
            ),
            Err(LimitError::RateTooFine { count_hint, .. }) => {
                prop_assert!(Limit::token_bucket_with_burst(count_hint, period_ns, 1).is_ok());
            }
            Err(LimitError::Burst { burst_max, .. }) => {
                prop_assert!(burst == 0 || burst > burst_max);
                let at_bound = Limit::token_bucket_with_burst(count, period_ns, burst_max);
                prop_assert!(at_bound.is_ok());
                // The bound is tight: the latest admission at it fits, one token more would not.
                if let (Ok(limit), Some(over)) = (at_bound, burst_max.checked_add(1)) {
                    let [_, units_per_ns, units_per_token, ..] = limit.prepare().encode();
                    let latest = whole(TIME_NS_MAX) * whole(units_per_ns)
                        + whole(over) * whole(units_per_token);
                    prop_assert!(latest > whole(VALUE_MAX));
                }
            }
            Err(LimitError::Count { .. }) => prop_assert!(count > COUNT_MAX),
            Err(LimitError::Period { .. }) => {
                prop_assert!(period_ns == 0 || period_ns > PERIOD_NS_MAX);
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

#[test]
fn a_bucket_admits_its_burst_at_once_and_then_one_per_interval_to_the_nanosecond() {
    // A seventh of a second is 142,857,142 6/7 ns; three of them are 428,571,428 4/7 ns. A tenth is a
    // whole number of nanoseconds, which takes the way of 64 bits.
    for (limit, interval_ns, three_ns) in [
        ("7/second;burst=3", 142_857_143, 428_571_429),
        ("10/second;burst=3", 100_000_000, 300_000_000),
    ] {
        let (prepared, mut value) = (prepared(limit), 0);
        for remaining in [2, 1, 0] {
            let verdict = prepared.check(value, moment(0), 1);
            let decision = prepared.decision(verdict, value, moment(0), 1);
            assert!(decision.is_allowed(), "{limit}");
            assert_eq!((decision.limit(), decision.remaining()), (3, remaining));
            assert_eq!(decision.retry_after_ns(), Some(0));
            value = new_value(verdict);
        }
        let refused = prepared.check(value, moment(0), 1);
        assert_eq!(refused, Verdict::Refused, "{limit}");
        let decision = prepared.decision(refused, value, moment(0), 1);
        assert_eq!(decision.remaining(), 0);
        assert_eq!(decision.retry_after_ns(), Some(interval_ns));
        assert_eq!(decision.reset_after_ns(), Some(three_ns));
        assert_eq!(prepared.full_at_ns(value, BASE_NS), three_ns);
        let retry = |now_ns| prepared.check(value, moment(now_ns), 1);
        assert_eq!(retry(interval_ns - 1), Verdict::Refused, "{limit}");
        assert!(is_allowed(retry(interval_ns)), "{limit}");
    }
}

#[test]
fn a_bucket_drifts_by_nothing_over_nine_years() {
    let (prepared, mut value, mut now_ns) = (prepared("999983/second;burst=2"), 0, 0);
    // Empty the bucket, admit at the earliest nanosecond a thousand times, leap, and start over: the
    // k-th token after the burst is due exactly k·P/N after it, however often times were rounded.
    while now_ns < 1 << 58 {
        let first_ns = now_ns;
        value = new_value(prepared.check(value, moment(first_ns), 2));
        for k in 1..1_000_u64 {
            now_ns = first_ns + (k * SECOND_NS).div_ceil(999_983);
            let early = prepared.check(value, moment(now_ns - 1), 1);
            assert_eq!(early, Verdict::Refused);
            value = new_value(prepared.check(value, moment(now_ns), 1));
        }
        now_ns += 3 * DAY_NS + 1;
    }
}

#[test]
fn a_window_counts_from_the_unix_epoch_and_not_from_the_base() {
    let prepared = prepared("2/minute;window=fixed");
    // The base lies 3 seconds before a full minute.
    let base_ns = 1_780_000_020 * SECOND_NS - 3 * SECOND_NS;
    let at = |now_ns| Moment { now_ns, base_ns };
    let value = new_value(prepared.check(0, at(0), 2));
    let last_ns = 3 * SECOND_NS - 1;
    assert_eq!(prepared.check(value, at(last_ns), 1), Verdict::Refused);
    let decision = prepared.decision(Verdict::Refused, value, at(0), 1);
    assert_eq!(decision.retry_after_ns(), Some(3 * SECOND_NS));
    assert_eq!(decision.reset_after_ns(), Some(3 * SECOND_NS));
    assert_eq!(prepared.full_at_ns(value, base_ns), 3 * SECOND_NS);
    let value = new_value(prepared.check(value, at(3 * SECOND_NS), 2));
    // A late stamp from the window before counts in the one already reached.
    assert_eq!(prepared.check(value, at(last_ns), 1), Verdict::Refused);
}

#[test]
fn what_can_never_be_admitted_is_told_from_what_must_wait() {
    for (text, cost, never) in [
        ("5/second;burst=3", 3, false),
        ("5/second;burst=3", 4, true),
        ("5/second;burst=3", u64::MAX, true),
        ("5/minute;window=fixed", 5, false),
        ("5/minute;window=fixed", 6, true),
        ("0/second", 1, true),
        ("0/second;burst=9", 1, true),
        ("0/second;window=fixed", 1, true),
        ("0/second", 0, false),
        ("0/second;window=fixed", 0, false),
    ] {
        let prepared = prepared(text);
        let verdict = prepared.check(0, moment(12_345), cost);
        assert_eq!(verdict == Verdict::Never, never, "{cost} of {text}");
        assert_eq!(is_allowed(verdict), !never, "{cost} of {text}");
        let decision = prepared.decision(verdict, 0, moment(12_345), cost);
        let retry_after_ns = (!never).then_some(0);
        assert_eq!(
            decision.retry_after_ns(),
            retry_after_ns,
            "{cost} of {text}"
        );
        assert_eq!(decision.cost(), cost);
    }
}

#[test]
fn a_peek_is_always_allowed_and_changes_nothing() {
    for text in [
        "5/second",
        "0/second",
        "5/day;window=fixed",
        "0/day;window=fixed",
    ] {
        for value in [0, 1, 12_345 << 40, VALUE_MAX, u128::MAX] {
            let verdict = prepared(text).check(value, moment(99), 0);
            assert_eq!(verdict, Verdict::Allowed { new_value: value }, "{text}");
            assert!(prepared(text).peek(value, moment(99)).is_allowed());
        }
    }
}

#[test]
fn what_was_used_comes_back_unrefilled_from_a_count_of_zero() {
    let (open, shut) = (prepared("10/second"), prepared("0/second"));
    let used = new_value(open.check(0, moment(SECOND_NS), 7));
    let closed = convert(&open, used, &shut, moment(SECOND_NS));
    assert_eq!(shut.peek(closed, moment(SECOND_NS)).remaining(), 0);
    assert_eq!(shut.peek(closed, moment(SECOND_NS)).reset_after_ns(), None);
    assert_eq!(shut.full_at_ns(closed, BASE_NS), u64::MAX);
    assert!(!shut.is_full(closed, moment(TIME_NS_MAX)));
    let reopened = convert(&shut, closed, &open, moment(9 * SECOND_NS));
    assert_eq!(open.peek(reopened, moment(9 * SECOND_NS)).remaining(), 3);
    // A key that was fresh stays reclaimable.
    assert!(shut.is_full(convert(&open, 0, &shut, moment(0)), moment(0)));
}

#[test]
fn use_above_a_lowered_limit_is_paid_off_before_anything_is_admitted() {
    let (old, new) = (prepared("1000/minute"), prepared("10/minute"));
    let used = new_value(old.check(0, moment(0), 900));
    let changed = convert(&old, used, &new, moment(0));
    let verdict = new.check(changed, moment(0), 1);
    assert_eq!(verdict, Verdict::Refused);
    let decision = new.decision(verdict, changed, moment(0), 1);
    assert_eq!(decision.remaining(), 0);
    assert_eq!(decision.retry_after_ns(), Some((900 - 9) * 6 * SECOND_NS));
    assert_eq!(decision.reset_after_ns(), Some(90 * MINUTE_NS));
}

#[test]
fn a_change_between_algorithms_carries_whole_costs_and_rounds_use_up() {
    let bucket = prepared("7/second");
    let window = prepared("7/second;window=fixed");
    let base_ns = BASE_NS / SECOND_NS * SECOND_NS;
    let at = |now_ns| Moment { now_ns, base_ns };
    let value = new_value(bucket.check(0, at(0), 3));
    // One nanosecond later a little less than 3 is missing; a window counts it as 3.
    let counted = convert(&bucket, value, &window, at(1));
    assert_eq!(window.peek(counted, at(1)).remaining(), 4);
    let back = convert(&window, counted, &bucket, at(2));
    assert_eq!(bucket.peek(back, at(2)).remaining(), 4);
    assert_eq!(bucket.peek(back, at(2)).reset_after_ns(), Some(428_571_429));
    // Once the window is over nothing is carried.
    let later = convert(&window, counted, &bucket, at(SECOND_NS));
    assert_eq!(bucket.peek(later, at(SECOND_NS)).remaining(), 7);
    // A longer window takes over what the shorter one counted.
    let daily = prepared("100/day;window=fixed");
    let day = convert(&window, counted, &daily, at(5));
    assert_eq!(daily.peek(day, at(5)).remaining(), 97);
}

#[test]
fn limits_are_read_as_users_write_them() {
    let bucket = |count, period_ns| Limit::token_bucket(count, period_ns);
    let with_burst = Limit::token_bucket_with_burst;
    let window = |count, period_ns| Limit::fixed_window(count, period_ns);
    for (text, limit, displayed) in [
        ("100/minute", bucket(100, MINUTE_NS), "100/minute"),
        (
            "3/second;burst=5",
            with_burst(3, SECOND_NS, 5),
            "3/second;burst=5",
        ),
        ("3/second;burst=3", bucket(3, SECOND_NS), "3/second"),
        (
            " 3 / seconds ; burst = 5 ",
            with_burst(3, SECOND_NS, 5),
            "3/second;burst=5",
        ),
        ("\t1/s\n", bucket(1, SECOND_NS), "1/second"),
        ("1/sec", bucket(1, SECOND_NS), "1/second"),
        ("1/secs", bucket(1, SECOND_NS), "1/second"),
        ("1/m", bucket(1, MINUTE_NS), "1/minute"),
        ("1/min", bucket(1, MINUTE_NS), "1/minute"),
        ("1/mins", bucket(1, MINUTE_NS), "1/minute"),
        ("1/minutes", bucket(1, MINUTE_NS), "1/minute"),
        ("1/h", bucket(1, HOUR_NS), "1/hour"),
        ("1/hr", bucket(1, HOUR_NS), "1/hour"),
        ("1/hrs", bucket(1, HOUR_NS), "1/hour"),
        ("1/hour", bucket(1, HOUR_NS), "1/hour"),
        ("1/hours", bucket(1, HOUR_NS), "1/hour"),
        ("1/d", bucket(1, DAY_NS), "1/day"),
        ("1/day", bucket(1, DAY_NS), "1/day"),
        ("1/days", bucket(1, DAY_NS), "1/day"),
        ("5/10s", bucket(5, 10 * SECOND_NS), "5/10s"),
        ("5/10 seconds", bucket(5, 10 * SECOND_NS), "5/10s"),
        ("5/1m", bucket(5, MINUTE_NS), "5/minute"),
        ("5/60s", bucket(5, MINUTE_NS), "5/minute"),
        ("5/90s", bucket(5, 90 * SECOND_NS), "5/90s"),
        ("5/90m", bucket(5, 90 * MINUTE_NS), "5/90m"),
        ("5/1500ms", bucket(5, 1_500_000_000), "5/1500ms"),
        ("5/250us", bucket(5, 250_000), "5/250us"),
        ("5/7ns", bucket(5, 7), "5/7ns"),
        ("5/1ns", bucket(5, 1), "5/nanosecond"),
        ("0/minute", bucket(0, MINUTE_NS), "0/minute"),
        (
            "0/minute;burst=7",
            with_burst(0, MINUTE_NS, 7),
            "0/minute;burst=7",
        ),
        ("007/s", bucket(7, SECOND_NS), "7/second"),
        (
            "10000000000/s",
            bucket(10_000_000_000, SECOND_NS),
            "10000000000/second",
        ),
        ("5/7d", bucket(5, 7 * DAY_NS), "5/week"),
        ("5/2 weeks", bucket(5, 14 * DAY_NS), "5/2w"),
        ("5/8d", bucket(5, 8 * DAY_NS), "5/8d"),
        ("1/365d", bucket(1, YEAR_NS), "1/year"),
        ("1/y", bucket(1, YEAR_NS), "1/year"),
        ("1/yr", bucket(1, YEAR_NS), "1/year"),
        ("1/1 years", bucket(1, YEAR_NS), "1/year"),
        ("1/366d", bucket(1, PERIOD_NS_MAX), "1/366d"),
        (
            "9/day;window=fixed",
            window(9, DAY_NS),
            "9/day;window=fixed",
        ),
        (
            "0/h; window = fixed",
            window(0, HOUR_NS),
            "0/hour;window=fixed",
        ),
        (
            "9/day;window=sliding",
            Limit::sliding_window(9, DAY_NS),
            "9/day;window=sliding",
        ),
    ] {
        let limit = limit.expect(text);
        assert_eq!(Limit::parse(text), Ok(limit), "{text}");
        assert_eq!(text.parse(), Ok(limit), "{text}");
        assert_eq!(limit.to_string(), displayed, "{text}");
    }
}

#[test]
fn what_can_not_be_read_is_an_error_that_names_the_argument_and_the_way_out() {
    for (text, says) in [
        ("", "has no period; write COUNT/PERIOD"),
        ("100", "has no period; write COUNT/PERIOD"),
        ("100 per minute", "has no period"),
        (";burst=5", "has no period"),
        ("/minute", "count = \"\""),
        ("-1/minute", "count = \"-1\""),
        ("+1/minute", "count = \"+1\""),
        ("1.5/minute", "count = \"1.5\""),
        ("1e3/minute", "count = \"1e3\""),
        ("1 000/minute", "count = \"1 000\""),
        (
            "\u{0665}/minute",
            "is not a whole number from 0 to 18446744073709551615",
        ),
        ("18446744073709551616/s", "count = \"18446744073709551616\""),
        (
            "1000000000001/s",
            "a count of 1000000000001 is out of bounds: it must be from 0 to 1000000000000",
        ),
        ("1/", "the unit \"\""),
        ("1/10", "the unit \"\""),
        ("1/fortnight", "the unit \"fortnight\""),
        ("1/Minute", "the unit \"Minute\""),
        ("1/M", "the unit \"M\""),
        ("1/ss", "the unit \"ss\""),
        ("1/hs", "the unit \"hs\""),
        ("1/mss", "the unit \"mss\""),
        ("1/secss", "the unit \"secss\""),
        ("1/-5s", "the unit \"-5s\""),
        ("1/1.5h", "the unit \".5h\""),
        ("1/minute/2", "the unit \"minute/2\""),
        (
            "1/0s",
            "a period of 0s is out of bounds: for a token bucket it must be from 1ns to 366d;",
        ),
        ("1/367d", "a period of 367d is out of bounds"),
        ("1/18446744073709551615d", "a period of more than 500 years"),
        (
            "1/99999999999999999999s",
            "period = \"99999999999999999999\"",
        ),
        ("1/ms;burst=0", "a burst of 0 is out of bounds"),
        ("1/s;burst=", "burst = \"\""),
        ("1/s;burst=-1", "burst = \"-1\""),
        ("1/s;burst=2x", "burst = \"2x\""),
        ("1/s;burst", "the option \"burst\""),
        ("1/s;", "the option \"\""),
        ("1/s;;burst=1", "the option \"\""),
        ("1/s;burst=1;burst=2", "the option \"burst=2\""),
        ("1/s;Burst=1", "the option \"Burst=1\""),
        ("1/s;window=rolling", "the option \"window=rolling\""),
        ("1/s;window=fixed;window=fixed", "each at most once"),
        ("1/s;window=fixed;window=sliding", "each at most once"),
        (
            "1/s;window=sliding;burst=2",
            "a burst of 2 does not apply to a sliding window",
        ),
        (
            "1/100us;window=sliding",
            "for a sliding window it must be from 524us288ns to 366d",
        ),
        (
            "33554432/s;window=sliding",
            "for a sliding window of that period it must be from 0 to 33554431; give the same rate",
        ),
        ("1/2y", "must be from 1ns to 366d"),
        (
            "1/s;window=fixed;burst=2",
            "a burst of 2 does not apply to a fixed window",
        ),
        (
            "1/100us;window=fixed",
            "for a fixed window it must be from 524us288ns to 366d",
        ),
        ("1000000007/s", "a reduced count must be at most 67108863"),
        ("1000000007/s", "use a rounder count, such as 1000000000"),
        ("1/366d;burst=1000000000000", "it must be from 1 to 1223"),
        ("1/1m;burst=0", "at 1 per 1m it must be"),
    ] {
        let error = Limit::parse(text).expect_err(text).to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn the_range_from_one_a_year_to_ten_thousand_million_a_second_is_covered() {
    for (count, period_ns) in AWKWARD_RATES {
        let limit = Limit::token_bucket(count, period_ns);
        assert!(limit.is_ok(), "{limit:?}");
    }
    for window in [Limit::fixed_window, Limit::sliding_window] {
        assert!(window(1, YEAR_NS).is_ok());
        assert!(window(1, PERIOD_NS_MAX).is_ok());
        assert!(window(1, WINDOW_PERIOD_NS_MIN).is_ok());
        assert!(window(1, WINDOW_PERIOD_NS_MIN - 1).is_err());
        assert!(window(COUNT_MAX + 1, PERIOD_NS_MAX).is_err());
    }
    assert!(Limit::fixed_window(10_000_000_000, SECOND_NS).is_ok());
    assert!(Limit::fixed_window(COUNT_MAX, WINDOW_PERIOD_NS_MIN).is_ok());
    assert!(Limit::fixed_window(COUNT_MAX, PERIOD_NS_MAX).is_ok());
    assert!(Limit::token_bucket(COUNT_MAX, 1).is_err());
    // What two counts in one value have no room for says what there is room for, and where to go.
    for (period_ns, bits) in [
        (WINDOW_PERIOD_NS_MIN, 20),
        (SECOND_NS, 25),
        (MINUTE_NS, 28),
        (DAY_NS, 33),
        (PERIOD_NS_MAX, 37),
    ] {
        let count_max = (1 << bits) - 1;
        assert!(Limit::sliding_window(count_max, period_ns).is_ok());
        let over = Limit::sliding_window(count_max + 1, period_ns);
        let expected = LimitError::WindowCount {
            count: count_max + 1,
            count_max,
            period_ns,
        };
        assert_eq!(over, Err(expected));
    }
    // A thousand million a second is one over a shorter period.
    assert!(Limit::sliding_window(1_000_000_000, SECOND_NS).is_err());
    assert!(Limit::sliding_window(1_000_000, 1_000_000).is_ok());
}

#[test]
fn at_both_ends_of_the_range_each_algorithm_admits_its_count_and_then_waits_to_the_nanosecond() {
    // Base and start lie on a boundary of every period here.
    let base_ns = 60 * YEAR_NS / (1 << 19) * (1 << 19);
    for (text, period_ns, retry_ns) in [
        ("1/year", YEAR_NS, YEAR_NS),
        ("1/366d", PERIOD_NS_MAX, PERIOD_NS_MAX),
        ("10000000000/second", SECOND_NS, 1),
        ("1/year;window=fixed", YEAR_NS, YEAR_NS),
        ("10000000000/second;window=fixed", SECOND_NS, SECOND_NS),
        // A unit of the count before is gone once one part of the count of the period is.
        ("1/year;window=sliding", YEAR_NS, 2 * YEAR_NS),
        ("1048575/524288ns;window=sliding", 1 << 19, (1 << 19) + 1),
    ] {
        let prepared = prepared(text);
        let start_ns = period_ns - base_ns % period_ns;
        let at = |now_ns| Moment { now_ns, base_ns };
        let count = prepared.limit();
        let full = new_value(prepared.check(0, at(start_ns), count));
        let refused = prepared.check(full, at(start_ns), 1);
        assert_eq!(refused, Verdict::Refused, "{text}");
        let decision = prepared.decision(refused, full, at(start_ns), 1);
        assert_eq!(decision.retry_after_ns(), Some(retry_ns), "{text}");
        let retry = |now_ns| prepared.check(full, at(now_ns), 1);
        assert_eq!(retry(start_ns + retry_ns - 1), Verdict::Refused, "{text}");
        assert!(is_allowed(retry(start_ns + retry_ns)), "{text}");
    }
}

#[test]
fn a_sliding_window_decides_as_worked_out_by_hand() {
    let prepared = prepared("10/minute;window=sliding");
    let base_ns = BASE_NS / MINUTE_NS * MINUTE_NS;
    let at = |seconds: u64| Moment {
        now_ns: seconds * SECOND_NS,
        base_ns,
    };
    // Eight in the last second of a minute, and the two that are left.
    let value = new_value(prepared.check(0, at(59), 8));
    assert_eq!(prepared.check(value, at(59), 3), Verdict::Refused);
    // A quarter of the next minute on, three quarters of eight are six.
    assert_eq!(prepared.peek(value, at(75)).remaining(), 4);
    // A nanosecond earlier it is a little more than six, and so four are too many.
    let early = Moment {
        now_ns: 75 * SECOND_NS - 1,
        base_ns,
    };
    let refused = prepared.check(value, early, 4);
    assert_eq!(refused, Verdict::Refused);
    let decision = prepared.decision(refused, value, early, 4);
    assert_eq!(
        (decision.remaining(), decision.retry_after_ns()),
        (3, Some(1))
    );
    let value = new_value(prepared.check(value, at(75), 4));
    // A stamp from before it finds the minute's start: all of the eight.
    assert_eq!(prepared.peek(value, at(10)).remaining(), 0);
    assert_eq!(prepared.check(value, at(75), 1), Verdict::Refused);
    let decision = prepared.peek(value, at(75));
    assert_eq!(decision.wait_ns_for(1), Some(7 * SECOND_NS + SECOND_NS / 2));
    // Ten have room once this minute's four are gone, too, at the end of the next.
    assert_eq!(decision.wait_ns_for(10), Some((180 - 75) * SECOND_NS));
    assert_eq!(decision.reset_after_ns(), Some((180 - 75) * SECOND_NS));
    assert_eq!(prepared.full_at_ns(value, base_ns), 180 * SECOND_NS);
}

#[test]
fn windows_drift_by_nothing_over_nine_years() {
    // Seven days and a second: no boundary but the epoch's own lies on one of anything else.
    for (window, per_window) in [("fixed", 7), ("sliding", 7)] {
        let prepared = prepared(&format!("7/604801s;window={window}"));
        let period_ns = 604_801 * SECOND_NS;
        let mut value = 0;
        let first = BASE_NS / period_ns + 1;
        for index in (first..first + 460).step_by(2) {
            let start_ns = index * period_ns - BASE_NS;
            // Filled in the first nanosecond, still full in the last, and two windows on like new.
            value = new_value(prepared.check(value, moment(start_ns), per_window));
            let last = prepared.check(value, moment(start_ns + period_ns - 1), 1);
            assert_eq!(last, Verdict::Refused, "{window}");
        }
    }
}

#[test]
fn at_the_greatest_burst_the_last_moment_still_fits_the_value() {
    for (count, period_ns) in AWKWARD_RATES {
        let over = Limit::token_bucket_with_burst(count, period_ns, u64::MAX);
        let burst = match over {
            Err(LimitError::Burst { burst_max, .. }) => burst_max,
            Ok(_) => u64::MAX,
            Err(other) => panic!("{other}"),
        };
        let limit = Limit::token_bucket_with_burst(count, period_ns, burst).expect("the bound");
        for now_ns in [TIME_NS_MAX, u64::MAX] {
            let verdict = limit.prepare().check(0, moment(now_ns), burst);
            assert!(new_value(verdict) <= VALUE_MAX, "{limit}");
        }
    }
}

#[test]
fn the_last_window_that_a_clock_can_name_fits_the_value() {
    let limit = Limit::fixed_window(COUNT_MAX, WINDOW_PERIOD_NS_MIN).expect("at the bounds");
    let prepared = limit.prepare();
    let end = Moment {
        now_ns: u64::MAX,
        base_ns: u64::MAX,
    };
    let value = new_value(prepared.check(0, end, COUNT_MAX));
    assert!(value <= VALUE_MAX);
    assert_eq!(prepared.check(value, end, 1), Verdict::Refused);
    assert_eq!(prepared.peek(value, end).remaining(), 0);
    // The window's end is the first nanosecond that is not told apart.
    assert_eq!(prepared.full_at_ns(value, 0), 1 << 63);
}

#[test]
fn words_out_of_the_bounds_of_a_limit_are_refused() {
    let words = prepared("6/minute;burst=4").encode();
    assert_eq!(words, [1, 1, 10 * SECOND_NS, 6, 4]);
    for (index, word) in [
        (0, 0),
        (0, 3),
        (0, u64::MAX),
        (1, u64::MAX),
        (2, 0),
        (2, u64::MAX),
        (3, 0),
        (3, u64::MAX),
        (4, u64::MAX),
    ] {
        let mut damaged = words;
        damaged[index] = word;
        assert_eq!(Prepared::decode(damaged), None, "{damaged:?}");
    }
    assert_eq!(prepared("6/h;window=fixed").encode(), [2, 6, HOUR_NS, 1, 6]);
    assert_eq!(Prepared::decode([2, 6, HOUR_NS, 1, 7]), None);
    assert_eq!(Prepared::decode([2, 3, HOUR_NS / 2, 2, 6]), None);
    let sliding = prepared("6/h;window=sliding").encode();
    assert_eq!(sliding, [3, 6, HOUR_NS, 1, 6]);
    let count_max = (1 << count_bits(HOUR_NS)) - 1;
    for (words, is_one) in [
        ([3, count_max, HOUR_NS, 1, count_max], true),
        ([3, count_max + 1, HOUR_NS, 1, count_max + 1], false),
        ([3, 6, HOUR_NS, 1, 7], false),
        ([3, 6, WINDOW_PERIOD_NS_MIN - 1, 1, 6], false),
    ] {
        assert_eq!(Prepared::decode(words).is_some(), is_one, "{words:?}");
    }
}
