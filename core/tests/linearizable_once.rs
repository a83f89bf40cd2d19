//! Histories of real threads on one once: each has an order of one operation after another that explains
//! every answer, the bytes of every result included.

mod history;
#[path = "history/recorder.rs"]
mod recorder;
mod support;
#[path = "history/threads.rs"]
mod threads;

use history::{Event, Specification, is_linearizable};
use recorder::Recorder;
use sprag_core::SessionId;
use sprag_core::once::{Attempt, Begun, OnceStatus};
use sprag_core::region::Caps;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{FLOOR, engine, is_soak, session};
use threads::{THREADS, at_once};

const CAPS: Caps = Caps {
    objects: 16,
    limiter_keys: 16,
    joint_keys: 16,
    sessions: 16,
    waiters: 16,
    permits: 2,
    // One result to a thread that writes, and the one that is kept.
    key_chunks: 2 * (THREADS as u32 + 1),
};

struct OnceSpecification;

#[derive(Clone, Debug)]
enum Call {
    Begin {
        now_ns: u64,
        ttl_ns: u64,
    },
    Finish {
        token: u64,
        now_ns: u64,
        keep_ns: u64,
    },
    Abandon {
        token: u64,
        is_clean: bool,
    },
    Extend {
        token: u64,
        now_ns: u64,
        ttl_ns: u64,
    },
    Look {
        now_ns: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Started {
        token: u64,
        is_after_unfinished: bool,
    },
    InProgress,
    /// By the attempt with this token.
    Done(u64),
    Unfinished,
    New,
    Changed(bool),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Status {
    Open {
        is_unfinished: bool,
    },
    InProgress {
        until_us: u64,
        is_after_unfinished: bool,
    },
    Done {
        until_ms: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    last: u64,
    status: Status,
}

fn until_us(now_ns: u64, ttl_ns: u64) -> u64 {
    (now_ns + ttl_ns).div_ceil(1_000)
}

impl Specification for OnceSpecification {
    type State = State;
    type Call = Call;
    type Answer = Answer;

    fn step(state: &State, call: &Call, answer: &Answer) -> Option<State> {
        let mut after = state.clone();
        let is_current = |token: u64, now_ns: u64| {
            token == state.last
                && matches!(state.status, Status::InProgress { until_us, .. } if now_ns / 1_000 < until_us)
        };
        let expected = match *call {
            Call::Begin { now_ns, ttl_ns } => match state.status {
                Status::Done { until_ms } if now_ns / 1_000_000 < until_ms => {
                    Answer::Done(state.last)
                }
                Status::InProgress { until_us, .. } if now_ns / 1_000 < until_us => {
                    Answer::InProgress
                }
                ref over => {
                    let is_after_unfinished = match *over {
                        Status::Open { is_unfinished } => is_unfinished,
                        Status::InProgress { .. } => true,
                        Status::Done { .. } => false,
                    };
                    let token = state.last + 1;
                    after = State {
                        last: token,
                        status: Status::InProgress {
                            until_us: until_us(now_ns, ttl_ns),
                            is_after_unfinished,
                        },
                    };
                    Answer::Started {
                        token,
                        is_after_unfinished,
                    }
                }
            },
            Call::Finish {
                token,
                now_ns,
                keep_ns,
            } => {
                let is_stored = is_current(token, now_ns);
                if is_stored {
                    let until_ms = (now_ns + keep_ns).div_ceil(1_000_000);
                    after.status = Status::Done { until_ms };
                }
                Answer::Changed(is_stored)
            }
            Call::Abandon { token, is_clean } => {
                let was = match state.status {
                    Status::InProgress {
                        is_after_unfinished,
                        ..
                    } if token == state.last => Some(is_after_unfinished),
                    _ => None,
                };
                if let Some(was) = was {
                    let is_unfinished = was || !is_clean;
                    after.status = Status::Open { is_unfinished };
                }
                Answer::Changed(was.is_some())
            }
            Call::Extend {
                token,
                now_ns,
                ttl_ns,
            } => {
                let is_its = is_current(token, now_ns);
                if let (
                    true,
                    Status::InProgress {
                        until_us: until, ..
                    },
                ) = (is_its, &mut after.status)
                {
                    *until = until_us(now_ns, ttl_ns);
                }
                Answer::Changed(is_its)
            }
            Call::Look { now_ns } => match state.status {
                Status::Open {
                    is_unfinished: false,
                } => Answer::New,
                Status::Open { .. } => Answer::Unfinished,
                Status::Done { until_ms } if now_ns / 1_000_000 < until_ms => {
                    Answer::Done(state.last)
                }
                Status::Done { .. } => Answer::New,
                Status::InProgress { until_us, .. } if now_ns / 1_000 < until_us => {
                    Answer::InProgress
                }
                // What is told stays true.
                Status::InProgress { .. } => {
                    after.status = Status::Open {
                        is_unfinished: true,
                    };
                    Answer::Unfinished
                }
            },
        };
        (expected == *answer).then_some(after)
    }
}

/// A result of two chunks, each word of which tells whose it is.
fn result_of(token: u64) -> Vec<u8> {
    token.to_le_bytes().repeat(8)
}

fn token_of(result: &[u8]) -> u64 {
    let token = u64::from_le_bytes(*result.first_chunk().expect("no result is so short"));
    assert_eq!(result, result_of(token), "a result is torn");
    token
}

fn history(seed: u64) -> Vec<Event<Call, Answer>> {
    let engine = engine(CAPS);
    let sessions: Vec<SessionId> = (0..THREADS).map(|_| session(&engine)).collect();
    let name = engine.once_name(b"one").unwrap();
    let (recorder, now_ns) = (Recorder::new(), AtomicU64::new(0));
    let times_ns = [1_000_000, 2_000_000, 5_000_000];
    at_once(
        |thread, random| {
            let by = sessions[thread];
            let mut own: Option<Attempt> = None;
            for _ in 0..7 {
                // Relaxed: any thread's stamp may be old, as real clocks' are.
                let now_ns = now_ns.fetch_add(random.u64(0..600_000), Ordering::Relaxed);
                let time_ns = times_ns[random.usize(0..3)];
                match (random.u8(0..9), own) {
                    (0, _) => {
                        recorder.record(Call::Look { now_ns }, || {
                            match engine.once_status(&name, now_ns).unwrap() {
                                OnceStatus::New => Answer::New,
                                OnceStatus::InProgress(_) => Answer::InProgress,
                                OnceStatus::Done { result, .. } => Answer::Done(token_of(&result)),
                                OnceStatus::Unfinished => Answer::Unfinished,
                            }
                        });
                    }
                    // Now and then twice with the same attempt: the second may change nothing.
                    (1..=3, Some(attempt)) => {
                        let token = attempt.token;
                        let call = Call::Finish {
                            token,
                            now_ns,
                            keep_ns: time_ns,
                        };
                        recorder.record(call, || {
                            let result = result_of(token);
                            let finished = engine.finish(&attempt, by, &result, now_ns, time_ns);
                            Answer::Changed(finished.unwrap())
                        });
                    }
                    (4, Some(attempt)) => {
                        let (token, is_clean) = (attempt.token, random.bool());
                        recorder.record(Call::Abandon { token, is_clean }, || {
                            Answer::Changed(engine.abandon(&attempt, now_ns, is_clean))
                        });
                    }
                    (5, Some(attempt)) => {
                        let token = attempt.token;
                        let call = Call::Extend {
                            token,
                            now_ns,
                            ttl_ns: time_ns,
                        };
                        recorder.record(call, || {
                            let extended = engine.extend(&attempt, now_ns, time_ns).unwrap();
                            Answer::Changed(extended.is_some())
                        });
                    }
                    _ => {
                        let mut begun = None;
                        let call = Call::Begin {
                            now_ns,
                            ttl_ns: time_ns,
                        };
                        recorder.record(call, || {
                            match engine.begin(&name, by, now_ns, time_ns).unwrap() {
                                Begun::Started(attempt) => {
                                    begun = Some(attempt);
                                    Answer::Started {
                                        token: attempt.token,
                                        is_after_unfinished: attempt.is_after_unfinished,
                                    }
                                }
                                Begun::InProgress(_) => Answer::InProgress,
                                Begun::Done(result) => Answer::Done(token_of(&result)),
                            }
                        });
                        own = begun.or(own);
                    }
                }
            }
        },
        seed,
    );
    recorder.into_events()
}

// property 1, property 2, property 3, property 5, property 10
#[test]
fn every_history_of_a_once_has_an_order_that_explains_it() {
    let initial = State {
        last: FLOOR,
        status: Status::Open {
            is_unfinished: false,
        },
    };
    for seed in 0..if is_soak() { 10_000 } else { 1_000 } {
        let history = history(seed);
        assert!(
            is_linearizable::<OnceSpecification>(&initial, &history),
            "history {seed}: {history:#?}"
        );
    }
}
