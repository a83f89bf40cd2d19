//! A client's connections: at most one with each node, shared by all callers. Whoever wants one that isn't there has it dialled,
//! and all who want it meanwhile wait for the same attempt; a node that couldn't be reached counts as dead for a while, and
//! costs nobody anything.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, RecvStream, TokioRuntime};
use sprag_log::ClusterId;
use sprag_paxos::NodeId;
use tokio::net::lookup_host;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};

use crate::backoff::Backoff;
use crate::certificates::{Credentials, Role};
use crate::frame::Frames;
use crate::machine::VALUE_BYTES_MAX;
use crate::outbox::Outbox;
use crate::reception::CHUNK_BYTES_MAX;
use crate::transport::{Close, TransportError, dialling};
use crate::wire::{ClientFrame, ClientHello, ClientKind, Outcome, Request, Response, VERSION};

/// The longest answer: a value, and what goes around it.
const RESPONSE_BYTES_MAX: usize = VALUE_BYTES_MAX + 1_024;

/// What waits to leave for a node, at most.
const OUTBOX_BYTES_MAX: usize = 16 << 20;

/// How long a connection may take.
const DIAL_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a node that couldn't be reached counts as dead: the first time, and at most.
const DEAD_MS: (u64, u64) = (100, 1_000);

/// All nodes that there are for this client.
pub(super) struct Connections {
    dialler: Arc<Dialler>,
    nodes: BTreeMap<NodeId, Arc<Node>>,
}

/// What a connection is made with.
struct Dialler {
    endpoint: Endpoint,
    config: ClientConfig,
    cluster: ClusterId,
}

struct Node {
    id: NodeId,
    address: String,
    state: Mutex<State>,
}

struct State {
    reach: Reach,
    /// How long it counts as dead the next time.
    dead: Backoff,
}

/// What is known of how to reach a node.
enum Reach {
    /// Nothing.
    Unknown,
    /// It is dialled, and what comes of that is told here.
    Dialled(watch::Receiver<Option<Outcomes>>),
    /// There is a connection, or was.
    Connected(Arc<Link>),
    /// It couldn't be reached, and is not dialled before that time.
    Dead { until: Instant, why: String },
}

/// What came of an attempt: a connection, or why there is none.
type Outcomes = Result<Arc<Link>, String>;

/// A connection with a node.
pub(super) struct Link {
    connection: Connection,
    outbox: Outbox,
    next_id: AtomicU64,
    /// Who waits for which answer; none once the connection is gone.
    waiting: Mutex<Option<BTreeMap<u64, oneshot::Sender<Outcome>>>>,
}

/// Why a request didn't leave.
pub(super) enum Refused {
    /// The connection is gone.
    Broken,
    /// So much waits to leave already.
    Full { bytes_max: usize },
}

impl Connections {
    /// With nobody yet. `seed` is what varies for how long nodes count as dead.
    pub(super) fn new(
        nodes: BTreeMap<NodeId, String>,
        credentials: &Credentials,
        seed: u64,
    ) -> Result<Self, TransportError> {
        let dialler = Dialler {
            endpoint: endpoint()?,
            config: dialling(credentials)?,
            cluster: credentials.cluster,
        };
        let node = |(id, address): (NodeId, String)| {
            let state = State {
                reach: Reach::Unknown,
                dead: Backoff::new(seed ^ u64::from(id.0), DEAD_MS),
            };
            let state = Mutex::new(state);
            (id, Arc::new(Node { id, address, state }))
        };
        Ok(Self {
            dialler: Arc::new(dialler),
            nodes: nodes.into_iter().map(node).collect(),
        })
    }

    /// Whether it is one of the nodes.
    pub(super) fn has(&self, node: NodeId) -> bool {
        self.nodes.contains_key(&node)
    }

    /// The next node, in a circle.
    pub(super) fn after(&self, node: NodeId) -> NodeId {
        let after = self.nodes.range(NodeId(node.0.saturating_add(1))..).next();
        let next = after.or_else(|| self.nodes.first_key_value());
        next.map_or(node, |(node, _)| *node)
    }

