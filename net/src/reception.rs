//! Who comes to a node: each connection is proved, says what it is, and is handed to where it belongs.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use quinn::{
    ClientConfig, Connection, ConnectionError, Endpoint, Incoming, ReadError, RecvStream,
    SendStream,
};
use sprag_paxos::NodeId;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::certificates::{Credentials, Role};
use crate::frame::{FrameError, Frames, HELLO_BYTES_MAX};
use crate::inbox::Inbox;
use crate::link::{self, Said};
use crate::session::{self, AllAnswers};
use crate::transport::{Close, proven, widen};
use crate::wire::VERSION;

/// How much is taken from a stream at once.
pub(crate) const CHUNK_BYTES_MAX: usize = 64 << 10;

/// How many may be on their way in: between the first packet and the hello.
const ARRIVING_MAX: usize = 256;

/// How many clients there may be at once.
const CLIENTS_MAX: usize = 4_096;

/// How long one may be on its way in.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(5);

/// What all connections of a node share.
pub(crate) struct Shared {
    pub(crate) node: NodeId,
    pub(crate) endpoint: Endpoint,
    pub(crate) credentials: Credentials,
    pub(crate) dialling: ClientConfig,
    pub(crate) inbox: Inbox,
    pub(crate) answers: AllAnswers,
    /// Whether the node takes nothing more on, and has answered what it could. Each session listens until it ends.
    pub(crate) stops: watch::Sender<bool>,
}

/// Why a connection ends.
#[derive(Debug)]
pub(crate) enum Gone {
    /// It was closed, by either side, or broke.
    Closed,
    /// What came is no frame.
    Frame(FrameError),
    /// It isn't let in, for this reason.
    Refused(Close, String),
}

impl Gone {
    /// Why, for whoever looks after this node. To be asked before the connection is closed here.
    pub(crate) fn words(&self, connection: &Connection) -> String {
        match (self, connection.close_reason()) {
            (Gone::Closed, Some(reason)) => reason.to_string(),
            (Gone::Closed, None) => "it ended its stream".to_owned(),
            (Gone::Frame(error), _) => error.to_string(),
            (Gone::Refused(_, words), _) => words.clone(),
        }
    }

    /// Tells the other side why.
    pub(crate) fn close(self, connection: &Connection) {
        match self {
            Gone::Closed => Close::Stopping.close(connection, ""),
            Gone::Frame(error) => Close::BadFrame.close(connection, &error.to_string()),
            Gone::Refused(close, words) => close.close(connection, &words),
        }
    }
}

impl From<FrameError> for Gone {
    fn from(error: FrameError) -> Self {
        Gone::Frame(error)
    }
}

impl From<ReadError> for Gone {
    fn from(_: ReadError) -> Self {
        Gone::Closed
    }
}

impl From<ConnectionError> for Gone {
    fn from(_: ConnectionError) -> Self {
        Gone::Closed
    }
}

impl Shared {
    /// Whether a hello is of this version and cluster.
    pub(crate) fn check(&self, version: u32, cluster: u64) -> Result<(), Gone> {
        if version != VERSION {
            let words = format!("version {version} is spoken, and here {VERSION}");
            return Err(Gone::Refused(Close::OtherVersion, words));
        }
        let own = self.credentials.cluster;
        if cluster != own.0 {
            let words = format!("cluster {cluster:016x} is meant, and this is {own}");
            return Err(Gone::Refused(Close::OtherCluster, words));
        }
        Ok(())
    }

    fn not_who_it_says(&self, proven: Option<Role>, comes_as: &str) -> Gone {
        let cluster = self.credentials.cluster;
        let words = match proven {
            Some(role) => format!("the certificate is of {}, {comes_as}", role.name(cluster)),
            None => format!(
                "the certificate is of nobody in cluster {cluster}, which nodes 1 to {} found",
                self.credentials.founders
            ),
        };
        Gone::Refused(Close::NotWhoItSays, words)
    }
}

/// Lets in who comes, for ever.
pub(crate) async fn receive(shared: Arc<Shared>) {
    let arriving = Arc::new(Semaphore::new(ARRIVING_MAX));
    let clients = Arc::new(Semaphore::new(CLIENTS_MAX));
    while let Some(incoming) = shared.endpoint.accept().await {
        if !incoming.remote_address_validated() {
            // Who only says that packets come from there hears nothing, and costs nothing. One that can't be told so has
            // been told already, and is dropped.
            let _ = incoming.retry();
            continue;
        }
        let Ok(place) = Arc::clone(&arriving).try_acquire_owned() else {
            incoming.refuse();
            continue;
        };
        let (shared, clients) = (Arc::clone(&shared), Arc::clone(&clients));
        tokio::spawn(async move {
            let arrival = timeout(ARRIVAL_TIMEOUT, arrive(&shared, incoming)).await;
            drop(place);
            match arrival {
                Ok(Some(Arrival::Peer(connection, node, send, said))) => {
                    link::run(&shared, connection, node, send, Some(said)).await;
                }
                Ok(Some(Arrival::Client(connection, client))) => {
                    let Ok(_place) = clients.try_acquire() else {
                        let words = format!("there are {CLIENTS_MAX} clients already");
                        return Close::TooMany.close(&connection, &words);
                    };
                    session::run(&shared, connection, client).await;
                }
                Ok(None) | Err(_) => {}
            }
        });
    }
}

/// Who has come, and what it has said so far.
enum Arrival {
    Peer(Connection, NodeId, SendStream, Said),
    Client(Connection, session::Streams),
}

/// Until somebody has said, and proved, who it is. Who can't is told why.
async fn arrive(shared: &Shared, incoming: Incoming) -> Option<Arrival> {
    let connection = incoming.await.ok()?;
    match introduce(shared, &connection).await {
        Ok(arrival) => Some(arrival),
        Err(gone) => {
            gone.close(&connection);
            None
        }
    }
}

/// Nothing is read before the certificate has told who it is, and only as much as a hello has before that is there.
async fn introduce(shared: &Shared, connection: &Connection) -> Result<Arrival, Gone> {
    let role = proven(connection, &shared.credentials);
    // A peer opens a stream that goes one way, a client one that goes both.
    tokio::select! {
        stream = connection.accept_uni() => {
            let mut stream = stream?;
            let node = match role {
                Some(Role::Node(node)) if node != shared.node => node,
                other => return Err(shared.not_who_it_says(other, "and comes as another node")),
            };
            let mut frames = Frames::new(HELLO_BYTES_MAX);
            let hello = link::first_hello(&mut stream, &mut frames).await?;
            link::check_hello(shared, node, &hello)?;
            widen(connection);
            // Here, where that may not take for ever: a peer need not let any be opened.
            let send = connection.open_uni().await?;
            let said = (stream, frames, hello);
            Ok(Arrival::Peer(connection.clone(), node, send, said))
        }
        streams = connection.accept_bi() => {
            let (send, stream) = streams?;
            if role != Some(Role::Client) {
                return Err(shared.not_who_it_says(role, "and comes as a client"));
            }
            let streams = session::introduce(shared, send, stream).await?;
            widen(connection);
            Ok(Arrival::Client(connection.clone(), streams))
        }
    }
}

/// The next frame, once it has come.
pub(crate) async fn read_frame<M: Message + Default>(
    stream: &mut RecvStream,
    frames: &mut Frames,
) -> Result<M, Gone> {
    loop {
        if let Some(frame) = frames.take()? {
            return Ok(frame);
        }
        let chunk = stream.read_chunk(CHUNK_BYTES_MAX, true).await?;
        frames.push(&chunk.ok_or(Gone::Closed)?.bytes);
    }
}
