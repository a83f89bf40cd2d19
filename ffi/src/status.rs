//! # Statuses
//!
//! Every call that can fail returns a sprag_status. 0 is success; what is above 0 is an ordinary outcome and no
//! error; what is below 0 is an error, and has changed nothing unless its text says otherwise. The numbers never
//! change their meaning, and new ones may come: treat an unknown positive one as "not had", an unknown negative
//! one as an error.
//!
//! Any call may fail with SPRAG_ERROR_NULL and SPRAG_ERROR_OUT_OF_RANGE for what it was given, and with
//! SPRAG_ERROR_POISONED and SPRAG_ERROR_PANICKED for a fault of the library; one on a space or on what was opened
//! in it also with SPRAG_ERROR_FORKED, SPRAG_ERROR_REPLACED and SPRAG_ERROR_DAMAGED; one on a hold, an attempt or
//! a decision with SPRAG_ERROR_EMPTY; one that acquires or begins something with SPRAG_ERROR_NO_SESSION and
//! SPRAG_ERROR_TOKENS_EXHAUSTED; one that waits with SPRAG_ERROR_STOPPED; one that may need room in the region
//! with SPRAG_ERROR_NO_SPACE. A call's own text names the others.

use sprag::{EngineError, Error};
use std::ffi::{CStr, c_char};

/// What came of a call.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sprag_status {
    /// Done, granted, or allowed.
    SPRAG_OK = 0,
    /// Not allowed: by a limit, or by the bounds of an addition. Nothing was taken.
    SPRAG_REFUSED = 1,
    /// Not had, at once or within the timeout. Nothing is left behind.
    SPRAG_BUSY = 2,
    /// There is none of this name.
    SPRAG_NONE = 3,
    /// The value was not the expected one. Nothing was changed.
    SPRAG_DIFFERS = 4,
    /// Another attempt at this key is under way.
    SPRAG_IN_PROGRESS = 5,
    /// It was done before.
    SPRAG_DONE = 6,
    /// The last attempt ended unfinished, so that its work may have been done in part.
    SPRAG_UNFINISHED = 7,

    /// A pointer that must not be NULL is.
    SPRAG_ERROR_NULL = -1,
    /// A number, a duration or the length of a name lies outside its bounds, or a value is none of its enumeration.
    SPRAG_ERROR_OUT_OF_RANGE = -2,
    /// What was given as a limit is none: not its text, or outside its bounds.
    SPRAG_ERROR_LIMIT = -3,
    /// The URL is not one of a space, or its place is not usable.
    SPRAG_ERROR_PLACE = -4,
    /// This cannot be had of this thing, of this space, or on this platform.
    SPRAG_ERROR_UNSUPPORTED = -5,
    /// A fault of the library was caught in an earlier call with this handle; close it.
    SPRAG_ERROR_POISONED = -6,
    /// A fault of the library was caught in this call: what it did is not known, and its handle is poisoned.
    SPRAG_ERROR_PANICKED = -7,
    /// This process was forked after the space was opened, and owns nothing in it: open the space again.
    SPRAG_ERROR_FORKED = -8,
    /// The space was opened without a session, and this needs one.
    SPRAG_ERROR_NO_SESSION = -9,
    /// The hold or the attempt is no longer the caller's: its lease ended, or it was taken away.
    SPRAG_ERROR_LOST = -10,
    /// The fence has admitted a higher token: give up what you hold.
    SPRAG_ERROR_STALE = -11,
    /// Owners wait for each other in a circle, and this wait is the one to give up.
    SPRAG_ERROR_DEADLOCK = -12,
    /// Another holder waits to have the lock alone already: release, and acquire anew.
    SPRAG_ERROR_UPGRADE_CONFLICT = -13,
    /// The owner shares the lock with others, and cannot acquire it alone: upgrade, or release first.
    SPRAG_ERROR_OWNER_SHARES = -14,
    /// The owner has acquired the lock more often than can be counted.
    SPRAG_ERROR_TOO_DEEP = -15,
    /// Things of two spaces do not go together.
    SPRAG_ERROR_OTHER_SPACE = -16,
    /// The region has no room, and all in it is in use.
    SPRAG_ERROR_FULL = -17,
    /// This process has its share of the region's room already.
    SPRAG_ERROR_SHARE_EXCEEDED = -18,
    /// The file system, or for mem: memory, has no room for the region to grow.
    SPRAG_ERROR_NO_SPACE = -19,
    /// It exists by another definition: another limit, or another number of permits.
    SPRAG_ERROR_DEFINITION_DIFFERS = -20,
    /// More was asked for than there can be at once.
    SPRAG_ERROR_ABOVE_CAPACITY = -21,
    /// The limiter was removed while in use: open it again.
    SPRAG_ERROR_GONE = -22,
    /// The lock's token can rise no further: recreate the region.
    SPRAG_ERROR_TOKENS_EXHAUSTED = -23,
    /// The counter would leave the range of its numbers.
    SPRAG_ERROR_COUNTER_OVERFLOW = -24,
    /// The region's words contradict each other: stop its users, and remove it.
    SPRAG_ERROR_DAMAGED = -25,
    /// The file is not a region, or not one that this release reads.
    SPRAG_ERROR_INCOMPATIBLE = -26,
    /// There is no region there, and none was to be created.
    SPRAG_ERROR_NOT_FOUND = -27,
    /// The region is in use, so that it cannot be removed or replaced.
    SPRAG_ERROR_IN_USE = -28,
    /// Another process has been at work on the region's file for too long.
    SPRAG_ERROR_CONTENDED = -29,
    /// The region's file was removed or replaced, or its descriptor closed: all holds are lost; open it again.
    SPRAG_ERROR_REPLACED = -30,
    /// The region's owner or mode is not what it must be.
    SPRAG_ERROR_PERMISSION = -31,
    /// The system refused something: its own error is in the details.
    SPRAG_ERROR_SYSTEM = -32,
    /// The hold, the attempt or the decision is empty: used up by an earlier call, or never filled in.
    SPRAG_ERROR_EMPTY = -33,
    /// An error that this release has no number for: its text is in the details.
    SPRAG_ERROR_OTHER = -34,
    /// The wait was stopped by its caller: see sprag_interruptible(). Nothing is held.
    SPRAG_ERROR_STOPPED = -35,
}

