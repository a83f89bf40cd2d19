use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sprag_log::{ClusterId, DiskError, Fault, Identity, Operation as Done, RealDisk, RealFile};
use sprag_paxos::{Ballot, Configuration, DiskId, Snapshot};
use tempfile::TempDir;

use super::*;
use crate::session::tests::Told;
use crate::wire::{Operation, OperationKind, Put};

const CLUSTER: ClusterId = ClusterId(7);

const ME: Voter = Voter {
    node: NodeId(1),
    disk: DiskId(5),
};

const OTHER: Voter = Voter {
    node: NodeId(2),
    disk: DiskId(6),
};

const BALLOT: Ballot = Ballot {
    round: 1,
    voter: OTHER,
};

/// Longer than any test takes.
const ELECTION: Duration = Duration::from_mins(10);

/// A directory on a disk that is full when a test says so: then nothing new is made there.
#[derive(Clone)]
struct TightDisk {
    disk: RealDisk,
    is_full: Arc<AtomicBool>,
}

impl Disk for TightDisk {
    type File = RealFile;

    fn create(&self, name: &str, length: u64) -> Result<RealFile, DiskError> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(DiskError::new(Done::Create, name, Fault::Full));
        }
        self.disk.create(name, length)
    }

    fn open(&self, name: &str) -> Result<RealFile, DiskError> {
        self.disk.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.disk.remove(name)
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.disk.list()
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        self.disk.sync_directory()
    }
}

/// A host whose voter decides alone, and one client.
struct Alone {
    host: Host<TightDisk>,
    links: Links,
    disk: TightDisk,
    client: Told,
    log: LogOptions,
    directory: TempDir,
}

impl Alone {
    fn new(segments_max: usize, slots_max: usize) -> Self {
        let log = LogOptions {
            segment_bytes: 1 << 14,
            segments_max,
            slots_max,
        };
        let directory = tempfile::tempdir().unwrap();
        let disk = TightDisk {
            disk: RealDisk::open(&directory.path().join("data")).unwrap(),
            is_full: Arc::default(),
        };
        let identity = Identity {
            cluster: CLUSTER,
            voter: ME,
        };
        Log::create(&disk, identity, &log).unwrap();
        Self {
            host: host(&disk, log),
            links: Links::default(),
            disk,
            client: Told::new(),
            log,
            directory,
        }
    }

    /// One that follows another.
    fn following(slots_max: usize) -> Self {
        let mut follower = Self::new(64, slots_max);
        follower.host = host_among(vec![ME, OTHER], &follower.disk, follower.log);
        follower
    }

    /// The other says that, where there may be room for pieces of snapshots or not; whether something leaves then.
    fn hear(&mut self, message: Message, may_have_room: bool) -> bool {
        self.host.step(OTHER, message, may_have_room);
        self.host.carry_out(&self.links).unwrap();
        self.host.take_has_sent()
    }

    /// One that leads.
    fn leading(segments_max: usize, slots_max: usize) -> Self {
        let mut alone = Self::new(segments_max, slots_max);
        alone.host.age(3 * ELECTION);
        alone.host.tick();
        alone.write();
        assert_eq!(alone.host.executor.replica().leader(), Some(ME));
        alone
    }

    fn start_again(self) -> Self {
        let Self {
            host: dead,
            disk,
            log,
            directory,
            ..
        } = self;
        drop(dead);
        Self {
            host: host(&disk, log),
            links: Links::default(),
            disk,
            client: Told::new(),
            log,
            directory,
        }
    }

    fn fill_disk(&self, is_full: bool) {
        self.disk.is_full.store(is_full, Ordering::Relaxed);
    }

    /// Asks for a put of so many bytes.
    fn ask(&mut self, bytes: usize) {
        let (asker, operation) = (self.client.ask(), put(bytes));
        self.host.request(Asked { asker, operation });
        self.host.carry_out(&self.links).unwrap();
    }

    /// Writes and syncs as long as there is something; gives what it came to.
    fn write(&mut self) -> Wrote<TightDisk> {
        self.host.carry_out(&self.links).unwrap();
        loop {
            match self.host.begin_sync().unwrap() {
                Wrote::All(job) => {
                    self.host.finish_sync(job.run()).unwrap();
                    self.host.carry_out(&self.links).unwrap();
                }
                other => return other,
            }
        }
    }

    /// Asks for a put and writes it; how it was answered.
    fn put(&mut self, bytes: usize) -> Outcome {
        self.ask(bytes);
        self.write();
        self.client.answers().pop().unwrap().1
    }

    /// Takes a snapshot if one is due: whether there was room for it.
    fn save(&mut self) -> Option<bool> {
        let job = self.host.begin_snapshot().unwrap();
        self.host.carry_out(&self.links).unwrap();
        job.map(|job| self.host.finish_snapshot(job.run(), &self.links).unwrap())
    }

