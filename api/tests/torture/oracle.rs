//! The oracle: what a journal must never show, whoever died or stood still when it was written.
//!
//! - **Exclusion**: those who took one lock or semaphore for their own at one time never had more of it than
//!   there is: alone all, shared a part. Such a
//!   time begins when the acquire returned, and ends when the holder began to give it up, or was last
//!   known to be alive, when its own lease ended, or when the lock was broken.
//! - **Tokens**: none is granted twice; of two grants, one of which returned before the other was
//!   asked for, the later has the higher; none is missing but those that a call without a known
//!   outcome may have taken, unless idle locks were reclaimed.
//! - **Limits**: in every interval of length w, checks that lie wholly within it were allowed at most
//!   B + r·w; a check is refused only if those allowed, and those of unknown outcome, leave no room.
//! - **Counters**: see [`oracle_counter`](crate::oracle_counter).
//! - **Fences**: what is admitted never falls; what is rejected was overtaken.
//! - **Onces**: attempts exclude each other and have tokens as holds do. A result that is read is one that
//!   the attempt it tells of stored, and no late owner's; while one is kept, nobody begins.

use crate::journal::{Journal, Op, Outcome, Record, WHOLE};
use crate::oracle_counter::judge_counter;
use std::collections::BTreeMap;

/// By how much two processes' fast clocks may disagree, in nanoseconds.
const CLOCK_SLACK_NS: u64 = 40_000;

/// A token bucket as the oracle computes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    pub(crate) count: u64,
    pub(crate) period_ns: u64,
    pub(crate) burst: u64,
}

impl Bucket {
    /// The most that may be admitted in an interval of this length.
    fn most_in(self, interval_ns: u64) -> u64 {
        let refill = u128::from(interval_ns + CLOCK_SLACK_NS) * u128::from(self.count)
            / u128::from(self.period_ns);
        self.burst + u64::try_from(refill).unwrap_or(u64::MAX - self.burst)
    }

    /// The least that comes back in an interval of this length.
    fn least_refill_in(self, interval_ns: u64) -> u64 {
        let refill = u128::from(interval_ns.saturating_sub(CLOCK_SLACK_NS))
            * u128::from(self.count)
            / u128::from(self.period_ns);
        u64::try_from(refill).unwrap_or(u64::MAX)
    }
}

/// What of the general rules holds in a test.
pub(crate) struct Rules<'a> {
    /// No idle lock is ever reclaimed, so that tokens are consecutive.
    pub(crate) are_tokens_consecutive: bool,
    /// The limits whose keys all have room and which never change, so that each key is refused for its own
    /// sake only.
    pub(crate) refusing: &'a [u64],
    /// The limits, by the number that checks carry.
    pub(crate) limits: &'a [Bucket],
}

/// All that is wrong, in words. Whoever writes to the journal may go on, or be dead without anybody
/// knowing.
pub(crate) fn judge(journal: &Journal, rules: &Rules<'_>) -> Vec<String> {
    let records = journal.records();
    let mut last_seen_ns: BTreeMap<u64, u64> = BTreeMap::new();
    for record in &records {
        let seen_ns = record.start_ns.max(record.end_ns).max(record.seen_ns);
        let last = last_seen_ns.entry(record.by).or_default();
        *last = seen_ns.max(*last);
    }
    let mut by_lock: BTreeMap<u64, Vec<Record>> = BTreeMap::new();
    let mut by_limit: BTreeMap<(u64, u64), Vec<Record>> = BTreeMap::new();
    let mut by_fence: BTreeMap<u64, Vec<Record>> = BTreeMap::new();
    let mut by_counter: BTreeMap<u64, Vec<Record>> = BTreeMap::new();
    let mut by_once: BTreeMap<u64, Vec<Record>> = BTreeMap::new();
    for record in records {
        match kind(record.op) {
            Kind::Grant | Kind::Cover | Kind::Adopt | Kind::End => {
                by_lock.entry(record.key).or_default().push(record);
            }
            Kind::Check => by_limit
                .entry((record.limit, record.key))
                .or_default()
                .push(record),
            Kind::Admit => by_fence.entry(record.key).or_default().push(record),
            Kind::Count => by_counter.entry(record.key).or_default().push(record),
            Kind::Begin | Kind::Finish => by_once.entry(record.key).or_default().push(record),
            Kind::Other => {}
        }
    }
    let mut problems = Vec::new();
    for (key, records) in &by_lock {
        judge_tokens(*key, records, rules, &mut problems);
        let with_ends = [&records[..], &ends_of_siblings(records, &by_lock)].concat();
        judge_exclusion(*key, &with_ends, &last_seen_ns, &mut problems);
    }
    for ((limit, key), records) in &by_limit {
        if let Some(bucket) = rules.limits.get(*limit as usize) {
            let is_refusal_judged = rules.refusing.contains(limit);
            judge_limit(*key, records, *bucket, is_refusal_judged, &mut problems);
        }
    }
    for (key, records) in &by_fence {
        judge_fence(*key, records, &mut problems);
    }
    for (key, records) in &by_counter {
        judge_counter(*key, records, &mut problems);
    }
    for (key, records) in &by_once {
        let begun = Rules {
            are_tokens_consecutive: false,
            ..*rules
        };
        judge_tokens(*key, records, &begun, &mut problems);
        judge_exclusion(*key, records, &last_seen_ns, &mut problems);
        judge_results(*key, records, &mut problems);
    }
    problems
}

