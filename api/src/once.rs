//! Onces: idempotency keys. Owns the handles; what becomes of a key is the engine's to decide.

use crate::lock::check_time;
use crate::metrics::{Often, Seldom};
use crate::share::Share;
use crate::{Error, Result, Space};
use sprag_core::Name;
use sprag_core::once::{self, Progress};
use sprag_core::readable::Readable;
use std::fmt;
use std::time::Duration;

/// A handle on an idempotency key. Made by [`Space::once`]; cheap to make, for a call or for good.
///
/// The first caller to [begin](Self::begin) owns the key until a deadline, and may store a small result.
/// Those who come meanwhile are told that it is in progress, those who come later are given the
/// result, for as long as it is kept.
///
/// ```
/// use sprag::{Begun, Space};
/// use std::time::Duration;
///
/// # fn charge(is_retry: bool) -> sprag::Result<&'static [u8]> { Ok(b"receipt 4711") }
/// fn charge_once(space: &Space, order: &str) -> sprag::Result<Option<Vec<u8>>> {
///     match space.once(order)?.begin(Duration::from_secs(60))? {
///         Begun::Started(mut attempt) => {
///             // After one that ended unfinished, the card may have been charged already.
///             let receipt = charge(attempt.is_after_unfinished())?;
///             attempt.finish(receipt, Duration::from_hours(24))?;
///             Ok(Some(receipt.to_vec()))
///         }
///         Begun::Done(receipt) => Ok(Some(receipt)),
///         Begun::InProgress { .. } => Ok(None), // come back later
///     }
/// }
///
/// let space = Space::open("mem:")?;
/// let first = charge_once(&space, "order 42")?;
/// assert_eq!(charge_once(&space, "order 42")?, first);
/// # Ok::<(), sprag::Error>(())
/// ```
#[derive(Clone)]
pub struct Once<'s> {
    space: Share<'s>,
    name: Name,
}

/// What came of a beginning.
#[derive(Debug)]
pub enum Begun<'s> {
    /// The caller owns the key now.
    Started(Attempt<'s>),
    /// Another attempt is under way.
    InProgress {
        /// The owner's process id in its own namespace; `None` if it is detached, or not known any more.
        holder_pid: Option<u32>,
        /// What is left until the deadline.
        deadline_left: Duration,
    },
    /// It was done before; the result.
    Done(Vec<u8>),
}

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnceStatus {
    /// Nobody began, or whoever did abandoned it, or the result is no longer kept.
    New,
    /// An attempt is under way.
    InProgress {
        /// The owner's process id in its own namespace; `None` if it is detached, or not known any more.
        holder_pid: Option<u32>,
        /// What is left until the deadline.
        deadline_left: Duration,
    },
    /// It was done.
    Done {
        /// The result.
        result: Vec<u8>,
        /// For how much longer it is kept at least.
        kept_left: Duration,
    },
    /// The last attempt ended unfinished, so that its work may have been done in part: its deadline
    /// passed, its owner died, or it was dropped. It stores nothing any more. Remembered for an hour at
    /// least, and then until its room is needed.
    Unfinished,
}

/// A key as an inspection saw it.
#[derive(Clone, PartialEq, Eq)]
pub struct OnceInfo {
    /// The key.
    pub name: Vec<u8>,
    /// What is known of it.
    pub status: OnceStatus,
}

impl fmt::Debug for OnceInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OnceInfo")
            .field("name", &Readable(&self.name))
            .field("status", &self.status)
            .finish()
    }
}

fn pid(progress: &Progress) -> Option<u32> {
    progress.process.map(|process| process.pid)
}

impl From<once::OnceStatus> for OnceStatus {
    fn from(status: once::OnceStatus) -> Self {
        match status {
            once::OnceStatus::New => Self::New,
            once::OnceStatus::InProgress(progress) => Self::InProgress {
                holder_pid: pid(&progress),
                deadline_left: Duration::from_nanos(progress.left_ns),
            },
            once::OnceStatus::Done { result, left_ns } => Self::Done {
                result,
                kept_left: Duration::from_nanos(left_ns),
            },
            once::OnceStatus::Unfinished => Self::Unfinished,
        }
    }
}

impl<'s> Once<'s> {
    #[inline]
    pub(crate) fn new(space: &'s Space, name: &[u8]) -> Result<Self> {
        let name = space.inner.engine.once_name(name)?;
        Ok(Self {
            space: Share::borrow(&space.inner),
            name,
        })
    }