    /// Puts until it is told that nothing more is taken; how often that was done, and what it is told then.
    fn fill_log(&mut self) -> (u64, NotDone) {
        let mut done = 0;
        loop {
            match self.put(1) {
                Outcome::Done(_) => done += 1,
                Outcome::NotDone(not_done) => return (done, not_done),
                Outcome::Unknown(_) => panic!("it leads on"),
            }
        }
    }
}

impl<D: Disk> Host<D> {
    /// As if it had started that much earlier.
    pub(crate) fn age(&mut self, by: Duration) {
        self.start -= by;
    }
}

/// A put of so many bytes.
pub(crate) fn put(bytes: usize) -> Bytes {
    let put = Put {
        key: Bytes::from_static(b"key"),
        value: vec![1; bytes].into(),
    };
    let operation = Operation {
        kind: Some(OperationKind::Put(put)),
    };
    operation.encode_to_vec().into()
}

fn host(disk: &TightDisk, log_options: LogOptions) -> Host<TightDisk> {
    host_among(vec![ME], disk, log_options)
}

fn host_among(voters: Vec<Voter>, disk: &TightDisk, log_options: LogOptions) -> Host<TightDisk> {
    let (log, recovered) = Log::open(disk, CLUSTER, ME.node, &log_options).unwrap();
    let trimmed = recovered.state.trimmed;
    let (snapshots, loaded) = Snapshots::open(disk, CLUSTER, trimmed, 1 << 20).unwrap();
    let opened = Opened {
        log,
        recovered: recovered.state,
        snapshots,
        loaded,
    };
    let options = Options {
        me: ME,
        configuration: Configuration::new(voters).unwrap(),
        election_ns: ELECTION.as_nanos() as u64,
        beat_ns: 1_000_000,
        window_slots: 64,
        batch_bytes_max: 1 << 12,
        pending_bytes_max: 1 << 20,
        page_bytes_max: 1 << 12,
        seed: 1,
    };
    Host::new(Instant::now(), 9, options, opened, 1_000, log_options).unwrap()
}

#[test]
fn what_a_full_disk_has_no_room_for_waits_and_is_done_once_there_is() {
    let mut alone = Alone::leading(64, 1_000);
    alone.fill_disk(true);
    let mut done = 0;
    let asked = loop {
        alone.ask(2_000);
        match alone.write() {
            Wrote::Nothing => done += alone.client.answers().len() as u64,
            Wrote::NoRoom => break done + 1,
            _ => panic!("there is room in the log"),
        }
    };
    assert!(done > 0);
    // It isn't answered, nor tried again before the disk may have room, however often that is looked for.
    for _ in 0..3 {
        assert!(!alone.host.wants_sync(false) && alone.host.wants_sync(true));
        assert!(matches!(alone.write(), Wrote::NoRoom));
        assert_eq!(alone.client.answers(), []);
    }
    alone.fill_disk(false);
    assert!(matches!(alone.write(), Wrote::Nothing));
    let answers = alone.client.answers();
    assert!(matches!(answers[..], [(id, Outcome::Done(_))] if id == asked));
    assert!(matches!(alone.put(2_000), Outcome::Done(_)));
}

#[test]
fn a_snapshot_that_found_no_room_is_tried_again_though_nothing_was_applied_since() {
    let mut alone = Alone::leading(64, 40);
    alone.fill_log();
    alone.fill_disk(true);
    for _ in 0..3 {
        assert_eq!(alone.save(), Some(false));
    }
    alone.fill_disk(false);
    assert_eq!(alone.save(), Some(true));
}

#[test]
fn only_a_leader_refuses_for_a_log_that_is_nearly_full() {
    let mut alone = Alone::leading(64, 40);
    let (done, not_done) = alone.fill_log();
    assert!(done > 20);
    assert!(not_done.reason.starts_with("the log is nearly full"));
    assert!(not_done.is_final);
    let mut alone = alone.start_again();
    // The last that was decided isn't known to be by then.
    alone.host.log_options.slots_max = alone.host.in_use().1;
    assert!(alone.host.is_log_nearly_full());
    let Outcome::NotDone(not_done) = alone.put(1) else {
        panic!("it doesn't lead");
    };
    assert_eq!((not_done.reason.as_str(), not_done.is_final), ("", false));
}

#[test]
fn a_log_with_half_of_its_slots_in_use_has_a_snapshot_taken_at_once() {
    let mut alone = Alone::leading(64, 40);
    while alone.host.in_use().1 <= 20 {
        assert_eq!(alone.save(), None);
        assert!(matches!(alone.put(1), Outcome::Done(_)));
    }
    assert_eq!(alone.save(), Some(true));
}

#[test]
fn a_log_that_takes_nothing_more_takes_more_once_one_snapshot_was_made() {
    let mut alone = Alone::leading(64, 40);
    alone.fill_log();
    assert_eq!(alone.save(), Some(true));
    // There is nothing that another could add.
    assert_eq!(alone.save(), None);
    assert!(matches!(alone.put(1), Outcome::Done(_)));
    assert!(alone.fill_log().0 > 20);
}

