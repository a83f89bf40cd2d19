//! An actor: one process at work on the region, each of its calls journaled and any of them struck.

use crate::journal::{Entry, Journal, Op, Outcome, WHOLE};
use crate::oracle_counter::BOUNDS;
use crate::process::now_ns;
use sprag::{
    Added, Attempt, Begun, Caps, Counter, Decision, EngineError, Error, Fence, Hold, Limiter,
    OnceStatus, Refunded, Space, StripedCounter,
};
use sprag_core::sync::steps;
use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The longest that anything is waited for: a guard against hanging, far past all that may delay.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// What a holder's own clock may be off by, in nanoseconds.
const CLOCK_MARGIN_NS: u64 = 20_000;

/// Keys from here on have names too long for their cell.
pub(crate) const LONG: u64 = 1_000;

/// What the journal calls the key of a limiter.
const SLOTS: u64 = 40;
/// How many permits semaphores have.
pub(crate) const PERMITS: u32 = 3;

/// The name of a key, of a lock, a fence, a counter or a limiter's key.
pub(crate) fn name_of(key: u64) -> Vec<u8> {
    let mut name = format!("k{key}").into_bytes();
    if key >= LONG {
        name.resize(200, b'.');
    }
    name
}

pub(crate) struct Actor {
    pub(crate) journal: Journal,
    pub(crate) role: usize,
    /// The number of this process: no other has it.
    pub(crate) by: u64,
    pub(crate) url: String,
    pub(crate) caps: Caps,
    /// Where the next call is struck, and by which signal.
    strike: Cell<Option<(u64, i32)>>,
}

/// A hold and its record.
pub(crate) struct Held<'s> {
    pub(crate) hold: Hold<'s>,
    entry: Entry,
    key: u64,
}

impl Held<'_> {
    fn claim(&self) {
        let now_ns = now_ns();
        let left_ns = self.hold.lease_left().as_nanos() as u64;
        self.entry
            .claim_until((now_ns + left_ns).saturating_sub(CLOCK_MARGIN_NS));
    }

    pub(crate) fn token(&self) -> u64 {
        self.hold.token()
    }

    /// Neither claims nor releases it any more.
    pub(crate) fn give_up(self) {
        self.entry.leave();
        std::mem::forget(self.hold);
    }
}

/// An attempt and its record.
pub(crate) struct Owned<'s> {
    pub(crate) attempt: Attempt<'s>,
    entry: Entry,
    key: u64,
}

impl Owned<'_> {
    /// Neither claims nor ends it any more.
    pub(crate) fn give_up(self) {
        self.entry.leave();
        std::mem::forget(self.attempt);
    }
}

/// What came of a beginning.
pub(crate) enum Begin<'s> {
    Started(Owned<'s>),
    InProgress,
    Done,
}

/// The length of the results of these attempts, some of which are in one chunk and some in several.
fn result_len(token: u64) -> usize {
    [200, 193, 40, 217][token as usize % 4]
}

/// What the attempt with this token stores, all over.
fn result_of(token: u64) -> Vec<u8> {
    let words = (0..32).flat_map(|i: u64| (token ^ i << 56).to_le_bytes());
    words.take(result_len(token)).collect()
}

/// The token of the attempt that stored this; panics if it is torn.
fn token_of(result: &[u8]) -> u64 {
    let first = result.first_chunk().expect("no result is so short");
    let token = u64::from_le_bytes(*first);
    assert_eq!(result, result_of(token), "a result is torn");
    token
}

impl Actor {
    pub(crate) fn new(journal: Journal, role: usize, by: u64, url: &str, caps: Caps) -> Self {
        Self {
            journal,
            role,
            by,
            url: url.to_owned(),
            caps,
            strike: Cell::new(None),
        }
    }

    /// The same process as another role, for a thread of its own.
    pub(crate) fn also(&self, role: usize) -> Self {
        Self::new(self.journal, role, self.by, &self.url, self.caps)
    }

    /// The next call gets `signal` before its step number `step`.
    pub(crate) fn aim(&self, step: u64, signal: i32) {
        self.strike.set(Some((step, signal)));
    }

