//! The client: finds the leader, follows it, and turns whatever happens into done, not done or unknown.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use prost::Message;
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, TokioRuntime};
use sprag_log::ClusterId;
use sprag_paxos::NodeId;
use tokio::net::lookup_host;
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use crate::certificates::{CertificatesError, Credentials, Role, random};
use crate::frame::Frames;
use crate::machine::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::outbox::Outbox;
use crate::reception::CHUNK_BYTES_MAX;
use crate::transport::{Close, TransportError, dialling};
use crate::wire::{
    Answered, ClientFrame, ClientHello, ClientKind, Get, Operation, OperationKind, Outcome, Put,
    Request, Response, VERSION,
};

/// The longest answer: a value, and what goes around it.
const RESPONSE_BYTES_MAX: usize = VALUE_BYTES_MAX + 1_024;

/// What waits to leave for a node, at most.
const OUTBOX_BYTES_MAX: usize = 16 << 20;

/// How long a connection may take, before another node is tried.
const DIAL_TIMEOUT: Duration = Duration::from_millis(500);

/// How long after nothing was done it is asked for again: the first time, and at most.
const BACKOFF_MS: (u64, u64) = (5, 200);

/// How a client is set up.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The nodes, and where each is: an address, or a name and a port.
    pub nodes: BTreeMap<NodeId, String>,
    /// How long an operation may take, all tries together.
    pub timeout: Duration,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientOptionsError {
    /// No nodes.
    #[error("nodes: none given; name at least one node of the cluster, better all")]
    NoNodes,
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
    endpoint: Endpoint,
    dialling: ClientConfig,
    cluster: ClusterId,
    nodes: BTreeMap<NodeId, String>,
    timeout: Duration,
    links: BTreeMap<NodeId, AsyncMutex<Option<Arc<Link>>>>,
    state: Mutex<State>,
}

struct State {
    /// Who leads, as far as is known; else who is asked next.
    leader: NodeId,
    jitter: Rng,
}

