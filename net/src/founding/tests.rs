use super::*;
use sprag_log::RealDisk;
use sprag_paxos::DiskId;
use tempfile::TempDir;

const CLUSTER: ClusterId = ClusterId(7);

fn voter(node: u16, disk: u64) -> Voter {
    Voter {
        node: NodeId(node),
        disk: DiskId(disk),
    }
}

/// A node on a disk of its own.
struct Node {
    _directory: TempDir,
    disk: RealDisk,
    me: Voter,
    founding: Founding,
}

impl Node {
    fn new(node: u16, disk_id: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(directory.path()).unwrap();
        let me = voter(node, disk_id);
        let founding = open(&disk, me).unwrap();
        Self {
            _directory: directory,
            disk,
            me,
            founding,
        }
    }

    fn start_again(&mut self) {
        self.founding = open(&self.disk, self.me).unwrap();
    }

    /// Hears of another what that one tells now.
    fn hear(&mut self, other: &Node) -> Result<(), FoundingError> {
        self.hear_words(other.me, &other.founding.bound)
    }

    fn hear_words(&mut self, voter: Voter, bound: &[Voter]) -> Result<(), FoundingError> {
        self.founding.heard(voter, bound)?;
        self.founding.go_on(&self.disk).map(|_| ())
    }

    fn is_bound(&self) -> bool {
        !self.founding.bound.is_empty()
    }
}

fn open(disk: &RealDisk, me: Voter) -> Result<Founding, FoundingError> {
    let others = (1..=3).map(NodeId).filter(|node| *node != me.node);
    Founding::open(disk, CLUSTER, me, others)
}

fn three() -> [Node; 3] {
    [1, 2, 3].map(|node| Node::new(node, 100 + u64::from(node)))
}

#[test]
fn nodes_vote_once_all_are_bound_whatever_the_order_in_which_they_hear_and_start_again() {
    for seed in 0..32 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut nodes = three();
        while nodes.iter().any(|node| node.founding.voters().is_none()) {
            let to = random.usize(0..3);
            let from = (to + random.usize(1..3)) % 3;
            let [to, from] = nodes.get_disjoint_mut([to, from]).unwrap();
            to.hear(from).unwrap();
            if random.u8(0..4) == 0 {
                to.start_again();
            }
            let founded = nodes.iter().any(|node| node.founding.voters().is_some());
            assert!(!founded || nodes.iter().all(Node::is_bound), "seed {seed}");
        }
        let voters = [1, 2, 3].map(|node| voter(node, 100 + u64::from(node)));
        for node in &mut nodes {
            node.start_again();
            assert_eq!(node.founding.voters(), Some(&voters[..]), "seed {seed}");
        }
    }
}

#[test]
fn a_node_alone_votes_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let disk = RealDisk::open(directory.path()).unwrap();
    let me = voter(1, 5);
    let mut founding = Founding::open(&disk, CLUSTER, me, std::iter::empty()).unwrap();
    assert_eq!(founding.voters(), None);
    assert!(founding.go_on(&disk).unwrap());
    assert_eq!(founding.voters(), Some(&[me][..]));
    assert!(!founding.go_on(&disk).unwrap());
}

#[test]
fn a_node_with_another_disk_than_it_was_bound_by_is_told_so() {
    let [mut first, mut second, third] = three();
    first.hear(&second).unwrap();
    first.hear(&third).unwrap();
    second.hear(&first).unwrap();
    assert!(first.is_bound() && second.is_bound());
    let mut renewed = Node::new(3, 999);
    let error = renewed.hear(&first).unwrap_err();
    assert!(
        matches!(
            error,
            FoundingError::Stranger {
                node: 3,
                of: 1,
                known: 103,
                own: 999
            }
        ),
        "{error}"
    );
    // And it changes nothing for them, whatever it says.
    second.hear(&renewed).unwrap();
    first.hear(&second).unwrap();
    assert_eq!(first.founding.voters(), None);
    assert_eq!(first.founding.bound, second.founding.bound);
}

