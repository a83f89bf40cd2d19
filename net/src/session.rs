//! A client's connection, on the node's side: one stream with requests, and with answers in any order.
//!
//! Each request that is taken on has room set aside for the longest answer that it may have, and gives back what it doesn't
//! need. While a client has as much under way as it may, nothing more is read from it: so it gets every answer, however many
//! it asks for and however slowly it takes them. What all clients together have under way is bounded too; beyond that a
//! request is told that it wasn't done.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use quinn::{Connection, RecvStream, SendStream};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::frame::{FrameError, Frames, HELLO_BYTES_MAX, PREFIX_BYTES};
use crate::inbox::Input;
use crate::machine::{ANSWER_BYTES_MAX, OPERATION_BYTES_MAX, answer_bytes_max};
use crate::outbox::Outbox;
use crate::reception::{CHUNK_BYTES_MAX, Gone, Shared, read_frame};
use crate::transport::Close;
use crate::wire::{ClientFrame, ClientKind, NotDone, Outcome, Response};

/// The longest frame from a client.
pub(crate) const CLIENT_FRAME_BYTES_MAX: usize = OPERATION_BYTES_MAX + 64;

/// What a response has beside the machine's answer; and the longest that says why there is none.
const RESPONSE_BYTES: usize = 1_024;

/// Bytes of answers that one client has under way, at most: a few dozen of the longest.
const BYTES_MAX: usize = 32 * (ANSWER_BYTES_MAX + RESPONSE_BYTES);

/// And all clients together.
const ALL_BYTES_MAX: usize = 16 * BYTES_MAX;

/// How long a client may take nothing of what waits for it, before it is cut off: what it holds is missing elsewhere.
const STALLED: Duration = Duration::from_secs(10);

/// The streams of a client, and what has come on them.
pub(crate) struct Streams {
    send: SendStream,
    stream: RecvStream,
    frames: Frames,
}

/// What the answers under way to all clients take.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllAnswers(Arc<AtomicUsize>);

/// A client that is connected.
pub(crate) struct Session {
    outbox: Outbox,
    /// What its answers under way take: set aside, or in the outbox, or on their way into the stream. A count, by which nothing
    /// else is published: as are the others here.
    taken: AtomicUsize,
    /// How much of that is answered.
    answered: AtomicUsize,
    given_back: Notify,
    all: AllAnswers,
}

/// Who asked for something, and is to be answered. One that is dropped is never answered.
pub(crate) struct Asker {
    session: Arc<Session>,
    id: u64,
    /// What is set aside for the answer.
    room: usize,
}

impl Asker {
    /// Answers.
    pub(crate) fn answer(mut self, outcome: Outcome) {
        let response = Response {
            id: self.id,
            outcome: Some(outcome),
        };
        let bytes = PREFIX_BYTES + response.encoded_len();
        // An answer that takes more than was foreseen is sent all the same, and counted.
        if bytes > self.room {
            self.session.count(bytes - self.room);
            self.room = bytes;
        }
        self.session.answered.fetch_add(bytes, Ordering::Relaxed);
        self.room -= bytes;
        self.session.outbox.push(&response);
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.session.give_back(self.room);
    }
}

impl Session {
    fn new(all: AllAnswers) -> Arc<Self> {
        Arc::new(Self {
            // What is pushed was set aside before.
            outbox: Outbox::new(usize::MAX),
            taken: AtomicUsize::new(0),
            answered: AtomicUsize::new(0),
            given_back: Notify::new(),
            all,
        })
    }

    /// Whom the request `id` is of, once there is room for an answer of so many bytes.
    async fn asker(self: &Arc<Self>, id: u64, room: usize) -> Asker {
        while self.taken.load(Ordering::Relaxed) + room > BYTES_MAX {
            self.given_back.notified().await;
        }
        self.count(room);
        Asker {
            session: Arc::clone(self),
            id,
            room,
        }
    }

    fn is_too_much(&self) -> bool {
        self.all.0.load(Ordering::Relaxed) > ALL_BYTES_MAX
    }

    fn count(&self, bytes: usize) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        self.all.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
        self.all.0.fetch_sub(bytes, Ordering::Relaxed);
        self.given_back.notify_one();
    }

    /// Writes answers as they come, until the node `stops`: then what there is, and until the client has taken that.
    async fn write(&self, stream: &mut SendStream, mut stops: watch::Receiver<bool>) -> Gone {
        loop {
            let next = tokio::select! {
                biased;
                next = self.outbox.next() => next,
                _ = stops.wait_for(|stops| *stops) => break,
            };
            let mut chunks = [next];
            while !chunks[0].is_empty() {
                match timeout(STALLED, stream.write_chunks(&mut chunks)).await {
                    Ok(Ok(written)) => {
                        self.answered.fetch_sub(written.bytes, Ordering::Relaxed);
                        self.give_back(written.bytes);
                    }
                    Ok(Err(_)) => return Gone::Closed,
                    Err(_) => {
                        let words = format!("no answer was taken for {} s", STALLED.as_secs());
                        return Gone::Refused(Close::TooSlow, words);
                    }
                }
            }
        }
        if stream.finish().is_err() || stream.stopped().await.is_err() {
            return Gone::Closed;
        }
        Gone::Refused(Close::Stopping, "the node stops".to_owned())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // What was answered and never taken. Nobody waits for an answer any more: whoever does holds the session.
        let unwritten = *self.answered.get_mut();
        self.all.0.fetch_sub(unwritten, Ordering::Relaxed);
    }
}

