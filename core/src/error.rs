//! What can go wrong in the engine, each with what the caller can do about it.

use std::path::PathBuf;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name or key is empty or longer than [`NAME_BYTES_MAX`](crate::key::NAME_BYTES_MAX).
    #[error("{what} is {len} bytes long; names are 1 to {max} bytes")]
    NameLength {
        /// Which argument.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The longest length allowed.
        max: usize,
    },
    /// A number lies outside its bounds.
    #[error("{what} is {value}; it must be {min} to {max}")]
    OutOfRange {
        /// Which argument, with its unit.
        what: &'static str,
        /// What was given.
        value: u64,
        /// The lowest value allowed.
        min: u64,
        /// The highest value allowed.
        max: u64,
    },
    /// A counter would leave the range of its numbers. Nothing was changed.
    #[error(
        "the counter {counter} is at {value}, and with {delta} added it would not be {min} to {max} any \
         more; add less, or swap it for another value",
        min = i64::MIN,
        max = i64::MAX
    )]
    CounterOverflow {
        /// The counter's name, readable.
        counter: String,
        /// Its value.
        value: i64,
        /// What was to be added.
        delta: i64,
    },
    /// The bounds of an addition have no number between them.
    #[error("the bounds are {min} to {max}, which no number lies within; give the lower one first")]
    NoBounds {
        /// The lower bound.
        min: i64,
        /// The upper bound.
        max: i64,
    },
    /// A table is full of entries that are in use.
    #[error(
        "the region has no room for another {what} (cap {cap}, all in use); {}",
        way_out(what)
    )]
    Full {
        /// What there is no room for.
        what: &'static str,
        /// The cap that was reached.
        cap: u64,
    },
    /// This session has reached its share of the region's cap.
    #[error(
        "no room for another {what}: this process already has {used}, its share of the region's cap; {}, or open the \
         region with a larger share",
        less_of(what)
    )]
    ShareExceeded {
        /// What the share is of.
        what: &'static str,
        /// How many this session has.
        used: u64,
    },
    /// The file system has no room for the region to grow, or memory has none for one of this process.
    #[error(
        "there is no room for the region to grow ({source}); free some space in the file system, or memory for a mem: space"
    )]
    NoSpace {
        /// What the system said.
        source: std::io::Error,
    },
    /// The limiter exists with another definition.
    #[error(
        "the limiter {limiter} exists as {existing} and was asked for as {asked}; \
         open it with the same limit, or change it (limiter_updated, SPRAG_UPDATE, update=True, \
         sprag limit --update)"
    )]
    LimitDiffers {
        /// The limiter's name, readable.
        limiter: String,
        /// The definition in the region.
        existing: String,
        /// The definition asked for.
        asked: String,
    },
    /// The joint limiter exists with other limits.
    #[error(
        "the joint limiter {limiter} exists as {existing} and was asked for as {asked}; \
         open it with the same limits in the same order, or use another name"
    )]
    JointLimitsDiffer {
        /// The limiter's name, readable.
        limiter: String,
        /// The limits in the region, in their order.
        existing: String,
        /// The limits asked for.
        asked: String,
    },
    /// The semaphore exists with another capacity.
    #[error(
        "the semaphore {semaphore} exists with {existing} permits and was asked for with {asked}; \
         open it with the same number, or under another name: what it has is known until its room is needed"
    )]
    CapacityDiffers {
        /// The semaphore's name, readable.
        semaphore: String,
        /// How many permits it has.
        existing: u32,
        /// How many were asked for.
        asked: u32,
    },
    /// The concurrency limiter exists with another capacity.
    #[error(
        "the limiter {limiter} allows {existing} at once of each key and was opened with {asked}; open it with \
         the same number, or change it (concurrency_updated, SPRAG_UPDATE, update=True, \
         sprag lock --key KEY --update)"
    )]
    ConcurrencyDiffers {
        /// The limiter's name, readable.
        limiter: String,
        /// How many it allows.
        existing: u64,
        /// How many were asked for.
        asked: u32,
    },
    /// More of a limiter's key was wanted at once than there can be, by now.
    #[error(
        "the limiter {limiter} allows {capacity} at once of each key, so {asked} can never be had; ask for \
         fewer, or raise it (concurrency_updated, SPRAG_UPDATE, update=True, \
         sprag lock --key KEY --update)"
    )]
    AboveCapacity {
        /// The limiter's name, readable.
        limiter: String,
        /// How many it allows now.
        capacity: u32,
        /// How many were asked for.
        asked: u32,
    },
    /// A hold of a semaphore's permits was to be made exclusive or shared, as only a hold of a lock can be.
    #[error(
        "the hold under token {token} is of a semaphore, and only one of a lock can be upgraded or \
         downgraded; release it, and acquire as many permits as are wanted"
    )]
    NotALock {
        /// The token of the hold.
        token: u64,
    },
    /// The limiter was removed while in use.
    #[error("the limiter {limiter} no longer exists; open it again")]
    LimiterGone {
        /// The limiter's name, readable.
        limiter: String,
    },
    /// The limiter's limit has no reservations.
    #[error(
        "this key of the limiter {limiter} is under a sliding window, in which a place cannot be reserved exactly; \
         use a token bucket or a fixed window, or check and come back after retry_after"
    )]
    NoReservations {
        /// The limiter's name, readable.
        limiter: String,
    },
    /// A lock's token can rise no further, or a floor was given past the bound.
    #[error("token {token} is past the highest possible, {max}; recreate the region")]
    TokensExhausted {
        /// The token that was reached.
        token: u64,
        /// The highest possible.
        max: u64,
    },
    /// The region's words contradict each other: it was damaged, or something else writes to it.
    #[error("the region is damaged ({what}); stop its users and remove it with `sprag region rm`")]
    Damaged {
        /// What was found.
        what: &'static str,
    },
    /// The file is not a region.
    #[error("{path} is not a Sprag region ({why}); name another, or move the file away")]
    NotARegion {
        /// The file.
        path: PathBuf,
        /// What gave it away.
        why: &'static str,
    },
    /// The region was made by an incompatible release.
    #[error(
        "{path} has layout {found}, this release reads {supported}; drain it with the release that \
         made it, then remove it with `sprag region rm`"
    )]
    Incompatible {
        /// The file.
        path: PathBuf,
        /// The region's layout version or features.
        found: String,
        /// What this release reads.
        supported: String,
    },
    /// There is no region at the path, and none was to be created.
    #[error("there is no region at {path}; name another, or use this one once, which creates it")]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The region is in use, so that it cannot be replaced or removed.
    #[error(
        "{path} is in use by {sessions} open sessions and {detached} detached holds; \
         stop its users first; release detached holds by their tokens, break them, or let their \
         leases end"
    )]
    InUse {
        /// The file.
        path: PathBuf,
        /// Sessions that are open and alive.
        sessions: u32,
        /// Holds of no session, whose lease still runs.
        detached: u32,
    },
    /// The region handed out so many tokens that those of one made in its place now would go back.
    #[error(
        "the tokens of {path} are ahead of the clock, so that those of a region made there now would go \
         back; remove it in {seconds} s"
    )]
    TokensAhead {
        /// The file.
        path: PathBuf,
        /// How long until they are not any more, in seconds.
        seconds: u64,
    },
    /// Another process has been at work on the region's file for longer than this one waits.
    #[error(
        "another process is {what} and has not finished; try again, and if that does not help, \
         look whether that process is stopped"
    )]
    Contended {
        /// What the other process is doing.
        what: &'static str,
    },
    /// The region's file was removed or replaced while open.
    #[error("{path} was replaced or removed while open; all holds are lost; reopen the space")]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// Something in this process closed the descriptor that keeps its session alive.
    #[error(
        "the descriptor that kept this process's session in {path} alive was closed; all holds are \
         lost; reopen the space, and spare its descriptors when closing others"
    )]
    SessionLost {
        /// The region's file.
        path: PathBuf,
    },
    /// The region's owner or mode is not what it must be.
    #[error("{path} {why}; fix its owner and mode, or name another")]
    Permission {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The system refused an operation on the region's file.
    #[error("cannot {action} {path}: {source}; see to that, or name another place for the region")]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The kernel refused the lock that shows that a session lives.
    #[error(
        "the file system cannot lock a byte of the region ({source}); put it on tmpfs or a local disk"
    )]
    NoKernelLock {
        /// What the system said.
        source: std::io::Error,
    },
    /// The platform or processor lacks something that the engine needs.
    #[error("not supported here: {what}")]
    Unsupported {
        /// What is missing.
        what: &'static str,
    },
}

