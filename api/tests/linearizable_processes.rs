//! Histories of real processes on one shared space, taken down in journals: each has an order of one
//! operation after another that explains every answer. The judge is the engine's, and is judged there.

#![cfg(target_os = "linux")]

#[path = "../../core/tests/history/mod.rs"]
mod history;

use history::{Event, Specification, is_linearizable};
use serde_json::{Value, json};
use sprag::{Added, Caps, Error, Space, StripedCounter};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const ROLE: &str = "SPRAG_TEST_JOURNAL";
const URL: &str = "SPRAG_TEST_URL";
const PROCESSES: usize = 2;
/// Operations of each process in a round, on each noun.
const OPERATIONS: usize = 16;
const COUNT: u64 = 12;

/// Rounds, each on objects of its own: twenty times as many with `SPRAG_SOAK=1`.
fn rounds() -> u64 {
    if std::env::var_os("SPRAG_SOAK").is_some_and(|value| value == "1") {
        4_000
    } else {
        200
    }
}

fn open(url: &str) -> Space {
    let caps = Caps {
        objects: 65_536,
        limiter_keys: 8_192,
        ..Caps::default()
    };
    Space::builder()
        .caps(caps)
        .share_percent(100)
        .open(url)
        .unwrap()
}

/// Nanoseconds on a clock that all processes share.
fn now_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let [seconds, nanoseconds] =
        [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap());
    seconds * 1_000_000_000 + nanoseconds
}

/// One round of one process.
struct Journal {
    round: u64,
    lines: Vec<Value>,
}

impl Journal {
    /// Does `act` and notes when it was asked, when it was answered, what it was and what came of it. Of
    /// two moments in one nanosecond the question counts as the earlier, so that they overlap.
    fn note(&mut self, noun: &str, call: Value, act: impl FnOnce() -> Value) {
        let asked = now_ns() * 2;
        let answer = act();
        let answered = now_ns() * 2 + 1;
        let line = (self.round, noun, asked, answered, call, answer);
        self.lines.push(json!(line));
    }
}

/// Not a test: what the children of the test do.
#[test]
fn roles() {
    let (Ok(process), Ok(url)) = (std::env::var(ROLE), std::env::var(URL)) else {
        return;
    };
    let process: usize = process.parse().unwrap();
    let space = open(&url);
    let mut random = fastrand::Rng::with_seed(process as u64);
    // Each says that it is here, and waits for the others.
    let meet = |place: u64| {
        let here = |process| space.fence(&format!("{place} {process}")).unwrap();
        let others: Vec<_> = (0..PROCESSES).map(here).collect();
        here(process).admit(1).unwrap();
        let mut looks = 0;
        while others.iter().any(|other| other.highest() == 0) {
            looks += 1;
            // Awake when the last one comes, if there is a processor for each.
            if looks % 1_000 == 0 {
                std::thread::yield_now();
            }
        }
    };
    let mut lines = Vec::new();
    for round in 0..rounds() {
        let mut journal = Journal {
            round,
            lines: Vec::new(),
        };
        meet(round);
        locks(&space, &mut journal, &mut random);
        fences(&space, &mut journal, &mut random);
        counters(&space, &mut journal, &mut random);
        limiters(&space, &mut journal, &mut random);
        lines.append(&mut journal.lines);
    }
    // What a process holds ends with it, which no journal tells: all end together.
    meet(rounds());
    for line in lines {
        println!("{line}");
    }
}

fn lost_or(result: sprag::Result<()>) -> Value {
    match result {
        Ok(()) => true.into(),
        Err(Error::Lost { .. } | Error::Stale { .. }) => false.into(),
        Err(error) => panic!("{error}"),
    }
}

fn locks(space: &Space, journal: &mut Journal, random: &mut fastrand::Rng) {
    let name = format!("lock {}", journal.round);
    let lock = space.lock(&name).unwrap();
    let mut token = 0;
    for _ in 0..OPERATIONS {
        match random.u8(0..8) {
            0 => journal.note("lock", json!(["break"]), || {
                space.break_lock(&name).unwrap().into()
            }),
            1..=3 if token != 0 => journal.note("lock", json!(["release", token]), || {
                lost_or(lock.release_token(token))
            }),
            4 if token != 0 => journal.note("lock", json!(["renew", token]), || {
                lost_or(lock.renew_token(token))
            }),
            _ => journal.note("lock", json!(["try"]), || {
                let hold = lock.try_acquire().unwrap();
                hold.map(|hold| {
                    token = hold.token();
                    // It is known by its token from here on.
                    std::mem::forget(hold);
                    token
                })
                .into()
            }),
        }
    }
}

