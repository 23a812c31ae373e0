//! `sluice load`: sends a load to a running rack.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use sluice_net::ClientOptions;
use sluice_net::client::{SpineClients, deadline_default};
use sluice_netem::FaultPlan;
use sluice_rpc::Remote;
use sluice_services::rocks::RocksArgs;
use sluice_sim::Within;
use sluice_support::board::Board;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::load::{self, LoadRun, Source, Target};
use sluice_support::plan::{
    Arrivals, FAILED_MAX, LoadPlan, Plan, REFUSED_MAX, RateStages, STAGED, Threshold, Types,
};
use sluice_support::results::{self, Label, ResultPlaces, RunInputs, export, files};
use sluice_support::stop::Stop;
use sluice_support::units;
use sluice_support::view::{Heading, View, ViewContent};
use sluice_wire::TaskType;

use crate::args::{ArrivalsArg, LoadArgs};

/// The load, and the label of its result.
struct LabelledLoad {
    load: LoadPlan,
    label: Label,
    /// The meaning of the mix's type names, as far as it is known here.
    types: Types,
    keys: u64,
    out: Option<PathBuf>,
}

impl LabelledLoad {
    /// Replaces numbers in the mix and in the limits by names, and returns the types' numbers.
    fn name_types(&mut self) -> Result<Vec<TaskType>, String> {
        self.load.mix =
            self.types.named_mix(self.load.mix.clone()).map_err(|why| format!("the mix: {why}"))?;
        self.load.name_limits(&mut self.types).map_err(|why| format!("--within: {why}"))?;
        let numbers = self.load.mix.iter().filter_map(|(name, _)| self.types.number(name));
        Ok(numbers.map(TaskType).collect())
    }

    fn source(&self) -> Outcome<Source> {
        Source::new(&self.load, self.label.seed, self.keys)
    }
}

/// Sends the load, waits for its outcomes, and prints the result.
pub(crate) fn run(args: &LoadArgs) -> Outcome<()> {
    args.log.start_if_asked("load", &args.output);
    let stop = Stop::on_signals_and_hangup()?;
    let mut what = labelled_load(args)?;
    // A name that is not known here is asked for at the rack.
    let named = what.name_types();
    if named.is_ok() {
        what.load.name_thresholds(&mut what.types).map_err(Failure::bad_input)?;
    }
    let known =
        named.as_ref().ok().map(|types| what.source().map(|source| (types.clone(), source))).transpose()?;
    export::check(args.export.file())?;
    if let Some(out) = &what.out {
        files::make(out)?;
        files::clear(out);
    }
    let controllers = args.rack.remotes()?;
    let urls: Vec<&str> = controllers.iter().map(Remote::url).collect();
    let place = format!("controller at {}", urls.join(", "));
    let mut options = options(args, controllers[0].clone(), &what.label, what.load.retry)?;
    let _traced = args.traces.start("load", &mut options.traces)?;
    let client =
        SpineClients::connect(&options, &controllers, what.label.seed).map_err(|why| match &named {
            Ok(_) => Failure::from(why),
            Err(unknown) => {
                Failure::bad_input(format!("{unknown}; no rack was there to be asked for names: {why}"))
            }
        })?;
    let (types, source) = if let Some(known) = known {
        known
    } else {
        let names = client.type_names().into_iter().map(|(number, name)| (number.0, name));
        what.types = Types::of_rack(names);
        let numbers = what.name_types().map_err(Failure::bad_input)?;
        what.load.name_thresholds(&mut what.types).map_err(Failure::bad_input)?;
        (numbers, what.source()?)
    };
    let board = Board::default();
    let shown = ViewContent::fitting(args.output.quiet || args.output.json);
    let started = SystemTime::now();
    let heading = Heading { what: format!("sluice load: {}", what.load.arrivals), place };
    let view = View::start(shown, heading, board.clone(), stop.clone());
    let mut target = Target::new(client, types, what.load.budgets_of_mix());
    board.begin("the load began");
    let LoadRun { tally, ended } = load::run(&what.load, source, &mut target, &board, &stop);
    drop(view);
    let closed = target.into_client().close().map(drop).map_err(Failure::from);
    let run = RunInputs {
        label: what.label,
        load: &what.load,
        aborted: stop.is_asked() || ended.is_err(),
        abort_reason: ended.as_ref().err().map(ToString::to_string),
        events: Vec::new(),
        started,
        slices: Vec::new(),
        leaf_trips: Vec::new(),
        depths: Vec::new(),
        decisions: Vec::new(),
    };
    let ended = ended.and(closed);
    if tally.everything().replied == 0 && ended.is_err() {
        return ended;
    }
    let (folder, json) = (what.out.as_deref(), args.output.json);
    let places = ResultPlaces { folder, markdown: args.export.file(), json };
    results::tell(&run.result(&tally), &tally, places, ended)
}

