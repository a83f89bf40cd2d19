//! The model: locks as their documentation has them, beside an engine that takes the same steps.

use crate::step::{SESSIONS, Step};
use crate::support::{FLOOR, NAMES, SMALL, engine, session};
use sprag_core::lock::{Attempt, Grant, HoldOf, Released, Renewed};
use sprag_core::session::Process;
use sprag_core::waiter::{PATIENCE_NS, Poll, Ticket};
use sprag_core::{Engine, SessionId};
use std::collections::BTreeMap;

/// Who a model's hold belongs to: the n-th session ever opened, or nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Session(usize),
    Detached,
}

#[derive(Debug)]
struct ModelHold {
    holder: Holder,
    until_us: u64,
}

#[derive(Debug)]
struct ModelWait {
    id: usize,
    session: usize,
    looked_ns: u64,
    until_ns: u64,
    /// It may have been passed over since it last looked. Whether it was depends on when the lock was
    /// freed, of which the model knows only the earliest.
    may_be_passed: bool,
}

/// A lock as its documentation has it.
#[derive(Debug, Default)]
struct ModelLock {
    grants: u64,
    hold: Option<ModelHold>,
    queue: Vec<ModelWait>,
    /// The earliest that it can have become free.
    free_since_ns: u64,
}

struct Granted {
    name: usize,
    session: usize,
    grant: Grant,
}

struct Waiting {
    id: usize,
    name: usize,
    session: usize,
    ticket: Ticket,
}

pub(crate) struct World {
    engine: Engine,
    now_ns: u64,
    /// Every session ever opened, and whether it still is.
    sessions: Vec<(SessionId, bool)>,
    /// The index in `sessions` of each actor's session.
    actors: [usize; SESSIONS],
    locks: BTreeMap<usize, ModelLock>,
    grants: Vec<Granted>,
    waits: Vec<Waiting>,
    next_wait: usize,
}

impl World {
    pub(crate) fn new() -> Self {
        let mut world = Self {
            engine: engine(SMALL),
            now_ns: 12_345,
            sessions: Vec::new(),
            actors: [0; SESSIONS],
            locks: BTreeMap::new(),
            grants: Vec::new(),
            waits: Vec::new(),
            next_wait: 0,
        };
        for who in 0..SESSIONS {
            world.actors[who] = world.open();
        }
        world
    }

    fn open(&mut self) -> usize {
        let session = session(&self.engine);
        self.sessions.push((session, true));
        self.sessions.len() - 1
    }

    fn is_open(&self, holder: Holder) -> bool {
        match holder {
            Holder::Session(index) => self.sessions[index].1,
            Holder::Detached => true,
        }
    }

    /// Whether somebody holds the lock now: the lease runs and the holder is there.
    fn is_held(&self, name: usize) -> bool {
        let hold = self.locks.get(&name).and_then(|lock| lock.hold.as_ref());
        hold.is_some_and(|hold| hold.until_us > self.now_ns / 1_000 && self.is_open(hold.holder))
    }

    fn lives(&self, wait: &ModelWait) -> bool {
        wait.until_ns > self.now_ns && self.sessions[wait.session].1
    }

    /// The live waits for a lock that come before the wait `id`, all if there is none.
    fn ahead(&self, name: usize, id: Option<usize>) -> impl Iterator<Item = &ModelWait> {
        let queue = self.locks.get(&name).map_or(&[][..], |lock| &lock.queue);
        queue
            .iter()
            .take_while(move |wait| Some(wait.id) != id)
            .filter(|wait| self.lives(wait))
    }

    /// A free lock was looked at by the wait `id`, or by a newcomer: where the first in its queue may have
    /// let it lie for too long, all who did may have been passed over. Returns whether the one who looked
    /// may have the lock then.
    fn may_pass(&mut self, name: usize, id: Option<usize>) -> bool {
        let now_ns = self.now_ns;
        let free_since_ns = self.locks.get(&name).map_or(0, |lock| lock.free_since_ns);
        let has_let_lie =
            |wait: &ModelWait| now_ns >= wait.looked_ns.max(free_since_ns) + PATIENCE_NS;
        // Whichever of them is the first: who may be passed may be not.
        if self.ahead(name, id).any(has_let_lie)
            && let Some(lock) = self.locks.get_mut(&name)
        {
            for wait in &mut lock.queue {
                wait.may_be_passed |= has_let_lie(wait);
            }
        }
        self.ahead(name, id).all(|wait| wait.may_be_passed)
    }

    fn until_us(&self, lease_ns: u64) -> u64 {
        (self.now_ns + lease_ns).div_ceil(1_000)
    }

