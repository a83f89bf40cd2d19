//! A disk in memory that fails as disks do, when a hook says so: what the cluster simulator and the log's own tests
//! run on. It draws nothing itself, so a seed or a script decides all of it.
//!
//! It keeps two images of every file: what reads see (the system's cache), and what a power cut leaves (the platter).
//! Sectors written since the last sync stand between the two, each on its own. What a sync has made durable stays,
//! unless it is damaged on purpose.

use std::cell::{RefCell, RefMut};
use std::fmt;
use std::rc::Rc;

use crate::disk::{Disk, DiskError, DiskFile, Fault, Operation};

mod faults;
mod state;

pub use faults::{Damage, DiskFaults, NoFaults, Place};
use state::{Change, Inode, State, sector_range};

/// `EBADF`: a handle from before the node went down.
const STALE: Fault = Fault::Io { code: 9 };

/// The disk. A clone is another handle on it.
#[derive(Clone)]
pub struct SimulatedDisk {
    shared: Rc<Shared>,
    boot: u64,
}

/// A file of a [`SimulatedDisk`].
#[derive(Clone)]
pub struct SimulatedFile {
    disk: SimulatedDisk,
    inode: u64,
    name: Rc<str>,
}

struct Shared {
    state: RefCell<State>,
    faults: RefCell<Box<dyn DiskFaults>>,
}

impl SimulatedDisk {
    /// An empty disk with sectors of `sector` bytes, at least one.
    pub fn new(sector: usize, faults: impl DiskFaults + 'static) -> SimulatedDisk {
        let shared = Shared {
            state: RefCell::new(State::new(sector.max(1))),
            faults: RefCell::new(Box::new(faults)),
        };
        SimulatedDisk {
            shared: Rc::new(shared),
            boot: 0,
        }
    }

    /// Puts another hook in place.
    pub fn set_faults(&self, faults: impl DiskFaults + 'static) {
        *self.shared.faults.borrow_mut() = Box::new(faults);
    }

    /// Cuts the power: what was not synced survives or not, sector by sector and change by change, as the hook says.
    /// Returns the disk as it is found afterwards; every handle from before is stale.
    #[must_use]
    pub fn cut_power(&self) -> SimulatedDisk {
        let mut guard = self.shared.state.borrow_mut();
        let state = &mut *guard;
        let mut faults = self.shared.faults.borrow_mut();
        let mut landed = Vec::new();
        for (name, number) in &state.names_of_inodes() {
            let Some(inode) = state.inodes.get_mut(number) else {
                continue;
            };
            let mut unsynced = std::mem::take(&mut inode.forgotten);
            unsynced.append(&mut inode.dirty);
            for (sector, versions) in unsynced {
                for version in versions.into_iter().rev() {
                    if faults.survives(name, sector) {
                        landed.push((*number, sector, version));
                        break;
                    }
                }
            }
        }
        for (number, sector, version) in landed {
            state.land(number, sector, &version);
        }
        for change in std::mem::take(&mut state.changes) {
            if faults.change_survives(change.operation(), change.name()) {
                change.apply(&mut state.names_durable);
            }
        }
        state.names = state.names_durable.clone();
        state.drop_nameless();
        for inode in state.inodes.values_mut() {
            inode.cache.copy_from_slice(&inode.platter);
        }
        state.boot += 1;
        self.reopened(state.boot)
    }

    /// Ends the node's process and nothing else: what it wrote stays in the cache, synced or not. Returns the disk as
    /// it is found afterwards; every handle from before is stale.
    #[must_use]
    pub fn kill(&self) -> SimulatedDisk {
        let mut state = self.shared.state.borrow_mut();
        state.boot += 1;
        self.reopened(state.boot)
    }

