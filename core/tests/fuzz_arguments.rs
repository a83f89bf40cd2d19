//! What callers hand to the engine, spoilt anywhere: a limit's text, its stored words, names. What is
//! taken for one is within all bounds and comes back as it was; what is refused says why.

mod fuzz;
mod support;

use fuzz::{Bytes, Campaign};
use sprag_core::admission::Wants;
use sprag_core::key::NAME_BYTES_MAX;
use sprag_core::limit::{
    Algorithm, COUNT_MAX, Limit, LimitError, Moment, PERIOD_NS_MAX, PREPARED_WORDS, Prepared,
    REDUCED_COUNT_MAX, Refund, Reserve, TIME_NS_MAX, VALUE_MAX, Verdict, WINDOW_PERIOD_NS_MIN,
    convert,
};
use sprag_core::lock::HoldOf;
use sprag_core::lock::LEASE_NS_MIN;
use sprag_core::readable::Readable;
use sprag_core::region::Caps;
use sprag_core::{Engine, Error, SessionId};

#[test]
fn a_text_is_a_limit_that_is_written_and_read_back_or_says_why_not() {
    Campaign {
        test: "a_text_is_a_limit_that_is_written_and_read_back_or_says_why_not",
        corpus: Bytes::all(&[
            b"100/minute",
            b"30/second;burst=5",
            b"5/10s",
            b"1000/day;window=fixed",
            b"1000/day;window=sliding",
            b"2/3 weeks",
            b"1/year",
            b"0/hr",
            b" 7 / 3 hours ; burst = 40 ",
            b"1000000000000/s;burst=1000000000000",
            b"1/366d",
            b"67108863/ns",
            b"9/524288ns;window=fixed",
        ]),
        regressions: Bytes::all(&[
            b"",
            b"/",
            b"1/s;",
            b"1/\xc3\xa9s",
            b"1/18446744073709551615d",
            b"0/s;burst=18446744073709551615",
        ]),
        dictionary: &[
            b"/",
            b";",
            b"=",
            b"burst=",
            b"window=fixed",
            b"window=sliding",
            b"weeks",
            b"yr",
            b"ns",
            b"us",
            b"ms",
            b"s",
            b"sec",
            b"min",
            b"minutes",
            b"hr",
            b"hours",
            b"days",
            b"-",
            b"+",
            b"0",
            b"18446744073709551616",
            b"1000000000000",
            b"67108864",
            b"366d",
            b"31622400s",
            b"524288ns",
            b"\xc2\xa0",
            b"\xd9\xa3",
            b"\t",
            b"\0",
        ],
        inputs: 60_000,
        soak_times: 300,
        batch: 1,
    }
    .run(|Bytes(bytes)| try_text(&String::from_utf8_lossy(bytes)));
}

/// Which error and at what; or which form the limit has when it is written again.
fn try_text(text: &str) -> (String, u32) {
    let limit = match Limit::parse(text) {
        Ok(limit) => limit,
        Err(error) => return (kind(&error), 0),
    };
    assert!(limit.count() <= COUNT_MAX && (1..=PERIOD_NS_MAX).contains(&limit.period_ns()));
    assert!(
        limit.algorithm() == Algorithm::TokenBucket || limit.period_ns() >= WINDOW_PERIOD_NS_MIN
    );
    let written = limit.to_string();
    assert_eq!(written.parse(), Ok(limit), "{written}");
    let prepared = limit.prepare();
    assert_eq!(prepared.definition(), limit);
    let words = prepared.encode();
    assert_eq!(Prepared::decode(words), Some(prepared));
    // The form: what is written, but for the digits, and how long the count is.
    let form = written.replace(|digit: char| digit.is_ascii_digit(), "");
    (
        form,
        limit
            .count()
            .checked_ilog10()
            .map_or(0, |digits| digits + 1),
    )
}

