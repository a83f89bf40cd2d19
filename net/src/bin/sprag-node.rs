//! A node of a cluster, and the making of a cluster's certificates.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use sprag_log::LogOptions;
use sprag_net::{Node, NodeOptions, certificates};
use sprag_paxos::NodeId;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// How many tasks run before the socket is looked at again: more than there are when many clients come at once, so that what
/// came together is answered together.
const TASKS_BETWEEN_POLLS: u32 = 1_024;

/// A node of a cluster.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Makes the certificates of a new cluster: an authority, and what it signs for each node and for clients
    Certificates {
        /// The directory to make
        directory: PathBuf,
        /// How many nodes: they are numbered from 1
        #[arg(long)]
        nodes: u16,
    },
    /// Runs a node until it is told to stop by SIGTERM or SIGINT
    Serve(Serve),
}

#[derive(Args)]
struct Serve {
    /// Which node this is
    #[arg(long, value_parser = node)]
    node: NodeId,
    /// The address and the UDP port to listen on; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    listen: SocketAddr,
    /// Another node, and where it is; once for each
    #[arg(long = "peer", value_name = "NODE=HOST:PORT", value_parser = peer)]
    peers: Vec<(NodeId, String)>,
    /// The directory of the node's log; made if it doesn't exist
    #[arg(long, value_name = "DIRECTORY")]
    data: PathBuf,
    /// The directory with the node's certificates
    #[arg(long, value_name = "DIRECTORY")]
    certificates: PathBuf,
    /// How long no leader must have been heard of before another is elected
    #[arg(long, default_value_t = 300, value_name = "MILLISECONDS")]
    election_ms: u64,
    /// How often a leader is heard of, at least: at most half of that
    #[arg(long, default_value_t = 50, value_name = "MILLISECONDS")]
    beat_ms: u64,
    /// How many segments of 16 MiB the log may have
    #[arg(long, default_value_t = 64, value_name = "COUNT")]
    segments: usize,
    /// How many slots the log may have, each of which takes some 500 bytes of memory
    #[arg(long, default_value_t = 1 << 20, value_name = "COUNT")]
    slots: usize,
    /// After how many slots a snapshot is taken, at most: the log keeps two such intervals
    #[arg(long, default_value_t = 1 << 14, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    snapshot_slots: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Certificates { directory, nodes } => certificates::make(&directory, nodes)
            .map(|cluster| println!("cluster {cluster}"))
            .map_err(|error| error.to_string()),
        Command::Serve(serve) => run(serve),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sprag-node: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(serve: Serve) -> Result<(), String> {
    let mut peers = BTreeMap::new();
    for (node, address) in serve.peers {
        if peers.insert(node, address).is_some() {
            return Err(format!(
                "peer: node {} is given twice; give each once",
                node.0
            ));
        }
    }
    let options = NodeOptions {
        node: serve.node,
        listen: serve.listen,
        peers,
        data: serve.data,
        certificates: serve.certificates,
        election: Duration::from_millis(serve.election_ms),
        beat: Duration::from_millis(serve.beat_ms),
        log: LogOptions {
            segments_max: serve.segments,
            slots_max: serve.slots,
            ..LogOptions::default()
        },
        snapshot_slots: serve.snapshot_slots,
    };
    let runtime = Builder::new_current_thread()
        .enable_all()
        .event_interval(TASKS_BETWEEN_POLLS)
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let stop = |kind| signal(kind).map_err(|error| error.to_string());
        let mut terminate = stop(SignalKind::terminate())?;
        let mut interrupt = stop(SignalKind::interrupt())?;
        let node = Node::open(options).map_err(|error| error.to_string())?;
        let address = node.address().map_err(|error| error.to_string())?;
        println!("listening on {address}");
        let stop = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        node.run(stop).await.map_err(|error| error.to_string())
    })
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse();
    address.map_err(|_| "must be an IP address, `:` and a port: 10.0.0.1:7700".to_owned())
}

fn node(text: &str) -> Result<NodeId, String> {
    match text.parse() {
        Ok(node @ 1..) => Ok(NodeId(node)),
        _ => Err("must be a number from 1 to 65535".to_owned()),
    }
}

fn peer(text: &str) -> Result<(NodeId, String), String> {
    let Some((number, address)) = text.split_once('=') else {
        return Err("must be a node's number, `=`, and where it is: 2=10.0.0.2:7700".to_owned());
    };
    let has_port = address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !has_port {
        return Err(format!("`{address}` must be a host, `:` and a port"));
    }
    Ok((node(number)?, address.to_owned()))
}
