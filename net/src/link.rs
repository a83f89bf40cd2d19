//! Links between nodes: one connection for each pair, dialled by the node with the lower number, with a stream each way
//! that lasts as long as it does.
//!
//! One connection, since acknowledgements then ride on what goes the other way; one dialler, since two that dial at once
//! would have to agree on which connection stays. A node that was restarted is found at once all the same: if it is the
//! dialler it dials, and else what the other still sends to its earlier life is answered with a stateless reset.

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use quinn::{Connection, RecvStream, SendStream};
use sprag_paxos::{NodeId, Voter};
use tokio::net::lookup_host;
use tokio::time::{Instant, sleep, timeout};

use crate::backoff::Backoff;
use crate::certificates::Role;
use crate::frame::{FrameError, Frames, HELLO_BYTES_MAX, PREFIX_BYTES};
use crate::inbox::Input;
use crate::outbox::Outbox;
use crate::peer_message::{decode, decode_voters};
use crate::reception::{CHUNK_BYTES_MAX, Gone, Shared, read_frame};
use crate::transport::Close;
use crate::wire::{self, PeerFrame, PeerHello, PeerKind};

/// The longest frame from a peer: a page of entries, and one more entry.
pub(crate) const PEER_FRAME_BYTES_MAX: usize = 8 << 20;

/// What waits for a peer, at most. More is dropped: the protocol sends again what is still wanted.
const OUTBOX_BYTES_MAX: usize = 8 << 20;

/// How long after a failed attempt the next begins: the first time, and at most.
const BACKOFF_MS: (u64, u64) = (10, 1_000);

/// How long a link must have lasted for its peer to count as one that is well. Who lets in and shuts out again at once, as one
/// that refuses does, is dialled no more often than one that doesn't answer.
const WELL: Duration = Duration::from_millis(BACKOFF_MS.1);

/// How long an attempt may take.
const DIAL_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection with another node.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) node: NodeId,
    pub(crate) connection: Connection,
    pub(crate) outbox: Outbox,
}

/// The stream from a peer, what has come on it, and the hello that it began with.
pub(crate) type Said = (RecvStream, Frames, PeerHello);

/// Closes the connection when whoever reads from it has gone, for whatever reason: the peer then comes again.
struct Closing(Connection);

impl Drop for Closing {
    fn drop(&mut self) {
        // Unless it is closed already, and then with a reason.
        Close::Stopping.close(&self.0, "");
    }
}

/// Dials `node` at `address` for ever, whenever there is no link with it. Why there is none is said once, until there was one
/// or there is another reason.
pub(crate) async fn dial(shared: Arc<Shared>, node: NodeId, address: String, seed: u64) {
    let mut backoff = Backoff::new(seed, BACKOFF_MS);
    let mut said = String::new();
    loop {
        let attempt = timeout(DIAL_TIMEOUT, attempt(&shared, node, &address)).await;
        let attempt = attempt.unwrap_or_else(|_| Err("it doesn't answer".to_owned()));
        let why = match attempt {
            Ok((connection, send)) => {
                let since = Instant::now();
                let why = run(&shared, connection, node, send, None).await;
                if since.elapsed() >= WELL {
                    backoff.reset();
                    said.clear();
                }
                why
            }
            Err(why) => why,
        };
        if said != why {
            eprintln!(
                "sprag-node: no link with node {} at {address}: {why}; it is tried again",
                node.0
            );
            said = why;
        }
        // Nodes that lost each other at once don't come back at once.
        sleep(backoff.pause()).await;
    }
}

async fn attempt(
    shared: &Shared,
    node: NodeId,
    address: &str,
) -> Result<(Connection, SendStream), String> {
    let words = |error: &dyn Display| error.to_string();
    let name = Role::Node(node).name(shared.credentials.cluster);
    let mut addresses = lookup_host(address).await.map_err(|error| words(&error))?;
    let address = addresses.next().ok_or("it has no address")?;
    let config = shared.dialling.clone();
    let connecting = shared.endpoint.connect_with(config, address, &name);
    let connecting = connecting.map_err(|error| words(&error))?;
    let connection = connecting.await.map_err(|error| words(&error))?;
    let send = connection.open_uni().await.map_err(|error| words(&error))?;
    Ok((connection, send))
}

