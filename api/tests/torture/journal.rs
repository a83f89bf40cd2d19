//! The journal: what workers are about to do and what came of it, in memory that outlives them.
//!
//! Each role (a worker's place, filled by one process after another) appends to its own records:
//! intent before the call, result after it. A record whose result is missing belongs to a process that
//! died in the call, or is in it still: its outcome is unknown, and the oracle counts it as either.

use crate::process::{now_ns, shared_words};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Roles of one journal.
pub(crate) const ROLES: usize = 8;
/// Records of one role.
pub(crate) const RECORDS: usize = 4_096;
const WORDS: usize = 16;
const HEADER: usize = 64;
/// One more than the highest number of an operation.
pub(crate) const OPS: usize = Op::ALL.len() + 1;

/// What is done to a region: the rows of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u64)]
pub(crate) enum Op {
    Acquire = 1,
    Wait,
    Future,
    Cancel,
    Release,
    HandOn,
    Renew,
    Steal,
    TakeOver,
    Detach,
    Adopt,
    ReleaseToken,
    Break,
    Insert,
    InsertLong,
    Grow,
    Reclaim,
    ReclaimLong,
    ReclaimHeld,
    Refuse,
    Check,
    CheckInsert,
    CheckLong,
    CheckOverflow,
    CheckRefused,
    CheckReclaim,
    CheckConvert,
    Charge,
    ChargeInsert,
    ChargeOverflow,
    ChargeMet,
    ChargeDead,
    Reserve,
    Refund,
    RefundOverflow,
    OpenLimiter,
    UpdateLimit,
    FinishUpdate,
    SetOverride,
    ClearOverride,
    CheckOverridden,
    OpenJoint,
    CheckJoint,
    CheckJointClosing,
    CheckJointInsert,
    CheckJointOverflow,
    CheckJointReclaim,
    Admit,
    AdmitInsert,
    Add,
    AddInsert,
    AddReclaim,
    AddWithin,
    CounterGet,
    Stripe,
    StripedAdd,
    StripedWithin,
    Gather,
    Begin,
    BeginTakeOver,
    BeginDone,
    Finish,
    Abandon,
    LookOnce,
    OpenSession,
    CloseSession,
    Create,
    Share,
    ShareBeside,
    ShareLast,
    ShareWait,
    ReleaseShare,
    LeaveOthers,
    RenewShare,
    Upgrade,
    UpgradeWait,
    Downgrade,
    DowngradeUpgraded,
    BreakShared,
    TakePermits,
    WaitPermits,
    ReleasePermits,
    TakeSlots,
    WaitSlots,
    ReleaseSlots,
    AllowSlots,
    MakeSlots,
    Several,
    SeveralWait,
    ReleaseSeveral,
    Partition,
    PartitionWait,
    ReleasePartition,
    Table,
    TableWait,
    ReleaseTable,
}

