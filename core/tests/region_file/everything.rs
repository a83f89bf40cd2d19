//! Every operation of an engine, for regions whose words may be anything: owns what is called, and what
//! is told of the answers. Never judges them: that each comes is all that such a region can promise.

// Each test uses its own part.
#![allow(dead_code)]

use fastrand::Rng;
use sprag_core::admission::Wants;
use sprag_core::limiter::Asked;
use sprag_core::lock::{Attempt, Coarse, HoldOf, Upgrade};
use sprag_core::once::Begun;
use sprag_core::session::Process;
use sprag_core::waiter::Sleeper;
use sprag_core::{Engine, Error, Finding, Limit, Result, SessionId};
use std::collections::BTreeSet;

/// Names that a used region has, by whose hands ever it was used: some fit their cell, some don't.
pub(crate) const NAMES: [&[u8]; 6] = [
    b"a",
    b"orders",
    b"twenty-four bytes, right",
    b"one byte more than in a cell",
    &[b'x'; 200],
    &[b'y'; 1_024],
];

/// Keys of its limiter `api`.
pub(crate) const KEYS: [&[u8]; 4] = [
    b"k",
    b"sixteen bytes ok",
    b"seventeen bytes !",
    &[b'z'; 500],
];

/// What was answered, in kinds.
pub(crate) type Answers = BTreeSet<&'static str>;

/// Everything that an engine offers, on names of every length, at times of every size.
pub(crate) fn use_everything(engine: &Engine, rounds: u32, random: &mut Rng) -> Answers {
    let mut answers = Answers::new();
    let sessions: Vec<SessionId> = engine
        .open_session(Process::default(), random.u64(..))
        .into_iter()
        .chain([SessionId::DETACHED])
        .collect();
    let limit: Limit = "10/h".parse().unwrap();
    let update: Limit = "100/s".parse().unwrap();
    for round in 0..rounds {
        let by = sessions[round as usize % sessions.len()];
        let now_ns = random.u64(..) >> random.u32(..64);
        let lease_ns = random.u64(1_000_000..=1_000_000_000);
        let name = one_of(&NAMES, random);
        use_lock(engine, &name, by, now_ns, lease_ns, random, &mut answers);
        use_pools(engine, &name, by, now_ns, lease_ns, random, &mut answers);

        // Each is many calls, of which each may look through all that there is for room.
        if round % 8 == 0 {
            use_many(engine, by, now_ns, lease_ns, random, &mut answers);
        }

        use_once(engine, &name, by, now_ns, lease_ns, random, &mut answers);

        let fence = engine.fence_name(&name).unwrap();
        let admitted = engine.admit(&fence, by, now_ns, random.u64(..), round % 2 == 0);
        note(&mut answers, admitted);
        engine.fence_highest(&fence);

        use_counter(engine, &name, by, now_ns, random, &mut answers);

        match engine.open_limiter(b"api", limit, false, by, now_ns) {
            Ok(limiter) => {
                let key = one_of(&KEYS, random);
                note(&mut answers, engine.check(&limiter, &key, 1, by, now_ns));
                let wait_ns_max = random.u64(..);
                match engine.reserve(&limiter, &key, 1, wait_ns_max, by, now_ns) {
                    Ok(reserved) => {
                        note(&mut answers, engine.refund(&limiter, reserved, || now_ns));
                    }
                    Err(error) => note::<()>(&mut answers, Err(error)),
                }
                note(&mut answers, engine.peek(&limiter, &key, now_ns));
                let now = || now_ns;
                match random.u32(..8) {
                    0 => note(&mut answers, engine.clear_override(&limiter, &key, now)),
                    1 | 2 => note(
                        &mut answers,
                        engine.set_override(&limiter, &key, update, by, now),
                    ),
                    _ => note(&mut answers, engine.override_of(&limiter, &key, now)),
                }
                let batch = engine.check_batch(&limiter, &KEYS, 1, by, now_ns, |_, checked| {
                    let decision = checked.decision;
                    decision.retry_after_ns();
                    decision.reset_after_ns();
                    assert!(decision.remaining() <= decision.limit());
                    true
                });
                note(&mut answers, batch);
                // As above: many calls.
                if round % 4 == 0 {
                    let asked = KEYS.map(|key| Asked {
                        limiter: &limiter,
                        key,
                        cost: random.u64(0..3),
                    });
                    let near = random.u32(..);
                    let all = engine.check_all(asked, by, near, now_ns, |_, checked| {
                        let decision = checked.decision;
                        assert!(decision.remaining() <= decision.limit());
                    });
                    note(&mut answers, all);
                }
            }
            Err(error) => drop(answers.insert(kind(&error))),
        }
        if round % 8 == 0 {
            use_joint(engine, by, now_ns, random, &mut answers);
            let changed = engine.open_limiter(b"api", update, true, by, now_ns);
            note(&mut answers, changed);
        }
    }
    engine.for_each_lock(b"", 0, |_| {});
    engine.for_each_counter(b"", |_, _| {});
    engine.for_each_once(b"", 0, |_, _| {});
    engine.for_each_semaphore(b"", 0, |_| {});
    engine.concurrency_statuses(b"", 0);
    engine.for_each_limiter(b"", |_, limit, _| drop(limit.to_string()));
    engine.for_each_override(b"", |_, _, limit| drop(limit.to_string()));
    engine.for_each_joint(b"", |_, limits, _| assert!((2..=6).contains(&limits.len())));
    engine.joint_key_count();
    engine.breaks();
    engine.limiter_key_count();
    engine.limiter_key_bytes();
    engine.region().allocated_bytes();
    note(&mut answers, engine.check_in_place());
    for session in sessions {
        engine.is_alive(session);
        engine.close_session(session);
    }
    answers
}

