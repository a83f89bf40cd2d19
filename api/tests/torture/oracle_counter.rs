//! What a journal must never show of counters: a number that no order of the additions explains, an addition
//! made twice or lost, one that passes its bounds or is refused for nothing.

use crate::journal::{Op, Outcome, Record};

/// The bounds of every bounded addition.
pub(crate) const BOUNDS: std::ops::RangeInclusive<i64> = 0..=5;

/// Calls of unknown outcome up to which every choice among them is tried.
const CHOICES_MAX: usize = 12;

fn delta(record: &Record) -> i64 {
    record.argument.cast_signed()
}

/// The sum that an addition told, or the number that was read.
fn number(record: &Record) -> i64 {
    record.token.cast_signed()
}

fn is_read(record: &Record) -> bool {
    record.op == Op::CounterGet
}

fn is_bounded(record: &Record) -> bool {
    matches!(record.op, Op::AddWithin | Op::StripedWithin)
}

/// Whether it tells the sum.
fn is_told(record: &Record) -> bool {
    !matches!(record.op, Op::StripedAdd | Op::StripedWithin)
}

/// What `records` of one counter, which began at 0, show wrong.
pub(crate) fn judge_counter(key: u64, records: &[Record], problems: &mut Vec<String>) {
    let additions: Vec<&Record> = records
        .iter()
        .filter(|record| !is_read(record) && record.outcome != Outcome::No)
        .collect();
    let answers = || {
        records
            .iter()
            .filter(|record| record.is_settled && record.outcome == Outcome::Yes)
    };
    if additions.iter().all(|addition| delta(addition) > 0) {
        let mut sums: Vec<&&Record> = additions
            .iter()
            .filter(|addition| addition.outcome == Outcome::Yes && is_told(addition))
            .collect();
        sums.sort_by_key(|addition| number(addition));
        for pair in sums.windows(2) {
            if number(pair[0]) == number(pair[1]) {
                problems.push(format!("counter {key}: one sum, two additions: {pair:?}"));
            }
        }
    }
    for answer in answers().filter(|answer| is_bounded(answer) && is_told(answer)) {
        if !BOUNDS.contains(&number(answer)) {
            problems.push(format!("counter {key}: out of its bounds: {answer:?}"));
        }
    }
    for read in answers().filter(|record| is_read(record)) {
        let (least, most) = possible(&additions, read);
        if !(least..=most).contains(&number(read)) {
            problems.push(format!(
                "counter {key}: {read:?} is not {least} to {most}, whatever came first"
            ));
        }
        // Beside nothing but calls that nobody knows the outcome of, each of them counts or does not.
        let (unknown, known): (Vec<&Record>, Vec<&Record>) = additions
            .iter()
            .filter(|addition| addition.start_ns <= read.end_ns)
            .partition(|addition| addition.outcome == Outcome::Unknown);
        if known.iter().all(|addition| addition.end_ns < read.start_ns)
            && unknown.len() <= CHOICES_MAX
        {
            let sum: i64 = known.iter().map(|addition| delta(addition)).sum();
            let is_explained = (0..1_u32 << unknown.len()).any(|choice| {
                let chosen = unknown
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| choice >> at & 1 != 0);
                sum + chosen.map(|(_, addition)| delta(addition)).sum::<i64>() == number(read)
            });
            if !is_explained {
                problems.push(format!(
                    "counter {key}: {read:?} after {sum}, with {} calls of unknown outcome",
                    unknown.len()
                ));
            }
        }
    }
    for refused in records
        .iter()
        .filter(|record| is_bounded(record) && record.is_settled && record.outcome == Outcome::No)
    {
        let (least, most) = possible(&additions, refused);
        let by = delta(refused);
        if least + by >= *BOUNDS.start() && most + by <= *BOUNDS.end() {
            problems.push(format!(
                "counter {key}: refused at {least} to {most}: {refused:?}"
            ));
        }
    }
}

/// The least and the most that the counter can have been during a call.
fn possible(additions: &[&Record], call: &Record) -> (i64, i64) {
    let (mut least, mut most) = (0, 0);
    for addition in additions
        .iter()
        .filter(|addition| addition.start_ns <= call.end_ns)
    {
        let by = delta(addition);
        if addition.outcome == Outcome::Yes && addition.end_ns < call.start_ns {
            least += by;
            most += by;
        } else {
            least += by.min(0);
            most += by.max(0);
        }
    }
    (least, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Journal;

    fn add(journal: &Journal, op: Op, delta: i64, outcome: Outcome, sum: i64) {
        let entry = journal.begin(0, 1, op, 1, delta.cast_unsigned());
        if outcome != Outcome::Unknown {
            entry.end(outcome, sum.cast_unsigned());
        }
    }

    fn found(journal: &Journal) -> String {
        let mut problems = Vec::new();
        judge_counter(1, &journal.records(), &mut problems);
        problems.join("\n")
    }

    #[test]
    fn the_oracle_sees_each_kind_of_wrong_count_and_nothing_else() {
        let journal = Journal::new();
        let read = |number| add(&journal, Op::CounterGet, 0, Outcome::Yes, number);
        add(&journal, Op::Add, 2, Outcome::Yes, 2);
        add(&journal, Op::Add, 3, Outcome::Unknown, 0);
        read(2);
        assert_eq!(found(&journal), "");
        read(5);
        assert_eq!(found(&journal), "");
        read(3);
        assert!(found(&journal).contains("after 2, with 1 calls"));

        journal.reset();
        add(&journal, Op::Add, 2, Outcome::Yes, 2);
        add(&journal, Op::Add, 2, Outcome::Yes, 2);
        assert!(found(&journal).contains("one sum, two additions"));

        journal.reset();
        add(&journal, Op::Add, 2, Outcome::Yes, 2);
        read(0);
        assert!(found(&journal).contains("is not 2 to 2"));

        journal.reset();
        add(&journal, Op::AddWithin, 2, Outcome::Yes, 2);
        add(&journal, Op::AddWithin, 4, Outcome::No, 2);
        add(&journal, Op::AddWithin, -3, Outcome::No, 2);
        assert_eq!(found(&journal), "");
        add(&journal, Op::AddWithin, 3, Outcome::No, 2);
        assert!(found(&journal).contains("refused at 2 to 2"));
        add(&journal, Op::AddWithin, 4, Outcome::Yes, 6);
        assert!(found(&journal).contains("out of its bounds"));
    }
}
