//! Every decision of `sprag replay`, line by line, against an oracle that shares nothing with it: over a
//! real log, the same log shuffled, and generated logs.

mod replay {
    pub(crate) mod command;
    pub(crate) mod logs;
    pub(crate) mod oracle;
}

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use flate2::read::MultiGzDecoder;
use replay::command::{self, REAL_LOG};
use replay::logs;
use replay::oracle::{self, Enforced, Limit, Request, Verdict};

const PERIODS: [(&str, u64); 6] = [
    ("second", 1),
    ("minute", 60),
    ("hour", 3_600),
    ("day", 86_400),
    // That no day is a multiple of.
    ("7m", 420),
    ("5d", 432_000),
];

/// A limit and the way to enforce it, as the oracle and the command take them.
#[derive(Debug, Clone, Copy)]
struct Case {
    limit: Limit,
    period: &'static str,
    /// Whether the text names the burst.
    burst_named: bool,
    enforced: Enforced,
    cost: u64,
}

impl Case {
    fn args(&self) -> String {
        let Limit { count, burst, .. } = self.limit;
        let (period, cost) = (self.period, self.cost);
        let burst = if self.burst_named {
            format!(";burst={burst}")
        } else {
            String::new()
        };
        // Both ways to ask for a window.
        let algorithm = match (self.enforced, count % 2) {
            (Enforced::FixedWindow, 0) => " --algorithm fixed-window",
            (Enforced::FixedWindow, _) => ";window=fixed",
            (Enforced::SlidingWindow, 0) => " --algorithm sliding-window",
            (Enforced::SlidingWindow, _) => ";window=sliding",
            (Enforced::TokenBucket, 0) => " --algorithm token-bucket",
            (Enforced::TokenBucket, _) => "",
        };
        format!("--cost {cost} --limit {count}/{period}{burst}{algorithm}")
    }

    /// The limit alone.
    fn limit_args(&self) -> String {
        let args = Self { cost: 1, ..*self }.args();
        args.trim_start_matches("--cost 1 ").to_owned()
    }

    fn verdicts(&self, requests: &[Option<Request>]) -> Vec<Verdict> {
        let verdicts = match self.enforced {
            Enforced::FixedWindow => oracle::fixed_window,
            Enforced::SlidingWindow => oracle::sliding_window,
            Enforced::TokenBucket => oracle::token_bucket,
        };
        verdicts(requests, self.limit, self.cost)
    }
}

/// Every mix of `counts`, periods, `bursts` (0 for none) and `costs` that could allow anything.
fn cases(counts: &[u64], bursts: &[u64], costs: &[u64]) -> Vec<Case> {
    let mut cases = Vec::new();
    for &count in counts {
        for (period, period_s) in PERIODS {
            for &burst in bursts {
                for &cost in costs {
                    for enforced in [
                        Enforced::TokenBucket,
                        Enforced::FixedWindow,
                        Enforced::SlidingWindow,
                    ] {
                        let burst_named = burst > 0;
                        let case = Case {
                            limit: Limit {
                                count,
                                period_s,
                                burst: if burst_named { burst } else { count },
                            },
                            period,
                            burst_named,
                            enforced,
                            cost,
                        };
                        if cost <= case.limit.burst
                            && (enforced == Enforced::TokenBucket || !burst_named)
                        {
                            cases.push(case);
                        }
                    }
                }
            }
        }
    }
    cases
}

fn decisions(args: &str, log: &[u8]) -> Vec<Verdict> {
    let finished = command::replay(&format!("{args} --decisions"), log);
    assert_eq!(
        (finished.err.as_str(), finished.code),
        ("", Some(0)),
        "{args}"
    );
    let out = String::from_utf8(finished.out).expect("decisions are text");
    let mut verdicts = Vec::new();
    for (number, line) in (1..).zip(out.lines()) {
        verdicts.push(match line.split_once(' ') {
            Some((text, "allowed")) if text == format!("{number}") => Verdict::Allowed,
            Some((text, "refused")) if text == format!("{number}") => Verdict::Refused,
            Some((text, "malformed")) if text == format!("{number}") => Verdict::Malformed,
            _ => panic!("{args}: line {number} of the decisions is {line:?}"),
        });
    }
    verdicts
}