/// What every region has as many of, whatever its caps, as [`Error::Full`] calls it.
pub(crate) const LIMIT_DEFINITION: &str = "limit definition";
/// See [`LIMIT_DEFINITION`].
pub(crate) const JOINT_LIMITER: &str = "joint limiter";
/// See [`LIMIT_DEFINITION`].
pub(crate) const CALL_OF_SEVERAL: &str = "call of several limits at once";

/// What to do where there is no room for another.
fn way_out(what: &str) -> &'static str {
    match what {
        LIMIT_DEFINITION => {
            "every region has as many, so clear overrides, give those of a limiter the same limit, or use another \
             region"
        }
        JOINT_LIMITER => {
            "every region has as many, which stay, so use one that is there for more keys, or another region"
        }
        CALL_OF_SEVERAL => {
            "every region has as many, so let the processes that are stopped in one go on, or end them"
        }
        _ => "release some, or recreate the region with a higher cap (`sprag region resize`)",
    }
}

/// The engine's result.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// How a session comes to need fewer of what its share is of.
fn less_of(what: &str) -> &'static str {
    match what {
        // It stays for as long as the region does.
        JOINT_LIMITER => "use those that there are",
        LIMIT_DEFINITION => "use limits that there are, or clear overrides",
        _ => "release some",
    }
}