#[test]
fn nodes_bound_to_different_voters_never_found() {
    let [mut first, mut second, third] = three();
    let renewed = Node::new(3, 999);
    first.hear(&second).unwrap();
    second.hear_words(first.me, &[]).unwrap();
    second.hear(&renewed).unwrap();
    first.hear(&third).unwrap();
    let error = first.hear(&second).unwrap_err();
    assert!(
        matches!(error, FoundingError::Torn { of: 2, .. }),
        "{error}"
    );
    let words = error.to_string();
    let (theirs, own) = (second.founding.bound.clone(), first.founding.bound.clone());
    for voters in [theirs, own] {
        assert!(words.contains(&Voters(voters).to_string()), "{words}");
    }
    for node in [&first, &second] {
        assert_eq!(node.founding.voters(), None);
    }
}

#[test]
fn nodes_that_are_told_of_different_nodes_never_found_and_name_both_lists() {
    let mut first = Node::new(1, 1);
    let me = voter(2, 2);
    first.founding =
        Founding::open(&first.disk, CLUSTER, first.me, [NodeId(2)].into_iter()).unwrap();
    first.hear_words(me, &[]).unwrap();
    assert!(first.is_bound());
    let mut second = Node::new(2, 2);
    let error = second.hear(&first).unwrap_err();
    assert_eq!(
        error.to_string(),
        "node 1 founds a cluster of nodes 1, 2, and this node is told of one of nodes 1, 2, 3; start both with the same nodes"
    );
    assert!(!second.is_bound());
    assert_eq!(first.founding.voters(), None);
}

#[test]
fn only_voters_that_a_node_is_bound_to_can_agree() {
    let [mut first, second, third] = three();
    first.hear(&second).unwrap();
    first.hear(&third).unwrap();
    let bound = first.founding.bound.clone();
    let stranger = voter(9, 9);
    let renewed = voter(2, 999);
    for other in [stranger, renewed, third.me] {
        first.hear_words(other, &bound).unwrap();
        assert_eq!(first.founding.voters(), None);
    }
    assert_eq!(first.founding.agreed.len(), 1);
    first.hear_words(second.me, &bound).unwrap();
    assert!(first.founding.voters().is_some());
}

#[test]
fn who_hears_of_a_bound_node_binds_itself_to_the_same() {
    let [mut first, mut second, third] = three();
    first.hear(&second).unwrap();
    first.hear(&third).unwrap();
    // It has not heard of the third itself.
    second.hear(&first).unwrap();
    assert_eq!(second.founding.bound, first.founding.bound);
}

#[test]
fn a_file_that_is_damaged_or_of_another_disk_is_refused() {
    let mut node = Node::new(1, 5);
    for other in [voter(2, 6), voter(3, 7)] {
        node.hear_words(other, &[]).unwrap();
    }
    let refused = |founding: Result<Founding, FoundingError>| {
        let error = founding.unwrap_err();
        assert!(matches!(error, FoundingError::File(_)), "{error}");
    };
    refused(open(&node.disk, voter(1, 6)));
    refused(open(&node.disk, voter(2, 5)));
    let others = [NodeId(2), NodeId(3)].into_iter();
    refused(Founding::open(&node.disk, ClusterId(8), node.me, others));
    let file = node.disk.open(VOTERS).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    file.read(0, &mut bytes).unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        file.write(0, &damaged).unwrap();
        refused(open(&node.disk, node.me));
    }
    file.write(0, &bytes).unwrap();
    assert!(open(&node.disk, node.me).is_ok());
}

#[test]
fn a_node_that_is_founded_stays_so_whatever_another_founded() {
    let (mut one, mut two, mut three) = (Node::new(1, 1), Node::new(2, 2), Node::new(3, 3));
    for _ in 0..3 {
        one.hear(&two).unwrap();
        one.hear(&three).unwrap();
        two.hear(&one).unwrap();
        two.hear(&three).unwrap();
        three.hear(&one).unwrap();
        three.hear(&two).unwrap();
    }
    assert!(one.founding.is_founded);
    let alone = voter(3, 9);
    assert_eq!(
        one.hear_words(alone, &[alone])
            .map_err(|error| error.to_string()),
        Ok(())
    );
    assert!(one.founding.is_founded);
    // One that isn't is told.
    let mut new = Node::new(2, 8);
    assert!(new.hear_words(one.me, &one.founding.bound).is_err());
}