    pub(crate) fn struck<R>(&self, op: Op, call: impl FnOnce() -> R) -> R {
        let at = self.strike.take();
        let is_aimed = at.is_some();
        steps::arm(at);
        let result = call();
        let taken = steps::disarm();
        self.journal.note_steps(op, is_aimed, taken);
        result
    }

    /// A call between intent and result; `read` tells what came of it.
    pub(crate) fn call<R>(
        &self,
        op: Op,
        key: u64,
        argument: u64,
        call: impl FnOnce() -> R,
        read: impl FnOnce(&R) -> Outcome,
    ) -> R {
        let entry = self.journal.begin(self.role, self.by, op, key, argument);
        let result = self.struck(op, call);
        entry.end(read(&result), argument);
        result
    }

    fn open_now(&self) -> Result<Space, Error> {
        Space::builder()
            .caps(self.caps)
            .share_percent(100)
            .open(&self.url)
    }

    pub(crate) fn open(&self) -> Space {
        self.open_now().expect("the region opens")
    }

    pub(crate) fn open_as(&self, op: Op) -> Result<Space, Error> {
        self.call(op, 0, 0, || self.open_now(), |opened| yes(opened.is_ok()))
    }

    pub(crate) fn close(&self, op: Op, space: Space) {
        self.call(op, 0, 0, || drop(space), |()| Outcome::Yes);
    }