use sprag_status::{
    SPRAG_BUSY, SPRAG_DIFFERS, SPRAG_DONE, SPRAG_ERROR_ABOVE_CAPACITY, SPRAG_ERROR_CONTENDED,
    SPRAG_ERROR_COUNTER_OVERFLOW, SPRAG_ERROR_DAMAGED, SPRAG_ERROR_DEADLOCK,
    SPRAG_ERROR_DEFINITION_DIFFERS, SPRAG_ERROR_EMPTY, SPRAG_ERROR_FORKED, SPRAG_ERROR_FULL,
    SPRAG_ERROR_GONE, SPRAG_ERROR_IN_USE, SPRAG_ERROR_INCOMPATIBLE, SPRAG_ERROR_LIMIT,
    SPRAG_ERROR_LOST, SPRAG_ERROR_NO_SESSION, SPRAG_ERROR_NO_SPACE, SPRAG_ERROR_NOT_FOUND,
    SPRAG_ERROR_NULL, SPRAG_ERROR_OTHER, SPRAG_ERROR_OTHER_SPACE, SPRAG_ERROR_OUT_OF_RANGE,
    SPRAG_ERROR_OWNER_SHARES, SPRAG_ERROR_PANICKED, SPRAG_ERROR_PERMISSION, SPRAG_ERROR_PLACE,
    SPRAG_ERROR_POISONED, SPRAG_ERROR_REPLACED, SPRAG_ERROR_SHARE_EXCEEDED, SPRAG_ERROR_STALE,
    SPRAG_ERROR_STOPPED, SPRAG_ERROR_SYSTEM, SPRAG_ERROR_TOKENS_EXHAUSTED, SPRAG_ERROR_TOO_DEEP,
    SPRAG_ERROR_UNSUPPORTED, SPRAG_ERROR_UPGRADE_CONFLICT, SPRAG_IN_PROGRESS, SPRAG_NONE, SPRAG_OK,
    SPRAG_REFUSED, SPRAG_UNFINISHED,
};