impl Op {
    pub(crate) const ALL: [(Self, &'static str); 96] = [
        (Self::Acquire, "acquire, free"),
        (Self::Wait, "acquire, parked in the queue"),
        (Self::Future, "acquire, queued as a future"),
        (Self::Cancel, "acquire, given up"),
        (Self::Release, "release"),
        (Self::HandOn, "release with waiters"),
        (Self::Renew, "renew"),
        (Self::Steal, "steal of an expired lease"),
        (Self::TakeOver, "takeover from the dead"),
        (Self::Detach, "detach"),
        (Self::Adopt, "adopt a detached hold"),
        (Self::ReleaseToken, "release by token"),
        (Self::Break, "break"),
        (Self::Insert, "insert a short name"),
        (Self::InsertLong, "insert a long name"),
        (Self::Grow, "growth of the region"),
        (Self::Reclaim, "reclaim at the cap"),
        (Self::ReclaimLong, "reclaim of long names"),
        (Self::ReclaimHeld, "reclaim of what the dead hold"),
        (Self::Refuse, "refuse, table full"),
        (Self::Check, "limiter: check"),
        (Self::CheckInsert, "limiter: insert a key"),
        (Self::CheckLong, "limiter: insert a long key"),
        (Self::CheckOverflow, "limiter: overflow at the cap"),
        (Self::CheckRefused, "limiter: refuse"),
        (Self::CheckReclaim, "limiter: reclaim a key"),
        (Self::CheckConvert, "limiter: check in a change"),
        (Self::Charge, "limiters: several in one call"),
        (Self::ChargeInsert, "limiters: several, a key inserted"),
        (Self::ChargeOverflow, "limiters: several, at the cap"),
        (Self::ChargeMet, "limiters: check in a dead call"),
        (Self::ChargeDead, "limiters: several, to be met"),
        (Self::Reserve, "limiter: reserve"),
        (Self::Refund, "limiter: refund"),
        (Self::RefundOverflow, "limiter: refund at the cap"),
        (Self::OpenLimiter, "limiter: create"),
        (Self::UpdateLimit, "limiter: change the limit"),
        (Self::FinishUpdate, "limiter: finish another's change"),
        (Self::SetOverride, "limiter: set an override"),
        (Self::ClearOverride, "limiter: clear an override"),
        (
            Self::CheckOverridden,
            "limiter: insert a key with an override",
        ),
        (Self::OpenJoint, "joint limiter: create"),
        (Self::CheckJoint, "joint limiter: check"),
        (Self::CheckJointClosing, "joint limiter: check, in parts"),
        (Self::CheckJointInsert, "joint limiter: insert a key"),
        (
            Self::CheckJointOverflow,
            "joint limiter: overflow at the cap",
        ),
        (Self::CheckJointReclaim, "joint limiter: reclaim a key"),
        (Self::Admit, "fence: admit"),
        (Self::AdmitInsert, "fence: admit, first"),
        (Self::Add, "counter: add"),
        (Self::AddInsert, "counter: add, first"),
        (Self::AddReclaim, "counter: add, reclaiming one at 0"),
        (Self::AddWithin, "counter: add within bounds"),
        (Self::CounterGet, "counter: get"),
        (Self::Stripe, "striped counter: make one"),
        (Self::StripedAdd, "striped counter: add"),
        (Self::StripedWithin, "striped counter: add within bounds"),
        (Self::Gather, "striped counter: add and tell the sum"),
        (Self::Begin, "once: begin"),
        (Self::BeginTakeOver, "once: take over from the dead"),
        (Self::BeginDone, "once: begin, read the result"),
        (Self::Finish, "once: finish"),
        (Self::Abandon, "once: abandon"),
        (Self::LookOnce, "once: look"),
        (Self::OpenSession, "session: open"),
        (Self::CloseSession, "session: close"),
        (Self::Create, "region: create"),
        (Self::Share, "share, free"),
        (Self::ShareBeside, "share, beside another"),
        (Self::ShareLast, "share, by the last permit"),
        (Self::ShareWait, "share, parked in the queue"),
        (Self::ReleaseShare, "release of the last share"),
        (Self::LeaveOthers, "release of one share of two"),
        (Self::RenewShare, "renew a share"),
        (Self::Upgrade, "upgrade, alone"),
        (Self::UpgradeWait, "upgrade, waiting for another"),
        (Self::Downgrade, "downgrade"),
        (Self::DowngradeUpgraded, "downgrade after an upgrade"),
        (Self::BreakShared, "break of shares"),
        (Self::TakePermits, "permits: take"),
        (Self::WaitPermits, "permits: parked in the queue"),
        (Self::ReleasePermits, "permits: release"),
        (Self::TakeSlots, "slots: take"),
        (Self::WaitSlots, "slots: parked in the queue"),
        (Self::ReleaseSlots, "slots: release"),
        (Self::AllowSlots, "slots: change how many"),
        (Self::MakeSlots, "slots: make the limiter"),
        (Self::Several, "several: acquire"),
        (Self::SeveralWait, "several: acquire, parked in the queues"),
        (Self::ReleaseSeveral, "several: release"),
        (Self::Partition, "partition: acquire"),
        (
            Self::PartitionWait,
            "partition: acquire, parked in the queue",
        ),
        (Self::ReleasePartition, "partition: release"),
        (Self::Table, "table: acquire"),
        (Self::TableWait, "table: acquire, parked in the queue"),
        (Self::ReleaseTable, "table: release"),
    ];

    pub(crate) fn name(self) -> &'static str {
        let row = Self::ALL.iter().find(|(op, _)| *op == self);
        row.expect("every operation is in the list").1
    }

