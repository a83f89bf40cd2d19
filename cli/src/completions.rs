//! `sprag completions`: what a shell needs to complete the command's words. Owns nothing but the call.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::error::Error;
use crate::output;

/// Print a script that completes this command's words in a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Where to put it:
  bash  sprag completions bash > ~/.local/share/bash-completion/completions/sprag
  zsh   sprag completions zsh > ~/.zfunc/_sprag, with ~/.zfunc in fpath
  fish  sprag completions fish > ~/.config/fish/completions/sprag.fish")]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script for the command `C`.
pub(crate) fn run<C: CommandFactory>(args: &Args, out: &mut impl Write) -> Result<ExitCode, Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut C::command(), "sprag", &mut script);
    output::print(out, ExitCode::SUCCESS, |out| out.write_all(&script))
}
