//! The bugs that can be planted, each a mistake that somebody made or could make: in this crate, in the log on disk beneath
//! it, or in the host that carries out its effects.

named! {
    /// A bug that can be planted: a condition of the code changed, or a few lines at most. The simulator must find each. Named
    /// as on the command line.
    Bug:

    /// A promise that comes twice counts for another voter too.
    PromiseCountedTwice = "promise-counted-twice",
    /// A promise of an earlier ballot of the same candidate counts in this one.
    PromiseOfAnotherBallotCounted = "promise-of-another-ballot-counted",
    /// The first vote told of a slot is taken, not that of the highest ballot.
    FirstAnswerTaken = "first-answer-taken",
    /// A new leader fills every slot with a no-op, whatever the promises say.
    NoopOverTheBound = "noop-over-the-bound",
    /// An answer that can't be read any more counts as never.
    UnknownTreatedAsNever = "unknown-treated-as-never",
    /// A vote is taken whatever the ballot that nobody can read any more.
    BallotOfTheUnknownForgotten = "ballot-of-the-unknown-forgotten",
    /// A promise counts when its first page has come.
    FirstPageTakenForAll = "first-page-taken-for-all",
    /// The next page begins one slot too late.
    PageSkipsAnAnswer = "page-skips-an-answer",
    /// A candidate proposes for slots of which a promise says that they are decided.
    CandidateDoesNotCatchUp = "candidate-does-not-catch-up",
    /// A candidate takes what it accepted for decided, and asks only for what comes after.
    CandidateAsksAfterItsVotes = "candidate-asks-after-its-votes",
    /// Of two that canvass, neither gives way: none says aye to the other.
    CanvasserSaysNoAye = "canvasser-says-no-aye",
    /// A new leader puts what clients ask for into the first slots that aren't decided.
    NewProposedBeforeTheRecovered = "new-proposed-before-the-recovered",
    /// Who steps down, promises another's ballot or turns to another leader forgets for whom it voted in the round that it
    /// promised.
    VoteClearedOnStepDown = "vote-cleared-on-step-down",
    /// A promise that comes when its ballot leads already begins the ballot anew.
    DecidedGoesBackOnALatePromise = "decided-goes-back-on-a-late-promise",
    /// An acceptance of an earlier ballot of the same leader counts in this one.
    AcceptedOfAnotherBallotCounted = "accepted-of-another-ballot-counted",
    /// An acceptance that comes twice counts for another voter too.
    AcceptedCountedTwice = "accepted-counted-twice",
    /// To accept a slot counts for those before it too, as in a log without gaps.
    AcceptedCountsForThoseBefore = "accepted-counts-for-those-before",
    /// What a leader sent once it never sends again.
    AcceptNotSentAgain = "accept-not-sent-again",
    /// The first acceptance chooses.
    ChosenWithoutAQuorum = "chosen-without-a-quorum",
    /// Half of the voters are a quorum, where their number is even.
    HalfIsAQuorum = "half-is-a-quorum",
    /// Where a slot is chosen, those before it are taken for chosen too.
    CommitSkipsAHole = "commit-skips-a-hole",
    /// An Accept below the promise is accepted.
    AcceptsBelowThePromise = "accepts-below-the-promise",
    /// An Accept above the promise leaves the promise where it was.
    AcceptLeavesThePromise = "accept-leaves-the-promise",
    /// Two ballots of one round are the same to an acceptor.
    BallotsComparedByRound = "ballots-compared-by-round",
    /// To accept the same entry in a higher ballot is not put on record.
    RevoteNotPersisted = "revote-not-persisted",
    /// A promise leaves before it is durable: nobody waits for the disk, and the vote is never synced.
    PromiseBeforeDurable = "promise-before-durable",
    /// An acceptance leaves before it is durable.
    AcceptedBeforeDurable = "accepted-before-durable",
    /// The leader counts its own acceptance before it is durable.
    OwnVoteBeforeDurable = "own-vote-before-durable",
    /// A candidate doesn't put its ballot on record: after a restart it uses it again.
    BallotReusedAfterRestart = "ballot-reused-after-restart",
    /// A Commit decides whatever was accepted in the slot, of another ballot too.
    CommitBlessesAStaleVote = "commit-blesses-a-stale-vote",
    /// Where something else is accepted, first the ballot is put on record, with what was accepted before; then the whole.
    BallotAndVoteInTwoWrites = "ballot-and-vote-in-two-writes",
    /// A record that can't be read in the middle of the log is taken for its end.
    CorruptMiddleReadAsEnd = "corrupt-middle-read-as-end",
    /// Where what is decided can't be read any more, what was accepted there before is taken for it.
    UnreadTakenForDecided = "unread-taken-for-decided",
    /// A record that was never synced counts as one that may have been told of: a cluster that lost its power all at once
    /// waits for it for ever.
    TornTakenForUnknown = "torn-taken-for-unknown",
    /// A segment is used again as it is: its checksums don't say of which use they are, its records aren't chained.
    RecycledRecordTaken = "recycled-record-taken",
    /// A sync that failed is tried again.
    SyncRetried = "sync-retried",
    /// A write that the disk refused, or took only a part of, counts as done.
    WriteErrorIgnored = "write-error-ignored",
    /// Of what was appended to several segments, only the last of them is synced.
    OnlyTheLastSegmentSynced = "only-the-last-segment-synced",
    /// Segments are given back before it is durable that they are no longer needed.
    TrimBeforeSync = "trim-before-sync",
    /// A snapshot counts as durable before it is durable that there is one of its name.
    SnapshotCountedBeforeItsName = "snapshot-counted-before-its-name",
    /// A snapshot is taken as it is found, or as it came from another voter, whatever its checksum says.
    SnapshotNotChecked = "snapshot-not-checked",
    /// A segment is written to before it is durable that there is one of its name.
    SegmentUsedBeforeItsName = "segment-used-before-its-name",
    /// What is found at a start is taken for durable: it may be in the system's cache only.
    FoundTakenForDurable = "found-taken-for-durable",
    /// Of two copies of the vote, the first good one is taken, not the newest.
    OlderVoteTaken = "older-vote-taken",
    /// What is accepted and not known to be decided is told as decided.
    FetchTellsTheUndecided = "fetch-tells-the-undecided",
    /// What was asked for once is never asked for again.
    FetchNotSentAgain = "fetch-not-sent-again",
    /// Who steps down says of what it proposed that it never did.
    ProposedToldAsNever = "proposed-told-as-never",
    /// What is fetched a second time is decided a second time.
    FetchedTwiceDecidedTwice = "fetched-twice-decided-twice",
    /// What is learned from others is not put on record, though that it is decided is.
    LearnedNotRecorded = "learned-not-recorded",
    /// A snapshot takes the place of a state that is further.
    OlderSnapshotRestored = "older-snapshot-restored",
    /// What was accepted above a snapshot is forgotten when that is installed.
    AcceptedAboveASnapshotDropped = "accepted-above-a-snapshot-dropped",
    /// What was accepted below a snapshot counts for what is decided there when that is installed.
    AcceptedBelowASnapshotKept = "accepted-below-a-snapshot-kept",
    /// A piece is taken for the next whatever snapshot it is of, and nobody looks at the whole.
    ChunkOfAnotherSnapshotTaken = "chunk-of-another-snapshot-taken",
    /// A voter with a newer snapshot than log takes only the log for decided.
    SnapshotAheadOfTheLogForgotten = "snapshot-ahead-of-the-log-forgotten",
    /// Everything that is decided is trimmed, also what comes after the snapshot.
    TrimmedAheadOfTheSnapshot = "trimmed-ahead-of-the-snapshot",
    /// Who asks for what is trimmed is told what comes after, as if that came next.
    FetchSkipsTheTrimmed = "fetch-skips-the-trimmed",
    /// What a snapshot holds already is applied again at a start.
    AppliedAgainAfterASnapshot = "applied-again-after-a-snapshot",
    /// A leader answers from its own state what is only read.
    ReadNotThroughTheLog = "read-not-through-the-log",
    /// What is refused as too much is proposed nevertheless.
    RefusedAndProposed = "refused-and-proposed",
    /// A disk that had no room is never asked again.
    FullDiskNotAskedAgain = "full-disk-not-asked-again",
    /// A node votes whatever disk it has.
    StrangerCounted = "stranger-counted",
    /// A node that lost its disk votes on as if it remembered.
    LostDiskKeepsItsVote = "lost-disk-keeps-its-vote",
}
