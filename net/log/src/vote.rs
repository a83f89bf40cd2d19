//! The vote file: what this disk has promised, whose it is, and what it has lost.
//!
//! One record in two copies, each in a unit of its own. A change is written to one and synced, then to the other and
//! synced, and counts only after both; so one of the two is good whenever the power goes, and the newest good one holds
//! no less than what counted. Ballots are written whole: half of one would be another promise.

use sprag_paxos::simulation::{Bug, planted};
use sprag_paxos::{Ballot, DiskId, NodeId, Voter};

use crate::bytes::{Reader, UNIT, Writer, checksum};
use crate::disk::{Disk, DiskError, DiskFile, Fault};
use crate::identity::{ClusterId, Identity};

/// The file.
pub(crate) const VOTE: &str = "vote";
/// The file while it is made.
pub(crate) const VOTE_NEW: &str = "vote.new";

/// What a copy starts with, after its checksum: the name and version of the layout.
const LAYOUT: u64 = u64::from_le_bytes(*b"spragv01");
/// Bytes of a copy. The two are alike, so that one that landed in the other's place still counts.
const COPY: usize = 80;

/// What the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VoteRecord {
    /// Counts the changes.
    pub(crate) serial: u64,
    pub(crate) identity: Identity,
    pub(crate) promised: Ballot,
    /// In some slot, something may have been accepted in a ballot up to this, and every trace of it is gone.
    pub(crate) lost: Ballot,
}

/// The open file.
pub(crate) struct VoteFile<F> {
    file: F,
    record: VoteRecord,
    /// The copy that is written first: the one that was bad or older, while the other still holds.
    first: usize,
}

/// What was found where the file should be.
pub(crate) enum Opened<F> {
    Good(VoteFile<F>),
    /// Neither copy can be read: what was promised is forgotten.
    Bad,
    Missing,
}

impl<F: DiskFile> VoteFile<F> {
    /// Makes the file. Until it returns there may be none; there never is half of one.
    pub(crate) fn create<D: Disk<File = F>>(disk: &D, identity: Identity) -> Result<(), DiskError> {
        let file = disk.create(VOTE_NEW, 2 * UNIT as u64)?;
        let (promised, lost) = (Ballot::NONE, Ballot::NONE);
        let record = VoteRecord {
            serial: 0,
            identity,
            promised,
            lost,
        };
        VoteFile {
            file,
            record,
            first: 0,
        }
        .write(promised, lost)?;
        disk.rename(VOTE_NEW, VOTE)?;
        disk.sync_directory()
    }

    /// Reads the file.
    pub(crate) fn open<D: Disk<File = F>>(disk: &D) -> Result<Opened<F>, DiskError> {
        let file = match disk.open(VOTE) {
            Ok(file) => file,
            Err(error) if error.fault == Fault::NotFound => return Ok(Opened::Missing),
            Err(error) => return Err(error),
        };
        let (record, first) = match (read_copy(&file, 0), read_copy(&file, 1)) {
            (Some(left), Some(right))
                if left.serial > right.serial
                    || (left.serial < right.serial && planted(Bug::OlderVoteTaken)) =>
            {
                (left, 1)
            }
            (_, Some(right)) => (right, 0),
            (Some(left), None) => (left, 1),
            (None, None) => return Ok(Opened::Bad),
        };
        Ok(Opened::Good(VoteFile {
            file,
            record,
            first,
        }))
    }

    pub(crate) fn record(&self) -> &VoteRecord {
        &self.record
    }

    /// Puts a new record in place of the old one, durably.
    ///
    /// After an error either may be found by the next who opens the file, and this handle is of no more use.
    pub(crate) fn write(&mut self, promised: Ballot, lost: Ballot) -> Result<(), DiskError> {
        let serial = self.record.serial + 1;
        let record = VoteRecord {
            serial,
            promised,
            lost,
            ..self.record
        };
        for copy in [self.first, 1 - self.first] {
            self.file.write((copy * UNIT) as u64, &encode(&record))?;
            if !planted(Bug::PromiseBeforeDurable) {
                self.file.sync()?;
            }
        }
        self.record = record;
        Ok(())
    }
}

fn read_copy<F: DiskFile>(file: &F, copy: usize) -> Option<VoteRecord> {
    let mut unit = [0; UNIT];
    file.read((copy * UNIT) as u64, &mut unit).ok()?;
    decode(&unit)
}

fn encode(record: &VoteRecord) -> [u8; UNIT] {
    let mut unit = [0; UNIT];
    let mut writer = Writer::new(&mut unit[8..COPY]);
    writer
        .put(LAYOUT.to_le_bytes())
        .put(record.serial.to_le_bytes())
        .put(record.identity.cluster.0.to_le_bytes());
    put_voter(&mut writer, record.identity.voter);
    for ballot in [record.promised, record.lost] {
        writer.put(ballot.round.to_le_bytes());
        put_voter(&mut writer, ballot.voter);
    }
    let sum = checksum(&unit[8..COPY]);
    unit[..8].copy_from_slice(&sum.to_le_bytes());
    unit
}

fn decode(unit: &[u8; UNIT]) -> Option<VoteRecord> {
    let mut reader = Reader::new(unit);
    if reader.u64() != checksum(&unit[8..COPY]) || reader.u64() != LAYOUT {
        return None;
    }
    let serial = reader.u64();
    let cluster = ClusterId(reader.u64());
    let voter = take_voter(&mut reader);
    let mut ballot = || Ballot {
        round: reader.u64(),
        voter: take_voter(&mut reader),
    };
    Some(VoteRecord {
        serial,
        identity: Identity { cluster, voter },
        promised: ballot(),
        lost: ballot(),
    })
}

/// 10 bytes.
fn put_voter(writer: &mut Writer<'_>, voter: Voter) {
    writer
        .put(voter.disk.0.to_le_bytes())
        .put(voter.node.0.to_le_bytes());
}

fn take_voter(reader: &mut Reader<'_>) -> Voter {
    let disk = DiskId(reader.u64());
    let node = NodeId(reader.u16());
    Voter { node, disk }
}
