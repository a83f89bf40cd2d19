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

use super::memory::Memory;
use super::{
    Birth, Caps, Geometry, HASH_RAPID_V3, LAYOUT_VERSION, MAGIC, Region, boot, header, system,
};
use crate::error::{Error, Result};
use crate::key;
use crate::session::ofd;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub use super::resize::resize;

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
/// `even_if_in_use`: the holds are lost then, and sessions find out by [`Region::check_in_place`]. A
/// damaged region can be removed too. `birth` tells the time and the boot.
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
            super::resize::check_no_detached(region, &birth, &path)?;
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

/// The file behind a region's memory.
pub(crate) struct Backing {
    /// The mapped description; carries no kernel lock, see [`ofd`].
    file: File,
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Backing {
    fn new(file: File, path: &Path) -> Result<Self> {
        let metadata = metadata(&file, path)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Allocates `len` bytes at `offset`; what is there already is kept.
    pub(crate) fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        system::allocate(&self.file, offset, len)
            .map_err(|source| io_error("allocate pages of", &self.path, source))
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

    /// Fails unless some other description of this file keeps the session of this index alive. Asked of
    /// this process's own session, whose line says that nobody else has it.
    pub(crate) fn check_session(&self, index: u16) -> Result<()> {
        if ofd::is_held(&self.file, index) {
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

/// What of a header never changes, checked; and the boot that it was last used in.
pub(super) struct Header {
    pub(super) caps: Caps,
    pub(super) hash_seed: u64,
    pub(super) base_unix_ns: u64,
    boot_id: [u64; 2],
}

/// The part of the header page that is read before the file is mapped.
const HEADER_BYTES: usize = 256;

impl Header {
    fn of(caps: Caps, birth: &Birth) -> Self {
        Self {
            caps,
            hash_seed: birth.hash_seed,
            base_unix_ns: birth.unix_ns,
            boot_id: birth.boot_id,
        }
    }

    fn read(file: &File, path: &Path) -> Result<Self> {
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact_at(&mut bytes, 0)
            .map_err(|source| match source.kind() {
                ErrorKind::UnexpectedEof => Error::NotARegion {
                    path: path.to_owned(),
                    why: "it is shorter than a region's header",
                },
                _ => io_error("read", path, source),
            })?;
        Self::parse(&bytes, path)
    }

    fn parse(bytes: &[u8; HEADER_BYTES], path: &Path) -> Result<Self> {
        let word = |offset| key::read_word(bytes, offset);
        if word(header::MAGIC) != MAGIC {
            return Err(Error::NotARegion {
                path: path.to_owned(),
                why: "it does not begin like one",
            });
        }
        let incompatible = |found, supported| {
            Err(Error::Incompatible {
                path: path.to_owned(),
                found,
                supported,
            })
        };
        // Before the checksum: what that covers is for the version to say.
        let version = word(header::VERSION);
        if version != u64::from(LAYOUT_VERSION) {
            return incompatible(
                format!("version {version}"),
                format!("version {LAYOUT_VERSION}"),
            );
        }
        let mut covered = [0; header::CHECKSUM];
        covered.copy_from_slice(&bytes[..header::CHECKSUM]);
        if word(header::CHECKSUM) != super::checksum(&covered) {
            return Err(Error::Damaged {
                what: "its header's checksum is wrong",
            });
        }
        let features = word(header::FEATURES) >> 32;
        if features != 0 {
            return incompatible(format!("features {features:#x}"), "none".into());
        }
        let algorithm = word(header::HASH_ALGORITHM);
        if algorithm != HASH_RAPID_V3 {
            return incompatible(
                format!("hash algorithm {algorithm}"),
                format!("hash algorithm {HASH_RAPID_V3}"),
            );
        }
        let cap = |i: usize| u32::try_from(word(header::CAPS + i * 8)).unwrap_or(u32::MAX);
        let caps = Caps {
            objects: cap(0),
            limiter_keys: cap(1),
            sessions: cap(2),
            waiters: cap(3),
            key_chunks: cap(4),
        };
        caps.check().map_err(|_| Error::Damaged {
            what: "its caps are out of bounds",
        })?;
        Ok(Self {
            caps,
            hash_seed: word(header::HASH_SEED),
            base_unix_ns: word(header::BASE_UNIX),
            boot_id: [word(header::BOOT_ID), word(header::BOOT_ID + 8)],
        })
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
    let region = Region::of_file(memory, &header, Backing::new(file, path)?);
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
        return refuse("can be reached by its group, and was not opened as shared with it");
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
    let region = draft.fill(options.caps, options.birth)?;
    draft.publish()?;
    Ok(region)
}

/// A region's file in the making: nobody can open it before it is published.
pub(super) struct Draft {
    file: File,
    path: PathBuf,
    /// Its name until then, where the file system knows no files without one.
    scratch: Option<Scratch>,
}

/// A file's temporary name; removed when dropped. One that is left behind by a killed process is never
/// taken for a region: its name begins with a dot and ends in `.new`.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // Already renamed, or the directory is gone: nothing is left to do.
        let _ = fs::remove_file(&self.0);
    }
}

impl Draft {
    /// An empty file beside `path`, on its file system.
    pub(super) fn new(path: &Path, group_shared: bool) -> Result<Self> {
        let unnamed = File::options()
            .read(true)
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_TMPFILE)
            .open(directory(path));
        let draft = match unnamed {
            Ok(file) => Self {
                file: past_standard(file, path)?,
                path: path.to_owned(),
                scratch: None,
            },
            // What file systems, and kernels older than the flag, say.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)
                ) =>
            {
                Self::named(path)?
            }
            Err(error) => return Err(create_error(path, error)),
        };
        draft.allow(group_shared)?;
        Ok(draft)
    }

    fn named(path: &Path) -> Result<Self> {
        for _ in 0..ATTEMPTS_MAX {
            let scratch = scratch_name(path);
            let created = File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&scratch);
            match created {
                Ok(file) => {
                    return Ok(Self {
                        scratch: Some(Scratch(scratch)),
                        file: past_standard(file, path)?,
                        path: path.to_owned(),
                    });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(create_error(path, error)),
            }
        }
        Err(Error::Contended {
            what: "creating files with the region's temporary names",
        })
    }

    /// Sets the mode, whatever the umask. Nobody can have opened the file yet.
    fn allow(&self, group_shared: bool) -> Result<()> {
        let mode = if group_shared { 0o660 } else { 0o600 };
        self.file
            .set_permissions(Permissions::from_mode(mode))
            .map_err(|source| io_error("set the mode of", &self.path, source))
    }

    /// Makes it a region of its final length, with the pages allocated that are always reachable.
    pub(super) fn fill(&self, caps: Caps, birth: Birth) -> Result<Region> {
        caps.check()?;
        let geometry = Geometry::new(caps);
        let len = geometry.len as u64;
        let failed = |source| io_error("allocate", &self.path, source);
        if len > system::file_len_max() {
            return Err(failed(io::Error::from_raw_os_error(libc::EFBIG)));
        }
        self.file.set_len(len).map_err(failed)?;
        let is_sparse = match system::allocate(&self.file, 0, geometry.fixed as u64) {
            Ok(()) => true,
            // The file system cannot allocate. Growing would then leave holes, so there is none.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL)
                ) =>
            {
                self.write_out(len).map_err(failed)?;
                false
            }
            Err(error) => return Err(failed(error)),
        };
        let failed = |source| io_error("map", &self.path, source);
        let file = self.file.try_clone().map_err(failed)?;
        let memory = Memory::of_file(&file, geometry.len).map_err(failed)?;
        let header = Header::of(caps, &birth);
        let region = Region::of_file(memory, &header, Backing::new(file, &self.path)?);
        region.initialise(birth);
        if !is_sparse {
            region.mark_all_allocated();
        }
        Ok(region)
    }

    /// Writes zeros to the whole file.
    fn write_out(&self, len: u64) -> io::Result<()> {
        let zeros = vec![0; 1 << 16];
        let mut at = 0;
        while at < len {
            let part = zeros.len().min((len - at) as usize);
            self.file.write_all_at(&zeros[..part], at)?;
            at += part as u64;
        }
        Ok(())
    }

    /// Gives it its name. [`Error::Replaced`] if there is such a file by now.
    pub(super) fn publish(self) -> Result<()> {
        // A file that was named but not yet written would be no region after a power failure.
        self.sync()?;
        let linked = match &self.scratch {
            None => system::link_unnamed(&self.file, &self.path),
            Some(scratch) => fs::hard_link(&scratch.0, &self.path),
        };
        linked.map_err(|error| self.name_error(error))
    }

    /// Gives it its name in place of the file that has it.
    pub(super) fn publish_over(mut self) -> Result<()> {
        self.sync()?;
        // Only a file that has a name can take that of another.
        for _ in 0..ATTEMPTS_MAX {
            if self.scratch.is_some() {
                break;
            }
            let scratch = scratch_name(&self.path);
            match system::link_unnamed(&self.file, &scratch) {
                Ok(()) => self.scratch = Some(Scratch(scratch)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.name_error(error)),
            }
        }
        match &self.scratch {
            Some(scratch) => {
                fs::rename(&scratch.0, &self.path).map_err(|error| self.name_error(error))
            }
            None => Err(Error::Contended {
                what: "creating files with the region's temporary names",
            }),
        }
    }

    fn sync(&self) -> Result<()> {
        self.file
            .sync_all()
            .map_err(|source| io_error("write", &self.path, source))
    }

    fn name_error(&self, source: io::Error) -> Error {
        match source.kind() {
            ErrorKind::AlreadyExists => Error::Replaced {
                path: self.path.clone(),
            },
            _ => create_error(&self.path, source),
        }
    }
}

/// A name beside `path` that nobody looks for.
fn scratch_name(path: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Relaxed: any number will do that was not used before.
    let number = NEXT.fetch_add(1, Relaxed);
    let mut name = std::ffi::OsString::from(".");
    let stem = path.file_name().unwrap_or_default();
    // Within the longest name that file systems take.
    if stem.len() <= 200 {
        name.push(stem);
    }
    name.push(format!(".{}.{number}.new", std::process::id()));
    path.with_file_name(name)
}

/// This process alone at work on a region: the kernel locks that make it so.
pub(super) struct Alone<'f> {
    file: &'f File,
    with_sessions: bool,
}

