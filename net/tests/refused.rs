//! Who is not let in, and what is not taken: each time one connection is closed, with a reason, and the others go on.

mod support;

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use prost::Message;
use quinn::{Connection, ConnectionError, Endpoint, EndpointConfig, RecvStream, SendStream};
use sprag_net::certificates::{Credentials, Role, make};
use sprag_net::frame::{Frames, append};
use sprag_net::transport::dialling;
use sprag_net::wire::{
    ClientFrame, ClientHello, ClientKind, Get, Operation, OperationKind, Outcome, PeerFrame,
    PeerHello, PeerKind, Request, Response, VERSION, Voter,
};
use sprag_net::{ClientError, certificates::CertificatesError};
use sprag_paxos::NodeId;
use support::{Cluster, PATIENCE, block_on};

const BAD_FRAME: u64 = 1;
const NOT_WHO_IT_SAYS: u64 = 2;
const OTHER_CLUSTER: u64 = 3;
const OTHER_VERSION: u64 = 4;

/// A connection with node 1, by whoever has these credentials.
async fn connect(cluster: &Cluster, credentials: &Credentials) -> (Endpoint, Connection) {
    let (endpoint, connection) = try_connect(cluster, credentials).await;
    (endpoint, connection.unwrap())
}

async fn try_connect(
    cluster: &Cluster,
    credentials: &Credentials,
) -> (Endpoint, Result<Connection, ConnectionError>) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let runtime = Arc::new(quinn::TokioRuntime);
    let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, runtime).unwrap();
    let name = Role::Node(NodeId(1)).name(cluster.id);
    let connecting = endpoint
        .connect_with(dialling(credentials).unwrap(), cluster.address(1), &name)
        .unwrap();
    (endpoint, connecting.await)
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

fn client_hello(cluster: &Cluster) -> ClientHello {
    ClientHello {
        version: VERSION,
        cluster: cluster.id.0,
    }
}

fn client_frame(hello: ClientHello) -> ClientFrame {
    ClientFrame {
        kind: Some(ClientKind::Hello(hello)),
    }
}

fn framed(message: &impl Message) -> Bytes {
    let mut bytes = BytesMut::new();
    append(message, &mut bytes);
    bytes.freeze()
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

/// A client that goes on.
struct Steady {
    _endpoint: Endpoint,
    _connection: Connection,
    send: SendStream,
    receive: RecvStream,
    frames: Frames,
    id: u64,
}

impl Steady {
    async fn new(cluster: &Cluster) -> Self {
        let (endpoint, connection) = connect(cluster, &cluster.credentials(Role::Client)).await;
        let (mut send, receive) = connection.open_bi().await.unwrap();
        let hello = framed(&client_frame(client_hello(cluster)));
        send.write_all(&hello).await.unwrap();
        Self {
            _endpoint: endpoint,
            _connection: connection,
            send,
            receive,
            frames: Frames::new(1 << 20),
            id: 0,
        }
    }

    /// Reads a key over the same connection as before.
    async fn get(&mut self) -> Outcome {
        self.id += 1;
        let get = Get {
            key: Bytes::from_static(b"key"),
        };
        let operation = Operation {
            kind: Some(OperationKind::Get(get)),
        };
        let request = Request {
            id: self.id,
            operation: operation.encode_to_vec().into(),
        };
        let frame = ClientFrame {
            kind: Some(ClientKind::Request(request)),
        };
        self.send.write_all(&framed(&frame)).await.unwrap();
        loop {
            if let Some(response) = self.frames.take::<Response>().unwrap() {
                assert_eq!(response.id, self.id);
                return response.outcome.unwrap();
            }
            let chunk = self.receive.read_chunk(1 << 16, true).await.unwrap();
            self.frames.push(&chunk.unwrap().bytes);
        }
    }
}

#[test]
fn who_is_not_who_it_says_is_refused() {
    let cluster = Cluster::started(1);
    let hello = |node| framed(&peer_frame(peer_hello(&cluster, node)));
    let client = framed(&client_frame(client_hello(&cluster)));
    block_on(async {
        let node = |number| Role::Node(NodeId(number));
        let cases = [
            say_as_peer(&cluster, Role::Client, &hello(1)).await,
            say_as_peer(&cluster, Role::Client, &hello(2)).await,
            say_as_peer(&cluster, node(1), &hello(2)).await,
            say_as_client(&cluster, node(1), &client).await,
        ];
        for (number, words) in cases {
            assert_eq!(number, NOT_WHO_IT_SAYS, "{words}");
            assert!(words.starts_with("the certificate is not of "), "{words}");
        }
        Steady::new(&cluster).await.get().await;
    });
}

#[test]
fn another_cluster_and_another_version_are_refused_with_both_named() {
    let cluster = Cluster::started(1);
    let other_cluster = |cluster: u64| cluster ^ 1;
    let mut hellos = [peer_hello(&cluster, 1), peer_hello(&cluster, 1)];
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
                say_as_peer(&cluster, Role::Node(NodeId(1)), &peer).await,
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
    make(&other, 1).unwrap();
    // It knows the cluster, and trusts its authority; only its own certificate is of the other.
    for file in ["cluster", "ca.pem"] {
        fs::copy(cluster.certificates().join(file), other.join(file)).unwrap();
    }
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
    let cluster = Cluster::started(1);
    let hello = framed(&client_frame(client_hello(&cluster)));
    let peer = framed(&peer_frame(peer_hello(&cluster, 1)));
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
        let mut another = peer_hello(&cluster, 1);
        another.voter.disk += 1;
        let another = framed(&peer_frame(another));
        for (what, bytes) in [
            ("no hello", no_kind.to_vec()),
            ("too long", after(&peer, &too_long)),
            ("not a message", after(&peer, &not_a_message)),
            ("a hello of another voter", after(&peer, &another)),
        ] {
            let role = Role::Node(NodeId(1));
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
