//! A switch at its limits, tasks that it refuses, and packets that are lost on the way to it.

use std::net::UdpSocket;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::rig::{PLAN, Rack, signal};

#[test]
fn a_full_queue_is_told_with_how_many_tasks_it_costs() {
    let plan = PLAN.replace("limit = 64", "limit = 4");
    let rack = Rack::of(&plan);
    let up = rack.up();
    // Two workers that hold for 3 ms serve 660 tasks a second at most.
    let load = "[load]\nrate = 3000\nmix = \"hold=1\"\nlength = \"600s\"\n\
                [load.request.hold]\nbusy = \"3ms\"\n";
    std::fs::write(rack.folder().join("load.toml"), plan + load).expect("written");
    let load = rack.quiet(&["load", "load.toml"]);
    let told = rack.finds("queue-full");
    assert!(told["why"].as_str().is_some_and(|why| why.contains(" tasks (")), "{told}");
    assert!(told["next"].as_str().is_some_and(|next| next.contains("`limit`")), "{told}");
    drop(load);
    up.ends_well();
}

#[test]
fn packets_that_the_kernel_drops_in_front_of_a_switch_that_stands_still_are_told() {
    let rack = Rack::of(PLAN.split("[[worker]]").next().expect("the slice"));
    let (switch, _) = rack.listens(&["switch", "rack.toml"]);
    let at = rack.until("up", |status| status["switch"]["link"] == "up");
    let at = at["switch"]["at"].as_str().expect("an address").to_owned();
    let pid = Pid::from_child(&switch.0);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let told = rack.finds_while("packets-dropped", || {
        signal(pid, Signal::STOP);
        for _ in 0..40_000 {
            // What is lost here is meant to be.
            socket.send_to(&[0; 512], &at).ok();
        }
        signal(pid, Signal::CONT);
        std::thread::sleep(Duration::from_millis(300));
    });
    assert!(told["why"].as_str().is_some_and(|why| why.contains(" were dropped and ")), "{told}");
}

#[test]
fn tasks_of_a_type_that_no_slice_serves_any_more_are_told() {
    let rack = Rack::of(PLAN);
    let up = rack.up();
    let load = rack.quiet(&["load", "--mix", "hold=1", "--rate", "1000", "--length", "600s"]);
    rack.until("loaded", |status| status["clients"][0].is_object());
    // A client learns soon that its type goes nowhere, and sends no more: a few tasks a time are refused.
    let told = rack.finds_while("type-unmapped", || {
        for args in [&["map", "hold", "work"][..], &["map", "hold"]] {
            let mapped = crate::common::sluice(rack.folder(), args);
            assert_eq!(mapped.status.code(), Some(0), "{}", crate::common::stderr(&mapped));
        }
    });
    assert!(told["next"].as_str().is_some_and(|next| next.contains("sluice map")), "{told}");
    drop(load);
    up.ends_well();
}

#[test]
fn a_worker_whose_packets_are_lost_though_its_calls_are_not_is_told_until_they_arrive() {
    let rack = Rack::of(PLAN.split("[[worker]]").next().expect("the slice"));
    let (switch, control) = rack.listens(&["switch", "rack.toml", "--faults", "loss=1"]);
    let worker = rack.quiet(&["worker", "hold", "--name", "mine", "--controller", &control]);
    let told = rack.finds("worker-unanswered");
    assert_eq!((&told["severity"], &told["subject"]["name"]), (&"wrong".into(), &"mine".into()), "{told}");
    assert!(told["why"].as_str().is_some_and(|why| why.contains(" asked in vain for ")), "{told}");
    let at = rack.status()["switch"]["at"].as_str().expect("an address").to_owned();
    drop(switch);
    let again = ["switch", "rack.toml", "--listen", &at, "--control", &control, "--json"];
    let _switch = Rack::started(crate::common::command(rack.folder(), &again));
    rack.has_workers(1);
    rack.is_in_order();
    worker.ends_well();
}

#[test]
fn tokens_that_are_lost_and_sent_again_are_told_with_their_share() {
    let rack = Rack::of(PLAN.split("[[worker]]").next().expect("the slice"));
    let (_switch, control) = rack.listens(&["switch", "rack.toml", "--faults", "loss=0.1"]);
    let _worker = rack.quiet(&["worker", "hold", "--name", "mine", "--controller", &control]);
    let _load = rack.quiet(&["load", "--mix", "hold=1", "--rate", "200", "--length", "600s"]);
    let told = rack.finds("tokens-lost");
    assert_eq!((&told["severity"], &told["subject"]["name"]), (&"warning".into(), &"mine".into()), "{told}");
    assert!(told["why"].as_str().is_some_and(|why| why.ends_with("; each was sent again")), "{told}");
}
