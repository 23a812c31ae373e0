//! Racks below a spine: their settings in a plan, which worker is in which rack, and what such a plan
//! cannot contain.

use sluice_control::Tier;
use sluice_switch::horus::FabricReading;
use sluice_switch::registry::Choice;

use super::parts::{Plan, RacksPlan, SlicePlan, WorkerPlan};
use super::runs_live::{FABRIC_POLICY, below_spines};
use super::target::Target;
use crate::flags::Io;

/// The most racks below live spines: if all others are gone, one has them all.
const RACKS_MAX: u16 = 64;
/// The most live spines.
const SPINES_MAX: u16 = 8;

/// A switch's role among those of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchRole {
    Alone,
    /// The spine with this number, from 1.
    Spine(u16),
    /// The leaf of this rack, from 1.
    Leaf(u16),
}

impl SwitchRole {
    /// The role of such a switch for its controller.
    pub const fn tier(self) -> Tier {
        match self {
            Self::Alone => Tier::Rack,
            Self::Spine(_) => Tier::Spine,
            Self::Leaf(_) => Tier::Leaf,
        }
    }

    /// The number of the spine, from 1; 0 for other switches.
    pub const fn spine(self) -> u16 {
        if let Self::Spine(spine) = self { spine } else { 0 }
    }
}

impl Plan {
    /// How its spine and leaves read Horus, if it has any; times are dilated.
    pub fn reading(&self) -> Option<FabricReading> {
        self.racks.and_then(|_| below_spines(&self.policy).ok().flatten())?.0.dilated(self.dilation)
    }

    /// The rack of a worker, from 1: from the plan, otherwise workers are distributed in turn. `None`
    /// without racks.
    pub fn rack_of(&self, worker: &WorkerPlan) -> Option<u16> {
        let count = self.racks?.count;
        let place = self.workers.iter().position(|known| known.name == worker.name)?;
        Some(worker.rack.unwrap_or((place % usize::from(count)) as u16 + 1))
    }

    /// The number of spines; 0 without racks.
    pub fn spines(&self) -> u16 {
        self.racks.map_or(0, |racks| racks.spines)
    }

    /// Whether leaves run on servers of their racks.
    pub fn leaves_are_on_servers(&self) -> bool {
        self.racks.is_some_and(|racks| racks.on_servers)
    }

    /// The spines of a rack (both numbered from 1) as the leaf gets them: first its own, then those that
    /// stand in. Spines have blocks of consecutive racks, as in simulations.
    pub fn spines_of(&self, rack: u16) -> Vec<u16> {
        let Some(racks) = self.racks else { return Vec::new() };
        let home = racks.spine_of(rack);
        (0..racks.spines).map(|turn| (home - 1 + turn) % racks.spines + 1).collect()
    }

    /// The racks of each spine, by their leaves' names at the controller above.
    pub fn pods(&self) -> Vec<Vec<String>> {
        let Some(racks) = self.racks else { return Vec::new() };
        let of = |spine| (1..=racks.count).filter(move |rack| racks.spine_of(*rack) == spine);
        (1..=racks.spines).map(|spine| of(spine).map(Self::leaf_name).collect()).collect()
    }

    /// The name of a rack's leaf at the controller above.
    pub fn leaf_name(rack: u16) -> String {
        format!("rack-{rack}")
    }
}

impl RacksPlan {
    /// The spine that a rack belongs to; both are numbered from 1.
    fn spine_of(self, rack: u16) -> u16 {
        (rack - 1) / self.count.div_ceil(self.spines) + 1
    }
}

