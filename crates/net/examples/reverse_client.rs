//! A whole client: has a word reversed by whoever serves type 9. Run it with the controller's address and a word.
use std::{env, error::Error, time::Duration};

use sluice_net::{Client, ClientOptions, TaskType};

fn main() -> Result<(), Box<dyn Error>> {
    let (address, word) =
        env::args().nth(1).zip(env::args().nth(2)).ok_or("usage: reverse_client ADDRESS WORD")?;
    let client = Client::connect(&ClientOptions::new(&address)?)?;
    let ended = client.submit(TaskType(9), word.as_bytes(), Duration::from_secs(5))?.wait();
    let bytes = ended.outcome.done().ok_or_else(|| ended.outcome.to_string())?;
    println!("{}", String::from_utf8_lossy(bytes));
    Ok(())
}
