//! A node: one thread that owns the socket, the voter's steps, what is applied, and all timers; and a thread for the disk.
//!
//! A turn takes in all that has come, carries out what follows, and lets it leave: each stream is written once. Only then
//! is the disk synced, here if nothing else has come meanwhile, else by its thread.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sprag_log::{
    ClusterId, Disk, Identity, Log, LogError, LogOptions, OpenError, RealDisk, Snapshots,
};
use sprag_paxos::{Configuration, DiskId, NodeId, Recovered, Replica, Voter};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep_until, timeout};

use crate::certificates::{Credentials, Role, random};
use crate::disk_thread::{DiskThread, Done, Job};
use crate::founding::{Founding, VOTERS};
use crate::host::{Asked, Host, Opened, Stopped, Wrote};
use crate::inbox::{Input, Inputs, inbox};
use crate::link::dial;
use crate::links::Links;
use crate::options::{NodeError, NodeOptions, voting};
use crate::reception::{Shared, receive};
use crate::room::{For, Room};
use crate::session::AllAnswers;
use crate::snapshots::SNAPSHOT_BYTES_MAX;
use crate::transport::{Close, dialling, listen};
use crate::wire::{NotDone, Outcome};

/// How long a node that stops goes on with what it has taken on.
const STOPPING: Duration = Duration::from_secs(1);

/// And how long it then waits for its clients to take their answers.
const LEAVING: Duration = Duration::from_secs(3);

const DISK_THREAD_ENDED: NodeError = NodeError::Ended("its disk's thread");

/// What a node is doing.
enum Stage {
    /// It waits for the others to found the cluster, and what its disk gave back waits with it.
    Founding(Option<Box<Opened<RealDisk>>>),
    /// It votes.
    Voting(Box<Host<RealDisk>>),
}

/// A node that listens.
pub struct Node {
    options: NodeOptions,
    shared: Arc<Shared>,
    inputs: Inputs,
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
    room: Room,
    start: Instant,
    /// They lead connections here, and never end by themselves.
    tasks: JoinSet<()>,
}

impl Node {
    /// Opens the log, or makes one where there is none, and listens. Must be called inside a runtime: of one thread, where
    /// [`run`](Self::run) is then best what the runtime blocks on.
    ///
    /// # Errors
    /// [`NodeError`], all but the last two.
    pub fn open(options: NodeOptions) -> Result<Self, NodeError> {
        let me = options.node;
        options.check()?;
        let credentials = Credentials::read(&options.certificates, Role::Node(me))?;
        options.check_peers(credentials.founders)?;
        let cluster = credentials.cluster;
        options.check_data()?;
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
            node: me,
            endpoint,
            credentials,
            dialling,
            inbox: sender,
            answers: AllAnswers::default(),
            stops: watch::Sender::new(false),
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
            room: Room::default(),
            start: Instant::now(),
            tasks: JoinSet::new(),
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
        self.tasks.abort_all();
        // Each session ends once its client has its answers. One that takes none isn't waited for any longer.
        self.shared.stops.send_replace(true);
        let _ = timeout(LEAVING, self.shared.stops.closed()).await;
        Close::Stopping.close_all(&self.shared.endpoint, "the node stops");
        self.shared.endpoint.wait_idle().await;
        ended
    }

    fn start_tasks(&mut self) -> Result<(), NodeError> {
        self.tasks.spawn(receive(Arc::clone(&self.shared)));
        for (node, address) in self.options.peers.range(self.options.node..) {
            let dialler = dial(Arc::clone(&self.shared), *node, address.clone(), random()?);
            self.tasks.spawn(dialler);
        }
        Ok(())
    }

