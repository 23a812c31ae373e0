//! How long a token and a task take, against the same without the switch.

use std::net::SocketAddr;

use sluice_net::xdp::frame::wrap;
use sluice_vectors::explore::{SHAPE, explore};
use sluice_vectors::{Plane as _, Step};
use sluice_wire::{
    Attempt, ClientId, Epoch, Generation, Key, Nonce, Packet, Serial, Submit, TaskId, Token, WorkerId,
    encode, encoded_len,
};

use crate::plane::{AT4, Xdp};

/// `cargo test -p sluice-net --test xdp -- --ignored --nocapture how_long`
#[test]
#[ignore = "it measures, and says nothing of right or wrong"]
fn how_long_a_token_and_a_task_take() {
    let Some(mut xdp) = Xdp::of("pair.bpf.o", SHAPE, false) else { return };
    let rounds: u32 =
        std::env::var("XDP_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let names = ["bare", "bounced", "token_first", "task_first"];
    let mut times: [Vec<u128>; 4] = Default::default();
    for _ in 0..7 {
        for (name, times) in names.iter().zip(&mut times) {
            set_up(&mut xdp);
            let frame = vec![0; 130];
            times.push(xdp.switch.run(name, &frame, rounds).expect("root").1.as_nanos());
            let dispatched = xdp.switch.counts().expect("root")[4].1;
            let switches = name.ends_with("first");
            assert_eq!(dispatched, if switches { rounds.into() } else { 0 }, "{name}");
        }
    }
    let [bare, bounced, token_first, task_first] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2] as f64
    });
    println!(
        "a pair, ns (median of 7): bare {bare}, bounced {bounced}, token first {token_first}, task first {task_first}"
    );
    println!("against the bounced pair: {:.2} and {:.2}", token_first / bounced, task_first / bounced);
    println!("against the bare pair: {:.2} and {:.2}", token_first / bare, task_first / bare);
}

fn set_up(xdp: &mut Xdp) {
    xdp.switch.clear().expect("root");
    let steps = explore(0, 0).steps;
    for op in steps.iter().filter_map(Step::table) {
        xdp.table(op).expect("root");
    }
    let key_at = |worker: bool| {
        steps.iter().find_map(|step| match step {
            Step::SetWorker { worker: 0, key, at, .. } if worker => Some((Key(*key), *at)),
            Step::SetClient { client: 0, key, at, .. } if !worker => Some((Key(*key), *at)),
            _ => None,
        })
    };
    let (key, at) = key_at(true).expect("a worker");
    let token = Packet::Token(Token {
        epoch: Epoch(SHAPE.epoch),
        key,
        worker: WorkerId(0),
        generation: Generation(1),
        nonce: Nonce(1),
        issued: Serial(SHAPE.counters_start),
    });
    let token = framed(at, &token);
    let (key, at) = key_at(false).expect("a client");
    let task = TaskId { sequence: Serial(SHAPE.counters_start), ..TaskId::default() };
    let submit = Submit {
        epoch: Epoch(SHAPE.epoch),
        key,
        client: ClientId(0),
        task,
        attempt: Attempt(1),
        ..Submit::default()
    };
    let task = framed(at, &Packet::Submit(submit));
    let mut templates = [0; 272];
    templates[..token.len()].copy_from_slice(&token);
    templates[136..136 + task.len()].copy_from_slice(&task);
    xdp.switch.set_templates(templates).expect("root");
}

fn framed(from: SocketAddr, packet: &Packet) -> Vec<u8> {
    let mut bytes = vec![0; encoded_len(packet)];
    encode(packet, &[], &mut bytes).expect("legal");
    wrap(from, AT4.parse().expect("an address"), &bytes).expect("of one family")
}
