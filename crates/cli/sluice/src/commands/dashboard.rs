//! `sluice dashboard`: serves a page about running racks until it is stopped.

use std::thread;

use serde_json::json;
use sluice_dashboard::{Dashboard, DashboardPort, Watched};
use sluice_net::program::read_anew_on_hangup;
use sluice_rpc::{Remote, ServerTls};
use sluice_support::fail::{Failure, Outcome};
use sluice_support::print;
use sluice_support::service_manager::ReadyService;
use sluice_support::stop::Stop;

use super::LOOK_EVERY;
use crate::args::{DashboardArgs, GuardArgs};

/// Runs until a signal.
pub(crate) fn run(args: &DashboardArgs) -> Outcome<()> {
    let stop = Stop::on_signals()?;
    read_anew_on_hangup()?;
    args.log.start("dashboard", &args.output);
    let (watched, of) = watched(args)?;
    let port = DashboardPort::bind(args.listen, tls(&args.guard)?)?;
    let url = port.url();
    let dashboard = Dashboard::start(port, watched)?;
    let _ready = ReadyService::tell();
    if args.output.json {
        print::line(json!({ "schema": "sluice.listening.v1", "dashboard": url }))?;
    } else if !args.output.quiet {
        print::to_stderr(format_args!("dashboard at {url}; it shows {of}; Ctrl-C ends it"));
    }
    while !stop.is_asked() && dashboard.is_running() {
        thread::sleep(LOOK_EVERY);
    }
    if stop.is_asked() { Ok(()) } else { Err(Failure::broken("the dashboard's thread ended; see above")) }
}

/// What the page shows, and that in words.
fn watched(args: &DashboardArgs) -> Outcome<(Watched, String)> {
    if let Some(folder) = &args.study {
        return Ok((Watched::Study(folder.clone()), format!("the study in {}", folder.display())));
    }
    if let Some([one, other]) = args.results.as_deref() {
        let of = format!("{} beside {}", one.display(), other.display());
        return Ok((Watched::Results([one.clone(), other.clone()]), of));
    }
    let controllers = args.rack.remotes()?;
    let asked = listed(&controllers);
    let title = if controllers.len() == 1 { format!("The rack of {asked}") } else { "Racks".to_owned() };
    Ok((Watched::Racks { title, controllers, board: None }, format!("what {asked} says")))
}

fn tls(args: &GuardArgs) -> Outcome<Option<ServerTls>> {
    Ok(match args.certificate.as_deref() {
        Some([certificate, key]) => Some(ServerTls::from_files(certificate, key, args.client_ca.as_deref())?),
        _ => None,
    })
}

fn listed(controllers: &[Remote]) -> String {
    let without_scheme = |remote: &Remote| {
        let url = remote.url();
        url.split_once("://").map_or(url, |(_, place)| place).to_owned()
    };
    controllers.iter().map(without_scheme).collect::<Vec<_>>().join(", ")
}