/// Limits declared together.
fn use_joint(engine: &Engine, by: SessionId, now_ns: u64, random: &mut Rng, answers: &mut Answers) {
    let limits = JOINT_LIMITS.map(|limit| limit.parse().unwrap());
    match engine.open_joint(b"joint", &limits, by, now_ns) {
        Ok(joint) => {
            for _ in 0..4 {
                let key = one_of(&KEYS, random);
                let cost = random.u64(..) >> random.u32(30..64);
                let checked = engine.check_joint(&joint, &key, cost, by, now_ns);
                if let Ok(checked) = &checked {
                    assert_eq!(checked.is_allowed(), checked.refused_by().is_none());
                    assert!(checked.remaining() <= checked.limit());
                    checked.retry_after_ns();
                    checked.reset_after_ns();
                }
                note(answers, checked);
            }
            let peeked = engine.peek_joint(&joint, &one_of(&KEYS, random), now_ns);
            note(answers, peeked);
        }
        Err(error) => drop(answers.insert(kind(&error))),
    }
    let others = ["1/s", "2/h"].map(|limit| limit.parse().unwrap());
    let joint = engine.open_joint(&one_of(&NAMES, random), &others, by, now_ns);
    if let Ok(joint) = &joint {
        note(
            answers,
            engine.check_joint(joint, &one_of(&KEYS, random), 1, by, now_ns),
        );
    }
    note(answers, joint);
}

/// Limits of a used region's joint limiter.
pub(crate) const JOINT_LIMITS: [&str; 3] = ["3/s", "10/h", "20/day;window=sliding"];