enum Kind {
    /// Grants a new token.
    Grant,
    /// Grants what lies above the lock, under a token that is none of the lock's.
    Cover,
    /// Takes over a hold, token kept.
    Adopt,
    /// May end another's hold.
    End,
    Check,
    Admit,
    Count,
    /// Grants a new token of a once, or reads its result.
    Begin,
    /// Ends an attempt.
    Finish,
    Other,
}

fn kind(op: Op) -> Kind {
    match op {
        Op::Acquire
        | Op::Wait
        | Op::Future
        | Op::Cancel
        | Op::Steal
        | Op::TakeOver
        | Op::Insert
        | Op::InsertLong
        | Op::Grow
        | Op::Reclaim
        | Op::ReclaimLong
        | Op::ReclaimHeld
        | Op::Refuse
        | Op::Share
        | Op::ShareBeside
        | Op::ShareLast
        | Op::ShareWait
        | Op::Upgrade
        | Op::UpgradeWait
        | Op::TakePermits
        | Op::WaitPermits
        | Op::TakeSlots
        | Op::WaitSlots
        | Op::Several
        | Op::SeveralWait => Kind::Grant,
        Op::Partition | Op::PartitionWait | Op::Table | Op::TableWait => Kind::Cover,
        Op::Adopt | Op::Downgrade | Op::DowngradeUpgraded => Kind::Adopt,
        Op::Break | Op::BreakShared | Op::ReleaseToken => Kind::End,
        Op::Check
        | Op::CheckInsert
        | Op::CheckLong
        | Op::CheckOverflow
        | Op::CheckRefused
        | Op::CheckReclaim
        | Op::CheckConvert
        | Op::CheckOverridden
        | Op::ChargeMet => Kind::Check,
        Op::Admit | Op::AdmitInsert => Kind::Admit,
        Op::Add
        | Op::AddInsert
        | Op::AddReclaim
        | Op::AddWithin
        | Op::CounterGet
        | Op::StripedAdd
        | Op::StripedWithin
        | Op::Gather => Kind::Count,
        Op::Begin | Op::BeginTakeOver | Op::BeginDone => Kind::Begin,
        Op::Finish | Op::Abandon => Kind::Finish,
        Op::LookOnce
        | Op::Release
        | Op::HandOn
        | Op::Renew
        | Op::Detach
        | Op::Charge
        | Op::ChargeInsert
        | Op::ChargeOverflow
        | Op::ChargeDead
        | Op::Reserve
        | Op::Refund
        | Op::RefundOverflow
        | Op::OpenLimiter
        | Op::UpdateLimit
        | Op::FinishUpdate
        | Op::SetOverride
        | Op::ClearOverride
        | Op::OpenJoint
        | Op::CheckJoint
        | Op::CheckJointClosing
        | Op::CheckJointInsert
        | Op::CheckJointOverflow
        | Op::CheckJointReclaim
        | Op::OpenSession
        | Op::CloseSession
        | Op::Create
        | Op::ReleaseShare
        | Op::LeaveOthers
        | Op::RenewShare
        | Op::ReleasePermits
        | Op::ReleaseSlots
        | Op::AllowSlots
        | Op::MakeSlots
        | Op::Stripe
        | Op::ReleaseSeveral
        | Op::ReleasePartition
        | Op::ReleaseTable => Kind::Other,
    }
}

