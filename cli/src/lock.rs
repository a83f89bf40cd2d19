//! `sprag lock`: runs a command under a lock, or takes, releases and renews one for a script. Owns the
//! subcommand's arguments and what they mean. Never decides when a command must end.
//!
//! ```text
//!            ┌── token     no CMD: take and print, release, renew
//!  Args ─────┼── wanted    which lock, and how, or how many permits of which semaphore or key
//!            ├── turn      waits for it, and leaves the queue when it is to end
//!            └── run       keeps it, and has CMD supervised (crate::supervise)
//! ```

mod error;
mod run;
mod token;
mod turn;
mod wanted;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStringExt as _;
use std::process::ExitCode;
use std::time::Duration;

use sprag::{Concurrency, EngineError, Space};

pub(crate) use self::error::Error;
use self::wanted::{Held, Kind, Parent, Subject, Wanted};
use crate::at::{At, is_bad_url};
use crate::shown::Shown;
use crate::supervise::{TTL_MIN, Times};
use crate::{duration, number, printable};

/// The exit codes that are not CMD's own. The page of the command has the same table.
mod code {
    pub(super) use crate::supervise::code::{BUSY, CANNOT_RUN, FAILED, LOST, NOT_FOUND, USAGE};

    /// `--wait`, and the time was over (as timeout has it).
    pub(super) const TIMED_OUT: u8 = 124;
}

/// What a command finds the kind of what it holds in: [`Kind::word`].
const KIND: &str = "SPRAG_KIND";
/// And the lock's name, or the key.
const KEY: &str = "SPRAG_KEY";
/// And the limiter that it is a key of.
const LIMITER: &str = "SPRAG_LIMITER";
/// And the token.
const TOKEN: &str = "SPRAG_TOKEN";

const EXIT_CODES: &str = "\
Exit codes:
  0..255   CMD's own, or 128 + N if signal N ended it
  64       an argument is wrong, or sprag lock would wait for itself
  75       --try: somebody else has the lock (-E sets another code)
  123      the lock was lost while CMD ran, or is not held under TOKEN
  124      --wait: the time was over before the lock's turn came (-E sets another code)
  125      sprag failed: the space cannot be opened, is full or damaged, or NAME has another --of
  126      CMD was found but cannot be run
  127      CMD was not found

Examples:
  # Wait for the turn, then run
  sprag lock nightly -- pg_dump shop
  # Run now or not at all
  sprag lock --try nightly -- pg_dump shop
  # Hold a lock over several commands of a script
  token=$(sprag lock --acquire --wait 5s --ttl 10m deploy) || exit
  sprag lock --release \"$token\" deploy";

/// Run a command under a lock, one at a time, or so many at a time
///
/// Waits for the lock NAME in the space that --at names, runs CMD, and releases the lock when CMD ends.
/// No shell is involved. CMD finds the lock's name in SPRAG_KEY, its fencing token in SPRAG_TOKEN, and in SPRAG_KIND
/// what it is of: lock, semaphore, key, partition or table.
///
/// CMD runs in a process group of its own; signals are passed on to it, and a terminal is handed to it.
/// The lease is renewed while CMD runs. If the lock is lost all the same, CMD is sent SIGTERM, and then
/// SIGKILL before the lease ends. If sprag is killed, CMD is killed with it. A sprag that is stopped can
/// do neither: where a late write would do harm, let the resource check SPRAG_TOKEN.
///
/// Several names are several locks, had all at once or not at all, in whatever order others name them. SPRAG_TOKEN
/// has the token of each then, with a space between, and SPRAG_KEY the first name.
///
/// With --shared several hold the lock at once, and whoever wants it without waits for all of them. With --of
/// NAME is a semaphore, which so many hold at once; with --key as well it is a limiter, and so many hold each KEY of
/// it at once. CMD finds KEY in SPRAG_KEY then, and NAME in SPRAG_LIMITER. With --partition it is the lock over all
/// names in NAME's partition, a part of the space, and with --table the lock over all names: while one is held, none
/// of the locks beneath is. All are served in the order in which they came.
///
/// Without CMD, --acquire, --release and --renew let a script hold a lock between commands.
#[derive(Debug, clap::Args)]
#[expect(
    clippy::doc_markdown,
    reason = "users read it as help, where backticks stand for nothing"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[command(
    override_usage = "sprag lock [OPTIONS] NAME... -- CMD [ARGS]...\n       \
        sprag lock --shared [OPTIONS] NAME -- CMD [ARGS]...\n       \
        sprag lock --of PERMITS [--permits N] [OPTIONS] NAME -- CMD [ARGS]...\n       \
        sprag lock --key KEY [--of PERMITS [--update]] [--permits N] [OPTIONS] NAME -- CMD [ARGS]...\n       \
        sprag lock --partition [OPTIONS] NAME -- CMD [ARGS]...\n       \
        sprag lock --table [OPTIONS] -- CMD [ARGS]...\n       \
        sprag lock --acquire [OPTIONS] NAME\n       \
        sprag lock --acquire --table [OPTIONS]\n       \
        sprag lock --release TOKEN [--of PERMITS | --key KEY | --partition] NAME\n       \
        sprag lock --renew TOKEN [--of PERMITS | --key KEY | --partition] [--ttl DURATION] NAME\n       \
        sprag lock --release TOKEN --table\n       \
        sprag lock --renew TOKEN --table [--ttl DURATION]",
    after_help = EXIT_CODES,
    group = clap::ArgGroup::new("mode").args(["acquire", "release", "renew"]),
    group = clap::ArgGroup::new("counted").args(["of", "key"]).multiple(true)
)]
pub(crate) struct Args {
    /// Hold the lock beside others who share it so, instead of alone
    #[arg(short, long, conflicts_with_all = ["of", "release", "renew"])]
    shared: bool,

