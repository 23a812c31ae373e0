//! HF²T's comparison (§5): ECMP, LetFlow, and LetFlow with paced hosts, with and without α, on its fat-tree
//! at 70 % load: `hf2t web-search|hadoop MILLISECONDS REPLICATIONS`. Prints for each scheme the slowdown of
//! flows against an idle fabric, the change against LetFlow averaged over sizes, flowlets, pauses, and how
//! long flows paused.

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

use sluice_fabric::{
    Fabric, FabricCounts, FabricSettings, FlowSizes, FlowSlowdowns, FlowSpec, FrameSizes, HostId, Idle,
    LetFlow, LinkSpeed, PathBalancer, Topology, Traffic,
};
use sluice_host::pacer::PacerSettings;
use sluice_wire::Nanos;

const LOAD: f64 = 0.7;
const SEED: u64 = 1;
/// Flows that begin earlier are not counted: hosts still learn their gaps, and the fabric fills.
const WARM: Nanos = Nanos(2_000_000);
/// Student's t at 95 % for 1 to 9 degrees of freedom.
const STUDENT: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let said = match Asked::read(&arguments) {
        Some(asked) => asked.compare().and_then(|table| Ok(io::stdout().write_all(table.as_bytes())?)),
        None => Err("hf2t needs flows, milliseconds and 2 to 10 replications: hf2t web-search 10 3".into()),
    };
    if let Err(why) = said {
        writeln!(io::stderr(), "{why}").ok();
        return ExitCode::from(2);
    }
    ExitCode::SUCCESS
}

/// The arguments.
struct Asked {
    sizes: FlowSizes,
    span: Nanos,
    replications: u32,
}

/// The result of one run.
struct Outcome {
    slowdowns: FlowSlowdowns,
    counts: FabricCounts,
    /// How many gaps there were, and the shares of gaps of at least one, two and three round trips.
    gaps: u64,
    shares: [f64; 3],
}

impl Asked {
    fn read(arguments: &[String]) -> Option<Self> {
        let [sizes, span, replications] = arguments else { return None };
        let sizes = match sizes.as_str() {
            "web-search" => FlowSizes::web_search(),
            "hadoop" => FlowSizes::hadoop(),
            _ => return None,
        };
        let replications = replications.parse().ok().filter(|count| (2..=10).contains(count))?;
        Some(Self { sizes, span: Nanos::from_millis(span.parse().ok()?), replications })
    }

    fn compare(&self) -> Result<String, Box<dyn Error>> {
        let topology = Topology::fat_tree(4, LinkSpeed::default())?;
        let idle = Idle::new(&topology, FrameSizes::default())?;
        let round_trip =
            idle.flow_time(&FlowSpec { at: Nanos(0), from: HostId(0), to: HostId(15), bytes: 1_000 });
        let letflow = LetFlow::new(round_trip.times(2));
        let pacer = PacerSettings::new(letflow.threshold);
        let schemes = [
            ("ECMP", PathBalancer::Ecmp, None),
            ("LetFlow", PathBalancer::LetFlow(letflow), None),
            (
                "paced, without alpha",
                PathBalancer::LetFlow(letflow),
                Some(PacerSettings { alpha: None, ..pacer }),
            ),
            ("paced", PathBalancer::LetFlow(letflow), Some(pacer)),
        ];
        let mut outcomes = Vec::new();
        for (_, balancer, pacer) in schemes {
            let settings = FabricSettings { balancer, pacer, ..FabricSettings::default() };
            outcomes.push(self.replicate(&topology, &idle, &settings, round_trip)?);
        }
        let mut table = format!(
            "Round trip {} ns, threshold {} ns; change of the slowdown against LetFlow, averaged over \
             sizes\n\n\
             | scheme | median, % | p99, % | flowlets | pauses | holds | early | gaps | >= 1 RTT, % | 2 \
             | 3 |\n\
             |---|---|---|---|---|---|---|---|---|---|---|\n",
            round_trip.0, letflow.threshold.0
        );
        for ((name, ..), of) in schemes.iter().zip(&outcomes) {
            table += &row(name, of, &outcomes[1]);
        }
        Ok(table)
    }