fn kind(error: &LimitError) -> String {
    assert!(!error.to_string().is_empty());
    match error {
        LimitError::Number {
            argument, given, ..
        } => format!("{argument} {}", given.len().min(30)),
        LimitError::RateTooFine {
            count_hint,
            period_ns,
            ..
        } => {
            // The way out is one.
            assert!(
                Limit::token_bucket_with_burst(*count_hint, *period_ns, 1).is_ok(),
                "{error}"
            );
            "rate".to_owned()
        }
        LimitError::Burst {
            burst_max,
            count,
            period_ns,
            ..
        } => {
            let with = |burst| Limit::token_bucket_with_burst(*count, *period_ns, burst);
            assert!(with(*burst_max).is_ok(), "{error}");
            assert!(
                burst_max
                    .checked_add(1)
                    .is_none_or(|burst| with(burst).is_err())
            );
            "burst".to_owned()
        }
        other => {
            let text = format!("{other:?}");
            text.split([' ', '{']).next().unwrap().to_owned()
        }
    }
}

/// Words of a limit, another limit's, and a value with the moments at which it is asked about.
const WORDS: usize = 2 * PREPARED_WORDS + 5;

#[test]
fn words_are_a_limit_within_all_bounds_or_none() {
    let sample = |first: &str, second: &str, value: u128, now_ns: u64, cost: u64| {
        let [first, second] = [first, second].map(|text| text.parse::<Limit>().unwrap().prepare());
        let base_ns = 1_800_000_000_000_000_000;
        let rest = [value as u64, (value >> 64) as u64, now_ns, base_ns, cost];
        let words = [&first.encode()[..], &second.encode(), &rest].concat();
        Bytes(words.iter().flat_map(|word| word.to_le_bytes()).collect())
    };
    let window_value = (1_800_000_000_u128 / 60) << 40 | 5;
    Campaign {
        test: "words_are_a_limit_within_all_bounds_or_none",
        corpus: vec![
            sample("100/minute", "30/s;burst=5", 1 << 40, 1 << 40, 1),
            sample(
                "10/minute;window=fixed",
                "9/h;window=fixed",
                window_value,
                5,
                3,
            ),
            sample(
                "10/minute;window=sliding",
                "1048575/524288ns;window=sliding",
                (1_800_000_000_u128 / 60) << 56 | 7 << 28 | 2,
                5,
                3,
            ),
            sample("67108863/ns", "1/366d", VALUE_MAX, TIME_NS_MAX, 1),
            sample("0/s", "1000000000000/s", 0, 0, 0),
            sample(
                "1/524288ns;window=fixed",
                "7/d",
                VALUE_MAX,
                u64::MAX,
                u64::MAX,
            ),
        ],
        regressions: vec![Bytes(vec![0xff; WORDS * 8]), Bytes(vec![0; WORDS * 8])],
        dictionary: &[
            &1_u64.to_le_bytes(),
            &2_u64.to_le_bytes(),
            &REDUCED_COUNT_MAX.to_le_bytes(),
            &(REDUCED_COUNT_MAX + 1).to_le_bytes(),
            &PERIOD_NS_MAX.to_le_bytes(),
            &(PERIOD_NS_MAX + 1).to_le_bytes(),
            &WINDOW_PERIOD_NS_MIN.to_le_bytes(),
            &(WINDOW_PERIOD_NS_MIN - 1).to_le_bytes(),
            &TIME_NS_MAX.to_le_bytes(),
            &((1_u64 << 40) - 1).to_le_bytes(),
            &(1_u64 << 40).to_le_bytes(),
            &(1_u64 << 21).to_le_bytes(),
        ],
        inputs: 60_000,
        soak_times: 300,
        batch: 1,
    }
    .run(|Bytes(bytes)| {
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap());
        }
        try_words(&words)
    });
}

/// Which of the two are limits, and whether one that is could have been defined so; what the first one says.
fn try_words(words: &[u64; WORDS]) -> (Vec<u8>, Option<[bool; 6]>) {
    let (limits, rest) = words.split_at(2 * PREPARED_WORDS);
    let [low, high, now_ns, base_ns, cost] = rest.try_into().unwrap();
    let value = u128::from(low) | u128::from(high) << 64;
    let moment = Moment { now_ns, base_ns };
    let mut readings = Vec::new();
    let mut known = Vec::new();
    for words in limits.chunks_exact(PREPARED_WORDS) {
        let words: [u64; PREPARED_WORDS] = words.try_into().unwrap();
        let Some(prepared) = Prepared::decode(words) else {
            readings.push(0);
            continue;
        };
        assert_eq!(prepared.encode(), words);
        let limit = prepared.definition();
        let is_defined = limit.to_string().parse() == Ok(limit) && limit.prepare() == prepared;
        readings.push(1 + u8::from(is_defined));
        known.push(prepared);
    }
    let shape = known
        .first()
        .map(|first| use_limit(first, value, moment, cost));
    if let [old, new] = &known[..] {
        for (old, new) in [(old, new), (new, old), (old, old)] {
            let carried = convert(old, value, new, moment);
            assert!(carried <= VALUE_MAX, "{carried}");
            use_limit(new, carried, moment, cost);
        }
    }
    (readings, shape)
}

