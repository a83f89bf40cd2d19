//! The file of a snapshot: a header that checks itself, and the content.
//!
//! ```text
//!   bytes  0  8  checksum of bytes 8 to 63
//!          8  8  the layout
//!         16  8  the cluster
//!         24  8  the last slot that it holds
//!         32  8  the content's length in bytes
//!         40  8  the content's checksum
//!         48  1  1 where it came from another voter
//!         49 15  zeros
//!         64     the content
//! ```

use sprag_paxos::simulation::{Bug, planted};
use sprag_paxos::{Slot, Snapshot};

use crate::bytes::{Reader, UNIT, Writer, checksum};
use crate::disk::{Disk, DiskError, DiskFile, Fault};
use crate::identity::ClusterId;

/// The file of one that is made here, until it is durable.
pub(crate) const NEW: &str = "snapshot.new";
/// The file of one that comes from another voter, until all of it is durable.
pub(crate) const INCOMING: &str = "snapshot.in";
/// Bytes of a header.
pub(crate) const HEADER: usize = 64;

const PREFIX: &str = "snapshot-";
/// The name and version of the layout.
const LAYOUT: u64 = u64::from_le_bytes(*b"sprags01");
/// Written at once.
const CHUNK: usize = 1 << 20;
/// Bytes of a content that are checked by themselves when they are read.
const PART: usize = UNIT;

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) cluster: ClusterId,
    pub(crate) snapshot: Snapshot,
    /// Whether it came from another voter: nothing that this one has on record leads up to it.
    pub(crate) is_installed: bool,
}

/// The name of the file of the snapshot up to `through`.
pub(crate) fn name(through: Slot) -> String {
    format!("{PREFIX}{:016x}", through.0)
}

/// The last slot of the snapshot with that name, if it is one.
pub(crate) fn through(name: &str) -> Option<Slot> {
    let digits = name.strip_prefix(PREFIX)?;
    let through = Slot(u64::from_str_radix(digits, 16).ok()?);
    (self::name(through) == name).then_some(through)
}

/// Whether a file is what an interrupted change left behind.
pub(crate) fn is_leftover(name: &str) -> bool {
    name == NEW || name == INCOMING
}

/// The name of a snapshot of `content`.
pub(crate) fn snapshot(through: Slot, content: &[u8]) -> Snapshot {
    Snapshot {
        through,
        bytes: content.len() as u64,
        checksum: checksum(content),
    }
}

/// Makes the file of a snapshot, with its header alone; not synced.
pub(crate) fn create<D: Disk>(disk: &D, name: &str, header: Header) -> Result<D::File, DiskError> {
    let length = header.snapshot.bytes.saturating_add(HEADER as u64);
    let file = disk.create(name, length)?;
    file.write(0, &header.encode())?;
    Ok(file)
}

/// A snapshot that is durable.
pub(crate) struct Stored<F> {
    pub(crate) snapshot: Snapshot,
    pub(crate) is_installed: bool,
    file: F,
    /// The checksums of its parts, in order.
    parts: Vec<u64>,
}

impl<F: DiskFile> Stored<F> {
    /// The one with this header, whose content was written or checked just now.
    pub(crate) fn new(header: Header, file: F, content: &[u8]) -> Stored<F> {
        Stored {
            snapshot: header.snapshot,
            is_installed: header.is_installed,
            file,
            parts: content.chunks(PART).map(checksum).collect(),
        }
    }

    /// Reads `length` bytes of the content, which it has; `None` where they aren't what they were.
    pub(crate) fn read(&self, offset: u64, length: u64) -> Result<Option<Vec<u8>>, DiskError> {
        let first = offset / PART as u64;
        let start = first * PART as u64;
        let end = (offset + length).next_multiple_of(PART as u64);
        let end = end.min(self.snapshot.bytes);
        let mut bytes = vec![0; (end - start) as usize];
        match self.file.read(HEADER as u64 + start, &mut bytes) {
            Ok(()) => {}
            Err(error) if error.is_damage() => return Ok(None),
            Err(error) => return Err(error),
        }
        let mut parts = bytes.chunks(PART).zip(&self.parts[first as usize..]);
        if !parts.all(|(part, sum)| checksum(part) == *sum) {
            return Ok(None);
        }
        bytes.drain(..(offset - start) as usize);
        bytes.truncate(length as usize);
        Ok(Some(bytes))
    }
}

/// Removes a file, if there is one.
pub(crate) fn remove<D: Disk>(disk: &D, name: &str) -> Result<(), DiskError> {
    match disk.remove(name) {
        Err(error) if error.fault == Fault::NotFound => Ok(()),
        removed => removed,
    }
}

/// Writes a part of the content; not synced.
pub(crate) fn write<F: DiskFile>(file: &F, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
    let mut at = HEADER as u64 + offset;
    for bytes in bytes.chunks(CHUNK) {
        file.write(at, bytes)?;
        at += bytes.len() as u64;
    }
    Ok(())
}

/// Reads all of the file and checks it; `None` where it isn't whole, or is of another cluster.
pub(crate) fn read<F: DiskFile>(
    file: &F,
    cluster: ClusterId,
) -> Result<Option<(Header, Vec<u8>)>, DiskError> {
    match read_checked(file, cluster) {
        Err(error) if error.is_damage() => Ok(None),
        read => read,
    }
}

fn read_checked<F: DiskFile>(
    file: &F,
    cluster: ClusterId,
) -> Result<Option<(Header, Vec<u8>)>, DiskError> {
    let mut header = [0; HEADER];
    file.read(0, &mut header)?;
    let Some(header) = Header::decode(&header) else {
        return Ok(None);
    };
    if header.cluster != cluster {
        return Ok(None);
    }
    let mut content = vec![0; header.snapshot.bytes as usize];
    file.read(HEADER as u64, &mut content)?;
    let is_whole = checksum(&content) == header.snapshot.checksum
        || planted(Bug::SnapshotNotChecked)
        || planted(Bug::ChunkOfAnotherSnapshotTaken);
    Ok(is_whole.then_some((header, content)))
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        Writer::new(&mut bytes[8..])
            .put(LAYOUT.to_le_bytes())
            .put(self.cluster.0.to_le_bytes())
            .put(self.snapshot.through.0.to_le_bytes())
            .put(self.snapshot.bytes.to_le_bytes())
            .put(self.snapshot.checksum.to_le_bytes())
            .put([u8::from(self.is_installed)]);
        let sum = checksum(&bytes[8..]);
        bytes[..8].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; HEADER]) -> Option<Header> {
        let mut reader = Reader::new(bytes);
        if reader.u64() != checksum(&bytes[8..]) || reader.u64() != LAYOUT {
            return None;
        }
        Some(Header {
            cluster: ClusterId(reader.u64()),
            snapshot: Snapshot {
                through: Slot(reader.u64()),
                bytes: reader.u64(),
                checksum: reader.u64(),
            },
            is_installed: reader.take::<1>()[0] == 1,
        })
    }
}
