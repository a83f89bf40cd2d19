//! How the client and the nodes' diallers bear with nodes that are dead, or answer and do nothing.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quinn::{Connection, Endpoint};
use sprag_net::certificates::Role;
use sprag_net::frame::Frames;
use sprag_net::transport::{Close, listen};
use sprag_net::wire::{ClientFrame, ClientKind, Outcome, Response, Unknown};
use sprag_net::{Client, ClientError, ClientOptions};
use sprag_paxos::NodeId;
use support::raw::framed;
use support::{Cluster, PATIENCE, block_on, put};

/// Answers whatever a client asks with unknown, and counts.
async fn answer_unknown(connection: Connection, asked: Arc<AtomicU64>) {
    let (mut send, mut stream) = connection.accept_bi().await.unwrap();
    let mut frames = Frames::new(2 << 20);
    while let Ok(Some(chunk)) = stream.read_chunk(1 << 16, true).await {
        frames.push(&chunk.bytes);
        while let Some(frame) = frames.take::<ClientFrame>().unwrap() {
            if let Some(ClientKind::Request(request)) = frame.kind {
                asked.fetch_add(1, Ordering::Relaxed);
                let response = Response {
                    id: request.id,
                    outcome: Some(Outcome::Unknown(Unknown {})),
                };
                send.write_all(&framed(&response)).await.unwrap();
            }
        }
    }
}

/// Somebody with the certificate of that node.
fn pretend(cluster: &Cluster, node: u16) -> (Endpoint, SocketAddr) {
    let credentials = cluster.credentials(Role::Node(NodeId(node)));
    let endpoint = listen(cluster.address(node), &credentials).unwrap();
    let address = endpoint.local_addr().unwrap();
    (endpoint, address)
}

#[test]
fn a_read_whose_outcome_is_unknown_is_tried_again_with_pauses_that_grow() {
    let cluster = Cluster::new(1);
    block_on(async {
        let (endpoint, address) = pretend(&cluster, 1);
        let asked = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                let connection = incoming.await.unwrap();
                tokio::spawn(answer_unknown(connection, Arc::clone(&counted)));
            }
        });
        let options = ClientOptions {
            nodes: BTreeMap::from([(NodeId(1), address.to_string())]),
            timeout: Duration::from_secs(2),
        };
        let client = Client::new(options, &cluster.credentials(Role::Client)).unwrap();
        let error = client.get(b"key").await.unwrap_err();
        assert!(matches!(error, ClientError::NotDone(_)), "{error}");
        // Pauses of at least 2, 5, 10, 20, 40, 80 and then 100 ms each fit in 25 times.
        let asked = asked.load(Ordering::Relaxed);
        assert!((3..=26).contains(&asked), "{asked}");
    });
}

#[test]
fn a_timeout_in_which_nothing_can_be_done_or_that_never_ends_is_refused_with_its_bounds() {
    let cluster = Cluster::new(1);
    block_on(async {
        let make = |timeout| {
            let options = ClientOptions {
                nodes: BTreeMap::from([(NodeId(1), cluster.address(1).to_string())]),
                timeout,
            };
            Client::new(options, &cluster.credentials(Role::Client)).map(drop)
        };
        for timeout in [Duration::ZERO, Duration::MAX] {
            let words = make(timeout).unwrap_err().to_string();
            assert_eq!(
                words,
                format!("timeout: {timeout:?}, must be 1ms to 86400s")
            );
        }
        for timeout in [Duration::from_millis(1), Duration::from_hours(24)] {
            make(timeout).unwrap();
        }
    });
}

/// How often somebody began a handshake with a socket that never answers: each begins with a number of its own, in the first
/// bytes of an Initial packet (RFC 9000, 17.2.2).
fn handshakes(socket: &UdpSocket, is_over: &AtomicBool) -> usize {
    socket
        .set_read_timeout(Some(Duration::from_millis(10)))
        .unwrap();
    let mut begun = BTreeSet::new();
    let mut packet = [0; 2_048];
    while !is_over.load(Ordering::Relaxed) {
        if let Ok(length) = socket.recv(&mut packet)
            && packet[0] & 0xf0 == 0xc0
        {
            let number = &packet[6..length][..usize::from(packet[5])];
            begun.insert(number.to_vec());
        }
    }
    begun.len()
}

#[test]
fn a_dead_node_costs_all_callers_one_attempt_and_is_left_alone_for_a_while() {
    let mut cluster = Cluster::started(3);
    block_on(async { put(&cluster.client(), b"key", b"value").await });
    // Whom a client asks first.
    cluster.kill(1);
    let silent = UdpSocket::bind(cluster.address(1)).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_over);
    let counter = std::thread::spawn(move || handshakes(&silent, &ends));
    block_on(async {
        let client = cluster.client();
        let asked = (0..50).map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.get(b"key").await.unwrap() })
        });
        for asked in asked.collect::<Vec<_>>() {
            assert!(asked.await.unwrap().is_some());
        }
    });
    is_over.store(true, Ordering::Relaxed);
    // One for all; and another whenever a node that doesn't know it yet says that the dead one leads.
    let handshakes = counter.join().unwrap();
    assert!((1..=5).contains(&handshakes), "{handshakes}");
}

#[test]
fn a_node_that_shuts_its_peer_out_at_once_is_dialled_less_and_less_often() {
    let mut cluster = Cluster::new(2);
    block_on(async {
        let (endpoint, _) = pretend(&cluster, 2);
        cluster.start(1);
        let began = Instant::now();
        for _ in 0..8 {
            let incoming = tokio::time::timeout(PATIENCE, endpoint.accept()).await;
            let connection = incoming.unwrap().unwrap().await.unwrap();
            Close::OtherVersion.close(&connection, "version 1 is spoken, and here 2");
        }
        // Seven pauses of at least 5, 10, 20, 40, 80, 160 and 320 ms.
        assert!(began.elapsed() >= Duration::from_millis(635));
    });
}
