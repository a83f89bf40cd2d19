//! What a voter does as a whole.

use std::collections::BTreeMap;

use super::*;
use crate::entry::{Answer, Vote};
use crate::testing::{ELECTION_NS, Hand, ballot, entry, options, voters};

fn decided(effects: &[Effect]) -> Vec<(u64, Entry)> {
    let decided = effects.iter().filter_map(|effect| match effect {
        Effect::Decided { slot, entry } => Some((slot.0, entry.clone())),
        _ => None,
    });
    decided.collect()
}

#[test]
fn one_voter_leads_alone_and_proposes_again_what_it_had_accepted_before_it_died() {
    let voters = voters(1);
    let vote = Vote {
        ballot: ballot(3, voters[0]),
        entry: entry(b"old"),
    };
    let recovered = Recovered {
        answers: BTreeMap::from([(Slot(2), Answer::Accepted(vote))]),
        ..Recovered::default()
    };
    let mut hand = Hand::recovered(options(&voters, 0), recovered);
    let effects = hand.pass(2 * ELECTION_NS);
    let expected = [(1, Entry::Noop), (2, entry(b"old")), (3, Entry::Noop)];
    assert_eq!(decided(&effects), expected);
    assert_eq!(hand.replica().role(), RoleName::Leader);
    assert_eq!(hand.replica().acceptor().promised(), ballot(4, voters[0]));
    assert_eq!(hand.executor.propose(hand.now_ns, b"new"), Ok(0));
    assert_eq!(decided(&hand.effects()), [(4, entry(b"new"))]);
    // Nobody hears it, and nobody need.
    hand.pass(100 * ELECTION_NS);
    assert_eq!(hand.replica().role(), RoleName::Leader);
}

#[test]
fn of_two_voters_neither_decides_alone() {
    let voters = voters(2);
    let mut hand = Hand::new(options(&voters, 0));
    for _ in 0..10 {
        hand.pass(2 * ELECTION_NS);
        assert_eq!(hand.replica().role(), RoleName::Canvasser);
    }
    let mut hand = Hand::new(options(&voters, 0));
    let ballot = hand.lead(voters[1]);
    assert_eq!(hand.replica().decided(), Slot::NONE);
    let slot = Slot(1);
    hand.step(voters[1], Message::Accepted { ballot, slot });
    assert_eq!(hand.replica().decided(), slot);
}

#[test]
fn who_steps_down_says_which_proposals_never_left_it_and_numbers_go_on() {
    let voters = voters(3);
    // A window of four slots: its own first entry, and a batch of one command each.
    let mut hand = Hand::new(options(&voters, 1));
    hand.lead(voters[0]);
    for number in 0..6 {
        assert_eq!(hand.executor.propose(hand.now_ns, b"put"), Ok(number));
        hand.effects();
    }
    let higher = ballot(2, voters[2]);
    let decided = Slot::NONE;
    let beat = Message::Beat {
        ballot: higher,
        decided,
    };
    let effects = hand.step(voters[2], beat);
    assert!(effects.contains(&Effect::SteppedDown { unproposed: 3 }));
    let refused = ProposeError::NotLeader {
        leader: Some(voters[2].node),
    };
    assert_eq!(hand.executor.propose(hand.now_ns, b"put"), Err(refused));
    hand.pass(2 * ELECTION_NS);
    let ballot = ballot(3, voters[1]);
    hand.step(voters[0], Message::Aye { ballot });
    let (from, answers, next) = (Slot(1), Vec::new(), None);
    hand.step(
        voters[0],
        Message::Promise {
            ballot,
            from,
            answers,
            next,
            decided,
        },
    );
    assert_eq!(hand.executor.propose(hand.now_ns, b"put"), Ok(6));
}

#[test]
fn what_is_too_large_is_refused_for_good_and_what_is_too_much_for_now() {
    let voters = voters(3);
    let mut hand = Hand::new(options(&voters, 1));
    hand.lead(voters[0]);
    let now_ns = hand.now_ns;
    let too_large = ProposeError::TooLarge {
        bytes: 257,
        max: 256,
    };
    assert_eq!(hand.executor.propose(now_ns, &[0; 257]), Err(too_large));
    for number in 0..4 {
        assert_eq!(hand.executor.propose(now_ns, &[0; 256]), Ok(number));
        hand.effects();
    }
    let waiting = 260;
    let overloaded = ProposeError::Overloaded { waiting, max: 256 };
    assert_eq!(hand.executor.propose(now_ns, b""), Err(overloaded));
}
