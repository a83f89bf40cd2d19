//! The states of the protocol that the simulator must reach.

macro_rules! marks {
    ($($(#[$meta:meta])* $name:ident = $text:literal),* $(,)?) => {
        /// A state of the protocol worth reaching.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Mark { $($(#[$meta])* $name),* }

        impl Mark {
            /// All of them.
            pub const ALL: &[Mark] = &[$(Mark::$name),*];

            /// Its name in reports.
            pub fn name(self) -> &'static str {
                match self { $(Mark::$name => $text),* }
            }
        }
    };
}

marks! {
    /// A Promise of an earlier ballot of the same proposer came.
    PromiseOfAnotherBallot = "promise of another ballot",
    /// A Promise came when the proposer was in phase two.
    PromiseAfterPhaseOne = "promise after phase one",
    /// A Promise came twice in phase one.
    PromiseTwice = "promise twice",
    /// Nothing could have been chosen.
    FreeChoice = "free choice",
    /// What could have been chosen was the proposer's own value.
    BoundToOwn = "bound to its own value",
    /// What could have been chosen was another's value.
    BoundToAnother = "bound to another's value",
    /// An Accepted of an earlier ballot of the same proposer came.
    AcceptedOfAnotherBallot = "accepted of another ballot",
    /// An Accepted came twice in phase two.
    AcceptedTwice = "accepted twice",
    /// A Prepare was refused.
    PrepareRefused = "prepare refused",
    /// An Accept was refused.
    AcceptRefused = "accept refused",
    /// A Prepare came twice.
    PrepareTwice = "prepare twice",
    /// An Accept came twice.
    AcceptTwice = "accept twice",
    /// An Accept came above the promise.
    AcceptAboveThePromise = "accept above the promise",
    /// A Commit came for a slot accepted in that ballot.
    CommitOfOwnVote = "commit of its own vote",
    /// A Commit came for a slot accepted in another ballot.
    CommitOfAnotherVote = "commit of another vote",
    /// A Commit came for a slot never accepted.
    CommitWithoutVote = "commit without a vote",
    /// A decided value was fetched.
    Fetched = "fetched",
    /// A Prepare came for what is decided.
    PrepareOfDecided = "prepare of a decided slot",
    /// An attempt got no answer in time.
    AttemptExpired = "attempt expired",
    /// A message came from a voter that the configuration doesn't name.
    Stranger = "stranger",
}
