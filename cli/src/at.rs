//! Which space a subcommand works on: owns the arguments that say so, and the opening.

#![expect(clippy::doc_markdown, reason = "help for a terminal")]

#[cfg(target_os = "linux")]
use sprag::PlaceError;
use sprag::{EngineError, Space, SpaceBuilder};

use crate::error::Error;
#[cfg(target_os = "linux")]
use crate::printable;

/// The space, from the arguments that all subcommands share.
#[derive(Debug, clap::Args)]
pub(crate) struct At {
    /// The space to work on: shm:NAME or shm:/path; if none is named, shm:default
    ///
    /// shm:NAME is shared by the processes of one user on this host, by a file in $SPRAG_DIR or else
    /// /dev/shm/sprag-UID. shm:/path is that very file.
    ///
    /// Not for replay, completions and region ls, which work on no space or on all, nor for region resize
    /// and rm, which name theirs. bench makes a space of its own if none is named, and takes mem: too.
    #[arg(
        long = "at",
        value_name = "URL",
        global = true,
        help_heading = HEADING
    )]
    pub(crate) url: Option<String>,

    /// Let the file's group use the space too
    ///
    /// A new region is then created with mode 0660. One that its group can reach is refused without
    /// this, since whoever can write to it can take any lock. What only looks needs it too, where the
    /// directory is the group's.
    #[arg(long, global = true, help_heading = HEADING)]
    pub(crate) group_shared: bool,
}

/// What the arguments stand under in every subcommand's help.
const HEADING: &str = "Space";

/// The space of who names none.
const DEFAULT_URL: &str = "shm:default";

/// Whether what is wrong is the URL itself, and not what it names.
#[cfg(target_os = "linux")]
pub(crate) fn is_bad_url(error: &sprag::Error) -> bool {
    matches!(
        error,
        sprag::Error::Place(
            PlaceError::UnknownUrl { .. }
                | PlaceError::Unsupported { .. }
                | PlaceError::BadName { .. }
                | PlaceError::BadPath { .. }
        )
    )
}

impl At {
    /// The space's URL.
    pub(crate) fn url(&self) -> &str {
        self.url.as_deref().unwrap_or(DEFAULT_URL)
    }

    /// Why these arguments can't be meant, if so.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.group_shared && self.is_memory() {
            let text =
                "--group-shared has no meaning with --at mem:, which has no file; leave it out";
            return Err(Error::Usage(text.to_owned()));
        }
        Ok(())
    }

    /// Refuses to take a region for shared that is its owner's alone, for those who would create one.
    pub(crate) fn check_shared(&self) -> Result<(), Error> {
        #[cfg(target_os = "linux")]
        if self.group_shared
            && let Ok(info) = sprag::region::probe(self.url(), true)
            && !info.group_shared
        {
            let path = printable::harmless(&info.path.display().to_string());
            return Err(Error::Usage(format!(
                "{path} exists and is its owner's alone, which --group-shared does not change; chmod 660 it, or leave --group-shared out"
            )));
        }
        Ok(())
    }

    /// Refuses both, for a `subcommand` that works on no space.
    pub(crate) fn refuse(&self, subcommand: &str) -> Result<(), Error> {
        self.refuse_url(&format!("{subcommand} works on no space"))?;
        if self.group_shared {
            let text = format!("{subcommand} works on no space; leave --group-shared out");
            return Err(Error::Usage(text));
        }
        Ok(())
    }

    /// Refuses a URL, for the reason given.
    pub(crate) fn refuse_url(&self, why: &str) -> Result<(), Error> {
        match self.url {
            Some(_) => Err(Error::Usage(format!("{why}; leave --at out"))),
            None => Ok(()),
        }
    }

    /// Refuses the space of this command alone, for a `subcommand` that shows or takes what others left.
    pub(crate) fn refuse_memory(&self, subcommand: &str) -> Result<(), Error> {
        if self.is_memory() {
            return Err(Error::Usage(format!(
                "{subcommand} is of no use with --at mem:, which is this command's own and begins empty; use --at shm:NAME"
            )));
        }
        Ok(())
    }

    /// Whether the space is this command's own.
    pub(crate) fn is_memory(&self) -> bool {
        self.url() == "mem:"
    }

    /// Opens the space, creating it if there is none.
    pub(crate) fn open(&self) -> sprag::Result<Space> {
        self.builder().open(self.url())
    }

    /// Opens the space if there is one.
    pub(crate) fn open_existing(&self) -> sprag::Result<Space> {
        self.builder().create(false).open(self.url())
    }

    /// The same for those who only look, or take away, also where no further session fits.
    pub(crate) fn open_to_look(&self) -> sprag::Result<Space> {
        let options = self.builder().create(false).without_session();
        options.open(self.url())
    }

    /// What was `opened`; `None` if nobody has used it yet. A space that is named should be there.
    pub(crate) fn if_used(&self, opened: sprag::Result<Space>) -> Result<Option<Space>, Error> {
        match opened {
            Err(sprag::Error::Engine(EngineError::NotFound { .. })) if self.url.is_none() => {
                Ok(None)
            }
            opened => Ok(Some(opened?)),
        }
    }

    /// The options for opening it.
    pub(crate) fn builder(&self) -> SpaceBuilder {
        Space::builder().group_shared(self.group_shared)
    }
}
