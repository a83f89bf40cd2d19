//! An acceptor's transitions, cell by cell of its table.

use std::collections::BTreeMap;

use sprag_paxos::{Acceptor, Answer, Ballot, DiskId, Entry, NodeId, Slot, TooLate, Vote, Voter};

const SLOT: Slot = Slot(1);

fn ballot(round: u64) -> Ballot {
    let voter = Voter {
        node: NodeId(1),
        disk: DiskId(1),
    };
    Ballot { round, voter }
}

fn entry(text: &str) -> Entry {
    Entry::Commands(text.as_bytes().into())
}

fn vote(round: u64, text: &str) -> Vote {
    Vote {
        ballot: ballot(round),
        entry: entry(text),
    }
}

/// Promised ballot 5, and accepted "old" in `SLOT` in ballot 3.
fn acceptor() -> Acceptor {
    let answers = BTreeMap::from([(SLOT, Answer::Accepted(vote(3, "old")))]);
    Acceptor::recovered(ballot(5), answers)
}

#[test]
fn a_prepare_below_the_promise_is_refused_and_any_other_raises_it() {
    let refused = Err(TooLate(ballot(5)));
    let cases = [
        (4, refused, 5),
        (5, Ok(false), 5),
        (6, Ok(true), 6),
        (9, Ok(true), 9),
    ];
    for (round, answer, promised) in cases {
        let mut acceptor = acceptor();
        assert_eq!(acceptor.promise(ballot(round)), answer, "round {round}");
        assert_eq!(acceptor.promised(), ballot(promised), "round {round}");
        let kept = acceptor.vote(SLOT);
        assert_eq!(kept, Some(&vote(3, "old")), "a promise changes no vote");
    }
}

#[test]
fn an_accept_below_the_promise_is_refused_and_any_other_raises_it_and_is_the_vote() {
    let refused = Err(TooLate(ballot(5)));
    let cases = [
        (3, refused, 5, vote(3, "old")),
        (4, refused, 5, vote(3, "old")),
        (5, Ok(true), 5, vote(5, "new")),
        (6, Ok(true), 6, vote(6, "new")),
        (9, Ok(true), 9, vote(9, "new")),
    ];
    for (round, answer, promised, kept) in cases {
        let mut acceptor = acceptor();
        let got = acceptor.accept(ballot(round), SLOT, &entry("new"));
        assert_eq!(got, answer, "round {round}");
        assert_eq!(acceptor.promised(), ballot(promised), "round {round}");
        assert_eq!(acceptor.vote(SLOT), Some(&kept), "round {round}");
    }
}

#[test]
fn an_accept_that_comes_twice_is_new_once() {
    let mut acceptor = acceptor();
    assert_eq!(acceptor.accept(ballot(6), SLOT, &entry("new")), Ok(true));
    assert_eq!(acceptor.accept(ballot(6), SLOT, &entry("new")), Ok(false));
    let higher = acceptor.accept(ballot(7), SLOT, &entry("new"));
    assert_eq!(
        higher,
        Ok(true),
        "the same entry in another ballot is another vote"
    );
}

#[test]
fn an_accept_is_of_its_slot_and_the_promise_of_all() {
    let mut acceptor = acceptor();
    assert_eq!(acceptor.accept(ballot(6), Slot(2), &entry("new")), Ok(true));
    assert_eq!(acceptor.vote(SLOT), Some(&vote(3, "old")));
    assert_eq!(acceptor.vote(Slot(2)), Some(&vote(6, "new")));
    assert_eq!(acceptor.answer(Slot(3)), Answer::Never);
    let below = acceptor.accept(ballot(5), SLOT, &entry("new"));
    assert_eq!(below, Err(TooLate(ballot(6))));
}

#[test]
fn ballots_of_one_round_are_told_apart_by_their_voters() {
    let mut acceptor = acceptor();
    let mut lower = ballot(5);
    lower.voter.node = NodeId(0);
    assert_eq!(acceptor.promise(lower), Err(TooLate(ballot(5))));
    let mut higher = ballot(5);
    higher.voter.node = NodeId(2);
    assert_eq!(acceptor.promise(higher), Ok(true));
    assert_eq!(acceptor.promised(), higher);
}

#[test]
fn whoever_accepted_in_a_ballot_has_promised_it_when_it_comes_back() {
    let unknown = Answer::Unknown(ballot(7));
    let cases = [
        (2, Answer::Never, 2),
        (2, Answer::Accepted(vote(7, "old")), 7),
        (2, unknown.clone(), 7),
        (9, Answer::Accepted(vote(7, "old")), 9),
        (9, unknown, 9),
    ];
    for (promised, answer, expected) in cases {
        let what = format!("{promised} and {answer:?}");
        let answers = BTreeMap::from([(SLOT, answer.clone())]);
        let acceptor = Acceptor::recovered(ballot(promised), answers);
        assert_eq!(acceptor.promised(), ballot(expected), "{what}");
        assert_eq!(acceptor.answer(SLOT), answer, "{what}");
    }
}

#[test]
fn a_vote_that_cannot_be_read_is_answered_as_unknown_until_there_is_another() {
    let answers = BTreeMap::from([(SLOT, Answer::Unknown(ballot(3)))]);
    let mut acceptor = Acceptor::recovered(Ballot::NONE, answers);
    assert_eq!(acceptor.vote(SLOT), None);
    assert_eq!(acceptor.answer(SLOT), Answer::Unknown(ballot(3)));
    assert_eq!(acceptor.accept(ballot(4), SLOT, &entry("new")), Ok(true));
    assert_eq!(acceptor.answer(SLOT), Answer::Accepted(vote(4, "new")));
}
