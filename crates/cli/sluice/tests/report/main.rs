//! Reports of studies: the contents of page, CSV and terminal output, and that no text from a file becomes
//! markup.

#[path = "../common/mod.rs"]
mod common;
mod diff;
mod exports;
mod fixture;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use common::{hold_to_schema, sluice, stderr, stdout};
use sluice_outcome::study::StudyOutcome;

struct Report {
    page: String,
    csv: String,
    text: String,
}

/// Writes the report of a study into a folder that stays, so that it can be looked at.
fn report(study: &StudyOutcome, name: &str) -> Report {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report").join(name);
    fs::create_dir_all(&folder).expect("a folder");
    let json = serde_json::to_value(study).expect("JSON");
    hold_to_schema(&json);
    fs::write(folder.join("study.json"), json.to_string()).expect("written");
    let output = sluice(&folder, &["report", "study.json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let read = |file: &str| fs::read_to_string(folder.join(file)).expect(file);
    Report { page: read("report.html"), csv: read("study.csv"), text: stdout(&output) }
}

/// The elements of a page that are opened but not closed; elements without contents are ignored.
fn left_open(page: &str) -> Vec<String> {
    let mut open = Vec::new();
    for part in page.split('<').skip(1).filter(|part| !part.starts_with('!')) {
        let tag = part.split('>').next().expect("split gives one");
        let name = tag.split_whitespace().next().expect("a name");
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "in {part}");
        } else if !tag.ends_with('/') {
            open.push(name.to_owned());
        }
    }
    open
}

#[test]
fn a_page_is_whole_and_asks_nobody_for_anything() {
    for (study, name) in
        [(fixture::one_class(), "one"), (fixture::two_classes(), "two"), (fixture::live(), "live")]
    {
        let page = report(&study, name).page;
        // Its own modules stand behind all else.
        let (shown, modules) = page.split_once("<script").expect("modules");
        for asks in ["http:", "https:", " src=", "@import", "url(", "<link"] {
            assert!(!shown.contains(asks), "{name}: {asks}");
        }
        for asks in ["https:", "import", "fetch(", "eval(", "innerHTML", ".src"] {
            assert!(!modules.contains(asks), "{name}: {asks}");
        }
        assert!(page.split(" href=").skip(1).all(|link| link.starts_with("\"#")), "{name}");
        assert!(page.contains("default-src &#39;none&#39;") && page.contains("<html lang=\"en\">"), "{name}");
        assert_eq!(left_open(shown), ["html", "body"], "{name}");
        assert!(!page.contains("NaN") && !page.contains("inf "), "{name}");
    }
}

#[test]
fn a_page_says_who_ran_what_and_what_came_of_it() {
    let page = report(&fixture::one_class(), "says").page;
    for says in [
        "seed 1 · sluice 0.1.0 (0123456789ab)",
        "5 × 1,000,000 tasks a point, warm-up: 100,000 tasks",
        "<pre>sluice reproduce rain-6b --seed 1</pre>",
        "agrees in shape</span>",
        "set-up not known</span>",
        "<pre>sluice sim draconis --workload exp:10us --rate 2240000 --large 0 --seed 1</pre>",
        "92.1 µs</span> <small>91.2–93.0</small>",
        "the paper’s R2P2-SW",
        "not sustained from 2,400 kRPS",
        "exceeds it at every rate tried",
        "<td class=\"heat-0\"><b>9.00 µs</b> <small>8.73–9.27</small></td>",
    ] {
        assert!(page.contains(says), "{says}");
    }
    let live = report(&fixture::live(), "live-says").page;
    for says in [
        "Dilated: the live rack ran 100 times slower",
        "the study still runs, or was stopped early",
        "real packets",
        "10.0 % allowed",
        "0 of 1 pairs",
    ] {
        assert!(live.contains(says), "{says}");
    }
}