fn judge_tokens(key: u64, records: &[Record], rules: &Rules<'_>, problems: &mut Vec<String>) {
    let mut grants: Vec<&Record> = records
        .iter()
        .filter(|record| {
            matches!(kind(record.op), Kind::Grant | Kind::Begin) && record.outcome == Outcome::Yes
        })
        .collect();
    grants.sort_by_key(|grant| grant.token);
    for pair in grants.windows(2) {
        if pair[0].token == pair[1].token {
            problems.push(format!("lock {key}: one token, two grants: {pair:?}"));
        }
    }
    let mut earliest_end_ns = u64::MAX;
    for grant in grants.iter().rev() {
        if earliest_end_ns < grant.start_ns {
            problems.push(format!(
                "lock {key}: a higher token was granted before: {grant:?}"
            ));
        }
        earliest_end_ns = earliest_end_ns.min(grant.end_ns);
    }
    // Whoever was granted an earlier token had written an intent by the time that this was settled.
    let last = grants.iter().rev().find(|grant| grant.is_settled);
    if let (true, Some(first), Some(last)) = (rules.are_tokens_consecutive, grants.first(), last) {
        let known = grants.iter().filter(|grant| grant.token <= last.token);
        let missing = (last.token - first.token + 1).saturating_sub(known.count() as u64);
        let unknown = records
            .iter()
            .filter(|record| {
                matches!(kind(record.op), Kind::Grant) && record.outcome == Outcome::Unknown
            })
            .count() as u64;
        if missing > unknown {
            problems.push(format!(
                "lock {key}: {missing} tokens are missing, {unknown} calls can have taken them"
            ));
        }
    }
}

/// Ends of locks that were taken together with some of these, as ends of these: to break one breaks all.
fn ends_of_siblings(records: &[Record], by_lock: &BTreeMap<u64, Vec<Record>>) -> Vec<Record> {
    let is_together = |record: &Record| matches!(record.op, Op::Several | Op::SeveralWait);
    let mut ends = Vec::new();
    for hold in records.iter().filter(|record| is_together(record)) {
        // Of one who takes one thing after another, only these overlap.
        let is_sibling = |other: &&Record| {
            (other.by, other.op) == (hold.by, hold.op)
                && other.key != hold.key
                && other.start_ns < hold.end_ns
                && hold.start_ns < other.end_ns
        };
        for sibling in by_lock.values().flatten().filter(is_sibling) {
            let is_its = |end: &&Record| {
                matches!(kind(end.op), Kind::End)
                    && (end.outcome == Outcome::Unknown || end.token == sibling.token)
            };
            let its = by_lock[&sibling.key].iter().filter(is_its);
            ends.extend(its.map(|end| Record {
                key: hold.key,
                token: hold.token,
                ..*end
            }));
        }
    }
    ends
}

fn judge_exclusion(
    key: u64,
    records: &[Record],
    last_seen_ns: &BTreeMap<u64, u64>,
    problems: &mut Vec<String>,
) {
    let mut claims: Vec<(u64, u64, &Record)> = records
        .iter()
        .filter(|record| {
            matches!(
                kind(record.op),
                Kind::Grant | Kind::Cover | Kind::Adopt | Kind::Begin
            ) && record.outcome == Outcome::Yes
                && record.is_settled
        })
        .map(|hold| {
            let here_until_ns = match hold.left_ns {
                0 => last_seen_ns.get(&hold.by).copied().unwrap_or(0),
                left_ns => left_ns,
            };
            let mut until_ns = hold.valid_until_ns.min(here_until_ns);
            // From then on, somebody else may have ended it.
            for end in records.iter().filter(|end| {
                matches!(kind(end.op), Kind::End | Kind::Adopt)
                    && !std::ptr::eq(*end, hold)
                    && match end.outcome {
                        // A break of shares ends all that there are.
                        Outcome::Yes
                            if end.op == Op::BreakShared
                                || (end.op == Op::Break && hold.part < WHOLE) =>
                        {
                            end.end_ns > hold.start_ns
                        }
                        Outcome::Yes => end.token == hold.token && end.end_ns > hold.start_ns,
                        Outcome::No => false,
                        Outcome::Unknown => true,
                    }
            }) {
                until_ns = until_ns.min(end.start_ns.max(hold.end_ns));
            }
            (hold.end_ns, until_ns, hold)
        })
        .filter(|(from_ns, until_ns, _)| from_ns < until_ns)
        .collect();
    claims.sort_by_key(|(from_ns, ..)| *from_ns);
    let mut at_once: Vec<(u64, &Record)> = Vec::new();
    for (from_ns, until_ns, hold) in claims {
        at_once.retain(|(until_ns, _)| *until_ns > from_ns);
        let taken: u64 = at_once.iter().map(|(_, other)| other.part).sum();
        if taken + hold.part > WHOLE {
            problems.push(format!(
                "lock {key}: two hold it, or too many have a part: {hold:?} beside {at_once:?}"
            ));
        }
        at_once.push((until_ns, hold));
    }
}

