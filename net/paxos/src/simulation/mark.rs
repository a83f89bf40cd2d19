//! The states that the simulator must reach: of the protocol, of the log on disk beneath it, and of its host.

named! {
    /// A state worth reaching. Named as in reports.
    Mark:

    /// A message came from a voter that the configuration doesn't name.
    Stranger = "a message of a stranger",
    /// A Canvass came of a ballot too low.
    CanvassRefused = "canvass refused",
    /// A Canvass came while a leader was heard of.
    CanvassUnwelcome = "canvass unwelcome",
    /// An Aye of an earlier Canvass came.
    AyeOfAnotherBallot = "aye of another ballot",
    /// No leader was heard of, and the own disk stood still.
    CanvassPutOff = "canvass put off for the disk",
    /// A candidacy came to nothing in time.
    CandidacyExpired = "candidacy expired",
    /// A Prepare was refused.
    PrepareRefused = "prepare refused",
    /// A Prepare came twice.
    PrepareTwice = "prepare twice",
    /// A Prepare came twice before the promise was durable.
    PrepareTwiceBeforeDurable = "prepare twice before durable",
    /// A Prepare came while the disk had too much to do.
    PrepareWithDiskBehind = "prepare with the disk behind",
    /// A Prepare came from a candidate that knew less to be decided.
    PrepareBehind = "prepare of a candidate behind",
    /// A Promise of an earlier ballot came.
    PromiseOfAnotherBallot = "promise of another ballot",
    /// A Promise came when its ballot led already.
    PromiseAfterPhaseOne = "promise after phase one",
    /// A page of a Promise came twice, or out of turn.
    PromiseTwice = "promise twice",
    /// A Promise took more than a page.
    PromisePaged = "promise in pages",
    /// A quorum's answers did not say what to propose.
    ChoiceOpen = "choice left open",
    /// A slot that nobody accepted anything in had one after it that somebody did.
    GapFilled = "gap filled",
    /// An entry of an earlier ballot was proposed again.
    EntryRecovered = "entry recovered",
    /// A candidate had to catch up before it could lead.
    CandidateBehind = "candidate behind",
    /// A leader found everything decided.
    ElectedWithNothingToRecover = "elected with nothing to recover",
    /// A leader found slots that weren't known to be decided.
    ElectedWithEntriesToRecover = "elected with entries to recover",
    /// A candidate gave way.
    CandidateSteppedDown = "candidate stepped down",
    /// A candidate was told of a higher promise.
    CandidateRefused = "candidate refused",
    /// A leader was told of a higher promise.
    LeaderRefused = "leader refused",
    /// A leader heard no quorum.
    LeaderUnheard = "leader unheard",
    /// A leader's disk made nothing durable for an election timeout.
    LeaderDiskStands = "leader's disk stands still",
    /// A leader stepped down with nothing under way.
    DeposedIdle = "deposed with nothing under way",
    /// A leader stepped down with slots under way.
    DeposedWithSlotsOpen = "deposed with slots under way",
    /// Commands waited since the window was full.
    WindowFull = "window full",
    /// Commands were refused since too many waited.
    Overloaded = "overloaded",
    /// An Accept was refused.
    AcceptRefused = "accept refused",
    /// An Accept came twice.
    AcceptTwice = "accept twice",
    /// An Accept came above the promise.
    AcceptAboveThePromise = "accept above the promise",
    /// An Accept came for a slot too far after what was known to be decided.
    AcceptTooFarAhead = "accept too far ahead",
    /// An Accept came while the disk had too much to do.
    AcceptWithDiskBehind = "accept with the disk behind",
    /// An Accept came twice before what it was answered was durable.
    AcceptTwiceBeforeDurable = "accept twice before durable",
    /// An Accept came for a decided slot, of an old ballot that proposed something else.
    AcceptOfAnotherThanDecided = "accept of another than the decided",
    /// An Accept was sent again.
    AcceptSentAgain = "accept sent again",
    /// An Accepted of an earlier ballot came.
    AcceptedOfAnotherBallot = "accepted of another ballot",
    /// An Accepted came of a slot decided already.
    AcceptedOfDecided = "accepted of a decided slot",
    /// An Accepted came twice.
    AcceptedTwice = "accepted twice",
    /// A slot was decided while later ones were under way.
    DecidedWithOthersOpen = "decided with others under way",
    /// A Commit came for a slot accepted in that ballot.
    CommitOfOwnVote = "commit of its own vote",
    /// A Commit came for a slot accepted in another ballot.
    CommitOfAnotherVote = "commit of another vote",
    /// A Commit came for a slot never accepted.
    CommitWithoutVote = "commit without a vote",
    /// A decided entry was fetched.
    Fetched = "fetched",
    /// A decided entry was fetched that was known already.
    FetchedTwice = "fetched twice",
    /// What was missed took more than a page.
    FetchedInPages = "fetched in pages",
    /// Something was asked for that wasn't known to be decided.
    FetchOfUndecided = "fetch of the undecided",
    /// What was fetched came when the candidate led already.
    EntriesForALeader = "entries for a leader",
    /// What was decided was forgotten, since a snapshot holds it.
    Trimmed = "trimmed",
    /// Something was asked for that only a snapshot holds.
    FetchOfTrimmed = "fetch of the trimmed",
    /// An Accept came for a slot that only a snapshot holds.
    AcceptOfTrimmed = "accept of the trimmed",
    /// A piece of a snapshot came twice, or out of turn.
    ChunkTwice = "chunk twice",
    /// A piece of a snapshot came when as much was known to be decided.
    ChunkTooLate = "chunk too late",
    /// A snapshot took more than a piece.
    SnapshotInPieces = "snapshot in pieces",
    /// Another snapshot came than the one under way.
    SnapshotBegunAnew = "snapshot begun anew",
    /// A snapshot was installed.
    SnapshotInstalled = "snapshot installed",
    /// A candidate installed a snapshot.
    SnapshotInstalledByCandidate = "snapshot installed by a candidate",
    /// A snapshot was installed over acceptances below it.
    InstalledOverAcceptances = "snapshot installed over acceptances",
    /// A snapshot was installed below acceptances above it.
    InstalledBelowAcceptances = "snapshot installed below acceptances",
    /// A voter started with a snapshot of more than its log knew to be decided.
    StartedAheadOfTheLog = "started ahead of the log",
    /// A node's disk refused something, and the node stopped.
    DiskFailed = "disk failed",
    /// A log had no room for what was to be written, before something was trimmed.
    LogFull = "log full",
    /// A disk had no room for another segment.
    DiskFull = "disk full",
    /// The power went in the middle of something that the disk was asked.
    PowerCutInADiskOperation = "power cut in a disk operation",
    /// A disk refused while the node started.
    StartRefused = "start refused by the disk",
    /// A node started with acceptances that it couldn't read.
    StartedWithUnknowns = "started with unknown acceptances",
    /// A disk had lost acceptances and their slots.
    AcceptancesLost = "acceptances lost",
    /// A disk had lost its vote.
    VoteLost = "vote lost",
    /// A disk came back empty.
    DiskEmpty = "disk empty",
    /// A record was found that was never synced in full.
    TornRecord = "torn record",
    /// A snapshot was found damaged.
    SnapshotDamaged = "snapshot damaged",
    /// The newest snapshot was damaged, and a start began with the one before.
    OlderSnapshotUsed = "older snapshot used",
    /// No snapshot was left that reached up to what was trimmed.
    SnapshotLost = "snapshot lost",
    /// What could not be read any more was taken off the record as decided.
    DecidedTakenBack = "decided taken back",
}