#[test]
fn nothing_from_a_file_becomes_markup() {
    let evil = "\"><img src=x onerror=alert(1)>&lt;'";
    let text = serde_json::to_string(&fixture::two_classes()).expect("JSON");
    let mut study: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    spoil(&mut study, evil);
    let study: StudyOutcome = serde_json::from_value(study).expect("all texts are free");
    let Report { page, csv, .. } = report(&study, "evil");
    assert!(page.contains("onerror"), "it is shown");
    assert!(!page.contains("<img"));
    let (shown, _) = page.split_once("<script").expect("modules");
    assert_eq!(left_open(shown), ["html", "body"]);
    let quoted = format!("\"{}rain-7\",", evil.replace('"', "\"\""));
    assert!(csv.lines().nth(1).is_some_and(|line| line.starts_with(&quoted)), "{csv:.200}");
}

/// Puts `with` before every text, except texts with a fixed set of values.
fn spoil(value: &mut serde_json::Value, with: &str) {
    match value {
        serde_json::Value::Object(fields) => fields
            .iter_mut()
            .filter(|(name, _)| !["schema", "method", "source", "measure", "part"].contains(&name.as_str()))
            .for_each(|(_, value)| spoil(value, with)),
        serde_json::Value::Array(values) => values.iter_mut().for_each(|value| spoil(value, with)),
        serde_json::Value::String(text) => *text = with.to_owned() + text,
        _ => {}
    }
}

#[test]
fn a_csv_has_a_row_for_each_point_class_and_metric() {
    let study = fixture::two_classes();
    let csv = report(&study, "csv").csv;
    let mut lines = csv.lines();
    let columns = lines.next().expect("headings").split(',').count();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == columns), "no field here needs quotes");
    let points: usize = study.panels[0].series.iter().map(|series| series.points.len()).sum();
    let p99 = |row: &&Vec<&str>| row[columns - 5] == "latency_ns_p99";
    assert_eq!(rows.iter().filter(p99).count(), 3 * points, "all, get and scan");
    let different: BTreeSet<String> = rows.iter().map(|row| row[..columns - 4].join(",")).collect();
    assert_eq!(different.len(), rows.len(), "no row stands twice");
}

#[test]
fn the_scheduling_delay_stands_in_table_csv_and_page() {
    let study = fixture::one_class();
    let Report { page, csv, text } = report(&study, "delay");
    let point = &study.panels[0].series[0].points[0];
    let delay = point.overall.scheduling_delay_ns.p99.value;
    let latency = point.overall.latency_ns.p99.value;
    assert!((latency - delay).abs() > 1.0, "so that one is not taken for the other");
    assert!(csv.contains(&format!(",all,scheduling_delay_ns_p99,{delay},")), "{delay} in\n{csv}");
    let pictures = page.split("aria-label=").skip(1);
    assert!(pictures.into_iter().any(|of| of.starts_with("\"p99 scheduling delay, ")), "no picture of it");
    let headings = text.lines().find(|line| line.contains("delay p99")).expect("a column");
    assert!(headings.contains("slowdown p99"), "{headings}");
}

#[test]
fn the_terminal_shows_points_verdicts_and_causes() {
    let text = report(&fixture::one_class(), "text").text;
    for says in [
        "NO: backlog grows by 41,200 tasks/s",
        "DIFFERS: Draconis’ p99",
        "paper 35.0 us, here 92.1 us (91.2..93.0); its p99",
        "      sluice sim draconis --workload exp:10us",
        "p99 slowdown at most 10.0",
        "Mean of a SCAN, by bytes and keys",
        "1,024  14.0 us (13.6..14.4)",
    ] {
        assert!(text.contains(says), "{says} in\n{text}");
    }
    assert!(!text.contains('µ'), "us, as in all our tables: {text}");
}

#[test]
fn what_a_policy_costs_stands_beside_what_it_buys_at_the_highest_rate_that_two_keep_up() {
    let Report { page, text, .. } = report(&fixture::two_classes(), "prices");
    let table =
        page.split("price and gain").nth(1).expect("a table").split("</table>").next().expect("its end");
    for says in ["<th scope=\"col\">passes", "of get", "of scan", "workers&#39; idle share", "not kept up"] {
        assert!(table.contains(says), "{says} in {table}");
    }
    for says in [&page, &text] {
        assert!(says.contains("Nanoseconds and instructions a task are measured by make bench"), "{says}");
    }
    // Draconis pays with its polls.
    assert!(
        table.contains("draconis</th><td>5.00</td>") && table.contains("rain:2</th><td>3.00</td>"),
        "{table}"
    );
    let prices = text.split("What each costs a task at 1,698 kRPS").nth(1).expect("the highest but none");
    let draconis = prices.lines().find(|line| line.starts_with("draconis")).expect("a row");
    assert!(draconis.contains("5.00") && draconis.contains("not kept up"), "{prices}");
}

