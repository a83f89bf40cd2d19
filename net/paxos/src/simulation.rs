//! What the simulator needs inside: bugs that it can plant, and marks that say which states were reached. Without the
//! feature `simulation` no bug is ever planted and no mark kept: both are nothing at all.
//!
//! Those of the log on disk and of the simulated host are listed here too, since one bug is planted at a time and one set of
//! marks kept for the whole.

/// An enumeration whose variants have names as text.
macro_rules! named {
    ($(#[$of_all:meta])* $all:ident: $($(#[$meta:meta])* $variant:ident = $text:literal),* $(,)?) => {
        $(#[$of_all])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $all { $($(#[$meta])* $variant),* }

        impl $all {
            /// All of them.
            pub const ALL: &[$all] = &[$($all::$variant),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $($all::$variant => $text),* }
            }
        }
    };
}

mod bug;
mod mark;

pub use bug::Bug;
pub use mark::Mark;

#[cfg(feature = "simulation")]
pub use switched::{Bugs, Marks, asked, plant, planted, reach, reached};

#[cfg(feature = "simulation")]
mod switched {
    use std::cell::Cell;

    use super::{Bug, Mark};

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
        static ASKED: Cell<Bugs> = const { Cell::new(Bugs(0)) };
        static REACHED: Cell<Marks> = const { Cell::new(Marks(0)) };
    }

    /// A set of bugs.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Bugs(u128);

    impl Bugs {
        /// Whether `bug` is in it.
        pub fn contains(self, bug: Bug) -> bool {
            self.0 & (1 << bug as u32) != 0
        }
    }

    /// A set of marks.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Marks(u128);

    impl Marks {
        /// Whether `mark` is in it.
        pub fn contains(self, mark: Mark) -> bool {
            self.0 & (1 << mark as u32) != 0
        }
    }

    /// Plants `bug` in all that this thread runs from now on, or none.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    /// Whether `bug` is planted in this thread.
    #[inline]
    pub fn planted(bug: Bug) -> bool {
        ASKED.set(Bugs(ASKED.get().0 | 1 << bug as u32));
        PLANTED.get() == Some(bug)
    }

    /// The bugs of which this thread asked since the last call whether they are planted. One that nobody asked for would
    /// have changed nothing: so a line that is reached often asks last, where the answer makes a difference.
    pub fn asked() -> Bugs {
        ASKED.take()
    }

    /// Notes that this thread reached `mark`.
    #[inline]
    pub fn reach(mark: Mark) {
        REACHED.set(Marks(REACHED.get().0 | 1 << mark as u32));
    }

    /// The marks that this thread reached since the last call.
    pub fn reached() -> Marks {
        REACHED.take()
    }
}

/// No bug is ever planted.
#[cfg(not(feature = "simulation"))]
#[inline(always)]
pub const fn planted(_bug: Bug) -> bool {
    false
}

/// No mark is kept.
#[cfg(not(feature = "simulation"))]
#[inline(always)]
pub const fn reach(_mark: Mark) {}
