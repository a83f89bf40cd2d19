//! What phase one allows to be proposed, against every history of votes that could have led to its answers.

use sprag_paxos::{
    Answer, Ballot, Choice, Configuration, DiskId, Entry, NodeId, Phase, Vote, Voter, VoterSet,
    choose,
};

/// Who voted in which of the ballots 1 and up, for good, and what each ballot proposed.
struct History {
    configuration: Configuration,
    /// By ballot less one.
    proposed: Vec<Entry>,
    /// By voter, a bit for each ballot less one.
    voted: Vec<u32>,
}

fn ballot(number: usize) -> Ballot {
    let voter = Voter {
        node: NodeId(1),
        disk: DiskId(1),
    };
    Ballot {
        round: number as u64,
        voter,
    }
}

fn configuration(voters: usize) -> Configuration {
    let voter = |node| Voter {
        node: NodeId(node),
        disk: DiskId(1),
    };
    Configuration::new((1..=voters as u16).map(voter).collect()).unwrap()
}

impl History {
    fn voters(&self) -> usize {
        self.voted.len()
    }

    /// The last ballot below `below` that `voter` voted in; 0 if none.
    fn last(&self, voter: usize, below: usize) -> usize {
        (1..below)
            .rev()
            .find(|number| self.voted[voter] & (1 << (number - 1)) != 0)
            .unwrap_or(0)
    }

    fn quorums(&self, phase: Phase) -> impl Iterator<Item = VoterSet> {
        let all = (0..1_u32 << self.voters()).map(|bits| {
            let mut set = VoterSet::default();
            for voter in (0..self.voters()).filter(|voter| bits & (1 << voter) != 0) {
                set.insert(voter);
            }
            set
        });
        all.filter(move |set| self.configuration.is_quorum(phase, *set))
    }

    /// Whether the rule was kept in it: whatever got a vote in a ballot was proposed because a quorum voted for nothing
    /// before, or last for that. (Lamport, The Paxos Algorithm (TLA+), 2012, module Voting: `ShowsSafeAt`.)
    fn is_lawful(&self) -> bool {
        (1..=self.proposed.len()).all(|number| {
            let got_a_vote = self
                .voted
                .iter()
                .any(|bits| bits & (1 << (number - 1)) != 0);
            let is_safe = |quorum: VoterSet| {
                let members = (0..self.voters()).filter(|voter| quorum.contains(*voter));
                let last = members.map(|voter| self.last(voter, number)).max();
                match last.unwrap_or(0) {
                    0 => true,
                    last => self.proposed[last - 1] == self.proposed[number - 1],
                }
            };
            !got_a_vote || self.quorums(Phase::One).any(is_safe)
        })
    }

    /// What is chosen in it, in any ballot.
    fn chosen(&self) -> Vec<&Entry> {
        let is_chosen = |number: &usize| {
            self.quorums(Phase::Two).any(|quorum| {
                let mut members = (0..self.voters()).filter(|voter| quorum.contains(*voter));
                members.all(|voter| self.voted[voter] & (1 << number) != 0)
            })
        };
        let ballots = (0..self.proposed.len()).filter(is_chosen);
        ballots.map(|number| &self.proposed[number]).collect()
    }

    /// What `voter` may answer a candidate above all ballots: nothing, the truth, or that it can't read it any more.
    fn answers(&self, voter: usize) -> Vec<Option<Answer>> {
        let last = self.last(voter, self.proposed.len() + 1);
        let truth = match last {
            0 => Answer::Never,
            last => Answer::Accepted(Vote {
                ballot: ballot(last),
                entry: self.proposed[last - 1].clone(),
            }),
        };
        let unreadable =
            (last.max(1)..=self.proposed.len()).map(|up_to| Some(Answer::Unknown(ballot(up_to))));
        [None, Some(truth)].into_iter().chain(unreadable).collect()
    }
}