    /// The engine granted: so must the model, with the token and the deadline that follow.
    fn grant(&mut self, name: usize, session: usize, lease_ns: u64, grant: Grant) {
        let until_us = self.until_us(lease_ns);
        let lock = self.locks.entry(name).or_default();
        lock.grants += 1;
        lock.hold = Some(ModelHold {
            holder: Holder::Session(session),
            until_us,
        });
        // property 2
        assert_eq!(grant.token, FLOOR + lock.grants, "tokens are consecutive");
        assert_eq!(grant.deadline_ns, until_us * 1_000);
        self.grants.push(Granted {
            name,
            session,
            grant,
        });
    }

    fn chosen_grant(&self, index: usize) -> Option<(usize, usize, Grant)> {
        let granted = self.grants.get(index % self.grants.len().max(1))?;
        Some((granted.name, granted.session, granted.grant))
    }

    /// The model's hold under `token`, whether its lease runs or not; if `by` is given, only if it is
    /// that session's.
    fn hold_under(&mut self, name: usize, by: Option<usize>, token: u64) -> Option<&mut ModelHold> {
        let lock = self.locks.get_mut(&name)?;
        let is_last = token == FLOOR + lock.grants;
        let hold = lock.hold.as_mut().filter(|_| is_last)?;
        by.is_none_or(|by| hold.holder == Holder::Session(by))
            .then_some(hold)
    }

    fn free(&mut self, name: usize) {
        let now_ns = self.now_ns;
        let lock = self.locks.entry(name).or_default();
        let expired_ns = lock.hold.take().map_or(0, |hold| hold.until_us * 1_000);
        lock.free_since_ns = now_ns.min(expired_ns);
    }

    /// A wake is owed to a waiter that lives, and to nobody where nobody waits.
    fn check_wake(&self, name: usize, is_some: bool) {
        if self.ahead(name, None).any(|wait| !wait.may_be_passed) {
            assert!(is_some, "a live waiter was not woken");
        } else if self
            .locks
            .get(&name)
            .is_none_or(|lock| lock.queue.is_empty())
        {
            assert!(!is_some, "nobody waits");
        }
    }

    fn release(&mut self, name: usize, by: Option<usize>, token: u64, released: Released) {
        let is_held = self.hold_under(name, by, token).is_some();
        // property 3
        let Released::Done { wake } = released else {
            assert!(!is_held, "the holder could not release");
            return;
        };
        assert!(is_held, "released what was not held under this token");
        self.free(name);
        self.check_wake(name, wake.is_some());
    }

    /// A renewal or a transfer, by whom the grant was made to or by token.
    fn renew(
        &mut self,
        name: usize,
        by: Option<usize>,
        token: u64,
        to: Option<Holder>,
        lease_ns: u64,
        renewed: Renewed,
    ) {
        let (now_us, until_us) = (self.now_ns / 1_000, self.until_us(lease_ns));
        let hold = self
            .hold_under(name, by, token)
            .filter(|hold| hold.until_us > now_us);
        // property 5
        match (renewed, hold) {
            (Renewed::Until(ns), Some(hold)) => {
                assert_eq!(ns, until_us * 1_000);
                hold.until_us = until_us;
                hold.holder = to.unwrap_or(hold.holder);
            }
            (Renewed::NotHeld, None) => {}
            (renewed, hold) => panic!("{renewed:?}, but the model has {hold:?}"),
        }
    }

