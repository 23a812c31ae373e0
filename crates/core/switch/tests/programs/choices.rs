//! Tests of how programs are asked for.

use sluice_switch::early::Early;
use sluice_switch::registry::{Choice, ChoiceError};
use sluice_wire::tables::Feed;
use sluice_wire::{Epoch, Nanos};

fn choice(text: &str) -> Choice {
    Choice::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))
}

#[test]
fn a_choice_is_written_as_it_is_read() {
    for text in [
        "rain:1",
        "rain:2",
        "rain:adaptive",
        "rain:3,adaptive,theta=0.1,slowdown=20,replay",
        "rain:1,advise",
        "rain:1,advise,replay,stay",
        "rain:2,early=learned",
        "rain:2,ranked",
        "rain:2,patient",
        "rain:2,classes=2",
        "rain:2,labels",
        "rain:2,target=50us",
        "rain:2,queue=160",
        "racksched:2,tracked,bound=4",
        "rain:2,classes=4,target=50us",
        "rain:2,target=1500ns,patient,early",
        "rain:4,ranked,classes=4,sizes=30%,patient,early",
        "rain:3,adaptive,ranked,patient=8,early=10%",
        "r2p2:2",
        "r2p2:1,sample=2,step=1",
        "r2p2:2,rise=4",
        "racksched:2",
        "racksched:3,tracked",
        "draconis",
        "draconis:poll=1us",
        "draconis:poll=1500ns",
        "draconis:classes=4",
        "draconis:poll=1us,classes=2,as-published",
        "draconis:labels",
        "draconis:labels,swaps=8,node=5us,rack=1ms",
        "draconis:as-published",
        "draconis:classes=2,jobs=5",
        "draconis:labels,jobs=2",
        "pallas",
        "pallas:weights=2/1",
        "horus",
        "horus:resubmit=writes,idle=uncounted,as-published",
    ] {
        assert_eq!(choice(text).to_string(), text);
    }
    for (short, whole) in [
        ("rain", "rain:2"),
        ("rain:adaptive,2", "rain:adaptive"),
        ("rain:early,patient=16,ranked", "rain:2,ranked,patient,early"),
        ("r2p2", "r2p2:2"),
        ("racksched", "racksched:2"),
        ("racksched:tracked", "racksched:2,tracked"),
        ("draconis:poll=0ns", "draconis"),
        ("draconis:labels,swaps=16,node=10us,rack=20us", "draconis:labels"),
        ("draconis:poll=2000ns", "draconis:poll=2us"),
        ("pallas:weights=1", "pallas"),
        ("horus:resubmit=adds,idle=counted", "horus"),
    ] {
        assert_eq!(choice(short).to_string(), whole);
    }
    assert_eq!(Choice::default(), choice("rain"));
    assert_eq!("pallas".parse(), Ok(choice("pallas")));
}

#[test]
fn every_rain_without_ranks_runs_in_the_kernel_and_no_other_program_does() {
    for text in
        ["rain", "rain:1", "rain:2", "rain:adaptive", "rain:1,early", "rain:2,patient", "rain:2,target=50us"]
    {
        assert!(choice(text).traits().runs_in_kernel, "{text}");
    }
    for text in ["rain:2,ranked", "rain:2,classes=2", "r2p2:2", "racksched", "draconis", "pallas", "horus"] {
        assert!(!choice(text).traits().runs_in_kernel, "{text}");
    }
}

#[test]
fn an_unknown_program_names_the_nearest_and_all() {
    let why = |text| Choice::parse(text).unwrap_err().to_string();
    let known: Vec<&str> = Choice::all().map(|program| program.name).collect();
    let expected = format!("unknown program `rian`; did you mean `rain`? known: {}", known.join(", "));
    assert_eq!(why("rian:2"), expected);
    assert!(why("RackShed").contains("did you mean `racksched`?"), "{}", why("RackShed"));
    assert!(!why("xyzzy").contains("did you mean"), "{}", why("xyzzy"));
}

