//! Clients that put all the time, each to keys of its own, and what they were told; and whether what is found at the end
//! agrees with that.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use sprag_net::{Client, ClientError};
use tokio::task::JoinSet;

use super::{Cluster, PATIENCE, block_on};

/// What a writer was told of one key. It puts 1, 2, 3 and so on.
#[derive(Default)]
struct Told {
    /// The version of each value that was acknowledged.
    acknowledged: Vec<(u64, u64)>,
    /// The values of which nothing is known.
    unknown: Vec<u64>,
    not_done: u64,
}

/// How many puts of each writer were acknowledged.
struct Progress {
    done: Mutex<Vec<u64>>,
    moved: Condvar,
}

/// A load that goes on until it is told to end.
pub struct Load {
    progress: Arc<Progress>,
    ends: tokio::sync::watch::Sender<bool>,
    thread: JoinHandle<BTreeMap<String, Told>>,
}

impl Load {
    /// So many writers, each with a client made by `client`.
    pub fn start(writers: usize, client: impl Fn() -> Client + Send + 'static) -> Self {
        let progress = Arc::new(Progress {
            done: Mutex::new(vec![0; writers]),
            moved: Condvar::new(),
        });
        let (ends, ended) = tokio::sync::watch::channel(false);
        let shared = Arc::clone(&progress);
        let thread = std::thread::spawn(move || {
            block_on(async move {
                let mut tasks = JoinSet::new();
                for writer in 0..writers {
                    let (client, shared, ended) = (client(), Arc::clone(&shared), ended.clone());
                    tasks.spawn(async move {
                        let key = format!("key-{writer}");
                        let mut told = Told::default();
                        let mut value = 0_u64;
                        while !*ended.borrow() {
                            value += 1;
                            match client.put(key.as_bytes(), &value.to_le_bytes()).await {
                                Ok(version) => {
                                    told.acknowledged.push((version, value));
                                    shared.done.lock().unwrap()[writer] += 1;
                                    shared.moved.notify_all();
                                }
                                Err(ClientError::Unknown(_)) => told.unknown.push(value),
                                Err(_) => told.not_done += 1,
                            }
                        }
                        (key, told)
                    });
                }
                tasks.join_all().await.into_iter().collect()
            })
        });
        Self {
            progress,
            ends,
            thread,
        }
    }

    /// Waits until each writer has had so many more puts acknowledged.
    pub fn wait_for(&self, more: u64) {
        let done = self.progress.done.lock().unwrap();
        let goals: Vec<u64> = done.iter().map(|done| done + more).collect();
        let is_short =
            |done: &mut Vec<u64>| done.iter().zip(&goals).any(|(done, goal)| done < goal);
        let moved = &self.progress.moved;
        let (done, timed_out) = moved.wait_timeout_while(done, PATIENCE, is_short).unwrap();
        assert!(
            !timed_out.timed_out(),
            "no progress: {done:?}, and wanted {goals:?}"
        );
    }

    /// Ends it, and checks what was told against what is found then. Gives how many puts were acknowledged.
    pub fn end(self, cluster: &Cluster) -> u64 {
        self.ends.send_replace(true);
        let told = self.thread.join().unwrap();
        let mut acknowledged = 0;
        block_on(async {
            let client = cluster.client();
            for (key, told) in &told {
                let found = client.get(key.as_bytes()).await.unwrap().unwrap();
                let value = u64::from_le_bytes(found.value[..].try_into().unwrap());
                check(key, told, found.version, value);
                acknowledged += told.acknowledged.len() as u64;
            }
        });
        acknowledged
    }
}

fn check(key: &str, told: &Told, version: u64, value: u64) {
    let unknown = told.unknown.len() as u64;
    let mut last = (0, 0);
    for (version, value) in &told.acknowledged {
        assert!(
            *version > last.0,
            "{key}: version {version} after {}",
            last.0
        );
        // What lies between two that were acknowledged can only be of those of which nothing is known.
        assert!(
            version - last.0 <= 1 + unknown,
            "{key}: {version} after {}",
            last.0
        );
        last = (*version, *value);
    }
    if version == last.0 {
        assert_eq!(value, last.1, "{key}: another value than was acknowledged");
    } else {
        assert!(
            version > last.0,
            "{key}: {version} is found, and {} was acknowledged",
            last.0
        );
        assert!(
            version - last.0 <= unknown,
            "{key}: {version} is found after {}",
            last.0
        );
        assert!(
            told.unknown.contains(&value),
            "{key}: {value} was never put"
        );
    }
    let all = told.acknowledged.len() as u64;
    assert!(
        version >= all && version <= all + unknown,
        "{key}: {version} changes"
    );
}