/// Several locks, a partition and the table, with and without waiting.
fn use_many(
    engine: &Engine,
    by: SessionId,
    now_ns: u64,
    lease_ns: u64,
    random: &mut Rng,
    answers: &mut Answers,
) {
    let names: Vec<_> = (0..random.usize(1..4))
        .map(|_| engine.lock_name(&one_of(&NAMES, random)).unwrap())
        .collect();
    let attempt = engine.try_acquire_all(&names, by, now_ns, lease_ns);
    if let Ok(Attempt::Granted(grant)) = attempt {
        answers.insert("granted several");
        engine.tokens_of(&grant, &names);
        note(answers, engine.renew(&grant, now_ns, lease_ns));
        if random.bool() {
            engine.release(&grant, || now_ns);
        }
        engine.release_followers(&grant, &names, now_ns, |_| {});
    }
    note(answers, attempt);
    let coarse = match random.u32(..8) {
        0 => Coarse::Table,
        _ => Coarse::Partition(random.u32(..engine.region().partitions())),
    };
    let wants = Wants::Coarse(coarse);
    let attempt = engine.try_get(&names[0], wants, by, now_ns, lease_ns);
    if let Ok(Attempt::Granted(grant)) = attempt {
        answers.insert("granted coarse");
        note(
            answers,
            engine.renew_coarse_by_token(coarse, grant.token, Some(by), now_ns, lease_ns),
        );
        if random.bool() {
            engine.release(&grant, || now_ns);
        } else {
            engine.release_coarse_by_token(coarse, grant.token, now_ns);
        }
    }
    note(answers, attempt);
    let holds: Vec<_> = match engine.try_acquire(&names[0], by, now_ns, lease_ns) {
        Ok(Attempt::Granted(grant)) => vec![grant],
        _ => Vec::new(),
    };
    for wants in [Wants::Several, wants] {
        let Ok(mut ticket) = engine.enqueue_for(&names, wants, by, now_ns, random.u64(..)) else {
            continue;
        };
        engine.set_holds(&mut ticket, holds.clone());
        let poll = engine.poll_for(&ticket, &names, by, now_ns, lease_ns, random.bool());
        note(answers, poll);
        engine.cancel(ticket, now_ns, |wake| {
            engine.next_wake(wake);
        });
    }
    for hold in &holds {
        engine.release(hold, || now_ns);
    }
    engine.coarse_status(coarse, now_ns);
    if random.u32(..8) == 0 {
        note(
            answers,
            engine.break_coarse(coarse, Process::default(), now_ns),
        );
    }
}

fn use_lock(
    engine: &Engine,
    bytes: &[u8],
    by: SessionId,
    now_ns: u64,
    lease_ns: u64,
    random: &mut Rng,
    answers: &mut Answers,
) {
    let name = engine.lock_name(bytes).unwrap();
    let attempt = engine.try_acquire(&name, by, now_ns, lease_ns);
    if let Ok(Attempt::Granted(grant)) = attempt {
        answers.insert("granted");
        engine.is_held(&grant, now_ns);
        engine.name_of_hold(&grant, name.raw_hash());
        note(answers, engine.renew(&grant, now_ns, lease_ns));
        let detached = engine.transfer(&grant, SessionId::DETACHED, now_ns, lease_ns);
        note(answers, detached);
        engine.release(&grant, || now_ns);
    }
    note(answers, attempt);
    let token = engine.lock_status(&name, now_ns).map_or(1, |s| s.token);
    note(
        answers,
        engine.adopt(HoldOf::Lock, &name, token, by, now_ns, lease_ns),
    );
    note(
        answers,
        engine.renew_by_name(HoldOf::Lock, &name, token, now_ns, lease_ns),
    );
    match engine.enqueue(&name, by, now_ns, random.u64(..)) {
        Ok(ticket) => {
            answers.insert("queued");
            engine.set_sleeper(&ticket, Sleeper::Thread);
            engine.signal(&ticket);
            engine.doorbell(by);
            for probe in [true, false] {
                note(
                    answers,
                    engine.poll(&ticket, &name, by, now_ns, lease_ns, probe),
                );
            }
            engine.cancel(ticket, now_ns, |wake| {
                engine.to_wake(wake);
                engine.next_wake(wake);
            });
        }
        Err(error) => drop(answers.insert(kind(&error))),
    }
    engine.break_lock(&name, Process::default(), now_ns);
    engine.release_by_name(HoldOf::Lock, &name, token, now_ns);
}

fn use_counter(
    engine: &Engine,
    name: &[u8],
    by: SessionId,
    now_ns: u64,
    random: &mut Rng,
    answers: &mut Answers,
) {
    let counter = engine.counter(name).unwrap();
    let delta = random.i64(..) >> random.u32(..64);
    engine.counter_add_known(&counter, delta);
    note(answers, engine.counter_add(&counter, delta, by, now_ns));
    let bounds = random.i64(..)..=random.i64(..);
    note(
        answers,
        engine.counter_add_within(&counter, delta, &bounds, by, now_ns),
    );
    let number = engine.counter_get(&counter);
    let exchanged = engine.counter_compare_exchange(&counter, number, delta, by, now_ns);
    note(answers, exchanged);
    // One alone: they stay.
    let many = engine.counter(b"striped").unwrap();
    match engine.counter_striped(&many, by, now_ns) {
        Ok(striped) => {
            for lane in 0..20 {
                note(answers, engine.striped_add(&striped, lane, delta));
            }
            let added = engine.striped_add_within(&striped, 3, delta, &bounds);
            note(answers, added);
            engine.counter_get(&many);
        }
        Err(error) => drop(answers.insert(kind(&error))),
    }
    note(answers, engine.counter_swap(&counter, 0, by, now_ns));
}