    /// The same key, with a share of the space instead of a borrow of it: for a struct, a thread or a task.
    pub fn into_owned(self) -> Once<'static> {
        Once {
            space: self.space.to_owned(),
            name: self.name,
        }
    }

    /// The key.
    pub fn name(&self) -> Vec<u8> {
        self.name.to_vec()
    }

    /// Begins, if the key is new or its last attempt is over: the caller owns it for `ttl`, 1 ms to 366 days.
    /// An attempt is over when it is finished, abandoned or dropped, when its deadline has passed, and
    /// when its process ended. Costs a few dozen nanoseconds where the key is known, and allocates
    /// nothing but the result.
    ///
    /// # Errors
    ///
    /// [`Error::Duration`]; [`Error::Forked`], [`Error::NoSession`], and [`Error::Engine`] when the
    /// region has no room for another key, was replaced or is damaged.
    #[inline(always)]
    pub fn begin(&self, ttl: Duration) -> Result<Begun<'s>> {
        match self.result_if_done() {
            Some(result) => {
                check_time("ttl", ttl)?;
                self.space.counts.often(Often::OnceDone);
                Ok(Begun::Done(result))
            }
            None => self.begin_slowly(ttl).map_err(|error| *error),
        }
    }

    /// The common case, in line wherever it is called, so that a handle that was just made is not handed over
    /// through memory.
    #[inline(always)]
    fn result_if_done(&self) -> Option<Vec<u8>> {
        let inner = &*self.space;
        inner.check_process().ok()?;
        let now_ns = inner.cautious_ns();
        if inner.is_to_look(now_ns) {
            return None;
        }
        inner.engine.result_if_done(&self.name, now_ns)
    }

    #[inline(never)]
    fn begin_slowly(&self, ttl: Duration) -> Result<Begun<'s>, Box<Error>> {
        let ttl_ns = check_time("ttl", ttl)?;
        let inner = &*self.space;
        inner.check_process()?;
        let now_ns = inner.cautious_ns();
        inner.check_in_place_now_and_then(now_ns)?;
        let begun = inner
            .engine
            .begin(&self.name, inner.session, now_ns, ttl_ns)
            .map_err(Error::from)?;
        Ok(match begun {
            once::Begun::Started(attempt) => {
                inner.counts.seldom(Seldom::OnceStarted);
                Begun::Started(Attempt {
                    space: self.space.clone(),
                    name: self.name.clone(),
                    granted: Some(attempt),
                    token: attempt.token,
                    ttl_ns,
                    deadline_ns: now_ns + ttl_ns,
                })
            }
            once::Begun::InProgress(progress) => {
                inner.counts.seldom(Seldom::OnceInProgress);
                Begun::InProgress {
                    holder_pid: pid(&progress),
                    deadline_left: Duration::from_nanos(progress.left_ns),
                }
            }
            once::Begun::Done(result) => {
                inner.counts.often(Often::OnceDone);
                Begun::Done(result)
            }
        })
    }

    /// What is known of the key. Creates nothing, and needs no session.
    pub fn status(&self) -> Result<OnceStatus> {
        let inner = &*self.space;
        inner.check_process()?;
        let now_ns = inner.cautious_ns();
        inner.check_in_place_to_look(now_ns)?;
        Ok(inner.engine.once_status(&self.name, now_ns)?.into())
    }

    /// [`Attempt::finish`] by the attempt's token, whoever began it: the other half of
    /// [`Attempt::detach`].
    pub fn finish_token(&self, token: u64, result: &[u8], keep_for: Duration) -> Result<()> {
        let keep_ns = check_time("keep_for", keep_for)?;
        let inner = &*self.space;
        inner.check_usable()?;
        let (by, now_ns) = (inner.session, inner.precise_ns());
        let is_stored = inner
            .engine
            .finish_by_name(&self.name, token, by, result, now_ns, keep_ns)?;
        self.check_stands(is_stored, token)
    }

    /// [`Attempt::abandon`] by the attempt's token, whoever began it.
    pub fn abandon_token(&self, token: u64) -> Result<()> {
        let inner = &*self.space;
        inner.check_process()?;
        inner.check_in_place()?;
        let now_ns = inner.precise_ns();
        let is_freed = inner.engine.abandon_by_name(&self.name, token, now_ns);
        self.check_stands(is_freed, token)
    }

    /// [`Attempt::extend`] by the attempt's token, whoever began it.
    pub fn extend_token(&self, token: u64, ttl: Duration) -> Result<()> {
        let ttl_ns = check_time("ttl", ttl)?;
        let inner = &*self.space;
        inner.check_process()?;
        inner.check_in_place()?;
        let now_ns = inner.precise_ns();
        let extended = inner
            .engine
            .extend_by_name(&self.name, token, now_ns, ttl_ns)?;
        self.check_stands(extended.is_some(), token)
    }

    fn check_stands(&self, does_stand: bool, token: u64) -> Result<()> {
        if does_stand {
            Ok(())
        } else {
            Err(Error::attempt_lost(&self.name(), token))
        }
    }
}

