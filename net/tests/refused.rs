//! Who is not let in, and what is not taken: each time one connection is closed, with a reason, and the others go on.

mod support;

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quinn::{Connection, ConnectionError, Endpoint, EndpointConfig, TransportConfig};
use sprag_net::certificates::{Credentials, Role, make};
use sprag_net::transport::dialling;
use sprag_net::wire::{Outcome, PeerFrame, PeerHello, PeerKind, VERSION, Voter};
use sprag_net::{ClientError, certificates::CertificatesError};
use sprag_paxos::NodeId;
use support::raw::{Steady, client_frame, client_hello, connect, framed, try_connect};
use support::{Cluster, PATIENCE, block_on};

const BAD_FRAME: u64 = 1;
const NOT_WHO_IT_SAYS: u64 = 2;
const OTHER_CLUSTER: u64 = 3;
const OTHER_VERSION: u64 = 4;

/// Node 1 of a cluster of two, which waits for the other: whoever comes as that one is known by its certificate.
fn first_of_two() -> Cluster {
    let mut cluster = Cluster::new(2);
    cluster.start(1);
    cluster
}

/// The number and the words with which the node closes the connection.
async fn closed(connection: &Connection) -> (u64, String) {
    let closed = tokio::time::timeout(PATIENCE, connection.closed()).await;
    match closed.expect("the node closes it") {
        ConnectionError::ApplicationClosed(close) => {
            let words = String::from_utf8_lossy(&close.reason).into_owned();
            (close.error_code.into_inner(), words)
        }
        other => panic!("{other}"),
    }
}

fn peer_hello(cluster: &Cluster, node: u32) -> PeerHello {
    PeerHello {
        version: VERSION,
        cluster: cluster.id.0,
        voter: Voter { node, disk: 5 },
        bound: Vec::new(),
    }
}

fn peer_frame(hello: PeerHello) -> PeerFrame {
    PeerFrame {
        kind: Some(PeerKind::Hello(hello)),
    }
}

/// Says that as a peer; gives how the node closes the connection.
async fn say_as_peer(cluster: &Cluster, role: Role, bytes: &[u8]) -> (u64, String) {
    let (_endpoint, connection) = connect(cluster, &cluster.credentials(role)).await;
    let mut stream = connection.open_uni().await.unwrap();
    stream.write_all(bytes).await.unwrap();
    closed(&connection).await
}

/// Says that as a client; gives how the node closes the connection.
async fn say_as_client(cluster: &Cluster, role: Role, bytes: &[u8]) -> (u64, String) {
    let (_endpoint, connection) = connect(cluster, &cluster.credentials(role)).await;
    let (mut stream, _answers) = connection.open_bi().await.unwrap();
    stream.write_all(bytes).await.unwrap();
    closed(&connection).await
}

#[test]
fn who_is_not_who_it_says_is_refused() {
    let cluster = first_of_two();
    let hello = |node| framed(&peer_frame(peer_hello(&cluster, node)));
    let client = framed(&client_frame(client_hello(&cluster)));
    block_on(async {
        let node = |number| Role::Node(NodeId(number));
        let of = |name: &str| format!("the certificate is of {name}.{}.sprag, ", cluster.id);
        let cases = [
            (Role::Client, hello(1), true, of("client")),
            (Role::Client, hello(2), true, of("client")),
            (node(1), hello(1), true, of("node-1")),
            (node(2), client, false, of("node-2")),
            (
                node(2),
                hello(1),
                true,
                "the certificate is of node 2".to_owned(),
            ),
        ];
        for (role, bytes, as_peer, expected) in cases {
            let (number, words) = if as_peer {
                say_as_peer(&cluster, role, &bytes).await
            } else {
                say_as_client(&cluster, role, &bytes).await
            };
            assert_eq!(number, NOT_WHO_IT_SAYS, "{words}");
            assert!(words.starts_with(&expected), "{words}");
        }
        Steady::new(&cluster).await.get().await;
    });
}

#[test]
fn a_node_that_waits_for_others_to_found_the_cluster_says_for_whom() {
    let cluster = first_of_two();
    block_on(async {
        let Outcome::NotDone(not_done) = Steady::new(&cluster).await.get().await else {
            panic!("it is alone");
        };
        let expected = "the cluster is not founded yet: node 2 must come";
        assert_eq!(
            (not_done.reason.as_str(), not_done.is_final),
            (expected, false)
        );
    });
}

