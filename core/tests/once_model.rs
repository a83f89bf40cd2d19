//! Onces one step after another, against a naive model: for each key, what a reader of the documentation
//! would say of it. Times are arguments and only rise. The table and the chunks are so small that what is
//! not needed any more must make room, and there is room for no chunk that leaks.

mod support;

use proptest::prelude::*;
use sprag_core::lock::Attempt as LockAttempt;
use sprag_core::once::{
    Attempt, Begun, OnceStatus, Progress, RESULT_BYTES_MAX, TTL_NS_MAX, UNFINISHED_KEPT_NS,
};
use sprag_core::region::Caps;
use sprag_core::session::Process;
use sprag_core::{Engine, Error, Finding, SessionId};
use support::{FLOOR, NAMES, SMALL, engine, model_config, session};

const SESSIONS: usize = 3;
const LENGTHS: [usize; 8] = [0, 1, 47, 48, 49, 500, 1_023, RESULT_BYTES_MAX];

/// One step. Indices choose among what there is at that moment, so that a shrunk case stays legal.
#[derive(Clone, Debug)]
enum Step {
    Pass {
        ns: u64,
    },
    Begin {
        who: usize,
        name: usize,
        ttl_ns: u64,
    },
    Finish {
        attempt: usize,
        length: usize,
        keep_ns: u64,
    },
    FinishByName {
        attempt: usize,
        name: usize,
        length: usize,
        keep_ns: u64,
    },
    Abandon {
        attempt: usize,
        is_clean: bool,
    },
    AbandonByName {
        attempt: usize,
        name: usize,
    },
    Extend {
        attempt: usize,
        ttl_ns: u64,
    },
    ExtendByName {
        attempt: usize,
        name: usize,
        ttl_ns: u64,
    },
    Detach {
        attempt: usize,
        ttl_ns: u64,
    },
    Reopen {
        who: usize,
    },
    Look {
        name: usize,
    },
    MakeRoom {
        locks: u8,
    },
}

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(1_000_000),
        1_000_000..5_000_000_u64,
        Just(250_000_000),
        Just(TTL_NS_MAX),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let (one, name, who) = (0..64_usize, 0..NAMES.len(), 0..SESSIONS);
    let length = 0..LENGTHS.len();
    let pass = prop_oneof![
        4 => 1..2_000_u64,
        4 => 1..3_000_000_u64,
        2 => Just(250_000_000_u64),
        1 => Just(UNFINISHED_KEPT_NS),
    ];
    prop_oneof![
        3 => pass.prop_map(|ns| Step::Pass { ns }),
        9 => (who.clone(), name.clone(), time())
            .prop_map(|(who, name, ttl_ns)| Step::Begin { who, name, ttl_ns }),
        5 => (one.clone(), length.clone(), time())
            .prop_map(|(attempt, length, keep_ns)| Step::Finish { attempt, length, keep_ns }),
        2 => (one.clone(), name.clone(), length, time())
            .prop_map(|(attempt, name, length, keep_ns)| {
                Step::FinishByName { attempt, name, length, keep_ns }
            }),
        3 => (one.clone(), any::<bool>())
            .prop_map(|(attempt, is_clean)| Step::Abandon { attempt, is_clean }),
        1 => (one.clone(), name.clone())
            .prop_map(|(attempt, name)| Step::AbandonByName { attempt, name }),
        2 => (one.clone(), time()).prop_map(|(attempt, ttl_ns)| Step::Extend { attempt, ttl_ns }),
        1 => (one.clone(), name.clone(), time())
            .prop_map(|(attempt, name, ttl_ns)| Step::ExtendByName { attempt, name, ttl_ns }),
        1 => (one, time()).prop_map(|(attempt, ttl_ns)| Step::Detach { attempt, ttl_ns }),
        2 => who.prop_map(|who| Step::Reopen { who }),
        3 => name.prop_map(|name| Step::Look { name }),
        2 => (1..6_u8).prop_map(|locks| Step::MakeRoom { locks }),
    ]
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Model {
    New,
    /// Since when at the latest it is known to be over.
    Unfinished {
        over_ns: u64,
    },
    InProgress {
        by: SessionId,
        token: u64,
        until_us: u64,
        is_after_unfinished: bool,
    },
    Done {
        result: Vec<u8>,
        until_ms: u64,
    },
}

