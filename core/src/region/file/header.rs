//! The header of a region's file: read once, before anything is mapped, and checked.
//!
//! Owns what makes a file a region of this release. Never looks at what the region holds.

use super::io_error;
use crate::error::{Error, Result};
use crate::key;
use crate::region::{Birth, Caps, HASH_RAPID_V3, LAYOUT_VERSION, MAGIC, checksum, header};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What of a header never changes, checked; and the boot that it was last used in.
pub(in crate::region) struct Header {
    pub(in crate::region) caps: Caps,
    pub(in crate::region) hash_seed: u64,
    pub(in crate::region) base_unix_ns: u64,
    pub(super) boot_id: [u64; 2],
}

/// The part of the header page that is read before the file is mapped.
const HEADER_BYTES: usize = 256;

impl Header {
    pub(super) fn of(caps: Caps, birth: &Birth) -> Self {
        Self {
            caps,
            hash_seed: birth.hash_seed,
            base_unix_ns: birth.unix_ns,
            boot_id: birth.boot_id,
        }
    }

    pub(super) fn read(file: &File, path: &Path) -> Result<Self> {
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
        if word(header::CHECKSUM) != checksum(&covered) {
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
            permits: cap(5),
            joint_keys: cap(6),
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
