use super::*;
use crate::counter::{
    sprag_counter_close, sprag_counter_get, sprag_counter_open, sprag_counter_swap,
};
use crate::space::{sprag_space_close, sprag_space_open};
use crate::status::sprag_status::{
    SPRAG_ERROR_IN_USE, SPRAG_ERROR_NOT_FOUND, SPRAG_ERROR_NULL, SPRAG_ERROR_OUT_OF_RANGE,
    SPRAG_ERROR_PLACE, SPRAG_ERROR_UNSUPPORTED,
};
use crate::testing::{Scene, at, fails, works};
use std::ffi::{CStr, CString};
use std::mem::zeroed;
use std::path::PathBuf;
use std::ptr::{from_mut, null, null_mut};

/// A region's file, in a directory of its own.
struct File {
    path: PathBuf,
    url: CString,
    _directory: tempfile::TempDir,
}

impl File {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("region");
        Self {
            url: CString::new(format!("shm:{}", path.display())).unwrap(),
            path,
            _directory: directory,
        }
    }

    fn open(&self) -> *mut sprag_space {
        let (mut space, url) = (null_mut(), self.url.as_ptr());
        // SAFETY: numbers and a pointer, of which zeros are a value; and variables of this function's.
        unsafe {
            let mut options: sprag_space_options = zeroed();
            options.size = size_of::<sprag_space_options>();
            options.objects = 1_000;
            let options = &raw const options;
            works(|error| sprag_space_open(url, options, &raw mut space, error));
        }
        space
    }
}

/// What a probe noted.
#[derive(Default)]
struct Seen {
    path: String,
    live_sessions: u32,
    objects: u32,
    waiters: u32,
}

extern "C" fn on_region(region: *const sprag_region_info, context: *mut c_void) -> bool {
    // SAFETY: what the library shows, and what the test that asked keeps for it.
    unsafe {
        let region = &*region;
        assert_eq!(region.size, size_of::<sprag_region_info>());
        assert!(region.allocated_bytes <= region.len_bytes && region.created_unix_ns > 0);
        assert!(!region.is_group_shared);
        *context.cast::<Seen>() = Seen {
            path: CStr::from_ptr(region.path).to_string_lossy().into_owned(),
            live_sessions: region.live_sessions,
            objects: region.objects,
            waiters: region.waiters,
        };
    }
    false
}

fn probed(url: &CStr) -> Seen {
    let mut seen = Seen::default();
    let (url, context) = (url.as_ptr(), from_mut(&mut seen).cast());
    // SAFETY: variables of this function's.
    works(|error| unsafe { sprag_region_probe(url, 0, Some(on_region), context, error) });
    seen
}

#[test]
fn a_region_is_probed_and_removed() {
    let file = File::new();
    let url = file.url.as_ptr();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let space = file.open();
        let seen = probed(&file.url);
        assert_eq!((seen.live_sessions, seen.objects), (1, 1_000));
        assert_eq!(seen.path, file.path.display().to_string());
        let in_use = fails(|error| sprag_region_remove(url, 0, error));
        assert_eq!(in_use, (SPRAG_ERROR_IN_USE, None));
        works(|error| sprag_region_remove(url, SPRAG_EVEN_IF_IN_USE, error));
        assert!(!file.path.exists());
        sprag_space_close(space);
        let gone = fails(|error| sprag_region_remove(url, 0, error));
        assert_eq!(gone, (SPRAG_ERROR_NOT_FOUND, None));
    }
}

extern "C" fn on_file(file: *const sprag_region_file, context: *mut c_void) -> bool {
    // SAFETY: what the library shows, and the list of the test that asked.
    unsafe {
        let file = &*file;
        assert_eq!(file.size, size_of::<sprag_region_file>());
        assert!(file.bytes > 0 && file.modified_unix_ns > 0);
        let path = CStr::from_ptr(file.path).to_string_lossy().into_owned();
        assert!(std::path::Path::new(&path).exists());
        let name = CStr::from_ptr(file.name).to_string_lossy().into_owned();
        (*context.cast::<Vec<String>>()).push(name);
    }
    true
}