    async fn serve(&mut self, stop: impl Future<Output = ()>) -> Result<(), NodeError> {
        let mut stop = std::pin::pin!(stop);
        let mut stops_at: Option<Instant> = None;
        let mut inputs = Vec::new();
        let mut timer = std::pin::pin!(sleep_until(self.start.into()));
        let mut goes_on = false;
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
                done = self.disk_done.recv() => self.take_done(done.ok_or(DISK_THREAD_ENDED)?)?,
                Some(_) = self.tasks.join_next() => {
                    return Err(NodeError::Ended("a task that receives, or dials"));
                }
                () = self.inputs.take(&mut inputs) => {}
                () = &mut timer, if due.is_some() => {}
                // Whoever else wants this thread has had his turn.
                () = yield_now(), if goes_on => {}
            }
            self.take_in(&mut inputs)?;
            goes_on = self.sync(&mut inputs).await?;
            self.keep_up()?;
            let is_idle = match &self.stage {
                Stage::Voting(host) => host.is_idle(),
                Stage::Founding(_) => true,
            };
            if stops_at.is_some_and(|at| is_idle || at <= Instant::now()) {
                return Ok(());
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Voting(host) => {
                let due = [host.deadline(), self.room.due()];
                due.into_iter().flatten().min()
            }
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
                        host.step(from, message, self.room.may_be(For::Snapshot));
                        host.carry_out(&self.links)?;
                        if host.take_has_refused() {
                            self.note_room(For::Snapshot, false);
                        }
                    }
                }
                Input::Request { asker, operation } => match &mut self.stage {
                    Stage::Voting(host) => host.request(Asked { asker, operation }),
                    Stage::Founding(_) => {
                        let awaited = self.founding.awaited();
                        let reason = format!("the cluster is not founded yet: {awaited} must come");
                        let not_done = NotDone {
                            reason,
                            ..NotDone::default()
                        };
                        asker.answer(Outcome::NotDone(not_done));
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

    /// Has what waits for the disk synced, and what follows from that, once; whether more may be synced at once. Then it is the
    /// turn of what has come meanwhile, which may be that the node is to stop.
    async fn sync(&mut self, inputs: &mut Vec<Input>) -> Result<bool, NodeError> {
        let has_room = self.room.may_be(For::Segment);
        let Stage::Voting(host) = &mut self.stage else {
            return Ok(false);
        };
        if self.is_syncing || !host.wants_sync(has_room) {
            return Ok(false);
        }
        if host.take_has_sent() {
            // What was sent leaves before the disk holds this thread up.
            yield_now().await;
        }
        let has_more = self.inputs.take_more(inputs);
        self.take_in(inputs)?;
        let Stage::Voting(host) = &mut self.stage else {
            return Ok(false);
        };
        match host.begin_sync().map_err(Stopped::from)? {
            Wrote::Nothing => Ok(false),
            // What makes it goes on record first.
            Wrote::MadeRoom => {
                host.carry_out(&self.links)?;
                Ok(true)
            }
            Wrote::NoRoom => {
                self.note_room(For::Segment, false);
                Ok(false)
            }
            Wrote::All(job) if has_more && !self.is_in_upkeep && !self.is_saving => {
                self.is_syncing = true;
                self.give(Job::Sync(job))?;
                Ok(false)
            }
            Wrote::All(job) => {
                let done = job.run();
                host.finish_sync(done).map_err(Stopped::from)?;
                host.carry_out(&self.links)?;
                Ok(host.wants_sync(has_room))
            }
        }
    }

    /// Has the next segment made, and snapshots, when they are wanted.
    fn keep_up(&mut self) -> Result<(), NodeError> {
        let Stage::Voting(host) = &mut self.stage else {
            return Ok(());
        };
        let upkeep = if self.room.may_be(For::Segment) && !self.is_in_upkeep {
            host.begin_upkeep().map_err(Stopped::from)?
        } else {
            None
        };
        let snapshot = if self.room.may_be(For::Snapshot) && !self.is_saving {
            host.begin_snapshot()?
        } else {
            None
        };
        host.carry_out(&self.links)?;
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

    /// The disk had no room, or had it. It is said once.
    fn note_room(&mut self, what: For, is_there: bool) {
        if is_there {
            if self.room.is_there(what) {
                eprintln!("sprag-node: the disk has room again");
            }
        } else if self.room.is_missing(what) {
            eprintln!(
                "sprag-node: the disk has no room for more; free some: until then this node waits with what it can't write, and loses nothing"
            );
        }
    }

    fn give(&self, job: Job) -> Result<(), NodeError> {
        if self.disk_thread.give(job) {
            return Ok(());
        }
        Err(DISK_THREAD_ENDED)
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
                let has_room = host.finish_snapshot(done, &self.links)?;
                self.note_room(For::Snapshot, has_room);
            }
            Done::Upkeep(done) => {
                self.is_in_upkeep = false;
                let has_room = match host.finish_upkeep(done) {
                    Ok(()) => true,
                    // It goes on while the segment lasts.
                    Err(LogError::DiskFull(_)) => false,
                    Err(error) => return Err(Stopped::from(error).into()),
                };
                self.note_room(For::Segment, has_room);
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

/// Opens log and snapshots; where there are none, makes a log, on a disk that nobody knows yet.
fn open_disk(
    disk: &RealDisk,
    cluster: ClusterId,
    node: NodeId,
    options: &LogOptions,
) -> Result<Opened<RealDisk>, NodeError> {
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

#[cfg(test)]
mod tests;