#[test]
fn an_argument_that_means_nothing_is_refused_with_what_may_stand_there() {
    for text in [
        "rain:0",
        "rain:9",
        "rain:",
        "rain:theta=0.1",
        "rain:adaptive,theta=2",
        "rain:adaptive,staying",
        "rain:two",
        "rain:2,",
        "rain:patient=0",
        "rain:patient=256",
        "rain:ranked=4",
        "rain:classes",
        "rain:classes=1",
        "rain:classes=3",
        "rain:classes=8",
        "rain:sizes=10",
        "rain:target=0us",
        "rain:target=2s",
        "rain:ranked,target=50us",
        "rain:labels,target=50us",
        "rain:queue=160,target=50us",
        "rain:queue=0",
        "racksched:bound=256",
        "r2p2:sample=9",
        "r2p2:step=0",
        "r2p2:rise=0",
        "r2p2:depth=2",
        "racksched:0",
        "racksched:track",
        "draconis:1us",
        "draconis:poll=1",
        "draconis:poll=-1us",
        "draconis:poll=5s",
        "draconis:classes=3",
        "draconis:jobs=1",
        "draconis:jobs=6",
        "draconis:swaps=8",
        "draconis:labels,swaps=0",
        "draconis:labels,swaps=64",
        "draconis:labels,classes=2",
        "draconis:labels,as-published",
        "draconis:labels,jobs=9",
        "server:0",
        "server:9",
        "server:1,decision=2s",
        "server:1,kernel",
        "pallas:weights=0",
        "pallas:weights=1/2/3/4/5/6/7/8/9",
        "pallas:2",
        "horus:2",
        "horus:resubmit=both",
        "horus:idle",
    ] {
        let why = Choice::parse(text).unwrap_err();
        let ChoiceError::Argument { program, may_be, .. } = &why else { panic!("{text}: {why}") };
        assert!(text.starts_with(program), "{why}");
        let mut written = may_be.split("; ").filter_map(|argument| argument.split(", ").next());
        assert!(written.all(|written| why.to_string().contains(written)), "{why}");
    }
}

#[test]
fn each_program_says_how_it_feeds_its_workers() {
    let of = |text| (choice(text).traits().feed, choice(text).traits().quota, choice(text).traits().fetches);
    assert_eq!(of("rain:3"), (Feed::TOKENS, 3, false));
    assert_eq!(of("rain:3,ranked"), (Feed::Tokens { ranked: true }, 3, false));
    assert_eq!(of("r2p2:2"), (Feed::TOKENS, 2, false));
    assert_eq!(of("racksched:2,tracked"), (Feed::Pushed { reports: true }, 0, false));
    assert_eq!(of("draconis:poll=1us"), (Feed::Polls { every: Nanos(1_000) }, 1, true));
    assert_eq!(of("pallas"), (Feed::Pushed { reports: false }, 0, false));
    assert_eq!(of("horus"), (Feed::Pushed { reports: true }, 0, false));
    for (text, quota) in [("r2p2:3", 3), ("r2p2:5", 5), ("r2p2:9", 9), ("server:1", 1), ("server:4", 4)] {
        assert_eq!(of(text), (Feed::TOKENS, quota, false), "{text}");
    }
}

#[test]
fn every_program_fits_the_chip_at_full_size_with_its_largest_settings() {
    let largest = ["rain:8,ranked,classes=4", "r2p2:8,sample=8", "racksched:8,tracked", "pallas:weights=16"];
    for name in Choice::all().map(|program| program.name) {
        let text = largest.into_iter().find(|text| text.starts_with(name)).unwrap_or(name);
        let program = choice(text).build(choice(text).traits().full_size(Epoch(1)));
        assert_eq!((program.layout().program(), choice(text).name()), (name, name));
        assert_eq!(program.shape().feed, choice(text).traits().feed);
        assert!(program.layout().totals().sram < 1.0);
    }
}

