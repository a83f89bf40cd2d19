//! Connections by hand: what no client of this crate would do.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use prost::Message;
use quinn::{Connection, ConnectionError, Endpoint, EndpointConfig, RecvStream, SendStream};
use sprag_net::certificates::{Credentials, Role};
use sprag_net::frame::{Frames, append};
use sprag_net::transport::dialling;
use sprag_net::wire::{
    ClientFrame, ClientHello, ClientKind, Get, Operation, OperationKind, Outcome, Request,
    Response, VERSION,
};
use sprag_paxos::NodeId;

use super::Cluster;

/// A connection with node 1, by whoever has these credentials.
pub async fn connect(cluster: &Cluster, credentials: &Credentials) -> (Endpoint, Connection) {
    let (endpoint, connection) = try_connect(cluster, credentials).await;
    (endpoint, connection.unwrap())
}

pub async fn try_connect(
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

pub fn client_hello(cluster: &Cluster) -> ClientHello {
    ClientHello {
        version: VERSION,
        cluster: cluster.id.0,
    }
}

pub fn client_frame(hello: ClientHello) -> ClientFrame {
    ClientFrame {
        kind: Some(ClientKind::Hello(hello)),
    }
}

pub fn framed(message: &impl Message) -> Bytes {
    let mut bytes = BytesMut::new();
    append(message, &mut bytes);
    bytes.freeze()
}

/// A client that goes on.
pub struct Steady {
    _endpoint: Endpoint,
    pub connection: Connection,
    send: SendStream,
    receive: RecvStream,
    frames: Frames,
    id: u64,
    answered: u64,
}

impl Steady {
    pub async fn new(cluster: &Cluster) -> Self {
        let (endpoint, connection) = connect(cluster, &cluster.credentials(Role::Client)).await;
        let (mut send, receive) = connection.open_bi().await.unwrap();
        let hello = framed(&client_frame(client_hello(cluster)));
        send.write_all(&hello).await.unwrap();
        Self {
            _endpoint: endpoint,
            connection,
            send,
            receive,
            frames: Frames::new(2 << 20),
            id: 0,
            answered: 0,
        }
    }

    /// Reads a key over the same connection as before.
    pub async fn get(&mut self) -> Outcome {
        self.ask().await;
        self.answer().await
    }

    /// Asks for the key, and doesn't wait for the answer.
    pub async fn ask(&mut self) {
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
    }

    /// The next answer: they come in the order in which they were asked for, since all are of one key.
    pub async fn answer(&mut self) -> Outcome {
        self.answered += 1;
        loop {
            if let Some(response) = self.frames.take::<Response>().unwrap() {
                assert_eq!(response.id, self.answered);
                return response.outcome.unwrap();
            }
            let chunk = self.receive.read_chunk(1 << 16, true).await.unwrap();
            self.frames.push(&chunk.unwrap().bytes);
        }
    }
}
