//! Histories of checks, reservations, refunds and changes of the limit, against a model that keeps
//! every admission with its slot and what it took less what came back, and sums up every interval.

use super::*;

/// Limits that differ in every way: burst, rate, kind; small, so that a history is at them all the time.
const LIMITS: [&str; 12] = [
    "1/second;burst=4",
    "1/second;burst=1",
    "3/second;burst=5",
    "7/10s;burst=3",
    "1000/second;burst=6",
    "1/day;burst=6",
    "10000000000/second;burst=5",
    "4/2s;window=fixed",
    "5/3s;window=fixed",
    "4/2s;window=sliding",
    "7/2s;window=sliding",
    "5/3s;window=sliding",
];

#[derive(Debug, Clone)]
enum Act {
    Pass { ns: u64 },
    Check { cost: u64, late_ns: u64 },
    Reserve { cost: u64, wait_ns_max: u64 },
    Refund { which: usize },
    Change { limit: usize },
}

fn acts() -> impl Strategy<Value = Act> {
    let spans = || {
        prop_oneof![
            Just(0),
            0..=3_u64,
            0..=2 * SECOND_NS,
            // Where slots and the ends of windows are.
            (0..=8_u64).prop_map(|halves| halves * SECOND_NS / 2),
        ]
    };
    prop_oneof![
        3 => spans().prop_map(|ns| Act::Pass { ns }),
        6 => (1..5_u64, prop_oneof![3 => Just(0), 1 => spans()])
            .prop_map(|(cost, late_ns)| Act::Check { cost, late_ns }),
        4 => (1..5_u64, prop_oneof![spans(), Just(u64::MAX)])
            .prop_map(|(cost, wait_ns_max)| Act::Reserve { cost, wait_ns_max }),
        6 => any::<usize>().prop_map(|which| Act::Refund { which }),
        1 => (0..LIMITS.len()).prop_map(|limit| Act::Change { limit }),
    ]
}

/// One admission, as its holder remembers it and as the model counts it.
#[derive(Debug, Clone)]
struct Taken {
    slot_ns: u64,
    /// What it took less what came back.
    net: Exact,
    /// What its holder has to give it back by; `None` once that is done or void.
    record: Option<(u128, u64)>,
}

/// A key as whoever keeps its value has it, and all that was ever admitted.
struct History {
    limit: Limit,
    prepared: Prepared,
    value: u128,
    is_marked: bool,
    now_ns: u64,
    taken: Vec<Taken>,
    /// Of the admissions, those that only carry over what was used when the limit was changed.
    carried: usize,
}

impl History {
    fn new(limit: Limit, now_ns: u64) -> Self {
        Self {
            limit,
            prepared: limit.prepare(),
            value: 0,
            is_marked: false,
            now_ns,
            taken: Vec::new(),
            carried: 0,
        }
    }

    fn void_records(&mut self) {
        self.is_marked = false;
        for taken in &mut self.taken {
            taken.record = None;
        }
    }

    fn admit(&mut self, stamp_ns: u64, wait_ns: u64, new_value: u128, cost: u64) {
        if self.is_marked {
            self.void_records();
        }
        let mut slot_ns = stamp_ns + wait_ns;
        // A stamp from before a window counts as its start.
        let bits = match self.limit.algorithm() {
            Algorithm::FixedWindow => 40,
            Algorithm::SlidingWindow => 2 * count_bits(self.limit.period_ns()),
            _ => 85,
        };
        let index = (new_value & ((1 << 84) - 1)) >> bits;
        let start = index * u128::from(self.limit.period_ns());
        slot_ns = slot_ns.max(u64::try_from(start).unwrap().saturating_sub(BASE_NS));
        self.value = new_value;
        self.taken.push(Taken {
            slot_ns,
            net: whole(cost),
            record: Some((new_value, cost)),
        });
    }

