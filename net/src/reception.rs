//! Who comes to a node: each connection is proved, says what it is, and is handed to where it belongs.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, Incoming, ReadError, RecvStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::certificates::{Credentials, Role};
use crate::frame::{FrameError, Frames};
use crate::inbox::Inbox;
use crate::link::{self, PEER_FRAME_BYTES_MAX};
use crate::peer_message::node_id;
use crate::session;
use crate::transport::{Close, is_proven};
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
    pub(crate) endpoint: Endpoint,
    pub(crate) credentials: Credentials,
    pub(crate) dialling: ClientConfig,
    pub(crate) inbox: Inbox,
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

    fn prove(&self, connection: &Connection, role: Role) -> Result<(), Gone> {
        if is_proven(connection, role, &self.credentials) {
            return Ok(());
        }
        let words = format!(
            "the certificate is not of {}",
            role.name(self.credentials.cluster)
        );
        Err(Gone::Refused(Close::NotWhoItSays, words))
    }
}

/// Lets in who comes, for ever.
pub(crate) async fn receive(shared: Arc<Shared>) {
    let arriving = Arc::new(Semaphore::new(ARRIVING_MAX));
    let clients = Arc::new(Semaphore::new(CLIENTS_MAX));
    while let Some(incoming) = shared.endpoint.accept().await {
        let Ok(place) = Arc::clone(&arriving).try_acquire_owned() else {
            incoming.refuse();
            continue;
        };
        let (shared, clients) = (Arc::clone(&shared), Arc::clone(&clients));
        tokio::spawn(async move {
            let arrival = timeout(ARRIVAL_TIMEOUT, arrive(&shared, incoming)).await;
            drop(place);
            match arrival {
                Ok(Some(Arrival::Peer(connection, peer))) => {
                    if let Ok(send) = connection.open_uni().await {
                        link::run(&shared, connection, peer.0, send, Some(peer.1)).await;
                    }
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
    Peer(
        Connection,
        (
            sprag_paxos::NodeId,
            (RecvStream, Frames, crate::wire::PeerHello),
        ),
    ),
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

async fn introduce(shared: &Shared, connection: &Connection) -> Result<Arrival, Gone> {
    // A peer opens a stream that goes one way, a client one that goes both.
    tokio::select! {
        stream = connection.accept_uni() => {
            let mut stream = stream?;
            let mut frames = Frames::new(PEER_FRAME_BYTES_MAX);
            let hello = link::first_hello(&mut stream, &mut frames).await?;
            let node = node_id(hello.voter.node)?;
            shared.prove(connection, Role::Node(node))?;
            link::check_hello(shared, node, &hello)?;
            let peer = (node, (stream, frames, hello));
            Ok(Arrival::Peer(connection.clone(), peer))
        }
        streams = connection.accept_bi() => {
            let (send, stream) = streams?;
            shared.prove(connection, Role::Client)?;
            let streams = session::introduce(shared, send, stream).await?;
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
