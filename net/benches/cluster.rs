//! Three nodes on this machine, each a process, and clients that put as fast as they are answered.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use support::{Cluster, block_on};

fn main() {
    let cluster = Cluster::started(3);
    let seconds: u64 = std::env::var("SECONDS_EACH")
        .ok()
        .map_or(3, |t| t.parse().unwrap());
    let counts: Vec<usize> = std::env::var("CLIENTS").map_or(vec![1, 16, 64], |t| {
        t.split(',').map(|n| n.parse().unwrap()).collect()
    });
    block_on(async {
        let warm = cluster.client();
        for _ in 0..200 {
            warm.put(b"warm", &[0; 64]).await.unwrap();
        }
        for clients in counts {
            let connections: Vec<_> = (0..clients.min(16)).map(|_| cluster.client()).collect();
            for c in &connections {
                c.put(b"warm", &[0; 64]).await.unwrap();
            }
            let end = Instant::now() + Duration::from_secs(seconds);
            let begin = Instant::now();
            let tasks: Vec<_> = (0..clients)
                .map(|n| {
                    let client = connections[n % connections.len()].clone();
                    tokio::spawn(async move {
                        let mut h =
                            Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
                        let key = format!("key-{n:08}----");
                        while Instant::now() < end {
                            let at = Instant::now();
                            client.put(key.as_bytes(), &[7; 64]).await.unwrap();
                            h.record(at.elapsed().as_nanos() as u64).unwrap();
                        }
                        h
                    })
                })
                .collect();
            let mut all = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
            for t in tasks {
                all.add(t.await.unwrap()).unwrap();
            }
            let took = begin.elapsed().as_secs_f64();
            println!(
                "{clients:4} clients: p50 {:7.0} us  p99 {:7.0} us  {:9.0} /s",
                all.value_at_quantile(0.5) as f64 / 1e3,
                all.value_at_quantile(0.99) as f64 / 1e3,
                all.len() as f64 / took
            );
        }
    });
}