/// Every status there is, its name, and what it says where nothing more is known.
const ALL: &[(sprag_status, &CStr)] = &[
    (SPRAG_OK, c"done"),
    (SPRAG_REFUSED, c"refused: nothing was taken"),
    (SPRAG_BUSY, c"not had in time"),
    (SPRAG_NONE, c"there is none of this name"),
    (SPRAG_DIFFERS, c"the value is another one than expected"),
    (SPRAG_IN_PROGRESS, c"another attempt is under way"),
    (SPRAG_DONE, c"it was done before"),
    (SPRAG_UNFINISHED, c"the last attempt ended unfinished"),
    (SPRAG_ERROR_NULL, c"a pointer that must not be NULL is"),
    (SPRAG_ERROR_OUT_OF_RANGE, c"an argument lies outside its bounds"),
    (SPRAG_ERROR_LIMIT, c"this is no limit; write one as 100/minute;burst=20"),
    (SPRAG_ERROR_PLACE, c"the URL or its place cannot be used; name mem:, shm:NAME or shm:/path"),
    (SPRAG_ERROR_UNSUPPORTED, c"not to be had here"),
    (SPRAG_ERROR_POISONED, c"an earlier call with this handle met a fault of the library; close it"),
    (SPRAG_ERROR_PANICKED, c"the call met a fault of the library; close the handle, and report it"),
    (SPRAG_ERROR_FORKED, c"this process was forked after the space was opened; open the space again"),
    (SPRAG_ERROR_NO_SESSION, c"the space was opened without a session, and this needs one"),
    (SPRAG_ERROR_LOST, c"the hold is lost: its lease ended or it was taken away; stop what it protects"),
    (SPRAG_ERROR_STALE, c"the token is stale: the fence has admitted a higher one; give up what you hold"),
    (SPRAG_ERROR_DEADLOCK, c"waiting would never end; release what this owner holds, and acquire anew"),
    (SPRAG_ERROR_UPGRADE_CONFLICT, c"another holder waits to have the lock alone already; release, and acquire anew"),
    (SPRAG_ERROR_OWNER_SHARES, c"the owner shares the lock; upgrade its hold, or release it first"),
    (SPRAG_ERROR_TOO_DEEP, c"the owner has acquired the lock more often than can be counted"),
    (SPRAG_ERROR_OTHER_SPACE, c"it was opened in another space; open it in the one that it is used in"),
    (SPRAG_ERROR_FULL, c"the region has no room; release some, or recreate it with higher caps"),
    (SPRAG_ERROR_SHARE_EXCEEDED, c"this process has its share of the region already; release some, or open it with a larger share"),
    (SPRAG_ERROR_NO_SPACE, c"there is no room for the region to grow; free some space in the file system, or memory for a mem: space"),
    (SPRAG_ERROR_DEFINITION_DIFFERS, c"it exists by another definition; open it by that one, or with SPRAG_UPDATE"),
    (SPRAG_ERROR_ABOVE_CAPACITY, c"more was asked for than there can be at once"),
    (SPRAG_ERROR_GONE, c"the limiter no longer exists; open it again"),
    (SPRAG_ERROR_TOKENS_EXHAUSTED, c"the token is past the highest possible; recreate the region"),
    (SPRAG_ERROR_COUNTER_OVERFLOW, c"the counter would leave the range of its numbers; add less"),
    (SPRAG_ERROR_DAMAGED, c"the region is damaged; stop its users and remove it"),
    (SPRAG_ERROR_INCOMPATIBLE, c"the file is not a region that this release reads"),
    (SPRAG_ERROR_NOT_FOUND, c"there is no region there"),
    (SPRAG_ERROR_IN_USE, c"the region is in use; stop its users first"),
    (SPRAG_ERROR_CONTENDED, c"another process is at work on the region's file; try again"),
    (SPRAG_ERROR_REPLACED, c"the region was replaced, removed or closed; all holds are lost; open it again"),
    (SPRAG_ERROR_PERMISSION, c"the region's owner or mode is not what it must be"),
    (SPRAG_ERROR_SYSTEM, c"the system refused"),
    (SPRAG_ERROR_EMPTY, c"it is empty: used up by an earlier call, or never filled in"),
    (SPRAG_ERROR_OTHER, c"another error"),
    (SPRAG_ERROR_STOPPED, c"the wait was stopped by its caller; nothing is held"),
];