    pub(crate) fn of(number: u64) -> Option<Self> {
        let row = Self::ALL.iter().find(|(op, _)| *op as u64 == number);
        row.map(|(op, _)| *op)
    }
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Outcome {
    /// Still in it, or died in it.
    Unknown = 0,
    /// Done: granted, allowed, admitted.
    Yes = 1,
    /// Refused, busy, lost: nothing changed.
    No = 2,
}

/// A record as it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// Whether its outcome was there before anything was read.
    pub(crate) is_settled: bool,
    pub(crate) op: Op,
    pub(crate) key: u64,
    /// A cost, or the token that was given.
    pub(crate) argument: u64,
    pub(crate) outcome: Outcome,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// The token that was granted; of a beginning that was refused, the one that its result tells of.
    pub(crate) token: u64,
    /// Until when the holder may take the lock for its own, or what was finished is kept at least.
    pub(crate) valid_until_ns: u64,
    /// When the holder began to give it up; 0 if it has not.
    pub(crate) left_ns: u64,
    /// When the holder was last known to be alive.
    pub(crate) seen_ns: u64,
    /// Which process wrote it: each has a number of its own.
    pub(crate) by: u64,
    /// The limit that a check ran under.
    pub(crate) limit: u64,
    /// How much of what it is of a hold has, of [`WHOLE`].
    pub(crate) part: u64,
}

/// All of a lock or of a semaphore's permits. Divides by the number of those.
pub(crate) const WHOLE: u64 = 12;

/// A mapping that all of a test's processes share.
#[derive(Clone, Copy)]
pub(crate) struct Journal {
    words: &'static [AtomicU64],
}

/// A record that is being written.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    words: &'static [AtomicU64],
}

const STATE: usize = 0;
const KEY: usize = 1;
const ARGUMENT: usize = 2;
const START: usize = 3;
const END: usize = 4;
const TOKEN: usize = 5;
const VALID_UNTIL: usize = 6;
const LEFT: usize = 7;
const SEEN: usize = 8;
const BY: usize = 9;
const LIMIT: usize = 10;
const PART: usize = 11;

impl Journal {
    /// Shared with every child forked from now on.
    pub(crate) fn new() -> Self {
        let words = shared_words(HEADER + OPS + ROLES * (RECORDS + 1) * WORDS);
        Self { words }
    }

    /// Empties it: when nobody else is alive.
    pub(crate) fn reset(&self) {
        for role in 0..ROLES {
            let used = self.used(role).load(SeqCst);
            for at in 0..used {
                for word in self.record(role, at as usize) {
                    word.store(0, SeqCst);
                }
            }
            self.used(role).store(0, SeqCst);
        }
        for word in &self.words[..HEADER] {
            word.store(0, SeqCst);
        }
    }

