//! `p4-receipt`: runs the P4 tools over the programs in `targets/p4`, and writes the receipt.
//!
//! With programs' names as arguments only these programs' parts are written anew.
#![forbid(unsafe_code)]

use std::env::args;
use std::process::ExitCode;

fn main() -> ExitCode {
    match sluice_receipt::run(&args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("p4-receipt: {why}");
            ExitCode::FAILURE
        }
    }
}
