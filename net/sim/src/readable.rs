//! What happened, in words: who did it, and what.

use std::fmt::Write;

use sprag_paxos::{Answer, Ballot, Effect, Entry, Message, Record, Vote};

use crate::trace::Happening;

/// An event as a line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The how-manieth of the run, from 1.
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
        Happening::Parted { group, for_ns } => (
            "net".to_owned(),
            format!(
                "{} apart from the others for {}",
                nodes(*group),
                span(*for_ns)
            ),
        ),
        Happening::CutOff { from, to, for_ns } => (
            "net".to_owned(),
            format!("n{} to n{} down for {}", from.0, to.0, span(*for_ns)),
        ),
        Happening::Asked {
            client,
            node,
            slot,
            entry,
        } => (
            format!("c{client}"),
            format!("asks n{} for {} in {slot}", node.0, self::entry(entry)),
        ),
        Happening::Answered {
            client,
            slot,
            entry,
        } => (
            format!("c{client}"),
            format!("is told {slot} is {}", self::entry(entry)),
        ),
        Happening::GaveUp { client, slot } => (format!("c{client}"), format!("gives up on {slot}")),
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
    }
}

fn record(record: &Record) -> String {
    match record {
        Record::Promised(ballot) => format!("promised {}", self::ballot(*ballot)),
        Record::Accepted { slot, vote } => format!("accepted in {slot} {}", self::vote(vote)),
    }
}

pub(crate) fn message(message: &Message) -> String {
    match message {
        Message::Prepare { ballot, slot } => format!("Prepare {} {slot}", self::ballot(*ballot)),
        Message::Promise {
            ballot,
            slot,
            answer,
        } => format!(
            "Promise {} {slot}: {}",
            self::ballot(*ballot),
            self::answer(answer)
        ),
        Message::Accept {
            ballot,
            slot,
            entry,
        } => format!(
            "Accept {} {slot}: {}",
            self::ballot(*ballot),
            self::entry(entry)
        ),
        Message::Accepted { ballot, slot } => format!("Accepted {} {slot}", self::ballot(*ballot)),
        Message::Refused {
            ballot,
            slot,
            promised,
        } => format!(
            "Refused {} {slot}: promised {}",
            self::ballot(*ballot),
            self::ballot(*promised)
        ),
        Message::Commit { ballot, slot } => format!("Commit {} {slot}", self::ballot(*ballot)),
        Message::Fetch { slot } => format!("Fetch {slot}"),
        Message::Decided { slot, entry } => format!("Decided {slot}: {}", self::entry(entry)),
    }
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

/// Clients' commands are numbers of eight bytes.
pub(crate) fn entry(entry: &Entry) -> String {
    let Entry::Commands(bytes) = entry else {
        return "no-op".to_owned();
    };
    let (numbers, rest) = bytes.as_chunks::<8>();
    let mut text = String::new();
    for number in numbers {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}#{}", u64::from_be_bytes(*number));
    }
    for byte in rest {
        let _ = write!(text, "{byte:02x}");
    }
    text
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
            entry: Entry::Commands(259_u64.to_be_bytes().into()),
        };
        assert_eq!(message(&accept), "Accept 7@n2 s3: #259");
        assert_eq!(nodes(0b101), "n0 n2");
        assert_eq!(span(1_234_567), "1.234 ms");
    }
}
