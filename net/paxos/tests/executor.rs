//! In which order effects leave: nothing before what it rests on is durable, and nothing later than it must.

use sprag_paxos::{
    Ballot, Configuration, DiskId, Effect, Entry, Executor, Message, NodeId, Options, Record,
    Recovered, Replica, Slot, Ticket, Vote, Voter,
};

const SLOT: Slot = Slot(1);

fn voter(node: u16) -> Voter {
    Voter {
        node: NodeId(node),
        disk: DiskId(1),
    }
}

fn ballot(round: u64, node: u16) -> Ballot {
    Ballot {
        round,
        voter: voter(node),
    }
}

fn value() -> Entry {
    Entry::Commands(b"value"[..].into())
}

/// The voter of node 1, of as many as there are `voters`.
fn executor(voters: u16) -> Executor {
    let options = Options {
        me: voter(1),
        configuration: Configuration::new((1..=voters).map(voter).collect()).unwrap(),
        election_ns: 1_000,
        beat_ns: 100,
        window_slots: 4,
        batch_bytes_max: 1 << 10,
        pending_bytes_max: 1 << 10,
        page_bytes_max: 1 << 10,
        seed: 1,
    };
    Executor::new(0, Replica::new(0, options, Recovered::default()).unwrap())
}

fn effects(executor: &mut Executor) -> Vec<Effect> {
    std::iter::from_fn(|| executor.poll()).collect()
}

fn promised(ticket: u64, ballot: Ballot) -> Effect {
    Effect::Persist {
        ticket: Ticket(ticket),
        record: Record::Promised(ballot),
    }
}

fn accepted(ticket: u64, ballot: Ballot) -> Effect {
    Effect::Persist {
        ticket: Ticket(ticket),
        record: Record::Accepted {
            slot: SLOT,
            vote: Vote {
                ballot,
                entry: value(),
            },
        },
    }
}

fn send(to: u16, message: Message) -> Effect {
    Effect::Send {
        to: voter(to),
        message,
    }
}

fn prepare(ballot: Ballot) -> Message {
    Message::Prepare { ballot, from: SLOT }
}

fn promise(ballot: Ballot) -> Message {
    Message::Promise {
        ballot,
        from: SLOT,
        answers: Vec::new(),
        next: None,
        decided: Slot::NONE,
    }
}

fn accept(ballot: Ballot) -> Message {
    Message::Accept {
        ballot,
        slot: SLOT,
        entry: value(),
        decided: Slot::NONE,
    }
}

fn accepted_in(ballot: Ballot) -> Message {
    Message::Accepted { ballot, slot: SLOT }
}

#[test]
fn a_promise_leaves_when_it_is_durable() {
    let mut executor = executor(3);
    executor.step(0, voter(2), prepare(ballot(1, 2)));
    assert_eq!(effects(&mut executor), [promised(1, ballot(1, 2))]);
    executor.persisted(0, Ticket(1));
    assert_eq!(effects(&mut executor), [send(2, promise(ballot(1, 2)))]);
}

#[test]
fn an_acceptance_leaves_when_it_is_durable() {
    let mut executor = executor(3);
    executor.step(0, voter(2), accept(ballot(1, 2)));
    assert_eq!(effects(&mut executor), [accepted(1, ballot(1, 2))]);
    executor.persisted(0, Ticket(1));
    assert_eq!(effects(&mut executor), [send(2, accepted_in(ballot(1, 2)))]);
}

#[test]
fn a_repeated_answer_waits_for_what_the_first_waits_for() {
    let mut executor = executor(3);
    executor.step(0, voter(2), prepare(ballot(1, 2)));
    executor.step(0, voter(2), prepare(ballot(1, 2)));
    assert_eq!(effects(&mut executor), [promised(1, ballot(1, 2))]);
}

#[test]
fn a_refusal_rests_on_nothing() {
    let mut executor = executor(3);
    executor.step(0, voter(3), prepare(ballot(2, 3)));
    executor.step(0, voter(2), prepare(ballot(1, 2)));
    let refused = Message::Refused {
        ballot: ballot(1, 2),
        promised: ballot(2, 3),
    };
    let expected = [promised(1, ballot(2, 3)), send(2, refused)];
    assert_eq!(effects(&mut executor), expected);
}

#[test]
fn what_is_durable_is_durable_with_all_before_it() {
    let start = || {
        let mut executor = executor(3);
        executor.step(0, voter(2), prepare(ballot(1, 2)));
        executor.step(0, voter(3), prepare(ballot(2, 3)));
        let expected = [promised(1, ballot(1, 2)), promised(2, ballot(2, 3))];
        assert_eq!(effects(&mut executor), expected);
        executor
    };
    let first = send(2, promise(ballot(1, 2)));
    let second = send(3, promise(ballot(2, 3)));

    let mut at_once = start();
    at_once.persisted(0, Ticket(2));
    assert_eq!(effects(&mut at_once), [first.clone(), second.clone()]);

    let mut in_turn = start();
    in_turn.persisted(0, Ticket(1));
    assert_eq!(effects(&mut in_turn), [first]);
    in_turn.persisted(0, Ticket(2));
    assert_eq!(effects(&mut in_turn), [second]);
    in_turn.persisted(0, Ticket(1));
    assert_eq!(
        effects(&mut in_turn),
        [],
        "a late report takes nothing back"
    );
    in_turn.step(0, voter(3), prepare(ballot(2, 3)));
    let again = send(3, promise(ballot(2, 3)));
    assert_eq!(effects(&mut in_turn), [again]);
}

#[test]
fn one_alone_waits_for_its_disk_and_for_nothing_else() {
    let mut executor = executor(1);
    executor.tick(2_000);
    assert_eq!(effects(&mut executor), [promised(1, ballot(1, 1))]);
    executor.persisted(2_000, Ticket(1));
    let own = effects(&mut executor);
    let is_vote = |effect: &Effect| {
        matches!(
            effect,
            Effect::Persist {
                ticket: Ticket(2),
                record: Record::Accepted { slot: SLOT, .. }
            }
        )
    };
    assert!(own.iter().any(is_vote), "its first entry: {own:?}");
    let is_decided = |effect: &Effect| matches!(effect, Effect::Decided { slot: SLOT, .. });
    assert!(!own.iter().any(is_decided), "not durable yet: {own:?}");
    executor.persisted(2_000, Ticket(2));
    let after = effects(&mut executor);
    assert!(after.iter().any(is_decided), "durable now: {after:?}");
}