/// Checks racks, policy and switch against each other.
pub(super) fn check(plan: &Plan) -> Result<(), String> {
    let policy = &plan.policy;
    let Some(RacksPlan { count, spines, .. }) = plan.racks else {
        return match (below_spines(policy)?, plan.workers.iter().find(|worker| worker.rack.is_some())) {
            (Some(_), _) => Err(format!(
                "`{policy}` schedules racks below a spine, and there are none: give `count` in [racks], or \
                 --racks"
            )),
            (None, Some(worker)) => Err(format!(
                "worker `{}` has a `rack`, and there are none: give `count` in [racks], or --racks",
                worker.name
            )),
            (None, None) => Ok(()),
        };
    };
    let Some((reading, leaf)) = below_spines(policy)? else {
        return Err(format!(
            "`{policy}` schedules one rack, and there are {count} below a spine: ask for {FABRIC_POLICY}, or \
             leave racks out"
        ));
    };
    if reading.dilated(plan.dilation).is_none() {
        return Err(format!(
            "`{policy}` keeps where tries went for longer than 500 s with a dilation of {}: give a shorter \
             affinity",
            plan.dilation
        ));
    }
    depths(plan, &leaf)?;
    sizes(count, spines)?;
    let switch = &plan.switch;
    let refused = [
        (switch.io == Io::Xdp, "the switch in the kernel is one rack's: leave io = \"xdp\" out, or racks"),
        (switch.io == Io::Bmv2, "the switch on BMv2 is one rack's: leave io = \"bmv2\" out, or racks"),
        (
            switch.testbed_delays,
            "no link between spine and leaf is held up: leave testbed_delays out, or racks",
        ),
    ];
    let refused = refused.iter().find(|(is_so, _)| *is_so);
    refused.map_or(Ok(()), |(_, why)| Err(format!("racks below a spine: {why}")))?;
    pools(plan, count)
}

/// A leaf that parks tokens computes its rack's load with the policy's number of tokens, so all workers
/// must have it.
fn depths(plan: &Plan, leaf: &Choice) -> Result<(), String> {
    let differs = |worker: &&WorkerPlan| worker.quota.is_some_and(|quota| quota != leaf.traits().quota);
    match plan.workers.iter().find(differs).filter(|_| leaf.traits().quota > 0) {
        Some(worker) => Err(format!(
            "worker `{}` has a quota of its own, and `{}` gives each {}: leave it out, or say it in the \
             policy",
            worker.name,
            plan.policy,
            leaf.traits().quota
        )),
        None => Ok(()),
    }
}

fn sizes(count: u16, spines: u16) -> Result<(), String> {
    if count == 0 {
        return Err("there are no racks below the spine: give 1 at least, or leave racks out".to_owned());
    }
    if count > RACKS_MAX {
        return Err(format!("{count} racks are more than the {RACKS_MAX} of live spines: take some out"));
    }
    match spines {
        0 => Err(format!("the leaves of {count} racks are linked to no spine: give spines = 1")),
        1..=SPINES_MAX => {
            let last = RacksPlan { count, spines, on_servers: false }.spine_of(count);
            if last == spines {
                return Ok(());
            }
            let each = count.div_ceil(spines);
            Err(format!(
                "{count} racks, {each} below each spine, leave spine {spines} without any: give spines = \
                 {last}"
            ))
        }
        _ => Err(format!(
            "{spines} spines are more than the {SPINES_MAX} that live racks have: give fewer, or simulate \
             {FABRIC_POLICY} on a testbed with more"
        )),
    }
}

/// Checks that each pool and each rack has workers.
fn pools(plan: &Plan, count: u16) -> Result<(), String> {
    if let Some(worker) =
        plan.workers.iter().find(|worker| worker.rack.is_some_and(|rack| !(1..=count).contains(&rack)))
    {
        let rack = worker.rack.unwrap_or_default();
        return Err(format!("worker `{}` is in rack {rack}, and racks are 1 to {count}", worker.name));
    }
    if plan.workers.is_empty() {
        return Ok(());
    }
    let has_none = |slice: &&SlicePlan| !plan.workers.iter().any(|worker| worker.is_of(&slice.name));
    if let Some(slice) = plan.slices.iter().find(has_none) {
        return Err(format!(
            "pool `{}` has no workers in any rack: add a [[worker]] for it, or take the slice out",
            slice.name
        ));
    }
    let is_empty = |rack: &u16| !plan.workers.iter().any(|worker| plan.rack_of(worker) == Some(*rack));
    match (1..=count).find(is_empty) {
        Some(rack) => Err(format!(
            "rack {rack} of {count} has no workers, so that its leaf weighs nothing and is linked to no \
             spine: add some, or take the rack out"
        )),
        None => Ok(()),
    }
}