    /// Take permits of the semaphore NAME, which has this many in all, instead of a lock
    ///
    /// 1 to 16777215, the same for all who use the semaphore. Say it for --release and --renew as well.
    #[arg(long, value_name = "PERMITS", value_parser = number::within::<u32>(1..=16_777_215), allow_hyphen_values = true)]
    of: Option<u32>,

    /// Take permits of this key of the limiter NAME, which allows as many of each key as --of says
    ///
    /// 1 to 1,024 bytes. Without --of the limiter must be there, and is taken as it is. Say the key for
    /// --release and --renew as well; --of is not needed there.
    #[arg(long, value_name = "KEY", allow_hyphen_values = true, conflicts_with_all = ["shared", "partition", "table"])]
    key: Option<OsString>,

    /// Change how many of each key the limiter allows to what --of says, if it allows another number
    ///
    /// Without this another number is an error. Who holds some keeps them.
    #[arg(long, requires = "key", requires = "of", conflicts_with_all = ["release", "renew"])]
    update: bool,

    /// How many permits to take at once, instead of 1; at most as many as --of says, or the limiter allows
    #[arg(short, long, value_name = "N", value_parser = number::within::<u32>(1..=16_777_215), allow_hyphen_values = true, requires = "counted", conflicts_with_all = ["release", "renew"])]
    permits: Option<u32>,

    /// Lock all names in NAME's partition, instead of NAME alone
    ///
    /// Say it for --release and --renew as well.
    #[arg(long, conflicts_with_all = ["of", "shared"])]
    partition: bool,

    /// Lock all names of the space; no NAME is given then
    ///
    /// Say it for --release and --renew as well.
    #[arg(long, conflicts_with_all = ["of", "shared", "partition", "names"])]
    table: bool,

    /// Do not wait: if the lock is not free, give up at once
    #[arg(short = 'n', long = "try", conflicts_with_all = ["wait", "release", "renew"])]
    is_try: bool,

    /// Wait for at most this long, instead of for ever
    ///
    /// 500ms, 5s, 2m, 1h30m, 7d, or a plain number of seconds; 1ms to 366d.
    #[arg(short, long, value_name = "DURATION", value_parser = duration::wait, allow_hyphen_values = true, conflicts_with_all = ["release", "renew"])]
    wait: Option<Duration>,

    /// How long the lock stays held when nobody renews it
    ///
    /// While CMD runs it is renewed well before; 100ms to 366d then. For --acquire and --renew, 1ms to 366d
    /// from now.
    #[arg(long, value_name = "DURATION", value_parser = duration::ttl, allow_hyphen_values = true, default_value = "30s", conflicts_with = "release")]
    ttl: Duration,

