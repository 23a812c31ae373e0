//! The time of a token and a task in the XDP program, by the kernel's test run. It is compared with the
//! same parsing, source look-up, clock reads and headers without a switch (`bounced`), and with a swap of
//! Ethernet addresses (`bare`); see `pair.bpf.c`. Also the time if tokens had ranks (`ranked.bpf.c`), and if
//! the slices had a target.
//!
//! Runs of all programs alternate; the medians of their ratios count. Needs root; without root it prints
//! why it measured nothing.

#[path = "../tests/object/mod.rs"]
mod object;

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::process::ExitCode;

use sluice_conformance::Step;
use sluice_conformance::explore::{SHAPE, explore};
use sluice_kernel::xdp::frame::wrap;
use sluice_kernel::xdp::{XdpConfig, XdpSwitch, embedded};
use sluice_switch::Config;
use sluice_wire::tables::{SliceRow, TableOp};
use sluice_wire::{
    Attempt, ClientId, Epoch, Generation, Key, Nanos, Nonce, Packet, Serial, Submit, TaskId, Token, WorkerId,
    encode, encoded_len,
};

const AT: &str = "10.0.0.254:7000";
const PAIRS: u32 = 500_000;
const ROUNDS: usize = 11;
/// The programs; the last two are the switch.
const NAMES: [&str; 4] = ["bare", "bounced", "token_first", "task_first"];
const TOKEN_FIRST: usize = 2;
/// No target.
const NONE: Nanos = Nanos(0);
/// The switch may take at most this many times as long as `bounced`.
const TARGET: f64 = 1.5;
/// What the target of slices is that have one: longer than a run, so that no task is refused.
const SLICE_TARGET: Nanos = Nanos::from_millis(1_000);
/// Rings for four ranks and for the tasks. Without ranks only the first is used.
const SLICES: u16 = 5;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if let Some(why) = lacks() {
        eprintln!("xdp_pair: nothing measured: {why}");
        println!(r#"{{"bench":"xdp_pair","skipped":"{why}"}}"#);
        return Ok(ExitCode::SUCCESS);
    }
    let [mut switch, mut ranked, mut targeted] =
        [load("pair.bpf.o")?, load("ranked.bpf.o")?, load("pair.bpf.o")?];
    let mut rounds = Vec::new();
    for round in 0..=ROUNDS {
        let mut times =
            NAMES.iter().map(|name| pair(&mut switch, name, NONE)).collect::<Result<Vec<_>, _>>()?;
        for name in &NAMES[TOKEN_FIRST..] {
            times.push(pair(&mut ranked, name, NONE)?);
        }
        for name in &NAMES[TOKEN_FIRST..] {
            times.push(pair(&mut targeted, name, SLICE_TARGET)?);
        }
        if round > 0 {
            rounds.push(times);
        }
    }
    let [bare, bounced, token_first, task_first] =
        [0, 1, 2, 3].map(|at| median(rounds.iter().map(|times| times[at]).collect()));
    let ratio = |of: usize, to: usize| median(rounds.iter().map(|times| times[of] / times[to]).collect());
    let [token_ratio, task_ratio] = [TOKEN_FIRST, TOKEN_FIRST + 1].map(|of| ratio(of, 1));
    let [token_bare, task_bare] = [TOKEN_FIRST, TOKEN_FIRST + 1].map(|of| ratio(of, 0));
    let over_plain = |first: usize| [0, 1].map(|order| ratio(first + order, TOKEN_FIRST + order));
    let [token_ranked, task_ranked] = over_plain(NAMES.len());
    let [token_targeted, task_targeted] = over_plain(NAMES.len() + 2);
    eprintln!(
        "a pair with ranks: token first {token_ranked:.3} x of one without, task first {task_ranked:.3} x"
    );
    eprintln!(
        "a pair with a target: token first {token_targeted:.3} x of one without, task first \
         {task_targeted:.3} x"
    );
    eprintln!(
        "a pair: bare {bare} ns, bounced {bounced}, token first {token_first} ({token_ratio:.2} x, of bare \
         {token_bare:.2} x), task first {task_first} ({task_ratio:.2} x, of bare {task_bare:.2} x)"
    );
    println!(
        r#"{{"bench":"xdp_pair","bare_ns":{bare:.1},"bounced_ns":{bounced:.1},"token_first_ns":{token_first:.1},"task_first_ns":{task_first:.1},"token_first_ratio":{token_ratio:.4},"task_first_ratio":{task_ratio:.4},"token_first_bare":{token_bare:.4},"task_first_bare":{task_bare:.4},"target_ratio":{TARGET},"token_first_ranked":{token_ranked:.4},"task_first_ranked":{task_ranked:.4},"token_first_targeted":{token_targeted:.4},"task_first_targeted":{task_targeted:.4}}}"#
    );
    Ok(if token_ratio.max(task_ratio) <= TARGET { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn load(name: &str) -> Result<XdpSwitch, Box<dyn Error>> {
    let size = Config { slices: SLICES, ..SHAPE.config() };
    let config = XdpConfig { size, at: [Some(AT.parse()?), None], test_mode: false };
    Ok(XdpSwitch::load(&fs::read(object::object(name))?, config)?)
}

fn lacks() -> Option<String> {
    if !object::is_root() {
        return Some("loading a program into the kernel takes root".to_owned());
    }
    embedded().err().map(|why| why.to_string())
}

/// The time of a pair in one of the programs, in ns.
fn pair(switch: &mut XdpSwitch, name: &str, target: Nanos) -> Result<f64, Box<dyn Error>> {
    set_up(switch, target)?;
    let ns = switch.run(name, &[0; 130], PAIRS)?.mean_time.as_nanos();
    let counts = switch.counts()?;
    let dispatched = counts.iter().find(|(count, _)| *count == "dispatched").ok_or("no such count")?.1;
    let expected = if name.ends_with("first") { u64::from(PAIRS) } else { 0 };
    if dispatched != expected {
        return Err(format!("{name} sent {dispatched} tasks of {expected}").into());
    }
    Ok(ns as f64)
}

fn set_up(switch: &mut XdpSwitch, target: Nanos) -> Result<(), Box<dyn Error>> {
    switch.clear()?;
    let steps = explore(0, 0).steps;
    for op in steps.iter().filter_map(Step::table) {
        switch.table(match op {
            TableOp::SetSlice(slice, row) => TableOp::SetSlice(slice, SliceRow { target, ..row }),
            other => other,
        })?;
    }
    let key_at = |worker: bool| {
        let found = steps.iter().find_map(|step| match step {
            Step::SetWorker { worker: 0, key, at, .. } if worker => Some((Key(*key), *at)),
            Step::SetClient { client: 0, key, at, .. } if !worker => Some((Key(*key), *at)),
            _ => None,
        });
        found.ok_or("a walk begins with hosts")
    };
    let (key, at) = key_at(true)?;
    let token = Packet::Token(Token {
        epoch: Epoch(SHAPE.epoch),
        key,
        worker: WorkerId(0),
        generation: Generation(1),
        nonce: Nonce(1),
        issued: Serial(SHAPE.counters_start),
        ..Token::default()
    });
    let token = framed(at, &token)?;
    let (key, at) = key_at(false)?;
    let task = TaskId { sequence: Serial(SHAPE.counters_start), ..TaskId::default() };
    let submit = Submit {
        epoch: Epoch(SHAPE.epoch),
        key,
        client: ClientId(0),
        task,
        attempt: Attempt(1),
        ..Submit::default()
    };
    let task = framed(at, &Packet::Submit(submit))?;
    let mut templates = [0; 272];
    templates[..token.len()].copy_from_slice(&token);
    templates[136..136 + task.len()].copy_from_slice(&task);
    switch.set_templates(templates)?;
    Ok(())
}

fn framed(from: SocketAddr, packet: &Packet) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut bytes = vec![0; encoded_len(packet)];
    encode(packet, &[], &mut bytes)?;
    Ok(wrap(from, AT.parse()?, &bytes).ok_or("two families")?)
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
