//! A node: one thread that owns the socket, the voter's steps, what is applied, and all timers; and a thread for the disk.
//!
//! A turn takes in all that has come, carries out what follows, and lets it leave: each stream is written once. Only then
//! is the disk synced, here if nothing else has come meanwhile, else by its thread.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sprag_log::{
    ClusterId, Disk, DiskError, Identity, Log, LogError, LogOptions, OpenError, RealDisk, Snapshots,
};
use sprag_paxos::{
    Configuration, ConfigurationError, DiskId, NodeId, Options, OptionsError, Recovered, Replica,
    Voter,
};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, yield_now};
use tokio::time::sleep_until;

use crate::certificates::{CertificatesError, Credentials, Role, random};
use crate::disk_thread::{DiskThread, Done, Job};
use crate::founding::{Founding, FoundingError, VOTERS};
use crate::host::{Asked, Host, Opened, Stopped};
use crate::inbox::{Input, inbox};
use crate::link::dial;
use crate::links::Links;
use crate::reception::{Shared, receive};
use crate::snapshots::SNAPSHOT_BYTES_MAX;
use crate::transport::{Close, TransportError, dialling, listen};
use crate::wire::{NotDone, Outcome};

/// How many slots a leader has under way.
const WINDOW_SLOTS: u64 = 64;
/// Bytes of commands in a slot.
const BATCH_BYTES_MAX: usize = 256 << 10;
/// Bytes of commands that wait for a slot.
const PENDING_BYTES_MAX: usize = 16 << 20;
/// Bytes of entries in a page: with one more entry they fit into a frame.
const PAGE_BYTES_MAX: usize = 2 << 20;

/// How much is taken in before what follows from it leaves.
const INPUTS_MAX: usize = 512;

/// How long after the disk had no room for another segment it is asked again.
const ROOM_AGAIN: Duration = Duration::from_secs(1);

/// How long a node that stops goes on with what it has taken on.
const STOPPING: Duration = Duration::from_secs(1);

/// How a node is set up.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Which node it is: 1 and up.
    pub node: NodeId,
    /// Where it listens.
    pub listen: SocketAddr,
    /// The other nodes, and where each is: an address, or a name and a port.
    pub peers: BTreeMap<NodeId, String>,
    /// The directory of its log.
    pub data: PathBuf,
    /// The directory of its certificates.
    pub certificates: PathBuf,
    /// How long no leader must have been heard of before another is elected: each node waits that long, and up to twice.
    pub election: Duration,
    /// How often a leader is heard of, at least.
    pub beat: Duration,
    /// The bounds of its log.
    pub log: LogOptions,
    /// After how many slots it takes a snapshot, at most: 1 and up. Two such intervals must have room in the log; while more
    /// than half of its segments are in use, it takes one as often as it can.
    pub snapshot_slots: u64,
}

/// Why a node doesn't start, or stops.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// Its certificates can't be read.
    #[error(transparent)]
    Certificates(#[from] CertificatesError),
    /// It can't listen.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// Its data directory can't be used.
    #[error("data: {0}")]
    Disk(#[from] DiskError),
    /// Its log can't be opened.
    #[error("data: {0}")]
    Open(#[from] OpenError),
    /// Its log has lost what it had accepted.
    #[error(
        "data: the log has lost some of what it had accepted, so this disk has no vote any more; restore it, or empty the directory to give its vote up"
    )]
    Lost,
    /// The cluster can't be founded with it.
    #[error(transparent)]
    Founding(#[from] FoundingError),
    /// The voters make no configuration.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// An option is out of its bounds.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// A node of the cluster has no address.
    #[error(
        "peer: node {0} decides too, and its address isn't given; give it as --peer {0}=HOST:PORT"
    )]
    NoAddress(u16),
    /// A node is its own peer.
    #[error("peer: node {0} is this node itself; leave it out")]
    OwnPeer(u16),
    /// Its disk failed, or is full.
    #[error("the node stops: {0}")]
    Stopped(#[from] Stopped),
    /// The disk's thread couldn't be started, or is gone.
    #[error("the disk's thread: {0}")]
    DiskThread(io::Error),
}

/// What a node is doing.
enum Stage {
    /// It waits for the others to found the cluster, and what its disk gave back waits with it.
    Founding(Option<Box<Opened>>),
    /// It votes.
    Voting(Box<Host>),
}