    /// How long CMD has to end after SIGTERM when the lock was taken away by force
    ///
    /// Somebody else may have the lock then, so not for longer than need be. The end of the lease is
    /// a bound to this as well.
    #[arg(short, long, value_name = "DURATION", value_parser = duration::kill_after, allow_hyphen_values = true, default_value = "1s", conflicts_with = "mode")]
    kill_after: Duration,

    /// The exit code when the lock was not to be had, instead of 75 and 124
    #[arg(short = 'E', long, value_name = "N", value_parser = number::within::<u8>(0..=255), allow_hyphen_values = true, conflicts_with_all = ["release", "renew"])]
    conflict_exit_code: Option<u8>,

    /// Take the lock, print its token, and leave it held until it is released or --ttl is over
    #[arg(long)]
    acquire: bool,

    /// Release the lock that is held under this token
    #[arg(long, value_name = "TOKEN", value_parser = token::parse, allow_hyphen_values = true)]
    release: Option<u64>,

    /// Let the lease of the lock that is held under this token start anew
    #[arg(long, value_name = "TOKEN", value_parser = token::parse, allow_hyphen_values = true)]
    renew: Option<u64>,

    /// Print what was done as one JSON object; for --acquire, --release and --renew
    #[arg(long, requires = "mode")]
    json: bool,

    /// The lock's name, 1 to 1,024 bytes; one that begins with - goes behind a -- of its own
    ///
    /// Several names are several locks, up to 64, had all at once or not at all while CMD runs.
    #[arg(value_name = "NAME")]
    names: Vec<OsString>,

    /// The command and its arguments
    #[arg(last = true, value_name = "CMD", value_hint = clap::ValueHint::CommandWithArguments)]
    rest: Vec<OsString>,
}

/// The exit code of arguments that `clap` refuses, for the subcommands that run a command; `None` for other
/// subcommands.
pub(crate) fn usage_code(args: impl IntoIterator<Item = OsString>) -> Option<i32> {
    let mut args = args.into_iter().skip(1);
    loop {
        let arg = args.next()?;
        if arg == "--at" {
            args.next();
        } else if !printable::bytes(&arg).starts_with(b"-") {
            return (arg == "lock" || arg == "once").then_some(code::USAGE.into());
        }
    }
}

/// What is asked for, the arguments taken apart.
enum Task<'a> {
    Run(&'a [OsString]),
    Acquire,
    Release(u64),
    Renew(u64),
}

impl Task<'_> {
    fn option(&self) -> Option<&'static str> {
        match self {
            Self::Run(_) => None,
            Self::Acquire => Some("--acquire"),
            Self::Release(_) => Some("--release"),
            Self::Renew(_) => Some("--renew"),
        }
    }
}

impl Args {
    /// The locks' names and what to do with them.
    fn task(&self) -> Result<(&[OsString], Task<'_>), Error> {
        // The first is a name, whatever it is.
        let separator = self.rest.iter().skip(1).position(|word| word == "--");
        let (names, command): (&[OsString], &[OsString]) = match (&*self.names, &*self.rest) {
            ([], rest) if self.table => (&[], rest),
            ([], []) => return Err(Error::NoName),
            ([], rest) => match separator {
                // sprag lock -- NAME -- CMD
                Some(more) => (&rest[..=more], &rest[more + 2..]),
                _ if rest.len() == 1 => (rest, &[]),
                _ => {
                    return Err(Error::NoCommand {
                        name: Shown::of(&rest[0]),
                    });
                }
            },
            (names, rest) => (names, rest),
        };
        let task = match (self.acquire, self.release, self.renew) {
            (true, ..) => Task::Acquire,
            (_, Some(token), _) => Task::Release(token),
            (_, _, Some(token)) => Task::Renew(token),
            _ => Task::Run(command),
        };
        match (task.option(), command.first()) {
            (Some(mode), Some(command)) => Err(Error::Command {
                mode,
                command: Shown::of(command),
            }),
            (None, None) if self.table => Err(Error::NoTableCommand),
            (None, None) if names.len() > 1 => Err(Error::NoCommandOfSeveral {
                word: Shown::of(&names[1]),
            }),
            (None, None) => Err(Error::NoCommand {
                name: Shown::of(names.first().map_or(OsStr::new(""), |name| name)),
            }),
            (mode, _) if names.len() > 1 => match mode {
                None if self.kind() == Kind::Lock && !self.shared && self.ttl >= TTL_MIN => {
                    Ok((names, task))
                }
                None if self.ttl < TTL_MIN => Err(Error::ShortTtl { ttl: self.ttl }),
                _ => Err(Error::Usage(
                    "several names are locks that are had alone, while CMD runs: leave out --shared, --of, \
                     --partition and --acquire, or give one name"
                        .to_owned(),
                )),
            },
            (None, Some(_)) if self.ttl < TTL_MIN => Err(Error::ShortTtl { ttl: self.ttl }),
            _ => Ok((names, task)),
        }
    }