fn fences(space: &Space, journal: &mut Journal, random: &mut fastrand::Rng) {
    let fence = space.fence(&format!("fence {}", journal.round)).unwrap();
    for _ in 0..OPERATIONS {
        let (token, once) = (random.u64(1..9), random.bool());
        journal.note("fence", json!([token, once]), || {
            lost_or(if once {
                fence.admit_once(token)
            } else {
                fence.admit(token)
            })
        });
    }
}

/// Every other counter is striped.
fn striped(space: &Space, round: u64) -> Option<StripedCounter<'_>> {
    let counter = space.counter(&format!("counter {round}")).unwrap();
    (round % 2 == 1).then(|| counter.striped().unwrap())
}

fn counters(space: &Space, journal: &mut Journal, random: &mut fastrand::Rng) {
    let counter = space
        .counter(&format!("counter {}", journal.round))
        .unwrap();
    let striped = striped(space, journal.round);
    for _ in 0..OPERATIONS {
        let (delta, bound) = (random.i64(-3..4), random.i64(-4..4));
        match (random.u8(0..8), &striped) {
            (0..=2, Some(striped)) => {
                journal.note("counter", json!(["add striped", delta]), || {
                    striped.add(delta).unwrap();
                    Value::Null
                });
            }
            (0..=2, None) => journal.note("counter", json!(["add", delta]), || {
                counter.add(delta).unwrap().into()
            }),
            (3..=5, _) => {
                journal.note("counter", json!(["within", delta, bound]), || match counter
                    .add_within(delta, bound..=bound + 4)
                    .unwrap()
                {
                    Added::To(sum) => json!([true, sum]),
                    Added::Refused(number) => json!([false, number]),
                });
            }
            (6, _) => journal.note("counter", json!(["swap", bound]), || {
                counter.swap(bound).unwrap().into()
            }),
            _ => journal.note("counter", json!(["get"]), || counter.get().unwrap().into()),
        }
    }
}

fn limiters(space: &Space, journal: &mut Journal, random: &mut fastrand::Rng) {
    let key = journal.round.to_le_bytes();
    let limiter = space
        .limiter("l", &format!("{COUNT}/366d;window=fixed"))
        .unwrap();
    for _ in 0..OPERATIONS {
        let cost = random.u64(0..4);
        journal.note("limiter", json!(cost), || {
            let decision = limiter.check(&key, cost).unwrap();
            assert!(!decision.is_overflow());
            json!([decision.is_allowed(), decision.remaining()])
        });
    }
}

/// A lock whose leases outlast the test: the last token, 0 before the first, and whether it is held.
struct Lock;

impl Specification for Lock {
    type State = (u64, bool);
    type Call = Value;
    type Answer = Value;

    fn step(state: &(u64, bool), call: &Value, answer: &Value) -> Option<(u64, bool)> {
        let (last, is_held) = *state;
        let is_this = is_held && call[1].as_u64() == Some(last);
        let (expected, after): (Value, _) = match call[0].as_str()? {
            "try" if is_held => (Value::Null, *state),
            "try" => {
                let token = answer.as_u64()?;
                return (last == 0 || token == last + 1).then_some((token, true));
            }
            "break" if is_held => (last.into(), (last, false)),
            "break" => (Value::Null, *state),
            "release" => (is_this.into(), (last, is_held && !is_this)),
            "renew" => (is_this.into(), *state),
            _ => return None,
        };
        (expected == *answer).then_some(after)
    }
}

/// A fence: the highest token.
struct Fence;

impl Specification for Fence {
    type State = u64;
    type Call = Value;
    type Answer = Value;

    fn step(highest: &u64, call: &Value, answer: &Value) -> Option<u64> {
        let (token, once) = (call[0].as_u64()?, call[1].as_bool()?);
        let is_fresh = token > *highest || (!once && token == *highest);
        (is_fresh == answer.as_bool()?).then_some(if is_fresh { token } else { *highest })
    }
}