impl fmt::Debug for Once<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Once")
            .field("name", &Readable(&self.name()))
            .finish_non_exhaustive()
    }
}

/// An attempt of one's own at a key: what [`Once::begin`] starts.
///
/// It ends by [`finish`](Self::finish) or [`abandon`](Self::abandon). Dropped without either, by an early
/// return say, it frees the key at once, and the next attempt is told that one ended unfinished.
///
/// One that is forgotten ([`std::mem::forget`], a leak) ends with its deadline or its space.
#[must_use = "dropping an attempt abandons it as unfinished"]
pub struct Attempt<'s> {
    space: Share<'s>,
    name: Name,
    /// `None` once nothing is left to end.
    granted: Option<once::Attempt>,
    token: u64,
    ttl_ns: u64,
    /// Region time until which the owner may take the key for its own.
    deadline_ns: u64,
}

impl Attempt<'_> {
    /// The same attempt, with a share of the space instead of a borrow of it: for a struct, a thread or a
    /// task.
    pub fn into_owned(mut self) -> Attempt<'static> {
        Attempt {
            space: self.space.to_owned(),
            name: self.name.clone(),
            granted: self.granted.take(),
            token: self.token,
            ttl_ns: self.ttl_ns,
            deadline_ns: self.deadline_ns,
        }
    }

    /// The attempt's token: higher than that of every attempt at this key before. A
    /// [`Fence`](crate::Fence) admits it as it does a lock's, which stops what a late owner still writes.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Whether an attempt before this one ended unfinished, so that its work may have been done in part: its
    /// deadline passed, its owner died, or it was dropped. Stays so over attempts that are abandoned,
    /// until one is finished. Remembered for an hour at least, and then until its room is needed.
    pub fn is_after_unfinished(&self) -> bool {
        self.granted
            .is_some_and(|attempt| attempt.is_after_unfinished)
    }

    /// Whether the deadline is still to come, by the owner's own clock: a clock read, no shared memory. Errs
    /// towards `false` near the deadline. [`finish`](Self::finish) may still fail.
    pub fn is_valid(&self) -> bool {
        self.granted.is_some() && self.space.is_in_lease(self.deadline_ns)
    }

    /// Whether the key is still this attempt's, by the engine's word: also notices that somebody ended it by
    /// its token, and that the region was removed.
    pub fn is_held(&self) -> bool {
        let inner = &*self.space;
        self.is_valid()
            && self
                .granted
                .is_some_and(|attempt| inner.engine.is_attempt_held(&attempt, inner.precise_ns()))
            && inner.check_in_place().is_ok()
    }

    /// What is left until the deadline by the owner's own clock; zero once it has passed.
    pub fn deadline_left(&self) -> Duration {
        Duration::from_nanos(self.deadline_ns.saturating_sub(self.space.precise_ns()))
    }

    /// Stores the result, 0 to [`RESULT_BYTES_MAX`](crate::RESULT_BYTES_MAX) bytes, for `keep_for`, 1 ms to
    /// 366 days: from then on [`Once::begin`] gives it to everybody. All of it or, on an error, nothing.
    /// A longer result belongs elsewhere, and where it is can be the result.
    ///
    /// # Errors
    ///
    /// [`Error::AttemptLost`] once the deadline has passed, whether somebody else began since or not: others
    /// were told when it would be over. With [`Error::Duration`], and [`Error::Engine`] when the result is
    /// too long or the region has no room for it, the attempt goes on: an empty result always fits.
    pub fn finish(&mut self, result: &[u8], keep_for: Duration) -> Result<()> {
        let keep_ns = check_time("keep_for", keep_for)?;
        let attempt = self.current()?;
        let inner = &*self.space;
        inner.check_process()?;
        let now_ns = inner.now_ns();
        inner.check_in_place_now_and_then(now_ns)?;
        let is_stored = inner
            .engine
            .finish(&attempt, inner.session, result, now_ns, keep_ns)?;
        self.granted = None;
        if is_stored {
            inner.counts.seldom(Seldom::OnceFinished);
            Ok(())
        } else {
            inner.counts.seldom(Seldom::OnceUnfinished);
            Err(self.lost())
        }
    }

    /// Frees the key for the next caller at once, as if this attempt had not been: for one that did
    /// nothing, or undid it. What was known of attempts before, the next one is told.
    ///
    /// # Errors
    ///
    /// [`Error::AttemptLost`] if it was over already; one whose deadline has passed is abandoned all the same
    /// while nobody has noticed.
    pub fn abandon(mut self) -> Result<()> {
        self.end(true)
    }

    fn end(&mut self, is_clean: bool) -> Result<()> {
        let attempt = self.current()?;
        self.granted = None;
        let inner = &*self.space;
        inner.check_process()?;
        let is_freed = inner.engine.abandon(&attempt, inner.now_ns(), is_clean);
        if !(is_freed && is_clean) {
            inner.counts.seldom(Seldom::OnceUnfinished);
        }
        if is_freed { Ok(()) } else { Err(self.lost()) }
    }

    /// Starts the time until the deadline anew, from now, with the length it had.
    /// [`Error::AttemptLost`] once it has passed.
    pub fn renew(&mut self) -> Result<()> {
        let attempt = self.current()?;
        let inner = &*self.space;
        inner.check_process()?;
        inner.check_in_place()?;
        let now_ns = inner.precise_ns();
        match inner.engine.extend(&attempt, now_ns, self.ttl_ns)? {
            Some(_) => {
                self.deadline_ns = now_ns + self.ttl_ns;
                Ok(())
            }
            None => Err(self.lost()),
        }
    }

    /// [`renew`](Self::renew) with another length: 1 ms to 366 days, else [`Error::Duration`].
    pub fn extend(&mut self, ttl: Duration) -> Result<()> {
        self.ttl_ns = check_time("ttl", ttl)?;
        self.renew()
    }

    /// Lets the attempt go on without this process, until its deadline, which starts anew, or until
    /// somebody finishes or abandons it by the token returned: for scripts. [`Error::AttemptLost`] once it
    /// is over.
    ///
    /// ```
    /// use sprag::{Begun, OnceStatus, Space};
    /// use std::time::Duration;
    ///
    /// let space = Space::open("mem:")?; // two processes would open the same shm:NAME
    /// let once = space.once("import of May")?;
    /// let Begun::Started(attempt) = once.begin(Duration::from_mins(10))? else { return Ok(()) };
    /// let token = attempt.detach()?; // to be told to whoever goes on
    /// once.finish_token(token, b"1,024 rows", Duration::from_hours(24))?;
    /// assert!(matches!(once.status()?, OnceStatus::Done { .. }));
    /// # Ok::<(), sprag::Error>(())
    /// ```
    pub fn detach(mut self) -> Result<u64> {
        let attempt = self.current()?;
        let inner = &*self.space;
        inner.check_process()?;
        let detached = inner
            .engine
            .detach_attempt(&attempt, inner.precise_ns(), self.ttl_ns)?;
        self.granted = None;
        if detached.is_none() {
            inner.counts.seldom(Seldom::OnceUnfinished);
            return Err(self.lost());
        }
        Ok(self.token)
    }

    /// The attempt, if it was not ended here.
    fn current(&self) -> Result<once::Attempt> {
        self.granted.ok_or_else(|| self.lost())
    }

    #[cold]
    fn lost(&self) -> Error {
        Error::attempt_lost(&self.name.to_vec(), self.token)
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.granted.is_some() {
            // One lost meanwhile has nothing to free; `abandon` is for those who want to know.
            let _ = self.end(false);
        }
    }
}

impl fmt::Debug for Attempt<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Attempt")
            .field("once", &Readable(&self.name.to_vec()))
            .field("token", &self.token)
            .field("deadline_left", &self.deadline_left())
            .finish_non_exhaustive()
    }
}
