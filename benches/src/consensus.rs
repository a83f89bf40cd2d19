//! Consensus without a network and without a disk: three replicas in one thread, whose messages arrive at once and whose
//! records are durable at once. Beside it a bare queue, through which the same commands are handed over.
//!
//! The replicas keep whatever they decide. So that a log that grows without bound is not what is measured, each of a
//! measurement's logs begins anew, with the leader elected, and takes a few batches.

use crate::{Effort, Result, Side};
use sprag_paxos::{
    Configuration, DiskId, Effect, Executor, Message, NodeId, Options, Recovered, Replica,
    RoleName, Voter, commands,
};
use std::collections::VecDeque;
use std::hint::black_box;

/// Commands to a batch.
pub const BATCH: usize = 64;

/// Batches to a log: few enough that their memory, when the log is dropped, is used again for the next. With more of them
/// the C library gives it back to the system each time, and it is page faults that are measured.
const BATCHES: usize = 16;

/// Logs to a measurement: a millisecond or two, so that most pass before another program gets the core.
const LOGS: usize = 64;

const NODES: usize = 3;
const COMMAND_BYTES: usize = 64;
const PREFIX_BYTES: usize = 4;
const ELECTION_NS: u64 = 100_000_000;

/// A command.
pub type Command = [u8; COMMAND_BYTES];

/// The commands of one batch.
pub fn batch() -> Vec<Command> {
    (0..BATCH)
        .map(|number| [number as u8; COMMAND_BYTES])
        .collect()
}

/// Three replicas, of which the first leads.
#[derive(Clone)]
pub struct Cluster {
    now_ns: u64,
    executors: Vec<Executor>,
    under_way: VecDeque<(Voter, Voter, Message)>,
    /// By replica, how many commands it was told are decided.
    decided: [usize; NODES],
}

impl Cluster {
    /// Elects the first.
    pub fn elected() -> Result<Self> {
        let voters: Vec<Voter> = (0..NODES)
            .map(|node| Voter {
                node: NodeId(node as u16),
                disk: DiskId(1),
            })
            .collect();
        let configuration = Configuration::new(voters.clone())?;
        let executors = voters.iter().map(|&me| {
            let options = Options {
                me,
                configuration: configuration.clone(),
                election_ns: ELECTION_NS,
                beat_ns: ELECTION_NS / 10,
                window_slots: 64,
                batch_bytes_max: BATCH * (PREFIX_BYTES + COMMAND_BYTES),
                pending_bytes_max: 1 << 20,
                page_bytes_max: 1 << 20,
                seed: u64::from(me.node.0),
            };
            let replica = Replica::new(0, options, Recovered::default());
            Executor::new(0, replica.unwrap_or_else(|error| unreachable!("{error}")))
        });
        let mut cluster = Self {
            now_ns: 2 * ELECTION_NS,
            executors: executors.collect(),
            under_way: VecDeque::new(),
            decided: [0; NODES],
        };
        cluster.executors[0].tick(cluster.now_ns);
        cluster.carry_out(0);
        cluster.deliver();
        match cluster.executors[0].replica().role() {
            RoleName::Leader => Ok(cluster),
            role => Err(format!("the first replica is no leader: {role:?}").into()),
        }
    }

    /// Has these commands decided, and all three told of it.
    pub fn commit(&mut self, commands: &[Command]) -> Result<()> {
        for command in commands {
            self.executors[0].propose(self.now_ns, command)?;
        }
        self.carry_out(0);
        self.deliver();
        Ok(())
    }

    /// How many commands all three were told are decided.
    pub fn decided(&self) -> usize {
        self.decided.into_iter().min().unwrap_or_default()
    }

    /// Hands over every message there is.
    fn deliver(&mut self) {
        while let Some((to, from, message)) = self.under_way.pop_front() {
            let node = usize::from(to.node.0);
            self.executors[node].step(self.now_ns, from, message);
            self.carry_out(node);
        }
    }

    fn carry_out(&mut self, node: usize) {
        let executor = &mut self.executors[node];
        let me = executor.replica().me();
        while let Some(effect) = executor.poll() {
            match effect {
                Effect::Persist { ticket, .. } => executor.persisted(self.now_ns, ticket),
                Effect::Send { to, message } => self.under_way.push_back((to, me, message)),
                Effect::Decided { entry, .. } => {
                    self.decided[node] += commands(&entry).map(black_box).count();
                }
                Effect::SteppedDown { .. }
                | Effect::SendChunk { .. }
                | Effect::Receive { .. }
                | Effect::Restore { .. } => {}
            }
        }
    }
}

/// The replicas' side.
pub fn replicas(effort: Effort) -> Result<Side> {
    let elected = Cluster::elected()?;
    let batch = batch();
    let logs = (LOGS / effort.divisor).max(1);
    Ok(Side::new(1, logs * BATCHES * BATCH, move |_| {
        let mut decided = 0;
        for _ in 0..logs {
            let mut cluster = elected.clone();
            for _ in 0..BATCHES {
                cluster.commit(&batch)?;
            }
            decided += cluster.decided() as u64;
        }
        Ok(decided)
    }))
}

/// The queue's side.
pub fn queue(effort: Effort) -> Side {
    let batch = batch();
    let batches = (LOGS / effort.divisor).max(1) * BATCHES;
    Side::new(1, batches * BATCH, move |_| {
        let mut queue = VecDeque::new();
        let mut taken = 0;
        for _ in 0..batches {
            for command in &batch {
                queue.push_back(*black_box(command));
            }
            while let Some(command) = queue.pop_front() {
                black_box::<&Command>(&command);
                taken += 1;
            }
        }
        Ok(taken)
    })
}
