//! One step of a case: what an actor may ask of a lock.

use crate::support::NAMES;
use proptest::prelude::*;

/// Actors, each with a session of its own at any moment.
pub(crate) const SESSIONS: usize = 3;

/// One step. Indices choose among what there is at that moment, so that a shrunk case stays legal.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Pass {
        ns: u64,
    },
    TryAcquire {
        who: usize,
        name: usize,
        lease_ns: u64,
    },
    Enqueue {
        who: usize,
        name: usize,
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
    ReleaseByName {
        grant: usize,
        name: usize,
    },
    Renew {
        grant: usize,
        lease_ns: u64,
    },
    RenewByName {
        grant: usize,
        name: usize,
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
    Break {
        name: usize,
    },
    Reopen {
        who: usize,
    },
    Look {
        name: usize,
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

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let (any, name, who) = (0..64_usize, 0..NAMES.len(), 0..SESSIONS);
    let pass = prop_oneof![1..2_000_u64, 1..3_000_000_u64, Just(250_000_000_u64)];
    prop_oneof![
        3 => pass.prop_map(|ns| Step::Pass { ns }),
        6 => (who.clone(), name.clone(), lease())
            .prop_map(|(who, name, lease_ns)| Step::TryAcquire { who, name, lease_ns }),
        4 => (who.clone(), name.clone(), prop_oneof![Just(u64::MAX), 1..4_000_000_u64])
            .prop_map(|(who, name, for_ns)| Step::Enqueue { who, name, for_ns }),
        8 => (any.clone(), lease()).prop_map(|(wait, lease_ns)| Step::Poll { wait, lease_ns }),
        2 => any.clone().prop_map(|wait| Step::Cancel { wait }),
        5 => any.clone().prop_map(|grant| Step::Release { grant }),
        2 => (any.clone(), name.clone())
            .prop_map(|(grant, name)| Step::ReleaseByName { grant, name }),
        3 => (any.clone(), lease()).prop_map(|(grant, lease_ns)| Step::Renew { grant, lease_ns }),
        1 => (any.clone(), name.clone(), lease())
            .prop_map(|(grant, name, lease_ns)| Step::RenewByName { grant, name, lease_ns }),
        1 => (any.clone(), who.clone(), lease())
            .prop_map(|(grant, to, lease_ns)| Step::Transfer { grant, to, lease_ns }),
        1 => (any.clone(), who.clone(), lease())
            .prop_map(|(grant, to, lease_ns)| Step::Adopt { grant, to, lease_ns }),
        1 => (any, lease()).prop_map(|(grant, lease_ns)| Step::Detach { grant, lease_ns }),
        1 => name.clone().prop_map(|name| Step::Break { name }),
        1 => who.prop_map(|who| Step::Reopen { who }),
        2 => name.prop_map(|name| Step::Look { name }),
    ]
}