    /// A word for the tests' own use.
    pub(crate) fn flag(&self, at: usize) -> &'static AtomicU64 {
        &self.words[at]
    }

    /// The longest that an operation was ever seen to take, in steps.
    pub(crate) fn steps(&self, op: Op) -> &'static AtomicU64 {
        &self.words[HEADER + op as usize]
    }

    /// Notes how many steps a call took.
    pub(crate) fn note_steps(&self, op: Op, is_aimed: bool, taken: u64) {
        self.steps(op).fetch_max(taken, SeqCst);
        if is_aimed {
            self.words[HEADER].store(taken, SeqCst);
        }
    }

    /// How many steps the call took that was aimed at and not struck.
    pub(crate) fn steps_of_victim(&self) -> u64 {
        self.words[HEADER].load(SeqCst)
    }

    fn role_at(role: usize) -> usize {
        HEADER + OPS + role * (RECORDS + 1) * WORDS
    }

    fn used(&self, role: usize) -> &'static AtomicU64 {
        &self.words[Self::role_at(role)]
    }

    /// How many records a role has.
    pub(crate) fn len(&self, role: usize) -> usize {
        self.used(role).load(SeqCst) as usize
    }

    fn record(&self, role: usize, at: usize) -> &'static [AtomicU64] {
        let at = Self::role_at(role) + (at + 1) * WORDS;
        &self.words[at..at + WORDS]
    }

    /// Writes an intent.
    pub(crate) fn begin(&self, role: usize, by: u64, op: Op, key: u64, argument: u64) -> Entry {
        let at = self.used(role).fetch_add(1, SeqCst) as usize;
        assert!(at < RECORDS, "the journal of role {role} is full");
        let words = self.record(role, at);
        for word in words {
            word.store(0, SeqCst);
        }
        words[KEY].store(key, SeqCst);
        words[ARGUMENT].store(argument, SeqCst);
        words[BY].store(by, SeqCst);
        words[PART].store(WHOLE, SeqCst);
        words[START].store(now_ns(), SeqCst);
        // Last: what a process that dies before has not begun is no record.
        words[STATE].store((op as u64) << 8, SeqCst);
        Entry { words }
    }

    /// Takes back a role's last record: of a call that changed nothing and is made over and over.
    pub(crate) fn retract(&self, role: usize) {
        let last = self.used(role).fetch_sub(1, SeqCst) - 1;
        self.record(role, last as usize)[STATE].store(0, SeqCst);
    }

    /// Every record whose intent is there. Others may be writing: what the records that were *settled*
    /// when this began rest on is all in what this returns.
    pub(crate) fn records(&self) -> Vec<Record> {
        let is_done = |role, at| self.record(role, at)[STATE].load(SeqCst) & 0xff != 0;
        let settled: Vec<Vec<bool>> = (0..ROLES)
            .map(|role| (0..self.len(role)).map(|at| is_done(role, at)).collect())
            .collect();
        let mut records = Vec::new();
        for (role, settled) in settled.iter().enumerate() {
            for at in 0..self.len(role) {
                let words = self.record(role, at);
                let get = |word: usize| words[word].load(SeqCst);
                let state = get(STATE);
                let Some(op) = Op::of(state >> 8) else {
                    continue;
                };
                records.push(Record {
                    is_settled: settled.get(at).copied().unwrap_or(false),
                    op,
                    key: get(KEY),
                    argument: get(ARGUMENT),
                    outcome: match state & 0xff {
                        1 => Outcome::Yes,
                        2 => Outcome::No,
                        _ => Outcome::Unknown,
                    },
                    start_ns: get(START),
                    end_ns: get(END),
                    token: get(TOKEN),
                    valid_until_ns: get(VALID_UNTIL),
                    left_ns: get(LEFT),
                    seen_ns: get(SEEN),
                    by: get(BY),
                    limit: get(LIMIT),
                    part: get(PART),
                });
            }
        }
        records
    }

    /// The operation that a process was in when it died; `None` if it was between two.
    pub(crate) fn last_unfinished(&self, role: usize, by: u64) -> Option<Op> {
        let at = self.len(role).checked_sub(1)?;
        let words = self.record(role, at);
        let state = words[STATE].load(SeqCst);
        (words[BY].load(SeqCst) == by && state as u8 == Outcome::Unknown as u8)
            .then(|| Op::of(state >> 8))
            .flatten()
    }
}

impl Entry {
    pub(crate) fn set_limit(&self, limit: u64) {
        self.words[LIMIT].store(limit, SeqCst);
    }

    pub(crate) fn set_part(&self, part: u64) {
        self.words[PART].store(part, SeqCst);
    }

    /// Until when the lock is claimed. Set before the outcome, and anew by each renewal.
    pub(crate) fn claim_until(&self, valid_until_ns: u64) {
        self.words[VALID_UNTIL].store(valid_until_ns, SeqCst);
        self.words[SEEN].store(now_ns(), SeqCst);
    }

    /// The holder begins to give it up.
    pub(crate) fn leave(&self) {
        self.words[LEFT].store(now_ns(), SeqCst);
    }

    pub(crate) fn end(&self, outcome: Outcome, token: u64) {
        self.words[TOKEN].store(token, SeqCst);
        self.words[END].store(now_ns(), SeqCst);
        let op = self.words[STATE].load(SeqCst) & !0xff;
        self.words[STATE].store(op | outcome as u64, SeqCst);
    }
}