    fn act(&mut self, act: &Act) -> Result<(), TestCaseError> {
        match *act {
            Act::Pass { ns } => self.now_ns += ns,
            Act::Check { cost, late_ns } => {
                let stamp_ns = self.now_ns.saturating_sub(late_ns);
                let verdict = self.prepared.check(self.value, moment(stamp_ns), cost);
                if let Verdict::Allowed { new_value } = verdict {
                    self.admit(stamp_ns, 0, new_value, cost);
                }
            }
            Act::Reserve { cost, wait_ns_max } => self.reserve(cost, wait_ns_max)?,
            Act::Refund { which } => self.refund(which)?,
            Act::Change { limit } => self.change(Limit::parse(LIMITS[limit]).unwrap()),
        }
        Ok(())
    }

    fn reserve(&mut self, cost: u64, wait_ns_max: u64) -> Result<(), TestCaseError> {
        let at = moment(self.now_ns);
        let unaided = self.prepared.peek(self.value, at).wait_ns_for(cost);
        match self.prepared.reserve(self.value, at, cost, wait_ns_max) {
            Reserve::Taken { new_value, wait_ns } => {
                prop_assert_eq!(Some(wait_ns), unaided, "the first time that has room");
                prop_assert!(wait_ns <= wait_ns_max && new_value <= VALUE_MAX);
                self.admit(self.now_ns, wait_ns, new_value, cost);
            }
            Reserve::TooLate => {
                let slot_ns = unaided.map(|wait_ns| self.now_ns.saturating_add(wait_ns));
                let is_carried = self.limit.algorithm() == Algorithm::FixedWindow
                    && self.used() > whole(self.limit.count());
                prop_assert!(
                    unaided > Some(wait_ns_max) || slot_ns > Some(TIME_NS_MAX) || is_carried
                );
            }
            Reserve::Never => prop_assert_eq!(unaided, None),
            Reserve::Unsupported => {
                prop_assert_eq!(self.limit.algorithm(), Algorithm::SlidingWindow);
            }
        }
        Ok(())
    }

    fn refund(&mut self, which: usize) -> Result<(), TestCaseError> {
        let outstanding: Vec<usize> = (0..self.taken.len())
            .filter(|i| self.taken[*i].record.is_some())
            .collect();
        if outstanding.is_empty() {
            return Ok(());
        }
        let which = outstanding[which % outstanding.len()];
        let (end, cost) = self.taken[which].record.take().unwrap();
        let at = moment(self.now_ns);
        let refund = self
            .prepared
            .refund(self.value, self.is_marked, end, cost, at);
        if let Refund::Given {
            new_value,
            amount,
            records,
        } = refund
        {
            prop_assert!(amount.cost() <= cost && amount.as_f64() > 0.0);
            let before = self.used();
            let full_cost = self.exact_amount(new_value);
            self.value = new_value;
            prop_assert!(self.used() < before, "it gives something");
            let net = &mut self.taken[which].net;
            *net -= full_cost;
            prop_assert!(*net >= whole(0), "no more than was taken");
            match records {
                Records::Kept => {}
                Records::Marked => self.is_marked = true,
                Records::Void => self.void_records(),
            }
        }
        Ok(())
    }

    /// What has come back once the value becomes `new_value`, by the documented layout.
    fn exact_amount(&self, new_value: u128) -> Exact {
        if self.limit.algorithm() == Algorithm::TokenBucket {
            let [_, _, units_per_token, ..] = self.prepared.encode();
            return whole(self.value - new_value) / whole(units_per_token);
        }
        // One count less: of a sliding window either the current or the previous one.
        let bits = count_bits(self.limit.period_ns());
        let less = self.value - new_value;
        let is_previous = self.limit.algorithm() == Algorithm::SlidingWindow && less >= 1 << bits;
        whole(if is_previous { less >> bits } else { less })
    }

    /// What a value says is used, by its layout.
    fn used(&self) -> Exact {
        let subject = Subject {
            limit: self.limit,
            prepared: self.prepared,
            value: self.value & ((1 << 84) - 1),
        };
        subject.used_exactly(self.now_ns)
    }