/// Every sum that a limit makes, within its bounds.
fn use_limit(limit: &Prepared, value: u128, moment: Moment, cost: u64) -> [bool; 6] {
    let _ = limit.definition().to_string();
    assert!(limit.advanced(0, moment) <= VALUE_MAX);
    let full_at_ns = limit.full_at_ns(value, moment.base_ns);
    let verdict = limit.check(value, moment, cost);
    if let Verdict::Allowed { new_value } = verdict {
        assert!(new_value == value || new_value <= VALUE_MAX, "{new_value}");
    }
    let decision = limit.decision(verdict, value, moment, cost);
    if let Reserve::Taken { new_value, .. } = limit.reserve(value, moment, cost, moment.now_ns) {
        assert!(new_value == value || new_value <= VALUE_MAX, "{new_value}");
        let refund = limit.refund(new_value, false, new_value, cost, moment);
        if let Refund::Given {
            new_value, amount, ..
        } = refund
        {
            assert!(new_value <= VALUE_MAX && amount.cost() <= cost);
        }
    }
    assert!(decision.remaining() <= limit.limit());
    let peeked = limit.peek(value, moment);
    assert!(peeked.is_allowed() && peeked.remaining() <= limit.limit());
    assert_eq!(
        decision.is_allowed(),
        decision.retry_after_ns() == Some(0),
        "{decision:?}"
    );
    [
        decision.is_allowed(),
        decision.retry_after_ns().is_none(),
        decision.reset_after_ns() == Some(0),
        decision.remaining() == 0,
        limit.is_full(value, moment),
        full_at_ns == u64::MAX,
    ]
}

#[test]
fn bytes_are_a_name_that_is_told_from_all_others_or_are_refused() {
    let long = [b'n'; 1_024];
    let caps = Caps {
        objects: 512,
        limiter_keys: 512,
        joint_keys: 512,
        sessions: 2,
        waiters: 2,
        permits: 2,
        key_chunks: 4_096,
    };
    let engine = support::engine(caps);
    let mut now_ns = 0;
    Campaign {
        test: "bytes_are_a_name_that_is_told_from_all_others_or_are_refused",
        corpus: Bytes::all(&[
            b"a",
            b"orders/2024",
            b"twenty-four bytes, right",
            b"one byte more than in a cell",
            &long,
            "Zürich ☕\n\u{202e}".as_bytes(),
        ]),
        regressions: Bytes::all(&[b"", b"\0", &[0; 24], &[0; 25], &[0xff; 1_025]]),
        dictionary: &[
            b"\0",
            b"\x1b[31m",
            b"\xff",
            b"\xe2\x80\xae",
            b"\n",
            b"\\x00",
        ],
        inputs: 20_000,
        soak_times: 300,
        batch: 1,
    }
    .run(|Bytes(bytes)| {
        now_ns += 1_000_000;
        try_name(&engine, bytes, now_ns)
    });
}