    fn kind(&self) -> Kind {
        match self.of {
            Some(_) if self.key.is_none() => Kind::Semaphore,
            _ if self.key.is_some() => Kind::Key,
            _ if self.table => Kind::Table,
            _ if self.partition => Kind::Partition,
            _ => Kind::Lock,
        }
    }

    /// How errors name what is held under a token.
    fn subject(&self, name: &[u8]) -> Subject {
        match &self.key {
            Some(key) => Subject::of_key(printable::bytes(key), name),
            None => Subject::new(self.kind(), name),
        }
    }

    /// How many permits are wanted, of so many that there are, if that is said.
    fn permits(&self) -> Result<u32, Error> {
        let permits = self.permits.unwrap_or(1);
        match self.of {
            Some(of) if permits > of => Err(Error::Usage(format!(
                "--permits is {permits}; it must be 1 to {of}, as many as --of says that there are"
            ))),
            _ => Ok(permits),
        }
    }

    /// The limiter `name`, as it is if nobody says how it should be.
    fn limiter<'s>(&self, space: &'s Space, name: &[u8]) -> Result<Concurrency<'s>, Error> {
        let token = self.release.or(self.renew);
        let limiter = match self.of.filter(|_| token.is_none()) {
            Some(of) if self.update => space.concurrency_updated(name, of).map(Some),
            Some(of) => space.concurrency(name, of).map(Some),
            None => space.find_concurrency(name),
        };
        let limiter = limiter.map_err(|error| match error {
            sprag::Error::Engine(EngineError::NameLength { .. }) => Error::Argument(error),
            error => Error::Space(error),
        })?;
        limiter.ok_or_else(|| match token {
            Some(token) => Error::NotHeld {
                subject: self.subject(name),
                token,
            },
            None => Error::Usage(format!(
                "there is no limiter {}; say with --of how many of each key it allows",
                Shown::of_bytes(name)
            )),
        })
    }

    /// What NAME is, and how it is wanted.
    fn wanted<'s>(&self, space: &'s Space, names: &[OsString]) -> Result<Wanted<'s>, Error> {
        let name = names.first().map_or(&[][..], |name| printable::bytes(name));
        if let Some(key) = &self.key {
            let permits = self.permits()?;
            let key = self.limiter(space, name)?.key(printable::bytes(key));
            let wanted =
                key.and_then(|key| Ok(Wanted::Key(name.to_vec(), key.ttl(self.ttl)?, permits)));
            return wanted.map_err(Error::Argument);
        }
        let wanted = match self.of {
            None if names.len() > 1 => {
                let names = names.iter().map(|name| printable::bytes(name));
                space.locks(names).map(Wanted::Several)
            }
            Some(of) => {
                let permits = self.permits()?;
                let semaphore = space.semaphore(name, of);
                semaphore.map(|semaphore| Wanted::Permits(semaphore, permits))
            }
            None if self.shared => space.lock(name).map(Wanted::Shared),
            None if self.table => space.table().map(Wanted::Table),
            None if self.partition => space
                .lock(name)
                .and_then(|_| space.partition(space.partition_of(name)))
                .map(|lock| Wanted::Partition(lock, name.to_vec())),
            None => space.lock(name).map(Wanted::Alone),
        };
        wanted
            .and_then(|wanted| wanted.ttl(self.ttl))
            .map_err(Error::Argument)
    }

    /// Takes what is wanted, waiting as the arguments say.
    fn take<'s>(&self, space: &Space, wanted: &Wanted<'s>) -> Result<Held<'s>, Error> {
        if let Some(hold) = wanted.try_acquire().map_err(Error::Space)? {
            return Ok(hold);
        }
        let subject = wanted.subject();
        if self.is_try {
            let code = self.conflict_exit_code.unwrap_or(code::BUSY);
            return Err(Error::Busy { subject, code });
        }
        if let Some(token) = token_of_parent(space, wanted)? {
            return Err(Error::Nested { subject, token });
        }
        loop {
            if let Some(hold) = turn::wait(wanted, self.wait)? {
                return Ok(hold);
            }
            if let Some(wait) = self.wait {
                let code = self.conflict_exit_code.unwrap_or(code::TIMED_OUT);
                return Err(Error::TimedOut {
                    subject,
                    wait,
                    code,
                });
            }
        }
    }
}