#[test]
fn each_program_tells_what_it_does_and_all_that_it_may_be_asked_for() {
    let rain = "adaptive advise theta= slowdown= replay stay ranked labels classes= sizes= patient early";
    let keys = [
        ("rain", rain),
        ("r2p2", "sample= step= rise="),
        ("racksched", "tracked"),
        ("draconis", "poll= classes= labels swaps= node= rack= jobs= as-published"),
        ("server", "bypass decision="),
        ("pallas", "weights="),
        ("horus", "resubmit=writes idle=uncounted as-published"),
    ];
    for (name, keys) in keys {
        let program = Choice::all().find(|program| program.name == name).expect(name);
        assert!(program.about.split(' ').count() > 5, "{name}: {}", program.about);
        for key in keys.split(' ') {
            assert!(program.arguments.contains(key), "{name}: {key} is not told");
        }
        assert_eq!(choice(program.example).name(), name);
    }
}

#[test]
fn a_choice_says_what_was_asked_for_and_what_was_not() {
    let plain = choice("rain:3");
    assert_eq!((plain.traits().adaptive, plain.traits().early, plain.traits().patience), (None, None, 0));
    assert_eq!((plain.traits().classes, plain.traits().size_error), (1, 0));
    let asked = choice("rain:3,adaptive,theta=0.1,classes=4,sizes=30%,patient=7,early=10%");
    assert_eq!((asked.traits().classes, asked.traits().size_error, asked.traits().patience), (4, 30, 7));
    assert_eq!(asked.traits().early, Some(Early::Told { error_percent: 10 }));
    let is_perfect = |text| choice(text).traits().early.map(Early::is_perfect);
    let asked_for = ["rain", "rain:early", "rain:early=10%", "rain:early=learned"];
    assert_eq!(asked_for.map(is_perfect), [None, Some(true), Some(false), Some(false)]);
    assert!(asked.traits().adaptive.is_some_and(|asked| asked.to_string() == "adaptive,theta=0.1"));
    for (text, hosts_choose, written) in
        [("rain", true, true), ("r2p2", false, false), ("pallas", false, false)]
    {
        let choice = choice(text);
        assert_eq!(
            (choice.traits().hosts_choose_depth, choice.traits().writes_ahead),
            (hosts_choose, written),
            "{text}"
        );
        assert_eq!(
            (choice.traits().classes, choice.traits().size_error, choice.traits().patience),
            (1, 0, 0),
            "{text}"
        );
        assert_eq!((choice.traits().adaptive, choice.traits().early), (None, None), "{text}");
    }
    let apart = ["draconis", "draconis:classes=2", "draconis:labels"].map(choice);
    assert_eq!(
        apart.map(|choice| (choice.traits().classes, choice.traits().kinds)),
        [(1, 1), (2, 1), (4, 4)]
    );
    assert_eq!(apart.map(|choice| choice.traits().limits_each_class), [false, true, false]);
    assert_eq!(apart.map(|choice| choice.traits().queues_per_poll), [1, 2, 1]);
    let jobs = ["draconis", "draconis:jobs=5", "rain:2", "server:1"].map(choice);
    assert_eq!(jobs.map(|choice| choice.traits().jobs), [1, 5, 1, 1]);
    let apart = ["rain", "rain:2,classes=2", "rain:2,labels"].map(choice);
    assert_eq!(
        apart.map(|choice| (choice.traits().classes, choice.traits().kinds)),
        [(1, 1), (2, 1), (4, 4)]
    );
    assert_eq!(apart.map(|choice| choice.traits().runs_in_kernel), [true, false, false]);
    let published = plain.traits().published.map(|paper| (paper.stages, paper.entries));
    assert_eq!((published, choice("pallas").traits().published), (Some((11, 131_072)), None));
}