    fn change(&mut self, limit: Limit) {
        let now_ns = self.now_ns;
        let used = self.model_used();
        let prepared = limit.prepare();
        self.value = convert(&self.prepared, self.value, &prepared, moment(now_ns));
        self.void_records();
        let is_sliding = |limit: Limit| limit.algorithm() == Algorithm::SlidingWindow;
        let keeps_log = is_sliding(limit)
            && is_sliding(self.limit)
            && limit.period_ns() == self.limit.period_ns();
        if !keeps_log {
            self.taken = vec![Taken {
                slot_ns: now_ns,
                net: used,
                record: None,
            }];
        }
        self.carried = self.taken.len();
        (self.limit, self.prepared) = (limit, prepared);
    }

    /// What is used now, from the admissions alone; what is reserved counts now.
    fn model_used(&self) -> Exact {
        let now_ns = self.now_ns;
        let slots = || self.taken.iter().map(|t| (t.slot_ns.min(now_ns), &t.net));
        let window = |ns: u64| (BASE_NS + ns) / self.limit.period_ns();
        let in_window = |index: u64| -> Exact {
            slots()
                .filter(|(slot_ns, _)| window(*slot_ns) == index)
                .map(|(_, net)| net)
                .sum()
        };
        match self.limit.algorithm() {
            Algorithm::TokenBucket => {
                let since = |from_ns: u64| -> Exact {
                    slots()
                        .filter(|(slot_ns, _)| *slot_ns >= from_ns)
                        .map(|(_, net)| net)
                        .sum()
                };
                slots()
                    .map(|(from_ns, _)| since(from_ns) - rate(self.limit) * whole(now_ns - from_ns))
                    .fold(whole(0), Exact::max)
            }
            Algorithm::SlidingWindow => {
                let index = window(now_ns);
                let end_ns = (index + 1) * self.limit.period_ns();
                let left = whole(end_ns - BASE_NS - now_ns) / whole(self.limit.period_ns());
                in_window(index - 1) * left + in_window(index)
            }
            _ => in_window(window(now_ns)),
        }
    }

    /// In every interval that something was admitted in since the last change: at most the bound.
    fn hold_to_bound(&self) -> Result<(), TestCaseError> {
        let limit = self.limit;
        let capacity = whole(limit.burst().unwrap_or(limit.count()));
        let slots: Vec<(u64, &Exact)> = self
            .taken
            .iter()
            .map(|taken| (taken.slot_ns, &taken.net))
            .collect();
        let newer: Vec<u64> = self.taken[self.carried..]
            .iter()
            .map(|t| t.slot_ns)
            .collect();
        for &to_ns in &newer {
            for &(from_ns, _) in slots.iter().filter(|(from_ns, _)| *from_ns <= to_ns) {
                let window = |ns: u64| (BASE_NS + ns) / limit.period_ns();
                let is_fixed = limit.algorithm() == Algorithm::FixedWindow;
                if is_fixed && window(from_ns) != window(to_ns) {
                    continue;
                }
                let within: Exact = slots
                    .iter()
                    .filter(|(slot_ns, _)| (from_ns..=to_ns).contains(slot_ns))
                    .map(|(_, net)| *net)
                    .sum();
                // A change may carry over more than the bound, and a sliding window a share of it on.
                let carried: Exact = slots[..self.carried]
                    .iter()
                    .filter(|(slot_ns, _)| (from_ns..=to_ns).contains(slot_ns))
                    .map(|(_, net)| *net)
                    .sum();
                let w = if is_fixed { 0 } else { to_ns - from_ns };
                let mut bound = &capacity + rate(limit) * whole(w);
                if limit.algorithm() == Algorithm::SlidingWindow && carried > capacity {
                    bound = &capacity + &carried * whole(w) / whole(limit.period_ns());
                }
                if within > bound && within > carried {
                    prop_assert!(
                        false,
                        "{within} in {from_ns}..={to_ns} under {limit}: {:#?}",
                        self.taken
                    );
                }
            }
        }
        Ok(())
    }
}