struct World {
    engine: Engine,
    sessions: [SessionId; SESSIONS],
    now_ns: u64,
    keys: [Model; 3],
    last: [u64; 3],
    attempts: Vec<(usize, Attempt)>,
    rooms: u64,
}

impl World {
    fn new() -> Self {
        // Of all keys' results together, and of one long name.
        let chunks = 3 * 22 + 2;
        let engine = engine(Caps {
            objects: 4,
            key_chunks: chunks,
            ..SMALL
        });
        let sessions = std::array::from_fn(|_| session(&engine));
        Self {
            engine,
            sessions,
            now_ns: 1_000_000,
            keys: [Model::New, Model::New, Model::New],
            last: [FLOOR; 3],
            attempts: Vec::new(),
            rooms: 0,
        }
    }

    /// What the key is by now, its times looked at.
    fn key(&mut self, name: usize) -> &mut Model {
        let now_ns = self.now_ns;
        let key = &mut self.keys[name];
        match key {
            Model::InProgress { until_us, .. } if *until_us <= now_ns / 1_000 => {
                *key = Model::Unfinished {
                    over_ns: *until_us * 1_000,
                };
            }
            Model::Done { until_ms, .. } if *until_ms <= now_ns / 1_000_000 => *key = Model::New,
            _ => {}
        }
        key
    }

    /// Whether it may have been forgotten that an attempt ended unfinished; then the engine's answer counts.
    fn settle(&mut self, name: usize, is_unfinished: bool) {
        let now_ns = self.now_ns;
        if let Model::Unfinished { over_ns } = *self.key(name)
            && !is_unfinished
        {
            assert!(
                now_ns >= over_ns + UNFINISHED_KEPT_NS,
                "forgotten within the hour"
            );
            self.keys[name] = Model::New;
        }
    }

    fn is_in_progress(&mut self, name: usize, attempt: &Attempt) -> bool {
        matches!(self.key(name), Model::InProgress { token, .. } if *token == attempt.token)
    }

    fn attempt(&self, index: usize) -> Option<(usize, Attempt)> {
        let count = self.attempts.len();
        (count > 0).then(|| self.attempts[index % count])
    }

