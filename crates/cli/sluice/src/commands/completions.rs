//! `sluice completions`: what makes a shell complete the command's words, made from the command line itself.

use clap::CommandFactory as _;
use sluice_support::fail::Outcome;
use sluice_support::print;

use crate::args::{CompletionsArgs, Sluice};

/// Prints the script for a shell.
pub(crate) fn run(args: &CompletionsArgs) -> Outcome<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Sluice::command(), "sluice", &mut script);
    print::text(String::from_utf8_lossy(&script))
}