/// Checks that an event may kill this leaf or spine.
pub(super) fn check_killed(plan: &Plan, target: &Target) -> Result<(), String> {
    let count = plan.racks.map_or(0, |racks| racks.count);
    match target {
        Target::Leaf(rack) if !(1..=count).contains(rack) => {
            Err(format!("an event kills leaf {rack}, and there are {count} racks below a spine"))
        }
        Target::Spine(spine) if !(1..=plan.spines()).contains(spine) => {
            Err(format!("an event kills spine {spine}, and there are {}", plan.spines()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fail::Outcome;
    use crate::plan::Changes;

    const PLAN: &str = "policy = \"dc-horus:idle-rack=random\"\n[racks]\ncount = 2\n\
        [[slice]]\nname = \"a\"\ntypes = [\"hold\"]\n\
        [[worker]]\nname = \"w\"\ncount = 3\nslice = \"a\"\nservice = \"hold\"\n\
        [[worker]]\nname = \"last\"\nrack = 2\nslice = \"a\"\nservice = \"hold\"\n";

    fn plan(text: &str) -> Outcome<Plan> {
        Plan::from_text("here", text)
    }

    fn refused(read: Outcome<Plan>, parts: &[&str]) {
        let said = read.expect_err("it cannot be").to_string();
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }

    #[test]
    fn workers_are_dealt_out_to_racks_or_say_where_they_are_and_what_is_written_reads_the_same() {
        let plan = plan(PLAN).expect("legal");
        let racks: Vec<_> = plan.workers.iter().map(|worker| plan.rack_of(worker)).collect();
        assert_eq!(racks, [Some(1), Some(2), Some(1), Some(2)]);
        assert_eq!(plan.program().name(), "horus");
        assert!(plan.reading().is_some());
        let again = Plan::from_text("here", &plan.to_toml().expect("text")).expect("legal");
        assert_eq!(again, plan);
    }

    #[test]
    fn workers_in_racks_of_rain_have_the_policys_tokens_and_nothing_is_written_ahead() {
        let text = PLAN.replace("dc-horus:idle-rack=random", "dc-rain:2,told=replies");
        let rain = plan(&format!("{text}[rdma]\nservers = 2\n")).expect("legal");
        assert_eq!(rain.program().to_string(), "rain:2,ranked");
        assert!(rain.workers.iter().all(|worker| rain.quota(worker) == 2));
        assert!(rain.servers().is_empty());
        let own = text.replace("name = \"last\"", "name = \"last\"\nquota = 3");
        refused(plan(&own), &["worker `last` has a quota", "gives each 2"]);
        assert!(plan(&own.replace("quota = 3", "quota = 2")).is_ok());
    }

    #[test]
    fn leaves_are_in_switches_or_on_servers_also_if_flags_change_how_many_there_are() {
        assert!(!plan(PLAN).expect("legal").leaves_are_on_servers());
        let there = plan(&PLAN.replace("count = 2\n", "count = 2\nleaf = \"server\"\n")).expect("legal");
        let again = Plan::from_text("here", &there.to_toml().expect("text")).expect("legal");
        assert_eq!(again.pods(), [["rack-1", "rack-2"]]);
        let other = again.with(&Changes { spines: Some(2), ..Changes::default() }).expect("legal");
        assert!(other.leaves_are_on_servers());
        assert_eq!(other.pods(), [["rack-1"], ["rack-2"]]);
    }

    #[test]
    fn racks_that_cannot_be_are_refused_by_name() {
        for (from, to, parts) in [
            ("count = 2", "count = 0", &["no racks below the spine"][..]),
            ("count = 2", "count = 65", &["65 racks are more than the 64 of live spines"]),
            ("count = 2", "count = 2\nspines = 0", &["linked to no spine", "spines = 1"]),
            ("count = 2", "count = 2\nspines = 9", &["9 spines are more than the 8"]),
            ("count = 2", "count = 4\nspines = 3", &["leave spine 3 without any", "spines = 2"]),
            ("count = 2", "count = 5", &["rack 4 of 5 has no workers", "weighs nothing"]),
            ("count = 2", "count = 2\nleaf = \"sever\"", &["`sever`", "server"]),
            ("rack = 2", "rack = 3", &["worker `last` is in rack 3", "1 to 2"]),
            ("[racks]\ncount = 2\n", "", &["schedules racks below a spine, and there are none"]),
            ("dc-horus:idle-rack=random", "rain:2", &["`rain:2` schedules one rack"]),
            (
                "dc-horus:idle-rack=random",
                "dc-rs-h",
                &["`dc-rs-h` runs in simulations only", "sluice sweep dc-rs-h"],
            ),
            ("dc-horus:idle-rack=random", "dc-horus:idle", &["means nothing to dc-horus"]),
            ("dc-horus:idle-rack=random", "dc-rain:9", &["`9` means nothing to dc-rain"]),
            ("dc-horus:idle-rack=random", "dc-horsu", &["did you mean `dc-horus`?"]),
            (
                "policy = \"dc-horus:idle-rack=random\"",
                "dilation = 100\npolicy = \"dc-horus:affinity=6s\"",
                &["affinity", "dilation of 100"],
            ),
            ("[racks]", "[switch]\nio = \"xdp\"\n[racks]", &["racks below a spine", "xdp"]),
            ("[racks]", "[switch]\ntestbed_delays = true\n[racks]", &["testbed_delays"]),
            (
                "[[slice]]",
                "[[slice]]\nname = \"b\"\ntypes = [\"spin\"]\n[[slice]]",
                &["pool `b` has no workers"],
            ),
        ] {
            assert!(PLAN.contains(from), "{from}");
            refused(plan(&PLAN.replacen(from, to, 1)), parts);
        }
        let event = "[load]\nrate = 1\nmix = \"hold=1\"\n[load.request.hold]\nbusy = \"1ms\"\n\
                     [[event]]\nat = \"1s\"\nkill = \"leaf 3\"\n";
        refused(plan(&format!("{PLAN}{event}")), &["kills leaf 3", "2 racks"]);
        let event = event.replace("leaf 3", "spine 2");
        refused(plan(&format!("{PLAN}{event}")), &["kills spine 2", "there are 1"]);
    }

    #[test]
    fn spines_have_blocks_of_racks_and_each_leaf_knows_the_others_behind_its_own() {
        let of = |count, spines| {
            let racks = Some(RacksPlan { count, spines, on_servers: false });
            let plan = Plan { racks, ..plan(PLAN).expect("legal") };
            (1..=count).map(|rack| plan.spines_of(rack)).collect::<Vec<_>>()
        };
        assert_eq!(of(3, 2), [[1, 2], [1, 2], [2, 1]]);
        assert_eq!(of(3, 3), [[1, 2, 3], [2, 3, 1], [3, 1, 2]]);
        assert_eq!(of(2, 1), [[1], [1]]);
    }

    #[test]
    fn flags_put_a_racks_workers_below_a_spine_with_the_policy_for_that() {
        let alone = PLAN.replace("[racks]\ncount = 2\n", "").replace("rack = 2\n", "");
        let alone = plan(&alone.replace("dc-horus:idle-rack=random", "rain:2")).expect("legal");
        let with = |racks, spines, policy: Option<&str>| {
            let policy = policy.map(str::to_owned);
            alone.clone().with(&Changes { policy, racks, spines, ..Changes::default() })
        };
        let below = with(Some(4), Some(1), None).expect("legal");
        assert_eq!(
            (below.policy.as_str(), below.racks),
            (FABRIC_POLICY, Some(RacksPlan { count: 4, spines: 1, on_servers: false }))
        );
        let asked = with(Some(2), None, Some("dc-horus:told=replies")).expect("legal");
        assert_eq!(asked.policy, "dc-horus:told=replies");
        refused(with(None, Some(1), None), &["--spines", "--racks"]);
        refused(with(Some(9), None, None), &["rack 5 of 9 has no workers"]);
        refused(with(Some(2), None, Some("rain:1")), &["`rain:1` schedules one rack"]);
        refused(with(None, None, Some("dc-horus")), &["and there are none"]);
        refused(with(Some(2), Some(0), None), &["linked to no spine"]);
    }
}
