use std::collections::BTreeMap;
use std::future::pending;
use std::net::Ipv4Addr;
use std::path::Path;

use super::*;
use crate::certificates::make;
use crate::host::tests::put;
use crate::session::tests::Told;

/// A node that is a cluster.
fn alone(directory: &Path) -> Node {
    Node::open(options(directory)).unwrap()
}

fn options(directory: &Path) -> NodeOptions {
    let certificates = directory.join("certificates");
    make(&certificates, 1).unwrap();
    NodeOptions {
        node: NodeId(1),
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        peers: BTreeMap::new(),
        data: directory.join("data"),
        certificates,
        election: Duration::from_secs(20),
        beat: Duration::from_secs(10),
        log: LogOptions::default(),
        snapshot_slots: 1_000,
    }
}

/// Has it lead; gives what it takes its inputs from.
async fn lead(node: &mut Node) -> Vec<Input> {
    let Stage::Voting(host) = &mut node.stage else {
        panic!("it decides alone");
    };
    host.age(Duration::from_mins(1));
    let mut inputs = Vec::new();
    node.take_in(&mut inputs).unwrap();
    while node.sync(&mut inputs).await.unwrap() {}
    inputs
}

#[tokio::test]
async fn a_node_whose_disk_s_thread_has_ended_ends_with_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let mut node = alone(directory.path());
    // As it is when that has panicked.
    node.disk_done = mpsc::unbounded_channel().1;
    let ended = tokio::time::timeout(Duration::from_mins(1), node.run(pending())).await;
    let ended = ended.expect("it doesn't stand still");
    assert!(
        matches!(ended, Err(NodeError::Ended("its disk's thread"))),
        "{ended:?}"
    );
}

#[tokio::test]
async fn a_node_that_hears_no_more_who_comes_ends_with_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let mut node = alone(directory.path());
    // As it is when one has panicked.
    node.tasks.spawn(async {});
    let ended = tokio::time::timeout(Duration::from_mins(1), node.run(pending())).await;
    let ended = ended.expect("it doesn't go on");
    assert!(matches!(ended, Err(NodeError::Ended(_))), "{ended:?}");
}

/// However much waits, and though the disk's thread has no time for it.
#[tokio::test]
async fn a_turn_syncs_once_and_what_follows_waits_for_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let mut node = alone(directory.path());
    node.is_saving = true;
    let mut inputs = lead(&mut node).await;
    // Each has a slot of its own, and 64 of them are under way at once.
    let mut client = Told::new();
    let requests = (0..100).map(|_| Input::Request {
        asker: client.ask(),
        operation: put(140 << 10),
    });
    inputs.extend(requests);
    node.take_in(&mut inputs).unwrap();
    for (answered, goes_on) in [(64, true), (36, false)] {
        assert_eq!(client.answers().len(), 0);
        assert_eq!(node.sync(&mut inputs).await.unwrap(), goes_on);
        assert_eq!(client.answers().len(), answered);
    }
}

#[tokio::test]
async fn a_segment_has_room_for_the_longest_operation_or_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    let least = 2 << 20;
    options.log.segment_bytes = least - 4_096;
    let refused = Node::open(options.clone()).map(drop).unwrap_err();
    let words = "segment_bytes: 2093056, must be at least 2097152: a segment has to have room for \
                 the longest operation; give more segment_bytes";
    assert_eq!(refused.to_string(), words);
    assert!(!options.data.exists());
    options.log.segment_bytes = least;
    let mut node = Node::open(options).unwrap();
    let mut inputs = lead(&mut node).await;
    let mut client = Told::new();
    let (asker, operation) = (client.ask(), put(1 << 20));
    inputs.push(Input::Request { asker, operation });
    node.take_in(&mut inputs).unwrap();
    while node.sync(&mut inputs).await.unwrap() {}
    assert!(matches!(client.answers()[..], [(1, Outcome::Done(_))]));
}

#[test]
fn a_disk_that_lost_its_vote_alone_is_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let disk = RealDisk::open(directory.path()).unwrap();
    let open = || {
        let options = LogOptions {
            segment_bytes: 1 << 14,
            ..LogOptions::default()
        };
        open_disk(&disk, ClusterId(7), NodeId(1), &options).map(drop)
    };
    open().unwrap();
    disk.create(VOTERS, 1).unwrap();
    disk.remove("vote").unwrap();
    let left = disk.list().unwrap();
    assert!(matches!(open(), Err(NodeError::Lost)));
    assert_eq!(disk.list().unwrap(), left);
}