/// Without a single byte of a frame: what the certificate is of decides.
#[test]
fn a_role_is_proven_before_anything_is_read_and_a_long_hello_is_not_waited_for() {
    let cluster = first_of_two();
    block_on(async {
        let node = Role::Node(NodeId(2));
        let prefix = |bytes: u32| bytes.to_le_bytes();
        for bytes in [1_025, 1 << 20, 8 << 20] {
            let peer = say_as_peer(&cluster, node, &prefix(bytes)).await;
            let client = say_as_client(&cluster, Role::Client, &prefix(bytes)).await;
            for (number, words) in [peer, client] {
                assert_eq!(number, BAD_FRAME, "{words}");
                assert!(words.ends_with("of at most 1024"), "{words}");
            }
        }
        let one = say_as_peer(&cluster, Role::Client, &[0]).await;
        let other = say_as_client(&cluster, node, &[0]).await;
        assert_eq!((one.0, other.0), (NOT_WHO_IT_SAYS, NOT_WHO_IT_SAYS));
    });
}

#[test]
fn certificates_of_another_node_are_not_taken_for_one_s_own() {
    let cluster = first_of_two();
    let third = Role::Node(NodeId(3));
    let words = Credentials::read(&cluster.certificates(), third).unwrap_err();
    assert!(matches!(words, CertificatesError::File { .. }), "{words}");
    // The files of one node, under the name of another.
    for file in ["pem", "key"] {
        let path = |node| cluster.certificates().join(format!("node-{node}.{file}"));
        fs::copy(path(2), path(3)).unwrap();
    }
    let words = Credentials::read(&cluster.certificates(), third).unwrap_err();
    assert!(
        words.to_string().contains("it is not of node-3."),
        "{words}"
    );
}

#[test]
fn a_certificate_that_names_another_number_of_founders_is_of_nobody() {
    let cluster = first_of_two();
    // Signed by the cluster's own authority, as one might who adds a node by hand.
    let key = fs::read_to_string(cluster.certificates().join("ca.key")).unwrap();
    let mut params = rcgen::CertificateParams::default();
    let name = rcgen::DnType::CommonName;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(name, format!("{}.sprag", cluster.id));
    let authority = rcgen::Issuer::new(params, rcgen::KeyPair::from_pem(&key).unwrap());
    let other = cluster.directory.path().join("other");
    fs::create_dir(&other).unwrap();
    for file in ["cluster", "ca.pem"] {
        fs::copy(cluster.certificates().join(file), other.join(file)).unwrap();
    }
    let names = ["node-2", "founders-3"].map(|name| format!("{name}.{}.sprag", cluster.id));
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(names.to_vec()).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    fs::write(other.join("node-2.pem"), certificate.pem()).unwrap();
    fs::write(other.join("node-2.key"), key.serialize_pem()).unwrap();
    let credentials = Credentials::read(&other, Role::Node(NodeId(2))).unwrap();
    assert_eq!(credentials.founders, 3);
    block_on(async {
        let (_endpoint, connection) = connect(&cluster, &credentials).await;
        let mut stream = connection.open_uni().await.unwrap();
        let hello = framed(&peer_frame(peer_hello(&cluster, 2)));
        stream.write_all(&hello).await.unwrap();
        let (number, words) = closed(&connection).await;
        assert_eq!(number, NOT_WHO_IT_SAYS, "{words}");
        let expected = format!(
            "of nobody in cluster {}, which nodes 1 to 2 found",
            cluster.id
        );
        assert!(words.ends_with(&expected), "{words}");
    });
}