    fn done(&self, attempt: &Attempt, length: usize, keep_ns: u64) -> Model {
        let result = result(attempt, length);
        let until_ms = (self.now_ns + keep_ns).div_ceil(1_000_000);
        Model::Done { result, until_ms }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Pass { ns } => self.now_ns += ns,
            Step::Begin { who, name, ttl_ns } => self.begin(who, name, ttl_ns),
            Step::Finish {
                attempt,
                length,
                keep_ns,
            } => {
                let Some((name, attempt)) = self.attempt(attempt) else {
                    return;
                };
                let is_its = self.is_in_progress(name, &attempt);
                let bytes = result(&attempt, length);
                let by = self.sessions[0];
                let finished = self
                    .engine
                    .finish(&attempt, by, &bytes, self.now_ns, keep_ns);
                assert_eq!(finished.unwrap(), is_its);
                if is_its {
                    self.keys[name] = self.done(&attempt, length, keep_ns);
                }
            }
            Step::FinishByName {
                attempt,
                name,
                length,
                keep_ns,
            } => {
                let Some((_, attempt)) = self.attempt(attempt) else {
                    return;
                };
                let is_its = self.is_in_progress(name, &attempt);
                let bytes = result(&attempt, length);
                let core_name = self.engine.once_name(NAMES[name]).unwrap();
                let (by, token) = (self.sessions[1], attempt.token);
                let finished =
                    self.engine
                        .finish_by_name(&core_name, token, by, &bytes, self.now_ns, keep_ns);
                assert_eq!(finished.unwrap(), is_its);
                if is_its {
                    self.keys[name] = self.done(&attempt, length, keep_ns);
                }
            }
            Step::Abandon { attempt, is_clean } => {
                let Some((name, attempt)) = self.attempt(attempt) else {
                    return;
                };
                // Past its deadline too, while nobody was told of that.
                let before = self.keys[name].clone();
                let is_its = self.engine.abandon(&attempt, self.now_ns, is_clean);
                if self.is_in_progress(name, &attempt) {
                    assert!(is_its);
                }
                if !is_its {
                    return;
                }
                assert_eq!(attempt.token, self.last[name]);
                let (Model::InProgress { .. } | Model::Unfinished { .. }) = before else {
                    panic!("{attempt:?} was abandoned, which is {before:?}");
                };
                self.keys[name] = if is_clean && !attempt.is_after_unfinished {
                    Model::New
                } else {
                    Model::Unfinished {
                        over_ns: self.now_ns,
                    }
                };
            }
            Step::AbandonByName { attempt, name } => {
                let Some((_, attempt)) = self.attempt(attempt) else {
                    return;
                };
                let is_its = self.is_in_progress(name, &attempt);
                let core_name = self.engine.once_name(NAMES[name]).unwrap();
                let abandoned = self
                    .engine
                    .abandon_by_name(&core_name, attempt.token, self.now_ns);
                assert_eq!(abandoned, is_its);
                // Another key's attempt may have the same token.
                let is_after_unfinished = matches!(
                    self.keys[name],
                    Model::InProgress {
                        is_after_unfinished: true,
                        ..
                    }
                );
                if is_its {
                    self.keys[name] = if is_after_unfinished {
                        Model::Unfinished {
                            over_ns: self.now_ns,
                        }
                    } else {
                        Model::New
                    };
                }
            }
            Step::Extend { attempt, ttl_ns } => {
                let Some((name, attempt)) = self.attempt(attempt) else {
                    return;
                };
                let extended = self.engine.extend(&attempt, self.now_ns, ttl_ns).unwrap();
                self.extended(name, &attempt, ttl_ns, extended, None);
            }
            Step::ExtendByName {
                attempt,
                name,
                ttl_ns,
            } => {
                let Some((_, attempt)) = self.attempt(attempt) else {
                    return;
                };
                let core_name = self.engine.once_name(NAMES[name]).unwrap();
                let (token, now_ns) = (attempt.token, self.now_ns);
                let extended = self
                    .engine
                    .extend_by_name(&core_name, token, now_ns, ttl_ns);
                self.extended(name, &attempt, ttl_ns, extended.unwrap(), None);
            }
            Step::Detach { attempt, ttl_ns } => {
                let Some((name, attempt)) = self.attempt(attempt) else {
                    return;
                };
                let detached = self.engine.detach_attempt(&attempt, self.now_ns, ttl_ns);
                let to = Some(SessionId::DETACHED);
                self.extended(name, &attempt, ttl_ns, detached.unwrap(), to);
            }
            Step::Reopen { who } => self.reopen(who),
            Step::Look { name } => self.look(name),
            Step::MakeRoom { locks } => self.make_room(locks),
        }
    }

    fn begin(&mut self, who: usize, name: usize, ttl_ns: u64) {
        let core_name = self.engine.once_name(NAMES[name]).unwrap();
        let by = self.sessions[who];
        let begun = self
            .engine
            .begin(&core_name, by, self.now_ns, ttl_ns)
            .unwrap();
        if let Begun::Started(attempt) = &begun {
            self.settle(name, attempt.is_after_unfinished);
        }
        match (begun, self.key(name).clone()) {
            (Begun::Done(found), Model::Done { result, .. }) => assert_eq!(found, result),
            (Begun::InProgress(found), Model::InProgress { .. }) => {
                self.check_progress(name, found);
            }
            (Begun::Started(attempt), before @ (Model::New | Model::Unfinished { .. })) => {
                assert!(attempt.token > self.last[name], "tokens: {attempt:?}");
                self.last[name] = attempt.token;
                let until_us = (self.now_ns + ttl_ns).div_ceil(1_000);
                assert_eq!(attempt.deadline_ns, until_us * 1_000);
                let is_after_unfinished = before != Model::New;
                assert_eq!(attempt.is_after_unfinished, is_after_unfinished);
                let token = attempt.token;
                self.keys[name] = Model::InProgress {
                    by,
                    token,
                    until_us,
                    is_after_unfinished,
                };
                self.attempts.push((name, attempt));
            }
            (begun, model) => panic!("begun as {begun:?}, by the model {model:?}"),
        }
    }

    fn extended(
        &mut self,
        name: usize,
        attempt: &Attempt,
        ttl_ns: u64,
        extended: Option<u64>,
        to: Option<SessionId>,
    ) {
        let us = (self.now_ns + ttl_ns).div_ceil(1_000);
        let is_its = self.is_in_progress(name, attempt);
        assert_eq!(extended, is_its.then_some(us * 1_000));
        if let (true, Model::InProgress { by, until_us, .. }) = (is_its, self.key(name)) {
            *until_us = us;
            *by = to.unwrap_or(*by);
        }
    }

    fn reopen(&mut self, who: usize) {
        let gone = self.sessions[who];
        self.engine.close_session(gone);
        self.sessions[who] = session(&self.engine);
        for name in 0..NAMES.len() {
            let now_ns = self.now_ns;
            let key = self.key(name);
            if matches!(key, Model::InProgress { by, .. } if *by == gone) {
                *key = Model::Unfinished { over_ns: now_ns };
            }
        }
        // An attempt is nobody's after its session, whose own calls end with it.
        let keys = &self.keys;
        self.attempts.retain(|(name, attempt)| {
            matches!(&keys[*name], Model::InProgress { token, .. } if *token == attempt.token)
                || !matches!(keys[*name], Model::Unfinished { .. })
        });
    }

    fn check_progress(&mut self, name: usize, found: Progress) {
        let now_ns = self.now_ns;
        let Model::InProgress {
            by,
            token,
            until_us,
            is_after_unfinished,
        } = *self.key(name)
        else {
            panic!("{found:?}, by the model {:?}", self.keys[name]);
        };
        let is_detached = by == SessionId::DETACHED;
        let expected = Progress {
            process: (!is_detached).then(Process::default),
            detached: is_detached,
            left_ns: until_us * 1_000 - now_ns,
            token,
            is_after_unfinished,
        };
        assert_eq!(found, expected);
    }

    fn look(&mut self, name: usize) {
        let core_name = self.engine.once_name(NAMES[name]).unwrap();
        let status = self.engine.once_status(&core_name, self.now_ns).unwrap();
        self.settle(name, status == OnceStatus::Unfinished);
        match (status, self.key(name).clone()) {
            (OnceStatus::New, Model::New) | (OnceStatus::Unfinished, Model::Unfinished { .. }) => {}
            (OnceStatus::InProgress(found), Model::InProgress { .. }) => {
                self.check_progress(name, found);
            }
            (
                OnceStatus::Done {
                    result: found,
                    left_ns,
                },
                Model::Done { result, until_ms },
            ) => {
                assert_eq!(found, result);
                assert_eq!(left_ns, until_ms * 1_000_000 - self.now_ns);
            }
            (status, model) => panic!("it is {status:?}, by the model {model:?}"),
        }
    }

    /// Uses new locks, for which what is not needed any more makes room.
    fn make_room(&mut self, locks: u8) {
        for _ in 0..locks {
            self.rooms += 1;
            let name = self.engine.lock_name(&self.rooms.to_le_bytes()).unwrap();
            match self
                .engine
                .try_acquire(&name, self.sessions[2], self.now_ns, 1_000_000)
            {
                Ok(LockAttempt::Granted(grant)) => {
                    self.engine.release(&grant, || self.now_ns);
                }
                other => panic!("the three keys leave room for a lock: {other:?}"),
            }
        }
    }

    fn check(&mut self) {
        for name in 0..NAMES.len() {
            self.look(name);
        }
        let check = self.engine.check_region();
        assert_eq!(check.findings, Vec::<Finding>::new());
    }
}

