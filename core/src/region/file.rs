//! A region in a file: created whole or not at all, opened only when it is what it says.
//!
//! ```text
//!             no such file                          link: there is one by now
//!  open ───▶ create: unnamed file, allocate, write, ─────────────────────────────┐
//!   │        sync, then link to the path                                         │
//!   │ there is one           ▲                                                   │
//!   ▼                        └───────────── again, a few times ◀─────────────────┘
//!  owner, mode ─▶ header ─▶ length ─▶ map ─▶ of another boot? bring it here ─▶ still at the path?
//! ```
//!
//! A file gets its name as the last step of its making, so nobody ever sees half a region, whenever
//! its maker dies, and no lock is needed to create one. The header is read once, before anything is
//! mapped; what it says is checked, and lives on as a private copy.
//!
//! Nothing here trusts the directory: who may create files in it is for the caller to look after.

mod alone;
mod draft;
mod header;

pub use super::resize::resize;
pub(super) use alone::Alone;
pub(super) use draft::Draft;
pub(super) use header::Header;

use super::memory::Memory;
use super::{Birth, Caps, Geometry, LAYOUT_VERSION, Region, boot, system};
use crate::error::{Error, Result};
use crate::session::ofd;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How to open a region, and what it is born with if this call creates it.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// Caps of a new region. One that exists keeps its own.
    pub caps: Caps,
    /// Whether to create the region if there is none.
    pub create: bool,
    /// Whether the file's group may use it too: mode 0660 instead of 0600. One that its group can
    /// reach is refused unless this is set.
    pub group_shared: bool,
    /// Clocks, boot and randomness. `boot_id` zero means that it could not be read.
    pub birth: Birth,
}

/// What can be said of a region's file from outside, without opening a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// The file.
    pub path: PathBuf,
    /// Its layout.
    pub layout_version: u32,
    /// The caps it was created with.
    pub caps: Caps,
    /// Bytes of the file that the file system holds.
    pub allocated_bytes: u64,
    /// Bytes that it may grow to.
    pub len_bytes: u64,
    /// Sessions whose process is alive.
    pub sessions: u32,
    /// Unix time of its creation, in nanoseconds.
    pub created_unix_ns: u64,
    /// User id of its owner.
    pub owner: u32,
    /// Whether its group may use it.
    pub group_shared: bool,
    /// Boot in which it was last used; zero if not known.
    pub boot_id: [u64; 2],
}

/// Attempts at opening or creating while others create and remove the same region.
const ATTEMPTS_MAX: u32 = 64;

/// Opens the region at `path`; creates it if there is none and `options` say so.
///
/// # Errors
///
/// [`NotFound`](Error::NotFound) without `create`; [`NotARegion`](Error::NotARegion),
/// [`Incompatible`](Error::Incompatible) and [`Damaged`](Error::Damaged) for a file that is not, or no
/// more, a region of this release; [`Permission`](Error::Permission) for one that others can reach;
/// [`NoSpace`](Error::NoSpace) for a new one that does not fit; [`Contended`](Error::Contended) when
/// another process does not finish what only one may do.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Region> {
    super::check_processor()?;
    options.caps.check()?;
    let path = absolute(path)?;
    for _ in 0..ATTEMPTS_MAX {
        let opened = match open_existing(&path, options) {
            Err(Error::NotFound { .. }) if options.create => create(&path, options),
            opened => opened,
        };
        match opened {
            // Created, replaced or removed by somebody else meanwhile: look again.
            Err(Error::Replaced { .. }) => {}
            opened => return opened,
        }
    }
    Err(Error::Contended {
        what: "creating and removing the region, over and over",
    })
}

/// What the region at `path` is, without using it.
pub fn probe(path: &Path) -> Result<Info> {
    let path = absolute(path)?;
    let file = open_file(&path, false)?;
    let metadata = metadata(&file, &path)?;
    let header = Header::read(&file, &path)?;
    let geometry = Geometry::new(header.caps);
    check_len(&metadata, &geometry)?;
    Ok(Info {
        layout_version: LAYOUT_VERSION,
        caps: header.caps,
        allocated_bytes: metadata.blocks() * 512,
        len_bytes: metadata.len(),
        sessions: ofd::count_alive(&file)?,
        created_unix_ns: header.base_unix_ns,
        owner: metadata.uid(),
        group_shared: metadata.mode() & 0o070 != 0,
        boot_id: header.boot_id,
        path,
    })
}