/// What a status means, as a sentence in English that lives as long as the library is loaded; for a number that is
/// none, says so. Never NULL. What was wrong in one call, its sprag_error tells.
///
/// Any thread; async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn sprag_status_text(status: i32) -> *const c_char {
    let known = ALL.iter().find(|(known, _)| *known as i32 == status);
    known
        .map_or(c"no status of this release", |(_, text)| *text)
        .as_ptr()
}

impl From<&Error> for sprag_status {
    fn from(error: &Error) -> Self {
        match error {
            Error::Engine(error) => error.into(),
            Error::Place(_) => SPRAG_ERROR_PLACE,
            Error::Host(_) | Error::Thread { .. } => SPRAG_ERROR_SYSTEM,
            Error::Limit(_) => SPRAG_ERROR_LIMIT,
            Error::Stale { .. } => SPRAG_ERROR_STALE,
            Error::Forked => SPRAG_ERROR_FORKED,
            Error::NoSession => SPRAG_ERROR_NO_SESSION,
            Error::Lost { .. } | Error::AttemptLost { .. } => SPRAG_ERROR_LOST,
            Error::UpgradeConflict { .. } => SPRAG_ERROR_UPGRADE_CONFLICT,
            Error::Deadlock { .. } => SPRAG_ERROR_DEADLOCK,
            Error::OwnerShares { .. } => SPRAG_ERROR_OWNER_SHARES,
            Error::Duration { .. } => SPRAG_ERROR_OUT_OF_RANGE,
            Error::TooDeep { .. } => SPRAG_ERROR_TOO_DEEP,
            Error::OtherSpace { .. } => SPRAG_ERROR_OTHER_SPACE,
            Error::Stopped => SPRAG_ERROR_STOPPED,
            Error::NotHere { .. } => SPRAG_ERROR_UNSUPPORTED,
            _ => SPRAG_ERROR_OTHER,
        }
    }
}