fn use_once(
    engine: &Engine,
    bytes: &[u8],
    by: SessionId,
    now_ns: u64,
    ttl_ns: u64,
    random: &mut Rng,
    answers: &mut Answers,
) {
    let name = engine.once_name(bytes).unwrap();
    let begun = engine.begin(&name, by, now_ns, ttl_ns);
    note(answers, engine.once_status(&name, now_ns));
    if let Ok(Begun::Started(attempt)) = &begun {
        answers.insert("begun");
        let token = attempt.token;
        note(answers, engine.extend(attempt, now_ns, ttl_ns));
        let extended = engine.extend_by_name(&name, token, now_ns, ttl_ns);
        note(answers, extended);
        match random.u32(..4) {
            0 => drop(engine.abandon(attempt, now_ns, random.bool())),
            1 => note(answers, engine.detach_attempt(attempt, now_ns, ttl_ns)),
            how => {
                let result = vec![7; random.usize(..=1_030) >> random.u32(..10)];
                let finished = if how == 2 {
                    engine.finish(attempt, by, &result, now_ns, ttl_ns)
                } else {
                    engine.finish_by_name(&name, token, by, &result, now_ns, ttl_ns)
                };
                note(answers, finished);
            }
        }
        engine.is_attempt_held(attempt, now_ns);
        engine.abandon_by_name(&name, token, now_ns);
    }
    if let Ok(Begun::Done(result)) = &begun {
        assert!(result.len() <= 1_024);
        answers.insert("done");
    }
    note(answers, begun);
}

/// What several hold at once: shares of a lock, permits of a semaphore and of a limiter's key, under one name.
fn use_pools(
    engine: &Engine,
    bytes: &[u8],
    by: SessionId,
    now_ns: u64,
    lease_ns: u64,
    random: &mut Rng,
    answers: &mut Answers,
) {
    let name = engine.lock_name(bytes).unwrap();
    let amount = random.u32(1..=CAPACITY);
    let permits = Wants::permits(amount, CAPACITY).unwrap();
    let mut pools = vec![
        (HoldOf::Lock, name.clone(), Wants::Shared),
        (HoldOf::Semaphore, name, permits),
    ];
    let (capacity, update) = (random.u32(1..=CAPACITY), random.bool());
    match engine.open_concurrency(b"uploads", capacity, update, by, now_ns, |wake| {
        engine.to_wake(wake);
    }) {
        Ok(limiter) => {
            let (key, wants) = (
                engine.slots_name(limiter, bytes),
                Wants::slots(amount, limiter),
            );
            pools.push((HoldOf::Slots, key.unwrap(), wants.unwrap()));
            engine.concurrency_name(limiter);
            note(answers, engine.concurrency_capacity(limiter));
        }
        Err(error) => drop(answers.insert(kind(&error))),
    }
    for (of, name, wants) in pools {
        engine.permits_status(of, &name, now_ns);
        let attempt = engine.try_get(&name, wants, by, now_ns, lease_ns);
        if let Ok(Attempt::Granted(grant)) = attempt {
            answers.insert("shared");
            engine.is_held(&grant, now_ns);
            engine.is_shared(&grant);
            engine.name_of_hold(&grant, name.raw_hash());
            note(answers, engine.renew(&grant, now_ns, lease_ns));
            let upgraded = engine.try_upgrade(&grant, now_ns, lease_ns);
            let alone = match upgraded {
                Ok(Upgrade::Granted(alone)) => alone,
                _ => grant,
            };
            note(answers, upgraded);
            let wants = Wants::Upgrade(grant);
            if let Ok(ticket) = engine.enqueue_for(
                std::slice::from_ref(&name),
                wants,
                by,
                now_ns,
                random.u64(..),
            ) {
                let poll = engine.poll(&ticket, &name, by, now_ns, lease_ns, true);
                note(answers, poll);
                engine.cancel(ticket, now_ns, |_| {});
            }
            note(answers, engine.downgrade(&alone, now_ns));
            engine.end_upgrade(&alone, now_ns);
            if random.bool() {
                engine.release(&alone, || now_ns);
            }
        }
        note(answers, attempt);
        let token = random.u64(..) >> random.u32(..64);
        note(
            answers,
            engine.adopt(of, &name, token, by, now_ns, lease_ns),
        );
        engine.release_by_name(of, &name, token, now_ns);
        match engine.enqueue_for(
            std::slice::from_ref(&name),
            wants,
            by,
            now_ns,
            random.u64(..),
        ) {
            Ok(ticket) => {
                for probe in [true, false] {
                    let poll = engine.poll(&ticket, &name, by, now_ns, lease_ns, probe);
                    note(answers, poll);
                }
                engine.cancel(ticket, now_ns, |_| {});
            }
            Err(error) => drop(answers.insert(kind(&error))),
        }
    }
}

