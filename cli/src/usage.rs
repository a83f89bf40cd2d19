//! What is wrong with the arguments, as one line: owns the form of `clap`'s errors, never what is one.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::printable;

/// The error as one line that says where the help is; `None` for help that was asked for, or that stands
/// in place of missing words.
pub(crate) fn line(
    error: &clap::Error,
    whole: &clap::Command,
    args: impl IntoIterator<Item = OsString>,
) -> Option<String> {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return None;
    }
    let text = error.render().to_string();
    // From the end: a value may have such lines too, which are no more than words with blanks here.
    let message = ["\n\nFor more information", "\n\nUsage: "]
        .iter()
        .fold(text.as_str(), |text, end| {
            text.rsplit_once(end).map_or(text, |(before, _)| before)
        });
    let message = message.trim_start_matches("error: ");
    let mut line = String::new();
    for part in message
        .lines()
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let tip = part.strip_prefix("tip: ");
        if !line.is_empty() {
            line.push_str(if tip.is_some() { "; " } else { " " });
        }
        line.push_str(tip.unwrap_or(part));
    }
    let args: Vec<OsString> = args.into_iter().collect();
    if error.kind() == ErrorKind::InvalidUtf8
        && let Some(arg) = args.iter().find(|arg| arg.to_str().is_none())
    {
        let arg = printable::name(printable::bytes(arg));
        line =
            format!("'{arg}' is not UTF-8; only names, keys, files and commands may be any bytes");
    }
    let command = subcommand(whole, args);
    if let Some(remark) = remark(error) {
        line = remark;
    }
    Some(format!(
        "{}; {command} --help has more",
        printable::harmless(&line)
    ))
}

/// The words that name the subcommand among `args`.
fn subcommand(whole: &clap::Command, args: impl IntoIterator<Item = OsString>) -> String {
    let mut words = whole.get_name().to_owned();
    let mut command = whole;
    let mut args = args.into_iter().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--at" {
            args.next();
        } else if let Some(found) = command.find_subcommand(&arg) {
            words.push(' ');
            words.push_str(found.get_name());
            command = found;
        } else if !printable::bytes(&arg).starts_with(b"-") {
            break;
        }
    }
    words
}

/// What to say instead of "unexpected argument" where it can be told what was meant.
fn remark(error: &clap::Error) -> Option<String> {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(argument))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    let is_negative = argument
        .strip_prefix('-')
        .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    is_negative.then(|| {
        format!(
            "'{argument}' is negative, which no number here may be; a name that begins with - goes behind --"
        )
    })
}
