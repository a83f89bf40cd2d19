//! The model beside an engine that takes the same steps.

use crate::rules::{Aim, Hold, Holder, Now, Thing, Wait};
use crate::step::{CAPACITY, SEMAPHORE, SESSIONS, SLOTS, Step, THINGS, Want, has_permits};
use crate::support::{FLOOR, NAMES, SMALL, engine, session};
use sprag_core::admission::Wants;
use sprag_core::lock::{Attempt, Grant, HoldOf, Released, Renewed, Upgrade};
use sprag_core::session::Process;
use sprag_core::waiter::{Poll, Ticket};
use sprag_core::{ConcurrencyRef, Engine, Error, Name, SessionId};

/// Holds and waits at one time stay below what the region has room for.
const MOST: usize = 40;

#[derive(Clone, Copy)]
struct Granted {
    thing: usize,
    hold: usize,
    session: usize,
    grant: Grant,
}

struct Waiting {
    id: usize,
    thing: usize,
    session: usize,
    ticket: Ticket,
}

pub(crate) struct World {
    engine: Engine,
    limiter: ConcurrencyRef,
    now_ns: u64,
    /// Every session ever opened, and whether it still is.
    sessions: Vec<SessionId>,
    is_open: Vec<bool>,
    /// The index in `sessions` of each actor's session.
    actors: [usize; SESSIONS],
    things: [Thing; THINGS],
    grants: Vec<Granted>,
    waits: Vec<Waiting>,
    next_id: usize,
}