fn agree(what: &str, expected: &[Verdict], found: &[Verdict], log: &[u8]) {
    assert_eq!(found.len(), expected.len(), "{what}: lines");
    let lines = log.split(|&byte| byte == b'\n');
    for (number, ((expected, found), line)) in (1..).zip(expected.iter().zip(found).zip(lines)) {
        assert_eq!(
            found,
            expected,
            "{what}: line {number}: {}",
            line.escape_ascii()
        );
    }
}

fn real_log() -> Vec<u8> {
    let file = std::fs::File::open(REAL_LOG).expect("the real log is there");
    let mut log = Vec::new();
    MultiGzDecoder::new(file)
        .read_to_end(&mut log)
        .expect("the real log is whole");
    log
}

#[test]
fn the_command_agrees_on_a_real_log() {
    let log = real_log();
    let requests = oracle::requests(&log, 0);
    assert_eq!(requests.iter().flatten().count(), 9_999);
    for case in cases(&[7, 13, 333], &[0, 1, 20], &[1]) {
        let args = case.args();
        let found = decisions(&format!("{REAL_LOG} {args}"), b"");
        agree(&args, &case.verdicts(&requests), &found, &log);
    }
}

#[test]
fn the_command_agrees_on_a_shuffled_log_and_by_every_field() {
    let log = real_log();
    for (seed, field, name, count, cost) in [
        (1, 0, "host", 7, 1),
        (2, 5, "status", 333, 3),
        (3, 8, "user-agent", 13, 2),
    ] {
        let log = logs::shuffled(&log, seed);
        let requests = oracle::requests(&log, field);
        for case in cases(&[count], &[0, 50], &[cost]) {
            let args = format!("- --by {name} {}", case.args());
            let found = decisions(&args, &log);
            agree(&args, &case.verdicts(&requests), &found, &log);
        }
    }
}

#[test]
fn the_command_agrees_on_generated_logs() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let cases = cases(&[1, 2, 7, 13, 333], &[0, 1, 5, 1_000], &[1, 2, 7]);
    for seed in 0..400 {
        let log = logs::log(seed, 250);
        let requests = oracle::requests(&log, 0);
        let case = cases[fastrand::Rng::with_seed(seed).usize(..cases.len())];
        let expected = case.verdicts(&requests);
        let what = format!("seed {seed}: {}", case.args());
        let found = decisions(&format!("- {}", case.args()), &log);
        agree(&what, &expected, &found, &log);
        for verdict in expected {
            *seen
                .entry(match verdict {
                    Verdict::Allowed => "allowed",
                    Verdict::Refused => "refused",
                    Verdict::Malformed => "malformed",
                })
                .or_default() += 1;
        }
    }
    // Agreement on a one-sided set of logs would prove little.
    for (verdict, count) in &seen {
        assert!(*count > 5_000, "only {count} lines are {verdict}");
    }
    assert_eq!(seen.len(), 3);
}

/// Lines of `requests`: key, and seconds since the epoch.
fn lines(requests: impl Iterator<Item = (String, i64)>) -> Vec<u8> {
    let mut log = Vec::new();
    for (key, at_s) in requests {
        let stamp = logs::utc_stamp(at_s);
        let line = format!("{key} - - [{stamp}] \"GET / HTTP/1.1\" 200 1\n");
        log.extend_from_slice(line.as_bytes());
    }
    log
}

/// Compares every decision on `log` and gives how many were refused.
fn refused_as_the_oracle_does(case: Case, log: &[u8]) -> usize {
    let args = case.args();
    let expected = case.verdicts(&oracle::requests(log, 0));
    agree(&args, &expected, &decisions(&format!("- {args}"), log), log);
    let refused = |verdict: &&Verdict| **verdict == Verdict::Refused;
    expected.iter().filter(refused).count()
}

#[test]
fn the_command_agrees_on_more_keys_than_its_first_table_holds() {
    // Every key in each of three rounds, some with names too long for a cell.
    let keys = 18_000;
    let key = |i: i64| match i % 5 {
        0 => format!("{i}-{}", "k".repeat(60)),
        _ => format!("k{i}"),
    };
    let log = lines((0..3 * keys).map(|i| (key(i % keys), 1_431_857_103 + i / 4_000)));
    for case in cases(&[2], &[0], &[1]) {
        if case.period == "day" {
            assert!(refused_as_the_oracle_does(case, &log) > 15_000);
        }
    }
}

