//! Regions where they can be had: what the library tells of them, in the header's structs.

use super::{sprag_region_file, sprag_region_info};
use crate::border::{Outcome, give};
use crate::duration::SPRAG_UNKNOWN;
use crate::error::text;
use crate::space::sprag_space_options;
use crate::status::sprag_status::SPRAG_OK;
use sprag::{Space, region};
use std::ffi::{CString, c_char};
use std::path::Path;
use std::time::UNIX_EPOCH;

pub(super) fn each(visit: &dyn Fn(*const sprag_region_file) -> bool) -> Outcome {
    let files = region::list()?;
    files.iter().all(|file| {
        let (name, path) = (text(file.name.to_string()), path_text(&file.path));
        let modified = file
            .modified
            .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified_ns = modified.and_then(|since| u64::try_from(since.as_nanos()).ok());
        visit(&sprag_region_file {
            size: size_of::<sprag_region_file>(),
            name: name.as_ptr(),
            path: path.as_ptr(),
            bytes: file.bytes,
            modified_unix_ns: modified_ns.unwrap_or(SPRAG_UNKNOWN),
        })
    });
    Ok(SPRAG_OK)
}

pub(super) fn probe(
    url: &str,
    group_shared: bool,
    visit: &dyn Fn(*const sprag_region_info) -> bool,
) -> Outcome {
    let info = region::probe(url, group_shared)?;
    let path = path_text(&info.path);
    visit(&sprag_region_info {
        size: size_of::<sprag_region_info>(),
        path: path.as_ptr(),
        allocated_bytes: info.allocated_bytes,
        len_bytes: info.len_bytes,
        created_unix_ns: info.created_unix_ns,
        layout_version: info.layout_version,
        live_sessions: info.sessions,
        owner_uid: info.owner,
        is_group_shared: info.group_shared,
        reserved: [0; 3],
        objects: info.caps.objects,
        limiter_keys: info.caps.limiter_keys,
        joint_keys: info.caps.joint_keys,
        sessions: info.caps.sessions,
        waiters: info.caps.waiters,
        permits: info.caps.permits,
        key_chunks: info.caps.key_chunks,
        reserved_word: 0,
    });
    Ok(SPRAG_OK)
}

pub(super) fn remove(url: &str, group_shared: bool, even_if_in_use: bool) -> Outcome {
    region::remove(url, group_shared, even_if_in_use)?;
    Ok(SPRAG_OK)
}

pub(super) fn resize(url: &str, group_shared: bool, options: &sprag_space_options) -> Outcome {
    let before = region::probe(url, group_shared)?.caps;
    region::resize(url, group_shared, options.caps(before))?;
    Ok(SPRAG_OK)
}

/// # Safety
///
/// `count` is NULL or may be written.
#[expect(
    clippy::unnecessary_wraps,
    reason = "where there are no regions, it fails"
)]
pub(super) unsafe fn check(
    space: &Space,
    visit: &dyn Fn(*const c_char) -> bool,
    count: *mut usize,
) -> Outcome {
    let findings = region::check(space).findings;
    findings
        .iter()
        .all(|finding| visit(text(finding.to_string()).as_ptr()));
    // SAFETY: by this function's contract.
    unsafe { give(count, findings.len()) };
    Ok(SPRAG_OK)
}

/// A path as the system takes it; no path has a zero byte.
fn path_text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_encoded_bytes()).unwrap_or_default()
}