    fn granted<'s>(
        &self,
        op: Op,
        key: u64,
        call: impl FnOnce() -> Result<Option<Hold<'s>>, Error>,
    ) -> Result<Option<Held<'s>>, Error> {
        self.granted_part(op, key, WHOLE, call)
    }

    fn granted_part<'s>(
        &self,
        op: Op,
        key: u64,
        part: u64,
        call: impl FnOnce() -> Result<Option<Hold<'s>>, Error>,
    ) -> Result<Option<Held<'s>>, Error> {
        let entry = self.journal.begin(self.role, self.by, op, key, 0);
        entry.set_part(part);
        let result = self.struck(op, call);
        let held = match result {
            Ok(Some(hold)) => Held { hold, entry, key },
            Ok(None) => {
                entry.end(Outcome::No, 0);
                return Ok(None);
            }
            Err(error) => {
                entry.end(Outcome::No, 0);
                return Err(error);
            }
        };
        held.claim();
        entry.end(Outcome::Yes, held.token());
        Ok(Some(held))
    }

    pub(crate) fn try_acquire<'s>(
        &self,
        op: Op,
        space: &'s Space,
        key: u64,
        ttl: Duration,
    ) -> Result<Option<Held<'s>>, Error> {
        let lock = space.lock(&name_of(key))?.ttl(ttl)?;
        self.granted(op, key, || lock.try_acquire())
    }

    pub(crate) fn acquire<'s>(
        &self,
        op: Op,
        space: &'s Space,
        key: u64,
        ttl: Duration,
        timeout: Duration,
    ) -> Result<Option<Held<'s>>, Error> {
        let lock = space.lock(&name_of(key))?.ttl(ttl)?;
        self.granted(op, key, || lock.acquire_timeout(timeout))
    }

    /// Takes the lock beside others, waiting for at most `timeout`; at once if that is zero.
    pub(crate) fn share<'s>(
        &self,
        op: Op,
        space: &'s Space,
        key: u64,
        ttl: Duration,
        timeout: Duration,
    ) -> Result<Option<Held<'s>>, Error> {
        let lock = space.lock(&name_of(key))?.ttl(ttl)?;
        self.granted_part(op, key, 1, || {
            if timeout.is_zero() {
                lock.try_acquire_shared()
            } else {
                lock.acquire_shared_timeout(timeout)
            }
        })
    }

    /// Takes permits of the semaphore of this key, which has [`PERMITS`].
    pub(crate) fn permits<'s>(
        &self,
        op: Op,
        space: &'s Space,
        key: u64,
        permits: u32,
        ttl: Duration,
        timeout: Duration,
    ) -> Result<Option<Held<'s>>, Error> {
        let semaphore = space.semaphore(&name_of(key), PERMITS)?.ttl(ttl)?;
        let part = u64::from(permits) * WHOLE / u64::from(PERMITS);
        self.granted_part(op, key, part, || {
            if timeout.is_zero() {
                semaphore.try_acquire(permits)
            } else {
                semaphore.acquire_timeout(permits, timeout)
            }
        })
    }

    /// Takes permits of a key of a limiter, which allows [`PERMITS`] at most; `None` also if it allows fewer than
    /// are wanted.
    pub(crate) fn slots<'s>(
        &self,
        op: Op,
        space: &'s Space,
        limiter: &str,
        permits: u32,
        ttl: Duration,
        timeout: Duration,
    ) -> Result<Option<Held<'s>>, Error> {
        let limiter = space.find_concurrency(limiter)?;
        let key = limiter.expect("the limiter").key("key")?.ttl(ttl)?;
        let part = u64::from(permits) * WHOLE / u64::from(PERMITS);
        self.granted_part(op, SLOTS, part, || {
            let taken = if timeout.is_zero() {
                key.try_acquire(permits)
            } else {
                key.acquire_timeout(permits, timeout)
            };
            match taken {
                Err(Error::Engine(EngineError::AboveCapacity { .. })) => Ok(None),
                taken => taken,
            }
        })
    }

    /// Has alone what was shared, if that is so within `timeout`.
    pub(crate) fn upgrade(&self, op: Op, held: &mut Held<'_>, timeout: Duration) -> bool {
        let entry = self
            .journal
            .begin(self.role, self.by, op, held.key, held.token());
        let upgraded = self.struck(op, || held.hold.upgrade_timeout(timeout));
        match upgraded {
            Ok(true) => {
                held.entry.leave();
                held.entry = entry;
                held.claim();
                entry.end(Outcome::Yes, held.token());
                true
            }
            Ok(false) | Err(Error::Lost { .. } | Error::UpgradeConflict { .. }) => {
                entry.end(Outcome::No, 0);
                false
            }
            Err(error) => panic!("an upgrade fails: {error}"),
        }
    }

    /// Shares what was had alone.
    pub(crate) fn downgrade(&self, op: Op, held: &mut Held<'_>) -> bool {
        // Others may share it before the call returns.
        held.entry.leave();
        let entry = self
            .journal
            .begin(self.role, self.by, op, held.key, held.token());
        entry.set_part(1);
        match self.struck(op, || held.hold.downgrade()) {
            Ok(()) => {
                held.entry = entry;
                held.claim();
                entry.end(Outcome::Yes, held.token());
                true
            }
            Err(Error::Lost { .. }) => {
                entry.end(Outcome::No, 0);
                false
            }
            Err(error) => panic!("a downgrade fails: {error}"),
        }
    }

    /// Queues as a future, which is polled until it is ready; `pending` runs whenever it is not.
    pub(crate) fn acquire_as_future<'s>(
        &self,
        op: Op,
        space: &'s Space,
        key: u64,
        ttl: Duration,
        pending: impl Fn(),
    ) -> Result<Option<Held<'s>>, Error> {
        let lock = space.lock(&name_of(key))?.ttl(ttl)?;
        self.granted(op, key, || {
            let mut future = pin!(lock.acquire_async());
            let mut context = Context::from_waker(Waker::noop());
            loop {
                match future.as_mut().poll(&mut context) {
                    Poll::Ready(hold) => return hold.map(Some),
                    Poll::Pending => pending(),
                }
            }
        })
    }

    /// Acquires, waiting its turn; panics if the lock does not come.
    pub(crate) fn must_acquire<'s>(&self, space: &'s Space, key: u64, ttl: Duration) -> Held<'s> {
        self.acquire(Op::Wait, space, key, ttl, PATIENCE)
            .expect("no error")
            .expect("the lock comes")
    }

    /// Acquires by trying over and over; panics if the lock does not come.
    pub(crate) fn must_catch<'s>(&self, space: &'s Space, key: u64, ttl: Duration) -> Held<'s> {
        let give_up_ns = now_ns() + PATIENCE.as_nanos() as u64;
        loop {
            let lock = space.lock(&name_of(key)).expect("a name");
            let lock = lock.ttl(ttl).expect("a lease");
            let held = self.granted(Op::Acquire, key, || lock.try_acquire());
            if let Some(held) = held.expect("no error") {
                return held;
            }
            self.journal.retract(self.role);
            assert!(now_ns() < give_up_ns, "trying never takes the lock");
            std::thread::yield_now();
        }
    }

    /// Whether the lock was still held.
    pub(crate) fn release(&self, op: Op, held: Held<'_>) -> bool {
        held.entry.leave();
        let token = held.token();
        let hold = held.hold;
        let released = self.call(op, held.key, token, || hold.release(), |r| yes(r.is_ok()));
        match released {
            Ok(()) => true,
            Err(Error::Lost { .. }) => false,
            Err(error) => panic!("a release fails: {error}"),
        }
    }

    /// Whether the lock was still held.
    pub(crate) fn renew(&self, op: Op, held: &mut Held<'_>) -> bool {
        let (key, token) = (held.key, held.token());
        let hold = &mut held.hold;
        let renewed = self.call(op, key, token, || hold.renew(), |r| yes(r.is_ok()));
        match renewed {
            Ok(()) => {
                held.claim();
                true
            }
            Err(Error::Lost { .. }) => false,
            Err(error) => panic!("a renewal fails: {error}"),
        }
    }

    /// The token, if the lock was still held.
    pub(crate) fn detach(&self, op: Op, held: Held<'_>) -> Option<u64> {
        held.entry.leave();
        let token = held.token();
        let hold = held.hold;
        let detached = self.call(op, held.key, token, || hold.detach(), |r| yes(r.is_ok()));
        match detached {
            Ok(token) => Some(token),
            Err(Error::Lost { .. }) => None,
            Err(error) => panic!("a detachment fails: {error}"),
        }
    }

    pub(crate) fn adopt<'s>(
        &self,
        op: Op,
        space: &'s Space,
        key: u64,
        token: u64,
        ttl: Duration,
    ) -> Option<Held<'s>> {
        let lock = space.lock(&name_of(key)).expect("a name");
        let lock = lock.ttl(ttl).expect("a lease");
        let adopted = self.granted(op, key, || match lock.adopt_token(token) {
            Ok(hold) => Ok(Some(hold)),
            Err(Error::Lost { .. }) => Ok(None),
            Err(error) => Err(error),
        });
        adopted.expect("no error")
    }

    /// Whether the lock was held under the token.
    pub(crate) fn release_token(&self, op: Op, space: &Space, key: u64, token: u64) -> bool {
        let lock = space.lock(&name_of(key)).expect("a name");
        let released = self.call(
            op,
            key,
            token,
            || lock.release_token(token),
            |r| yes(r.is_ok()),
        );
        match released {
            Ok(()) => true,
            Err(Error::Lost { .. }) => false,
            Err(error) => panic!("a release fails: {error}"),
        }
    }

    pub(crate) fn break_lock(&self, op: Op, space: &Space, key: u64) -> Option<u64> {
        let entry = self.journal.begin(self.role, self.by, op, key, 0);
        let broken = self
            .struck(op, || space.break_lock(&name_of(key)))
            .expect("no error");
        entry.end(yes(broken.is_some()), broken.unwrap_or(0));
        broken
    }

    /// Whether `cost` of `key` was admitted. `limit` is its number in the oracle's list.
    pub(crate) fn check(&self, op: Op, limiter: &Limiter, limit: u64, key: u64, cost: u64) -> bool {
        let entry = self.journal.begin(self.role, self.by, op, key, cost);
        entry.set_limit(limit);
        let name = name_of(key);
        let decision = self
            .struck(op, || limiter.check(&name, cost))
            .expect("a check never fails");
        entry.end(yes(decision.is_allowed()), 0);
        decision.is_allowed()
    }

    /// Whether `cost` of `key` was reserved, however far ahead.
    pub(crate) fn reserve(&self, op: Op, limiter: &Limiter, key: u64, cost: u64) -> bool {
        let name = name_of(key);
        let reserve = || limiter.reserve(&name, cost, Duration::MAX);
        let reserved = self.call(op, key, cost, reserve, |decision| {
            yes(decision.as_ref().is_ok_and(Decision::is_allowed))
        });
        reserved.expect("a reservation never fails").is_allowed()
    }

    /// Whether something was given back.
    pub(crate) fn refund(&self, op: Op, limiter: &Limiter, key: u64, decision: Decision) -> bool {
        let is_given = |refunded: &_| matches!(refunded, Ok(Refunded::Given(_)));
        let cost = decision.limit();
        let refund = || limiter.refund(decision);
        let refunded = self.call(op, key, cost, refund, |refunded| yes(is_given(refunded)));
        assert!(refunded.is_ok(), "a refund never fails: {refunded:?}");
        is_given(&refunded)
    }

    pub(crate) fn limiter(&self, op: Op, space: &Space, name: &str, limit: &str) -> Limiter {
        self.call(
            op,
            0,
            0,
            || space.limiter_updated(name, limit),
            |r| yes(r.is_ok()),
        )
        .expect("a limiter opens")
    }

    pub(crate) fn begin<'s>(
        &self,
        op: Op,
        space: &'s Space,
        key: u64,
        ttl: Duration,
    ) -> Result<Begin<'s>, Error> {
        let once = space.once(&name_of(key))?;
        let entry = self.journal.begin(self.role, self.by, op, key, 0);
        match self.struck(op, || once.begin(ttl)) {
            Ok(Begun::Started(attempt)) => {
                let left_ns = attempt.deadline_left().as_nanos() as u64;
                entry.claim_until((now_ns() + left_ns).saturating_sub(CLOCK_MARGIN_NS));
                entry.end(Outcome::Yes, attempt.token());
                Ok(Begin::Started(Owned {
                    attempt,
                    entry,
                    key,
                }))
            }
            Ok(Begun::InProgress { .. }) => {
                entry.end(Outcome::No, 0);
                Ok(Begin::InProgress)
            }
            Ok(Begun::Done(result)) => {
                let token = token_of(&result);
                entry.end(Outcome::No, token);
                Ok(Begin::Done)
            }
            Err(error) => {
                entry.end(Outcome::No, 0);
                Err(error)
            }
        }
    }

    /// Begins, over and over while another attempt is under way; `None` if it is done.
    pub(crate) fn must_begin<'s>(
        &self,
        space: &'s Space,
        key: u64,
        ttl: Duration,
    ) -> Option<Owned<'s>> {
        let give_up_ns = now_ns() + PATIENCE.as_nanos() as u64;
        loop {
            match self.begin(Op::Begin, space, key, ttl).expect("no error") {
                Begin::Started(owned) => return Some(owned),
                Begin::Done => return None,
                Begin::InProgress => self.journal.retract(self.role),
            }
            assert!(now_ns() < give_up_ns, "the attempt never ends");
            std::thread::yield_now();
        }
    }

    /// Whether the attempt was still under way, and there was room for its result.
    pub(crate) fn finish(&self, op: Op, owned: Owned<'_>, keep_for: Duration) -> bool {
        let Owned {
            mut attempt,
            entry,
            key,
        } = owned;
        entry.leave();
        let token = attempt.token();
        let result = result_of(token);
        let entry = self.journal.begin(self.role, self.by, op, key, token);
        entry.claim_until(now_ns() + keep_for.as_nanos() as u64);
        let finished = self.struck(op, || attempt.finish(&result, keep_for));
        entry.end(yes(finished.is_ok()), token);
        match finished {
            Ok(()) => true,
            Err(Error::AttemptLost { .. } | Error::Engine(sprag_core::Error::Full { .. })) => false,
            Err(error) => panic!("a finish fails: {error}"),
        }
    }

    /// Whether the attempt was still under way.
    pub(crate) fn abandon(&self, op: Op, owned: Owned<'_>) -> bool {
        let Owned {
            attempt,
            entry,
            key,
        } = owned;
        entry.leave();
        let token = attempt.token();
        let abandoned = self.call(op, key, token, || attempt.abandon(), |r| yes(r.is_ok()));
        match abandoned {
            Ok(()) => true,
            Err(Error::AttemptLost { .. }) => false,
            Err(error) => panic!("an abandonment fails: {error}"),
        }
    }

    /// What is known of a once; panics if its result is torn.
    pub(crate) fn look(&self, op: Op, space: &Space, key: u64) -> OnceStatus {
        let once = space.once(&name_of(key)).expect("a name");
        let status = self.call(op, key, 0, || once.status(), |_| Outcome::Yes);
        let status = status.expect("no error");
        if let OnceStatus::Done { result, .. } = &status {
            token_of(result);
        }
        status
    }

    pub(crate) fn admit(&self, op: Op, fence: &Fence, key: u64, token: u64) -> bool {
        let admitted = self.call(op, key, token, || fence.admit(token), |r| yes(r.is_ok()));
        match admitted {
            Ok(()) => true,
            Err(Error::Stale { .. }) => false,
            Err(error) => panic!("a fence fails: {error}"),
        }
    }

    /// Whether there was room for the counter.
    pub(crate) fn add(&self, op: Op, counter: &Counter<'_>, key: u64, delta: i64) -> bool {
        self.count(op, key, delta, || match counter.add(delta) {
            Ok(sum) => Some(Ok(sum)),
            Err(Error::Engine(sprag_core::Error::Full { .. })) => None,
            Err(error) => panic!("an addition fails: {error}"),
        })
        .is_some()
    }

    /// Adds within [`BOUNDS`].
    pub(crate) fn add_within(&self, op: Op, counter: &Counter<'_>, key: u64, delta: i64) {
        self.count(op, key, delta, || match counter.add_within(delta, BOUNDS) {
            Ok(Added::To(sum)) => Some(Ok(sum)),
            Ok(Added::Refused(number)) => Some(Err(number)),
            Err(Error::Engine(sprag_core::Error::Full { .. })) => None,
            Err(error) => panic!("an addition fails: {error}"),
        });
    }

    pub(crate) fn stripe<'s>(&self, op: Op, counter: Counter<'s>) -> StripedCounter<'s> {
        self.call(
            op,
            0,
            0,
            || counter.striped(),
            |striped| yes(striped.is_ok()),
        )
        .expect("room")
    }

    pub(crate) fn striped_add(&self, op: Op, counter: &StripedCounter<'_>, key: u64, delta: i64) {
        self.count(op, key, delta, || {
            counter.add(delta).expect("an addition");
            Some(Ok(0))
        });
    }

    /// Adds within [`BOUNDS`].
    pub(crate) fn striped_within(
        &self,
        op: Op,
        counter: &StripedCounter<'_>,
        key: u64,
        delta: i64,
    ) {
        self.count(op, key, delta, || {
            let added = counter.add_within(delta, BOUNDS).expect("an addition");
            Some(added.map(|()| 0))
        });
    }

    pub(crate) fn get(&self, counter: &Counter<'_>, key: u64) -> i64 {
        let number = self.count(Op::CounterGet, key, 0, || {
            Some(Ok(counter.get().expect("a look")))
        });
        number.unwrap_or(0)
    }

    /// The number that `call` ends with; `None`, and nothing in the journal, if there was no room.
    fn count(
        &self,
        op: Op,
        key: u64,
        delta: i64,
        call: impl FnOnce() -> Option<Result<i64, i64>>,
    ) -> Option<i64> {
        let argument = delta.cast_unsigned();
        let entry = self.journal.begin(self.role, self.by, op, key, argument);
        let answer = self.struck(op, call);
        if let Some(Ok(number) | Err(number)) = answer {
            entry.end(
                yes(answer.is_some_and(|a| a.is_ok())),
                number.cast_unsigned(),
            );
            Some(number)
        } else {
            self.journal.retract(self.role);
            None
        }
    }
}

pub(crate) fn yes(is_so: bool) -> Outcome {
    if is_so { Outcome::Yes } else { Outcome::No }
}
