//! A whole client for a rack on other machines: its flags say where the controller is, whom to believe and
//! what to show. Of racks below several spines they name all their controllers.
use std::{error::Error, process::ExitCode, time::Duration};

use clap::Parser;
use sluice_net::TaskType;
use sluice_net::program::{self, ClientArgs};

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    client: ClientArgs,
    /// The word to have reversed.
    word: String,
}

fn main() -> ExitCode {
    run(&Flags::parse()).map_or_else(program::fail, program::print)
}

fn run(flags: &Flags) -> Result<String, Box<dyn Error>> {
    let spines = flags.client.connect(1)?;
    let ended =
        spines.draw(TaskType(9)).submit(TaskType(9), flags.word.as_bytes(), Duration::from_secs(5))?.wait();
    let bytes = ended.outcome.done().ok_or_else(|| ended.outcome.to_string())?;
    Ok(String::from_utf8_lossy(bytes).escape_debug().to_string())
}