/// A node that listens.
pub struct Node {
    options: NodeOptions,
    shared: Arc<Shared>,
    inputs: mpsc::Receiver<Input>,
    links: Links,
    disk: RealDisk,
    founding: Founding,
    stage: Stage,
    disk_thread: DiskThread,
    disk_done: mpsc::UnboundedReceiver<Done>,
    /// What the disk's thread has to do.
    is_syncing: bool,
    is_in_upkeep: bool,
    is_saving: bool,
    /// When the disk last had no room for another segment, or for a snapshot.
    no_room_at: Option<Instant>,
    start: Instant,
    tasks: Vec<AbortHandle>,
}

impl Node {
    /// Opens the log, or makes one where there is none, and listens. Must be called inside a runtime: of one thread, where
    /// [`run`](Self::run) is then best what the runtime blocks on.
    ///
    /// # Errors
    /// [`NodeError`], all but the last two.
    pub fn open(options: NodeOptions) -> Result<Self, NodeError> {
        let me = options.node;
        if options.peers.contains_key(&me) {
            return Err(NodeError::OwnPeer(me.0));
        }
        let credentials = Credentials::read(&options.certificates, Role::Node(me))?;
        let cluster = credentials.cluster;
        let disk = RealDisk::open(&options.data)?;
        let opened = open_disk(&disk, cluster, me, &options.log)?;
        let voter = opened.log.voter();
        // What is out of its bounds is refused now, and not when the cluster is founded.
        let alone = voting(&options, voter, Configuration::new(vec![voter])?)?;
        Replica::new(0, alone, Recovered::default())?;
        let founding = Founding::open(&disk, cluster, voter, options.peers.keys().copied())?;
        let endpoint = listen(options.listen, &credentials)?;
        let dialling = dialling(&credentials)?;
        let (sender, inputs) = inbox();
        let shared = Arc::new(Shared {
            endpoint,
            credentials,
            dialling,
            inbox: sender,
        });
        let (done, disk_done) = mpsc::unbounded_channel();
        let disk_thread = DiskThread::start(done).map_err(NodeError::DiskThread)?;
        let mut node = Self {
            options,
            shared,
            inputs,
            links: Links::default(),
            disk,
            founding,
            stage: Stage::Founding(Some(Box::new(opened))),
            disk_thread,
            disk_done,
            is_syncing: false,
            is_in_upkeep: false,
            is_saving: false,
            no_room_at: None,
            start: Instant::now(),
            tasks: Vec::new(),
        };
        // What is known already is enough for a node that has been founded, or is alone.
        node.found()?;
        Ok(node)
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.shared.endpoint.local_addr()
    }