/// Removes the region at `path`. While sessions are alive in it or a hold of no session runs, only if
/// `even_if_in_use`: the holds are lost then, and sessions find out by [`Region::check_in_place`]. The same
/// goes for a region that handed out so many tokens that those of one made in its place now would go back.
/// A damaged region can be removed too. `birth` tells the time and the boot.
pub fn remove(path: &Path, even_if_in_use: bool, birth: Birth) -> Result<()> {
    let path = absolute(path)?;
    let file = open_file(&path, true)?;
    match Header::read(&file, &path) {
        // A region still, to be removed because of just that.
        Err(Error::Damaged { .. } | Error::Incompatible { .. }) | Ok(_) => {}
        Err(error) => return Err(error),
    }
    let _alone = if even_if_in_use {
        None
    } else {
        // One that cannot be opened has nothing that anybody could go on with.
        let region = open_unchanged(&path, birth).ok();
        let alone = Alone::without_sessions(&file, &path)?;
        if let Some(region) = region {
            super::resize::check_removable(region, &birth, &path)?;
        }
        Some(alone)
    };
    fs::remove_file(&path).map_err(|source| match source.kind() {
        ErrorKind::NotFound => Error::NotFound { path },
        _ => io_error("remove", &path, source),
    })
}

/// Opens the region at `path` as it is, whoever may use it.
pub(super) fn open_unchanged(path: &Path, birth: Birth) -> Result<Region> {
    let info = probe(path)?;
    let options = OpenOptions {
        caps: info.caps,
        create: false,
        group_shared: info.group_shared,
        birth,
    };
    open(path, &options)
}

