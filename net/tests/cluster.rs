//! Three real nodes: what is put is found, whoever is killed meanwhile.

mod support;

use std::time::{Duration, Instant};

use sprag_net::ClientError;
use support::load::Load;
use support::{Cluster, PATIENCE, block_on, put};

/// How long a put may take under load, before its outcome is unknown.
const SHORT: Duration = Duration::from_secs(2);

#[test]
fn what_is_put_is_found_with_its_version() {
    let cluster = Cluster::started(3);
    block_on(async {
        let client = cluster.client();
        assert_eq!(client.get(b"key").await.unwrap(), None);
        let mut last = 0;
        for value in 1..=3_u64 {
            let value = value.to_le_bytes();
            let version = put(&client, b"key", &value).await;
            assert!(version > last);
            let found = client.get(b"key").await.unwrap().unwrap();
            assert!(found.version >= version);
            assert_eq!(found.value[..], value);
            last = version;
        }
    });
}

#[test]
fn one_node_alone_is_a_cluster() {
    let mut cluster = Cluster::started(1);
    block_on(async {
        let version = put(&cluster.client(), b"key", b"value").await;
        cluster.kill(1);
        cluster.start(1);
        let found = cluster.client().get(b"key").await.unwrap().unwrap();
        assert!(found.version >= version);
        assert_eq!(found.value[..], b"value"[..]);
    });
}

#[test]
fn nothing_acknowledged_is_lost_when_the_leader_is_killed_and_then_each_node_in_turn() {
    // With snapshots taken all the time.
    let mut cluster = Cluster::with(3, &["--snapshot-slots", "20"]);
    cluster.start_all();
    let leader = block_on(async {
        let client = cluster.client();
        put(&client, b"key", b"value").await;
        client.leader().0
    });
    let load = Load::start(8, cluster.maker(&cluster.certificates(), SHORT));
    load.wait_for(10);
    for node in [leader, 1, 2, 3] {
        cluster.kill(node);
        load.wait_for(10);
        cluster.start(node);
        load.wait_for(10);
    }
    assert!(load.end(&cluster) >= 8 * 90);
}

#[test]
fn nothing_acknowledged_is_lost_when_all_nodes_are_killed_at_once() {
    let mut cluster = Cluster::started(3);
    let load = Load::start(8, cluster.maker(&cluster.certificates(), SHORT));
    for _ in 0..2 {
        load.wait_for(10);
        for node in 1..=3 {
            cluster.kill(node);
        }
        cluster.start_all();
    }
    load.wait_for(10);
    load.end(&cluster);
}

#[test]
fn two_of_three_go_on_and_one_alone_does_not() {
    let mut cluster = Cluster::started(3);
    block_on(async {
        let client = cluster.client();
        put(&client, b"key", b"three").await;
        cluster.kill(3);
        put(&client, b"key", b"two").await;
        cluster.kill(2);
        let short = cluster.client_with(&cluster.certificates(), SHORT);
        assert!(short.put(b"key", b"one").await.is_err());
        cluster.start(2);
        let found = client.get(b"key").await.unwrap().unwrap();
        assert!([&b"two"[..], b"one"].contains(&&found.value[..]));
    });
}

#[test]
fn a_node_told_to_stop_answers_what_it_has_taken_on_and_ends_without_an_error() {
    let mut cluster = Cluster::started(3);
    let load = Load::start(4, cluster.maker(&cluster.certificates(), SHORT));
    for node in 1..=3 {
        load.wait_for(5);
        assert!(cluster.terminate(node).success());
        load.wait_for(5);
        cluster.start(node);
    }
    load.end(&cluster);
}

