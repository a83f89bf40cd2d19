//! Which file systems can't hold a region.
//!
//! A region is shared memory: every process must reach the same page of the same machine's page
//! cache. A file system that several machines can mount promises that for no two of them, so it is
//! refused whether or not a second machine is there. Any local one will do; on a disk a region outlives a
//! reboot (its tokens count; its holds don't), is no more durable than the page cache, and pays for
//! write-back.

use super::place::PlaceError;
use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `f_type` of `statfs(2)`, from `linux/magic.h` where the kernel has it there, else from the
/// file system's own source.
const NOT_OF_THIS_HOST: &[(u32, &str)] = &[
    (0x0000_6969, "NFS"),
    (0x0000_517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x0000_564C, "NCP"),
    (0x0102_1997, "9p"),
    // Also virtiofs, sshfs, s3fs, GlusterFS: what is behind it can't be told.
    (0x6573_5546, "FUSE"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x00C3_6400, "Ceph"),
    (0x0BD0_0BD0, "Lustre"),
    (0x7461_636F, "OCFS2"),
    (0x0116_1970, "GFS2"),
    (0x4750_4653, "GPFS"),
    (0x2003_0528, "OrangeFS"),
    (0x1983_0326, "BeeGFS"),
    (0xAAD7_AAEA, "PanFS"),
    (0xBEEF_DEAD, "StorNext"),
    (0x013_111A8, "IBRIX"),
    (0x6163_6673, "ACFS"),
    (0xBACB_ACBC, "VMware shared folders"),
    (0x786F_4256, "VirtualBox shared folders"),
    (0x7C7C_6673, "Parallels shared folders"),
    (0x00C0_FFEE, "hostfs"),
];

/// Refuses a path on a file system that other machines could share.
///
/// # Errors
///
/// [`PlaceError::NotOfThisHost`]; [`PlaceError::Read`] if there is nothing at `path`.
pub(super) fn check_is_of_this_host(path: &Path) -> Result<(), PlaceError> {
    let magic = magic_of(path).map_err(|source| PlaceError::Read {
        path: path.to_owned(),
        source,
    })?;
    match shared_kind(magic) {
        None => Ok(()),
        Some(file_system) => Err(PlaceError::NotOfThisHost {
            path: path.to_owned(),
            file_system,
            magic,
        }),
    }
}

fn shared_kind(magic: u32) -> Option<&'static str> {
    NOT_OF_THIS_HOST
        .iter()
        .find(|&&(listed, _)| listed == magic)
        .map(|&(_, name)| name)
}

#[allow(clippy::cast_sign_loss)] // The numbers are 32 bits in a field that is signed here and there.
fn magic_of(path: &Path) -> io::Result<u32> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut status = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: `path` ends in a zero byte and `status` has room for what statfs writes.
    if unsafe { libc::statfs(path.as_ptr(), status.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: statfs returned 0, so it has written all of it.
    Ok(unsafe { status.assume_init() }.f_type as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_that_other_machines_could_share_are_named_and_local_ones_are_not() {
        let shared = [
            (0x6969, "NFS"),
            (0xFF53_4D42, "CIFS"),
            (0x0102_1997, "9p"),
            (0x6573_5546, "FUSE"),
            (0x00C3_6400, "Ceph"),
            (0x0BD0_0BD0, "Lustre"),
        ];
        for (magic, name) in shared {
            assert_eq!(shared_kind(magic), Some(name));
        }
        let local = [
            ("tmpfs", 0x0102_1994),
            ("ramfs", 0x8584_58F6),
            ("ext4", 0xEF53),
            ("xfs", 0x5846_5342),
            ("btrfs", 0x9123_683E),
            ("overlay", 0x794C_7630),
            ("f2fs", 0xF2F5_2010),
        ];
        for (name, magic) in local {
            assert_eq!(shared_kind(magic), None, "{name}");
        }
        let mut magics: Vec<u32> = NOT_OF_THIS_HOST.iter().map(|&(magic, _)| magic).collect();
        magics.sort_unstable();
        magics.dedup();
        assert_eq!(magics.len(), NOT_OF_THIS_HOST.len(), "no number twice");
    }

    #[test]
    fn a_kernel_file_system_is_told_by_its_number_and_a_missing_path_is_an_error() {
        assert_eq!(magic_of(Path::new("/proc")).expect("proc"), 0x9FA0);
        check_is_of_this_host(Path::new("/proc")).expect("not shared");
        let error = check_is_of_this_host(Path::new("/no/such/path")).expect_err("missing");
        assert!(error.to_string().contains("/no/such/path"), "{error}");
    }
}
