//! Which voters make a configuration, and which of them a quorum.

use sprag_paxos::{Configuration, ConfigurationError, DiskId, NodeId, Phase, Voter, VoterSet};

fn voter(node: u16, disk: u64) -> Voter {
    Voter {
        node: NodeId(node),
        disk: DiskId(disk),
    }
}

fn of(count: u16) -> Result<Configuration, ConfigurationError> {
    Configuration::new((0..count).map(|node| voter(node, 7)).collect())
}

/// The set of the voters whose bits are set.
fn set(bits: u32) -> VoterSet {
    let mut set = VoterSet::default();
    for index in (0..32).filter(|index| bits & (1 << index) != 0) {
        assert!(set.insert(index));
    }
    set
}

#[test]
fn one_voter_is_enough_fifteen_are_the_most_and_no_node_votes_twice() {
    for count in 1..=15 {
        assert_eq!(of(count).unwrap().voters().len(), usize::from(count));
    }
    for count in [0, 16, 40] {
        let error = ConfigurationError::Count {
            count: usize::from(count),
            max: 15,
        };
        assert_eq!(of(count), Err(error));
    }
    let twice = Configuration::new(vec![voter(1, 8), voter(2, 7), voter(1, 7)]);
    assert_eq!(twice, Err(ConfigurationError::NodeTwice(voter(1, 8))));
    let same = Configuration::new(vec![voter(1, 7), voter(1, 7)]);
    assert_eq!(same, Err(ConfigurationError::NodeTwice(voter(1, 7))));
}

#[test]
fn an_error_says_what_was_given_and_what_may_be() {
    let text = of(16).unwrap_err().to_string();
    assert!(text.contains("16") && text.contains("1 to 15"), "{text}");
    let twice = Configuration::new(vec![voter(1, 7), voter(1, 8)]);
    let text = twice.unwrap_err().to_string();
    assert!(text.contains(&voter(1, 8).to_string()), "{text}");
}

#[test]
fn a_node_with_another_disk_has_no_vote() {
    let configuration = Configuration::new(vec![voter(3, 7), voter(1, 9), voter(2, 8)]).unwrap();
    assert_eq!(
        configuration.voters(),
        [voter(1, 9), voter(2, 8), voter(3, 7)]
    );
    assert_eq!(configuration.index_of(voter(2, 8)), Some(1));
    assert_eq!(configuration.index_of(voter(2, 9)), None);
    assert_eq!(configuration.index_of(voter(4, 7)), None);
}

#[test]
fn every_quorum_of_phase_one_meets_every_one_of_phase_two() {
    for count in 1..=5 {
        let configuration = of(count).unwrap();
        let all = 1 << count;
        let quorums = |phase| {
            (0..all).filter({
                let configuration = &configuration;
                move |bits| configuration.is_quorum(phase, set(*bits))
            })
        };
        assert!(quorums(Phase::One).any(|bits| bits == all - 1));
        assert!(quorums(Phase::Two).any(|bits| bits == all - 1));
        for one in quorums(Phase::One) {
            for two in quorums(Phase::Two) {
                assert_ne!(one & two, 0, "{one:b} and {two:b} of {count}");
            }
        }
    }
}

#[test]
fn a_quorum_does_without_any_minority() {
    for count in 1..=15_u32 {
        let configuration = of(count as u16).unwrap();
        let missing = (count - 1) / 2;
        for phase in [Phase::One, Phase::Two] {
            let least = (1 << (count - missing)) - 1;
            assert!(configuration.is_quorum(phase, set(least)), "{count}");
            assert!(!configuration.is_quorum(phase, set(least >> 1)), "{count}");
        }
    }
}

#[test]
fn a_set_counts_each_voter_once() {
    let mut set = VoterSet::default();
    assert!(set.is_empty());
    assert!(set.insert(2));
    assert!(!set.insert(2));
    assert!(set.insert(14));
    assert_eq!(set.len(), 2);
    assert!(set.contains(2) && set.contains(14) && !set.contains(3));
}
