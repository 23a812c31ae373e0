//! `sluice policies`: lists every scheduler by name, with its arguments.

use serde::Serialize;
use serde_json::json;
use sluice_report::table::Table;
use sluice_sim::policy::Policy;
use sluice_support::fail::Outcome;
use sluice_support::plan::live_program;
use sluice_support::print;
use sluice_switch::registry::About;

use crate::args::PoliciesArgs;

#[derive(Serialize)]
struct ListedPolicy {
    name: &'static str,
    about: &'static str,
    arguments: Vec<&'static str>,
    example: &'static str,
    /// Whether real racks can run the policy; others exist only in the simulator.
    live: bool,
    /// Whether the policy spreads flows over a simulated fabric.
    flows: bool,
}

/// Prints all policies.
pub(crate) fn run(args: &PoliciesArgs) -> Outcome<()> {
    let all: Vec<ListedPolicy> = Policy::all().map(|about| listed(&about)).collect();
    if args.json {
        return print::line(json!({ "schema": "sluice.policies.v1", "policies": all }));
    }
    let mut table = Table::new(["policy", "what it does", "example"]);
    for one in &all {
        table.row([one.name.to_owned(), one.about.to_owned(), one.example.to_owned()]);
    }
    print::line(table)?;
    print::line("What may stand behind a name, after a colon and with commas between:")?;
    for one in all.iter().filter(|one| !one.arguments.is_empty()) {
        print::line(one.name)?;
        one.arguments.iter().try_for_each(|argument| print::line(format_args!("  {argument}")))?;
    }
    let only: Vec<&str> = all.iter().filter(|one| !one.live && !one.flows).map(|one| one.name).collect();
    print::line(format_args!(
        "\nWhat no real switch runs ({}) exists in the simulator only.",
        only.join(", ")
    ))
}

fn listed(about: &About) -> ListedPolicy {
    let arguments = about.arguments.split("; ").filter(|argument| !argument.is_empty());
    ListedPolicy {
        name: about.name,
        about: about.about,
        arguments: arguments.collect(),
        example: about.example,
        live: live_program(about.example).is_ok(),
        flows: Policy::parse(about.example).is_ok_and(|policy| policy.is_for_flows()),
    }
}
