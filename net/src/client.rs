//! The client: finds the leader, follows it, and turns whatever happens into done, not done or unknown.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use prost::Message;
use sprag_paxos::NodeId;
use tokio::time::{Instant, sleep, timeout_at};

use crate::backoff::Backoff;
use crate::certificates::{CertificatesError, Credentials, random};
use crate::machine::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::transport::TransportError;
use crate::wire::{Answered, Get, Operation, OperationKind, Outcome, Put};

mod connections;

use connections::{Connections, Refused};

/// How long after nothing was done it is asked for again: the first time, and at most.
const BACKOFF_MS: (u64, u64) = (5, 200);

/// How long an operation may take: at least, and at most.
const TIMEOUTS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_hours(24));

/// How a client is set up.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The nodes, and where each is: an address, or a name and a port.
    pub nodes: BTreeMap<NodeId, String>,
    /// How long an operation may take, all tries together: 1 ms to a day.
    pub timeout: Duration,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientOptionsError {
    /// No nodes.
    #[error("nodes: none given; name at least one node of the cluster, better all")]
    NoNodes,
    /// No operation could be done in that time, or nobody would wait for it.
    #[error("timeout: {given:?}, must be {least:?} to {most:?}")]
    Timeout {
        /// How long one may take.
        given: Duration,
        /// The shortest that will do.
        least: Duration,
        /// The longest that there may be.
        most: Duration,
    },
    /// The certificates can't be used.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The system gives no random numbers.
    #[error(transparent)]
    Certificates(#[from] CertificatesError),
}

/// What came of an operation that isn't done for sure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nothing was done, and nothing will be.
    #[error("not done: {0}")]
    NotDone(String),
    /// It may have been done, or may still be: the connection broke or time ran out after the request had left, or the node
    /// that took it leads no longer.
    #[error("unknown: {0}; read the key to find out")]
    Unknown(String),
}

/// What a register holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// How often it was set: 1 and up.
    pub version: u64,
    /// To what it was set last.
    pub value: Bytes,
}

/// A client of a cluster. A clone shares its connections: one with each node that is asked, with as many requests under
/// way on it as there are callers.
#[derive(Clone)]
pub struct Client(Arc<Shared>);

struct Shared {
    connections: Connections,
    timeout: Duration,
    state: Mutex<State>,
}

struct State {
    /// Who leads, as far as is known; else who is asked next.
    leader: NodeId,
    seeds: Rng,
}

/// What came of asking a node once.
enum Try {
    Done(Bytes),
    /// Another may be asked, or the same later.
    NotDone {
        leader: Option<NodeId>,
        reason: String,
        is_final: bool,
    },
    Unknown(String),
}

impl Client {
    /// A client that proves itself with `credentials`. Nothing is sent before it is asked for something. Must be called
    /// inside a runtime, and lives as long as that.
    ///
    /// # Errors
    /// [`ClientOptionsError`].
    pub fn new(
        options: ClientOptions,
        credentials: &Credentials,
    ) -> Result<Self, ClientOptionsError> {
        let Some((first, _)) = options.nodes.first_key_value() else {
            return Err(ClientOptionsError::NoNodes);
        };
        let (given, (least, most)) = (options.timeout, TIMEOUTS);
        if !(least..=most).contains(&given) {
            return Err(ClientOptionsError::Timeout { given, least, most });
        }
        let state = State {
            leader: *first,
            seeds: Rng::with_seed(random()?),
        };
        Ok(Self(Arc::new(Shared {
            connections: Connections::new(options.nodes, credentials, random()?)?,
            timeout: options.timeout,
            state: Mutex::new(state),
        })))
    }

    /// Sets a register; gives its new version. Keys have 1 to 1,024 bytes, values at most 1 MiB.
    ///
    /// # Errors
    /// [`ClientError`]. After [`ClientError::Unknown`] it is set or not, now or a little later; to put again may set it twice.
    pub async fn put(&self, key: &[u8], value: &[u8]) -> Result<u64, ClientError> {
        check("value", value.len(), 0, VALUE_BYTES_MAX)?;
        let put = Put {
            key: key_of(key)?,
            value: Bytes::copy_from_slice(value),
        };
        let answered = self.run(OperationKind::Put(put), false).await?;
        Ok(answered.version)
    }

