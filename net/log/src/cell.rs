//! A record's header: what it is of, where it lies, and what came before it, in 64 bytes that check themselves.
//!
//! ```text
//!   bytes  0  8  checksum of all that follows and of the cell's place: cluster, node, disk, generation, index
//!          8  8  the checksum of the cell before, so that records are a chain
//!         16  8  the checksum of the payload
//!         24  8  the slot
//!         32 18  the ballot: round, disk, node
//!         50  1  the kind
//!         51  1  1 on the last record of a batch
//!         52  4  the payload's length in bytes
//!         56  4  where the record lies in its segment, in lines of 64 bytes
//!         60  4  what had been synced when it was written: 0, not all segments before this one; n + 1, all of them and
//!                the first n records of this one
//! ```

use sprag_paxos::simulation::{Bug, planted};
use sprag_paxos::{Ballot, DiskId, NodeId, Slot, Voter};

use crate::bytes::{Reader, Writer, checksum};
use crate::identity::Identity;

/// Bytes of a cell; also the line on which records begin.
pub(crate) const CELL: usize = 64;
/// Bytes of a place, in front of a cell under its checksum.
const PLACE: usize = 40;

/// Which segment of which disk a cell belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) identity: Identity,
    pub(crate) generation: u64,
}

/// What a cell says of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There is none here, and never was in this generation.
    Empty,
    /// The entry that does nothing was accepted.
    AcceptedNoop,
    /// The payload was accepted.
    Accepted,
    /// The entry that does nothing is decided there.
    LearnedNoop,
    /// The payload is decided there.
    Learned,
    /// All slots up to this one are decided, and hold what was accepted or learned last.
    Decided,
    /// All slots up to this one are in a snapshot; in place of a round, the oldest generation that is still needed.
    Trimmed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) checksum: u64,
    pub(crate) previous: u64,
    pub(crate) payload: u64,
    pub(crate) slot: Slot,
    pub(crate) ballot: Ballot,
    pub(crate) kind: Kind,
    pub(crate) ends_batch: bool,
    pub(crate) length: u32,
    pub(crate) line: u32,
    pub(crate) proven: u32,
}

impl Cell {
    /// The cell of a place without a record.
    const EMPTY: Cell = Cell {
        checksum: 0,
        previous: 0,
        payload: 0,
        slot: Slot::NONE,
        ballot: Ballot::NONE,
        kind: Kind::Empty,
        ends_batch: false,
        length: 0,
        line: 0,
        proven: 0,
    };

    /// Encodes the cell as the record at `index`, and returns its checksum.
    pub(crate) fn encode(&self, origin: Origin, index: u64, into: &mut [u8]) -> u64 {
        let mut placed = placed(origin, index);
        Writer::new(&mut placed[PLACE + 8..])
            .put(self.previous.to_le_bytes())
            .put(self.payload.to_le_bytes())
            .put(self.slot.0.to_le_bytes())
            .put(self.ballot.round.to_le_bytes())
            .put(self.ballot.voter.disk.0.to_le_bytes())
            .put(self.ballot.voter.node.0.to_le_bytes())
            .put([self.kind as u8, u8::from(self.ends_batch)])
            .put(self.length.to_le_bytes())
            .put(self.line.to_le_bytes())
            .put(self.proven.to_le_bytes());
        let sum = checksum(&placed);
        placed[PLACE..PLACE + 8].copy_from_slice(&sum.to_le_bytes());
        into[..CELL].copy_from_slice(&placed[PLACE..]);
        sum
    }

    /// Encodes that there is no record at `index`.
    pub(crate) fn encode_empty(origin: Origin, index: u64, into: &mut [u8]) {
        Cell::EMPTY.encode(origin, index, into);
    }

    /// The cell in `bytes`, if it is whole and was written for just this place.
    pub(crate) fn decode(bytes: &[u8], origin: Origin, index: u64) -> Option<Cell> {
        let mut placed = placed(origin, index);
        placed[PLACE + 8..].copy_from_slice(&bytes[8..CELL]);
        let mut reader = Reader::new(&bytes[..CELL]);
        let sum = reader.u64();
        if sum != checksum(&placed) {
            return None;
        }
        let (previous, payload, slot) = (reader.u64(), reader.u64(), Slot(reader.u64()));
        let round = reader.u64();
        let disk = DiskId(reader.u64());
        let node = NodeId(reader.u16());
        let kind = match reader.take::<1>()[0] {
            0 => Kind::Empty,
            1 => Kind::AcceptedNoop,
            2 => Kind::Accepted,
            3 => Kind::LearnedNoop,
            4 => Kind::Learned,
            5 => Kind::Decided,
            6 => Kind::Trimmed,
            _ => return None,
        };
        Some(Cell {
            checksum: sum,
            previous,
            payload,
            slot,
            ballot: Ballot {
                round,
                voter: Voter { node, disk },
            },
            kind,
            ends_batch: reader.take::<1>()[0] == 1,
            length: reader.u32(),
            line: reader.u32(),
            proven: reader.u32(),
        })
    }

    /// Whether this is of an acceptance.
    pub(crate) fn is_accepted(&self) -> bool {
        matches!(self.kind, Kind::AcceptedNoop | Kind::Accepted)
    }

    /// Whether this is of what was learned.
    pub(crate) fn is_learned(&self) -> bool {
        matches!(self.kind, Kind::LearnedNoop | Kind::Learned)
    }

    /// The lines that the record takes.
    pub(crate) fn lines(length: u32) -> u32 {
        1 + length.div_ceil(CELL as u32)
    }
}

/// A place, with room for a cell behind it whose checksum is zero.
fn placed(origin: Origin, index: u64) -> [u8; PLACE + CELL] {
    let mut placed = [0; PLACE + CELL];
    let Identity { cluster, voter } = origin.identity;
    let anywhere = planted(Bug::RecycledRecordTaken);
    let generation = if anywhere { 0 } else { origin.generation };
    Writer::new(&mut placed)
        .put(cluster.0.to_le_bytes())
        .put(voter.disk.0.to_le_bytes())
        .put(u64::from(voter.node.0).to_le_bytes())
        .put(generation.to_le_bytes())
        .put(index.to_le_bytes());
    placed
}