/// The first packet that a node sends to who comes says to come again from where it said it is.
#[test]
fn who_comes_is_told_nothing_before_its_address_is_known_to_be_its_own() {
    let cluster = first_of_two();
    let between = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = between.local_addr().unwrap();
    let node = cluster.address(1);
    // The second byte's upper half of the first packet that comes back tells its type.
    let relay = std::thread::spawn(move || {
        let mut first = None;
        let mut client = None;
        let mut packet = [0; 2_048];
        let outside = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        while first.is_none() {
            let (length, from) = between.recv_from(&mut packet).unwrap();
            client.get_or_insert(from);
            outside.send_to(&packet[..length], node).unwrap();
            let (length, _) = outside.recv_from(&mut packet).unwrap();
            first = Some((packet[0], length));
            between.send_to(&packet[..length], from).unwrap();
        }
        first.unwrap()
    });
    block_on(async {
        let credentials = cluster.credentials(Role::Client);
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let runtime = Arc::new(quinn::TokioRuntime);
        let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, runtime).unwrap();
        let name = Role::Node(NodeId(1)).name(cluster.id);
        let connecting = endpoint
            .connect_with(dialling(&credentials).unwrap(), address, &name)
            .unwrap();
        let waits = tokio::task::spawn_blocking(move || relay.join().unwrap());
        let first = tokio::select! {
            first = waits => first.unwrap(),
            _ = connecting => panic!("it got in without the relay"),
        };
        // A long header of type 3: Retry, which is short and holds no certificate (RFC 9000, 17.2.5).
        assert_eq!(first.0 & 0xf0, 0xf0);
        assert!(first.1 < 300, "{}", first.1);
    });
}

#[test]
fn another_cluster_and_another_version_are_refused_with_both_named() {
    let cluster = first_of_two();
    let other_cluster = |cluster: u64| cluster ^ 1;
    let mut hellos = [peer_hello(&cluster, 2), peer_hello(&cluster, 2)];
    hellos[0].cluster = other_cluster(hellos[0].cluster);
    hellos[1].version += 1;
    let mut client_hellos = [client_hello(&cluster), client_hello(&cluster)];
    client_hellos[0].cluster = other_cluster(client_hellos[0].cluster);
    client_hellos[1].version += 1;
    let expected = [
        (OTHER_CLUSTER, format!("and this is {}", cluster.id)),
        (OTHER_VERSION, "version 2 is spoken, and here 1".to_owned()),
    ];
    block_on(async {
        for at in 0..2 {
            let peer = framed(&peer_frame(hellos[at].clone()));
            let client = framed(&client_frame(client_hellos[at]));
            for (number, words) in [
                say_as_peer(&cluster, Role::Node(NodeId(2)), &peer).await,
                say_as_client(&cluster, Role::Client, &client).await,
            ] {
                assert_eq!(number, expected[at].0, "{words}");
                assert!(words.ends_with(&expected[at].1), "{words}");
            }
        }
    });
}

#[test]
fn a_certificate_that_the_cluster_s_authority_did_not_sign_is_refused() {
    let cluster = Cluster::started(1);
    let other = cluster.directory.path().join("other");
    fs::create_dir(&other).unwrap();
    // It knows the cluster, trusts its authority, and says that it is its client; but says so itself.
    for file in ["cluster", "ca.pem"] {
        fs::copy(cluster.certificates().join(file), other.join(file)).unwrap();
    }
    let names = ["client", "founders-1"].map(|name| format!("{name}.{}.sprag", cluster.id));
    let forged = rcgen::generate_simple_self_signed(names.to_vec()).unwrap();
    fs::write(other.join("client.pem"), forged.cert.pem()).unwrap();
    fs::write(other.join("client.key"), forged.signing_key.serialize_pem()).unwrap();
    block_on(async {
        let credentials = Credentials::read(&other, Role::Client).unwrap();
        let (_endpoint, connection) = connect(&cluster, &credentials).await;
        let error = connection.closed().await;
        let words = error.to_string();
        assert!(
            matches!(error, ConnectionError::ConnectionClosed(_)) && words.contains("crypto"),
            "{words}"
        );
        let short = cluster.client_with(&other, Duration::from_secs(2));
        let outcome = short.put(b"key", b"value").await;
        assert!(outcome.is_err(), "{outcome:?}");
        Steady::new(&cluster).await.get().await;
    });
}

#[test]
fn a_client_of_another_cluster_trusts_no_node_of_this_one() {
    let cluster = Cluster::started(1);
    let other = cluster.directory.path().join("other");
    make(&other, 1).unwrap();
    block_on(async {
        let credentials = Credentials::read(&other, Role::Client).unwrap();
        let (_endpoint, connection) = try_connect(&cluster, &credentials).await;
        let words = connection.unwrap_err().to_string();
        assert!(words.contains("UnknownIssuer"), "{words}");
        let client = cluster.client_with(&other, Duration::from_secs(1));
        let outcome = client.put(b"key", b"value").await;
        assert!(
            matches!(outcome, Err(ClientError::NotDone(_))),
            "{outcome:?}"
        );
    });
}

