//! What a voter says to an Accept and to a Commit, and what a disk that stands does to them.

use std::collections::BTreeMap;

use super::*;
use crate::replica::RoleName;
use crate::testing::{BEAT_NS, ELECTION_NS, Hand, ballot, entry, options, sent, voters};
use crate::tickets::UNSYNCED_MAX;

/// How many acceptances of each slot are told.
fn told(effects: &[Effect]) -> BTreeMap<Slot, usize> {
    let mut told = BTreeMap::new();
    for (_, message) in sent(effects) {
        if let Message::Accepted { slot, .. } = message {
            *told.entry(*slot).or_default() += 1;
        }
    }
    told
}

fn written(effects: &[Effect]) -> usize {
    let is_urgent =
        |effect: &&Effect| matches!(effect, Effect::Persist { record, .. } if record.is_urgent());
    effects.iter().filter(is_urgent).count()
}

#[test]
fn a_follower_whose_disk_stands_takes_on_so_much_and_catches_up_later() {
    let voters = voters(3);
    let mut hand = Hand::new(options(&voters, 1));
    hand.syncs = false;
    let ballot = ballot(1, voters[0]);
    let last = 5 * UNSYNCED_MAX as u64;
    let mut effects = Vec::new();
    for slot in 1..=last {
        for _ in 0..2 {
            let accept = Message::Accept {
                ballot,
                slot: Slot(slot),
                entry: entry(b"put"),
                decided: Slot(slot - 1),
            };
            effects.extend(hand.step(voters[0], accept));
        }
    }
    assert_eq!(written(&effects), UNSYNCED_MAX);
    assert!(told(&effects).is_empty());
    hand.syncs = true;
    let told = told(&hand.sync());
    assert_eq!(told.len(), UNSYNCED_MAX);
    assert!(told.values().all(|times| *times == 1));
    hand.now_ns += BEAT_NS;
    let beat = Message::Beat {
        ballot,
        decided: Slot(last),
    };
    let effects = hand.step(voters[0], beat);
    let from = Slot(UNSYNCED_MAX as u64 + 1);
    assert!(sent(&effects).contains(&(voters[0], &Message::Fetch { from })));
}

#[test]
fn a_leader_resigns_when_its_disk_stands_and_not_while_it_goes_on() {
    let voters = voters(3);
    let mut hand = Hand::new(options(&voters, 1));
    let ballot = hand.lead(voters[0]);
    hand.syncs = false;
    for _ in 0..4 {
        hand.executor.propose(hand.now_ns, b"put").unwrap();
        hand.effects();
    }
    let last = hand.ticket.0;
    let beat = |hand: &mut Hand| {
        hand.step(voters[0], Message::Heard { ballot });
        hand.pass(BEAT_NS)
    };
    for ticket in last - 2..=last {
        for _ in 0..ELECTION_NS / BEAT_NS {
            beat(&mut hand);
        }
        hand.executor.persisted(hand.now_ns, Ticket(ticket));
        assert_ne!(hand.replica().role(), RoleName::Follower);
    }
    let slot = Slot(1);
    hand.step(voters[0], Message::Accepted { ballot, slot });
    let mut effects = Vec::new();
    for _ in 0..=ELECTION_NS / BEAT_NS + 1 {
        effects.extend(beat(&mut hand));
    }
    assert!(effects.contains(&Effect::SteppedDown { unproposed: 4 }));
}

#[test]
fn an_accept_is_answered_by_what_was_promised_and_by_what_is_decided() {
    let voters = voters(3);
    let (old, new) = (ballot(1, voters[0]), ballot(2, voters[2]));
    let answer = |round: Ballot, slot| {
        let ballot = round;
        vec![Message::Accepted {
            ballot,
            slot: Slot(slot),
        }]
    };
    let too_late = vec![Message::Refused {
        ballot: old,
        promised: new,
    }];
    let (put, far) = (entry(b"put"), 2 + AHEAD_SLOTS_MAX);
    // Slots 1 and 2 are decided, to hold "put".
    let cases = [
        ("of a new slot", None, old, 3, &put, answer(old, 3)),
        (
            "of a decided slot, and what it holds",
            None,
            old,
            1,
            &put,
            answer(old, 1),
        ),
        (
            "of a decided slot, and something else",
            None,
            old,
            2,
            &Entry::Noop,
            vec![],
        ),
        ("above the promise", Some(old), new, 3, &put, answer(new, 3)),
        ("below the promise", Some(new), old, 3, &put, too_late),
        (
            "as far ahead as may be",
            None,
            old,
            far,
            &put,
            answer(old, far),
        ),
        ("further ahead", None, old, far + 1, &put, vec![]),
        (
            "of the last slot there is",
            None,
            old,
            u64::MAX,
            &put,
            vec![],
        ),
    ];
    for (what, promised, ballot, slot, entry, expected) in cases {
        let mut hand = Hand::new(options(&voters, 1));
        let from = Slot(1);
        let entries = vec![put.clone(), put.clone()];
        hand.step(voters[0], Message::Entries { from, entries });
        if let Some(ballot) = promised {
            hand.step(ballot.voter, Message::Prepare { ballot, from });
        }
        let accept = Message::Accept {
            ballot,
            slot: Slot(slot),
            entry: entry.clone(),
            decided: Slot::NONE,
        };
        let effects = hand.step(ballot.voter, accept);
        let answers = sent(&effects)
            .into_iter()
            .map(|(_, message)| message.clone());
        assert_eq!(answers.collect::<Vec<_>>(), expected, "{what}");
    }
}

#[test]
fn a_commit_decides_what_was_accepted_in_its_ballot_and_asks_for_the_rest() {
    let voters = voters(3);
    let (old, new) = (ballot(1, voters[0]), ballot(2, voters[2]));
    // In which ballot each slot from 1 on was accepted; up to where a Commit of which says it is decided; then how far
    // it is, and whether the next is asked for.
    let cases: [(&[Ballot], Ballot, u64, u64, bool); 6] = [
        (&[old, old, old], old, 2, 2, false),
        (&[old, old], old, 3, 2, true),
        (&[old, new, new], new, 3, 0, true),
        (&[new, new], new, 2, 2, false),
        (&[], new, 0, 0, false),
        (&[new, new], old, 2, 0, false),
    ];
    for (votes, ballot, decided, expected, is_asked) in cases {
        let mut hand = Hand::new(options(&voters, 1));
        for (slot, vote) in (1..).map(Slot).zip(votes) {
            let accept = Message::Accept {
                ballot: *vote,
                slot,
                entry: entry(b"put"),
                decided: Slot::NONE,
            };
            hand.step(vote.voter, accept);
        }
        let decided = Slot(decided);
        let effects = hand.step(ballot.voter, Message::Commit { ballot, decided });
        assert_eq!(
            hand.replica().decided(),
            Slot(expected),
            "{votes:?} {decided}"
        );
        let from = Slot(expected + 1);
        let fetch = (ballot.voter, &Message::Fetch { from });
        assert_eq!(
            sent(&effects).contains(&fetch),
            is_asked,
            "{votes:?} {decided}"
        );
    }
}
