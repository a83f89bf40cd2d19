//! A script: a run that can be written down, as text, and run again.
//!
//! ```text
//! # Whatever stands behind a number sign is for the reader.
//! seed 250
//! nodes 3                      # optional: else the seed draws them
//! bug promise-counted-twice    # optional
//! black-box                    # optional: only what clients see is checked
//! fails safety: safe proposal  # optional: how it is known to fail
//! duplication n1-n4 18         # a class, where, and at which of its occasions, from 0
//! crash n0 619
//! partition net 68
//! ```

use std::fmt;
use std::str::FromStr;

use sprag_paxos::Configuration;
use sprag_paxos::simulation::Bug;
use thiserror::Error;

use crate::fault::{Class, Strike};
use crate::plan::Mix;
use crate::run::{self, Report, Setup};
use crate::site;

/// A run that can be written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Draws all but the faults.
    pub seed: u64,
    /// How many nodes, where the seed doesn't draw them.
    pub nodes: Option<usize>,
    /// The bug that is planted.
    pub bug: Option<Bug>,
    /// Whether invariants look inside the nodes.
    pub looks_inside: bool,
    /// In which way it is known to fail, as [`Failure::way`](crate::Failure::way) puts it.
    pub fails: Option<String>,
    /// The faults.
    pub strikes: Vec<Strike>,
}

impl Script {
    /// What struck in a run of `seed`.
    pub fn new(seed: u64, setup: &Setup, strikes: Vec<Strike>) -> Self {
        Self {
            seed,
            nodes: setup.nodes,
            bug: setup.bug,
            looks_inside: setup.looks_inside,
            fails: None,
            strikes,
        }
    }

    /// What its run is set up with: faults are its own, so the mix is empty.
    pub fn setup(&self) -> Setup {
        Setup {
            mix: Mix::none(),
            nodes: self.nodes,
            bug: self.bug,
            looks_inside: self.looks_inside,
        }
    }

    /// Runs it.
    pub fn replay(&self) -> Report {
        run::replay(self.seed, &self.setup(), &self.strikes)
    }

    /// Runs it, and keeps the events after the first `skipped` as text.
    pub fn show(&self, skipped: u64) -> Report {
        run::show(self.seed, &self.setup(), &self.strikes, skipped)
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        if let Some(nodes) = self.nodes {
            writeln!(f, "nodes {nodes}")?;
        }
        if let Some(bug) = self.bug {
            writeln!(f, "bug {}", bug.name())?;
        }
        if !self.looks_inside {
            writeln!(f, "black-box")?;
        }
        if let Some(way) = &self.fails {
            writeln!(f, "fails {way}")?;
        }
        for strike in &self.strikes {
            writeln!(f, "{strike}")?;
        }
        Ok(())
    }
}

/// Why a text is no script.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScriptError {
    /// No seed is named.
    #[error("script: no seed; its first line should be `seed N`")]
    NoSeed,
    /// A line says nothing that a script can say.
    #[error("script, line {line}: {why}")]
    Line {
        /// Which, from 1.
        line: usize,
        /// What is wrong, and what would be right.
        why: String,
    },
}

impl FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let mut seed = None;
        let mut script = Script {
            seed: 0,
            nodes: None,
            bug: None,
            looks_inside: true,
            fails: None,
            strikes: Vec::new(),
        };
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let rest = rest.trim();
            let read = match word {
                "" => Ok(()),
                "seed" => number(rest, 0, u64::MAX).map(|number| seed = Some(number)),
                "nodes" => number(rest, 1, Configuration::VOTERS_MAX as u64)
                    .map(|nodes| script.nodes = Some(nodes as usize)),
                "bug" => bug(rest).map(|bug| script.bug = Some(bug)),
                "black-box" if rest.is_empty() => {
                    script.looks_inside = false;
                    Ok(())
                }
                "fails" => {
                    script.fails = Some(rest.to_owned());
                    Ok(())
                }
                _ => strike(word, rest).map(|strike| script.strikes.push(strike)),
            };
            read.map_err(|why| ScriptError::Line {
                line: index + 1,
                why,
            })?;
        }
        script.seed = seed.ok_or(ScriptError::NoSeed)?;
        Ok(script)
    }
}

/// The bug of that name; else says which there are.
pub fn bug(name: &str) -> Result<Bug, String> {
    let bug = Bug::ALL.iter().find(|bug| bug.name() == name).copied();
    bug.ok_or_else(|| {
        let names: Vec<&str> = Bug::ALL.iter().map(|bug| bug.name()).collect();
        format!("no bug is named `{name}`; there are {}", names.join(", "))
    })
}

fn strike(word: &str, rest: &str) -> Result<Strike, String> {
    let class: Class = word.parse()?;
    let (site, occasion) = rest.split_once(' ').ok_or_else(|| {
        format!("`{word}` wants a place and the number of an occasion there, as in `crash n2 17`")
    })?;
    Ok(Strike {
        class,
        site: site::read(class, site)?,
        occasion: number(occasion.trim(), 0, u64::from(u32::MAX))? as u32,
    })
}

fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("`{text}` is no number from {least} to {most}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_as_it_was_written() {
        let script = Script {
            seed: 14,
            nodes: Some(3),
            bug: Some(Bug::ALL[0]),
            looks_inside: false,
            fails: Some("safety: agreement".to_owned()),
            strikes: vec![Strike {
                class: Class::Crash,
                site: 2,
                occasion: 17,
            }],
        };
        assert_eq!(script.to_string().parse(), Ok(script));
    }

    #[test]
    fn what_stands_behind_a_number_sign_is_for_the_reader() {
        let script: Script = "# why\n\nseed 1 # this\n".parse().unwrap();
        assert_eq!(script.seed, 1);
        assert!(script.strikes.is_empty());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_what_would_be_right() {
        let cases = [
            ("", "no seed"),
            ("seed x", "line 1: `x` is no number"),
            ("seed 1\nnodes 99", "line 2: `99` is no number from 1 to 15"),
            ("seed 1\nbug none", "there are "),
            ("seed 1\nfire 1 2", "the classes are "),
            ("seed 1\ncrash n1", "as in `crash n2 17`"),
            ("seed 1\ncrash n1 -1", "from 0 to 4294967295"),
        ];
        for (text, part) in cases {
            let error = text.parse::<Script>().unwrap_err().to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }
}