#[test]
fn a_key_in_use_for_years_keeps_what_it_used_while_others_come_and_go() {
    let month_s = 30 * 86_400;
    let case = Case {
        limit: Limit {
            count: 1,
            period_s: 86_400,
            burst: 1_000,
        },
        period: "day",
        burst_named: true,
        enforced: Enforced::TokenBucket,
        cost: 40,
    };
    for start_s in [-2_203_891_200, -5 * 365 * 86_400, 1_431_857_103] {
        let months = (0..12 * 17).flat_map(|month| {
            let at_s = start_s + month * month_s;
            let other = (format!("other{}", month % 40), at_s + 7);
            [("busy".to_owned(), at_s), other]
        });
        assert!(refused_as_the_oracle_does(case, &lines(months)) > 20);
    }
}

#[test]
fn a_key_in_use_for_longer_than_can_be_told_apart_is_an_error() {
    let month_s = 30 * 86_400;
    let months = |count| (0..count).map(move |month| ("busy".to_owned(), month * month_s));
    let args = "- --limit 1/day;burst=1000 --cost 40 --json";
    let finished = command::replay(args, &lines(months(12 * 20)));
    assert_eq!(finished.code, Some(1));
    assert!(
        finished.err.contains("more than 9 years"),
        "{}",
        finished.err
    );
    let report: serde_json::Value =
        serde_json::from_slice(&finished.out).expect("the report is JSON");
    assert!(report["requests"].as_u64() > Some(12 * 18));

    // A pause in which it becomes full is enough.
    let paused = months(12 * 20).map(|(key, at_s)| {
        let pause_s = if at_s > month_s * 115 {
            1_000 * 86_400
        } else {
            0
        };
        (key, at_s + pause_s)
    });
    assert_eq!(command::replay(args, &lines(paused)).code, Some(0));
}

#[test]
fn several_limits_allow_what_all_have_room_for_and_take_from_none_otherwise() {
    // An odd count has its algorithm in the text.
    let cases = cases(&[1, 7, 13, 333], &[0, 5, 40], &[1, 2]);
    let (mut by_one, mut by_all) = (0, 0);
    for seed in 2_000..2_060 {
        let log = logs::log(seed, 250);
        let requests = oracle::requests(&log, 0);
        let mut random = fastrand::Rng::with_seed(seed);
        let cost = random.u64(1..=2);
        let mut draw = || loop {
            let case = cases[random.usize(..cases.len())];
            if case.limit.burst >= cost {
                return case;
            }
        };
        let drawn: Vec<Case> = (0..2 + seed % 3).map(|_| draw()).collect();
        let limits: Vec<_> = drawn
            .iter()
            .map(|case| (case.limit, case.enforced))
            .collect();
        let expected = oracle::refused_by_several(&requests, &limits, cost);
        let args = drawn.iter().fold(format!("- --cost {cost}"), |args, case| {
            format!("{args} {}", case.limit_args())
        });

        let verdicts: Vec<Verdict> = expected
            .iter()
            .map(|refused_by| match refused_by {
                None => Verdict::Malformed,
                Some(refused_by) if refused_by.contains(&true) => Verdict::Refused,
                Some(_) => Verdict::Allowed,
            })
            .collect();
        let what = format!("seed {seed}: {args}");
        agree(&what, &verdicts, &decisions(&args, &log), &log);
        let finished = command::replay(&format!("{args} --json"), &log);
        let json: serde_json::Value =
            serde_json::from_slice(&finished.out).expect("the report is JSON");
        for (i, _) in limits.iter().enumerate() {
            let refused = expected.iter().flatten().filter(|refused_by| refused_by[i]);
            assert_eq!(json["limits"][i]["refused"], refused.count(), "{what}");
        }
        let ways = |all: bool| {
            let of = |refused_by: &&Vec<bool>| {
                refused_by.contains(&true) && refused_by.contains(&false) != all
            };
            expected.iter().flatten().filter(of).count()
        };
        by_one += ways(false);
        by_all += ways(true);
    }
    assert!(by_one > 500 && by_all > 20, "{by_one} {by_all}");
}