/// A counter: its number.
struct Counter;

impl Specification for Counter {
    type State = i64;
    type Call = Value;
    type Answer = Value;

    fn step(number: &i64, call: &Value, answer: &Value) -> Option<i64> {
        let argument = |at: usize| call[at].as_i64();
        let (expected, after) = match call[0].as_str()? {
            "add" => {
                let sum = number + argument(1)?;
                (sum.into(), sum)
            }
            "add striped" => (Value::Null, number + argument(1)?),
            "within" => {
                let (sum, bound) = (number + argument(1)?, argument(2)?);
                let is_within = (bound..=bound + 4).contains(&sum);
                let after = if is_within { sum } else { *number };
                (json!([is_within, after]), after)
            }
            "swap" => (Value::from(*number), argument(1)?),
            _ => (Value::from(*number), *number),
        };
        (expected == *answer).then_some(after)
    }
}

/// A limiter whose window outlasts the test: a count of what was used. A window, since its answer does not
/// depend on how far the clocks of two processes are apart.
struct Limiter;

impl Specification for Limiter {
    type State = u64;
    type Call = Value;
    type Answer = Value;

    fn step(used: &u64, cost: &Value, answer: &Value) -> Option<u64> {
        let cost = cost.as_u64()?;
        let is_allowed = used + cost <= COUNT;
        let after = if is_allowed { used + cost } else { *used };
        (*answer == json!([is_allowed, COUNT - after])).then_some(after)
    }
}

fn start(process: usize, url: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["roles", "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, process.to_string())
        .env(URL, url)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn history(lines: &[Value], round: u64, noun: &str) -> Vec<Event<Value, Value>> {
    lines
        .iter()
        .filter(|line| line[0] == round && line[1] == noun)
        .map(|line| Event {
            asked: line[2].as_u64().unwrap(),
            answered: line[3].as_u64().unwrap(),
            call: line[4].clone(),
            answer: line[5].clone(),
        })
        .collect()
}

// property 1, property 2, property 3, property 12
#[test]
fn every_history_of_processes_has_an_order_that_explains_it() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("shm:{}", directory.path().join("region.sprag").display());
    let space = open(&url);
    for striped in (0..rounds()).filter_map(|round| striped(&space, round)) {
        // Enough of them to open it, and of nothing together.
        for delta in [1, -1].into_iter().cycle().take(20) {
            striped.add(delta).unwrap();
        }
    }
    let children: Vec<_> = (0..PROCESSES).map(|process| start(process, &url)).collect();
    let journals: Vec<Vec<Value>> = std::thread::scope(|scope| {
        let readers: Vec<_> = children
            .into_iter()
            .map(|mut child| {
                scope.spawn(move || {
                    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
                    // The test harness prints lines of its own in between.
                    let lines = lines
                        .map(Result::unwrap)
                        .filter_map(|line| Some(line[line.find('[')?..].to_owned()))
                        .filter_map(|line| serde_json::from_str(&line).ok())
                        .collect();
                    assert!(child.wait().unwrap().success());
                    lines
                })
            })
            .collect();
        readers
            .into_iter()
            .map(|reader| reader.join().unwrap())
            .collect()
    });
    let lines: Vec<Value> = journals.into_iter().flatten().collect();
    assert_eq!(
        lines.len() as u64,
        rounds() * (PROCESSES * OPERATIONS * 4) as u64
    );
    let mut overlaps = 0;
    for round in 0..rounds() {
        let [lock, fence, counter, limiter] =
            ["lock", "fence", "counter", "limiter"].map(|noun| history(&lines, round, noun));
        assert!(is_linearizable::<Lock>(&(0, false), &lock), "{lock:#?}");
        assert!(is_linearizable::<Fence>(&0, &fence), "{fence:#?}");
        assert!(is_linearizable::<Counter>(&0, &counter), "{counter:#?}");
        assert!(is_linearizable::<Limiter>(&0, &limiter), "{limiter:#?}");
        overlaps += lock
            .iter()
            .filter(|one| {
                lock.iter()
                    .any(|two| one.asked < two.asked && two.asked < one.answered)
            })
            .count();
    }
    println!(
        "{overlaps} of {} operations on locks overlapped",
        rounds() * (PROCESSES * OPERATIONS) as u64
    );
}
