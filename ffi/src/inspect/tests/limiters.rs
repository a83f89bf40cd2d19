use super::{note, seen, text};
use crate::info::{sprag_joint_limiter_info, sprag_limiter_info, sprag_override_info};
use crate::inspect::{
    sprag_space_each_joint_limiter, sprag_space_each_limiter, sprag_space_each_override,
};
use crate::joint::{sprag_joint_limiter_close, sprag_joint_limiter_open};
use crate::limiter::{sprag_limiter_check, sprag_limiter_close};
use crate::overrides::sprag_limiter_set_override;
use crate::testing::{Scene, limiter, works};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};

/// A text that the library shows.
///
/// # Safety
///
/// It ends with a zero byte.
unsafe fn limit_text(limit: *const c_char) -> String {
    // SAFETY: a text of the library's own.
    unsafe { CStr::from_ptr(limit) }
        .to_string_lossy()
        .into_owned()
}

#[test]
fn limiters_overrides_and_joint_limiters_are_shown() {
    extern "C" fn on_limiter(shown: *const sprag_limiter_info, context: *mut c_void) -> bool {
        // SAFETY: what the library shows, and the notes of the test that asked.
        unsafe {
            let shown = &*shown;
            let (name, limit) = (text(shown.name), limit_text(shown.limit));
            note(context, format!("{name} {limit} {}", shown.keys))
        }
    }
    extern "C" fn on_override(shown: *const sprag_override_info, context: *mut c_void) -> bool {
        // SAFETY: what the library shows, and the notes of the test that asked.
        unsafe {
            let (limiter, key) = (text((*shown).limiter), text((*shown).key));
            note(
                context,
                format!("{limiter} {key} {}", limit_text((*shown).limit)),
            )
        }
    }
    extern "C" fn on_joint(shown: *const sprag_joint_limiter_info, context: *mut c_void) -> bool {
        // SAFETY: what the library shows, and the notes of the test that asked.
        unsafe {
            let shown = &*shown;
            let limits = std::slice::from_raw_parts(shown.limits, shown.limit_count);
            let limits: Vec<_> = limits.iter().map(|limit| limit_text(*limit)).collect();
            note(
                context,
                format!("{} {limits:?} {}", text(shown.name), shown.keys),
            )
        }
    }
    let scene = Scene::new();
    let api = limiter(&scene, "api", c"2/hour");
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let (ann, limit) = (b"ann".as_ptr().cast(), c"5/hour".as_ptr());
        works(|error| sprag_limiter_check(api, ann, 3, 1, null_mut(), error));
        works(|error| sprag_limiter_set_override(api, ann, 3, limit, error));
        let limits = [c"2/second".as_ptr(), c"100/hour".as_ptr()];
        let mut joint = null_mut();
        works(|error| {
            let (limits, to) = (limits.as_ptr(), &raw mut joint);
            sprag_joint_limiter_open(scene.space, ann, 3, limits, 2, to, error)
        });
        let space = scene.space;
        let notes = seen(|to| {
            works(|error| sprag_space_each_limiter(space, null(), 0, Some(on_limiter), to, error));
            works(|error| {
                sprag_space_each_override(space, null(), 0, Some(on_override), to, error)
            });
            works(|error| {
                sprag_space_each_joint_limiter(space, null(), 0, Some(on_joint), to, error)
            });
            let other = b"b".as_ptr().cast();
            works(|error| sprag_space_each_limiter(space, other, 1, Some(on_limiter), to, error));
            works(|error| sprag_space_each_override(space, other, 1, Some(on_override), to, error));
        });
        let joint_line = "ann [\"2/second\", \"100/hour\"] 0";
        assert_eq!(notes, ["api 2/hour 1", "api ann 5/hour", joint_line]);
        sprag_joint_limiter_close(joint);
        sprag_limiter_close(api);
    }
}
