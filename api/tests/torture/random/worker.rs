//! What a process at random work does. Owns the mix and the names that are worked on; who is killed, and what is judged
//! then, is for [`super`] to say.

use super::{AIM, END, ROOMY, TOKENS};
use crate::actor::{Actor, Begin, LONG, PERMITS, name_of, yes};
use crate::journal::{Op, RECORDS};
use crate::process::now_ns;
use crate::scene::{DAY, FAST, LIMITS, LONG_TTL, WIDER};
use sprag::{Decisions, JointLimiter, Limiter, Space};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// A semaphore's name, beside the locks'.
const POOL: u64 = 9;
/// A concurrency limiter's.
const UPLOADS: &str = "uploads";
/// Limits of which a test uses up nothing and of which nothing comes back: whoever takes of two takes as much of each.
const AMPLE: [&str; 2] = ["1000000/366d;window=fixed", "1000000/365d;window=fixed"];
/// The key of theirs.
const BOTH: u64 = 1;

pub(super) const FENCE: u64 = 30;
/// A counter that only rises, and one that keeps its bounds.
pub(super) const HITS: u64 = 31;
pub(super) const STOCK: u64 = 32;
/// A striped counter.
pub(super) const STRIPED: u64 = 33;
/// The keys of onces.
pub(super) const ONCES: [u64; 3] = [1, 2, LONG + 1];
/// How long their results are kept.
pub(super) const KEPT: Duration = Duration::from_millis(2);

/// A process at random work.
pub(super) struct Worker {
    actor: Actor,
    random: fastrand::Rng,
}

pub(super) struct Limiters {
    pub(super) day: Limiter,
    pub(super) fast: Limiter,
    pub(super) changing: Limiter,
    /// For calls of both.
    pair: [Limiter; 2],
    joint: JointLimiter,
}

impl Limiters {
    pub(super) fn open(space: &Space) -> Self {
        let open = |name: &str, limit: u64| {
            let text = LIMITS[limit as usize].0;
            space.limiter_updated(name, text).expect("a limiter opens")
        };
        let uploads = space.concurrency(UPLOADS, PERMITS);
        assert_eq!(
            uploads.map(|it| it.permits().ok()).ok(),
            Some(Some(PERMITS))
        );
        Self {
            day: open("day", DAY),
            fast: open("fast", FAST),
            changing: open("changing", WIDER),
            pair: AMPLE.map(|limit| space.limiter(limit, limit).expect("a limiter opens")),
            joint: space
                .joint_limiter("joint", AMPLE)
                .expect("a limiter opens"),
        }
    }

    /// What is used of each of the pair, and under each of the joint limits.
    pub(super) fn used(&self) -> [[u64; 2]; 2] {
        let key = name_of(BOTH);
        let joint = self.joint.peek(&key).expect("a look");
        let used = |left: Option<u64>| 1_000_000 - left.expect("a limit");
        let pair = self.pair.each_ref();
        [
            pair.map(|limiter| used(limiter.peek(&key).ok().map(|it| it.remaining()))),
            [0, 1].map(|place| used(joint.of(place).map(|it| it.remaining()))),
        ]
    }
}

impl Worker {
    pub(super) fn new(actor: Actor) -> Self {
        Self {
            random: fastrand::Rng::with_seed(
                actor.by.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ now_ns(),
            ),
            actor,
        }
    }

    /// Every other call is struck before one of its steps.
    fn op(&mut self, op: Op) -> Op {
        if self.random.bool() {
            let most = self.actor.journal.steps(op).load(SeqCst).max(1);
            // Most runs are much shorter than the longest.
            let most = if self.random.bool() {
                most
            } else {
                most.min(24)
            };
            let step = self.random.u64(1..=most);
            let aim = (op as u64) << 32 | step;
            self.actor
                .journal
                .flag(AIM + self.actor.role)
                .store(aim, SeqCst);
            let is_stop = self.random.u32(0..4) == 0;
            self.actor.aim(
                step,
                if is_stop {
                    libc::SIGSTOP
                } else {
                    libc::SIGKILL
                },
            );
        }
        op
    }

