//! The links that there are: to which voter each goes, and what is sent over it.

use std::collections::BTreeMap;
use std::sync::Arc;

use sprag_paxos::{Message, NodeId, Voter};

use crate::link::Link;
use crate::peer_message::encode;
use crate::transport::Close;
use crate::wire::PeerFrame;

/// A link, and who is at its other end once that has said so.
struct Connected {
    link: Arc<Link>,
    voter: Option<Voter>,
}

/// At most one for each node.
#[derive(Default)]
pub(crate) struct Links {
    connected: BTreeMap<NodeId, Connected>,
}

impl Links {
    /// A link is there, in place of any before. `hello` leaves first.
    pub(crate) fn join(&mut self, link: Arc<Link>, hello: &PeerFrame) {
        link.outbox.push(hello);
        let node = link.node;
        let connected = Connected { link, voter: None };
        if let Some(before) = self.connected.insert(node, connected) {
            Close::Replaced.close(&before.link.connection, "there is another connection");
        }
    }

    /// A link is no more.
    pub(crate) fn leave(&mut self, link: &Arc<Link>) {
        let connected = self.connected.get(&link.node);
        if connected.is_some_and(|connected| Arc::ptr_eq(&connected.link, link)) {
            self.connected.remove(&link.node);
        }
    }

    /// The node at the other end is this voter.
    pub(crate) fn is_voter(&mut self, voter: Voter) {
        if let Some(connected) = self.connected.get_mut(&voter.node) {
            connected.voter = Some(voter);
        }
    }

    /// Tells all.
    pub(crate) fn tell(&self, frame: &PeerFrame) {
        for connected in self.connected.values() {
            connected.link.outbox.push(frame);
        }
    }

    /// Sends a message, or drops it where it can't leave now: the protocol sends again what matters.
    pub(crate) fn send(&self, to: Voter, message: &Message) {
        if let Some(connected) = self.connected.get(&to.node)
            && connected.voter == Some(to)
        {
            let frame = encode(message);
            match message {
                // Nobody waits for it, and whatever leaves next says the same; at the latest that is the next beat.
                Message::Commit { .. } => connected.link.outbox.push_along(&frame),
                _ => connected.link.outbox.push(&frame),
            };
        }
    }
}