/// How many permits a used region's semaphores have.
pub(crate) const CAPACITY: u32 = 5;

/// One that a used region has, or any other.
fn one_of(known: &[&[u8]], random: &mut Rng) -> Vec<u8> {
    if random.bool() {
        return known[random.usize(..known.len())].to_vec();
    }
    let mut bytes = vec![0; (random.usize(1..=1_024) >> random.u32(..10)).max(1)];
    random.fill(&mut bytes);
    bytes
}

fn note<T>(answers: &mut Answers, answer: Result<T>) {
    if let Err(error) = answer {
        answers.insert(kind(&error));
    }
}

/// Which error it is and, where it says so in words of its own, at what.
pub(crate) fn kind(error: &Error) -> &'static str {
    match error {
        Error::Damaged { what }
        | Error::Contended { what }
        | Error::Full { what, .. }
        | Error::ShareExceeded { what, .. }
        | Error::OutOfRange { what, .. }
        | Error::Unsupported { what } => what,
        Error::NotARegion { why, .. } | Error::Permission { why, .. } => why,
        Error::NameLength { .. } => "length of a name",
        Error::NoSpace { .. } => "no space",
        Error::LimitDiffers { .. } => "another limit",
        Error::LimiterGone { .. } => "limiter gone",
        Error::CounterOverflow { .. } => "counter overflow",
        Error::NoBounds { .. } => "no bounds",
        Error::JointLimitsDiffer { .. } => "other joint limits",
        Error::CapacityDiffers { .. } => "another capacity",
        Error::ConcurrencyDiffers { .. } => "another number at once",
        Error::AboveCapacity { .. } => "above capacity",
        Error::NotALock { .. } => "not a lock",
        Error::TokensExhausted { .. } => "no more tokens",
        Error::Incompatible { found, .. } if found.starts_with("version") => "another version",
        Error::Incompatible { found, .. } if found.starts_with("features") => "unknown features",
        Error::Incompatible { .. } => "another hash",
        Error::NotFound { .. } => "not found",
        Error::InUse { sessions: 0, .. } => "in use by detached holds",
        Error::InUse { .. } => "in use by sessions",
        Error::Replaced { .. } => "replaced",
        Error::SessionLost { .. } => "session lost",
        Error::Io { action, .. } => action,
        Error::NoKernelLock { .. } => "no kernel lock",
        _ => "an error that is new",
    }
}

/// Which finding it is.
pub(crate) fn kind_of_finding(finding: &Finding) -> &'static str {
    match finding {
        Finding::Phase { .. } => "phase",
        Finding::Kind { .. } => "kind",
        Finding::Name { .. } => "name",
        Finding::Result { .. } => "result",
        Finding::Lost { .. } => "lost",
        Finding::Twice { .. } => "twice",
        Finding::Count { what, .. } => what,
        Finding::Charge { .. } => "charge",
        Finding::Wait { .. } => "wait",
        Finding::Members { .. } => "members",
        Finding::Definition { .. } => "definition",
        Finding::Joint { .. } => "joint",
        _ => "a finding that is new",
    }
}