#[test]
fn the_report_adds_up_to_the_decisions() {
    let log = real_log();
    let requests = oracle::requests(&log, 0);
    for case in cases(&[13], &[0, 3], &[2]) {
        let mut refused: HashMap<&[u8], u64> = HashMap::new();
        let mut keys: HashMap<&[u8], u64> = HashMap::new();
        for (request, verdict) in requests.iter().zip(case.verdicts(&requests)) {
            let request = request.as_ref().expect("all lines are requests");
            *keys.entry(&request.key).or_default() += 1;
            if verdict == Verdict::Refused {
                *refused.entry(&request.key).or_default() += 1;
            }
        }
        let total: u64 = refused.values().sum();
        let mut order: Vec<_> = refused.iter().collect();
        order.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let top: Vec<_> = order
            .iter()
            .take(12)
            .map(|(key, refused)| {
                let requests = keys[*key];
                let key = str::from_utf8(key).expect("the log's hosts are text");
                serde_json::json!({"key": key, "requests": requests, "refused": refused})
            })
            .collect();

        let args = case.args();
        let finished = command::replay(&format!("{REAL_LOG} {args} --json --top 12"), b"");
        assert_eq!((finished.err.as_str(), finished.code), ("", Some(0)));
        let json: serde_json::Value =
            serde_json::from_slice(&finished.out).expect("the report is JSON");
        assert_eq!(json["requests"], 9_999, "{args}");
        assert_eq!(json["malformed"], 0, "{args}");
        assert_eq!(json["keys"], keys.len(), "{args}");
        assert_eq!(json["allowed"], 9_999 - total, "{args}");
        assert_eq!(json["refused"], total, "{args}");
        assert_eq!(
            json["refused_keys"],
            serde_json::Value::Array(top),
            "{args}"
        );
        assert!(json["ns_per_decision"].as_f64() > Some(0.0), "{args}");
        assert!(json["bytes_per_key"].as_f64() > Some(0.0), "{args}");
    }
}

#[test]
fn the_oracle_s_bucket_does_what_a_token_bucket_promises() {
    let cases = cases(&[1, 2, 7, 13, 333], &[0, 1, 5, 40], &[1, 2, 7]);
    for seed in 1_000..1_150 {
        let requests = oracle::requests(&logs::log(seed, 200), 0);
        let case = cases[fastrand::Rng::with_seed(seed).usize(..cases.len())];
        let Case { limit, cost, .. } = case;
        assert_eq!(
            oracle::token_bucket(&requests, limit, cost),
            oracle::token_bucket_by_promise(&requests, limit, cost),
            "seed {seed}: {}",
            case.args()
        );
    }
}

#[test]
fn the_oracle_decides_as_worked_out_by_hand() {
    let at = |seconds: &[i64]| -> Vec<Option<Request>> {
        let request = |&at_s| {
            let key = b"k".to_vec();
            Some(Request { key, at_s })
        };
        seconds.iter().map(request).collect()
    };
    let limit = |count, period_s, burst| Limit {
        count,
        period_s,
        burst,
    };
    let letters = |verdicts: Vec<Verdict>| -> String {
        let letter = |verdict| {
            if verdict == Verdict::Allowed {
                'a'
            } else {
                'r'
            }
        };
        verdicts.into_iter().map(letter).collect()
    };
    // Seven a minute: a unit takes 8 4/7 s, from 0 to before 9, and from 9 to before 18.
    let seven = at(&[0, 8, 9, 17, 18, 18, 100, 100]);
    let verdicts = oracle::token_bucket(&seven, limit(7, 60, 1), 1);
    assert_eq!(letters(verdicts), "arararar");
    // Before the epoch, windows end where they would after it.
    let windows = at(&[-61, -60, -1, -1, 0, 59, 59, 60]);
    let verdicts = oracle::fixed_window(&windows, limit(2, 60, 2), 1);
    assert_eq!(letters(verdicts), "aaaraara");
    let verdicts = oracle::fixed_window(&windows, limit(3, 60, 3), 2);
    assert_eq!(letters(verdicts), "aarrarra");
    // Two in the minute before the epoch weigh one from half a minute after it on, and none after that.
    let sliding = at(&[-1, -1, 0, 29, 30, 30, 60, 89, 90]);
    let verdicts = oracle::sliding_window(&sliding, limit(2, 60, 2), 1);
    assert_eq!(letters(verdicts), "aarrararr");
}

#[test]
fn two_calendars_agree_on_every_day() {
    for day in -110_000..110_000 {
        let (year, month, of_month) = logs::civil(day);
        assert_eq!(oracle::days_before(year, month, of_month), day);
    }
    assert_eq!(logs::civil(0), (1970, 0, 1));
    assert_eq!(logs::civil(16_572), (2015, 4, 17));
}