/// Whether it is a name, how many bytes it has, and whether it is readable as it is.
fn try_name(engine: &Engine, bytes: &[u8], now_ns: u64) -> (bool, usize, bool) {
    let readable = Readable(bytes).to_string();
    assert!(!readable.contains(char::is_control), "{readable:?}");
    let is_name = (1..=NAME_BYTES_MAX).contains(&bytes.len());
    let same = readable.as_bytes() == bytes;
    let names = (engine.lock_name(bytes), engine.fence_name(bytes));
    let limit: Limit = "5/s".parse().unwrap();
    let by = SessionId::DETACHED;
    let (lock, fence) = match names {
        (Ok(lock), Ok(fence)) => (lock, fence),
        (Err(lock), Err(fence)) => {
            for error in [lock, fence] {
                let Error::NameLength { len, max, .. } = error else {
                    panic!("{error}");
                };
                assert_eq!((len, max), (bytes.len(), NAME_BYTES_MAX));
            }
            assert!(!is_name);
            return (is_name, bytes.len().min(2), same);
        }
        _ => panic!("the lock and the fence disagree"),
    };
    assert!(is_name);
    assert_eq!((&*lock.to_vec(), &*fence.to_vec()), (bytes, bytes));
    let lease_ns = LEASE_NS_MIN;
    if let Ok(attempt) = engine.try_acquire(&lock, by, now_ns, lease_ns) {
        let sprag_core::lock::Attempt::Granted(hold) = attempt else {
            panic!("held by somebody else: {attempt:?}");
        };
        assert_eq!(
            engine.name_of_hold(&hold, lock.raw_hash()).as_deref(),
            Some(bytes)
        );
        let mut found = 0;
        engine.for_each_lock(bytes, now_ns, |status| {
            found += u32::from(status.name == bytes && status.token == hold.token);
        });
        assert_eq!(found, 1, "{readable}");
        engine.release(&hold, || now_ns);
    }
    let counter = engine.counter(bytes).unwrap();
    if let Ok(sum) = engine.counter_add(&counter, 5, by, now_ns) {
        assert_eq!((sum, engine.counter_get(&counter)), (5, 5));
        engine.counter_swap(&counter, 0, by, now_ns).unwrap();
    }
    let most = engine
        .open_concurrency(b"most", 1, false, by, now_ns, |_| {})
        .unwrap();
    let key = engine.slots_name(most, bytes).unwrap();
    assert_eq!(&*key.to_vec(), bytes);
    let wants = Wants::slots(1, most).unwrap();
    if let Ok(attempt) = engine.try_get(&key, wants, by, now_ns, 1_000_000) {
        let sprag_core::lock::Attempt::Granted(hold) = attempt else {
            panic!("held by somebody else: {attempt:?}");
        };
        let told = engine.name_of_hold(&hold, key.raw_hash());
        assert_eq!(told.as_deref(), Some(bytes));
        let status = engine.permits_status(HoldOf::Slots, &key, now_ns).unwrap();
        assert_eq!((&*status.name, status.used), (bytes, 1));
        engine.release(&hold, || now_ns);
    }
    let once = engine.once_name(bytes).unwrap();
    assert_eq!(&*once.to_vec(), bytes);
    if let Ok(begun) = engine.begin(&once, by, now_ns, 1_000_000) {
        let sprag_core::once::Begun::Started(attempt) = begun else {
            panic!("it is over by now: {begun:?}");
        };
        let stored = engine.finish(&attempt, by, bytes, now_ns, 1_000_000);
        let status = engine.once_status(&once, now_ns).unwrap();
        if let sprag_core::once::OnceStatus::Done { result, .. } = status {
            assert!(stored.unwrap() && result == bytes);
        } else {
            assert!(matches!(stored, Err(Error::Full { .. })), "{stored:?}");
        }
    }
    let limiter = engine
        .open_limiter(b"api", limit, false, by, now_ns)
        .unwrap();
    let checked = engine.check(&limiter, bytes, 1, by, now_ns).unwrap();
    assert!(checked.is_overflow || checked.decision.is_allowed() || bytes.len() < 30);
    let now = || now_ns;
    match engine.set_override(&limiter, bytes, limit, by, now) {
        Ok(()) => {
            assert_eq!(
                engine.override_of(&limiter, bytes, now).unwrap(),
                Some(limit)
            );
            assert!(engine.clear_override(&limiter, bytes, now).unwrap());
        }
        Err(error) => assert!(matches!(error, Error::Full { .. }), "{error}"),
    }
    assert!(!engine.clear_override(&limiter, bytes, now).unwrap());
    let asked = [bytes, b"another"].map(|key| sprag_core::limiter::Asked {
        limiter: &limiter,
        key,
        cost: bytes.len() as u64,
    });
    let mut remaining = Vec::new();
    let near = bytes.len() as u32;
    let is_allowed = engine.check_all(asked, by, near, now_ns, |_, checked| {
        remaining.push(checked.decision.remaining());
    });
    assert!(is_allowed.is_ok() && remaining.len() == 2);
    (is_name, bytes.len().min(64), same)
}
