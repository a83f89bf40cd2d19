//! What callers ask of locks, semaphores and coarse locks, spoilt anywhere: numbers of permits, leases,
//! partitions, tokens, names given twice. What is out of its bounds is refused with the bound named, and takes
//! nothing; what is granted has what was asked for, and is given back whole.

mod fuzz;
mod support;

use fuzz::{Bytes, Campaign};
use sprag_core::admission::Wants;
use sprag_core::key::NAME_BYTES_MAX;
use sprag_core::lock::{
    Attempt, Coarse, Grant, HoldOf, LEASE_NS_MAX, LEASE_NS_MIN, Released, Renewed, SEVERAL_MAX,
};
use sprag_core::region::Caps;
use sprag_core::semaphore::CAPACITY_MAX;
use sprag_core::{Engine, Error, SessionId};

/// What is asked for: five numbers, then the name.
struct Asked<'a> {
    amount: u32,
    capacity: u32,
    partition: u32,
    copies: u16,
    lease_ns: u64,
    token: u64,
    name: &'a [u8],
}

const NUMBERS: usize = 30;

impl<'a> Asked<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (numbers, name) = bytes.split_at_checked(NUMBERS)?;
        let four = |at: usize| u32::from_le_bytes(numbers[at..at + 4].try_into().unwrap());
        let eight = |at: usize| u64::from_le_bytes(numbers[at..at + 8].try_into().unwrap());
        Some(Self {
            amount: four(0),
            capacity: four(4),
            partition: four(8),
            copies: u16::from_le_bytes([numbers[12], numbers[13]]),
            lease_ns: eight(14),
            token: eight(22),
            name,
        })
    }

    fn sample(amount: u32, capacity: u32, partition: u32, copies: u16, lease_ns: u64) -> Bytes {
        let mut bytes = Vec::new();
        for number in [amount, capacity, partition] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(copies.to_le_bytes());
        bytes.extend(lease_ns.to_le_bytes());
        bytes.extend(7_u64.to_le_bytes());
        bytes.extend(b"orders/2024");
        Bytes(bytes)
    }
}

#[test]
fn holds_are_what_was_asked_for_or_are_refused_with_their_bounds() {
    let caps = Caps {
        objects: 512,
        limiter_keys: 8,
        joint_keys: 8,
        sessions: 2,
        waiters: 8,
        permits: 8,
        key_chunks: 4_096,
    };
    let (engine, me) = support::engine_with_session(caps);
    let mut now_ns = 0;
    Campaign {
        test: "holds_are_what_was_asked_for_or_are_refused_with_their_bounds",
        corpus: vec![
            Asked::sample(1, 1, 0, 1, LEASE_NS_MIN),
            Asked::sample(3, 8, 63, 2, LEASE_NS_MAX),
            Asked::sample(CAPACITY_MAX, CAPACITY_MAX, 7, 64, 30_000_000_000),
        ],
        regressions: vec![
            Asked::sample(0, 0, u32::MAX, 0, 0),
            Asked::sample(2, 1, 64, 65, LEASE_NS_MAX + 1),
            Asked::sample(1, CAPACITY_MAX + 1, 1 << 30, u16::MAX, u64::MAX),
        ],
        dictionary: &[
            &0_u32.to_le_bytes(),
            &1_u32.to_le_bytes(),
            &CAPACITY_MAX.to_le_bytes(),
            &(CAPACITY_MAX + 1).to_le_bytes(),
            &u32::MAX.to_le_bytes(),
            &(1_u32 << 30).to_le_bytes(),
            &LEASE_NS_MIN.to_le_bytes(),
            &(LEASE_NS_MIN - 1).to_le_bytes(),
            &LEASE_NS_MAX.to_le_bytes(),
            &(LEASE_NS_MAX + 1).to_le_bytes(),
            &u64::MAX.to_le_bytes(),
        ],
        inputs: 6_000,
        soak_times: 300,
        batch: 1,
    }
    .run(|Bytes(bytes)| {
        now_ns += 1;
        Asked::read(bytes).map(|asked| try_asked(&engine, &asked, me, now_ns))
    });
}