    /// Runs until `stop` is over, or an error ends it.
    ///
    /// # Errors
    /// [`NodeError::Stopped`], [`NodeError::Founding`], [`NodeError::DiskThread`] and what may be wrong with the voters.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Result<(), NodeError> {
        self.start_tasks()?;
        let ended = self.serve(stop).await;
        for task in &self.tasks {
            task.abort();
        }
        Close::Stopping.close_all(&self.shared.endpoint, "the node stops");
        self.shared.endpoint.wait_idle().await;
        ended
    }

    fn start_tasks(&mut self) -> Result<(), NodeError> {
        let reception = tokio::spawn(receive(Arc::clone(&self.shared)));
        self.tasks.push(reception.abort_handle());
        for (node, address) in self.options.peers.range(self.options.node..) {
            let dialler = dial(Arc::clone(&self.shared), *node, address.clone(), random()?);
            self.tasks.push(tokio::spawn(dialler).abort_handle());
        }
        Ok(())
    }

    async fn serve(&mut self, stop: impl Future<Output = ()>) -> Result<(), NodeError> {
        let mut stop = std::pin::pin!(stop);
        let mut stops_at: Option<Instant> = None;
        let mut inputs = Vec::with_capacity(INPUTS_MAX);
        let mut timer = std::pin::pin!(sleep_until(self.start.into()));
        loop {
            let due = [self.deadline(), stops_at].into_iter().flatten().min();
            // A timer that is set too early is not set anew: it costs a turn, now and then.
            if let Some(due) = due
                && (timer.is_elapsed() || tokio::time::Instant::from(due) < timer.deadline())
            {
                timer.as_mut().reset(due.into());
            }
            tokio::select! {
                biased;
                () = &mut stop, if stops_at.is_none() => {
                    stops_at = Some(Instant::now() + STOPPING);
                    if let Stage::Voting(host) = &mut self.stage {
                        host.stop_taking();
                    }
                }
                Some(done) = self.disk_done.recv() => self.take_done(done)?,
                _ = self.inputs.recv_many(&mut inputs, INPUTS_MAX) => {}
                () = &mut timer, if due.is_some() => {}
            }
            self.take_in(&mut inputs)?;
            self.sync(&mut inputs).await?;
            let is_idle = match &self.stage {
                Stage::Voting(host) => host.is_idle(),
                Stage::Founding(_) => true,
            };
            if stops_at.is_some_and(|at| is_idle || at <= Instant::now()) {
                // What was answered last leaves first.
                yield_now().await;
                return Ok(());
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Voting(host) => host.deadline(),
            Stage::Founding(_) => None,
        }
    }

    /// Takes in what has come, and carries out what follows.
    fn take_in(&mut self, inputs: &mut Vec<Input>) -> Result<(), NodeError> {
        for input in inputs.drain(..) {
            match input {
                Input::Joined(link) => self.links.join(link, &self.founding.hello()),
                Input::Left(link) => self.links.leave(&link),
                Input::Heard { voter, bound } => {
                    self.links.is_voter(voter);
                    self.founding.heard(voter, &bound)?;
                    // On its own: it borrows all of the node.
                    if matches!(self.stage, Stage::Founding(_)) {
                        Self::go_on_founding(&mut self.founding, &self.disk, &self.links)?;
                    }
                }
                Input::Message { from, message } => {
                    if let Stage::Voting(host) = &mut self.stage {
                        host.step(from, message);
                        host.carry_out(&self.links)?;
                    }
                }
                Input::Request {
                    session,
                    id,
                    operation,
                } => match &mut self.stage {
                    Stage::Voting(host) => host.request(Asked {
                        session,
                        id,
                        operation,
                    }),
                    Stage::Founding(_) => {
                        let reason = "the cluster is not founded yet".to_owned();
                        let not_done = NotDone {
                            reason,
                            ..NotDone::default()
                        };
                        session.answer(id, Outcome::NotDone(not_done));
                    }
                },
            }
        }
        self.start_voting()?;
        if let Stage::Voting(host) = &mut self.stage {
            host.tick();
            host.carry_out(&self.links)?;
        }
        Ok(())
    }

    /// Has what waits for the disk synced, and what follows from that.
    async fn sync(&mut self, inputs: &mut Vec<Input>) -> Result<(), NodeError> {
        loop {
            let Stage::Voting(host) = &mut self.stage else {
                return Ok(());
            };
            if !host.wants_sync() || self.is_syncing {
                break;
            }
            if host.take_has_sent() {
                // What was sent leaves before the disk holds this thread up.
                yield_now().await;
            }
            let mut has_more = false;
            while inputs.len() < INPUTS_MAX
                && let Ok(input) = self.inputs.try_recv()
            {
                inputs.push(input);
                has_more = true;
            }
            self.take_in(inputs)?;
            let Stage::Voting(host) = &mut self.stage else {
                return Ok(());
            };
            let Some(job) = host.begin_sync().map_err(Stopped::from)? else {
                break;
            };
            if has_more && !self.is_in_upkeep && !self.is_saving {
                self.is_syncing = true;
                self.give(Job::Sync(job))?;
            } else {
                let done = job.run();
                host.finish_sync(done).map_err(Stopped::from)?;
                host.carry_out(&self.links)?;
            }
        }
        self.keep_up()
    }

    /// Has the next segment made, and snapshots, when they are wanted.
    fn keep_up(&mut self) -> Result<(), NodeError> {
        let Stage::Voting(host) = &mut self.stage else {
            return Ok(());
        };
        let has_room = self.no_room_at.is_none_or(|at| at.elapsed() >= ROOM_AGAIN);
        let upkeep = if has_room && !self.is_in_upkeep {
            host.begin_upkeep().map_err(Stopped::from)?
        } else {
            None
        };
        let snapshot = if self.is_saving || !has_room {
            None
        } else {
            host.begin_snapshot()?
        };
        if let Some(job) = upkeep {
            self.is_in_upkeep = true;
            self.give(Job::Upkeep(job))?;
        }
        if let Some(job) = snapshot {
            self.is_saving = true;
            self.give(Job::Snapshot(*job))?;
        }
        Ok(())
    }

    fn give(&self, job: Job) -> Result<(), NodeError> {
        if self.disk_thread.give(job) {
            return Ok(());
        }
        let gone = io::Error::from(io::ErrorKind::BrokenPipe);
        Err(NodeError::DiskThread(gone))
    }

    /// The disk's thread has finished something.
    fn take_done(&mut self, done: Done) -> Result<(), NodeError> {
        let Stage::Voting(host) = &mut self.stage else {
            return Ok(());
        };
        match done {
            Done::Sync(done) => {
                self.is_syncing = false;
                host.finish_sync(done).map_err(Stopped::from)?;
                host.carry_out(&self.links)?;
            }
            Done::Snapshot(done) => {
                self.is_saving = false;
                if !host.finish_snapshot(done)? {
                    self.no_room_at = Some(Instant::now());
                }
                host.carry_out(&self.links)?;
            }
            Done::Upkeep(done) => {
                self.is_in_upkeep = false;
                match host.finish_upkeep(done) {
                    Ok(()) => self.no_room_at = None,
                    // It goes on while the segment lasts.
                    Err(LogError::DiskFull(_)) => self.no_room_at = Some(Instant::now()),
                    Err(error) => return Err(Stopped::from(error).into()),
                }
            }
        }
        Ok(())
    }

    /// Goes as far towards the founding of the cluster as can be.
    fn found(&mut self) -> Result<(), NodeError> {
        Self::go_on_founding(&mut self.founding, &self.disk, &self.links)?;
        self.start_voting()
    }

    fn go_on_founding(
        founding: &mut Founding,
        disk: &RealDisk,
        links: &Links,
    ) -> Result<(), NodeError> {
        if founding.go_on(disk)? {
            links.tell(&founding.hello());
        }
        Ok(())
    }

    /// Becomes a voter, once it is known who votes.
    fn start_voting(&mut self) -> Result<(), NodeError> {
        let Stage::Founding(opened) = &mut self.stage else {
            return Ok(());
        };
        let Some(voters) = self.founding.voters() else {
            return Ok(());
        };
        let Some(opened) = opened.take() else {
            return Ok(());
        };
        let options = &self.options;
        let is_known =
            |voter: &&Voter| voter.node == options.node || options.peers.contains_key(&voter.node);
        if let Some(unknown) = voters.iter().find(|voter| !is_known(voter)) {
            return Err(NodeError::NoAddress(unknown.node.0));
        }
        let configuration = Configuration::new(voters.to_vec())?;
        let voting = voting(options, opened.log.voter(), configuration)?;
        let slots = options.snapshot_slots;
        let host = Host::new(self.start, random()?, voting, *opened, slots, options.log)?;
        self.stage = Stage::Voting(Box::new(host));
        self.keep_up()
    }
}