/// A result that tells which attempt stored it, in each of its bytes.
fn result(attempt: &Attempt, length: usize) -> Vec<u8> {
    (0..LENGTHS[length])
        .map(|i| (attempt.token + i as u64) as u8)
        .collect()
}

proptest! {
    #![proptest_config(model_config())]

    // property 2, property 3, property 5, property 11
    #[test]
    fn onces_do_what_a_naive_model_does(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        world.check();
    }
}

// property 8
#[test]
fn a_result_or_a_time_outside_its_bounds_is_an_error_and_changes_nothing() {
    let engine = engine(SMALL);
    let me = session(&engine);
    let name = engine.once_name(b"a").unwrap();
    for ns in [0, 999_999, TTL_NS_MAX + 1, u64::MAX] {
        let error = engine.begin(&name, me, 0, ns).unwrap_err();
        assert!(
            matches!(
                error,
                Error::OutOfRange {
                    what: "ttl (ns)",
                    ..
                }
            ),
            "{error}"
        );
    }
    assert_eq!(engine.once_status(&name, 0).unwrap(), OnceStatus::New);
    let Begun::Started(attempt) = engine.begin(&name, me, 0, TTL_NS_MAX).unwrap() else {
        panic!("it is new");
    };
    let long = vec![0; RESULT_BYTES_MAX + 1];
    let too_long = engine
        .finish(&attempt, me, &long, 0, TTL_NS_MAX)
        .unwrap_err();
    assert_eq!(
        too_long.to_string(),
        "result (bytes) is 1025; it must be 0 to 1024"
    );
    let token = attempt.token;
    for ns in [0, TTL_NS_MAX + 1] {
        for error in [
            engine.finish(&attempt, me, b"", 0, ns).unwrap_err(),
            engine
                .finish_by_name(&name, token, me, b"", 0, ns)
                .unwrap_err(),
        ] {
            assert!(
                matches!(
                    error,
                    Error::OutOfRange {
                        what: "keep (ns)",
                        ..
                    }
                ),
                "{error}"
            );
        }
        assert!(engine.extend(&attempt, 0, ns).is_err());
        assert!(engine.extend_by_name(&name, token, 0, ns).is_err());
    }
    assert!(engine.is_attempt_held(&attempt, 0));
    assert!(
        engine
            .finish(&attempt, me, &long[1..], 0, TTL_NS_MAX)
            .unwrap()
    );
}

