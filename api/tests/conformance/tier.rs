//! The reaches that a space can have, as the cases see them.

use sprag::{ManualClock, Space, SpaceBuilder};

/// One reach. Each case gets a fresh one.
pub(crate) trait Tier: Sync {
    fn new() -> Self;

    /// Opens a space with these options: where spaces are shared, always the same.
    fn open(&self, options: SpaceBuilder) -> sprag::Result<Space>;

    /// A space, opened with the defaults.
    fn space(&self) -> Space {
        self.open(small()).unwrap()
    }

    /// A second session in the same space, where a tier has that; a clone where it doesn't.
    fn another(&self, space: &Space) -> Space;

    /// Whether [`another`](Self::another) is a session of its own.
    fn has_sessions(&self) -> bool;

    /// A space whose clock the case moves, where a tier has that.
    fn with_clock(&self) -> Option<(Space, ManualClock)>;
}

/// The defaults, but small enough to open by the hundred.
pub(crate) fn small() -> SpaceBuilder {
    Space::builder().caps(sprag::Caps {
        objects: 2_048,
        limiter_keys: 2_048,
        joint_keys: 2_048,
        sessions: 64,
        waiters: 256,
        permits: 256,
        key_chunks: 32_768,
    })
}

/// The threads of this process.
pub(crate) struct Mem;

impl Tier for Mem {
    fn new() -> Self {
        Self
    }

    fn open(&self, options: SpaceBuilder) -> sprag::Result<Space> {
        options.open("mem:")
    }

    fn another(&self, space: &Space) -> Space {
        space.clone()
    }

    fn has_sessions(&self) -> bool {
        false
    }

    fn with_clock(&self) -> Option<(Space, ManualClock)> {
        let clock = ManualClock::new();
        let space = small().clock(&clock).open("mem:").unwrap();
        Some((space, clock))
    }
}

/// The processes of this host; here each opening stands for one.
#[cfg(target_os = "linux")]
pub(crate) struct Shm {
    directory: tempfile::TempDir,
}

#[cfg(target_os = "linux")]
impl Tier for Shm {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { directory }
    }

    fn open(&self, options: SpaceBuilder) -> sprag::Result<Space> {
        let path = self.directory.path().join("region.sprag");
        options.open(&format!("shm:{}", path.display()))
    }

    fn another(&self, _: &Space) -> Space {
        self.space()
    }

    fn has_sessions(&self) -> bool {
        true
    }

    fn with_clock(&self) -> Option<(Space, ManualClock)> {
        None
    }
}