#[test]
fn a_number_that_no_paper_has_is_marked_as_ours() {
    let mut study = fixture::one_class();
    let differs = study.expectations.iter_mut().find(|row| row.id == "p99-draconis").expect("a row");
    differs.ours = true;
    let stated = &mut study.panels[0].paper[0];
    stated.ours = true;
    let label = stated.label.clone();
    let Report { page, text, .. } = report(&study, "ours");
    assert!(text.contains("ours 35.0 us, here 92.1 us"), "{text}");
    assert!(page.contains("35.0 µs</span> <small>ours</small>"), "{page}");
    assert_eq!(page.matches("<small>ours</small>").count(), 1, "the others are the paper's");
    assert!(page.contains(&format!("<b>our {label}</b>")), "in the legend");
    assert!(page.contains(&format!("<title>our {label}: ")), "in the picture");
    assert!(!page.contains(&format!("the paper’s {label}<")), "nowhere is it the paper's");
}

#[test]
fn where_passes_are_not_counted_there_is_no_price() {
    let mut study = fixture::one_class();
    let points = study.panels[0].series.iter_mut().flat_map(|series| &mut series.points);
    points.for_each(|point| point.counts.passes = 0);
    let Report { page, text, .. } = report(&study, "no-prices");
    assert!(!page.contains("price and gain") && !text.contains("What each costs"), "{text}");
}

#[test]
fn where_policies_stand_is_told_with_the_best_first() {
    let page = sluice_report::standings(&fixture::one_class(), |policy| (policy == "rain:2").then_some(12));
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows.len(), 20, "ten policies, in the overview and on the one workload:\n{page}");
    assert_eq!(rows[0], "| `rain:2` | 91.0 | 12 |", "the only one whose highest rate was found");
    assert!(rows[1..10].contains(&"| `pallas` | – | – |"), "{page}");
    assert!(rows[10].starts_with("| `rain:2` | ") && rows[10].contains(" | 91.0 % | "), "{page}");
    let one = rows.iter().rfind(|row| row.starts_with("| `rain:1`")).expect("its row");
    assert!(one.contains("| not kept up |"), "it saturates at 73.5 %: {one}");
}

#[test]
fn what_is_no_study_is_refused_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("study.json");
    for (content, place) in
        [("{\n \"schema\": 7}", ":2:"), ("", ":1:0"), ("{\"schema\":\"sluice.study.v1\"}", ":1:")]
    {
        fs::write(&path, content).expect("written");
        let output = sluice(folder.path(), &["report", "study.json"]);
        assert_eq!(output.status.code(), Some(2));
        let said = stderr(&output);
        assert!(said.contains(&format!("study.json{place}")) && said.lines().count() == 1, "{said}");
    }
    let output = sluice(folder.path(), &["report", "nowhere.json"]);
    assert_eq!(output.status.code(), Some(2));
}

/// The folder of a study.
fn folder_with(study: &StudyOutcome) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let json = serde_json::to_string(study).expect("JSON");
    fs::write(folder.path().join("study.json"), json).expect("written");
    folder
}