    /// Reads a register: sees every change that was done before it began. Goes through the log, as a change does.
    ///
    /// # Errors
    /// [`ClientError::NotDone`]: a read whose outcome is unknown is tried again while there is time.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Found>, ClientError> {
        let get = Get { key: key_of(key)? };
        let answered = self.run(OperationKind::Get(get), true).await?;
        let version = answered.version;
        Ok(answered.value.map(|value| Found { version, value }))
    }

    /// Who leads, as far as is known: whom the next operation asks first.
    pub fn leader(&self) -> NodeId {
        self.0.leader()
    }

    /// Has an operation carried out: asks one node after another as long as nothing was done, or it changes nothing if it is
    /// done twice.
    async fn run(&self, kind: OperationKind, is_repeatable: bool) -> Result<Answered, ClientError> {
        let deadline = Instant::now() + self.0.timeout;
        let operation = Operation { kind: Some(kind) };
        let operation = Bytes::from(operation.encode_to_vec());
        let mut backoff = Backoff::new(self.0.seed(), BACKOFF_MS);
        let mut is_first = true;
        loop {
            let node = self.0.leader();
            let (leader, reason) = match self.0.ask(node, &operation, deadline).await {
                Try::Done(answer) => {
                    let answered = Answered::decode(answer)
                        .map_err(|error| ClientError::Unknown(error.to_string()))?;
                    if answered.refused.is_empty() {
                        return Ok(answered);
                    }
                    return Err(ClientError::NotDone(answered.refused));
                }
                Try::Unknown(reason) if is_repeatable => (None, reason),
                Try::Unknown(reason) => {
                    self.0.look_elsewhere(node);
                    return Err(ClientError::Unknown(reason));
                }
                Try::NotDone {
                    reason,
                    is_final: true,
                    ..
                } => return Err(ClientError::NotDone(reason)),
                Try::NotDone { leader, reason, .. } => (leader, reason),
            };
            if self.0.follow(node, leader) && std::mem::take(&mut is_first) {
                // Once at once: then whom one is sent to should know.
                continue;
            }
            let pause = backoff.pause();
            if Instant::now() + pause >= deadline {
                let why = if reason.is_empty() {
                    "it doesn't lead"
                } else {
                    &reason
                };
                return Err(ClientError::NotDone(format!(
                    "no node did it in time; the last that was asked, node {}: {why}",
                    node.0
                )));
            }
            sleep(pause).await;
        }
    }
}

fn key_of(key: &[u8]) -> Result<Bytes, ClientError> {
    check("key", key.len(), 1, KEY_BYTES_MAX)?;
    Ok(Bytes::copy_from_slice(key))
}

fn check(what: &str, bytes: usize, least: usize, most: usize) -> Result<(), ClientError> {
    if (least..=most).contains(&bytes) {
        return Ok(());
    }
    let words = format!("{what}: {bytes} bytes, must be {least} to {most}");
    Err(ClientError::NotDone(words))
}

impl Shared {
    fn leader(&self) -> NodeId {
        self.with_state(|state| state.leader)
    }

    fn seed(&self) -> u64 {
        self.with_state(|state| state.seeds.u64(..))
    }

    /// `node` leads no longer, or can't be reached.
    fn look_elsewhere(&self, node: NodeId) {
        self.with_state(|state| {
            if state.leader == node {
                state.leader = self.connections.after(node);
            }
        });
    }

    /// `node` did nothing, and says who leads; whether that is news.
    fn follow(&self, node: NodeId, leader: Option<NodeId>) -> bool {
        match leader {
            Some(leader) if leader == node => false,
            Some(leader) if self.connections.has(leader) => {
                self.with_state(|state| state.leader = leader);
                true
            }
            _ => {
                self.look_elsewhere(node);
                false
            }
        }
    }

    fn with_state<T>(&self, what: impl FnOnce(&mut State) -> T) -> T {
        what(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks a node once.
    async fn ask(&self, node: NodeId, operation: &Bytes, deadline: Instant) -> Try {
        let link = match self.connections.link(node, deadline).await {
            Ok(link) => link,
            Err(reason) => return not_reached(reason),
        };
        let (id, answer) = match link.request(operation.clone()) {
            Ok(asked) => asked,
            Err(Refused::Broken) => return not_reached("the connection broke".to_owned()),
            Err(Refused::Full { bytes_max }) => {
                return Try::NotDone {
                    leader: Some(node),
                    reason: format!("{bytes_max} bytes wait to leave already"),
                    is_final: false,
                };
            }
        };
        match timeout_at(deadline, answer).await {
            Ok(Ok(Outcome::Done(answer))) => Try::Done(answer),
            Ok(Ok(Outcome::NotDone(not_done))) => Try::NotDone {
                leader: not_done
                    .leader
                    .and_then(|node| u16::try_from(node).ok())
                    .map(NodeId),
                reason: not_done.reason,
                is_final: not_done.is_final,
            },
            Ok(Ok(Outcome::Unknown(_))) => Try::Unknown(format!("node {} leads no longer", node.0)),
            Ok(Err(_)) => Try::Unknown(format!("the connection with node {} broke", node.0)),
            Err(_) => {
                link.forget(id);
                Try::Unknown(format!("no answer of node {} in time", node.0))
            }
        }
    }
}

fn not_reached(reason: String) -> Try {
    Try::NotDone {
        leader: None,
        reason,
        is_final: false,
    }
}
