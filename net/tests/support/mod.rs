//! A cluster of real processes on this machine, for tests and for the bench.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test uses some of it, as a module of its own"
)]

pub mod load;
pub mod raw;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use sprag_log::ClusterId;
use sprag_net::certificates::{Credentials, Role, make};
use sprag_net::{Client, ClientError, ClientOptions};
use sprag_paxos::NodeId;
use tempfile::TempDir;

/// How long anything may take before a test gives up waiting for it.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The built binary.
pub const BINARY: &str = env!("CARGO_BIN_EXE_sprag-node");

/// Nodes numbered from 1, each a process, with their certificates and data in a directory of their own.
pub struct Cluster {
    pub directory: TempDir,
    pub id: ClusterId,
    pub addresses: Vec<SocketAddr>,
    /// Arguments that each node gets beside those that it needs.
    pub more: Vec<String>,
    processes: Vec<Option<Child>>,
}

impl Cluster {
    /// Certificates and addresses, and no process yet.
    pub fn new(nodes: u16) -> Self {
        Self::with(nodes, &[])
    }

    pub fn with(nodes: u16, more: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let cluster = make(&directory.path().join("certificates"), nodes).unwrap();
        // All are bound before any is let go, so that no two are the same.
        let sockets: Vec<UdpSocket> = (0..nodes).map(|_| socket()).collect();
        let addresses = sockets.iter().map(|socket| socket.local_addr().unwrap());
        Self {
            id: cluster,
            addresses: addresses.collect(),
            more: more.iter().map(|text| (*text).to_owned()).collect(),
            processes: (0..nodes).map(|_| None).collect(),
            directory,
        }
    }

    /// All nodes, started.
    pub fn started(nodes: u16) -> Self {
        let mut cluster = Self::new(nodes);
        cluster.start_all();
        cluster
    }

    pub fn start_all(&mut self) {
        for node in 1..=self.processes.len() as u16 {
            self.start(node);
        }
    }

    /// Starts a node, and waits until it listens.
    pub fn start(&mut self, node: u16) {
        let mut child = die_with_this(&mut self.command(node))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on "), "node {node}: {line}");
        self.processes[usize::from(node) - 1] = Some(child);
    }

    /// How a node is run.
    pub fn command(&self, node: u16) -> Command {
        let mut command = Command::new(BINARY);
        command
            .args(["serve", "--node", &node.to_string()])
            .args(["--listen", &self.address(node).to_string()])
            .arg("--data")
            .arg(self.data(node))
            .arg("--certificates")
            .arg(self.certificates())
            .args(&self.more);
        for other in 1..=self.addresses.len() as u16 {
            if other != node {
                command.args(["--peer", &format!("{other}={}", self.address(other))]);
            }
        }
        command
    }

    /// Has a node that runs make no file longer than that, as on a disk that is full; `None`: of any length.
    pub fn bound_files(&self, node: u16, bytes: Option<u64>) {
        let limit = libc::rlimit {
            rlim_cur: bytes.unwrap_or(libc::RLIM_INFINITY),
            rlim_max: libc::RLIM_INFINITY,
        };
        let pid = self.pid(node).cast_signed();
        // SAFETY: the limit lives as long as the call, and what was before isn't asked for.
        let bound = unsafe {
            libc::prlimit(
                pid,
                libc::RLIMIT_FSIZE,
                &raw const limit,
                std::ptr::null_mut(),
            )
        };
        assert_eq!(bound, 0);
    }

    /// Kills a node, with no chance to do anything.
    pub fn kill(&mut self, node: u16) {
        let mut child = self.take(node);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Tells a node to stop, and waits until it has.
    pub fn terminate(&mut self, node: u16) -> ExitStatus {
        self.tell_to_stop(node);
        self.take(node).wait().unwrap()
    }

    /// Tells a node to stop.
    pub fn tell_to_stop(&self, node: u16) {
        // SAFETY: it only sends a signal, to a child that was not waited for yet.
        let sent = unsafe { libc::kill(self.pid(node).cast_signed(), libc::SIGTERM) };
        assert_eq!(sent, 0);
    }

    fn take(&mut self, node: u16) -> Child {
        self.processes[usize::from(node) - 1].take().unwrap()
    }

    pub fn pid(&self, node: u16) -> u32 {
        self.processes[usize::from(node) - 1].as_ref().unwrap().id()
    }

    pub fn address(&self, node: u16) -> SocketAddr {
        self.addresses[usize::from(node) - 1]
    }

    pub fn data(&self, node: u16) -> PathBuf {
        self.directory.path().join(format!("data-{node}"))
    }

    pub fn certificates(&self) -> PathBuf {
        self.directory.path().join("certificates")
    }

    pub fn credentials(&self, role: Role) -> Credentials {
        Credentials::read(&self.certificates(), role).unwrap()
    }

    /// A client of all nodes.
    pub fn client(&self) -> Client {
        self.client_with(&self.certificates(), PATIENCE)
    }

    /// One with the certificate in that directory.
    pub fn client_with(&self, certificates: &Path, timeout: Duration) -> Client {
        self.maker(certificates, timeout)()
    }

    /// What makes such clients.
    pub fn maker(
        &self,
        certificates: &Path,
        timeout: Duration,
    ) -> impl Fn() -> Client + Send + use<> {
        let nodes = (1..).zip(&self.addresses);
        let nodes: BTreeMap<_, _> = nodes
            .map(|(node, address)| (NodeId(node), address.to_string()))
            .collect();
        let certificates = certificates.to_owned();
        move || {
            let nodes = nodes.clone();
            let credentials = Credentials::read(&certificates, Role::Client).unwrap();
            Client::new(ClientOptions { nodes, timeout }, &credentials).unwrap()
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.processes.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The child is killed when the thread that starts it ends, however that comes.
pub fn die_with_this(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec it calls nothing but prctl and signal, which are safe there.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // What is too long for a file is an error, and no death.
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            Ok(())
        })
    }
}

/// Puts until it is done for sure: whoever leads may just have been killed, or be slow. Gives the version.
pub async fn put(client: &Client, key: &[u8], value: &[u8]) -> u64 {
    loop {
        match client.put(key, value).await {
            Ok(version) => return version,
            Err(ClientError::Unknown(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn socket() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

/// Runs what a test does.
pub fn block_on<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(what)
}