#[test]
fn a_figure_is_written_beside_its_study_or_where_it_is_wanted() {
    let folder = folder_with(&fixture::one_class());
    let run = |args: &[&str]| {
        let output = sluice(folder.path(), &[&["report", "study.json"], args].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    assert_eq!(run(&["--figure", "p99", "--size", "84mm"]), "p99.svg\np99.pdf\n");
    assert_eq!(run(&["--figure", "p99", "--only", "rain:2,central", "--out", "a/b.pdf"]), "a/b.pdf\n");
    assert!(fs::read(folder.path().join("a/b.pdf")).expect("read").starts_with(b"%PDF"));
    let named = ["--label", "rain:2=Rain", "--label", "central=an ideal queue", "--out", "named.svg"];
    run(&[&["--figure", "p99"], &named[..]].concat());
    let named = fs::read_to_string(folder.path().join("named.svg")).expect("read");
    assert!(named.contains(">Rain</text>") && named.contains(">an ideal queue</text>"), "{named}");
    let of_folder = sluice(folder.path(), &["report", ".", "--figure", "p99"]);
    assert_eq!(stdout(&of_folder), "./p99.svg\n./p99.pdf\n", "{}", stderr(&of_folder));
    let names = run(&["--figure", "list"]);
    assert!(names.lines().count() > 20 && names.starts_with("p99\n"), "{names}");
    let all = run(&["--figure", "all", "--size", "6in", "--slo", "100us", "--out", "all"]);
    assert_eq!(all.lines().count(), 2 * names.lines().count());
    assert!(!folder.path().join("report.html").exists(), "a figure is not a page");
    let low = ["report", "study.json", "--figure", "all", "--size", "3.3inx1.2in", "--out", "low"];
    let low = sluice(folder.path(), &low);
    assert_eq!(
        (low.status.code(), stdout(&low).as_str()),
        (Some(0), "low/heat-scan.svg\nlow/heat-scan.pdf\n")
    );
    assert!(
        stderr(&low).starts_with("left out, as they need more room than --size gives: p99, "),
        "{}",
        stderr(&low)
    );
    let mut study = fixture::one_class();
    study.panels.extend(fixture::two_classes().panels);
    let folder = folder_with(&study);
    let args = ["report", "study.json", "--figure", "all", "--only", "rain:1", "--out", "one.PDFs"];
    let output = sluice(folder.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let drawn = stdout(&output);
    assert!(drawn.contains("one.PDFs/exp.p99.svg"), "{drawn}");
    assert!(!drawn.contains("rocksdb."), "rain:1 is in one panel only: {drawn}");
}

#[test]
fn a_figure_that_cannot_be_made_is_refused_in_one_line() {
    let folder = folder_with(&fixture::one_class());
    let stopped = folder_with(&fixture::live());
    fs::write(folder.path().join("text.ttf"), "no font").expect("written");
    fs::write(folder.path().join("file"), "").expect("written");
    let figure = ["report", "study.json", "--figure"];
    for (at, args, says) in [
        (&stopped, &["p99"][..], "was stopped or still runs"),
        (&folder, &["p98"], "no figure is named p98; there are p99, "),
        (&folder, &["p99", "--only", "rain:9"], "--only rain:9: p99 has no such series; it has rain:1, "),
        (&folder, &["p99", "--label", "rain:9=Rain"], "write SERIES=TEXT; the series of this study are"),
        (&folder, &["p99", "--label", "rain:2"], "--label rain:2: write SERIES=TEXT"),
        (&folder, &["p99", "--label", "rain:2= "], "a label is a line of text, such as rain:2=Rain"),
        (
            &folder,
            &["p99", "--label", "rain:2=A", "--label", "central=B", "--label", "rain:2=C"],
            "--label rain:2=: this series has more than one text",
        ),
        (&folder, &["p99", "--size", "3"], "write a width and its unit, such as 3.3in"),
        (&folder, &["p99", "--size", "-3in"], "figures are 1.5 to 40"),
        (&folder, &["p99", "--size", "1.6inx1in"], "no room for its curves or cells"),
        (&folder, &["p99", "--font", "nowhere.ttf"], "--font nowhere.ttf cannot be read"),
        (&folder, &["p99", "--font", "text.ttf"], "--font text.ttf is no TrueType or OpenType font"),
        (&folder, &["slowdown_p99", "--slo", "1ms"], "slowdown_p99 does not show latencies"),
        (&folder, &["p99", "--slo", "0us"], "no latency keeps it"),
        (&folder, &["all", "--out", "a.pdf"], "--figure all makes many"),
        (&folder, &["p99", "--out", "a.PNG"], "--out a.PNG: figures are SVG or PDF; end the name with .svg"),
        (&folder, &["all", "--only", "rain:9"], "has no such series; it has rain:1, "),
        (&folder, &["p99", "--out", "file/in"], "cannot be made"),
    ] {
        let output = sluice(at.path(), &[&figure[..], args].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
    }
    let two = ["report", "study.json", "study.json"];
    for (args, says) in [(&["--figure", "p99"][..], "of one study"), (&[], "name its folder with --out")] {
        let output = sluice(folder.path(), &[&two[..], args].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}
