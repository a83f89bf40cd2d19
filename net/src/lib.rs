//! A node of a cluster and its client.

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
mod outbox;
pub mod peer_message;
mod reception;
mod session;
mod snapshots;
pub mod transport;
pub mod wire;

pub use client::{Client, ClientError, ClientOptions, ClientOptionsError, Found};
pub use host::Stopped;
pub use node::{Node, NodeError, NodeOptions};
