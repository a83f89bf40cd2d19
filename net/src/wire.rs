//! What nodes and clients tell each other, as it lies on the wire: Protocol Buffers, of which these structures are the
//! definition. A field that is added is passed over by who doesn't know it, and one that is missing reads as zero or
//! none; a number that was given to a field is never given to another.

use bytes::Bytes;
use prost::{Message, Oneof};

/// The version of all that follows. A peer of another is refused; fields may be added without another.
pub const VERSION: u32 = 1;

/// Who votes.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Voter {
    /// The node.
    #[prost(uint32, tag = "1")]
    pub node: u32,
    /// The disk.
    #[prost(fixed64, tag = "2")]
    pub disk: u64,
}

/// A ballot.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Ballot {
    /// The round.
    #[prost(uint64, tag = "1")]
    pub round: u64,
    /// Who proposes: the node.
    #[prost(uint32, tag = "2")]
    pub node: u32,
    /// And its disk.
    #[prost(fixed64, tag = "3")]
    pub disk: u64,
}

/// What a slot holds.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Entry {
    /// A batch of commands; none: nothing.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub commands: Option<Bytes>,
}

/// The first that a peer tells, and again whenever it changes.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PeerHello {
    /// [`VERSION`].
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// Which cluster it is of.
    #[prost(fixed64, tag = "2")]
    pub cluster: u64,
    /// Who it is.
    #[prost(message, required, tag = "3")]
    pub voter: Voter,
    /// The voters that it has bound itself to found the cluster with; none yet.
    #[prost(message, repeated, tag = "4")]
    pub bound: Vec<Voter>,
}

/// A message that names a ballot.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct OfBallot {
    /// Which.
    #[prost(message, required, tag = "1")]
    pub ballot: Ballot,
}

/// A message that names a ballot and a slot.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct OfSlot {
    /// The ballot.
    #[prost(message, required, tag = "1")]
    pub ballot: Ballot,
    /// The slot.
    #[prost(uint64, tag = "2")]
    pub slot: u64,
}

/// A promise, or a page of it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Promise {
    /// The ballot that it answers.
    #[prost(message, required, tag = "1")]
    pub ballot: Ballot,
    /// The slot that was asked from.
    #[prost(uint64, tag = "2")]
    pub from: u64,
    /// What is known of slots.
    #[prost(message, repeated, tag = "3")]
    pub answers: Vec<Answer>,
    /// Where the next page begins.
    #[prost(uint64, optional, tag = "4")]
    pub next: Option<u64>,
    /// Up to where the acceptor knows what is decided.
    #[prost(uint64, tag = "5")]
    pub decided: u64,
}

/// What an acceptor knows of a slot.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Answer {
    /// Which.
    #[prost(uint64, tag = "1")]
    pub slot: u64,
    /// The ballot of what it accepted, or up to which it doesn't know; none: it accepted nothing.
    #[prost(message, optional, tag = "2")]
    pub ballot: Option<Ballot>,
    /// What it accepted; none: it doesn't know.
    #[prost(message, optional, tag = "3")]
    pub entry: Option<Entry>,
}

/// Phase two.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Accept {
    /// The ballot.
    #[prost(message, required, tag = "1")]
    pub ballot: Ballot,
    /// Where.
    #[prost(uint64, tag = "2")]
    pub slot: u64,
    /// What.
    #[prost(message, required, tag = "3")]
    pub entry: Entry,
    /// Up to where all is decided.
    #[prost(uint64, tag = "4")]
    pub decided: u64,
}

/// A ballot came too late.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Refused {
    /// Which.
    #[prost(message, required, tag = "1")]
    pub ballot: Ballot,
    /// What is promised instead.
    #[prost(message, required, tag = "2")]
    pub promised: Ballot,
}

/// Asks what was decided.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Fetch {
    /// From where.
    #[prost(uint64, tag = "1")]
    pub from: u64,
}

/// What was decided.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Entries {
    /// The slot of the first.
    #[prost(uint64, tag = "1")]
    pub from: u64,
    /// Slot after slot.
    #[prost(message, repeated, tag = "2")]
    pub entries: Vec<Entry>,
}

/// Which snapshot is meant.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Snapshot {
    /// The last slot that it holds.
    #[prost(uint64, tag = "1")]
    pub through: u64,
    /// How many bytes it has.
    #[prost(uint64, tag = "2")]
    pub bytes: u64,
    /// Their checksum.
    #[prost(fixed64, tag = "3")]
    pub checksum: u64,
}

/// Asks for a piece of a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct FetchChunk {
    /// Of which.
    #[prost(message, required, tag = "1")]
    pub snapshot: Snapshot,
    /// From where.
    #[prost(uint64, tag = "2")]
    pub offset: u64,
}

/// A piece of a snapshot.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Chunk {
    /// Of which.
    #[prost(message, required, tag = "1")]
    pub snapshot: Snapshot,
    /// Where in it.
    #[prost(uint64, tag = "2")]
    pub offset: u64,
    /// The piece.
    #[prost(bytes = "bytes", tag = "3")]
    pub bytes: Bytes,
}

