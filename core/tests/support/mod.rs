//! What the tests over anonymous memory share: an engine whose birth never varies, its sessions, and
//! how long a run is.
// Each test program uses its own part.
#![allow(dead_code)]

use proptest::test_runner::Config;
use sprag_core::region::{Birth, Caps, Region};
use sprag_core::session::Process;
use sprag_core::{Engine, SessionId};

pub(crate) const SECOND: u64 = 1_000_000_000;
/// Unix time of region time zero.
pub(crate) const UNIX_NS: u64 = 1_800_000_000 * SECOND;
/// Tokens start above it.
pub(crate) const FLOOR: u64 = (UNIX_NS / SECOND) << 16;

/// An engine over memory of this process alone.
pub(crate) fn engine(caps: Caps) -> Engine {
    let birth = Birth {
        hash_seed: 7,
        unix_ns: UNIX_NS,
        boot_ns: 0,
        boot_id: [1, 2],
        floor: 0,
    };
    Engine::local(Region::anonymous(caps, birth).unwrap())
}

pub(crate) fn session(engine: &Engine) -> SessionId {
    engine.open_session(Process::default(), 0).unwrap()
}

pub(crate) fn engine_with_session(caps: Caps) -> (Engine, SessionId) {
    let engine = engine(caps);
    let session = session(&engine);
    (engine, session)
}

/// Few of everything, so that a model's case of a few dozen steps meets most of it; made often, so
/// small.
pub(crate) const SMALL: Caps = Caps {
    objects: 64,
    limiter_keys: 64,
    joint_keys: 64,
    sessions: 64,
    waiters: 64,
    permits: 64,
    key_chunks: 64,
};

/// Names of every kind of length.
pub(crate) const NAMES: [&[u8]; 3] = [b"a", b"another", &[0xff; 60]];

/// Whether to take the long form of a test.
pub(crate) fn is_soak() -> bool {
    std::env::var_os("SPRAG_SOAK").is_some_and(|value| value == "1")
}

/// Cases of a model's property: fifty times as many with `SPRAG_SOAK=1`.
pub(crate) fn model_config() -> Config {
    Config {
        cases: if is_soak() { 20_000 } else { 400 },
        failure_persistence: None,
        ..Config::default()
    }
}