/// The file behind a region's memory. Keeps no descriptor: what is rarely asked of the file opens it anew,
/// and so is never asked of another file whose descriptor has the number by then, since something in the
/// process closed what it found open.
pub(crate) struct Backing {
    /// Of a region that has no name yet.
    unnamed: Option<File>,
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Backing {
    fn new(file: &File, path: &Path) -> Result<Self> {
        let metadata = metadata(file, path)?;
        Ok(Self {
            unnamed: None,
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// The same for a file that cannot be opened by its name yet.
    fn unnamed(self, file: File) -> Self {
        Self {
            unnamed: Some(file),
            ..self
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Allocates `len` bytes at `offset`; what is there already is kept.
    pub(crate) fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        let allocated = match &self.unnamed {
            Some(file) => system::allocate(file, offset, len),
            None => system::allocate(&self.reopen()?, offset, len),
        };
        allocated.map_err(|source| io_error("allocate pages of", &self.path, source))
    }

    /// Fails unless the file at the path is this one.
    pub(crate) fn check_in_place(&self) -> Result<()> {
        let replaced = || Error::Replaced {
            path: self.path.clone(),
        };
        match fs::symlink_metadata(&self.path) {
            Ok(found) if self.is(&found) => Ok(()),
            Ok(_) => Err(replaced()),
            Err(error) => Err(match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => replaced(),
                _ => io_error("look at", &self.path, error),
            }),
        }
    }

    /// Fails unless some other description of this file keeps the session of this index alive, and its
    /// line is still that of this process's own.
    pub(crate) fn check_session(&self, index: u16, has_line: bool) -> Result<()> {
        let is_kept = has_line
            && match self.reopen() {
                Ok(file) => ofd::is_held(&file, index),
                Err(replaced @ Error::Replaced { .. }) => return Err(replaced),
                // Without a descriptor to be had, nobody knows.
                Err(_) => true,
            };
        if is_kept {
            Ok(())
        } else {
            Err(Error::SessionLost {
                path: self.path.clone(),
            })
        }
    }

    fn is(&self, found: &Metadata) -> bool {
        (found.dev(), found.ino()) == (self.device, self.inode)
    }

    /// Another open file description of the same file, which is not mapped.
    pub(crate) fn reopen(&self) -> Result<File> {
        let replaced = || Error::Replaced {
            path: self.path.clone(),
        };
        let file = match open_file(&self.path, true) {
            Err(Error::NotFound { .. }) => return Err(replaced()),
            opened => opened?,
        };
        if self.is(&metadata(&file, &self.path)?) {
            Ok(file)
        } else {
            Err(replaced())
        }
    }
}

fn open_existing(path: &Path, options: &OpenOptions) -> Result<Region> {
    let file = open_file(path, true)?;
    let metadata = metadata(&file, path)?;
    check_access(&metadata, path, options.group_shared)?;
    let header = Header::read(&file, path)?;
    let geometry = Geometry::new(header.caps);
    check_len(&metadata, &geometry)?;
    let memory =
        Memory::of_file(&file, geometry.len).map_err(|source| io_error("map", path, source))?;
    let region = Region::of_file(memory, &header, Backing::new(&file, path)?);
    boot::bring_here(&region, &options.birth)?;
    // After all else, so that a region replaced meanwhile is not taken for the one in place.
    region.check_in_place()?;
    Ok(region)
}

/// Opens a regular file at exactly `path`.
fn open_file(path: &Path, write: bool) -> Result<File> {
    let not_a_region = |why| Error::NotARegion {
        path: path.to_owned(),
        why,
    };
    let permission = |why| Error::Permission {
        path: path.to_owned(),
        why,
    };
    let file = File::options()
        .read(true)
        .write(write)
        // No waiting for the other end of a pipe, no terminal to be had.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(|source| match source.raw_os_error() {
            Some(libc::ENOENT) => Error::NotFound {
                path: path.to_owned(),
            },
            Some(libc::ELOOP) => permission("is a symbolic link"),
            Some(libc::EISDIR | libc::ENXIO | libc::ENODEV) => not_a_region("it is not a file"),
            Some(libc::EACCES | libc::EPERM) => permission("is not this user's to open"),
            Some(libc::EROFS) => permission("is on a read-only file system"),
            _ => io_error("open", path, source),
        })?;
    if !metadata(&file, path)?.is_file() {
        return Err(not_a_region("it is not a file"));
    }
    past_standard(file, path)
}

/// Moves a file away from descriptors 0 to 2, which print and read in a program that closed its own.
fn past_standard(file: File, path: &Path) -> Result<File> {
    if file.as_raw_fd() > 2 {
        return Ok(file);
    }
    // The standard library duplicates to 3 and up.
    file.try_clone()
        .map_err(|source| io_error("open", path, source))
}

fn check_access(metadata: &Metadata, path: &Path, group_shared: bool) -> Result<()> {
    let refuse = |why| {
        Err(Error::Permission {
            path: path.to_owned(),
            why,
        })
    };
    let mode = metadata.mode();
    if mode & 0o007 != 0 {
        return refuse("can be reached by users other than its owner and group");
    }
    // Reading counts: it shows the hash's secret, and whoever reads can hold a session's lock.
    if mode & 0o070 != 0 && !group_shared {
        return refuse(
            "can be reached by its group, and was not opened as shared with it (group_shared, or \
             --group-shared of the command)",
        );
    }
    let is_trusted = metadata.uid() == system::effective_user()
        || metadata.uid() == 0
        || (group_shared && belongs_to_directory(metadata, path));
    if !is_trusted {
        return refuse("belongs to another user");
    }
    Ok(())
}

/// Whether a file lies in its own group's directory, where nobody outside that group can have put it:
/// whoever asks to share with the group then need not mind which member created it.
fn belongs_to_directory(file: &Metadata, path: &Path) -> bool {
    let Some(Ok(directory)) = path.parent().map(fs::metadata) else {
        return false;
    };
    directory.gid() == file.gid() && directory.mode() & 0o002 == 0
}

fn check_len(metadata: &Metadata, geometry: &Geometry) -> Result<()> {
    match metadata.len().cmp(&(geometry.len as u64)) {
        std::cmp::Ordering::Less => Err(Error::Damaged {
            what: "its file was cut short",
        }),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(Error::Damaged {
            what: "its file is longer than its caps say",
        }),
    }
}

fn create(path: &Path, options: &OpenOptions) -> Result<Region> {
    let draft = Draft::new(path, options.group_shared)?;
    let mut region = draft.fill(options.caps, options.birth)?;
    draft.publish()?;
    if let Some(backing) = &mut region.file {
        backing.unnamed = None;
    }
    Ok(region)
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    // The working directory may change while the region is open.
    let absolute = std::path::absolute(path).map_err(|source| io_error("find", path, source))?;
    if absolute.file_name().is_none() {
        return Err(Error::NotARegion {
            path: absolute,
            why: "it is a directory",
        });
    }
    Ok(absolute)
}

pub(super) fn metadata(file: &File, path: &Path) -> Result<Metadata> {
    file.metadata()
        .map_err(|source| io_error("look at", path, source))
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> Error {
    match source.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG | libc::ENOMEM) => Error::NoSpace { source },
        _ => Error::Io {
            action,
            path: path.to_owned(),
            source,
        },
    }
}