/// How often, and in which steps, somebody else is waited for.
const WAITS_MAX: u32 = 1_000;
const WAIT: std::time::Duration = std::time::Duration::from_millis(10);

impl<'f> Alone<'f> {
    /// Alone in setting the region up. Others may have sessions.
    pub(super) fn in_setup(file: &'f File) -> Result<Self> {
        Self::in_setup_after(file, WAITS_MAX)
    }

    fn in_setup_after(file: &'f File, waits_max: u32) -> Result<Self> {
        for wait in 0..=waits_max {
            if ofd::try_lock(file, ofd::Bytes::SETUP)? {
                return Ok(Self {
                    file,
                    with_sessions: false,
                });
            }
            if wait < waits_max {
                // The lock has no timed form. Its holder is at work for milliseconds, or stopped.
                std::thread::sleep(WAIT);
            }
        }
        Err(Error::Contended {
            what: "setting up the region",
        })
    }

    /// Alone in the region: no session is alive, and none can open.
    pub(super) fn without_sessions(file: &'f File, path: &Path) -> Result<Self> {
        let mut alone = Self::in_setup(file)?;
        if !ofd::try_lock(file, ofd::Bytes::SESSIONS)? {
            return Err(Error::InUse {
                path: path.to_owned(),
                sessions: ofd::count_alive(file)?.max(1),
                detached: 0,
            });
        }
        alone.with_sessions = true;
        Ok(alone)
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        if self.with_sessions {
            ofd::unlock(self.file, ofd::Bytes::SESSIONS);
        }
        ofd::unlock(self.file, ofd::Bytes::SETUP);
    }
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

fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

pub(super) fn metadata(file: &File, path: &Path) -> Result<Metadata> {
    file.metadata()
        .map_err(|source| io_error("look at", path, source))
}

fn create_error(path: &Path, source: io::Error) -> Error {
    match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => Error::Permission {
            path: path.to_owned(),
            why: "cannot be created: its directory is not this user's to write to",
        },
        Some(libc::EROFS) => Error::Permission {
            path: path.to_owned(),
            why: "cannot be created: its file system is read-only",
        },
        _ => io_error("create", path, source),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: OpenOptions = OpenOptions {
        caps: Caps {
            objects: 64,
            limiter_keys: 64,
            sessions: 16,
            waiters: 16,
            key_chunks: 64,
        },
        create: false,
        group_shared: false,
        birth: Birth {
            hash_seed: 7,
            unix_ns: 1_800_000_000_000_000_000,
            boot_ns: 5,
            boot_id: [1, 2],
            floor: 0,
        },
    };

    fn place() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("region");
        (directory, path)
    }