/// Does what `args` ask for in the space `at`. `out` is for the token; a command that is run has
/// the process's own standard output.
pub(crate) fn run(args: &Args, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    at.check()
        .and_then(|()| at.refuse_memory("lock"))
        .and_then(|()| at.check_shared())
        .map_err(|error| Error::Usage(error.to_string()))?;
    let (names, task) = args.task()?;
    let name = names.first().map_or(OsStr::new(""), |name| name);
    let space = match task {
        // Where there is no region, nothing is held.
        Task::Release(token) | Task::Renew(token) => {
            at.open_to_look().map_err(|error| match error {
                sprag::Error::Engine(EngineError::NotFound { .. }) => Error::NotHeld {
                    subject: args.subject(printable::bytes(name)),
                    token,
                },
                error => of_opening(error),
            })
        }
        Task::Run(_) | Task::Acquire => at.open().map_err(of_opening),
    }?;
    let wanted = args.wanted(&space, names)?;
    match task {
        Task::Run(command) => {
            let times = Times {
                ttl: args.ttl,
                kill_after: args.kill_after,
            };
            let hold = args.take(&space, &wanted)?;
            let mut of = vec![(KIND, wanted.kind().word().into())];
            match &args.key {
                Some(key) => of.extend([(KEY, key.clone()), (LIMITER, name.to_owned())]),
                None => of.push((KEY, name.to_owned())),
            }
            run::run(hold, wanted.subject(), of, command, times)
        }
        Task::Acquire => token::acquire(args.take(&space, &wanted)?, &wanted, args, out),
        Task::Release(token) => token::release(&wanted, token, args, out),
        Task::Renew(token) => token::renew(&wanted, token, args, out),
    }
}

/// The token under which a command that this one is part of holds what is wanted, so that it would wait for
/// itself: by what its `sprag lock` put into the environment and by the space's own word, for the environment
/// may be an old one, or another space's.
fn token_of_parent(space: &Space, wanted: &Wanted<'_>) -> Result<Option<u64>, Error> {
    let bytes = |variable| std::env::var_os(variable).map_or(Vec::new(), OsString::into_vec);
    // Of several locks, the first is the one that is named.
    let token = std::env::var(TOKEN).ok().and_then(|tokens| {
        let first = tokens.split(' ').next()?;
        first.parse().ok()
    });
    let (Some(token), Ok(kind)) = (token, std::env::var(KIND)) else {
        return Ok(None);
    };
    let parent = Parent {
        kind,
        name: bytes(KEY),
        limiter: bytes(LIMITER),
        token,
    };
    let waits_for_itself = wanted.waits_for(space, &parent).map_err(Error::Space)?;
    Ok(waits_for_itself.then_some(token))
}

/// Tells a URL that means nothing from a space that can't be opened.
fn of_opening(error: sprag::Error) -> Error {
    match error {
        error if is_bad_url(&error) => Error::Argument(error),
        error => Error::Space(error),
    }
}

#[cfg(test)]
mod tests {
    use super::usage_code;

    #[test]
    fn only_the_subcommands_that_run_a_command_have_the_usage_code_of_flock() {
        let cases: [(&[&str], Option<i32>); 8] = [
            (&["sprag", "once", "--kepe"], Some(64)),
            (&["sprag", "lock", "--tyr"], Some(64)),
            (&["sprag", "--at", "shm:x", "lock"], Some(64)),
            (
                &["sprag", "--at=shm:x", "--group-shared", "lock", "a"],
                Some(64),
            ),
            (&["sprag", "--at", "lock", "replay"], None),
            (&["sprag", "replay", "lock"], None),
            (&["sprag"], None),
            (&["sprag", "--at"], None),
        ];
        for (args, expected) in cases {
            let code = usage_code(args.iter().map(Into::into));
            assert_eq!(code, expected, "{args:?}");
        }
    }
}