/// The plan's load, or the default one, with the flags' changes.
fn labelled_load(args: &LoadArgs) -> Outcome<LabelledLoad> {
    let plan = args.plan.as_deref().map(|path| Plan::load(Some(path))).transpose()?;
    let mut types = plan.as_ref().map_or_else(Types::built_in, |plan| plan.types.clone());
    let given = plan.as_ref().and_then(|plan| plan.load.clone());
    let dilation = args.dilate.or(plan.as_ref().map(|plan| plan.dilation)).unwrap_or(1);
    let mix = match (&args.mix, &given) {
        (Some(text), _) => units::mix(text).map_err(|why| Failure::bad_input(format!("the mix: {why}")))?,
        (None, Some(load)) => load.mix.clone(),
        (None, None) => {
            return Err(Failure::bad_input(
                "what shall it send? give --mix, such as get=0.9,scan=0.1, or a plan",
            ));
        }
    };
    let arrivals = arrivals(args, given.as_ref())?;
    let staged = arrivals.stages().map(RateStages::length);
    if staged.is_some() && args.length.is_some() {
        return Err(Failure::bad_input(STAGED));
    }
    let mut load = LoadPlan {
        arrivals,
        mix,
        requests: given.as_ref().map_or_else(Vec::new, |load| load.requests.clone()),
        budgets: given.as_ref().map_or_else(Vec::new, |load| load.budgets.clone()),
        within: args.within.clone().or_else(|| planned_limits(args, given.as_ref())),
        warm_up: or(args.warm_up, given.as_ref().map(|load| load.warm_up), Duration::from_secs(1)),
        length: or(args.length.or(staged), given.as_ref().map(|load| load.length), Duration::from_secs(10)),
        deadline: or(args.deadline, given.as_ref().map(|load| load.deadline), deadline_default(dilation)),
        retry: args.retry.or(given.as_ref().map(|load| load.retry)).unwrap_or(true),
        behind_max: given.as_ref().map_or(Duration::from_millis(10), |load| load.behind_max),
        failed_max: given.as_ref().map_or(FAILED_MAX, |load| load.failed_max),
        refused_max: given.as_ref().map_or(REFUSED_MAX, |load| load.refused_max),
        thresholds: planned_thresholds(args, given.as_ref()),
    };
    load.bound(&args.thresholds, &mut types);
    if let Some(budget) = args.budget {
        load.limit(Duration::from_nanos(budget.0));
    }
    for (flag, span) in [("--length", load.length), ("--deadline", load.deadline)] {
        if span.is_zero() {
            return Err(Failure::bad_input(format!("{flag} is zero; give tasks some time, such as 1s")));
        }
    }
    let mut label = plan.as_ref().map_or_else(plain_label, Label::of);
    label.workers = None;
    label.seed = args.seed.unwrap_or(label.seed);
    label.dilation = args.dilate.unwrap_or(label.dilation);
    label.faults = args.faults.clone().or(label.faults);
    // Requests name keys below this number.
    let keys = plan.map_or(RocksArgs::default().keys, |plan| plan.rocksdb.keys);
    Ok(LabelledLoad { load, label, types, keys, out: args.out.clone() })
}

/// The plan's limits; those of single types belong to the plan's own mix.
fn planned_limits(args: &LoadArgs, given: Option<&LoadPlan>) -> Option<Within> {
    let fits = |within: &Within| args.mix.is_none() || matches!(within, Within::All(_));
    given.and_then(|load| load.within.clone()).filter(fits)
}

/// The plan's thresholds; those of single types belong to the plan's own mix.
fn planned_thresholds(args: &LoadArgs, given: Option<&LoadPlan>) -> Vec<Threshold> {
    let of_plan = given.into_iter().flat_map(|load| &load.thresholds);
    of_plan.filter(|threshold| args.mix.is_none() || threshold.class.is_none()).cloned().collect()
}

fn or(flag: Option<Duration>, plan: Option<Duration>, default: Duration) -> Duration {
    flag.or(plan).unwrap_or(default)
}