// Property 12.
#[test]
fn a_window_reserved_ahead_counts_the_windows_before_it_when_the_limit_changes() {
    let windows = prepared("4/2s;window=fixed");
    let at = moment(0);
    let mut value = 0;
    // All of this window and the next, and 2 of the one after.
    for cost in [4, 4, 2] {
        let Reserve::Taken { new_value, .. } = windows.reserve(value, at, cost, u64::MAX) else {
            panic!("there are windows enough");
        };
        value = new_value;
    }
    let bucket = prepared("1/second;burst=100");
    let changed = convert(&windows, value, &bucket, at);
    assert_eq!(bucket.peek(changed, at).remaining(), 100 - 10);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    // property 12
    #[test]
    fn no_history_of_reservations_refunds_and_changes_exceeds_the_bound_over_slots(
        limit in 0..LIMITS.len(),
        start_ns in prop_oneof![Just(0), Just(SECOND_NS / 7), 0..=DAY_NS],
        acts in prop::collection::vec(acts(), 1..40),
    ) {
        let mut history = History::new(Limit::parse(LIMITS[limit]).unwrap(), start_ns);
        for act in &acts {
            history.act(act)?;
            history.hold_to_bound()?;
        }
    }

    #[test]
    fn what_has_not_drained_comes_back_in_any_order(
        limit in prop::sample::select(vec!["1/second;burst=4", "7/10s;burst=50", "9/second;window=fixed"]),
        costs in prop::collection::vec(1..4_u64, 1..6),
        pause_ns in 0..SECOND_NS,
        order in any::<[usize; 6]>(),
    ) {
        let mut history = History::new(Limit::parse(limit).unwrap(), SECOND_NS);
        let fresh = history.prepared.advanced(0, moment(SECOND_NS));
        for &cost in &costs {
            history.act(&Act::Check { cost, late_ns: 0 })?;
        }
        // A window that ended meanwhile is not the point here.
        let left_ns = SECOND_NS - (BASE_NS + SECOND_NS) % SECOND_NS;
        history.act(&Act::Pass { ns: pause_ns % left_ns })?;
        for which in order {
            history.refund(which)?;
        }
        let now = history.prepared.advanced(fresh, moment(history.now_ns));
        prop_assert_eq!(history.prepared.advanced(history.value, moment(history.now_ns)), now);
    }

    #[test]
    fn a_reservation_given_back_before_its_slot_comes_back_whole(
        limit in prop::sample::select(vec!["1/second;burst=4", "7/10s;burst=3", "4/2s;window=fixed"]),
        before in prop::collection::vec(acts(), 0..10),
        cost in 1..4_u64,
    ) {
        let mut history = History::new(Limit::parse(limit).unwrap(), SECOND_NS);
        for act in before.iter().filter(|act| !matches!(act, Act::Change { .. })) {
            history.act(act)?;
        }
        let (at, value) = (moment(history.now_ns), history.value);
        let reserved = history.prepared.reserve(value, at, cost, u64::MAX);
        if let Reserve::Taken { new_value, wait_ns } = reserved && wait_ns > 0 {
            let refund = history.prepared.refund(new_value, false, new_value, cost, at);
            let Refund::Given { new_value, amount, records } = refund else {
                return Err(TestCaseError::fail("all has still to drain"));
            };
            prop_assert_eq!((amount.cost(), records), (cost, Records::Kept));
            if history.limit.algorithm() == Algorithm::TokenBucket {
                // Its interval may begin at a whole nanosecond, at most one after the value.
                let [_, units_per_ns, ..] = history.prepared.encode();
                prop_assert!(new_value - value < u128::from(units_per_ns));
            }
        }
    }
}

/// A bucket of 4, one a second, and its steps as whoever keeps the value takes them.
fn bucket_of_four() -> History {
    History::new(Limit::parse("1/second;burst=4").unwrap(), 0)
}