fn judge_limit(
    key: u64,
    records: &[Record],
    bucket: Bucket,
    is_refusal_judged: bool,
    problems: &mut Vec<String>,
) {
    let mut allowed: Vec<&Record> = records
        .iter()
        .filter(|check| check.outcome == Outcome::Yes)
        .collect();
    allowed.sort_by_key(|check| check.end_ns);
    for from in &allowed {
        let mut sum = 0;
        for check in allowed
            .iter()
            .filter(|check| check.start_ns >= from.start_ns)
        {
            sum += check.argument;
            let interval_ns = check.end_ns - from.start_ns;
            if sum > bucket.most_in(interval_ns) {
                problems.push(format!(
                    "limit of {key}: {sum} admitted within {interval_ns} ns under {bucket:?}: \
                     {from:?} to {check:?}"
                ));
                return;
            }
        }
    }
    if !is_refusal_judged {
        return;
    }
    for refused in records
        .iter()
        .filter(|check| check.outcome == Outcome::No && check.is_settled)
        .filter(|check| check.argument <= bucket.burst)
    {
        let taken: Vec<&Record> = records
            .iter()
            .filter(|check| check.outcome != Outcome::No && check.start_ns <= refused.end_ns)
            .collect();
        let end_ns = |check: &Record| match check.outcome {
            Outcome::Unknown => refused.end_ns,
            _ => check.end_ns.min(refused.end_ns),
        };
        // What was used at the refusal: the most over all intervals that end there.
        let used = taken
            .iter()
            .map(|from| {
                let sum: u64 = taken
                    .iter()
                    .filter(|check| end_ns(check) >= from.start_ns)
                    .map(|check| check.argument)
                    .sum();
                let interval_ns = refused.start_ns.saturating_sub(end_ns(from));
                sum.saturating_sub(bucket.least_refill_in(interval_ns))
            })
            .max()
            .unwrap_or(0);
        // It decides by the time at which it began, and may have stood still since: what others took
        // meanwhile then looks as far ahead as they were later.
        let behind_ns = taken
            .iter()
            .map(|check| end_ns(check).saturating_sub(refused.start_ns))
            .max()
            .unwrap_or(0);
        let ahead = match behind_ns {
            0 => 0,
            behind_ns => bucket.most_in(behind_ns) - bucket.burst + 1,
        };
        if used + ahead + refused.argument <= bucket.burst {
            problems.push(format!(
                "limit of {key}: refused with {used} used under {bucket:?}: {refused:?}"
            ));
            return;
        }
    }
}

fn judge_fence(key: u64, records: &[Record], problems: &mut Vec<String>) {
    for check in records {
        match check.outcome {
            Outcome::Yes => {
                if let Some(lower) = records.iter().find(|later| {
                    later.outcome == Outcome::Yes
                        && later.start_ns > check.end_ns
                        && later.argument < check.argument
                }) {
                    problems.push(format!("fence {key}: {lower:?} admitted after {check:?}"));
                }
            }
            Outcome::No if check.is_settled => {
                let is_overtaken = records.iter().any(|other| {
                    other.outcome != Outcome::No
                        && other.start_ns <= check.end_ns
                        && other.argument > check.argument
                });
                if !is_overtaken {
                    problems.push(format!("fence {key}: rejected for nothing: {check:?}"));
                }
            }
            Outcome::No | Outcome::Unknown => {}
        }
    }
}