    fn poll(&mut self, index: usize, lease_ns: u64) {
        let Some(index) = index.checked_rem(self.waits.len()) else {
            return;
        };
        let (id, name, session) = {
            let wait = &self.waits[index];
            (wait.id, wait.name, wait.session)
        };
        let by = self.sessions[session].0;
        let core_name = self.engine.lock_name(NAMES[name]).unwrap();
        let ticket = &self.waits[index].ticket;
        let answer = self
            .engine
            .poll(ticket, &core_name, by, self.now_ns, lease_ns, true)
            .unwrap();
        let is_held = self.is_held(name);
        if !is_held
            && self
                .locks
                .get(&name)
                .is_some_and(|lock| lock.hold.is_some())
        {
            // Its holder is gone, and the poll frees it.
            self.free(name);
        }
        let lock = self.locks.get_mut(&name).unwrap();
        for wait in lock.queue.iter_mut().filter(|wait| wait.id == id) {
            wait.may_be_passed = false;
            wait.looked_ns = self.now_ns;
        }
        let is_turn = self.ahead(name, Some(id)).next().is_none();
        let may_pass = !is_held && self.may_pass(name, Some(id));
        match answer {
            Poll::Granted { grant, .. } => {
                // property 1
                assert!(!is_held, "granted while held");
                assert!(is_turn || may_pass, "granted out of turn");
                self.waits.remove(index);
                let lock = self.locks.get_mut(&name).unwrap();
                lock.queue.retain(|wait| wait.id != id);
                self.grant(name, session, lease_ns, grant);
            }
            Poll::Waiting { .. } => {
                assert!(is_held || !is_turn, "its turn, and it was not granted");
            }
            Poll::Moved | Poll::Lost | Poll::Deadlock(_) => panic!("nothing is reclaimed here"),
        }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        let now_ns = self.now_ns;
        match *step {
            Step::Pass { ns } => self.now_ns += ns,
            Step::TryAcquire {
                who,
                name,
                lease_ns,
            } => {
                let session = self.actors[who];
                let core_name = self.engine.lock_name(NAMES[name]).unwrap();
                let by = self.sessions[session].0;
                let is_held = self.is_held(name);
                let is_free = !is_held && self.ahead(name, None).next().is_none();
                // Those who wait may all be stopped: after their time a newcomer may pass.
                let lies_free = self
                    .locks
                    .get(&name)
                    .is_some_and(|lock| lock.hold.is_none());
                let may_pass = if lies_free {
                    self.may_pass(name, None)
                } else {
                    !is_held && self.ahead(name, None).all(|wait| wait.may_be_passed)
                };
                match self
                    .engine
                    .try_acquire(&core_name, by, now_ns, lease_ns)
                    .unwrap()
                {
                    Attempt::Granted(grant) => {
                        assert!(is_free || may_pass, "granted while held or queued for");
                        self.grant(name, session, lease_ns, grant);
                    }
                    Attempt::Busy => {
                        assert!(!is_free, "refused while free");
                        let lock = self.locks.get(&name);
                        if !is_held && lock.is_some_and(|lock| lock.hold.is_some()) {
                            // Its holder is gone; the time of those who wait begins.
                            self.free(name);
                        }
                    }
                }
            }
            Step::Enqueue { who, name, for_ns } => {
                if self.waits.len() == 60 {
                    return;
                }
                let session = self.actors[who];
                let core_name = self.engine.lock_name(NAMES[name]).unwrap();
                let until_ns = now_ns.saturating_add(for_ns);
                let by = self.sessions[session].0;
                let ticket = self
                    .engine
                    .enqueue(&core_name, by, now_ns, until_ns)
                    .unwrap();
                let id = self.next_wait;
                self.next_wait += 1;
                let lock = self.locks.entry(name).or_default();
                lock.queue.push(ModelWait {
                    id,
                    session,
                    looked_ns: now_ns,
                    until_ns,
                    may_be_passed: false,
                });
                self.waits.push(Waiting {
                    id,
                    name,
                    session,
                    ticket,
                });
            }
            Step::Poll { wait, lease_ns } => self.poll(wait, lease_ns),
            Step::Cancel { wait } => {
                let Some(index) = wait.checked_rem(self.waits.len()) else {
                    return;
                };
                let wait = self.waits.remove(index);
                let lock = self.locks.get_mut(&wait.name).unwrap();
                lock.queue.retain(|other| other.id != wait.id);
                let is_free = lock.hold.is_none();
                let mut woken = false;
                self.engine.cancel(wait.ticket, now_ns, |_| woken = true);
                // property 6
                if is_free {
                    self.check_wake(wait.name, woken);
                } else {
                    assert!(!woken, "woken while held");
                }
            }
            Step::Release { grant } => {
                if let Some((name, by, grant)) = self.chosen_grant(grant) {
                    let released = self.engine.release(&grant, || now_ns);
                    self.release(name, Some(by), grant.token, released);
                }
            }
            Step::ReleaseByName { grant, name } => {
                if let Some((_, _, grant)) = self.chosen_grant(grant) {
                    let core_name = self.engine.lock_name(NAMES[name]).unwrap();
                    let released =
                        self.engine
                            .release_by_name(HoldOf::Lock, &core_name, grant.token, now_ns);
                    self.release(name, None, grant.token, released);
                }
            }
            Step::Renew { grant, lease_ns } => {
                if let Some((name, by, grant)) = self.chosen_grant(grant) {
                    let renewed = self.engine.renew(&grant, now_ns, lease_ns).unwrap();
                    self.renew(name, Some(by), grant.token, None, lease_ns, renewed);
                }
            }
            Step::RenewByName {
                grant,
                name,
                lease_ns,
            } => {
                if let Some((_, _, grant)) = self.chosen_grant(grant) {
                    let token = grant.token;
                    let core_name = self.engine.lock_name(NAMES[name]).unwrap();
                    let renewed = self
                        .engine
                        .renew_by_name(HoldOf::Lock, &core_name, token, now_ns, lease_ns)
                        .unwrap();
                    self.renew(name, None, token, None, lease_ns, renewed);
                }
            }
            Step::Transfer {
                grant,
                to,
                lease_ns,
            } => {
                if let Some((name, by, grant)) = self.chosen_grant(grant) {
                    let session = self.actors[to];
                    let to = self.sessions[session].0;
                    let renewed = self.engine.transfer(&grant, to, now_ns, lease_ns).unwrap();
                    let to = Some(Holder::Session(session));
                    self.renew(name, Some(by), grant.token, to, lease_ns, renewed);
                }
            }
            Step::Adopt {
                grant,
                to,
                lease_ns,
            } => {
                if let Some((name, _, grant)) = self.chosen_grant(grant) {
                    let session = self.actors[to];
                    let to = self.sessions[session].0;
                    let core_name = self.engine.lock_name(NAMES[name]).unwrap();
                    let adopted = self
                        .engine
                        .adopt(HoldOf::Lock, &core_name, grant.token, to, now_ns, lease_ns)
                        .unwrap();
                    let renewed =
                        adopted.map_or(Renewed::NotHeld, |grant| Renewed::Until(grant.deadline_ns));
                    let to = Some(Holder::Session(session));
                    self.renew(name, None, grant.token, to, lease_ns, renewed);
                    self.grants.extend(adopted.map(|grant| Granted {
                        name,
                        session,
                        grant,
                    }));
                }
            }
            Step::Detach { grant, lease_ns } => {
                if let Some((name, by, grant)) = self.chosen_grant(grant) {
                    let to = SessionId::DETACHED;
                    let renewed = self.engine.transfer(&grant, to, now_ns, lease_ns).unwrap();
                    self.renew(
                        name,
                        Some(by),
                        grant.token,
                        Some(Holder::Detached),
                        lease_ns,
                        renewed,
                    );
                }
            }
            Step::Break { name } => {
                let core_name = self.engine.lock_name(NAMES[name]).unwrap();
                let held = self
                    .locks
                    .get(&name)
                    .and_then(|lock| lock.hold.as_ref().map(|_| FLOOR + lock.grants));
                let broken = self
                    .engine
                    .break_lock(&core_name, Process::default(), now_ns);
                assert_eq!(broken.map(|broken| broken.token), held);
                if let Some(broken) = broken {
                    self.free(name);
                    self.check_wake(name, broken.wake.is_some());
                }
            }
            Step::Reopen { who } => self.reopen(who),
            Step::Look { name } => self.look(name),
        }
    }