    fn is_over(&self) -> bool {
        let actor = &self.actor;
        actor.journal.flag(END).load(SeqCst) != 0 || actor.journal.len(actor.role) > RECORDS - 256
    }

    pub(super) fn work(&mut self) {
        while !self.is_over() {
            let op = self.op(Op::OpenSession);
            let Ok(space) = self.actor.open_as(op) else {
                continue;
            };
            let mut limiters = Limiters::open(&space);
            for _ in 0..self.random.u32(5..40) {
                if self.is_over() {
                    break;
                }
                self.act(&space, &mut limiters);
            }
            drop(limiters);
            let op = self.op(Op::CloseSession);
            self.actor.close(op, space);
        }
    }

    fn act(&mut self, space: &Space, limiters: &mut Limiters) {
        let key = [1, 2, 3, LONG + 1][self.random.usize(0..4)];
        match self.random.u32(0..34) {
            0..=3 => self.hold_for_a_while(space, key),
            4 => {
                let op = self.op(Op::Wait);
                let timeout = Duration::from_millis(self.random.u64(1..8));
                if let Ok(Some(held)) = self.actor.acquire(op, space, key, LONG_TTL, timeout) {
                    let op = self.op(Op::Release);
                    self.actor.release(op, held);
                }
            }
            5 => self.hand_over(space, key),
            6 if self.random.u32(0..4) == 0 => {
                let op = self.op(Op::Break);
                self.actor.break_lock(op, space, key);
            }
            6 | 7 => {
                let is_long = self.random.bool();
                let op = self.op(if is_long {
                    Op::ReclaimLong
                } else {
                    Op::Reclaim
                });
                let key = self.random.u64(100..140) + if is_long { LONG } else { 0 };
                if let Ok(Some(held)) = self.actor.try_acquire(op, space, key, LONG_TTL) {
                    let op = self.op(Op::Release);
                    self.actor.release(op, held);
                }
            }
            8 => {
                let op = self.op(Op::Check);
                let key = self.random.u64(1..5);
                self.actor.check(op, &limiters.day, DAY, key, 1);
            }
            9 => {
                let op = self.op(Op::CheckReclaim);
                let key = self.random.u64(40..60);
                self.actor.check(op, &limiters.fast, FAST, key, 1);
            }
            10 => {
                // More than there is room for beside the others: most overflow.
                let op = self.op(Op::CheckOverflow);
                let key = self.random.u64(60..80);
                self.actor.check(op, &limiters.day, DAY, key, 1);
            }
            11 => {
                let op = self.op(Op::CheckLong);
                let key = self.random.u64(60..64) + LONG;
                self.actor.check(op, &limiters.fast, FAST, key, 1);
            }
            12 => {
                let op = self.op(Op::UpdateLimit);
                let limit = [DAY, WIDER][self.random.usize(0..2)];
                let text = LIMITS[limit as usize].0;
                limiters.changing = self.actor.limiter(op, space, "changing", text);
            }
            13 | 14 => {
                // Whatever the limit is just then, it is never above the wider one.
                let op = self.op(Op::Check);
                let key = self.random.u64(5..8);
                self.actor.check(op, &limiters.changing, WIDER, key, 1);
            }
            15 => {
                let hits = space.counter(&name_of(HITS)).expect("a name");
                let op = self.op(Op::Add);
                self.actor.add(op, &hits, HITS, self.random.i64(1..4));
            }
            16 => {
                let stock = space.counter(&name_of(STOCK)).expect("a name");
                let op = self.op(Op::AddWithin);
                let delta = self.random.i64(-3..4);
                self.actor.add_within(op, &stock, STOCK, delta);
                self.actor.get(&stock, STOCK);
            }
            17 => {
                let striped = space.counter(&name_of(STRIPED)).expect("a name");
                let Ok(striped) = striped.striped() else {
                    return;
                };
                for _ in 0..self.random.u32(1..24) {
                    let op = self.op(Op::StripedAdd);
                    let delta = self.random.i64(-3..4);
                    self.actor.striped_add(op, &striped, STRIPED, delta);
                }
            }
            18 => {
                let plain = space.counter(&name_of(STRIPED)).expect("a name");
                let op = self.op(Op::Gather);
                self.actor.add(op, &plain, STRIPED, 1);
                self.actor.get(&plain, STRIPED);
            }
            19..=21 => self.do_once(space),
            22..=24 => self.share_for_a_while(space, key),
            25 => self.take_permits(space),
            26 => self.take_slots(space),
            // Who is called off, or let in and out again, spends a token.
            29 | 30 => {
                let op = self.op(Op::Charge);
                let name = name_of(BOTH);
                let [one, other] = &limiters.pair;
                let call = || space.check_all(&[(one, &name, 1), (other, &name, 1)]);
                let read = |taken: &Result<Decisions, _>| yes(taken.is_ok());
                let _ = self.actor.call(op, BOTH, 1, call, read);
            }
            31 | 32 => {
                let op = self.op(Op::CheckJoint);
                let call = || limiters.joint.check(&name_of(BOTH), 1).map(drop);
                let _ = self
                    .actor
                    .call(op, BOTH, 1, call, |taken| yes(taken.is_ok()));
            }
            27 | 28 if self.actor.caps != ROOMY => self.take_many(space),
            _ => {
                let tokens = self.actor.journal.flag(TOKENS);
                let token = tokens.fetch_add(1, SeqCst) + 4 - self.random.u64(0..4);
                let fence = space.fence(&name_of(FENCE)).expect("a name");
                let op = self.op(Op::Admit);
                self.actor.admit(op, &fence, FENCE, token);
            }
        }
    }

