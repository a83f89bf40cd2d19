//! A node of a cluster and its client: consensus over QUIC, with mutual TLS, on a log on disk. Who is who, what goes over the
//! wire, and what the node's thread does when are in the crate's `README.md`.
//!
//! ```no_run
//! use std::collections::BTreeMap;
//! use std::path::Path;
//! use std::time::Duration;
//!
//! use sprag_net::certificates::{Credentials, Role};
//! use sprag_net::{Client, ClientOptions, NodeId};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let credentials = Credentials::read(Path::new("/etc/sprag"), Role::Client)?;
//! let nodes = BTreeMap::from([
//!     (NodeId(1), "10.0.0.1:7700".to_owned()),
//!     (NodeId(2), "10.0.0.2:7700".to_owned()),
//!     (NodeId(3), "10.0.0.3:7700".to_owned()),
//! ]);
//! let timeout = Duration::from_secs(5);
//! let client = Client::new(ClientOptions { nodes, timeout }, &credentials)?;
//! let version = client.put(b"greeting", b"hello").await?;
//! let found = client.get(b"greeting").await?;
//! assert_eq!(found.map(|found| found.version), Some(version));
//! # Ok(())
//! # }
//! ```

mod backoff;
pub mod certificates;
mod client;
mod disk_thread;
mod founding;
pub mod frame;
mod gathering;
mod host;
mod inbox;
mod link;
mod links;
pub mod machine;
mod node;
mod options;
mod outbox;
pub mod peer_message;
mod reception;
mod room;
mod session;
mod snapshots;
pub mod transport;
pub mod wire;

pub use client::{Client, ClientError, ClientOptions, ClientOptionsError, Found};
pub use founding::{FoundingError, Voters};
pub use host::Stopped;
pub use node::Node;
pub use options::{NodeError, NodeOptions, Nodes};
pub use sprag_log::{ClusterId, LogOptions};
pub use sprag_paxos::NodeId;