    /// The session closes, and its actor goes on with another: what it held is free, what it waited
    /// for goes on without it.
    fn reopen(&mut self, who: usize) {
        let closed = self.actors[who];
        self.engine.close_session(self.sessions[closed].0);
        self.sessions[closed].1 = false;
        for lock in self.locks.values_mut() {
            if lock
                .hold
                .as_ref()
                .is_some_and(|hold| hold.holder == Holder::Session(closed))
            {
                let hold = lock.hold.as_mut().unwrap();
                hold.until_us = hold.until_us.min(self.now_ns / 1_000);
            }
        }
        // The dead take no more steps.
        self.grants.retain(|granted| granted.session != closed);
        self.waits.retain(|wait| wait.session != closed);
        self.actors[who] = self.open();
    }

    pub(crate) fn look(&self, name: usize) {
        let core_name = self.engine.lock_name(NAMES[name]).unwrap();
        let Some(lock) = self.locks.get(&name) else {
            assert_eq!(self.engine.lock_status(&core_name, self.now_ns), None);
            return;
        };
        let Some(status) = self.engine.lock_status(&core_name, self.now_ns) else {
            assert_eq!(lock.grants, 0, "an entry in use has gone");
            return;
        };
        assert_eq!(status.name, NAMES[name]);
        assert_eq!(status.token, FLOOR + lock.grants);
        if self.is_held(name) {
            let (hold, model) = (status.holds[0], lock.hold.as_ref().unwrap());
            assert_eq!(hold.lease_left_ns, model.until_us * 1_000 - self.now_ns);
            assert_eq!(hold.detached, model.holder == Holder::Detached);
        } else if let Some(hold) = status.holds.first() {
            // Nobody has come by since; but it shows as over.
            assert!(hold.lease_left_ns == 0 || (hold.process.is_none() && !hold.detached));
        }
        let waiters = status.waiters as usize;
        // Of those who were passed over nothing is said while nobody else waits.
        let waiting = |wait: &&ModelWait| !wait.may_be_passed;
        assert!(
            self.ahead(name, None).filter(waiting).count() <= waiters
                && waiters <= lock.queue.len()
        );
    }
}
