//! Who is heard in elections, and what a disk that stands does to them.

use super::*;
use crate::configuration::Configuration;
use crate::options::Options;
use crate::replica::{ProposeError, RoleName};
use crate::testing::{BEAT_NS, ELECTION_NS, Hand, ballot, options, sent, voters};

fn prepares(effects: &[Effect]) -> usize {
    let is_prepare = |(_, message): &(Voter, &Message)| matches!(message, Message::Prepare { .. });
    sent(effects).into_iter().filter(is_prepare).count()
}

fn promises(effects: &[Effect]) -> usize {
    let is_promise = |(_, message): &(Voter, &Message)| matches!(message, Message::Promise { .. });
    sent(effects).into_iter().filter(is_promise).count()
}

#[test]
fn a_promise_that_waits_for_the_disk_is_given_once_however_often_it_is_asked_for() {
    let voters = voters(3);
    let mut hand = Hand::new(options(&voters, 1));
    hand.syncs = false;
    let prepare = Message::Prepare {
        ballot: ballot(1, voters[0]),
        from: Slot(1),
    };
    for _ in 0..10 {
        assert_eq!(promises(&hand.step(voters[0], prepare.clone())), 0);
    }
    assert_eq!(promises(&hand.sync()), 1);
    assert_eq!(promises(&hand.step(voters[0], prepare)), 1);
}

#[test]
fn a_candidate_whose_disk_stands_begins_no_other_ballot_and_asks_once() {
    let voters = voters(3);
    let mut hand = Hand::new(options(&voters, 1));
    hand.syncs = false;
    hand.pass(2 * ELECTION_NS);
    let mut effects = Vec::new();
    for _ in 0..1000 {
        let ballot = ballot(1, voters[1]);
        effects.extend(hand.step(voters[0], Message::Aye { ballot }));
        effects.extend(hand.pass(BEAT_NS));
    }
    assert_eq!(hand.replica().role(), RoleName::Candidate);
    assert_eq!(prepares(&effects), 0);
    let effects = hand.sync();
    assert_eq!(prepares(&effects), 2);
    assert_eq!(hand.replica().acceptor().promised().round, 1);
}

#[test]
fn after_the_last_round_a_voter_waits_and_its_timer_does_not_fire_at_once_again() {
    let voters = voters(3);
    let mut hand = Hand::new(options(&voters, 1));
    let ballot = ballot(u64::MAX, voters[0]);
    hand.step(voters[0], Message::Canvass { ballot });
    assert_eq!(hand.pass(2 * ELECTION_NS), []);
    assert!(hand.replica().deadline_ns() > Some(hand.now_ns));
}

#[test]
fn a_canvass_is_welcome_where_no_leader_was_heard_of_for_an_election_timeout() {
    let voters = voters(3);
    let canvass = |round| Message::Canvass {
        ballot: ballot(round, voters[2]),
    };
    let aye = |round| {
        Some(Message::Aye {
            ballot: ballot(round, voters[2]),
        })
    };
    let refused = |round, promised| {
        Some(Message::Refused {
            ballot: ballot(round, voters[2]),
            promised: ballot(promised, voters[0]),
        })
    };
    let cases = [
        ("after its start", 0, None, ELECTION_NS, canvass(1), aye(1)),
        ("below its promise", 4, None, 0, canvass(3), refused(3, 4)),
        ("while a candidate asks", 4, None, 0, canvass(5), None),
        (
            "after a candidate asked",
            4,
            None,
            ELECTION_NS,
            canvass(5),
            aye(5),
        ),
        (
            "under a leader",
            4,
            Some(4),
            ELECTION_NS - 1,
            canvass(5),
            None,
        ),
        (
            "under a leader, too low",
            4,
            Some(4),
            0,
            canvass(3),
            refused(3, 4),
        ),
        (
            "when the leader is silent",
            4,
            Some(4),
            ELECTION_NS,
            canvass(5),
            aye(5),
        ),
    ];
    for (what, promised, leads, for_ns, canvass, answer) in cases {
        let mut hand = Hand::new(options(&voters, 1));
        let from = Slot(1);
        if promised > 0 {
            let ballot = ballot(promised, voters[0]);
            hand.step(voters[0], Message::Prepare { ballot, from });
        }
        if let Some(round) = leads {
            let ballot = ballot(round, voters[0]);
            let decided = Slot::NONE;
            hand.step(voters[0], Message::Commit { ballot, decided });
        }
        hand.now_ns += for_ns;
        let effects = hand.step(voters[2], canvass);
        let answers: Vec<_> = sent(&effects)
            .into_iter()
            .map(|(_, message)| message.clone())
            .collect();
        assert_eq!(answers, Vec::from_iter(answer), "{what}");
    }
}

#[test]
fn nobody_is_believed_who_speaks_of_a_ballot_that_is_another_s_or_has_no_vote() {
    let voters = voters(4);
    let (three, stranger) = (&voters[..3], voters[3]);
    let of = |voter| {
        let ballot = ballot(1, voter);
        let (slot, from, decided) = (Slot(1), Slot(1), Slot::NONE);
        let entry = Entry::Noop;
        [
            Message::Canvass { ballot },
            Message::Prepare { ballot, from },
            Message::Accept {
                ballot,
                slot,
                entry,
                decided,
            },
            Message::Commit { ballot, decided },
            Message::Beat { ballot, decided },
        ]
    };
    for (from, of_whom) in [(voters[2], voters[0]), (stranger, stranger)] {
        for message in of(of_whom) {
            let mut hand = Hand::new(options(three, 1));
            assert_eq!(hand.step(from, message.clone()), [], "{message:?}");
            assert_eq!(hand.replica().leader(), None, "{message:?}");
        }
    }
}

#[test]
fn a_voter_that_the_configuration_does_not_name_asks_for_nothing() {
    let voters = voters(4);
    let named = Configuration::new(voters[..3].to_vec()).unwrap();
    let mut hand = Hand::new(Options {
        configuration: named,
        ..options(&voters, 3)
    });
    assert_eq!(hand.executor.deadline_ns(), None);
    assert_eq!(hand.pass(10 * ELECTION_NS), []);
    let leader = None;
    let refused = Err(ProposeError::NotLeader { leader });
    assert_eq!(hand.executor.propose(hand.now_ns, b"put"), refused);
}

#[test]
fn a_refusal_ends_what_it_was_an_answer_to_and_the_next_ballot_is_above_it() {
    let voters = voters(3);
    let mut hand = Hand::new(options(&voters, 1));
    let own = hand.lead(voters[0]);
    let promised = ballot(7, voters[2]);
    let refused = |ballot| Message::Refused { ballot, promised };
    assert_eq!(hand.step(voters[2], refused(ballot(0, voters[1]))), []);
    assert_eq!(hand.replica().role(), RoleName::Recovering);
    let effects = hand.step(voters[2], refused(own));
    assert_eq!(effects, [Effect::SteppedDown { unproposed: 0 }]);
    let effects = hand.pass(2 * ELECTION_NS);
    let canvass = Message::Canvass {
        ballot: ballot(8, voters[1]),
    };
    assert_eq!(
        sent(&effects),
        [(voters[0], &canvass), (voters[2], &canvass)]
    );
}