/// Runs a link until it breaks; gives why it did. `received` is the stream from the peer, and what has come on it, where that is open already.
pub(crate) async fn run(
    shared: &Shared,
    connection: Connection,
    node: NodeId,
    mut send: SendStream,
    received: Option<Said>,
) -> String {
    let _closing = Closing(connection.clone());
    let link = Arc::new(Link {
        node,
        connection: connection.clone(),
        outbox: Outbox::new(OUTBOX_BYTES_MAX),
    });
    if !shared.inbox.give(0, Input::Joined(Arc::clone(&link))).await {
        return "the node stops".to_owned();
    }
    let gone = tokio::select! {
        Err(gone) = read(shared, &link, received) => gone,
        _ = link.outbox.write_to(&mut send) => Gone::Closed,
    };
    let why = gone.words(&connection);
    gone.close(&connection);
    shared.inbox.give(0, Input::Left(link)).await;
    why
}

async fn read(
    shared: &Shared,
    link: &Arc<Link>,
    received: Option<Said>,
) -> Result<Infallible, Gone> {
    let (mut stream, mut frames, hello) = if let Some(received) = received {
        received
    } else {
        let mut stream = link.connection.accept_uni().await?;
        let mut frames = Frames::new(HELLO_BYTES_MAX);
        let hello = first_hello(&mut stream, &mut frames).await?;
        (stream, frames, hello)
    };
    frames.bound(PEER_FRAME_BYTES_MAX);
    let me = check_hello(shared, link.node, &hello)?;
    let heard = |hello: &PeerHello| {
        let bound = decode_voters(&hello.bound)?;
        Ok::<_, FrameError>(Input::Heard { voter: me, bound })
    };
    shared.inbox.put(HELLO_BYTES_MAX, heard(&hello)?).await?;
    loop {
        while let Some((bytes, frame)) = frames.take_sized::<PeerFrame>()? {
            let bytes = PREFIX_BYTES + bytes;
            match frame.kind {
                // Of a later version of the protocol: not for this node.
                None => {}
                Some(PeerKind::Hello(hello)) => {
                    if hello.voter != wire::Voter::from(me) {
                        return Err(FrameError::Missing("the voter that it began with").into());
                    }
                    shared.inbox.put(bytes, heard(&hello)?).await?;
                }
                Some(kind) => {
                    let message = decode(kind)?;
                    let input = Input::Message { from: me, message };
                    shared.inbox.put(bytes, input).await?;
                }
            }
        }
        let chunk = stream.read_chunk(CHUNK_BYTES_MAX, true).await?;
        frames.push(&chunk.ok_or(Gone::Closed)?.bytes);
    }
}

/// The hello with which each peer begins.
pub(crate) async fn first_hello(
    stream: &mut RecvStream,
    frames: &mut Frames,
) -> Result<PeerHello, Gone> {
    let frame: PeerFrame = read_frame(stream, frames).await?;
    match frame.kind {
        Some(PeerKind::Hello(hello)) => Ok(hello),
        _ => Err(FrameError::Missing("a hello before everything else").into()),
    }
}

/// Whether it is of this cluster and version, and of whom the certificate was checked for; gives who it is.
pub(crate) fn check_hello(shared: &Shared, node: NodeId, hello: &PeerHello) -> Result<Voter, Gone> {
    shared.check(hello.version, hello.cluster)?;
    let voter = Voter::try_from(hello.voter)?;
    if voter.node != node {
        let words = format!("the certificate is of node {}", node.0);
        return Err(Gone::Refused(Close::NotWhoItSays, words));
    }
    Ok(voter)
}