fn judge_results(key: u64, records: &[Record], problems: &mut Vec<String>) {
    let is_finish = |record: &Record, token: u64| {
        record.op == Op::Finish && record.argument == token && record.outcome != Outcome::No
    };
    for begin in records {
        if !matches!(kind(begin.op), Kind::Begin) {
            continue;
        }
        // One that was not settled may rest on a record that was not there yet.
        if begin.is_settled && begin.outcome == Outcome::No && begin.token != 0 {
            let stored = |record: &&Record| {
                is_finish(record, begin.token) && record.start_ns <= begin.end_ns
            };
            if !records.iter().any(|record| stored(&record)) {
                problems.push(format!(
                    "once {key}: nobody stored what was read: {begin:?}"
                ));
            }
        }
        if begin.outcome == Outcome::Yes && begin.is_settled {
            // Before the other one began, and kept after this one was through.
            let is_kept = |record: &&Record| {
                record.op == Op::Finish
                    && record.outcome == Outcome::Yes
                    && record.end_ns < begin.start_ns
                    && record.valid_until_ns > begin.end_ns + CLOCK_SLACK_NS
            };
            if let Some(finish) = records.iter().find(is_kept) {
                problems.push(format!("once {key}: {begin:?} began after {finish:?}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules<'static> = Rules {
        are_tokens_consecutive: true,
        refusing: &[0],
        limits: &[Bucket {
            count: 2,
            period_ns: 1_000_000_000_000,
            burst: 2,
        }],
    };

    fn found(journal: &Journal, needle: &str) -> bool {
        let problems = judge(journal, &RULES);
        problems.iter().any(|problem| problem.contains(needle))
    }

    fn grant(journal: &Journal, by: u64, token: u64) -> crate::journal::Entry {
        let entry = journal.begin(by as usize, by, Op::Acquire, 1, 0);
        entry.claim_until(u64::MAX);
        entry.end(Outcome::Yes, token);
        entry
    }

    #[test]
    fn the_oracle_sees_each_kind_of_wrong_and_nothing_else() {
        let journal = Journal::new();
        let first = grant(&journal, 1, 5);
        first.leave();
        let second = grant(&journal, 2, 6);
        assert_eq!(judge(&journal, &RULES), Vec::<String>::new());
        let third = grant(&journal, 3, 7);
        second.leave();
        third.leave();
        assert!(found(&journal, "two hold it"));

        journal.reset();
        let shares = [1, 2, 3, 4].map(|by| {
            let entry = grant(&journal, by, by);
            entry.set_part(WHOLE / 4);
            entry
        });
        for entry in &shares {
            entry.leave();
        }
        assert_eq!(judge(&journal, &RULES), Vec::<String>::new());
        shares[0].set_part(WHOLE / 4 + 1);
        assert!(found(&journal, "too many have a part"));

        journal.reset();
        grant(&journal, 1, 5).leave();
        grant(&journal, 2, 5).leave();
        assert!(found(&journal, "one token, two grants"));

        journal.reset();
        grant(&journal, 1, 6).leave();
        grant(&journal, 2, 5).leave();
        assert!(found(&journal, "a higher token was granted before"));

        journal.reset();
        grant(&journal, 1, 5).leave();
        journal.begin(2, 2, Op::Acquire, 1, 0);
        grant(&journal, 3, 7).leave();
        assert_eq!(judge(&journal, &RULES), Vec::<String>::new());
        grant(&journal, 3, 9).leave();
        assert!(found(&journal, "2 tokens are missing, 1 calls"));

        journal.reset();
        for _ in 0..2 {
            journal.begin(1, 1, Op::Check, 1, 1).end(Outcome::Yes, 0);
        }
        journal.begin(1, 1, Op::Check, 1, 1).end(Outcome::No, 0);
        assert_eq!(judge(&journal, &RULES), Vec::<String>::new());
        journal.begin(1, 1, Op::Check, 1, 1).end(Outcome::Yes, 0);
        assert!(found(&journal, "3 admitted"));

        journal.reset();
        journal.begin(1, 1, Op::Check, 1, 1).end(Outcome::Yes, 0);
        journal.begin(1, 1, Op::Check, 1, 1).end(Outcome::No, 0);
        assert!(found(&journal, "refused with 1 used"));

        journal.reset();
        journal.begin(1, 1, Op::Admit, 1, 5).end(Outcome::Yes, 0);
        journal.begin(1, 1, Op::Admit, 1, 4).end(Outcome::No, 0);
        assert_eq!(judge(&journal, &RULES), Vec::<String>::new());
        journal.begin(1, 1, Op::Admit, 1, 6).end(Outcome::No, 0);
        assert!(found(&journal, "rejected for nothing"));
        journal.begin(1, 1, Op::Admit, 1, 4).end(Outcome::Yes, 0);
        assert!(found(&journal, "admitted after"));

        let begin = |outcome, token| journal.begin(1, 1, Op::Begin, 1, 0).end(outcome, token);
        let finish = |token, outcome| {
            let entry = journal.begin(1, 1, Op::Finish, 1, token);
            entry.claim_until(u64::MAX);
            entry.end(outcome, token);
        };
        journal.reset();
        begin(Outcome::Yes, 5);
        finish(5, Outcome::No);
        begin(Outcome::Yes, 6);
        finish(6, Outcome::Yes);
        begin(Outcome::No, 6);
        assert_eq!(judge(&journal, &RULES), Vec::<String>::new());
        begin(Outcome::No, 5);
        assert!(found(&journal, "nobody stored what was read"));

        journal.reset();
        begin(Outcome::Yes, 5);
        finish(5, Outcome::Yes);
        assert_eq!(judge(&journal, &RULES), Vec::<String>::new());
        begin(Outcome::Yes, 6);
        assert!(found(&journal, "began after"));
    }
}