/// A frame from peer to peer.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PeerFrame {
    /// What it is; none: of a later version.
    #[prost(
        oneof = "PeerKind",
        tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15"
    )]
    pub kind: Option<PeerKind>,
}

/// What peers tell each other. The names are those of the core's messages.
#[derive(Clone, PartialEq, Eq, Oneof)]
#[allow(missing_docs)]
pub enum PeerKind {
    #[prost(message, tag = "1")]
    Hello(PeerHello),
    #[prost(message, tag = "2")]
    Canvass(OfBallot),
    #[prost(message, tag = "3")]
    Aye(OfBallot),
    #[prost(message, tag = "4")]
    Prepare(OfSlot),
    #[prost(message, tag = "5")]
    Promise(Promise),
    #[prost(message, tag = "6")]
    Accept(Accept),
    #[prost(message, tag = "7")]
    Accepted(OfSlot),
    #[prost(message, tag = "8")]
    Refused(Refused),
    #[prost(message, tag = "9")]
    Commit(OfSlot),
    #[prost(message, tag = "10")]
    Beat(OfSlot),
    #[prost(message, tag = "11")]
    Heard(OfBallot),
    #[prost(message, tag = "12")]
    Fetch(Fetch),
    #[prost(message, tag = "13")]
    Entries(Entries),
    #[prost(message, tag = "14")]
    FetchChunk(FetchChunk),
    #[prost(message, tag = "15")]
    Chunk(Chunk),
}

/// A frame from a client.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ClientFrame {
    /// What it is; none: of a later version.
    #[prost(oneof = "ClientKind", tags = "1, 2")]
    pub kind: Option<ClientKind>,
}

/// What a client tells a node.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub enum ClientKind {
    /// Who it is.
    #[prost(message, tag = "1")]
    Hello(ClientHello),
    /// What it wants.
    #[prost(message, tag = "2")]
    Request(Request),
}

/// The first that a client tells.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct ClientHello {
    /// [`VERSION`].
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// Which cluster it means.
    #[prost(fixed64, tag = "2")]
    pub cluster: u64,
}

/// Asks for an operation on the replicated machine.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Request {
    /// Names it on its connection.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The operation, as the machine reads it.
    #[prost(bytes = "bytes", tag = "2")]
    pub operation: Bytes,
}

/// A node's answer to a client.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Response {
    /// Of the request that it answers.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// What came of it; none: of a later version.
    #[prost(oneof = "Outcome", tags = "2, 3, 4")]
    pub outcome: Option<Outcome>,
}

/// What came of a request.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub enum Outcome {
    /// It was done; what the machine answered.
    #[prost(bytes = "bytes", tag = "2")]
    Done(Bytes),
    /// It was not done and never will be.
    #[prost(message, tag = "3")]
    NotDone(NotDone),
    /// It may have been done, or may still be.
    #[prost(message, tag = "4")]
    Unknown(Unknown),
}

/// Why nothing was done.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct NotDone {
    /// Who leads, as far as the node knows.
    #[prost(uint32, optional, tag = "1")]
    pub leader: Option<u32>,
    /// Why, in words; empty where it just doesn't lead.
    #[prost(string, tag = "2")]
    pub reason: String,
    /// To ask again is no use.
    #[prost(bool, tag = "3")]
    pub is_final: bool,
}

/// Nothing is known.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Unknown {}

/// A command as it lies in the log: an operation, and who waits for what comes of it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Command {
    /// Which life of which node took it.
    #[prost(fixed64, tag = "1")]
    pub life: u64,
    /// Numbers the commands of that life.
    #[prost(uint64, tag = "2")]
    pub number: u64,
    /// What is to be done.
    #[prost(bytes = "bytes", tag = "3")]
    pub operation: Bytes,
}

/// An operation on the registers.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Operation {
    /// What; none: of a later version.
    #[prost(oneof = "OperationKind", tags = "1, 2")]
    pub kind: Option<OperationKind>,
}

/// The operations on registers.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub enum OperationKind {
    /// Sets one.
    #[prost(message, tag = "1")]
    Put(Put),
    /// Reads one.
    #[prost(message, tag = "2")]
    Get(Get),
}

/// Sets a register.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Put {
    /// Which.
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    /// To what.
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

/// Reads a register.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Get {
    /// Which.
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
}

/// What the machine answers to any operation.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Answered {
    /// The register's version: 0 where it was never set.
    #[prost(uint64, tag = "1")]
    pub version: u64,
    /// What a read found.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub value: Option<Bytes>,
    /// Why nothing was changed, in words; empty where it was done.
    #[prost(string, tag = "3")]
    pub refused: String,
}

/// A register, as a snapshot holds it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Saved {
    /// Which.
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    /// How often it was set.
    #[prost(uint64, tag = "2")]
    pub version: u64,
    /// To what it was set last.
    #[prost(bytes = "bytes", tag = "3")]
    pub value: Bytes,
}