/// All of `choices`, one of each.
fn product<T: Clone>(choices: &[Vec<T>]) -> Vec<Vec<T>> {
    choices.iter().fold(vec![Vec::new()], |products, choices| {
        let longer = products.iter().flat_map(|product| {
            choices.iter().map(|choice| {
                let mut longer = product.clone();
                longer.push(choice.clone());
                longer
            })
        });
        longer.collect()
    })
}

/// Holds the choice to every lawful history; gives how many choices there were.
fn check(voters: usize, ballots: usize) -> u64 {
    let configuration = configuration(voters);
    let values = vec![Entry::Commands(b"a"[..].into()), Entry::Noop];
    let mut checked = 0;
    for proposed in product(&vec![values; ballots]) {
        for voted in product(&vec![(0..1 << ballots).collect::<Vec<u32>>(); voters]) {
            let history = History {
                configuration: configuration.clone(),
                proposed: proposed.clone(),
                voted,
            };
            if !history.is_lawful() {
                continue;
            }
            let chosen = history.chosen();
            let all: Vec<_> = (0..voters).map(|voter| history.answers(voter)).collect();
            for answers in product(&all) {
                checked += 1;
                let choice = choose(&configuration, &answers);
                let what = || format!("{answers:?} gives {choice:?}, but chosen is {chosen:?}");
                let mut knowing = VoterSet::default();
                for (voter, answer) in answers.iter().enumerate() {
                    if matches!(answer, Some(Answer::Never | Answer::Accepted(_))) {
                        knowing.insert(voter);
                    }
                }
                match &choice {
                    Choice::Free => assert!(chosen.is_empty(), "{}", what()),
                    Choice::Bound(entry) => {
                        assert!(chosen.iter().all(|chosen| *chosen == entry), "{}", what());
                        let is_told = |answer: &Option<Answer>| match answer {
                            Some(Answer::Accepted(vote)) => vote.entry == *entry,
                            _ => false,
                        };
                        assert!(answers.iter().any(is_told), "{}", what());
                    }
                    Choice::Open => {
                        let is_needless = configuration.is_quorum(Phase::One, knowing);
                        assert!(!is_needless, "{answers:?} is enough to choose");
                    }
                }
            }
        }
    }
    checked
}

#[test]
fn of_three_voters_and_three_ballots_no_choice_undoes_what_may_be_chosen() {
    assert!(check(3, 3) > 100_000);
}

#[test]
fn of_four_voters_and_two_ballots_no_choice_undoes_what_may_be_chosen() {
    assert!(check(4, 2) > 100_000);
}

#[test]
fn one_voter_decides_by_itself() {
    assert!(check(1, 3) > 20);
}

#[test]
fn what_cannot_be_read_is_made_up_for_by_a_vote_that_reaches_as_high() {
    let configuration = configuration(3);
    let vote = |number| {
        Some(Answer::Accepted(Vote {
            ballot: ballot(number),
            entry: Entry::Noop,
        }))
    };
    let unknown = |number| Some(Answer::Unknown(ballot(number)));
    let never = || Some(Answer::Never);
    let cases = [
        ([unknown(3), vote(2), None], Choice::Open),
        ([unknown(3), vote(3), None], Choice::Bound(Entry::Noop)),
        ([unknown(3), vote(4), None], Choice::Bound(Entry::Noop)),
        ([unknown(3), never(), None], Choice::Open),
        (
            [unknown(3), unknown(3), vote(3)],
            Choice::Bound(Entry::Noop),
        ),
        ([unknown(3), unknown(3), never()], Choice::Open),
        // Those that know are a quorum by themselves.
        ([unknown(3), never(), never()], Choice::Free),
        ([unknown(3), vote(2), never()], Choice::Bound(Entry::Noop)),
    ];
    for (answers, choice) in cases {
        assert_eq!(choose(&configuration, &answers), choice, "{answers:?}");
    }
}
