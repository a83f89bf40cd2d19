//! What happened, in words: who did it, and what.

use std::fmt::Write;

use sprag_paxos::{Answer, Ballot, Effect, Entry, Message, Record, Vote, commands};

use crate::command::{Command, Operation};
use crate::history::RegisterOperation;
use crate::trace::Happening;

/// An event as a line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number in the run, from 1.
    pub number: u64,
    /// When, of virtual time.
    pub at_ns: u64,
    /// Who did it: `n0`, a client `c0`, or the network.
    pub who: String,
    /// What happened.
    pub what: String,
}

impl Line {
    pub(crate) fn new(number: u64, at_ns: u64, happening: &Happening<'_>) -> Self {
        let (who, what) = told(happening);
        Self {
            number,
            at_ns,
            who,
            what,
        }
    }
}

fn told(happening: &Happening<'_>) -> (String, String) {
    let node = |node: u16| format!("n{node}");
    match happening {
        Happening::Came { from, to, message } => (
            node(to.node.0),
            format!("from n{}: {}", from.node.0, self::message(message)),
        ),
        Happening::Ticked { node: at } => (node(at.0), "timer fires".to_owned()),
        Happening::Synced { node: at, ticket } => {
            (node(at.0), format!("durable up to write {}", ticket.0))
        }
        Happening::Does { node: at, effect } => (node(at.0), self::effect(effect)),
        Happening::Paused { node: at, for_ns } => {
            (node(at.0), format!("stands still for {}", span(*for_ns)))
        }
        Happening::WentOn { node: at } => (node(at.0), "goes on".to_owned()),
        Happening::Crashed { node: at } => (node(at.0), "dies".to_owned()),
        Happening::Started { voter } => (node(voter.node.0), format!("starts, as {voter}")),
        Happening::Parted {
            group,
            between,
            for_ns,
        } => {
            let both = match between {
                0 => String::new(),
                _ => format!(", but for {} between", nodes(*between)),
            };
            let (group, span) = (nodes(*group), span(*for_ns));
            (
                "net".to_owned(),
                format!("{group} apart from the others{both}, for {span}"),
            )
        }
        Happening::CutOff { from, to, for_ns } => (
            "net".to_owned(),
            format!("n{} to n{} down for {}", from.0, to.0, span(*for_ns)),
        ),
        Happening::Asked {
            client,
            number,
            node,
        } => (format!("c{client}"), format!("asks n{}: #{number}", node.0)),
        Happening::Answered { client, number } => {
            (format!("c{client}"), format!("is answered: #{number}"))
        }
        Happening::Healed { group } => (
            "net".to_owned(),
            format!("faults end; {} sound, the others gone", nodes(*group)),
        ),
    }
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Persist { ticket, record } => {
            format!("write {}: {}", ticket.0, self::record(record))
        }
        Effect::Send { to, message } => format!("to n{}: {}", to.node.0, self::message(message)),
        Effect::Decided { slot, entry } => format!("decided: {slot} is {}", self::entry(entry)),
        Effect::SteppedDown { unproposed } => {
            format!("leads no longer; from {unproposed} on nothing was proposed")
        }
        Effect::SendChunk { to, asked } => match asked {
            Some((snapshot, offset)) => {
                format!("to n{}: what it has of {snapshot} from {offset}", to.node.0)
            }
            None => format!("to n{}: the newest snapshot", to.node.0),
        },
        Effect::Receive {
            snapshot,
            offset,
            bytes,
        } => format!("keep {} bytes of {snapshot} from {offset}", bytes.len()),
        Effect::Restore { snapshot } => format!("begin anew from {snapshot}"),
    }
}

fn record(record: &Record) -> String {
    match record {
        Record::Promised(ballot) => format!("promised {}", self::ballot(*ballot)),
        Record::Accepted { slot, vote } => format!("accepted in {slot} {}", self::vote(vote)),
        Record::Learned { slot, entry } => format!("learned {slot} is {}", self::entry(entry)),
        Record::Decided(slot) => format!("decided up to {slot}"),
        Record::Trimmed(slot) => format!("trimmed up to {slot}"),
    }
}

