//! etcd, asked over gRPC: one HTTP/2 connection per client connection, and nothing between it and the bench.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use prost::Message;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::{Target, VALUE};
use crate::support::die_with_this;

const NODES: usize = 3;

/// Three nodes with their defaults.
pub(crate) struct Etcd {
    processes: Vec<Child>,
    leader: SocketAddr,
    _directory: TempDir,
}

/// What is put: the fields of etcd's `PutRequest` that matter.
#[derive(Clone, PartialEq, Message)]
struct Put {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct Empty {}

#[derive(Clone, PartialEq, Message)]
struct Header {
    #[prost(uint64, tag = "2")]
    member: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
    #[prost(uint64, tag = "4")]
    leader: u64,
}

impl Etcd {
    /// Starts them, and waits until they have a leader.
    pub(crate) async fn start(binary: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ports: Vec<TcpListener> = (0..2 * NODES)
            .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap())
            .collect();
        let addresses: Vec<SocketAddr> = ports
            .iter()
            .map(|port| port.local_addr().unwrap())
            .collect();
        drop(ports);
        let (peers, clients) = addresses.split_at(NODES);
        let cluster: Vec<String> = (0..NODES)
            .map(|node| format!("n{node}=http://{}", peers[node]))
            .collect();
        let start = |node: usize| {
            let (peer, client) = (peers[node], clients[node]);
            let mut command = Command::new(binary);
            command
                .args(["--name", &format!("n{node}")])
                .arg("--data-dir")
                .arg(directory.path().join(format!("n{node}")))
                .args(["--listen-peer-urls", &format!("http://{peer}")])
                .args(["--initial-advertise-peer-urls", &format!("http://{peer}")])
                .args(["--listen-client-urls", &format!("http://{client}")])
                .args(["--advertise-client-urls", &format!("http://{client}")])
                .args(["--initial-cluster", &cluster.join(",")])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            die_with_this(&mut command).spawn().unwrap()
        };
        let processes = (0..NODES).map(start).collect();
        let leader = loop {
            let mut leader = None;
            for address in clients {
                if let Some(status) = status(*address).await
                    && status.leader != 0
                    && status
                        .header
                        .is_some_and(|header| header.member == status.leader)
                {
                    leader = Some(*address);
                }
            }
            match leader {
                Some(leader) => break leader,
                None => sleep(Duration::from_millis(50)).await,
            }
        };
        Self {
            processes,
            leader,
            _directory: directory,
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Target for Etcd {
    type Connection = SendRequest<Bytes>;

    async fn connect(&self) -> SendRequest<Bytes> {
        let connection = connect(self.leader).await.unwrap();
        Self::put(&connection, "warm").await;
        connection
    }

    async fn put(connection: &SendRequest<Bytes>, key: &str) {
        let put = Put {
            key: Bytes::copy_from_slice(key.as_bytes()),
            value: Bytes::from_static(&VALUE),
        };
        call(connection, "KV/Put", &put).await.unwrap();
    }
}

async fn status(address: SocketAddr) -> Option<Status> {
    let connection = connect(address).await?;
    let answer = call(&connection, "Maintenance/Status", &Empty {}).await?;
    Status::decode(answer).ok()
}

async fn connect(address: SocketAddr) -> Option<SendRequest<Bytes>> {
    let stream = TcpStream::connect(address).await.ok()?;
    stream.set_nodelay(true).ok()?;
    let (sender, connection) = h2::client::handshake(stream).await.ok()?;
    tokio::spawn(connection);
    Some(sender)
}

/// Calls a method; gives what it answers, if it says that all went well.
async fn call(
    connection: &SendRequest<Bytes>,
    method: &str,
    message: &impl Message,
) -> Option<Bytes> {
    let request = http::Request::post(format!("http://etcd/etcdserverpb.{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .ok()?;
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(message.encoded_len() as u32);
    message.encode_raw(&mut frame);
    let mut connection = connection.clone().ready().await.ok()?;
    let (response, mut body) = connection.send_request(request, false).ok()?;
    body.send_data(frame.freeze(), true).ok()?;
    let mut body = response.await.ok()?.into_body();
    let mut answer = BytesMut::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk.ok()?;
        body.flow_control().release_capacity(chunk.len()).ok()?;
        answer.extend_from_slice(&chunk);
    }
    let trailers = body.trailers().await.ok()??;
    let is_good = trailers.get("grpc-status")? == "0";
    // Behind the five bytes of a gRPC frame.
    (is_good && answer.len() >= 5).then(|| answer.split_off(5).freeze())
}
