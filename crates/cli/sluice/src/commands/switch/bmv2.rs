//! `sluice switch --io bmv2`: the P4 program on BMv2, on links.

use std::path::Path;

use sluice_bmv2::{Bmv2Driver, Bmv2Options, Bmv2Servers, RuntimeApi, SwitchFrom};
use sluice_launcher::bmv2::check;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::flags::TableServer;
use sluice_support::plan::{Plan, SwitchRole};
use sluice_switchd::state::StateFolder;
use sluice_wire::Epoch;

use super::size::size;
use crate::args::SwitchArgs;

/// The folder below the state's in which the program is compiled.
const FOLDER: &str = "bmv2";

/// Compiles the program and starts it on its links.
pub(super) fn driver(
    args: &SwitchArgs,
    plan: &Plan,
    folder: &Path,
    state: &mut StateFolder,
) -> Outcome<Bmv2Driver> {
    let no = |what: &str, next: &str| Err(Failure::bad_input(format!("--io bmv2 {what}: {next}")));
    let Some(at) = plan.switch.listen else {
        return no("needs the address that hosts send to, one of this machine's", "give it with --listen");
    };
    if args.interfaces.is_empty() {
        return no("needs the interfaces that are the switch's links", "give each with --interface");
    }
    check(plan)?;
    // In namespaces of a rack's own, the links inject faults.
    let faults = plan.faults.as_ref().filter(|_| !args.guard.own_network);
    if faults.is_some_and(|rates| !rates.is_empty()) {
        return no("has no socket whose packets faults could hit", "leave faults out, or take --io udp");
    }
    let options = Bmv2Options {
        size: size(plan, SwitchRole::Alone, Epoch(0), state.term()?),
        at,
        interfaces: args.interfaces.clone(),
        folder: folder.join(FOLDER),
        from: switch_from(args, plan),
    };
    Ok(Bmv2Driver::new(&options, || state.next_epoch())?)
}

fn switch_from(args: &SwitchArgs, plan: &Plan) -> SwitchFrom {
    if let (Some(p4runtime), Some(thrift)) = (args.p4runtime, args.thrift) {
        return SwitchFrom::Running(Bmv2Servers { p4runtime, thrift, device: args.device });
    }
    SwitchFrom::Start(match plan.switch.runtime {
        TableServer::Thrift => RuntimeApi::Thrift,
        TableServer::P4Runtime => RuntimeApi::P4Runtime,
    })
}
