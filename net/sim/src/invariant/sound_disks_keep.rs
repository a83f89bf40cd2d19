//! A disk that only loses what wasn't synced keeps the rest. The node itself says what it misses, so this is checked also
//! where only what clients see is.

use super::Broken;

/// A disk of that kind, of `node`, has lost something.
pub(crate) fn broken(node: usize, what: &str) -> Broken {
    Broken {
        invariant: "sound disks keep",
        source: "Alagappan et al., Protocol-Aware Recovery for Consensus-Based Storage, 2018",
        what: format!("node {node}, whose disk only loses what wasn't synced: {what}"),
    }
}