// property 11
#[test]
fn results_that_are_kept_leave_no_room_and_those_that_are_not_make_some() {
    let engine = engine(Caps {
        key_chunks: 50,
        ..SMALL
    });
    let me = session(&engine);
    let begin = |name: &[u8], now_ns| {
        let name = engine.once_name(name).unwrap();
        match engine.begin(&name, me, now_ns, 1_000_000).unwrap() {
            Begun::Started(attempt) => attempt,
            other => panic!("{other:?}"),
        }
    };
    let long = [7; RESULT_BYTES_MAX];
    for name in [b"a", b"b"] {
        let attempt = begin(name, 0);
        assert!(engine.finish(&attempt, me, &long, 0, 5_000_000).unwrap());
    }
    let third = begin(b"c", 0);
    let full = engine
        .finish(&third, me, &long, 0, 1_000_000_000)
        .unwrap_err();
    assert!(matches!(full, Error::Full { cap: 50, .. }), "{full}");
    // What it took in vain it gave back.
    assert!(
        engine
            .finish(&third, me, &long[..6 * 48], 0, 1_000_000_000)
            .unwrap()
    );
    // There is none left, and an empty one needs none.
    let fourth = begin(b"d", 0);
    let full = engine
        .finish(&fourth, me, b"x", 0, 1_000_000_000)
        .unwrap_err();
    assert!(matches!(full, Error::Full { cap: 50, .. }), "{full}");
    assert!(engine.finish(&fourth, me, b"", 0, 1_000_000_000).unwrap());
    let fifth = begin(b"e", 5_000_000);
    assert!(
        engine
            .finish(&fifth, me, &long, 5_000_000, 1_000_000)
            .unwrap()
    );
}
