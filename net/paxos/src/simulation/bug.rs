//! The bugs that can be planted, each a mistake that somebody made or could make.

macro_rules! bugs {
    ($($(#[$meta:meta])* $name:ident = $text:literal),* $(,)?) => {
        /// A bug that can be planted: one condition or line of the code changed. The simulator must find each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Bug { $($(#[$meta])* $name),* }

        impl Bug {
            /// All of them.
            pub const ALL: &[Bug] = &[$(Bug::$name),*];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Bug::$name => $text),* }
            }
        }
    };
}

bugs! {
    /// A promise that comes twice counts for another voter too.
    PromiseCountedTwice = "promise-counted-twice",
    /// A promise of an earlier ballot of the same proposer counts in this one.
    PromiseOfAnotherBallotCounted = "promise-of-another-ballot-counted",
    /// The first vote told is taken, not that of the highest ballot.
    FirstAnswerTaken = "first-answer-taken",
    /// The proposer's own value is proposed, whatever the promises say.
    OwnValueOverTheBound = "own-value-over-the-bound",
    /// An answer that can't be read any more counts as never.
    UnknownTreatedAsNever = "unknown-treated-as-never",
    /// An acceptance of an earlier ballot of the same proposer counts in this one.
    AcceptedOfAnotherBallotCounted = "accepted-of-another-ballot-counted",
    /// The first acceptance chooses.
    ChosenWithoutAQuorum = "chosen-without-a-quorum",
    /// An Accept below the promise is accepted.
    AcceptsBelowThePromise = "accepts-below-the-promise",
    /// An Accept above the promise leaves the promise where it was.
    AcceptLeavesThePromise = "accept-leaves-the-promise",
    /// A promise leaves before it is durable.
    PromiseBeforeDurable = "promise-before-durable",
    /// An acceptance leaves before it is durable.
    AcceptedBeforeDurable = "accepted-before-durable",
    /// The proposer counts its own acceptance before it is durable.
    OwnVoteBeforeDurable = "own-vote-before-durable",
    /// A ballot is used before it is durable that it was: after a restart it is used again.
    BallotReusedAfterRestart = "ballot-reused-after-restart",
    /// A Commit decides whatever was accepted in the slot, of another ballot too.
    CommitBlessesAStaleVote = "commit-blesses-a-stale-vote",
    /// A ballot's round and its voter are made durable one after the other.
    BallotAndVoterInTwoWrites = "ballot-and-voter-in-two-writes",
    /// A record that can't be read in the middle of the log is taken for its end.
    CorruptMiddleReadAsEnd = "corrupt-middle-read-as-end",
    /// A segment is used again as it is: its checksums don't say of which use they are, its records aren't chained.
    RecycledRecordTaken = "recycled-record-taken",
    /// A sync that failed is tried again.
    SyncRetried = "sync-retried",
    /// Segments are given back before it is durable that they are no longer needed.
    TrimBeforeSync = "trim-before-sync",
    /// What is found at a start is taken for durable: it may be in the system's cache only.
    FoundTakenForDurable = "found-taken-for-durable",
    /// Of two copies of the vote, the first good one is taken, not the newest.
    OlderVoteTaken = "older-vote-taken",
}