    /// The connection with a node: that which there is, or a new one. Takes no longer than one attempt to make it.
    pub(super) async fn link(&self, node: NodeId, deadline: Instant) -> Outcomes {
        let Some(node) = self.nodes.get(&node) else {
            return Err("it is not known".to_owned());
        };
        let mut attempt = match node.reach(&self.dialler) {
            Ok(attempt) => attempt,
            Err(known) => return known,
        };
        let outcome = timeout_at(deadline, attempt.wait_for(Option::is_some)).await;
        match outcome {
            Ok(Ok(outcome)) => outcome
                .clone()
                .unwrap_or_else(|| Err("it is gone".to_owned())),
            Ok(Err(_)) => Err("it is no longer dialled".to_owned()),
            Err(_) => Err("it is still being dialled".to_owned()),
        }
    }
}

impl Node {
    /// What is known, or else the attempt that is under way, which is begun if there is none.
    fn reach(
        self: &Arc<Self>,
        dialler: &Arc<Dialler>,
    ) -> Result<watch::Receiver<Option<Outcomes>>, Outcomes> {
        let mut state = self.lock();
        match &state.reach {
            Reach::Connected(link) if link.connection.close_reason().is_none() => {
                return Err(Ok(Arc::clone(link)));
            }
            Reach::Dead { until, why } if Instant::now() < *until => return Err(Err(why.clone())),
            Reach::Dialled(attempt) => return Ok(attempt.clone()),
            Reach::Unknown | Reach::Connected(_) | Reach::Dead { .. } => {}
        }
        let (tell, attempt) = watch::channel(None);
        state.reach = Reach::Dialled(attempt.clone());
        let (node, dialler) = (Arc::clone(self), Arc::clone(dialler));
        // On its own: whoever began it may give up before it has come to something.
        tokio::spawn(async move {
            let outcome = timeout(DIAL_TIMEOUT, dialler.dial(&node)).await;
            let outcome = outcome.unwrap_or_else(|_| Err("it doesn't answer".to_owned()));
            node.tried(&outcome);
            tell.send_replace(Some(outcome));
        });
        Ok(attempt)
    }

    fn tried(&self, outcome: &Outcomes) {
        let mut state = self.lock();
        state.reach = match outcome {
            Ok(link) => {
                state.dead.reset();
                Reach::Connected(Arc::clone(link))
            }
            Err(why) => Reach::Dead {
                until: Instant::now() + state.dead.pause(),
                why: why.clone(),
            },
        };
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dialler {
    async fn dial(&self, node: &Node) -> Outcomes {
        let words = |error: &dyn Display| error.to_string();
        let mut addresses = lookup_host(&node.address)
            .await
            .map_err(|error| words(&error))?;
        let address = addresses
            .next()
            .ok_or_else(|| words(&"it has no address"))?;
        let name = Role::Node(node.id).name(self.cluster);
        let connecting = self
            .endpoint
            .connect_with(self.config.clone(), address, &name)
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
                // What has come is read, though nothing can be written any more.
                biased;
                () = running.read(&mut stream) => {}
                _ = running.outbox.write_to(&mut send) => {}
            }
            running.end();
        });
        Ok(link)
    }
}

impl Link {
    /// Sends a request; gives its number, and where its answer comes. That ends without one when the connection does.
    pub(super) fn request(
        &self,
        operation: Bytes,
    ) -> Result<(u64, oneshot::Receiver<Outcome>), Refused> {
        let (sender, receiver) = oneshot::channel();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let is_there = self.with_waiting(|waiting| waiting.insert(id, sender));
        if is_there.is_none() {
            return Err(Refused::Broken);
        }
        let request = Request { id, operation };
        let is_taken = self.outbox.push(&ClientFrame {
            kind: Some(ClientKind::Request(request)),
        });
        if !is_taken {
            self.forget(id);
            let bytes_max = OUTBOX_BYTES_MAX;
            return Err(Refused::Full { bytes_max });
        }
        Ok((id, receiver))
    }

    /// Nobody waits for that answer any more.
    pub(super) fn forget(&self, id: u64) {
        self.with_waiting(|waiting| waiting.remove(&id));
    }

    async fn read(&self, stream: &mut RecvStream) {
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

fn endpoint() -> Result<Endpoint, TransportError> {
    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let endpoint = UdpSocket::bind(address).and_then(|socket| {
        let config = EndpointConfig::default();
        Endpoint::new(config, None, socket, Arc::new(TokioRuntime))
    });
    endpoint.map_err(|error| TransportError::Address { address, error })
}