fn of(thing: usize) -> HoldOf {
    match thing {
        SEMAPHORE => HoldOf::Semaphore,
        SLOTS => HoldOf::Slots,
        _ => HoldOf::Lock,
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let engine = engine(SMALL);
        let by = SessionId::DETACHED;
        let limiter = engine
            .open_concurrency(b"limiter", CAPACITY, false, by, 0, |_| {})
            .unwrap();
        let mut world = Self {
            engine,
            limiter,
            now_ns: 12_345,
            sessions: Vec::new(),
            is_open: Vec::new(),
            actors: [0; SESSIONS],
            things: Default::default(),
            grants: Vec::new(),
            waits: Vec::new(),
            next_id: 0,
        };
        for who in 0..SESSIONS {
            world.actors[who] = world.open();
        }
        world
    }

    fn open(&mut self) -> usize {
        self.sessions.push(session(&self.engine));
        self.is_open.push(true);
        self.sessions.len() - 1
    }

    fn id(&mut self) -> usize {
        self.next_id += 1;
        self.next_id
    }

    fn name(&self, thing: usize) -> Name {
        match thing {
            SLOTS => self.engine.slots_name(self.limiter, NAMES[0]).unwrap(),
            _ => self.engine.lock_name(NAMES[thing]).unwrap(),
        }
    }

    fn now(&self) -> Now<'_> {
        Now {
            ns: self.now_ns,
            is_open: &self.is_open,
        }
    }

    fn wants(&self, thing: usize, want: Want) -> Wants {
        match thing {
            SLOTS => Wants::slots(want.amount, self.limiter).unwrap(),
            SEMAPHORE => Wants::permits(want.amount, CAPACITY).unwrap(),
            _ if want.alone => Wants::Exclusive,
            _ => Wants::Shared,
        }
    }

    fn until_us(&self, lease_ns: u64) -> u64 {
        (self.now_ns + lease_ns).div_ceil(1_000)
    }

    fn living(&self) -> usize {
        let now = self.now();
        self.things
            .iter()
            .map(|thing| thing.living(&now).count())
            .sum()
    }

    /// The next token of a thing, which `grant` must have, and its end.
    fn check_grant(&mut self, thing: usize, until_us: u64, grant: &Grant) {
        self.things[thing].grants += 1;
        // property 2
        assert_eq!(grant.token, FLOOR + self.things[thing].grants);
        assert_eq!(grant.deadline_ns, until_us * 1_000);
    }

    fn grant(&mut self, thing: usize, session: usize, want: Want, lease_ns: u64, grant: Grant) {
        let (hold, until_us) = (self.id(), self.until_us(lease_ns));
        self.check_grant(thing, until_us, &grant);
        // Of what was over nothing is left beside one who has it alone.
        if want.alone && !has_permits(thing) {
            self.things[thing].holds.clear();
        }
        self.things[thing].holds.push(Hold {
            id: hold,
            token: grant.token,
            holder: Holder::Session(session),
            until_us,
            want,
        });
        self.grants.push(Granted {
            thing,
            hold,
            session,
            grant,
        });
    }

    /// The hold of `granted` is the lock's alone now, by another grant.
    fn upgraded(&mut self, granted: Granted, lease_ns: u64, grant: Grant) {
        let is_alone = {
            let now = self.now();
            let mut living = self.things[granted.thing].living(&now);
            living.all(|hold| hold.id == granted.hold)
        };
        // property 1
        assert!(is_alone, "alone beside others");
        let asked_us = self.until_us(lease_ns);
        let hold = self.hold_of(granted).unwrap();
        let (was_alone, token) = (hold.want.alone, hold.token);
        // property 5: never shortened.
        let until_us = asked_us.max(hold.until_us);
        if was_alone {
            assert_eq!(grant.token, token);
        } else {
            self.check_grant(granted.thing, until_us, &grant);
        }
        let thing = &mut self.things[granted.thing];
        thing.upgrading = None;
        thing.holds.retain(|hold| hold.id == granted.hold);
        let hold = &mut thing.holds[0];
        hold.token = grant.token;
        hold.until_us = until_us;
        hold.want.alone = true;
        self.replace(granted.hold, granted.session, grant);
    }

    /// Whoever has a grant of this hold in this session has the new one.
    fn replace(&mut self, hold: usize, session: usize, grant: Grant) {
        for granted in &mut self.grants {
            if (granted.hold, granted.session) == (hold, session) {
                granted.grant = grant;
            }
        }
    }

    fn chosen(&self, index: usize) -> Option<Granted> {
        self.grants.get(index % self.grants.len().max(1)).copied()
    }

    /// The hold of a grant, while it is its session's.
    fn hold_of(&mut self, granted: Granted) -> Option<&mut Hold> {
        let hold = self.things[granted.thing].hold(granted.hold)?;
        (hold.holder == Holder::Session(granted.session)).then_some(hold)
    }

    fn lives(&mut self, granted: Granted) -> bool {
        let (ns, is_open) = (self.now_ns, self.is_open.clone());
        let now = Now {
            ns,
            is_open: &is_open,
        };
        self.hold_of(granted).is_some_and(|hold| now.lives(hold))
    }

    fn check_wake(&self, thing: usize, is_some: bool) {
        let model = &self.things[thing];
        assert!(
            is_some || !model.owes_wake(thing, &self.now()),
            "someone who can have it was not woken"
        );
        assert!(!is_some || !model.queue.is_empty(), "nobody waits");
    }

    /// The end of a hold that the engine ended or, if it was over, may have before.
    fn ended(&mut self, thing: usize, id: Option<usize>, lives: bool, released: Released) {
        match released {
            Released::Done { wake } => {
                // property 3
                let id = id.expect("released what was not held under this token");
                self.forget(thing, id);
                self.check_wake(thing, wake.is_some());
            }
            Released::NotHeld => {
                assert!(!lives, "the holder could not release");
                if let Some(id) = id {
                    self.forget(thing, id);
                }
            }
        }
    }

    fn forget(&mut self, thing: usize, id: usize) {
        let model = &mut self.things[thing];
        model.holds.retain(|hold| hold.id != id);
        if model.upgrading == Some(id) {
            model.upgrading = None;
        }
    }

    fn renewed(
        &mut self,
        thing: usize,
        id: Option<usize>,
        to: Option<Holder>,
        lease_ns: u64,
        renewed: Renewed,
    ) {
        let until_us = self.until_us(lease_ns);
        // property 5
        match (renewed, id) {
            (Renewed::Until(ns), Some(id)) => {
                assert_eq!(ns, until_us * 1_000);
                let hold = self.things[thing].hold(id).unwrap();
                hold.until_us = until_us;
                hold.holder = to.unwrap_or(hold.holder);
            }
            (Renewed::NotHeld, None) => {}
            (renewed, id) => panic!("{renewed:?}, but the model has {id:?}"),
        }
    }

    /// The hold that has a token, and whether it lasts.
    fn by_token(&self, thing: usize, token: u64) -> (Option<usize>, bool) {
        let holds = &self.things[thing].holds;
        let hold = holds.iter().find(|hold| hold.token == token);
        (
            hold.map(|hold| hold.id),
            hold.is_some_and(|hold| self.now().lives(hold)),
        )
    }

    fn poll(&mut self, index: usize, lease_ns: u64) {
        let (id, thing, session) = {
            let wait = &self.waits[index];
            (wait.id, wait.thing, wait.session)
        };
        let place = self.things[thing]
            .queue
            .iter()
            .position(|wait| wait.id == id);
        let aim = self.things[thing].queue[place.unwrap()].aim;
        let (name, by) = (self.name(thing), self.sessions[session]);
        let ticket = &self.waits[index].ticket;
        let answer = self
            .engine
            .poll(ticket, &name, by, self.now_ns, lease_ns, true);
        if let Aim::Anew(want) = aim
            && self.is_above(thing, want, &answer)
        {
            return self.cancel(index);
        }
        let answer = answer.unwrap();
        match aim {
            Aim::Anew(want) => {
                let may_have = self.things[thing].may_have(thing, Some(id), want, &self.now());
                match answer {
                    Poll::Granted { grant, wake } => {
                        // property 1
                        assert!(may_have, "granted out of turn, or without room");
                        self.left(index);
                        self.grant(thing, session, want, lease_ns, grant);
                        self.check_wake(thing, wake.is_some());
                    }
                    Poll::Waiting { .. } => assert!(!may_have, "its turn, and it was not granted"),
                    other => panic!("nothing is reclaimed or lost here: {other:?}"),
                }
            }
            Aim::Upgrade(hold) => {
                let is_its =
                    |granted: &&Granted| (granted.hold, granted.session) == (hold, session);
                let granted = *self.grants.iter().find(is_its).unwrap();
                let lives = self.lives(granted);
                match answer {
                    Poll::Granted { grant, .. } => {
                        assert!(lives, "upgraded what was over");
                        self.left(index);
                        self.upgraded(granted, lease_ns, grant);
                    }
                    Poll::Waiting { .. } => {
                        let living = self.things[thing].living(&self.now()).count();
                        assert!(
                            lives && living > 1,
                            "nobody else shares it, and it was not granted"
                        );
                    }
                    Poll::Lost => {
                        assert!(!lives, "lost what is held");
                        self.left(index);
                    }
                    other => panic!("nothing is reclaimed here: {other:?}"),
                }
            }
        }
    }

    /// Whether it was said that more is wanted than there can be, which must be when that is so.
    fn is_above<T>(&self, thing: usize, want: Want, answer: &Result<T, Error>) -> bool {
        let is_above = thing == SLOTS && want.amount > self.things[SLOTS].capacity;
        let is_told = matches!(answer, Err(Error::AboveCapacity { capacity, asked, .. })
            if (*capacity, *asked) == (self.things[SLOTS].capacity, want.amount));
        // property 8
        assert_eq!(is_told, is_above);
        is_above
    }

    fn cancel(&mut self, index: usize) {
        let (id, thing) = (self.waits[index].id, self.waits[index].thing);
        let aim = self.things[thing]
            .queue
            .iter()
            .find(|wait| wait.id == id)
            .unwrap()
            .aim;
        let wait = self.left(index);
        if let Aim::Upgrade(hold) = aim
            && self.things[thing].upgrading == Some(hold)
        {
            self.things[thing].upgrading = None;
        }
        let mut woken = false;
        self.engine
            .cancel(wait.ticket, self.now_ns, |_| woken = true);
        // property 6
        self.check_wake(thing, woken);
    }

    /// Another capacity for the limiter's key.
    fn change(&mut self, capacity: u32) {
        let mut woken = 0;
        let (by, now_ns) = (SessionId::DETACHED, self.now_ns);
        let wake = |_| woken += 1;
        self.engine
            .open_concurrency(b"limiter", capacity, true, by, now_ns, wake)
            .unwrap();
        let model = &mut self.things[SLOTS];
        let is_another = std::mem::replace(&mut model.capacity, capacity) != capacity;
        assert!(
            !is_another || woken >= self.waits.iter().filter(|wait| wait.thing == SLOTS).count(),
            "one who waits was not told of another capacity"
        );
    }

    /// The wait is over.
    fn left(&mut self, index: usize) -> Waiting {
        let wait = self.waits.remove(index);
        self.things[wait.thing]
            .queue
            .retain(|other| other.id != wait.id);
        wait
    }

    fn enqueue(&mut self, session: usize, thing: usize, wants: Wants, aim: Aim, for_ns: u64) {
        let until_ns = self.now_ns.saturating_add(for_ns);
        let (name, by) = (self.name(thing), self.sessions[session]);
        let ticket = self.engine.enqueue_for(
            std::slice::from_ref(&name),
            wants,
            by,
            self.now_ns,
            until_ns,
        );
        if let Aim::Anew(want) = aim
            && self.is_above(thing, want, &ticket)
        {
            return;
        }
        let ticket = ticket.unwrap();
        let id = self.id();
        self.things[thing].queue.push(Wait {
            id,
            session,
            until_ns,
            aim,
        });
        self.waits.push(Waiting {
            id,
            thing,
            session,
            ticket,
        });
    }

    fn upgrade(&mut self, granted: Granted, is_to_wait: bool, lease_ns: u64) {
        let Granted {
            thing,
            hold,
            session,
            grant,
        } = granted;
        let is_waiting = |wait: &Wait| matches!(wait.aim, Aim::Upgrade(id) if id == hold);
        if grant.is_plain() || self.things[thing].queue.iter().any(is_waiting) {
            return;
        }
        let lives = self.lives(granted);
        let answer = self.engine.try_upgrade(&grant, self.now_ns, lease_ns);
        if has_permits(thing) {
            let is_refused =
                matches!(answer, Err(Error::NotALock { token }) if token == grant.token);
            // property 8
            assert!(if lives {
                is_refused
            } else {
                answer.unwrap() == Upgrade::NotHeld
            });
            return;
        }
        let other = self.things[thing]
            .upgrading(&self.now())
            .is_some_and(|id| id != hold);
        match answer.unwrap() {
            Upgrade::Granted(grant) => {
                assert!(lives && !other);
                self.upgraded(granted, lease_ns, grant);
            }
            Upgrade::NotHeld => assert!(!lives, "a hold was not upgraded"),
            Upgrade::Conflict => assert!(lives && other, "a conflict with nobody"),
            Upgrade::Shared => {
                let living = self.things[thing].living(&self.now()).count();
                assert!(
                    lives && !other && living > 1,
                    "who had it alone was to wait"
                );
                self.things[thing].upgrading = Some(hold);
                // What was over was ended for it.
                let is_open = self.is_open.clone();
                let now = Now {
                    ns: self.now_ns,
                    is_open: &is_open,
                };
                self.things[thing].holds.retain(|hold| now.lives(hold));
                if is_to_wait && self.waits.len() < MOST {
                    self.enqueue(
                        session,
                        thing,
                        Wants::Upgrade(grant),
                        Aim::Upgrade(hold),
                        u64::MAX,
                    );
                } else {
                    let wake = self.engine.end_upgrade(&grant, self.now_ns);
                    self.things[thing].upgrading = None;
                    self.check_wake(thing, wake.is_some());
                }
            }
        }
    }

    fn downgrade(&mut self, granted: Granted) {
        let Granted {
            thing,
            hold,
            session,
            grant,
        } = granted;
        let lives = self.lives(granted);
        let answer = self.engine.downgrade(&grant, self.now_ns);
        if has_permits(thing) {
            // property 8
            assert!(if lives {
                answer.is_err()
            } else {
                answer.unwrap().is_none()
            });
            return;
        }
        match answer.unwrap() {
            Some((after, wake)) => {
                assert!(lives, "downgraded what was over");
                assert_eq!(after.token, grant.token);
                let model = self.things[thing].hold(hold).unwrap();
                let was_alone = std::mem::take(&mut model.want.alone);
                self.replace(hold, session, after);
                if was_alone {
                    self.check_wake(thing, wake.is_some());
                }
            }
            None => assert!(!lives, "a hold was not downgraded"),
        }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        let now_ns = self.now_ns;
        match *step {
            Step::Pass { ns } => {
                self.now_ns += ns;
                // Everyone looks, so nobody is passed over.
                for wait in (0..self.waits.len()).rev() {
                    self.poll(wait, 1_000_000);
                }
            }
            Step::Try {
                who,
                thing,
                want,
                lease_ns,
            } => {
                if self.living() >= MOST {
                    return;
                }
                let session = self.actors[who];
                let may_have = self.things[thing].may_have(thing, None, want, &self.now());
                let (name, by) = (self.name(thing), self.sessions[session]);
                let wants = self.wants(thing, want);
                let answer = self.engine.try_get(&name, wants, by, now_ns, lease_ns);
                if self.is_above(thing, want, &answer) {
                    return;
                }
                match answer.unwrap() {
                    Attempt::Granted(grant) => {
                        assert!(may_have, "granted while held or queued for");
                        self.grant(thing, session, want, lease_ns, grant);
                    }
                    Attempt::Busy => assert!(!may_have, "refused what was to be had"),
                }
            }
            Step::Enqueue {
                who,
                thing,
                want,
                for_ns,
            } => {
                if self.waits.len() < MOST && self.living() < MOST {
                    let wants = self.wants(thing, want);
                    self.enqueue(self.actors[who], thing, wants, Aim::Anew(want), for_ns);
                }
            }
            Step::Poll { wait, lease_ns } => {
                if let Some(index) = wait.checked_rem(self.waits.len()) {
                    self.poll(index, lease_ns);
                }
            }
            Step::Cancel { wait } => {
                if let Some(index) = wait.checked_rem(self.waits.len()) {
                    self.cancel(index);
                }
            }
            Step::Release { grant } => {
                if let Some(granted) = self.chosen(grant) {
                    let lives = self.lives(granted);
                    let id = self.hold_of(granted).map(|hold| hold.id);
                    let released = self.engine.release(&granted.grant, || now_ns);
                    self.ended(granted.thing, id, lives, released);
                }
            }
            Step::ReleaseByToken { grant, thing } => {
                if let Some(granted) = self.chosen(grant) {
                    let token = granted.grant.token;
                    let (id, lives) = self.by_token(thing, token);
                    let name = self.name(thing);
                    let released = self.engine.release_by_name(of(thing), &name, token, now_ns);
                    self.ended(thing, id, lives, released);
                }
            }
            Step::Renew { grant, lease_ns } => {
                if let Some(granted) = self.chosen(grant) {
                    let id = self.lives(granted).then_some(granted.hold);
                    let renewed = self.engine.renew(&granted.grant, now_ns, lease_ns).unwrap();
                    self.renewed(granted.thing, id, None, lease_ns, renewed);
                }
            }
            Step::RenewByToken {
                grant,
                thing,
                lease_ns,
            } => {
                if let Some(granted) = self.chosen(grant) {
                    let token = granted.grant.token;
                    let (id, lives) = self.by_token(thing, token);
                    let name = self.name(thing);
                    let renewed =
                        self.engine
                            .renew_by_name(of(thing), &name, token, now_ns, lease_ns);
                    self.renewed(
                        thing,
                        id.filter(|_| lives),
                        None,
                        lease_ns,
                        renewed.unwrap(),
                    );
                }
            }
            Step::Transfer {
                grant,
                to,
                lease_ns,
            } => self.transfer(grant, Some(to), lease_ns),
            Step::Detach { grant, lease_ns } => self.transfer(grant, None, lease_ns),
            Step::Adopt {
                grant,
                to,
                lease_ns,
            } => {
                if let Some(Granted { thing, grant, .. }) = self.chosen(grant) {
                    let session = self.actors[to];
                    let (name, to) = (self.name(thing), self.sessions[session]);
                    let (id, lives) = self.by_token(thing, grant.token);
                    let adopted =
                        self.engine
                            .adopt(of(thing), &name, grant.token, to, now_ns, lease_ns);
                    let adopted = adopted.unwrap();
                    let renewed =
                        adopted.map_or(Renewed::NotHeld, |grant| Renewed::Until(grant.deadline_ns));
                    let id = id.filter(|_| lives);
                    self.renewed(thing, id, Some(Holder::Session(session)), lease_ns, renewed);
                    // What the session had of it before goes by what it has become meanwhile.
                    if let (Some(id), Some(grant)) = (id, adopted) {
                        self.replace(id, session, grant);
                    }
                    self.grants.extend(adopted.map(|grant| Granted {
                        thing,
                        hold: id.unwrap(),
                        session,
                        grant,
                    }));
                }
            }
            Step::Upgrade {
                grant,
                is_to_wait,
                lease_ns,
            } => {
                if let Some(granted) = self.chosen(grant) {
                    self.upgrade(granted, is_to_wait, lease_ns);
                }
            }
            Step::Downgrade { grant } => {
                if let Some(granted) = self.chosen(grant) {
                    self.downgrade(granted);
                }
            }
            Step::Break { thing } => self.break_lock(thing),
            Step::Change { capacity } => self.change(capacity),
            Step::Reopen { who } => self.reopen(who),
            Step::Look { thing } => self.look(thing),
        }
    }

    fn transfer(&mut self, grant: usize, to: Option<usize>, lease_ns: u64) {
        let Some(granted) = self.chosen(grant) else {
            return;
        };
        let id = self.lives(granted).then_some(granted.hold);
        let to = to.map(|who| self.actors[who]);
        let session = to.map_or(SessionId::DETACHED, |session| self.sessions[session]);
        let renewed = self
            .engine
            .transfer(&granted.grant, session, self.now_ns, lease_ns);
        let to = to.map_or(Holder::Detached, Holder::Session);
        self.renewed(granted.thing, id, Some(to), lease_ns, renewed.unwrap());
    }

    fn break_lock(&mut self, thing: usize) {
        if has_permits(thing) {
            return;
        }
        let is_held = self.things[thing].living(&self.now()).next().is_some();
        let broken = self
            .engine
            .break_lock(&self.name(thing), Process::default(), self.now_ns);
        if let Some(broken) = broken {
            let model = &mut self.things[thing];
            assert_eq!(broken.token, FLOOR + model.grants);
            assert!(!model.holds.is_empty(), "broke what nobody had");
            model.holds.clear();
            model.upgrading = None;
            self.check_wake(thing, broken.wake.is_some());
        } else {
            assert!(!is_held, "a lock was not broken");
        }
    }

    /// The session closes, and its actor goes on with another.
    fn reopen(&mut self, who: usize) {
        let closed = self.actors[who];
        self.engine.close_session(self.sessions[closed]);
        self.is_open[closed] = false;
        // The dead take no more steps.
        self.grants.retain(|granted| granted.session != closed);
        self.waits.retain(|wait| wait.session != closed);
        self.actors[who] = self.open();
    }

    fn look(&self, thing: usize) {
        let (model, now) = (&self.things[thing], self.now());
        let mut expected: Vec<u64> = model.living(&now).map(|hold| hold.token).collect();
        expected.sort_unstable();
        let (holds, waiters) = if thing == SLOTS {
            let seen = self.engine.concurrency_statuses(b"", self.now_ns);
            assert_eq!(seen[0].capacity, model.capacity);
            let key = seen[0].keys.first();
            key.map_or_else(Default::default, |key| {
                assert_eq!((&key.name[..], key.capacity), (NAMES[0], model.capacity));
                (key.holds.clone(), key.waiters)
            })
        } else if thing == SEMAPHORE {
            let mut seen = None;
            self.engine
                .for_each_semaphore(NAMES[thing], self.now_ns, |status| {
                    assert_eq!(status.capacity, CAPACITY);
                    seen = Some((status.holds, status.waiters));
                });
            seen.unwrap_or_default()
        } else {
            let status = self.engine.lock_status(&self.name(thing), self.now_ns);
            status.map_or_else(Default::default, |status| {
                assert_eq!(status.token, FLOOR + model.grants);
                let mut living = model.living(&now);
                if let Some(hold) = living.next() {
                    assert_eq!(status.is_shared, !hold.want.alone);
                }
                (status.holds, status.waiters)
            })
        };
        let lives = |hold: &&sprag_core::lock::HoldStatus| hold.lease_left_ns > 0 && hold.is_alive;
        let mut tokens: Vec<u64> = holds.iter().filter(lives).map(|hold| hold.token).collect();
        tokens.sort_unstable();
        assert_eq!(tokens, expected);
        let waiting = model.queue.iter().filter(|wait| now.waits(wait)).count();
        assert!((waiting..=model.queue.len()).contains(&(waiters as usize)));
    }

    /// Whatever came before, all of it is to be had in the end, and the region contradicts itself nowhere.
    pub(crate) fn end(mut self) {
        (0..THINGS).for_each(|thing| self.look(thing));
        let findings = |engine: &Engine| engine.check_region().findings;
        assert!(
            findings(&self.engine).is_empty(),
            "{:?}",
            findings(&self.engine)
        );
        for who in 0..SESSIONS {
            self.reopen(who);
        }
        let me = self.sessions[self.actors[0]];
        self.change(CAPACITY);
        for thing in 0..THINGS {
            let name = self.name(thing);
            let detached = self.things[thing].holds.iter();
            for hold in detached.filter(|hold| hold.holder == Holder::Detached) {
                self.engine
                    .release_by_name(of(thing), &name, hold.token, self.now_ns);
            }
            let all = self.wants(
                thing,
                Want {
                    alone: true,
                    amount: CAPACITY,
                },
            );
            // Again, should the first have freed it for whoever's turn it is.
            let attempt = || {
                self.engine
                    .try_get(&name, all, me, self.now_ns, 1_000_000)
                    .unwrap()
            };
            assert!(
                matches!(attempt(), Attempt::Granted(_)),
                "something was left of thing {thing}"
            );
        }
        assert!(
            findings(&self.engine).is_empty(),
            "{:?}",
            findings(&self.engine)
        );
    }
}