impl From<&EngineError> for sprag_status {
    fn from(error: &EngineError) -> Self {
        match error {
            EngineError::NameLength { .. }
            | EngineError::OutOfRange { .. }
            | EngineError::NoBounds { .. } => SPRAG_ERROR_OUT_OF_RANGE,
            EngineError::CounterOverflow { .. } => SPRAG_ERROR_COUNTER_OVERFLOW,
            EngineError::Full { .. } => SPRAG_ERROR_FULL,
            EngineError::ShareExceeded { .. } => SPRAG_ERROR_SHARE_EXCEEDED,
            EngineError::NoSpace { .. } => SPRAG_ERROR_NO_SPACE,
            EngineError::LimitDiffers { .. }
            | EngineError::JointLimitsDiffer { .. }
            | EngineError::CapacityDiffers { .. }
            | EngineError::ConcurrencyDiffers { .. } => SPRAG_ERROR_DEFINITION_DIFFERS,
            EngineError::AboveCapacity { .. } => SPRAG_ERROR_ABOVE_CAPACITY,
            EngineError::NotALock { .. }
            | EngineError::NoReservations { .. }
            | EngineError::Unsupported { .. } => SPRAG_ERROR_UNSUPPORTED,
            EngineError::LimiterGone { .. } => SPRAG_ERROR_GONE,
            EngineError::TokensExhausted { .. } => SPRAG_ERROR_TOKENS_EXHAUSTED,
            EngineError::Damaged { .. } => SPRAG_ERROR_DAMAGED,
            EngineError::NotARegion { .. } | EngineError::Incompatible { .. } => {
                SPRAG_ERROR_INCOMPATIBLE
            }
            EngineError::NotFound { .. } => SPRAG_ERROR_NOT_FOUND,
            EngineError::InUse { .. } | EngineError::TokensAhead { .. } => SPRAG_ERROR_IN_USE,
            EngineError::Contended { .. } => SPRAG_ERROR_CONTENDED,
            EngineError::Replaced { .. } | EngineError::SessionLost { .. } => SPRAG_ERROR_REPLACED,
            EngineError::Permission { .. } => SPRAG_ERROR_PERMISSION,
            EngineError::Io { .. } | EngineError::NoKernelLock { .. } => SPRAG_ERROR_SYSTEM,
            _ => SPRAG_ERROR_OTHER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_never_change_their_meaning() {
        // Frozen: lines may be added, none may change.
        let frozen = [
            (0, "SPRAG_OK"),
            (1, "SPRAG_REFUSED"),
            (2, "SPRAG_BUSY"),
            (3, "SPRAG_NONE"),
            (4, "SPRAG_DIFFERS"),
            (5, "SPRAG_IN_PROGRESS"),
            (6, "SPRAG_DONE"),
            (7, "SPRAG_UNFINISHED"),
            (-1, "SPRAG_ERROR_NULL"),
            (-2, "SPRAG_ERROR_OUT_OF_RANGE"),
            (-3, "SPRAG_ERROR_LIMIT"),
            (-4, "SPRAG_ERROR_PLACE"),
            (-5, "SPRAG_ERROR_UNSUPPORTED"),
            (-6, "SPRAG_ERROR_POISONED"),
            (-7, "SPRAG_ERROR_PANICKED"),
            (-8, "SPRAG_ERROR_FORKED"),
            (-9, "SPRAG_ERROR_NO_SESSION"),
            (-10, "SPRAG_ERROR_LOST"),
            (-11, "SPRAG_ERROR_STALE"),
            (-12, "SPRAG_ERROR_DEADLOCK"),
            (-13, "SPRAG_ERROR_UPGRADE_CONFLICT"),
            (-14, "SPRAG_ERROR_OWNER_SHARES"),
            (-15, "SPRAG_ERROR_TOO_DEEP"),
            (-16, "SPRAG_ERROR_OTHER_SPACE"),
            (-17, "SPRAG_ERROR_FULL"),
            (-18, "SPRAG_ERROR_SHARE_EXCEEDED"),
            (-19, "SPRAG_ERROR_NO_SPACE"),
            (-20, "SPRAG_ERROR_DEFINITION_DIFFERS"),
            (-21, "SPRAG_ERROR_ABOVE_CAPACITY"),
            (-22, "SPRAG_ERROR_GONE"),
            (-23, "SPRAG_ERROR_TOKENS_EXHAUSTED"),
            (-24, "SPRAG_ERROR_COUNTER_OVERFLOW"),
            (-25, "SPRAG_ERROR_DAMAGED"),
            (-26, "SPRAG_ERROR_INCOMPATIBLE"),
            (-27, "SPRAG_ERROR_NOT_FOUND"),
            (-28, "SPRAG_ERROR_IN_USE"),
            (-29, "SPRAG_ERROR_CONTENDED"),
            (-30, "SPRAG_ERROR_REPLACED"),
            (-31, "SPRAG_ERROR_PERMISSION"),
            (-32, "SPRAG_ERROR_SYSTEM"),
            (-33, "SPRAG_ERROR_EMPTY"),
            (-34, "SPRAG_ERROR_OTHER"),
            (-35, "SPRAG_ERROR_STOPPED"),
        ];
        let now: Vec<_> = ALL
            .iter()
            .map(|(status, _)| (*status as i32, format!("{status:?}")))
            .collect();
        let frozen: Vec<_> = frozen
            .iter()
            .map(|(number, name)| (*number, (*name).to_owned()))
            .collect();
        assert_eq!(now, frozen);
    }

    #[test]
    fn a_number_that_is_none_has_a_text_too() {
        for number in [i32::MIN, -1_000, 1_000, i32::MAX] {
            let text = sprag_status_text(number);
            // SAFETY: a text of this library's.
            let text = unsafe { CStr::from_ptr(text) };
            assert_eq!(text, c"no status of this release");
        }
    }
}
