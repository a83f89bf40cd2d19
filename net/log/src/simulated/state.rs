//! What a simulated disk holds: its directory and its files, as they are seen and as a power cut leaves them.

use std::collections::{BTreeMap, BTreeSet};

use crate::disk::Operation;

pub(super) struct State {
    /// Bytes that survive or not as one.
    pub(super) sector: usize,
    /// Goes up when the node goes down: handles from before are stale.
    pub(super) boot: u64,
    pub(super) inodes: BTreeMap<u64, Inode>,
    pub(super) inode_next: u64,
    pub(super) names: BTreeMap<String, u64>,
    pub(super) names_durable: BTreeMap<String, u64>,
    /// What was done to the directory since it was synced last.
    pub(super) changes: Vec<Change>,
}

pub(super) struct Inode {
    pub(super) cache: Vec<u8>,
    pub(super) platter: Vec<u8>,
    /// Sectors written and not synced: every version since, oldest first.
    pub(super) dirty: BTreeMap<u64, Vec<Version>>,
    /// Sectors that a failed sync should have written. The system holds them for clean.
    pub(super) forgotten: BTreeMap<u64, Vec<Version>>,
    pub(super) unreadable: BTreeSet<u64>,
}

pub(super) struct Version {
    pub(super) bytes: Box<[u8]>,
    /// The inode and sector where it lands, if elsewhere.
    pub(super) misdirected: Option<(u64, u64)>,
}

pub(super) enum Change {
    Created { name: String, inode: u64 },
    Renamed { from: String, to: String },
    Removed { name: String },
}

impl State {
    pub(super) fn new(sector: usize) -> State {
        State {
            sector,
            boot: 0,
            inodes: BTreeMap::new(),
            inode_next: 0,
            names: BTreeMap::new(),
            names_durable: BTreeMap::new(),
            changes: Vec::new(),
        }
    }

    pub(super) fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.changes.push(change);
    }

    /// Every file that has a name, and the name: the one it has now before the one it had.
    pub(super) fn names_of_inodes(&self) -> Vec<(String, u64)> {
        let mut names = BTreeMap::new();
        for (name, inode) in self.names_durable.iter().chain(&self.names) {
            names.insert(*inode, name.clone());
        }
        names
            .into_iter()
            .map(|(inode, name)| (name, inode))
            .collect()
    }

    /// A version of a sector reaches the platter, in its place or another.
    pub(super) fn land(&mut self, inode: u64, sector: u64, version: &Version) {
        let (inode, sector) = version.misdirected.unwrap_or((inode, sector));
        let Some(inode) = self.inodes.get_mut(&inode) else {
            return;
        };
        let Some(range) = sector_range(inode.platter.len(), sector, self.sector) else {
            return;
        };
        let taken = range.len().min(version.bytes.len());
        inode.platter[range.start..range.start + taken].copy_from_slice(&version.bytes[..taken]);
        inode.unreadable.remove(&sector);
    }

    pub(super) fn drop_nameless(&mut self) {
        let mut named = BTreeSet::new();
        named.extend(self.names.values().copied());
        named.extend(self.names_durable.values().copied());
        self.inodes.retain(|inode, _| named.contains(inode));
    }
}

impl Inode {
    /// A file of zeros.
    pub(super) fn new(length: usize) -> Inode {
        Inode {
            cache: vec![0; length],
            platter: vec![0; length],
            dirty: BTreeMap::new(),
            forgotten: BTreeMap::new(),
            unreadable: BTreeSet::new(),
        }
    }

    /// Writes to the cache, from `start` on. What that changes is to be synced, to its own place or from `misdirected` on.
    pub(super) fn write(
        &mut self,
        start: usize,
        bytes: &[u8],
        sector_bytes: usize,
        misdirected: Option<(u64, u64)>,
    ) {
        if bytes.is_empty() {
            return;
        }
        let end = start + bytes.len();
        let first = start / sector_bytes;
        let mut before = Vec::new();
        for sector in first..end.div_ceil(sector_bytes) {
            let sector = sector as u64;
            let Some(range) = sector_range(self.cache.len(), sector, sector_bytes) else {
                continue;
            };
            before.clear();
            before.extend_from_slice(&self.cache[range.clone()]);
            let (from, to) = (start.max(range.start), end.min(range.end));
            self.cache[from..to].copy_from_slice(&bytes[from - start..to - start]);
            let now = &self.cache[range.clone()];
            let mut versions = self.forgotten.remove(&sector).unwrap_or_default();
            let is_settled = versions.is_empty()
                && !self.dirty.contains_key(&sector)
                && !self.unreadable.contains(&sector)
                && misdirected.is_none()
                && now == before
                && now == &self.platter[range];
            if is_settled {
                continue;
            }
            versions.push(Version {
                bytes: now.into(),
                misdirected: misdirected
                    .map(|(inode, place)| (inode, place + sector - first as u64)),
            });
            self.dirty.entry(sector).or_default().append(&mut versions);
        }
    }
}

impl Change {
    pub(super) fn operation(&self) -> Operation {
        match self {
            Change::Created { .. } => Operation::Create,
            Change::Renamed { .. } => Operation::Rename,
            Change::Removed { .. } => Operation::Remove,
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Change::Created { name, .. } | Change::Removed { name } => name,
            Change::Renamed { from, .. } => from,
        }
    }

    /// Does the change to `names`, where it can still be done: one before it may have been lost.
    pub(super) fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            Change::Created { name, inode } => {
                names.insert(name.clone(), *inode);
            }
            Change::Renamed { from, to } => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
            Change::Removed { name } => {
                names.remove(name);
            }
        }
    }
}

/// The bytes of a sector in a file of `length` bytes.
pub(super) fn sector_range(
    length: usize,
    sector: u64,
    size: usize,
) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(sector).ok()?.checked_mul(size)?;
    (start < length).then(|| start..length.min(start + size))
}