/// A connection with a node.
struct Link {
    connection: Connection,
    outbox: Outbox,
    next_id: AtomicU64,
    /// Who waits for which answer; none once the connection is gone.
    waiting: Mutex<Option<BTreeMap<u64, oneshot::Sender<Outcome>>>>,
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
        let state = State {
            leader: *first,
            jitter: Rng::with_seed(random()?),
        };
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let endpoint = UdpSocket::bind(address).and_then(|socket| {
            let config = EndpointConfig::default();
            Endpoint::new(config, None, socket, Arc::new(TokioRuntime))
        });
        let endpoint = endpoint.map_err(|error| TransportError::Address { address, error })?;
        let links = options.nodes.keys();
        let links = links.map(|node| (*node, AsyncMutex::new(None))).collect();
        Ok(Self(Arc::new(Shared {
            endpoint,
            dialling: dialling(credentials)?,
            cluster: credentials.cluster,
            nodes: options.nodes,
            timeout: options.timeout,
            links,
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
        let deadline = Instant::now() + self.0.timeout;
        let answered = self.run(OperationKind::Put(put), deadline).await?;
        Ok(answered.version)
    }

    /// Reads a register: sees every change that was done before it began. Goes through the log, as a change does.
    ///
    /// # Errors
    /// [`ClientError::NotDone`]: a read whose outcome is unknown is tried again while there is time.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Found>, ClientError> {
        let get = Get { key: key_of(key)? };
        let deadline = Instant::now() + self.0.timeout;
        loop {
            let kind = OperationKind::Get(get.clone());
            match self.run(kind, deadline).await {
                Ok(answered) => {
                    let version = answered.version;
                    return Ok(answered.value.map(|value| Found { version, value }));
                }
                Err(ClientError::Unknown(reason)) if Instant::now() >= deadline => {
                    return Err(ClientError::NotDone(reason));
                }
                Err(ClientError::Unknown(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Who leads, as far as is known: whom the next operation asks first.
    pub fn leader(&self) -> NodeId {
        self.0.leader()
    }

    /// Has an operation carried out: asks one node after another as long as nothing was done.
    async fn run(&self, kind: OperationKind, deadline: Instant) -> Result<Answered, ClientError> {
        let operation = Operation { kind: Some(kind) };
        let operation = Bytes::from(operation.encode_to_vec());
        let mut backoff_ms = BACKOFF_MS.0;
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
            let is_led_on = self.0.follow(node, leader);
            if is_led_on && backoff_ms == BACKOFF_MS.0 {
                // Once at once: then whom one is sent to should know.
                backoff_ms *= 2;
                continue;
            }
            let pause = Duration::from_millis(backoff_ms / 2 + self.0.draw(backoff_ms / 2));
            backoff_ms = (2 * backoff_ms).min(BACKOFF_MS.1);
            if Instant::now() + pause >= deadline {
                return Err(ClientError::NotDone(format!(
                    "no node did it in time; node {} said last: {reason}",
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

    fn draw(&self, most: u64) -> u64 {
        self.with_state(|state| state.jitter.u64(0..=most))
    }

    /// `node` leads no longer, or can't be reached.
    fn look_elsewhere(&self, node: NodeId) {
        self.with_state(|state| {
            if state.leader == node {
                let after = self.nodes.range(NodeId(node.0.saturating_add(1))..).next();
                let next = after.or_else(|| self.nodes.first_key_value());
                state.leader = next.map_or(node, |(node, _)| *node);
            }
        });
    }

    /// `node` did nothing, and says who leads; whether that is news.
    fn follow(&self, node: NodeId, leader: Option<NodeId>) -> bool {
        match leader {
            Some(leader) if leader == node => false,
            Some(leader) if self.nodes.contains_key(&leader) => {
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
        let link = match self.link(node, deadline).await {
            Ok(link) => link,
            Err(reason) => return not_reached(reason),
        };
        let (sender, receiver) = oneshot::channel();
        let id = link.next_id.fetch_add(1, Ordering::Relaxed);
        let is_there = link.with_waiting(|waiting| waiting.insert(id, sender));
        if is_there.is_none() {
            return not_reached("the connection broke".to_owned());
        }
        let request = ClientFrame {
            kind: Some(ClientKind::Request(Request {
                id,
                operation: operation.clone(),
            })),
        };
        if !link.outbox.push(&request) {
            link.with_waiting(|waiting| waiting.remove(&id));
            return Try::NotDone {
                leader: Some(node),
                reason: format!("{OUTBOX_BYTES_MAX} bytes wait to leave already"),
                is_final: false,
            };
        }
        match timeout_at(deadline, receiver).await {
            Ok(Ok(Outcome::Done(answer))) => Try::Done(answer),
            Ok(Ok(Outcome::NotDone(not_done))) => Try::NotDone {
                leader: not_done.leader.map(|node| NodeId(node as u16)),
                reason: not_done.reason,
                is_final: not_done.is_final,
            },
            Ok(Ok(Outcome::Unknown(_))) => Try::Unknown(format!("node {} leads no longer", node.0)),
            Ok(Err(_)) => Try::Unknown(format!("the connection with node {} broke", node.0)),
            Err(_) => {
                link.with_waiting(|waiting| waiting.remove(&id));
                Try::Unknown(format!("no answer of node {} in time", node.0))
            }
        }
    }

    /// The connection with a node: that which there is, or a new one.
    async fn link(&self, node: NodeId, deadline: Instant) -> Result<Arc<Link>, String> {
        let (Some(slot), Some(address)) = (self.links.get(&node), self.nodes.get(&node)) else {
            return Err(format!("node {} is not known", node.0));
        };
        // All who want this node wait for the one who dials.
        let Ok(mut slot) = timeout_at(deadline, slot.lock()).await else {
            return Err(format!("node {} is still being dialled", node.0));
        };
        if let Some(link) = &*slot
            && link.connection.close_reason().is_none()
        {
            return Ok(Arc::clone(link));
        }
        let deadline = deadline.min(Instant::now() + DIAL_TIMEOUT);
        let link = timeout_at(deadline, self.dial(node, address)).await;
        let link = link.map_err(|_| format!("node {} doesn't answer", node.0))??;
        *slot = Some(Arc::clone(&link));
        Ok(link)
    }

    async fn dial(&self, node: NodeId, address: &str) -> Result<Arc<Link>, String> {
        let words = |error: &dyn std::fmt::Display| format!("node {}: {error}", node.0);
        let mut addresses = lookup_host(address).await.map_err(|error| words(&error))?;
        let address = addresses.next().ok_or_else(|| words(&"has no address"))?;
        let name = Role::Node(node).name(self.cluster);
        let connecting = self
            .endpoint
            .connect_with(self.dialling.clone(), address, &name)
            .map_err(|error| words(&error))?;
        let connection = connecting.await.map_err(|error| words(&error))?;
        let streams = connection.open_bi().await;
        let (mut send, mut stream) = streams.map_err(|error| words(&error))?;
        let link = Arc::new(Link {
            connection: connection.clone(),
            outbox: Outbox::new(OUTBOX_BYTES_MAX),
            next_id: AtomicU64::new(1),
            waiting: Mutex::new(Some(BTreeMap::new())),
        });
        let hello = ClientHello {
            version: VERSION,
            cluster: self.cluster.0,
        };
        link.outbox.push(&ClientFrame {
            kind: Some(ClientKind::Hello(hello)),
        });
        let running = Arc::clone(&link);
        tokio::spawn(async move {
            tokio::select! {
                () = running.read(&mut stream) => {}
                _ = running.outbox.write_to(&mut send) => {}
            }
            running.end();
        });
        Ok(link)
    }
}

fn not_reached(reason: String) -> Try {
    Try::NotDone {
        leader: None,
        reason,
        is_final: false,
    }
}

impl Link {
    async fn read(&self, stream: &mut quinn::RecvStream) {
        let mut frames = Frames::new(RESPONSE_BYTES_MAX);
        while let Ok(Some(chunk)) = stream.read_chunk(CHUNK_BYTES_MAX, true).await {
            frames.push(&chunk.bytes);
            loop {
                match frames.take::<Response>() {
                    Ok(Some(response)) => self.answered(response),
                    Ok(None) => break,
                    Err(error) => {
                        return Close::BadFrame.close(&self.connection, &error.to_string());
                    }
                }
            }
        }
    }

    fn answered(&self, response: Response) {
        // Whoever waited may have given up; and an outcome of a later version says nothing.
        if let Some(Some(waiting)) = self.with_waiting(|waiting| waiting.remove(&response.id))
            && let Some(outcome) = response.outcome
        {
            let _ = waiting.send(outcome);
        }
    }

    /// Nobody is answered any more.
    fn end(&self) {
        Close::Stopping.close(&self.connection, "");
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        *waiting = None;
    }

    fn with_waiting<T>(
        &self,
        what: impl FnOnce(&mut BTreeMap<u64, oneshot::Sender<Outcome>>) -> T,
    ) -> Option<T> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.as_mut().map(what)
    }
}