/// Reads the hello with which each client begins.
pub(crate) async fn introduce(
    shared: &Shared,
    send: SendStream,
    mut stream: RecvStream,
) -> Result<Streams, Gone> {
    let mut frames = Frames::new(HELLO_BYTES_MAX);
    let frame: ClientFrame = read_frame(&mut stream, &mut frames).await?;
    let Some(ClientKind::Hello(hello)) = frame.kind else {
        return Err(FrameError::Missing("a hello before everything else").into());
    };
    shared.check(hello.version, hello.cluster)?;
    frames.bound(CLIENT_FRAME_BYTES_MAX);
    Ok(Streams {
        send,
        stream,
        frames,
    })
}

/// Runs a session until its client goes.
pub(crate) async fn run(shared: &Shared, connection: Connection, streams: Streams) {
    let stops = shared.stops.subscribe();
    let session = Session::new(shared.answers.clone());
    let Streams {
        mut send,
        stream,
        frames,
    } = streams;
    let gone = tokio::select! {
        Err(gone) = read(shared, &session, stream, frames) => gone,
        gone = session.write(&mut send, stops) => gone,
    };
    gone.close(&connection);
}

async fn read(
    shared: &Shared,
    session: &Arc<Session>,
    mut stream: RecvStream,
    mut frames: Frames,
) -> Result<Infallible, Gone> {
    loop {
        while let Some(frame) = frames.take::<ClientFrame>()? {
            match frame.kind {
                Some(ClientKind::Request(request)) => {
                    let operation: Bytes = request.operation;
                    let room = RESPONSE_BYTES + answer_bytes_max(&operation);
                    let asker = session.asker(request.id, room).await;
                    if session.is_too_much() {
                        asker.answer(Outcome::NotDone(busy(shared)));
                        continue;
                    }
                    let bytes = operation.len();
                    let input = Input::Request { asker, operation };
                    shared.inbox.put(bytes, input).await?;
                }
                Some(ClientKind::Hello(_)) => {
                    return Err(FrameError::Missing("anything but a second hello").into());
                }
                // Of a later version, which would not send it here.
                None => return Err(FrameError::Missing("a kind").into()),
            }
        }
        let chunk = stream.read_chunk(CHUNK_BYTES_MAX, true).await?;
        frames.push(&chunk.ok_or(Gone::Closed)?.bytes);
    }
}

fn busy(shared: &Shared) -> NotDone {
    NotDone {
        // To be asked again, here.
        leader: Some(shared.node.0.into()),
        reason: format!("{ALL_BYTES_MAX} bytes of answers are under way; ask again later"),
        is_final: false,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::frame::Frames;

    /// A client without a connection, for whoever answers.
    pub(crate) struct Told(Arc<Session>, u64);

    impl Told {
        pub(crate) fn new() -> Self {
            Self(Session::new(AllAnswers::default()), 0)
        }

        /// Asks; the request's number counts from 1.
        pub(crate) fn ask(&mut self) -> Asker {
            self.1 += 1;
            ready(self.0.asker(self.1, RESPONSE_BYTES)).unwrap()
        }

        /// What it was answered since this was last asked.
        pub(crate) fn answers(&self) -> Vec<(u64, Outcome)> {
            let mut frames = Frames::new(usize::MAX);
            if let Some(bytes) = ready(self.0.outbox.next()) {
                frames.push(&bytes);
            }
            let responses = std::iter::from_fn(|| frames.take::<Response>().unwrap());
            responses.map(|it| (it.id, it.outcome.unwrap())).collect()
        }
    }

    fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn who_has_as_much_under_way_as_may_be_waits_and_what_is_not_needed_is_given_back() {
        let all = AllAnswers::default();
        let session = Session::new(all.clone());
        let longest = BYTES_MAX / 32;
        let mut askers: Vec<_> = (0..32)
            .map(|id| ready(session.asker(id, longest)).unwrap())
            .collect();
        assert!(ready(session.asker(32, 1)).is_none());
        askers.pop().unwrap().answer(Outcome::Done(Bytes::new()));
        let bytes = session.answered.load(Ordering::Relaxed);
        assert!(bytes > 0 && bytes < 100);
        assert!(ready(session.asker(33, longest)).is_none());
        drop(ready(session.asker(34, longest - bytes)).unwrap());
        drop(askers.pop());
        drop(ready(session.asker(35, longest)).unwrap());
        drop(askers);
        assert_eq!(all.0.load(Ordering::Relaxed), bytes);
        drop(session);
        assert_eq!(all.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn an_answer_that_is_longer_than_was_foreseen_is_counted() {
        let all = AllAnswers::default();
        let session = Session::new(all.clone());
        let asker = ready(session.asker(1, 10)).unwrap();
        asker.answer(Outcome::Done(vec![0; 1_000].into()));
        assert!(all.0.load(Ordering::Relaxed) > 1_000);
        drop(session);
        assert_eq!(all.0.load(Ordering::Relaxed), 0);
    }
}
