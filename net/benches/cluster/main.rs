//! Three nodes on this machine, each a process with its log on disk, and clients that put as fast as they are answered; and
//! beside them three nodes of etcd, where it is installed, asked for the same in turn.
//!
//! Values have 64 bytes, keys 16; each client has a key of its own, and waits for each answer before it asks again.
//! Clients share at most 16 connections, all with the leader. etcd runs with its defaults and without TLS, which spares it
//! what our connections do.
//!
//! ```text
//! cargo bench -p sprag-net --bench cluster -- --seconds 3 --rounds 5
//! ```

#[path = "../../tests/support/mod.rs"]
mod support;

mod disk;
mod etcd;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Parser;
use hdrhistogram::Histogram;
use sprag_net::Client;
use support::Cluster;

/// Clients share connections beyond this.
const CONNECTIONS_MAX: usize = 16;

const VALUE: [u8; 64] = [7; 64];

/// The longest latency that is told from longer ones, in nanoseconds: a minute.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// Puts from several clients at once: latency and throughput.
#[derive(Parser)]
struct Arguments {
    /// How long each measurement takes
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// How often each is taken; the median is told
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How many clients
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 64])]
    clients: Vec<usize>,
    /// The etcd to compare with; else that on the path
    #[arg(long)]
    etcd: Option<PathBuf>,
    /// What `cargo bench` says
    #[arg(long, hide = true)]
    bench: bool,
}

/// What a measurement gave.
#[derive(Clone, Copy)]
struct Figures {
    p50_us: f64,
    p99_us: f64,
    per_second: f64,
}

/// A cluster that can be put to.
trait Target {
    /// A connection with its leader.
    type Connection: Clone + Send + 'static;

    async fn connect(&self) -> Self::Connection;

    fn put(connection: &Self::Connection, key: &str) -> impl Future<Output = ()> + Send;
}

impl Target for Cluster {
    type Connection = Client;

    async fn connect(&self) -> Client {
        let client = self.client();
        Self::put(&client, "warm").await;
        client
    }

    async fn put(client: &Client, key: &str) {
        client.put(key.as_bytes(), &VALUE).await.unwrap();
    }
}

fn main() {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(1_024)
        .build()
        .unwrap();
    disk::tell(&std::env::temp_dir());
    let ours = Cluster::started(3);
    let etcd = arguments.etcd.clone().or_else(|| find("etcd"));
    let etcd = etcd.map(|binary| runtime.block_on(etcd::Etcd::start(&binary)));
    if etcd.is_none() {
        println!("etcd is not installed: ours alone");
    }
    let mut all: Vec<(usize, Vec<Figures>, Vec<Figures>)> = arguments
        .clients
        .iter()
        .map(|clients| (*clients, Vec::new(), Vec::new()))
        .collect();
    let time = Duration::from_secs(arguments.seconds);
    for _ in 0..arguments.rounds {
        for (clients, of_ours, of_etcd) in &mut all {
            of_ours.push(runtime.block_on(measure(&ours, *clients, time)));
            if let Some(etcd) = &etcd {
                of_etcd.push(runtime.block_on(measure(etcd, *clients, time)));
            }
        }
    }
    println!("clients         p50 us     p99 us    puts / s");
    for (clients, of_ours, of_etcd) in &all {
        let ours = median(of_ours);
        tell(*clients, "ours", ours);
        if !of_etcd.is_empty() {
            let etcd = median(of_etcd);
            tell(*clients, "etcd", etcd);
            println!(
                "        ratio {:8.2} {:10.2} {:11.2}",
                ours.p50_us / etcd.p50_us,
                ours.p99_us / etcd.p99_us,
                ours.per_second / etcd.per_second
            );
        }
    }
}

fn tell(clients: usize, of: &str, figures: Figures) {
    let Figures {
        p50_us,
        p99_us,
        per_second,
    } = figures;
    println!("{clients:7} {of:5} {p50_us:8.0} {p99_us:10.0} {per_second:11.0}");
}

async fn measure<T: Target>(target: &T, clients: usize, time: Duration) -> Figures {
    let mut connections = Vec::new();
    for _ in 0..clients.min(CONNECTIONS_MAX) {
        connections.push(target.connect().await);
    }
    let begin = Instant::now();
    let client = |number: usize| {
        let connection = connections[number % connections.len()].clone();
        tokio::spawn(async move {
            let key = format!("key-{number:012}");
            let mut latencies = histogram();
            while begin.elapsed() < time {
                let asked = Instant::now();
                T::put(&connection, &key).await;
                let took_ns = asked.elapsed().as_nanos() as u64;
                latencies.saturating_record(took_ns);
            }
            latencies
        })
    };
    let tasks: Vec<_> = (0..clients).map(client).collect();
    let mut latencies = histogram();
    for task in tasks {
        latencies.add(task.await.unwrap()).unwrap();
    }
    let took = begin.elapsed();
    Figures {
        p50_us: latencies.value_at_quantile(0.5) as f64 / 1e3,
        p99_us: latencies.value_at_quantile(0.99) as f64 / 1e3,
        per_second: latencies.len() as f64 / took.as_secs_f64(),
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).unwrap()
}

fn median(figures: &[Figures]) -> Figures {
    let of = |which: fn(&Figures) -> f64| {
        let mut sorted: Vec<f64> = figures.iter().map(which).collect();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    Figures {
        p50_us: of(|figures| figures.p50_us),
        p99_us: of(|figures| figures.p99_us),
        per_second: of(|figures| figures.per_second),
    }
}

/// Where a program is on the path.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|path| Path::is_file(path))
}