#[test]
fn a_refund_of_what_has_drained_gives_nothing_where_taking_off_the_cost_would_exceed_the_bound() {
    let mut history = bucket_of_four();
    history
        .act(&Act::Check {
            cost: 4,
            late_ns: 0,
        })
        .unwrap();
    history.act(&Act::Pass { ns: 4 * SECOND_NS }).unwrap();
    history
        .act(&Act::Check {
            cost: 4,
            late_ns: 0,
        })
        .unwrap();
    let (end, cost) = history.taken[0].record.unwrap();
    let at = moment(history.now_ns);
    let refund = history.prepared.refund(history.value, false, end, cost, at);
    assert_eq!(refund, Refund::Over);
    // The naive rule: what is used less what was taken. Four more pass at once, on top of four.
    let [_, _, units_per_token, ..] = history.prepared.encode();
    let naive = history.value - u128::from(4 * units_per_token);
    assert_eq!(history.prepared.peek(naive, at).remaining(), 4);
    history.value = naive;
    history
        .act(&Act::Check {
            cost: 4,
            late_ns: 0,
        })
        .unwrap();
    assert!(history.hold_to_bound().is_err());
}

#[test]
fn records_from_before_a_refund_are_void_from_the_next_admission_on() {
    let take = |history: &mut History, cost| {
        history.act(&Act::Check { cost, late_ns: 0 }).unwrap();
        history.taken.last().unwrap().record
    };
    let mut history = bucket_of_four();
    let a = take(&mut history, 2).unwrap();
    let b = take(&mut history, 2).unwrap();
    let give = |history: &mut History, (end, cost)| {
        let at = moment(history.now_ns);
        let marked = history.is_marked;
        let refund = history
            .prepared
            .refund(history.value, marked, end, cost, at);
        if let Refund::Given { new_value, .. } = refund {
            history.value = new_value;
        }
        refund
    };
    let Refund::Given { records, .. } = give(&mut history, a) else {
        panic!("two have not drained")
    };
    assert_eq!(records, Records::Marked);
    history.taken[0].net = whole(0);
    // Taken no notice of, the record of B and that of C hold the same two seconds.
    let c = take(&mut history, 2).unwrap();
    assert_eq!(b.0, c.0);
    history.now_ns = 3 * SECOND_NS;
    for (which, record) in [(1, b), (2, c)] {
        take(&mut history, 1);
        assert!(matches!(give(&mut history, record), Refund::Given { .. }));
        history.taken[which].net -= whole(1);
    }
    take(&mut history, 3);
    let error = history.hold_to_bound().unwrap_err();
    assert!(error.to_string().contains("5 in 3000000000..=3000000000"));
}

#[test]
fn a_refund_beneath_reservations_that_wait_leaves_what_they_rest_on_and_voids_the_rest() {
    let mut history = bucket_of_four();
    for _ in 0..2 {
        history
            .act(&Act::Check {
                cost: 2,
                late_ns: 0,
            })
            .unwrap();
    }
    for _ in 0..2 {
        let (cost, wait_ns_max) = (1, u64::MAX);
        history.act(&Act::Reserve { cost, wait_ns_max }).unwrap();
    }
    let slots: Vec<u64> = history
        .taken
        .iter()
        .map(|t| t.slot_ns / SECOND_NS)
        .collect();
    assert_eq!(slots, [0, 0, 1, 2]);
    // Of the six seconds, two are between now and the latest slot; the second two have yet to drain then.
    history.act(&Act::Refund { which: 1 }).unwrap();
    assert_eq!(history.taken[1].net, whole(0));
    assert!(history.taken.iter().all(|taken| taken.record.is_none()));
    // Were it not, the first two would come back too, and two seconds on four pass beside the last.
    history.act(&Act::Refund { which: 0 }).unwrap();
    history.act(&Act::Pass { ns: 2 * SECOND_NS }).unwrap();
    for cost in [4, 3, 2, 1] {
        history.act(&Act::Check { cost, late_ns: 0 }).unwrap();
        history.hold_to_bound().unwrap();
    }
}

