//! What a run came through: counts, and at which point of what nodes died.

use sprag_paxos::{Effect, RoleName};

/// What a node was about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// To write.
    Writes,
    /// To send.
    Sends,
    /// To apply what is decided.
    Decides,
    /// To keep a piece of a snapshot, or to begin anew from one.
    Installs,
    /// Nothing, while a sync was under way.
    Syncs,
    /// Nothing at all.
    Rests,
}

impl Point {
    /// All of them.
    const ALL: [Point; 6] = [
        Point::Writes,
        Point::Sends,
        Point::Decides,
        Point::Installs,
        Point::Syncs,
        Point::Rests,
    ];

    /// Its name in reports.
    fn name(self) -> &'static str {
        match self {
            Point::Writes => "writing",
            Point::Sends => "sending",
            Point::Decides => "applying",
            Point::Installs => "installing",
            Point::Syncs => "syncing",
            Point::Rests => "resting",
        }
    }

    pub(crate) fn before(effect: Option<&Effect>, is_syncing: bool) -> Self {
        match effect {
            None if is_syncing => Point::Syncs,
            None => Point::Rests,
            Some(Effect::Persist { .. }) => Point::Writes,
            Some(Effect::Send { .. } | Effect::SendChunk { .. }) => Point::Sends,
            Some(Effect::Decided { .. } | Effect::SteppedDown { .. }) => Point::Decides,
            Some(Effect::Receive { .. } | Effect::Restore { .. }) => Point::Installs,
        }
    }
}

/// What a voter may be doing when its node dies.
const ROLES: [RoleName; 5] = [
    RoleName::Follower,
    RoleName::Canvasser,
    RoleName::Candidate,
    RoleName::Recovering,
    RoleName::Leader,
];

/// The counts of a run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How long it was, of virtual time, in milliseconds.
    pub lasted_ms: u64,
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
    /// Snapshots taken.
    pub snapshots: u64,
    /// Snapshots installed that came from another node.
    pub installed: u64,
    /// By point and role, in the order of [`points`](Self::points) and [`roles`](Self::roles), how many nodes died there.
    pub crashes: [[u32; ROLES.len()]; Point::ALL.len()],
}

impl Tally {
    /// What nodes were about to do: the rows of [`crashes`](Self::crashes).
    pub fn points() -> impl Iterator<Item = &'static str> {
        Point::ALL.iter().map(|point| point.name())
    }

    /// Whether enough nodes die there to ask for one. A canvasser has nothing to write, since it waits for its disk first; and
    /// hardly ever anything to apply, which it would have to have asked for before. Who leads takes no snapshot from others.
    pub fn is_wanted(point: &str, role: &str) -> bool {
        let is = |name: RoleName| Self::roles().nth(name as usize) == Some(role);
        if point == Point::Installs.name() {
            return is(RoleName::Follower);
        }
        let rests = [Point::Sends, Point::Rests].map(Point::name);
        !is(RoleName::Canvasser) || rests.contains(&point)
    }

    /// What their voters were doing: its columns.
    pub fn roles() -> impl Iterator<Item = &'static str> {
        ROLES.iter().map(|role| match role {
            RoleName::Follower => "follower",
            RoleName::Canvasser => "canvasser",
            RoleName::Candidate => "candidate",
            RoleName::Recovering => "recovering",
            RoleName::Leader => "leader",
        })
    }
}
