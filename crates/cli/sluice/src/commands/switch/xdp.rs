//! `sluice switch --io xdp`: which parts of a plan a switch in the kernel supports, and where its pins are.

use std::path::{Path, PathBuf};

use sluice_kernel::xdp::machine::BPF_FS;
use sluice_kernel::xdp::{AttachMode, XdpDriver, XdpOptions};
use sluice_support::fail::{Failure, Outcome};
use sluice_support::flags::Io;
use sluice_support::plan::{Plan, SwitchRole};
use sluice_support::print;
use sluice_switchd::state::StateFolder;
use sluice_wire::Epoch;

use super::size::size;
use crate::args::SwitchArgs;

/// Attaches the program to its links.
pub(super) fn driver(args: &SwitchArgs, plan: &Plan, state: &mut StateFolder) -> Outcome<XdpDriver> {
    check(args, plan)?;
    let Some(at) = plan.switch.listen else {
        return Err(Failure::bad_input(
            "--io xdp needs the address that hosts send to, one of this machine's: give it with --listen",
        ));
    };
    let options = XdpOptions {
        size: size(plan, SwitchRole::Alone, Epoch(0), state.term()?),
        at,
        interfaces: args.interfaces.clone(),
        generic: args.generic,
        pins: pins(args, plan),
    };
    let driver = XdpDriver::new(&options, || state.next_epoch())?;
    if !args.output.quiet {
        for (interface, carried) in driver.attach_modes() {
            match carried {
                AttachMode::Native => {
                    print::to_stderr(format_args!("{interface}: its driver carries the program"));
                }
                AttachMode::Kept => {
                    print::to_stderr(format_args!(
                        "{interface}: the program is replaced; what waits in it stays"
                    ));
                }
                // The cost was logged before.
                AttachMode::Generic => {}
            }
        }
    }
    Ok(driver)
}

/// Prints what remains in the kernel after the process ends.
pub(super) fn print_what_stays(args: &SwitchArgs, plan: &Plan) {
    let pins = pins(args, plan);
    print::to_stderr(format_args!(
        "the program stays on its links: sluice switch --io xdp --detach --pins {} takes it off",
        pins.display()
    ));
}

/// Detaches the program from its links.
pub(super) fn detach(args: &SwitchArgs, plan: &Plan) -> Outcome<()> {
    if plan.switch.io != Io::Xdp {
        return Err(Failure::bad_input("--detach takes a switch off its links: add --io xdp"));
    }
    let pins = pins(args, plan);
    let was_there = sluice_kernel::xdp::detach(&pins)?;
    if !args.output.quiet {
        let what = if was_there { "taken off its links, with its maps" } else { "nothing was there" };
        print::to_stderr(format_args!("{}: {what}", pins.display()));
    }
    Ok(())
}

/// Refuses settings that only a socket supports.
fn check(args: &SwitchArgs, plan: &Plan) -> Outcome<()> {
    let no = |what: &str, next: &str| Err(Failure::bad_input(format!("--io xdp {what}: {next}")));
    if args.interfaces.is_empty() {
        return no("needs the interfaces that carry the program", "give each with --interface");
    }
    if !plan.program().traits().runs_in_kernel {
        return no(
            "schedules by rain only, without ranks, classes or labels",
            "leave the policy out, or take --io udp",
        );
    }
    // In namespaces of a rack's own, the links inject faults.
    let faults = plan.faults.as_ref().filter(|_| !args.guard.own_network);
    if faults.is_some_and(|rates| !rates.is_empty()) {
        return no("has no socket whose packets faults could hit", "leave faults out, or take --io udp");
    }
    if plan.switch.testbed_delays {
        return no("cannot hold packets for testbed_delays", "leave them out, or take --io udp");
    }
    Ok(())
}

/// The folder of the pins. A BPF file system allows no dots in names.
fn pins(args: &SwitchArgs, plan: &Plan) -> PathBuf {
    let plain = |letter: char| if letter.is_alphanumeric() || letter == '_' { letter } else { '-' };
    let name: String = plan.name.chars().map(plain).collect();
    args.pins.clone().unwrap_or_else(|| Path::new(BPF_FS).join("sluice").join(name))
}
