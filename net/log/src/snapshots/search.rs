//! What a start finds of snapshots: those that are whole, and what is of no use.

use sprag_paxos::Slot;
use sprag_paxos::simulation::{Mark, reach};

use crate::disk::{Disk, DiskError, DiskFile};
use crate::identity::ClusterId;
use crate::snapshots::Loaded;
use crate::snapshots::file::{self, Stored};

/// What was found, of which nothing is removed yet.
pub(super) struct Search<'a, F> {
    /// The newest two that are whole, oldest first.
    pub(super) stored: Vec<Stored<F>>,
    /// The newest of them.
    pub(super) newest: Option<Loaded>,
    /// The files of no use.
    useless: Vec<&'a str>,
}

impl<'a, F: DiskFile> Search<'a, F> {
    /// Reads the newest two snapshots that are whole, of those not below `trimmed`. `names` are all files, in order.
    pub(super) fn among<D: Disk<File = F>>(
        names: &'a [String],
        disk: &D,
        cluster: ClusterId,
        trimmed: Slot,
    ) -> Result<Self, DiskError> {
        let mut found = Self {
            stored: Vec::new(),
            newest: None,
            useless: Vec::new(),
        };
        for name in names.iter().rev() {
            if let Some(through) = file::through(name) {
                let is_wanted = found.stored.len() < 2 && through >= trimmed;
                if is_wanted && found.take(disk.open(name)?, cluster, through)? {
                    continue;
                }
            } else if !file::is_leftover(name) {
                continue;
            }
            found.useless.push(name);
        }
        Ok(found)
    }

    /// Takes a snapshot, if it is whole.
    fn take(&mut self, file: F, cluster: ClusterId, through: Slot) -> Result<bool, DiskError> {
        let (header, content) = match file::read(&file, cluster)? {
            Some((header, content)) if header.snapshot.through == through => (header, content),
            _ => {
                reach(Mark::SnapshotDamaged);
                return Ok(false);
            }
        };
        self.stored.insert(0, Stored::new(header, file, &content));
        self.newest.get_or_insert(Loaded {
            snapshot: header.snapshot,
            content,
        });
        Ok(true)
    }

    /// Removes what is of no use.
    pub(super) fn remove_useless<D: Disk>(&self, disk: &D) -> Result<(), DiskError> {
        let newest = self.newest.as_ref().map(|newest| newest.snapshot.through);
        // What is newer and useless is damaged.
        let is_newer = |name: &&str| newest.is_some() && file::through(name) > newest;
        if self.useless.iter().any(is_newer) {
            reach(Mark::OlderSnapshotUsed);
        }
        for name in &self.useless {
            disk.remove(name)?;
        }
        // Though nothing was removed: what is kept may have its name in the system's cache only.
        disk.sync_directory()
    }
}