#[test]
fn the_regions_of_this_user_are_listed_by_name() {
    let directory = tempfile::tempdir().unwrap();
    // SAFETY: in this program the environment is only asked through the standard library, which locks it; and no
    // other test asks for this variable.
    unsafe { std::env::set_var("SPRAG_DIR", directory.path()) };
    let list = || {
        let mut names = Vec::<String>::new();
        let context = from_mut(&mut names).cast();
        // SAFETY: a list of this test's own.
        works(|error| unsafe { sprag_region_each(Some(on_file), context, error) });
        names
    };
    assert_eq!(list(), Vec::<String>::new());
    for url in [c"shm:b", c"shm:a"] {
        let mut space = null_mut();
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            works(|error| sprag_space_open(url.as_ptr(), null(), &raw mut space, error));
            sprag_space_close(space);
        }
    }
    assert_eq!(list(), ["a", "b"]);
}

#[test]
fn a_region_is_resized_and_keeps_what_it_must() {
    let file = File::new();
    let url = file.url.as_ptr();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let mut options: sprag_space_options = zeroed();
        options.size = size_of::<sprag_space_options>();
        options.waiters = 8;
        let (name, mut number) = (b"stock".as_ptr().cast(), 0);
        let counter = |space| {
            let mut counter = null_mut();
            works(|error| sprag_counter_open(space, name, 5, &raw mut counter, error));
            counter
        };
        let space = file.open();
        let before = counter(space);
        works(|error| sprag_counter_swap(before, 7, null_mut(), error));
        let in_use = fails(|error| sprag_region_resize(url, &raw const options, error));
        assert_eq!(in_use, (SPRAG_ERROR_IN_USE, None));
        sprag_counter_close(before);
        sprag_space_close(space);

        works(|error| sprag_region_resize(url, &raw const options, error));
        let seen = probed(&file.url);
        assert_eq!(
            (seen.live_sessions, seen.objects, seen.waiters),
            (0, 1_000, 8)
        );
        let space = file.open();
        let after = counter(space);
        works(|error| sprag_counter_get(after, &raw mut number, error));
        assert_eq!(number, 7);
        sprag_counter_close(after);
        sprag_space_close(space);

        options.waiters = u32::MAX;
        let wrong = fails(|error| sprag_region_resize(url, &raw const options, error));
        assert_eq!(wrong.0, SPRAG_ERROR_OUT_OF_RANGE);
        options.waiters = 8;
        options.share_percent = 50;
        let wrong = fails(|error| sprag_region_resize(url, &raw const options, error));
        assert_eq!(wrong, (SPRAG_ERROR_UNSUPPORTED, None));
    }
}

#[test]
fn nothing_is_found_in_a_region_that_is_whole() {
    extern "C" fn on_finding(finding: *const c_char, _: *mut c_void) -> bool {
        // SAFETY: a text of the library's.
        panic!("{:?}", unsafe { CStr::from_ptr(finding) })
    }
    let scene = Scene::new();
    let mut count = 77;
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        works(|error| {
            let (visit, count) = (Some(on_finding as extern "C" fn(_, _) -> _), &raw mut count);
            sprag_region_check(scene.space, visit, null_mut(), count, error)
        });
        assert_eq!(count, 0);
        let nowhere =
            fails(|error| sprag_region_check(scene.space, None, null_mut(), null_mut(), error));
        assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "visit"));
    }
}

#[test]
fn what_is_wrong_is_named() {
    // SAFETY: as the contract asks: texts of this test's own.
    unsafe {
        let probe = |url, flags| {
            let visit = Some(on_region as extern "C" fn(_, _) -> _);
            fails(|error| sprag_region_probe(url, flags, visit, null_mut(), error))
        };
        assert_eq!(probe(null(), 0), at(SPRAG_ERROR_NULL, "url"));
        assert_eq!(probe(c"here".as_ptr(), 0), (SPRAG_ERROR_PLACE, None));
        assert_eq!(probe(c"mem:".as_ptr(), 0), (SPRAG_ERROR_UNSUPPORTED, None));
        assert_eq!(
            probe(c"mem:".as_ptr(), 1),
            at(SPRAG_ERROR_OUT_OF_RANGE, "flags")
        );
        let wrong = fails(|error| sprag_region_remove(c"mem:".as_ptr(), 1, error));
        assert_eq!(wrong, at(SPRAG_ERROR_OUT_OF_RANGE, "flags"));
        let nowhere = fails(|error| sprag_region_each(None, null_mut(), error));
        assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "visit"));
    }
}