/// When tasks come: as the flags say, else as the plan does. `--arrivals` changes the distances at any rate.
fn arrivals(args: &LoadArgs, given: Option<&LoadPlan>) -> Outcome<Arrivals> {
    let wanted = match (&args.stages, &args.trace, args.rate, given) {
        (Some(stages), ..) => Arrivals::Stages(stages.clone()),
        (None, Some(path), ..) => Arrivals::Trace(path.clone()),
        (None, None, Some(rate), Some(LoadPlan { arrivals: Arrivals::Constant(_), .. })) => {
            Arrivals::Constant(rate)
        }
        (None, None, Some(rate), _) => Arrivals::Poisson(rate),
        (None, None, None, Some(load)) => load.arrivals.clone(),
        (None, None, None, None) => {
            return Err(Failure::bad_input(
                "how much shall it send? give --rate, --stages, --trace, or a plan with a [load]",
            ));
        }
    };
    let impossible = match (args.arrivals, wanted) {
        (Some(ArrivalsArg::Constant), Arrivals::Poisson(rate)) => return Ok(Arrivals::Constant(rate)),
        (Some(ArrivalsArg::Poisson), Arrivals::Constant(rate)) => return Ok(Arrivals::Poisson(rate)),
        (Some(ArrivalsArg::Constant), Arrivals::Stages(_)) => {
            "the tasks of stages come at random moments: leave --arrivals constant out"
        }
        (Some(_), Arrivals::Trace(_)) => "a trace says when its tasks come: leave --arrivals out",
        (_, wanted) => return Ok(wanted),
    };
    Err(Failure::bad_input(impossible))
}

fn plain_label() -> Label {
    Label {
        name: "load".to_owned(),
        policy: "rain".to_owned(),
        seed: 1,
        dilation: 1,
        io: None,
        faults: None,
        workers: None,
    }
}

fn options(args: &LoadArgs, controller: Remote, label: &Label, retry: bool) -> Outcome<ClientOptions> {
    let faults = label.faults.as_ref().map(|text| text.parse()).transpose()?;
    Ok(ClientOptions {
        retry,
        dilation: label.dilation,
        pin: args.pin,
        patience: args.patience,
        faults: faults.map_or_else(FaultPlan::none, |rates| FaultPlan::both(label.seed, "load", rates)),
        listen: args.listen,
        name: controller.own_name("load"),
        ..ClientOptions::of(controller)
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Command, Sluice};

    const PLAN: &str = "[[slice]]\nname = \"a\"\ntypes = [\"hold\"]\n\
        [[worker]]\nname = \"w\"\nslice = \"a\"\nservice = \"hold\"\n\
        [load]\nmix = \"hold=1\"\n";

    /// When the tasks of `sluice load` come with these flags and a plan's load with these keys.
    fn come(flags: &[&str], planned: &str) -> Result<Arrivals, String> {
        let line = ["sluice", "load", "--controller", "127.0.0.1:1"];
        let Command::Load(args) = Sluice::try_parse_from([&line[..], flags].concat()).expect("legal").command
        else {
            panic!("another command");
        };
        let plan = Plan::from_text("here", &format!("{PLAN}{planned}\n")).expect("legal");
        arrivals(&args, plan.load.as_ref()).map_err(|why| why.to_string())
    }

    #[test]
    fn flags_change_a_plans_rate_and_its_distances_each_alone() {
        let (even, random) = ("rate = 300\narrivals = \"constant\"", "rate = 300");
        for (flags, planned, wanted) in [
            (&[][..], even, Arrivals::Constant(300.0)),
            (&["--rate", "5"], even, Arrivals::Constant(5.0)),
            (&["--arrivals", "poisson"], even, Arrivals::Poisson(300.0)),
            (&["--arrivals", "constant"], random, Arrivals::Constant(300.0)),
            (&["--rate", "5"], random, Arrivals::Poisson(5.0)),
            (&["--trace", "a.csv"], random, Arrivals::Trace("a.csv".into())),
        ] {
            assert_eq!(come(flags, planned), Ok(wanted), "{flags:?}, {planned}");
        }
    }

    #[test]
    fn distances_that_cannot_be_had_are_refused() {
        for (flags, planned) in [
            (&["--stages", "1k:1s", "--arrivals", "constant"][..], "rate = 300"),
            (&["--arrivals", "constant"], "stages = \"1k:1s\""),
            (&["--trace", "a.csv", "--arrivals", "poisson"], "rate = 300"),
        ] {
            let why = come(flags, planned).expect_err("refused");
            assert!(why.contains("leave --arrivals"), "{why}");
        }
    }
}
