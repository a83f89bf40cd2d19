//! One step of a case: what an actor may ask of a lock, a semaphore or a limiter's key.

use proptest::prelude::*;

/// Actors, each with a session of its own at any moment.
pub(crate) const SESSIONS: usize = 3;
/// Two locks and a semaphore between them, by number, and a key of a concurrency limiter.
pub(crate) const THINGS: usize = 4;
pub(crate) const SEMAPHORE: usize = 1;
pub(crate) const SLOTS: usize = 3;
/// How many permits the semaphore has, and the key at first.
pub(crate) const CAPACITY: u32 = 3;

/// Whether what is wanted of a thing are permits.
pub(crate) fn has_permits(thing: usize) -> bool {
    thing == SEMAPHORE || thing == SLOTS
}

/// What is wanted of a thing: of a lock, beside others or alone; of the others, so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) alone: bool,
    pub(crate) amount: u32,
}

/// One step. Indices choose among what there is at that moment, so that a shrunk case stays legal.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Pass {
        ns: u64,
    },
    Try {
        who: usize,
        thing: usize,
        want: Want,
        lease_ns: u64,
    },
    Enqueue {
        who: usize,
        thing: usize,
        want: Want,
        for_ns: u64,
    },
    Poll {
        wait: usize,
        lease_ns: u64,
    },
    Cancel {
        wait: usize,
    },
    Release {
        grant: usize,
    },
    ReleaseByToken {
        grant: usize,
        thing: usize,
    },
    Renew {
        grant: usize,
        lease_ns: u64,
    },
    RenewByToken {
        grant: usize,
        thing: usize,
        lease_ns: u64,
    },
    Transfer {
        grant: usize,
        to: usize,
        lease_ns: u64,
    },
    Adopt {
        grant: usize,
        to: usize,
        lease_ns: u64,
    },
    Detach {
        grant: usize,
        lease_ns: u64,
    },
    Upgrade {
        grant: usize,
        is_to_wait: bool,
        lease_ns: u64,
    },
    Downgrade {
        grant: usize,
    },
    Break {
        thing: usize,
    },
    Change {
        capacity: u32,
    },
    Reopen {
        who: usize,
    },
    Look {
        thing: usize,
    },
}

fn lease() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(1_000_000),
        1_000_000..5_000_000_u64,
        Just(250_000_000),
        Just(sprag_core::lock::LEASE_NS_MAX),
    ]
}

fn want() -> impl Strategy<Value = Want> {
    (any::<bool>(), 1..=CAPACITY).prop_map(|(alone, amount)| Want { alone, amount })
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let (any_one, thing, who) = (0..64_usize, 0..THINGS, 0..SESSIONS);
    // Far below the patience of those who wait.
    let pass = prop_oneof![1..2_000_u64, 1..3_000_000_u64, Just(60_000_000_u64)];
    prop_oneof![
        2 => pass.prop_map(|ns| Step::Pass { ns }),
        9 => (who.clone(), thing.clone(), want(), lease())
            .prop_map(|(who, thing, want, lease_ns)| Step::Try { who, thing, want, lease_ns }),
        5 => (who.clone(), thing.clone(), want(), prop_oneof![Just(u64::MAX), 1..4_000_000_u64])
            .prop_map(|(who, thing, want, for_ns)| Step::Enqueue { who, thing, want, for_ns }),
        8 => (any_one.clone(), lease()).prop_map(|(wait, lease_ns)| Step::Poll { wait, lease_ns }),
        2 => any_one.clone().prop_map(|wait| Step::Cancel { wait }),
        7 => any_one.clone().prop_map(|grant| Step::Release { grant }),
        2 => (any_one.clone(), thing.clone())
            .prop_map(|(grant, thing)| Step::ReleaseByToken { grant, thing }),
        3 => (any_one.clone(), lease()).prop_map(|(grant, lease_ns)| Step::Renew { grant, lease_ns }),
        1 => (any_one.clone(), thing.clone(), lease())
            .prop_map(|(grant, thing, lease_ns)| Step::RenewByToken { grant, thing, lease_ns }),
        1 => (any_one.clone(), who.clone(), lease())
            .prop_map(|(grant, to, lease_ns)| Step::Transfer { grant, to, lease_ns }),
        1 => (any_one.clone(), who.clone(), lease())
            .prop_map(|(grant, to, lease_ns)| Step::Adopt { grant, to, lease_ns }),
        1 => (any_one.clone(), lease()).prop_map(|(grant, lease_ns)| Step::Detach { grant, lease_ns }),
        5 => (any_one.clone(), any::<bool>(), lease()).prop_map(|(grant, is_to_wait, lease_ns)| {
            Step::Upgrade { grant, is_to_wait, lease_ns }
        }),
        3 => any_one.prop_map(|grant| Step::Downgrade { grant }),
        1 => thing.clone().prop_map(|thing| Step::Break { thing }),
        2 => (1..=CAPACITY + 1).prop_map(|capacity| Step::Change { capacity }),
        1 => who.prop_map(|who| Step::Reopen { who }),
        2 => thing.prop_map(|thing| Step::Look { thing }),
    ]
}
