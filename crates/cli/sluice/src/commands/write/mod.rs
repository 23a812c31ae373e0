//! `sluice write`: sends RDMA writes at a rate through HF²T's pacer, or receives them.

mod outcome;
mod receiver;
mod schedule;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use sluice_host::pacer::PacerSettings;
use sluice_kernel::queues::need_fair_queue;
use sluice_net::pin::pin_thread;
use sluice_net::rdma::{LinkWatch, WaitsBy, WriteSender, WriteSenderOptions, local_address};
use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::stop::Stop;
use sluice_support::{load, print};
use sluice_wire::Nanos;
use sluice_wire::roce::write_len;

use crate::args::{WaitArg, WriteArgs as Args};
use outcome::{LinkStamps, SentWrites};
use receiver::{FIRST_PAIR, KEY, WriteReceiver};
use schedule::SpacedStarts;

/// The largest number of WRITEs in a run: each is stored to compute gaps.
const WRITES_MAX: f64 = 4e6;
/// How long the kernel may hold frames after the last one was given to it.
const SETTLES: Duration = Duration::from_millis(100);
/// The link rate that is assumed for a frame's time: no link in the paper is faster.
const LINK_BITS_PER_NS: u64 = 100;
/// Bytes of a frame around its transport part, including the gap between two frames.
const AROUND_BYTES: usize = 14 + 20 + 8 + 4 + 20;

/// Runs a sender, or with `--listen` a receiver.
pub(crate) fn run(args: &Args) -> Outcome<()> {
    let stop = Stop::on_signals_and_hangup()?;
    if let Some(at) = args.listen {
        return receiver::until_stopped(at, args.output.json, &stop);
    }
    check(args)?;
    let taking =
        args.to.is_none().then(|| WriteReceiver::start((Ipv4Addr::LOCALHOST, 0).into())).transpose()?;
    let to = args.to.or(taking.as_ref().map(WriteReceiver::local)).expect("one of them is there");
    let options = options(args, to)?;
    if options.waits == WaitsBy::Kernel {
        need_fair_queue(options.from)?;
    }
    if let Some(core) = args.pin {
        pin_thread(core)?;
    }
    let watch = args.on_link.then(|| LinkWatch::start(to)).transpose()?;
    let mut sender = WriteSender::new(&options)?;
    let mut sent = SentWrites::new(&options);
    sender.run(schedules(args), stop.flag(), |left| sent.add(left));
    let taken = taking.map(WriteReceiver::end).transpose()?;
    let link = watch.map(|watch| watch_end(watch, &sender, args.threshold)).transpose()?;
    let result = sent.result(&sender.totals(), link.as_ref(), taken.as_ref());
    if args.output.json {
        print::line(serde_json::to_string(&result).map_err(Failure::broken)?)?;
    } else {
        print::line(result.table())?;
    }
    if stop.is_asked() {
        return Err(
            Failure::new(Kind::Aborted, "stopped early: the result is of what was sent").with_result_shown()
        );
    }
    Ok(())
}

/// Checks that clap cannot express.
fn check(args: &Args) -> Outcome<()> {
    let writes = args.rate * args.length.as_secs_f64();
    if !(1.0..=WRITES_MAX).contains(&writes) {
        return Err(Failure::bad_input(format!(
            "{} for {} are {writes:.0} WRITEs: give a --rate and a --length of 1 to {WRITES_MAX:.0}",
            args.rate,
            sluice_support::units::span_text(args.length)
        )));
    }
    let gaps = writes - f64::from(args.flows);
    if !args.unpaced && gaps < f64::from(args.training) {
        return Err(Failure::bad_input(format!(
            "{writes:.0} WRITEs of {} flows have some {gaps:.0} gaps, and the pacer learns from {}: give a \
             longer --length, a higher --rate or a shorter --training",
            args.flows, args.training
        )));
    }
    Ok(())
}

fn options(args: &Args, to: SocketAddr) -> Outcome<WriteSenderOptions> {
    let bytes = usize::from(args.bytes);
    let frame = Nanos((write_len(bytes) + AROUND_BYTES) as u64 * 8 / LINK_BITS_PER_NS);
    let pacer = PacerSettings {
        threshold: load::nanos(args.threshold),
        percentile: args.percentile,
        training_gaps: args.training,
        alpha: args.alpha,
    };
    Ok(WriteSenderOptions {
        from: local_address(to)?,
        to,
        flows: args.flows,
        pair: FIRST_PAIR,
        rkey: KEY,
        address: 0,
        bytes,
        frame,
        pacer: (!args.unpaced).then_some(pacer),
        waits: match args.wait {
            WaitArg::Spin => WaitsBy::Spinning,
            WaitArg::Sleep => WaitsBy::Sleeping,
            WaitArg::Kernel => WaitsBy::Kernel,
        },
    })
}

/// The times of each flow's WRITEs; the rate is that of all flows together.
fn schedules(args: &Args) -> Vec<SpacedStarts> {
    let gap_ns = 1e9 * f64::from(args.flows) / args.rate;
    (0..args.flows)
        .map(|flow| SpacedStarts::new(args.arrivals, gap_ns, args.length, (args.seed, flow)))
        .collect()
}

/// What was seen on the link, once the kernel has sent all frames that it held.
fn watch_end(watch: LinkWatch, sender: &WriteSender, threshold: Duration) -> Outcome<LinkStamps> {
    std::thread::sleep(SETTLES + threshold);
    Ok(LinkStamps::new(&sender.ports().collect::<Vec<_>>(), &watch.end()?))
}