    /// Damages one sector of a file, on the platter and in the cache; where the cache holds something newer, on the
    /// platter only. Returns whether there is such a sector.
    pub fn damage(&self, file: &str, sector: u64, damage: Damage) -> bool {
        let mut state = self.shared.state.borrow_mut();
        let size = state.sector;
        let Some(inode) = state.names.get(file).copied() else {
            return false;
        };
        let Some(inode) = state.inodes.get_mut(&inode) else {
            return false;
        };
        let Some(range) = sector_range(inode.platter.len(), sector, size) else {
            return false;
        };
        let cached = !inode.dirty.contains_key(&sector) && !inode.forgotten.contains_key(&sector);
        match damage {
            Damage::Unreadable => {
                inode.unreadable.insert(sector);
            }
            Damage::Zeroed => inode.platter[range.clone()].fill(0),
            Damage::Flipped { bit } => {
                let bit = bit as usize % (range.len() * 8);
                inode.platter[range.start + bit / 8] ^= 1 << (bit % 8);
            }
        }
        if cached {
            let (platter, cache) = (&inode.platter[range.clone()], &mut inode.cache[range]);
            cache.copy_from_slice(platter);
        }
        true
    }

    /// The sectors of a file, 0 for one that isn't there.
    pub fn sectors(&self, file: &str) -> u64 {
        let state = self.shared.state.borrow();
        let inode = state
            .names
            .get(file)
            .and_then(|inode| state.inodes.get(inode));
        inode.map_or(0, |inode| inode.platter.len().div_ceil(state.sector) as u64)
    }

    fn reopened(&self, boot: u64) -> SimulatedDisk {
        SimulatedDisk {
            shared: Rc::clone(&self.shared),
            boot,
        }
    }

    /// The state, once the hook has let the operation through.
    fn asked(
        &self,
        operation: Operation,
        file: &str,
        bytes: u64,
    ) -> Result<RefMut<'_, State>, DiskError> {
        let state = self.shared.state.borrow_mut();
        if state.boot != self.boot {
            return Err(DiskError::new(operation, file, STALE));
        }
        match self
            .shared
            .faults
            .borrow_mut()
            .refuses(operation, file, bytes)
        {
            Some(fault) => Err(DiskError::new(operation, file, fault)),
            None => Ok(state),
        }
    }

    fn file(&self, name: &str, inode: u64) -> SimulatedFile {
        SimulatedFile {
            disk: self.clone(),
            inode,
            name: name.into(),
        }
    }
}

impl Disk for SimulatedDisk {
    type File = SimulatedFile;

    fn create(&self, name: &str, length: u64) -> Result<SimulatedFile, DiskError> {
        let mut state = self.asked(Operation::Create, name, length)?;
        if state.names.contains_key(name) {
            return Err(DiskError::new(Operation::Create, name, Fault::Exists));
        }
        let inode = state.inode_next;
        state.inode_next += 1;
        state.inodes.insert(inode, Inode::new(length as usize));
        state.change(Change::Created {
            name: name.into(),
            inode,
        });
        Ok(self.file(name, inode))
    }