/// What came of each kind of hold: granted, or the argument that was out of its bounds.
fn try_asked(engine: &Engine, asked: &Asked<'_>, me: SessionId, now_ns: u64) -> [&'static str; 4] {
    let Ok(name) = engine.lock_name(asked.name) else {
        assert!(!(1..=NAME_BYTES_MAX).contains(&asked.name.len()));
        return ["name"; 4];
    };
    let lease = (LEASE_NS_MIN..=LEASE_NS_MAX).contains(&asked.lease_ns);
    let get = |wants| engine.try_get(&name, wants, me, now_ns, asked.lease_ns);
    let shared = outcome(get(Wants::Shared), &[("lease (ns)", lease)], |grant| {
        let renewed = engine
            .renew_by_name(HoldOf::Lock, &name, asked.token, now_ns, LEASE_NS_MIN)
            .unwrap();
        assert_eq!(renewed == Renewed::NotHeld, asked.token != grant.token);
        let released = engine.release_by_name(HoldOf::Lock, &name, grant.token, now_ns);
        assert!(matches!(released, Released::Done { .. }));
    });
    let several = {
        let names = vec![name.clone(); asked.copies.into()];
        let number = (1..=SEVERAL_MAX).contains(&names.len());
        let attempt = engine.try_acquire_all(&names, me, now_ns, asked.lease_ns);
        let bounds = [("lease (ns)", lease), ("number of locks", number)];
        outcome(attempt, &bounds, |grant| {
            assert_eq!(
                engine.tokens_of(grant, &names),
                vec![grant.token; names.len()]
            );
            engine.release(grant, || now_ns);
        })
    };
    let permits = {
        let semaphore = engine.semaphore_name(asked.name).unwrap();
        let (amount, capacity) = (asked.amount, asked.capacity);
        let attempt =
            engine.try_acquire_permits(&semaphore, amount, capacity, me, now_ns, asked.lease_ns);
        let bounds = [
            ("permits", (1..=CAPACITY_MAX).contains(&capacity)),
            ("permits", (1..=capacity).contains(&amount)),
            ("lease (ns)", lease),
        ];
        outcome(attempt, &bounds, |grant| {
            engine.for_each_semaphore(asked.name, now_ns, |status| {
                let is_it = status.name == asked.name;
                assert!(!is_it || (status.capacity, status.used) == (capacity, amount));
            });
            engine.release(grant, || now_ns);
        })
    };
    let partition = {
        let is_one = asked.partition < engine.region().partitions();
        let checked = engine.check_partition(asked.partition);
        if is_one {
            let coarse = Wants::Coarse(Coarse::Partition(asked.partition));
            outcome(get(coarse), &[("lease (ns)", lease)], |grant| {
                engine.release(grant, || now_ns);
            })
        } else {
            assert!(matches!(
                checked,
                Err(Error::OutOfRange {
                    what: "partition",
                    ..
                })
            ));
            "partition"
        }
    };
    // Whatever was granted is given back: all of it can be had.
    if let Ok(attempt) = engine.try_get(
        &name,
        Wants::Coarse(Coarse::Table),
        me,
        now_ns,
        LEASE_NS_MIN,
    ) {
        let Attempt::Granted(grant) = attempt else {
            panic!("something is held still");
        };
        engine.release(&grant, || now_ns);
    }
    [shared, several, permits, partition]
}

/// Holds an answer to what is within its bounds.
fn outcome(
    attempt: Result<Attempt, Error>,
    bounds: &[(&'static str, bool)],
    granted: impl FnOnce(&Grant),
) -> &'static str {
    match attempt {
        Ok(Attempt::Granted(grant)) => {
            assert!(bounds.iter().all(|(_, is_within)| *is_within));
            granted(&grant);
            "granted"
        }
        Ok(Attempt::Busy) => panic!("held by somebody else"),
        Err(Error::OutOfRange {
            what,
            value,
            min,
            max,
        }) => {
            assert!(
                !(min..=max).contains(&value),
                "{value} is within {min} to {max}"
            );
            assert!(
                bounds.contains(&(what, false)),
                "{what} is within its bounds"
            );
            what
        }
        // Of a semaphore, as some input before made it.
        Err(Error::CapacityDiffers { .. }) => "capacity of before",
        Err(error) => panic!("{error}"),
    }
}
