//! One seed gives the same figures, now and later, on every machine.

use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

use sluice_fabric::{Conga, Drill, FabricSettings, LetFlow, PathBalancer, Scope};
use sluice_host::pacer::PacerSettings;
use sluice_wire::Nanos;

use crate::{fat_tree, hadoop, run};

#[test]
fn what_each_balancer_comes_to_is_what_it_came_to() {
    let topology = fat_tree(4);
    let letflow = LetFlow::new(Nanos(25_000));
    let pacer = PacerSettings { training_gaps: 1_000, ..PacerSettings::new(letflow.threshold) };
    let mut figures = String::new();
    for (name, balancer, pacer) in [
        ("ECMP", PathBalancer::Ecmp, None),
        ("LetFlow", PathBalancer::LetFlow(letflow), None),
        ("LetFlow at each hop", PathBalancer::LetFlow(LetFlow { scope: Scope::EachHop, ..letflow }), None),
        ("LetFlow, paced", PathBalancer::LetFlow(letflow), Some(pacer)),
        ("spraying", PathBalancer::Spray, None),
        ("DRILL", PathBalancer::Drill(Drill::default()), None),
        ("CONGA", PathBalancer::Conga(Conga::new(Nanos(25_000))), None),
    ] {
        let settings = FabricSettings { balancer, pacer, ..FabricSettings::default() };
        let run = run(&topology, &settings, hadoop(&topology, 2_000));
        let took: u64 = run.finished.iter().map(|flow| flow.took.0).sum();
        writeln!(figures, "{name}: {took} ns, {:#?}\n", run.counts).expect("memory takes it");
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fabric/balancers.txt");
    if env::var_os("BLESS").is_some() {
        fs::write(&path, &figures).expect("the repository is writable");
    }
    let golden = fs::read_to_string(&path).expect("it was written with BLESS=1");
    assert!(figures == golden, "{} says otherwise; BLESS=1 writes it anew:\n{figures}", path.display());
}