    fn names_in(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn where_no_file_can_be_unnamed_a_region_appears_whole_under_its_name_too() {
        let (directory, path) = place();
        let draft = Draft::named(&path).unwrap();
        draft.allow(false).unwrap();
        draft.fill(OPTIONS.caps, OPTIONS.birth).unwrap();
        let names = names_in(directory.path());
        assert_eq!(names.len(), 1);
        assert!(names[0].starts_with(&format!(".region.{}.", std::process::id())));
        let late = Draft::named(&path).unwrap();
        draft.publish().unwrap();
        open(&path, &OPTIONS).unwrap();
        assert!(matches!(late.publish(), Err(Error::Replaced { .. })));
        assert_eq!(names_in(directory.path()), ["region"]);

        let over = Draft::named(&path).unwrap();
        over.allow(false).unwrap();
        over.fill(OPTIONS.caps, OPTIONS.birth).unwrap();
        let before = metadata(&File::open(&path).unwrap(), &path).unwrap().ino();
        over.publish_over().unwrap();
        let after = metadata(&File::open(&path).unwrap(), &path).unwrap().ino();
        assert_ne!(before, after);
        assert_eq!(names_in(directory.path()), ["region"]);
        drop(Draft::named(&path).unwrap());
        assert_eq!(names_in(directory.path()), ["region"]);
    }

    #[test]
    fn where_pages_cannot_be_allocated_the_whole_file_is_written_at_once() {
        let (_directory, path) = place();
        let draft = Draft::new(&path, false).unwrap();
        let len = (3 << 20) + 123;
        draft.file.set_len(len).unwrap();
        draft.write_out(len).unwrap();
        let metadata = draft.file.metadata().unwrap();
        assert_eq!(metadata.len(), len);
        assert!(metadata.blocks() * 512 >= len, "there are holes");
        let region = draft.fill(OPTIONS.caps, OPTIONS.birth).unwrap();
        region.mark_all_allocated();
        assert_eq!(region.allocated_bytes(), region.len_bytes());
    }

    #[test]
    fn who_waits_too_long_to_be_alone_is_told_so() {
        let (_directory, path) = place();
        File::create(&path).unwrap();
        let [first, second] = [(), ()].map(|()| open_file(&path, true).unwrap());
        let alone = Alone::in_setup(&first).unwrap();
        let result = Alone::in_setup_after(&second, 1).map(drop);
        assert!(matches!(result, Err(Error::Contended { .. })));
        drop(alone);
        let alone = Alone::without_sessions(&second, &path).unwrap();
        assert!(ofd::is_being_replaced(&first));
        assert!(Alone::in_setup_after(&first, 0).is_err());
        drop(alone);
        assert!(!ofd::is_being_replaced(&first));
        assert_eq!(ofd::count_alive(&first).unwrap(), 0);
    }

    #[test]
    fn living_sessions_are_counted_wherever_their_bytes_lie() {
        let (_directory, path) = place();
        File::create(&path).unwrap();
        let files: Vec<_> = [0, 1, 2, 77, 78, 4_000, 4_095]
            .map(|index| {
                let file = open_file(&path, true).unwrap();
                assert!(ofd::try_lock(&file, ofd::Bytes::session(index)).unwrap());
                file
            })
            .into();
        let reader = open_file(&path, false).unwrap();
        for (closed, file) in files.into_iter().enumerate() {
            assert_eq!(ofd::count_alive(&reader).unwrap() as usize, 7 - closed);
            drop(file);
        }
        assert_eq!(ofd::count_alive(&reader).unwrap(), 0);
    }

    #[test]
    fn a_temporary_name_fits_however_long_the_regions_is() {
        for len in [1, 200, 201, 255] {
            let path = Path::new("/tmp").join("x".repeat(len));
            let [first, second] = [(), ()].map(|()| scratch_name(&path));
            assert_ne!(first, second);
            assert!(first.file_name().unwrap().len() <= 255);
            assert_eq!(first.parent(), path.parent());
        }
    }
}