/// How this node votes.
fn voting(
    options: &NodeOptions,
    me: Voter,
    configuration: Configuration,
) -> Result<Options, NodeError> {
    Ok(Options {
        me,
        configuration,
        election_ns: nanoseconds(options.election),
        beat_ns: nanoseconds(options.beat),
        window_slots: WINDOW_SLOTS,
        batch_bytes_max: BATCH_BYTES_MAX,
        pending_bytes_max: PENDING_BYTES_MAX,
        page_bytes_max: PAGE_BYTES_MAX,
        seed: random()?,
    })
}

/// Opens log and snapshots; where there are none, makes a log, on a disk that nobody knows yet.
fn open_disk(
    disk: &RealDisk,
    cluster: ClusterId,
    node: NodeId,
    options: &LogOptions,
) -> Result<Opened, NodeError> {
    let (log, recovered) = match Log::open(disk, cluster, node, options) {
        // There was one: what is left of it must not go for that.
        Err(OpenError::Missing) if disk.list()?.iter().any(|name| name == VOTERS) => {
            return Err(NodeError::Lost);
        }
        Err(OpenError::Missing) => {
            let voter = Voter {
                node,
                disk: DiskId(random()?),
            };
            Log::create(disk, Identity { cluster, voter }, options)?;
            Log::open(disk, cluster, node, options)?
        }
        opened => opened?,
    };
    if recovered.lost.is_some() {
        return Err(NodeError::Lost);
    }
    let recovered = recovered.state;
    let (snapshots, loaded) =
        Snapshots::open(disk, cluster, recovered.trimmed, SNAPSHOT_BYTES_MAX)?;
    Ok(Opened {
        log,
        recovered,
        snapshots,
        loaded,
    })
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_lost_its_vote_alone_is_left_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(directory.path()).unwrap();
        let open = || {
            let options = LogOptions {
                segment_bytes: 1 << 14,
                ..LogOptions::default()
            };
            open_disk(&disk, ClusterId(7), NodeId(1), &options).map(drop)
        };
        open().unwrap();
        disk.create(VOTERS, 1).unwrap();
        disk.remove("vote").unwrap();
        let left = disk.list().unwrap();
        assert!(matches!(open(), Err(NodeError::Lost)));
        assert_eq!(disk.list().unwrap(), left);
    }
}