    fn hold_for_a_while(&mut self, space: &Space, key: u64) {
        let ttl = [
            Duration::from_millis(2),
            Duration::from_millis(10),
            LONG_TTL,
        ][self.random.usize(0..3)];
        let op = self.op(Op::Acquire);
        let Ok(Some(mut held)) = self.actor.try_acquire(op, space, key, ttl) else {
            return;
        };
        for _ in 0..self.random.u32(0..3) {
            let until_ns = now_ns() + self.random.u64(0..2_000_000);
            while now_ns() < until_ns {
                std::thread::yield_now();
            }
            let op = self.op(Op::Renew);
            if !self.actor.renew(op, &mut held) {
                break;
            }
        }
        let op = self.op(Op::Release);
        self.actor.release(op, held);
    }

    /// Begins at one of a few keys, and ends what it has begun one way or another.
    fn do_once(&mut self, space: &Space) {
        let key = ONCES[self.random.usize(0..ONCES.len())];
        let ttl = [Duration::from_millis(2), LONG_TTL][self.random.usize(0..2)];
        let op = self.op(Op::Begin);
        let begun = self.actor.begin(op, space, key, ttl);
        match (begun, self.random.u32(0..5)) {
            (Ok(Begin::Started(owned)), 0) => {
                let op = self.op(Op::Abandon);
                self.actor.abandon(op, owned);
            }
            (Ok(Begin::Started(owned)), 1) => {
                let until_ns = now_ns() + 3_000_000;
                while now_ns() < until_ns {
                    std::thread::yield_now();
                }
                let op = self.op(Op::Finish);
                self.actor.finish(op, owned, KEPT);
            }
            (Ok(Begin::Started(owned)), _) => {
                let op = self.op(Op::Finish);
                self.actor.finish(op, owned, KEPT);
            }
            _ => {
                let op = self.op(Op::LookOnce);
                self.actor.look(op, space, key);
            }
        }
    }

