//! What comes to a node's own thread from its connections: one queue, bounded in number and in bytes. While it is full nobody
//! reads, so that whoever sends waits in turn, in the order in which they came.

use std::sync::Arc;

use bytes::Bytes;
use sprag_paxos::{Message, Voter};
use tokio::sync::{Semaphore, mpsc};

use crate::link::{Link, PEER_FRAME_BYTES_MAX};
use crate::reception::Gone;
use crate::session::Asker;

/// How much waits, at most.
const INPUTS_MAX: usize = 512;

/// How many bytes that has, at most, as they came over the wire: a few of the longest frames.
const INPUT_BYTES_MAX: usize = 4 * PEER_FRAME_BYTES_MAX;

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
    Request { asker: Asker, operation: Bytes },
}

/// The end at which things are put in.
#[derive(Clone)]
pub(crate) struct Inbox {
    sender: mpsc::Sender<(u32, Input)>,
    room: Arc<Semaphore>,
}

/// The end at which they are taken out.
pub(crate) struct Inputs {
    receiver: mpsc::Receiver<(u32, Input)>,
    room: Arc<Semaphore>,
    /// Kept, so that taking allocates nothing.
    taken: Vec<(u32, Input)>,
}

/// Both ends.
pub(crate) fn inbox() -> (Inbox, Inputs) {
    let (sender, receiver) = mpsc::channel(INPUTS_MAX);
    let room = Arc::new(Semaphore::new(INPUT_BYTES_MAX));
    let inputs = Inputs {
        receiver,
        room: Arc::clone(&room),
        taken: Vec::with_capacity(INPUTS_MAX),
    };
    (Inbox { sender, room }, inputs)
}

impl Inbox {
    /// Puts something in that came as a frame of so many bytes, once there is room; false if nobody takes it any more.
    pub(crate) async fn give(&self, bytes: usize, input: Input) -> bool {
        // No frame is longer than all that there is room for.
        let bytes = bytes.min(INPUT_BYTES_MAX) as u32;
        let Ok(room) = self.room.acquire_many(bytes).await else {
            return false;
        };
        // Whoever goes while it waits for a place gives its room back.
        let Ok(place) = self.sender.reserve().await else {
            return false;
        };
        room.forget();
        place.send((bytes, input));
        true
    }

    /// The same, where that ends a connection.
    pub(crate) async fn put(&self, bytes: usize, input: Input) -> Result<(), Gone> {
        let is_taken = self.give(bytes, input).await;
        is_taken.then_some(()).ok_or(Gone::Closed)
    }
}

impl Inputs {
    /// Takes all that there is, once there is something.
    pub(crate) async fn take(&mut self, into: &mut Vec<Input>) {
        self.receiver.recv_many(&mut self.taken, INPUTS_MAX).await;
        self.hand_over(into);
    }

    /// Takes what has come since, if anything has; whether it has.
    pub(crate) fn take_more(&mut self, into: &mut Vec<Input>) -> bool {
        while self.taken.len() < INPUTS_MAX
            && let Ok(input) = self.receiver.try_recv()
        {
            self.taken.push(input);
        }
        let has_come = !self.taken.is_empty();
        self.hand_over(into);
        has_come
    }

    fn hand_over(&mut self, into: &mut Vec<Input>) {
        let mut bytes = 0;
        for (of, input) in self.taken.drain(..) {
            bytes += of as usize;
            into.push(input);
        }
        if bytes > 0 {
            self.room.add_permits(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;
    use sprag_paxos::{DiskId, NodeId};

    fn heard() -> Input {
        let voter = Voter {
            node: NodeId(1),
            disk: DiskId(1),
        };
        let bound = Vec::new();
        Input::Heard { voter, bound }
    }

    #[test]
    fn who_brings_more_bytes_than_there_is_room_for_waits_until_some_are_taken() {
        let mut context = Context::from_waker(Waker::noop());
        let (inbox, mut inputs) = inbox();
        for _ in 0..4 {
            let given = pin!(inbox.give(PEER_FRAME_BYTES_MAX, heard()));
            assert!(given.poll(&mut context).is_ready());
        }
        let mut one_more = pin!(inbox.give(1, heard()));
        assert!(one_more.as_mut().poll(&mut context).is_pending());
        let mut taken = Vec::new();
        assert!(inputs.take_more(&mut taken));
        assert_eq!(taken.len(), 4);
        assert!(one_more.poll(&mut context).is_ready());
        assert!(inputs.take_more(&mut taken));
        assert_eq!(taken.len(), 5);
        assert!(!inputs.take_more(&mut taken));
    }

    #[test]
    fn who_goes_while_it_waits_for_a_place_takes_no_room_with_it() {
        let mut context = Context::from_waker(Waker::noop());
        let (inbox, mut inputs) = inbox();
        for _ in 0..INPUTS_MAX {
            let given = pin!(inbox.give(1, heard()));
            assert!(given.poll(&mut context).is_ready());
        }
        for _ in 0..4 {
            let gone = pin!(inbox.give(PEER_FRAME_BYTES_MAX, heard()));
            assert!(gone.poll(&mut context).is_pending());
        }
        let mut taken = Vec::new();
        assert!(inputs.take_more(&mut taken));
        assert_eq!(taken.len(), INPUTS_MAX);
        let given = pin!(inbox.give(INPUT_BYTES_MAX, heard()));
        assert!(given.poll(&mut context).is_ready());
    }
}
