//! Runs the P4 tools over the programs.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use sluice_bmv2::{P4Program, tool};

use crate::error::ReceiptError;
use crate::fit::Fit;
use crate::inputs::Inputs;
use crate::tables::fit_rows;
use crate::{PUBLISHED, ProgramReceipt, Receipt, targets};

/// The tools. All but the assembler tell their versions.
const TOOLS: [&str; 5] = ["p4test", "p4c-bm2-ss", "simple_switch", "p4c-barefoot", "bfas"];
const ASSEMBLER: &str = "bfas";
/// The line that a parser's state with a choice has in the assembler's input.
const CHOICE: &str = "match:";
/// The longest part of a complaint that is kept.
const WORDS_MAX: usize = 300;

/// Runs the tools over the programs of these names, or over all, and writes the receipt.
///
/// # Errors
/// An unknown name, a vector that does not hold, a source that `p4test` refuses, a file.
pub fn run(asked: &[String]) -> Result<(), ReceiptError> {
    let known = P4Program::ALL.map(P4Program::name);
    let is_known = |name: &str| known.contains(&name) || name == PUBLISHED;
    if let Some(unknown) = asked.iter().find(|name| !is_known(name)) {
        let what = format!("there is no program `{unknown}`");
        let said = format!("there are {}, {PUBLISHED}", known.join(", "));
        return Err(ReceiptError::Refused { what, said });
    }
    let missing: Vec<&str> = TOOLS.into_iter().filter(|name| tool(name).is_err()).collect();
    for name in &missing {
        println!("{name} is not there: name its folder in P4_TOOLS, or put it on the PATH");
    }
    let folder = targets().join("p4");
    let mut receipt = Receipt::read(&folder).unwrap_or_default();
    if missing.is_empty() {
        receipt.tools = versions()?;
    }
    for program in P4Program::ALL {
        if asked.is_empty() || asked.iter().any(|name| name == program.name()) {
            let said = one(&folder, program)?;
            receipt.programs.insert(program.name().to_owned(), said);
        }
    }
    if asked.is_empty() || asked.iter().any(|name| name == PUBLISHED) {
        let inputs = Inputs::of_published(&targets())?;
        receipt.published = Some(fitted(&folder, PUBLISHED, inputs)?);
    }
    if !missing.is_empty() {
        println!("no receipt: what takes {} did not run", missing.join(", "));
        return Ok(());
    }
    receipt.write(&folder)?;
    println!("targets/p4/receipt.json is written");
    Ok(())
}

/// Runs what can be run of one program. What the receipt says of it holds only if all tools are there.
fn one(folder: &Path, program: P4Program) -> Result<ProgramReceipt, ReceiptError> {
    let name = program.name();
    let inputs = Inputs::now(&targets(), program)?;
    if let Ok(checker) = tool("p4test") {
        checked(Command::new(checker).args(["--std", "p4-16"]).arg(folder.join(top(name, "v1model"))))?;
        println!("{name}: p4test takes it");
    }
    if tool("p4c-bm2-ss").is_ok() && tool("simple_switch").is_ok() {
        on_bmv2(name)?;
        println!("{name}: {} vectors, and random walks, on BMv2", inputs.vectors.len());
    }
    fitted(folder, name, inputs)
}

/// Compiles and assembles a program for a Tofino, if the tools are there.
fn fitted(folder: &Path, name: &str, inputs: Inputs) -> Result<ProgramReceipt, ReceiptError> {
    let mut said = ProgramReceipt { inputs, fit: None, no_fit: None };
    if tool("p4c-barefoot").is_ok() && tool(ASSEMBLER).is_ok() {
        match fit(folder, name) {
            Ok(fit) => {
                println!("{name}: fits a Tofino");
                for (row, cell) in fit_rows(&fit) {
                    println!("{row}{cell}");
                }
                said.fit = Some(fit);
            }
            Err(ReceiptError::Refused { what, said: words }) => {
                println!("{name}: does not fit a Tofino: {what}: {words}");
                said.no_fit = Some(words);
            }
            Err(why) => return Err(why),
        }
    }
    Ok(said)
}

fn top(name: &str, target: &str) -> String {
    format!("{name}_{target}.p4")
}

/// Plays the program's vectors, and random walks, on BMv2: the tests of `sluice-bmv2`.
fn on_bmv2(name: &str) -> Result<(), ReceiptError> {
    let mut tests = Command::new(env!("CARGO"));
    tests.args(["test", "--quiet", "--locked", "--package", "sluice-bmv2", "--test", "vectors"]);
    checked(tests.env("P4_PROGRAM", name)).map(drop)
}

/// Compiles and assembles the program for a Tofino.
fn fit(folder: &Path, name: &str) -> Result<Fit, ReceiptError> {
    let out = tempfile::tempdir().map_err(ReceiptError::file("make", Path::new("a folder")))?;
    let mut compiler = Command::new(tool("p4c-barefoot")?);
    compiler.args(["--target", "tofino", "--arch", "tna", "-g", "--verbose", "-o"]);
    checked(compiler.arg(out.path()).arg(folder.join(top(name, "tna"))))?;
    let pipe = out.path().join("pipe");
    let assembly = pipe.join(format!("{name}_tna.bfa"));
    let text = fs::read_to_string(&assembly).map_err(ReceiptError::file("read", &assembly))?;
    if !text.contains(CHOICE) {
        let what = "p4c-barefoot forgets what parsers compare".to_owned();
        let said = "it has the defect of the README of targets/p4: take another build".to_owned();
        return Err(ReceiptError::Refused { what, said });
    }
    let mut assembler = Command::new(tool(ASSEMBLER)?);
    assembler.args(["--target", "tofino", "-o"]).arg(out.path());
    checked(assembler.arg(assembly))?;
    Fit::read(&pipe.join("logs"))
}

/// The version that each tool tells.
fn versions() -> Result<BTreeMap<String, String>, ReceiptError> {
    let mut versions = BTreeMap::new();
    for name in TOOLS.into_iter().filter(|name| *name != ASSEMBLER) {
        let said = checked(Command::new(tool(name)?).arg("--version"))?;
        let text = words(&said);
        let line =
            text.lines().find(|line| line.contains(|c: char| c.is_ascii_digit()) && !line.contains('/'));
        let version = line.unwrap_or("unknown").trim().trim_start_matches("Version ");
        versions.insert(name.to_owned(), version.to_owned());
    }
    Ok(versions)
}

/// Runs a command. If it fails, its first error is what it said.
fn checked(command: &mut Command) -> Result<Output, ReceiptError> {
    let name = Path::new(command.get_program()).file_name().and_then(OsStr::to_str);
    let name = name.unwrap_or_default().to_owned();
    let ran = match command.output() {
        Ok(ran) if ran.status.success() => return Ok(ran),
        Ok(ran) => ran,
        Err(why) => return Err(ReceiptError::Tool { tool: name, why }),
    };
    let said = words(&ran).replace(&format!("{}/", targets().join("p4").display()), "");
    let first = said.lines().find(|line| line.contains("error") || line.contains("panicked"));
    let said = first.unwrap_or(&said).chars().take(WORDS_MAX).collect();
    Err(ReceiptError::Refused { what: format!("{name} refuses"), said })
}

/// All that a command printed.
fn words(ran: &Output) -> String {
    [&ran.stderr, &ran.stdout].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}
