//! What a run came through: counts, and at which point of what nodes died.

use sprag_paxos::{Effect, RoleName};

/// What a node was about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// To write.
    Writes,
    /// To send.
    Sends,
    /// To apply what is decided.
    Decides,
    /// Nothing, while a sync was under way.
    Syncs,
    /// Nothing at all.
    Rests,
}

impl Point {
    /// All of them.
    pub const ALL: [Point; 5] = [
        Point::Writes,
        Point::Sends,
        Point::Decides,
        Point::Syncs,
        Point::Rests,
    ];

    pub(crate) fn before(effect: Option<&Effect>, is_syncing: bool) -> Self {
        match effect {
            None if is_syncing => Point::Syncs,
            None => Point::Rests,
            Some(Effect::Persist { .. }) => Point::Writes,
            Some(Effect::Send { .. }) => Point::Sends,
            Some(Effect::Decided { .. } | Effect::SteppedDown { .. }) => Point::Decides,
        }
    }
}

/// What a voter may be doing when its node dies.
pub const ROLES: [RoleName; 5] = [
    RoleName::Follower,
    RoleName::Canvasser,
    RoleName::Candidate,
    RoleName::Recovering,
    RoleName::Leader,
];

/// The counts of a run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Calls of clients.
    pub asked: u64,
    /// Those that were answered.
    pub answered: u64,
    /// Slots decided.
    pub decided: u64,
    /// Leaders elected.
    pub elections: u64,
    /// Starts after a death.
    pub restarts: u64,
    /// By point and role, in the order of [`Point::ALL`] and [`ROLES`], how many nodes died there.
    pub crashes: [[u32; ROLES.len()]; Point::ALL.len()],
}