#[test]
fn a_fixed_window_reserved_ahead_admits_nothing_until_it_begins() {
    let prepared = prepared("4/minute;window=fixed");
    let base_ns = BASE_NS / MINUTE_NS * MINUTE_NS;
    let at = |seconds: u64| Moment {
        now_ns: seconds * SECOND_NS,
        base_ns,
    };
    let value = new_value(prepared.check(0, at(50), 3));
    // Two do not fit the rest of this minute: they are had in the next.
    assert_eq!(
        prepared.reserve(value, at(50), 2, 9 * SECOND_NS),
        Reserve::TooLate
    );
    let reserved = prepared.reserve(value, at(50), 2, 10 * SECOND_NS);
    let Reserve::Taken {
        new_value: ahead,
        wait_ns,
    } = reserved
    else {
        panic!("{reserved:?}")
    };
    assert_eq!(wait_ns, 10 * SECOND_NS);
    for cost in 1..=4 {
        assert_eq!(prepared.check(ahead, at(59), cost), Verdict::Refused);
    }
    let decision = prepared.peek(ahead, at(59));
    assert_eq!(decision.remaining(), 0);
    assert_eq!(decision.wait_ns_for(2), Some(SECOND_NS));
    assert_eq!(decision.wait_ns_for(3), Some(61 * SECOND_NS));
    assert_eq!(decision.reset_after_ns(), Some(61 * SECOND_NS));
    assert_eq!(prepared.full_at_ns(ahead, base_ns), 120 * SECOND_NS);
    assert_eq!(prepared.peek(ahead, at(60)).remaining(), 2);
    // Once it has begun, a late stamp counts in it again.
    let begun = new_value(prepared.check(ahead, at(60), 1));
    assert!(is_allowed(prepared.check(begun, at(59), 1)));
    // Given back, its own is to be had again, but nothing of the minute before.
    let refund = prepared.refund(ahead, false, ahead, 2, at(50));
    let Refund::Given {
        new_value, amount, ..
    } = refund
    else {
        panic!("{refund:?}")
    };
    assert_eq!(amount.cost(), 2);
    assert_eq!(prepared.check(new_value, at(59), 1), Verdict::Refused);
    assert_eq!(
        prepared.peek(new_value, at(59)).reset_after_ns(),
        Some(SECOND_NS)
    );
    assert_eq!(prepared.full_at_ns(new_value, base_ns), 60 * SECOND_NS);
    assert!(prepared.is_full(new_value, at(60)) && !prepared.is_full(new_value, at(59)));
    assert_eq!(prepared.peek(new_value, at(60)).remaining(), 4);
    // Changed before it begins, this minute counts as used up, and the reservation too.
    let other = super::prepared("100/hour;window=fixed");
    let changed = convert(&prepared, ahead, &other, at(50));
    assert_eq!(other.peek(changed, at(50)).remaining(), 100 - 4 - 2);
}

#[test]
fn a_reservation_waits_for_the_first_nanosecond_and_those_after_it_wait_longer() {
    let prepared = prepared("7/second;burst=2");
    let mut value = 0;
    let mut waits = Vec::new();
    for cost in [1, 1, 1, 2, 1] {
        match prepared.reserve(value, moment(0), cost, SECOND_NS) {
            Reserve::Taken { new_value, wait_ns } => {
                value = new_value;
                waits.push(wait_ns);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(waits, [0, 0, 142_857_143, 428_571_429, 571_428_572]);
    assert_eq!(prepared.check(value, moment(0), 1), Verdict::Refused);
    assert_eq!(
        prepared.reserve(value, moment(0), 3, u64::MAX),
        Reserve::Never
    );
    let far = super::prepared("1/year");
    let first = new_value(far.check(0, moment(0), 1));
    assert_eq!(
        far.reserve(first, moment(0), 1, YEAR_NS - 1),
        Reserve::TooLate
    );
    // A region's time has room for eighteen years.
    let mut value = first;
    let taken = (1..30).take_while(|_| match far.reserve(value, moment(0), 1, u64::MAX) {
        Reserve::Taken { new_value, .. } => {
            value = new_value;
            assert!(value <= VALUE_MAX);
            true
        }
        other => {
            assert_eq!(other, Reserve::TooLate);
            false
        }
    });
    assert_eq!(taken.count(), 18);
    let sliding = super::prepared("7/second;window=sliding");
    assert_eq!(
        sliding.reserve(0, moment(0), 1, u64::MAX),
        Reserve::Unsupported
    );
}
