//! What comes to a node's own thread from its connections: one bounded queue. While it is full nobody reads.

use std::sync::Arc;

use bytes::Bytes;
use sprag_paxos::{Message, Voter};
use tokio::sync::mpsc;

use crate::link::Link;
use crate::reception::Gone;
use crate::session::Session;

/// How much waits, at most.
const INPUTS_MAX: usize = 512;

/// What comes.
pub(crate) enum Input {
    /// There is a link with another node, in place of any before.
    Joined(Arc<Link>),
    /// It is no more.
    Left(Arc<Link>),
    /// Another node told who it is, and what it is bound to.
    Heard { voter: Voter, bound: Vec<Voter> },
    /// A message from a voter.
    Message { from: Voter, message: Message },
    /// A client's request.
    Request {
        session: Arc<Session>,
        id: u64,
        operation: Bytes,
    },
}

/// The end at which things are put in.
#[derive(Clone)]
pub(crate) struct Inbox(mpsc::Sender<Input>);

/// Both ends.
pub(crate) fn inbox() -> (Inbox, mpsc::Receiver<Input>) {
    let (sender, receiver) = mpsc::channel(INPUTS_MAX);
    (Inbox(sender), receiver)
}

impl Inbox {
    /// Puts something in, once there is room; false if nobody takes it any more.
    pub(crate) async fn give(&self, input: Input) -> bool {
        self.0.send(input).await.is_ok()
    }

    /// The same, where that ends a connection.
    pub(crate) async fn put(&self, input: Input) -> Result<(), Gone> {
        let gone = || Gone::Closed;
        self.0.send(input).await.map_err(|_| gone())
    }
}