#[test]
fn a_full_log_is_trimmed_at_once_if_there_is_a_snapshot_of_everything() {
    let mut alone = Alone::leading(2, 1_000);
    // Nothing is refused before it is full.
    alone.host.log_options.segments_max = 64;
    while alone.host.full != Some(Full::Log) {
        alone.ask(2_000);
        assert!(matches!(alone.write(), Wrote::Nothing));
    }
    assert_eq!(alone.save(), Some(true));
    assert_eq!(alone.host.executor.replica().trimmed(), Slot::NONE);
    alone.client.answers();
    assert!(matches!(alone.write(), Wrote::MadeRoom));
    // What trims goes on record in the same batch.
    assert!(matches!(alone.write(), Wrote::Nothing));
    assert_eq!(alone.client.answers().len(), 1);
    assert!(alone.host.store.log().trimmed() > Slot::NONE);
}

#[test]
fn a_snapshot_that_came_and_is_not_needed_any_more_is_not_kept() {
    let mut alone = Alone::leading(64, 1_000);
    let content = Registers::default().save();
    let mut donor = Alone::leading(64, 40);
    donor.fill_log();
    assert_eq!(donor.save(), Some(true));
    let Some(Message::Chunk {
        snapshot, bytes, ..
    }) = donor.host.keeper.chunk(None).unwrap()
    else {
        panic!("all of a small one");
    };
    assert!(bytes.len() > content.len());
    let snapshot: Snapshot = snapshot;
    // Its voter hasn't asked for it.
    let received = alone.host.keeper.receive(snapshot, 0, &bytes);
    assert_eq!(received.unwrap(), Received::Kept);
    assert_eq!(alone.save(), Some(true));
    assert_eq!(alone.host.keeper.take_loaded(snapshot), None);
}

/// So much is decided, says the other.
fn commit(decided: u64) -> Message {
    Message::Commit {
        ballot: BALLOT,
        decided: Slot(decided),
    }
}

#[test]
fn what_the_log_has_no_place_for_is_neither_taken_nor_asked_for() {
    let mut follower = Alone::following(40);
    assert!(follower.hear(commit(100), true));
    for from in 1..=40 {
        let entries = vec![Entry::Noop];
        let from = Slot(from);
        let asks_for_more = follower.hear(Message::Entries { from, entries }, true);
        assert_eq!(asks_for_more, from < Slot(40));
    }
    assert_eq!(follower.host.executor.replica().decided(), Slot(40));
    // There is, once a snapshot holds what there was.
    assert_eq!(follower.save(), Some(true));
    assert_eq!(follower.save(), None);
    follower.host.age(Duration::from_secs(1));
    assert!(follower.hear(commit(100), true));
}

#[test]
fn while_the_disk_has_no_room_nothing_more_is_taken_nor_asked_for() {
    let mut follower = Alone::following(1_000);
    let accept = |slot| Message::Accept {
        ballot: BALLOT,
        slot: Slot(slot),
        entry: Entry::Commands(vec![1; 2_000].into()),
        decided: Slot(slot - 1),
    };
    follower.fill_disk(true);
    let mut slot = 1;
    loop {
        follower.hear(accept(slot), true);
        match follower.write() {
            Wrote::Nothing => slot += 1,
            Wrote::NoRoom => break,
            _ => panic!("there is room in the log"),
        }
    }
    assert!(slot > 1);
    assert!(!follower.hear(accept(slot + 1), true));
    assert!(!follower.hear(commit(slot + 1), true));
    assert_eq!(follower.host.executor.replica().decided(), Slot(slot));
    follower.fill_disk(false);
    assert!(matches!(follower.write(), Wrote::Nothing));
    follower.host.take_has_sent();
    follower.hear(accept(slot + 1), true);
    follower.write();
    assert!(follower.host.take_has_sent());
}

#[test]
fn a_piece_of_a_snapshot_that_finds_no_room_is_told_and_waits_until_there_may_be_some() {
    let mut follower = Alone::following(1_000);
    let snapshot = Snapshot {
        through: Slot(50),
        bytes: 200,
        checksum: 0,
    };
    let piece = || Message::Chunk {
        snapshot,
        offset: 0,
        bytes: [1; 100].into(),
    };
    assert!(follower.hear(commit(100), true));
    follower.fill_disk(true);
    follower.hear(piece(), true);
    assert!(follower.host.take_has_refused());
    assert!(!follower.host.take_has_refused());
    // It isn't tried again before the disk may have room.
    follower.fill_disk(false);
    assert!(!follower.hear(piece(), false));
    // Then the next is asked for.
    assert!(follower.hear(piece(), true));
    assert!(!follower.host.take_has_refused());
}