    fn open(&self, name: &str) -> Result<SimulatedFile, DiskError> {
        let state = self.asked(Operation::Open, name, 0)?;
        match state.names.get(name) {
            Some(inode) => Ok(self.file(name, *inode)),
            None => Err(DiskError::new(Operation::Open, name, Fault::NotFound)),
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut state = self.asked(Operation::Rename, from, 0)?;
        if !state.names.contains_key(from) {
            return Err(DiskError::new(Operation::Rename, from, Fault::NotFound));
        }
        let (from, to) = (from.into(), to.into());
        state.change(Change::Renamed { from, to });
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        let mut state = self.asked(Operation::Remove, name, 0)?;
        if !state.names.contains_key(name) {
            return Err(DiskError::new(Operation::Remove, name, Fault::NotFound));
        }
        state.change(Change::Removed { name: name.into() });
        Ok(())
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        let state = self.asked(Operation::List, "", 0)?;
        Ok(state.names.keys().cloned().collect())
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        let mut state = self.asked(Operation::SyncDirectory, "", 0)?;
        state.changes.clear();
        state.names_durable = state.names.clone();
        state.drop_nameless();
        Ok(())
    }
}

impl SimulatedFile {
    fn inode<'a>(
        &self,
        state: &'a mut State,
        operation: Operation,
    ) -> Result<&'a mut Inode, DiskError> {
        let inode = state.inodes.get_mut(&self.inode);
        inode.ok_or_else(|| DiskError::new(operation, &*self.name, STALE))
    }

    /// Writes what the disk takes.
    fn take(&self, state: &mut State, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let misdirected = self.misdirected(state, offset, bytes.len() as u64);
        let sector_bytes = state.sector;
        let inode = self.inode(state, Operation::Write)?;
        let start = offset as usize;
        if start + bytes.len() > inode.cache.len() {
            let (done, asked) = (0, bytes.len() as u64);
            return Err(DiskError::new(
                Operation::Write,
                &*self.name,
                Fault::Short { done, asked },
            ));
        }
        inode.write(start, bytes, sector_bytes, misdirected);
        Ok(())
    }

    /// The inode and the sector where a write lands, if elsewhere.
    fn misdirected(&self, state: &State, offset: u64, bytes: u64) -> Option<(u64, u64)> {
        // It may have another name by now than when it was opened.
        let mut names = state.names.iter();
        let name = names.find(|(_, inode)| **inode == self.inode);
        let name = name.map_or(&*self.name, |(name, _)| name);
        let mut faults = self.disk.shared.faults.borrow_mut();
        let place = faults.misdirects(name, offset, bytes)?;
        // Somewhere that is no file: lost.
        let nowhere = (u64::MAX, 0);
        let inode = state.names.get(&place.file);
        Some(inode.map_or(nowhere, |inode| {
            (*inode, place.offset / state.sector as u64)
        }))
    }
}

impl DiskFile for SimulatedFile {
    fn length(&self) -> Result<u64, DiskError> {
        let mut state = self.disk.asked(Operation::Length, &self.name, 0)?;
        Ok(self.inode(&mut state, Operation::Length)?.cache.len() as u64)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), DiskError> {
        let mut state = self
            .disk
            .asked(Operation::Read, &self.name, into.len() as u64)?;
        let size = state.sector as u64;
        let inode = self.inode(&mut state, Operation::Read)?;
        let end = offset + into.len() as u64;
        if end > inode.cache.len() as u64 {
            let done = (inode.cache.len() as u64).saturating_sub(offset);
            let asked = into.len() as u64;
            return Err(DiskError::new(
                Operation::Read,
                &*self.name,
                Fault::Short { done, asked },
            ));
        }
        let mut bad = inode.unreadable.range(offset / size..end.div_ceil(size));
        if bad.any(|sector| !inode.dirty.contains_key(sector)) {
            return Err(DiskError::new(Operation::Read, &*self.name, Fault::EIO));
        }
        into.copy_from_slice(&inode.cache[offset as usize..end as usize]);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        match self
            .disk
            .asked(Operation::Write, &self.name, bytes.len() as u64)
        {
            Ok(mut state) => self.take(&mut state, offset, bytes),
            Err(error) => {
                if let Fault::Short { done, .. } = error.fault {
                    let done = bytes.len().min(done as usize);
                    self.take(
                        &mut self.disk.shared.state.borrow_mut(),
                        offset,
                        &bytes[..done],
                    )?;
                }
                Err(error)
            }
        }
    }

    fn sync(&self) -> Result<(), DiskError> {
        let refused = match self.disk.asked(Operation::Sync, &self.name, 0) {
            Ok(_) => None,
            Err(error) if error.fault == STALE => return Err(error),
            Err(error) => Some(error),
        };
        let mut state = self.disk.shared.state.borrow_mut();
        let inode = self.inode(&mut state, Operation::Sync)?;
        let mut unsynced = std::mem::take(&mut inode.dirty);
        if let Some(error) = refused {
            inode.forgotten.append(&mut unsynced);
            return Err(error);
        }
        for (sector, versions) in unsynced {
            if let Some(newest) = versions.into_iter().next_back() {
                state.land(self.inode, sector, &newest);
            }
        }
        Ok(())
    }
}

impl fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.borrow();
        f.debug_struct("SimulatedDisk")
            .field("boot", &self.boot)
            .field("files", &state.names)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SimulatedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedFile")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