#[test]
fn damaged_frames_close_the_connection_that_they_came_on_and_no_other() {
    let cluster = first_of_two();
    let hello = framed(&client_frame(client_hello(&cluster)));
    let peer = framed(&peer_frame(peer_hello(&cluster, 2)));
    let after = |hello: &Bytes, bytes: &[u8]| [&hello[..], bytes].concat();
    let no_kind = [0, 0, 0, 0];
    let too_long = [0xff, 0xff, 0xff, 0x7f];
    let not_a_message = [2, 0, 0, 0, 0xff, 0xff];
    block_on(async {
        let mut steady = Steady::new(&cluster).await;
        for (what, bytes) in [
            ("no hello", no_kind.to_vec()),
            ("too long at once", too_long.to_vec()),
            ("too long", after(&hello, &too_long)),
            ("not a message", after(&hello, &not_a_message)),
            ("no kind", after(&hello, &no_kind)),
            ("a second hello", after(&hello, &hello)),
        ] {
            let (number, words) = say_as_client(&cluster, Role::Client, &bytes).await;
            assert_eq!(number, BAD_FRAME, "{what}: {words}");
            assert!(matches!(
                steady.get().await,
                Outcome::Done(_) | Outcome::NotDone(_)
            ));
        }
        let mut another = peer_hello(&cluster, 2);
        another.voter.disk += 1;
        let another = framed(&peer_frame(another));
        let mut crowd = peer_hello(&cluster, 2);
        crowd.bound = (1..=16).map(|node| Voter { node, disk: 1 }).collect();
        let crowd = framed(&peer_frame(crowd));
        for (what, bytes) in [
            ("no hello", no_kind.to_vec()),
            ("too long", after(&peer, &too_long)),
            ("not a message", after(&peer, &not_a_message)),
            ("a hello of another voter", after(&peer, &another)),
            ("more voters than there may be", crowd.to_vec()),
            ("and later", after(&peer, &crowd)),
        ] {
            let role = Role::Node(NodeId(2));
            let (number, words) = say_as_peer(&cluster, role, &bytes).await;
            assert_eq!(number, BAD_FRAME, "{what}: {words}");
            assert!(matches!(
                steady.get().await,
                Outcome::Done(_) | Outcome::NotDone(_)
            ));
        }
    });
}

#[test]
fn a_peer_that_lets_no_stream_be_opened_is_not_waited_for() {
    let cluster = first_of_two();
    block_on(async {
        let credentials = cluster.credentials(Role::Node(NodeId(2)));
        let mut config = dialling(&credentials).unwrap();
        let mut transport = TransportConfig::default();
        transport
            .max_concurrent_uni_streams(0_u32.into())
            .keep_alive_interval(Some(Duration::from_millis(250)));
        config.transport_config(Arc::new(transport));
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let runtime = Arc::new(quinn::TokioRuntime);
        let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, runtime).unwrap();
        let name = Role::Node(NodeId(1)).name(cluster.id);
        let connecting = endpoint.connect_with(config, cluster.address(1), &name);
        let connection = connecting.unwrap().await.unwrap();
        let mut stream = connection.open_uni().await.unwrap();
        let hello = framed(&peer_frame(peer_hello(&cluster, 2)));
        stream.write_all(&hello).await.unwrap();
        closed(&connection).await;
    });
}

#[test]
fn certificates_are_not_written_over_and_their_bounds_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("certificates");
    for nodes in [0, 16] {
        let error = make(&path, nodes).unwrap_err();
        assert!(
            matches!(error, CertificatesError::Nodes { most: 15, .. }),
            "{error}"
        );
    }
    make(&path, 1).unwrap();
    let error = make(&path, 1).unwrap_err();
    assert!(matches!(error, CertificatesError::Exists(_)), "{error}");
    let error = Credentials::read(&path, Role::Node(NodeId(2))).unwrap_err();
    assert!(matches!(error, CertificatesError::File { .. }), "{error}");
    fs::write(path.join("client.pem"), "no certificate").unwrap();
    let error = Credentials::read(&path, Role::Client).unwrap_err();
    assert!(
        matches!(error, CertificatesError::Content { .. }),
        "{error}"
    );
}
