//! A whole client: has a word reversed by whoever serves type 9. Run it with the controller's address and a
//! word.
use std::{env, error::Error, process::ExitCode, time::Duration};

use sluice_net::{Client, ClientOptions, TaskType, program};

fn reversed(address: &str, word: &str) -> Result<String, Box<dyn Error>> {
    let client = Client::connect(&ClientOptions::new(address)?)?;
    let ended = client.submit(TaskType(9), word.as_bytes(), Duration::from_secs(5))?.wait();
    let bytes = ended.outcome.done().ok_or_else(|| ended.outcome.to_string())?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [address, word] = &args[..] else {
        program::fail("usage: reverse_client ADDRESS WORD");
        return ExitCode::from(2);
    };
    reversed(address, word).map_or_else(program::fail, program::print)
}