    fn replicate(
        &self,
        topology: &Topology,
        idle: &Idle,
        settings: &FabricSettings,
        round_trip: Nanos,
    ) -> Result<Vec<Outcome>, Box<dyn Error>> {
        let run = |replication| self.run(topology, idle, settings, round_trip, replication);
        let outcomes = thread::scope(|scope| {
            let runs: Vec<_> = (0..self.replications).map(|at| scope.spawn(move || run(at))).collect();
            let joined = runs.into_iter().map(|run| run.join().expect("it does not panic"));
            joined.collect::<Result<Vec<_>, _>>()
        });
        Ok(outcomes?)
    }

    fn run(
        &self,
        topology: &Topology,
        idle: &Idle,
        settings: &FabricSettings,
        round_trip: Nanos,
        replication: u32,
    ) -> Result<Outcome, sluice_fabric::FabricError> {
        let traffic = Traffic { sizes: self.sizes.clone(), load: LOAD, flows: u64::MAX };
        let until = WARM + self.span;
        let flows = traffic.arrivals(topology, SEED, replication)?.take_while(|flow| flow.at < until);
        let mut slowdowns = FlowSlowdowns::new(&self.sizes.steps().collect::<Vec<_>>());
        let mut fabric = Fabric::new(topology, settings, SEED, replication)?;
        fabric.run(flows, |finished| {
            if finished.flow.at >= WARM {
                slowdowns.record(&finished, idle.flow_time(&finished.flow));
            }
        })?;
        let gaps = fabric.gaps();
        let shares = [1, 2, 3].map(|times| gaps.share_from(round_trip.times(times)));
        Ok(Outcome { slowdowns, counts: fabric.counts(), gaps: gaps.count(), shares })
    }
}

/// The line of a scheme: means of the replications, and half intervals of the changes.
fn row(name: &str, of: &[Outcome], letflow: &[Outcome]) -> String {
    let pairs = || of.iter().zip(letflow).map(|(of, letflow)| changes(&of.slowdowns, &letflow.slowdowns));
    let [median, p99] = [0, 1].map(|at| interval(&pairs().map(|change| change[at]).collect::<Vec<_>>()));
    let mean = |number: &dyn Fn(&Outcome) -> f64| of.iter().map(number).sum::<f64>() / of.len() as f64;
    let share = |at: usize| 100.0 * mean(&|of| of.shares[at]);
    format!(
        "| {name} | {median} | {p99} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.3} | {:.3} | {:.3} |\n",
        mean(&|of| of.counts.flowlets.flowlets() as f64),
        mean(&|of| of.counts.pauses as f64),
        mean(&|of| of.counts.pacers.holds as f64),
        mean(&|of| of.counts.hosts.early as f64),
        mean(&|of| of.gaps as f64),
        share(0),
        share(1),
        share(2),
    )
}

/// By how many percent the median and the p99 differ, averaged over the sizes that both have.
fn changes(of: &FlowSlowdowns, letflow: &FlowSlowdowns) -> [f64; 2] {
    let (of, letflow) = (of.quantiles([0.5, 0.99]), letflow.quantiles([0.5, 0.99]));
    let (mut sums, mut sizes) = ([0.0; 2], 0.0);
    for ((_, flows, of), (_, flows_of_letflow, letflow)) in of.iter().zip(&letflow) {
        if *flows.min(flows_of_letflow) > 0 {
            sums = [0, 1].map(|at: usize| sums[at] + 100.0 * (of[at] / letflow[at] - 1.0));
            sizes += 1.0;
        }
    }
    sums.map(|sum| sum / f64::max(sizes, 1.0))
}

/// A mean and half its 95 % interval.
fn interval(numbers: &[f64]) -> String {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let variance = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / (count - 1.0);
    format!("{mean:.2} ± {:.2}", STUDENT[numbers.len() - 2] * (variance / count).sqrt())
}