/// While a snapshot is saved, and more comes all the time.
#[test]
fn a_node_that_always_has_something_to_sync_hears_that_it_is_to_stop() {
    let mut cluster = Cluster::with(3, &["--snapshot-slots", "1"]);
    cluster.start_all();
    let load = Load::start(64, cluster.maker(&cluster.certificates(), SHORT));
    for node in 1..=3 {
        load.wait_for(5);
        assert!(cluster.terminate(node).success());
        cluster.start(node);
    }
    load.wait_for(5);
    load.end(&cluster);
}

#[test]
fn a_node_whose_disk_was_lost_has_no_vote_and_says_so() {
    let mut cluster = Cluster::started(3);
    block_on(async { put(&cluster.client(), b"key", b"value").await });
    cluster.kill(3);
    std::fs::remove_dir_all(cluster.data(3)).unwrap();
    let output = cluster.command(3).output().unwrap();
    assert!(!output.status.success());
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(
        words.contains("another has no vote; restore the disk"),
        "{words}"
    );
    block_on(async {
        let found = cluster.client().get(b"key").await.unwrap().unwrap();
        assert_eq!(found.value[..], b"value"[..]);
    });
}

/// The snapshots that a node has.
fn snapshots(cluster: &Cluster, node: u16) -> Vec<String> {
    let names = std::fs::read_dir(cluster.data(node)).unwrap();
    let names = names.map(|name| name.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("snapshot-")).collect()
}

#[test]
fn a_log_that_is_trimmed_is_never_full_and_who_was_away_begins_with_a_snapshot() {
    let more = ["--slots", "300", "--snapshot-slots", "40"];
    let mut cluster = Cluster::with(3, &more);
    cluster.start_all();
    block_on(async {
        let client = cluster.client();
        put(&client, b"first", b"value").await;
        cluster.kill(3);
        assert_eq!(snapshots(&cluster, 3).len(), 0);
        for number in 1..=500_u64 {
            let key = [b'k', (number % 10) as u8];
            put(&client, &key, &number.to_le_bytes()).await;
        }
        cluster.start(3);
        // From here on nothing is decided without it.
        cluster.kill(1);
        for key in 0..10 {
            let found = client.get(&[b'k', key]).await.unwrap().unwrap();
            assert!(found.version >= 50);
        }
        cluster.start(1);
        cluster.kill(2);
        let found = client.get(b"first").await.unwrap().unwrap();
        assert_eq!(found.value[..], b"value"[..]);
    });
    assert!(!snapshots(&cluster, 3).is_empty());
}

#[test]
fn nodes_without_room_for_a_snapshot_take_nothing_more_in_time_and_go_on_once_there_is_room() {
    let more = ["--slots", "800", "--snapshot-slots", "200"];
    let mut cluster = Cluster::with(3, &more);
    cluster.start_all();
    // A segment has 16 MiB.
    for node in 1..=3 {
        cluster.bound_files(node, Some(17 << 20));
    }
    block_on(async {
        let client = cluster.client();
        for key in 0..20 {
            put(&client, &[b'k', key], &vec![key; 1 << 20]).await;
        }
        let mut done = 0_u64;
        let words = loop {
            match client.put(b"key", &(done + 1).to_le_bytes()).await {
                Ok(_) => done += 1,
                Err(ClientError::Unknown(_)) => {}
                Err(error) => break error.to_string(),
            }
        };
        let expected = "not done: the log is nearly full";
        assert!(words.starts_with(expected), "{words}");
        for node in 1..=3 {
            cluster.bound_files(node, None);
        }
        let given_up = Instant::now() + PATIENCE;
        while let Err(error) = client.put(b"more", b"value").await {
            assert!(Instant::now() < given_up, "{error}");
        }
        let found = client.get(b"key").await.unwrap().unwrap();
        let found = u64::from_le_bytes(found.value[..].try_into().unwrap());
        assert!(found == done || found == done + 1);
        let found = client.get(&[b'k', 7]).await.unwrap().unwrap();
        assert!(found.value == vec![7; 1 << 20]);
    });
    assert!(!snapshots(&cluster, 1).is_empty());
}
