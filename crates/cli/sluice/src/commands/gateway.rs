//! `sluice gateway`: stands before a rack for clients that speak RESP, HTTP or gRPC.

use std::thread;
use std::time::Duration;

use serde_json::json;
use sluice_gateway::{BoundGateway, GatewayMetrics, GatewayOptions, Protocol};
use sluice_net::ClientOptions;
use sluice_net::client::SpineClients;
use sluice_net::metrics::{ClientMetrics, MetricsOutlets};
use sluice_net::program::read_anew_on_hangup;
use sluice_rpc::ServerTls;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::print;
use sluice_support::seed::random_bits;
use sluice_support::service_manager::ReadyService;
use sluice_support::stop::Stop;

use super::{LOOK_EVERY, with_metrics};
use crate::args::GatewayArgs;

/// Runs until a signal.
pub(crate) fn run(args: &GatewayArgs) -> Outcome<()> {
    let stop = Stop::on_signals()?;
    read_anew_on_hangup()?;
    args.log.start("gateway", &args.output);
    let outlets = MetricsOutlets::bind(args.metrics.metrics, args.metrics.report_metrics.as_deref())?;
    let metrics_at = outlets.local();
    let (metrics, of_client) = (GatewayMetrics::default(), ClientMetrics::default());
    let sources = vec![metrics.source(), of_client.source()];
    let are_wanted = outlets.are_wanted();
    let bound = BoundGateway::bind(options(args, metrics)?)?;
    let places = bound.local();
    let _served = outlets.serve(sources)?;
    let gateway = bound.serve(clients(args, are_wanted.then_some(of_client))?)?;
    let ready = ReadyService::tell();
    if args.output.json {
        let mut line = json!({ "schema": "sluice.listening.v1" });
        for (protocol, at) in &places {
            line[protocol.name()] = at.to_string().into();
        }
        print::line(with_metrics(line, metrics_at))?;
    } else if !args.output.quiet {
        let places: Vec<_> =
            places.iter().map(|(protocol, at)| format!("{} at {at}", protocol.text())).collect();
        print::to_stderr(format_args!("gateway: {}; Ctrl-C ends it", places.join(", ")));
    }
    while !stop.is_asked() && gateway.is_running() {
        thread::sleep(LOOK_EVERY);
    }
    if !stop.is_asked() {
        return Err(Failure::broken("the gateway's thread ended; see above"));
    }
    drop(ready);
    if !gateway.drain(args.drain_limit) && !args.output.quiet {
        print::to_stderr("gateway: connections were ended that had answers to come (--drain-limit)");
    }
    Ok(())
}

fn options(args: &GatewayArgs, metrics: GatewayMetrics) -> Outcome<GatewayOptions> {
    let tls = match args.guard.certificate.as_deref() {
        Some([certificate, key]) => {
            Some(ServerTls::from_files(certificate, key, args.guard.client_ca.as_deref())?)
        }
        _ => None,
    };
    if args.deadline.is_some_and(|span| span.is_zero()) {
        return Err(Failure::bad_input("--deadline is zero; give tasks some time, such as 1s"));
    }
    Ok(GatewayOptions {
        listen: [(Protocol::Resp, args.resp), (Protocol::Http, args.http), (Protocol::Grpc, args.grpc)],
        tls,
        deadline: args.deadline,
        budget: args.budget.map(|budget| Duration::from_nanos(budget.0)),
        methods: args.grpc_map.clone(),
        connections_max: args.connections as usize,
        metrics,
    })
}

/// The rack's clients, of several spines one for each.
fn clients(args: &GatewayArgs, metrics: Option<ClientMetrics>) -> Outcome<SpineClients> {
    let controllers = args.rack.remotes()?;
    let controller = controllers[0].clone();
    let options = ClientOptions {
        name: args.name.clone().unwrap_or_else(|| controller.own_name("gateway")),
        listen: args.listen,
        patience: args.patience,
        retry: args.retry,
        dilation: args.dilate,
        pin: args.pin,
        metrics,
        ..ClientOptions::of(controller)
    };
    Ok(SpineClients::connect(&options, &controllers, random_bits()?)?)
}