    /// Takes several locks, a partition or the table, for not so long that a stopped one holds up all others.
    fn take_many(&mut self, space: &Space) {
        let kinds = [
            [Op::Several, Op::SeveralWait, Op::ReleaseSeveral],
            [Op::Partition, Op::PartitionWait, Op::ReleasePartition],
            [Op::Table, Op::TableWait, Op::ReleaseTable],
        ];
        let [at_once, wait, release] = kinds[self.random.usize(0..kinds.len())];
        let is_waiting = self.random.bool();
        let timeout = Duration::from_millis(if is_waiting { 5 } else { 0 });
        let ttl = Duration::from_millis(self.random.u64(2..20));
        let op = self.op(if is_waiting { wait } else { at_once });
        let Ok(Some(held)) = self.actor.take(op, space, ttl, timeout) else {
            return;
        };
        let until_ns = now_ns() + self.random.u64(0..1_000_000);
        while now_ns() < until_ns {
            std::thread::yield_now();
        }
        let op = self.op(release);
        self.actor.let_go(op, held);
    }

    /// Shares a lock, and goes on to have it alone and to share it again.
    fn share_for_a_while(&mut self, space: &Space, key: u64) {
        let ttl = [
            Duration::from_millis(2),
            Duration::from_millis(10),
            LONG_TTL,
        ][self.random.usize(0..3)];
        let timeout = Duration::from_millis(self.random.u64(0..4));
        let op = self.op(if timeout.is_zero() {
            Op::Share
        } else {
            Op::ShareWait
        });
        let Ok(Some(mut held)) = self.actor.share(op, space, key, ttl, timeout) else {
            return;
        };
        for _ in 0..self.random.u32(0..3) {
            let timeout = Duration::from_millis(self.random.u64(0..4));
            let op = self.op(if timeout.is_zero() {
                Op::Upgrade
            } else {
                Op::UpgradeWait
            });
            if self.actor.upgrade(op, &mut held, timeout) {
                let op = self.op(Op::DowngradeUpgraded);
                if !self.actor.downgrade(op, &mut held) {
                    break;
                }
            }
            let op = self.op(Op::RenewShare);
            if !self.actor.renew(op, &mut held) {
                break;
            }
        }
        let op = self.op(Op::ReleaseShare);
        self.actor.release(op, held);
    }

    fn take_slots(&mut self, space: &Space) {
        let ttl = [Duration::from_millis(10), LONG_TTL][self.random.usize(0..2)];
        let timeout = Duration::from_millis(self.random.u64(0..4));
        let op = self.op(if timeout.is_zero() {
            Op::TakeSlots
        } else {
            Op::WaitSlots
        });
        let permits = self.random.u32(1..=PERMITS);
        let taken = self.actor.slots(op, space, UPLOADS, permits, ttl, timeout);
        if let Ok(Some(held)) = taken {
            let op = self.op(Op::ReleaseSlots);
            self.actor.release(op, held);
        }
    }

    fn take_permits(&mut self, space: &Space) {
        let ttl = [Duration::from_millis(10), LONG_TTL][self.random.usize(0..2)];
        let timeout = Duration::from_millis(self.random.u64(0..4));
        let op = self.op(if timeout.is_zero() {
            Op::TakePermits
        } else {
            Op::WaitPermits
        });
        let permits = self.random.u32(1..=PERMITS);
        let taken = self.actor.permits(op, space, POOL, permits, ttl, timeout);
        if let Ok(Some(held)) = taken {
            let op = self.op(Op::ReleasePermits);
            self.actor.release(op, held);
        }
    }

    /// Detaches a hold, then ends it by its token, or takes it back first.
    fn hand_over(&mut self, space: &Space, key: u64) {
        let ttl = Duration::from_millis(10);
        let Ok(Some(held)) = self.actor.try_acquire(Op::Acquire, space, key, ttl) else {
            return;
        };
        let op = self.op(Op::Detach);
        let Some(token) = self.actor.detach(op, held) else {
            return;
        };
        if self.random.bool() {
            let op = self.op(Op::Adopt);
            if let Some(held) = self.actor.adopt(op, space, key, token, ttl) {
                let op = self.op(Op::Release);
                self.actor.release(op, held);
            }
        } else {
            let op = self.op(Op::ReleaseToken);
            self.actor.release_token(op, space, key, token);
        }
    }
}