pub(crate) fn message(message: &Message) -> String {
    let (name, ballot, rest) = match message {
        Message::Canvass { ballot } => ("Canvass", ballot, String::new()),
        Message::Aye { ballot } => ("Aye", ballot, String::new()),
        Message::Prepare { ballot, from } => ("Prepare", ballot, format!("from {from}")),
        Message::Promise {
            ballot,
            from,
            answers,
            next,
            decided,
        } => {
            let mut text = format!("from {from}, decided {decided}");
            for (slot, answer) in answers {
                let _ = write!(text, "; {slot} {}", self::answer(answer));
            }
            if let Some(next) = next {
                let _ = write!(text, "; more from {next}");
            }
            ("Promise", ballot, text)
        }
        Message::Accept {
            ballot,
            slot,
            entry,
            decided,
        } => {
            let text = format!("{slot} {}, decided {decided}", self::entry(entry));
            ("Accept", ballot, text)
        }
        Message::Accepted { ballot, slot } => ("Accepted", ballot, slot.to_string()),
        Message::Refused { ballot, promised } => {
            let text = format!("promised {}", self::ballot(*promised));
            ("Refused", ballot, text)
        }
        Message::Commit { ballot, decided } => ("Commit", ballot, format!("decided {decided}")),
        Message::Beat { ballot, decided } => ("Beat", ballot, format!("decided {decided}")),
        Message::Heard { ballot } => ("Heard", ballot, String::new()),
        Message::Fetch { from } => return format!("Fetch from {from}"),
        Message::Entries { from, entries } => {
            let entries: Vec<String> = entries.iter().map(self::entry).collect();
            return format!("Entries from {from}: {}", entries.join(", "));
        }
        Message::FetchChunk { snapshot, offset } => {
            return format!("FetchChunk {snapshot} from {offset}");
        }
        Message::Chunk {
            snapshot,
            offset,
            bytes,
        } => return format!("Chunk {snapshot} from {offset}: {} bytes", bytes.len()),
    };
    let space = if rest.is_empty() { "" } else { " " };
    format!("{name} {}{space}{rest}", self::ballot(*ballot))
}

fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Never => "accepted nothing".to_owned(),
        Answer::Accepted(vote) => format!("accepted {}", self::vote(vote)),
        Answer::Unknown(ballot) => {
            format!(
                "can't read what it accepted up to {}",
                self::ballot(*ballot)
            )
        }
    }
}

fn vote(vote: &Vote) -> String {
    format!("{} of {}", entry(&vote.entry), ballot(vote.ballot))
}

/// Round and node: which disk it is of stands where the node started.
fn ballot(ballot: Ballot) -> String {
    if ballot == Ballot::NONE {
        return "nothing".to_owned();
    }
    format!("{}@n{}", ballot.round, ballot.voter.node.0)
}

/// Whose calls they are, and what they ask.
pub(crate) fn entry(entry: &Entry) -> String {
    if *entry == Entry::Noop {
        return "no-op".to_owned();
    }
    commands(entry).map(command).collect::<Vec<_>>().join(" + ")
}

/// `nothing` if there is none.
pub(crate) fn entry_if_any(entry: Option<&Entry>) -> String {
    entry.map_or_else(|| "nothing".to_owned(), self::entry)
}

pub(crate) fn command(bytes: &[u8]) -> String {
    let Some(Command {
        call,
        key,
        operation,
    }) = Command::decode(bytes)
    else {
        return format!("{} bytes", bytes.len());
    };
    let asked = match operation {
        Operation::Register(RegisterOperation::Get) => format!("get r{key}"),
        Operation::Register(RegisterOperation::Put(value)) => format!("put r{key}={value}"),
        Operation::Register(RegisterOperation::Swap(value)) => format!("swap r{key}={value}"),
        Operation::Register(RegisterOperation::CompareAndPut { expected, value }) => {
            format!("put r{key}={value} if v{expected}")
        }
        Operation::NextToken => format!("token i{key}"),
    };
    format!("c{}#{} {asked}", call.client, call.number)
}

fn nodes(group: u16) -> String {
    let members = (0..u16::BITS).filter(|node| group & 1 << node != 0);
    let members: Vec<String> = members.map(|node| format!("n{node}")).collect();
    if members.is_empty() {
        return "nobody".to_owned();
    }
    members.join(" ")
}

fn span(span_ns: u64) -> String {
    format!("{}.{:03} ms", span_ns / 1_000_000, span_ns / 1000 % 1000)
}

#[cfg(test)]
mod tests {
    use sprag_paxos::{DiskId, NodeId, Slot, Voter};

    use super::*;

    #[test]
    fn messages_and_entries_are_told_without_bytes_or_disks() {
        let voter = Voter {
            node: NodeId(2),
            disk: DiskId(0xdead_beef),
        };
        let ballot = Ballot { round: 7, voter };
        let accept = Message::Accept {
            ballot,
            slot: Slot(3),
            entry: Entry::Noop,
            decided: Slot(2),
        };
        assert_eq!(message(&accept), "Accept 7@n2 s3 no-op, decided s2");
        assert_eq!(nodes(0b101), "n0 n2");
        assert_eq!(span(1_234_567), "1.234 ms");
    }
}
