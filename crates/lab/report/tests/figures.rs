//! Figures for papers: SVG and PDF that stand alone, are readable in grey, say what ran, and are the same
//! bytes each time. PDFs are read with poppler's programs, and put into a document by pdfTeX, where these are
//! installed.

#[path = "../../../cli/sluice/tests/report/fixture.rs"]
mod fixture;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sluice_outcome::study::{Estimate, Point, SliceDepths, StudyOutcome};
use sluice_report::{FigureError, FigureRequest, Typeface, figure, figure_names, page_of};

const COLUMN: &str = "3.3in";
const DAMAGED_FONTS: usize = 40;

fn request(name: &str) -> FigureRequest<'_> {
    let size = COLUMN.parse().expect("a size");
    FigureRequest { name, size, only: "", texts: &[], linear: false, slo_ns: None }
}

/// Draws a figure into a folder that stays, so that it can be looked at.
fn drawn(study: &StudyOutcome, request: &FigureRequest<'_>, file: &str) -> (String, PathBuf) {
    let typeface = Typeface::built_in();
    let figure = figure(study, request, &typeface).unwrap_or_else(|why| panic!("{file}: {why}"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("figures");
    fs::create_dir_all(&folder).expect("a folder");
    let (svg, pdf) = (folder.join(format!("{file}.svg")), folder.join(format!("{file}.pdf")));
    fs::write(svg, figure.svg()).expect("written");
    fs::write(&pdf, figure.pdf().expect("a PDF")).expect("written");
    (figure.svg(), pdf)
}

/// What a program says; `None` if it is not installed.
fn said(program: &str, args: &[&str], folder: &Path) -> Option<String> {
    let run = Command::new(program).args(args).current_dir(folder).stdin(Stdio::null()).output();
    let Ok(output) = run else {
        eprintln!("skipped: {program} is not installed here");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program}: {said}{}", String::from_utf8_lossy(&output.stderr));
    Some(said)
}

/// A study with one rate, whose pictures are bars.
fn of_one_rate() -> StudyOutcome {
    let mut study = fixture::one_class();
    for series in &mut study.panels[0].series {
        let Point { offered_per_s, .. } = series.points[2];
        series.points.retain(|point| point.offered_per_s.total_cmp(&offered_per_s).is_eq());
    }
    study
}

#[test]
fn every_picture_of_a_page_stands_alone() {
    let typeface = Typeface::built_in();
    let mut zero = fixture::one_class();
    zero.panels[0].series[0].points[1].overall.latency_ns.p99 = Estimate::exact(0.0);
    let (svg, _) = drawn(&zero, &request("p99"), "zero");
    assert!(svg.contains("Arrow:"), "zero has no place on a logarithmic axis");
    for study in
        [fixture::one_class(), fixture::two_classes(), fixture::live(), of_one_rate(), zero, with_depths()]
    {
        let names = figure_names(&study);
        assert!(names.contains(&"idle_share".to_owned()), "{names:?}");
        for name in names {
            let figure = figure(&study, &request(&name), &typeface).unwrap_or_else(|why| panic!("{why}"));
            let svg = figure.svg();
            assert!(!svg.contains("class=") && !svg.contains("style") && !svg.contains("url("), "{name}");
            assert!(svg.starts_with("<?xml") && !svg.contains("NaN") && !svg.contains("inf"), "{name}");
            assert!(figure.pdf().expect("a PDF").starts_with(b"%PDF-1.5"), "{name}");
        }
    }
}

#[test]
fn a_figure_says_what_ran_and_is_the_same_each_time() {
    let study = fixture::one_class();
    let (svg, pdf) = drawn(&study, &request("p99"), "p99");
    for says in [
        "<title>Five schedulers under exponential service times: p99</title>",
        "command: sluice reproduce rain-6b --seed 1",
        "seed: 1",
        "sluice: 0.1.0, commit 0123456789ab",
        "machine: any, as virtual time is the same on all",
        "stated numbers: paper: Rain §5.2",
        "Arrow:",
        "width=\"237.6pt\"",
        "Bars: 95 % intervals",
        "Hollow: load not sustained",
    ] {
        assert!(svg.contains(says), "{says} in {svg:.3000}");
    }
    let (again, of_again) = drawn(&study, &request("p99"), "p99-again");
    assert_eq!(svg, again);
    assert_eq!(fs::read(&pdf).expect("read"), fs::read(of_again).expect("read"));
    let (svg, _) = drawn(&fixture::live(), &request("p99"), "live");
    assert!(svg.contains("machine: a test&#39;s machine") && svg.contains("dilation: 100"), "{svg:.2000}");
    let folder = pdf.parent().expect("a folder");
    if let Some(told) = said("pdfinfo", &["p99.pdf"], folder) {
        for says in ["sluice reproduce rain-6b", "seed: 1", "Page size:       237.6 x", "Pages:           1"]
        {
            assert!(told.contains(says), "{says} in {told}");
        }
        assert!(!told.contains("CreationDate"), "{told}");
    }
}

#[test]
fn series_differ_without_colour_and_few_may_be_chosen() {
    let study = fixture::one_class();
    let few = FigureRequest { only: "rain:2,racksched:2,tracked", ..request("p99") };
    let (svg, _) = drawn(&study, &few, "only");
    assert!(svg.contains(">rain:2</text>") && svg.contains(">racksched:2,tracked</text>"), "{svg}");
    assert!(!svg.contains(">rain:1</text>") && !svg.contains("the paper"), "{svg}");
    let dashes: Vec<&str> =
        svg.split("stroke-dasharray=").skip(1).filter_map(|of| of.split('"').nth(1)).collect();
    assert!(dashes.len() >= 2, "{dashes:?}");
    let typeface = Typeface::built_in();
    let unknown = FigureRequest { only: "rain:2,rain:9", ..request("p99") };
    let why = figure(&study, &unknown, &typeface).expect_err("no such series").to_string();
    assert!(why.starts_with("--only rain:9: p99 has no such series; it has rain:1, rain:2"), "{why}");
}

#[test]
fn a_series_may_have_another_name_in_a_figure() {
    let texts =
        [("rain:2", "Rain"), ("central", "an ideal queue")].map(|(of, text)| (of.into(), text.into()));
    let named = |name| FigureRequest { texts: &texts, only: "rain:2,rain:1", ..request(name) };
    for (study, file) in [(fixture::one_class(), "named"), (of_one_rate(), "named-bars")] {
        let (svg, _) = drawn(&study, &named("p99"), file);
        assert!(svg.contains(">Rain</text>") && svg.contains(">rain:1</text>"), "{svg}");
        assert!(!svg.contains(">rain:2</text>"), "{svg}");
    }
    let study = with_depths();
    let name = figure_names(&study).into_iter().find(|name| name.contains("depths")).expect("a figure");
    let (svg, _) = drawn(&study, &named(&name), "named-depths");
    assert!(svg.contains(">Rain at "), "{svg}");
}

/// A text of an SVG: its left and right end, its baseline, and what it says.
struct PlacedText {
    ends: [f64; 2],
    y: f64,
    says: String,
}

fn texts(svg: &str) -> Vec<PlacedText> {
    let placed = |element: &str| {
        let (attributes, says) = element.split_once('>').expect("a tag");
        let attribute = |name: &str| attributes.split(&format!(" {name}=\"")).nth(1)?.split('"').next();
        let number = |name: &str| attribute(name).and_then(|of| of.parse::<f64>().ok()).expect("a number");
        let (x, width) = (number("x"), number("textLength"));
        let left = match attribute("text-anchor") {
            None => x,
            Some("middle") => x - width / 2.0,
            Some(_) => x - width,
        };
        let says = says.split('<').next().unwrap_or_default().to_owned();
        PlacedText { ends: [left, left + width], y: number("y"), says }
    };
    svg.split("<text").skip(1).map(placed).collect()
}

#[test]
fn no_text_leaves_its_figure_or_lies_over_another_however_narrow_it_is() {
    let typeface = Typeface::built_in();
    let mut long = of_one_rate();
    long.panels[0].series[0].label = "rain:2,labels,target=50us with slices get=8,scan=24".to_owned();
    for study in [fixture::one_class(), fixture::two_classes(), long] {
        for name in figure_names(&study) {
            for size in ["1.5in", "3.3in", "7in"] {
                let wanted = FigureRequest { size: size.parse().expect("a size"), ..request(&name) };
                let svg = figure(&study, &wanted, &typeface).unwrap_or_else(|why| panic!("{why}")).svg();
                let width = size.trim_end_matches("in").parse::<f64>().expect("a number") * 72.0;
                let texts = texts(&svg);
                for (place, PlacedText { ends: [left, right], y, says }) in texts.iter().enumerate() {
                    assert!(*left >= -0.1 && *right <= width + 0.1, "{name} {size}: {says}: {left} {right}");
                    let is_over = |other: &&PlacedText| {
                        (other.y - y).abs() < 3.0 && other.ends[0] < *right && other.ends[1] > *left
                    };
                    let over = texts[..place].iter().find(is_over).map(|other| &other.says);
                    assert_eq!(over, None, "{name} {size}: under {says}");
                }
            }
        }
    }
}

#[test]
fn a_limit_is_drawn_in_each_figure_of_latencies() {
    let typeface = Typeface::built_in();
    let limit = FigureRequest { slo_ns: Some(1e9), linear: true, ..request("p99") };
    let bars = figure(&of_one_rate(), &limit, &typeface).expect("a figure").svg();
    assert!(bars.contains("dashed: SLO 1.00 s"), "{bars:.3000}");
    let curves = figure(&fixture::one_class(), &limit, &typeface).expect("a figure").svg();
    let texts = texts(&curves);
    let y_of = |text: &str| texts.iter().find(|of| of.says.starts_with(text)).expect(text).y;
    assert!(y_of("SLO 1.00 s") > y_of("p99 latency"), "below the caption, that is inside the frame");
}

#[test]
fn what_makes_no_figure_is_said_in_one_line() {
    let (study, typeface) = (fixture::one_class(), Typeface::built_in());
    let refused =
        |request: &FigureRequest<'_>| figure(&study, request, &typeface).expect_err("it is refused");
    let unknown = refused(&request("p98"));
    assert!(matches!(&unknown, FigureError::NoSuchFigure { known, .. } if known[0] == "p99"), "{unknown}");
    let no_latency = refused(&FigureRequest { slo_ns: Some(1e5), ..request("slowdown_p99") });
    let low = refused(&FigureRequest { size: "1.6in x 1in".parse().expect("a size"), ..request("p99") });
    let mut empty = study.clone();
    empty.panels.clear();
    empty.heats.clear();
    let nothing = figure(&empty, &request("p99"), &typeface).expect_err("there is none");
    let font = Typeface::from_file(b"not a font".to_vec(), "--font a.ttf").expect_err("it is none");
    let mut foreign = study.clone();
    foreign.panels[0].series[0].label = "雨".to_owned();
    let glyph = figure(&foreign, &request("p99"), &typeface).expect_err("no such glyph");
    assert!(glyph.to_string().contains("Noto Sans has no glyph for 雨"), "{glyph}");
    let mut thinned = study.clone();
    thinned.panels[0].series[0].points.clear();
    let pointless = FigureRequest { only: "rain:1", ..request("p99") };
    let pointless = figure(&thinned, &pointless, &typeface).expect_err("an empty picture");
    assert!(matches!(pointless, FigureError::NoPoints { .. }), "{pointless}");
    for why in [unknown, no_latency, low.clone(), nothing, font, glyph, pointless] {
        assert!(!why.to_string().contains('\n') && why.to_string().len() > 40, "{why}");
    }
    // What the message asks for suffices.
    let asked = low.to_string().rsplit("--size ").next().expect("a size").to_owned();
    let enough = FigureRequest { size: asked.parse().expect("a size"), ..request("p99") };
    figure(&study, &enough, &typeface).unwrap_or_else(|why| panic!("{asked}: {why}"));
}

#[test]
fn a_heat_map_is_shaded_in_grey_and_has_its_intervals_where_they_fit() {
    let (study, typeface) = (fixture::one_class(), Typeface::built_in());
    assert!(figure_names(&study).contains(&"heat-scan".to_owned()));
    let (svg, _) = drawn(&study, &request("heat-scan"), "heat");
    for says in [
        "Mean of a SCAN, µs",
        "keys",
        "bytes",
        "5,000",
        "1,300",
        "1,261–1,339",
        "#ffffff",
        "#a0a0a0",
        "seed: 1",
    ] {
        assert!(svg.contains(says), "{says} in {svg}");
    }
    assert!(svg.contains("Small: 95 % intervals, from "), "{svg}");
    let sized = |size: &str| size.parse().expect("a size");
    let narrow = FigureRequest { size: sized("1.5in"), ..request("heat-scan") };
    let narrow = figure(&study, &narrow, &typeface).expect("a figure").svg();
    let foot: Vec<String> = texts(&narrow).into_iter().map(|text| text.says).collect();
    let foot = foot.join(" ");
    assert!(foot.contains("are in the study’s table.") && !foot.contains("1,261"), "{foot}");
    let refused =
        |request: &FigureRequest<'_>| figure(&study, request, &typeface).expect_err("it is refused");
    let limit = refused(&FigureRequest { slo_ns: Some(1e5), ..request("heat-scan") });
    assert!(matches!(limit, FigureError::NoLatency { .. }), "{limit}");
    let few = refused(&FigureRequest { only: "rain:2", ..request("heat-scan") });
    assert!(matches!(few, FigureError::NoPoints { .. }), "{few}");
}

#[test]
fn what_a_heat_map_asks_for_suffices() {
    let (mut study, typeface) = (fixture::one_class(), Typeface::built_in());
    let map = &mut study.heats[0];
    let columns = 12;
    map.across.values = (1..=columns).map(|keys| keys * 1_000).collect();
    map.cells.iter_mut().for_each(|row| *row = vec![row[2]; columns as usize]);
    for size in ["1.5in", "5in x 1in", "1.5in x 1in"] {
        let small = FigureRequest { size: size.parse().expect("a size"), ..request("heat-scan") };
        let why = figure(&study, &small, &typeface).expect_err("too small");
        assert!(matches!(why, FigureError::NoRoom { .. }), "{why}");
        let asked = why.to_string();
        let asked = asked.rsplit("--size ").next().expect("a size");
        let enough = FigureRequest { size: asked.parse().expect("a size"), ..request("heat-scan") };
        figure(&study, &enough, &typeface).unwrap_or_else(|why| panic!("{size}: {asked}: {why}"));
    }
    study.heats[0].cells.truncate(1);
    study.heats[0].down.values.truncate(1);
    let low = FigureRequest { size: "1.5in".parse().expect("a size"), ..request("heat-scan") };
    let asked = figure(&study, &low, &typeface).expect_err("too narrow").to_string();
    assert!(asked.ends_with("x1.0in"), "no lower than figures are: {asked}");
    study.heats[0].across.values = (1..=200).map(|keys| keys * 1_000).collect();
    let row = vec![study.heats[0].cells[0][0]; 200];
    study.heats[0].cells[0] = row;
    let large = figure(&study, &low, &typeface).expect_err("wider than a page");
    assert!(matches!(large, FigureError::TooLarge { .. }), "{large}");
    study.heats.push(study.heats[0].clone());
    let names = figure_names(&study);
    assert!(names.ends_with(&["heat-scan".to_owned(), "heat-scan-2".to_owned()]), "{names:?}");
}

/// A study in which the agent adapts the depths of two slices under one policy.
fn with_depths() -> StudyOutcome {
    let mut study = fixture::one_class();
    let interval = |number: u32| {
        [0, 1].map(|slice| SliceDepths {
            at_ns: u64::from(number + 1) * 10_000_000,
            slice,
            workers: 16 + if slice == 0 { number / 30 } else { 0 } - if slice == 1 { number / 30 } else { 0 },
            depth_mean: 1.0 + f64::from(slice) + f64::from(number % 20) / 10.0,
            depth_min: 1,
            depth_max: 4 + slice as u8,
            deeper: u32::from(number.is_multiple_of(9)),
            shallower: u32::from(number % 11 == 5),
            overloaded: u32::from(number % 25 == 3),
            tasks: 1_000,
            slowdown_p99: 3.0 + f64::from(number % 50),
            response_p99_ns: 50_000.0 + f64::from(number) * 700.0,
            idle_workers: 2.0,
            moves: number / 30,
        })
    };
    study.panels[0].series[1].points[2].depths = (0..120).flat_map(interval).collect();
    study
}

#[test]
fn slices_have_the_names_of_their_types_where_the_study_knows_them() {
    let mut study = with_depths();
    study.panels[0].series[1].slice_names = vec!["get".to_owned(), "scan+put".to_owned()];
    let names = figure_names(&study);
    let depths = names.iter().find(|name| name.starts_with("depths-rain-2-")).expect("the run's figure");
    let (svg, _) = drawn(&study, &request(depths), "named");
    let says: Vec<String> = texts(&svg).into_iter().map(|text| text.says).collect();
    assert!(
        ["slice get", "slice scan+put"].iter().all(|name| says.iter().any(|said| said == name)),
        "{says:?}"
    );
    study.panels[0].series[1].slice_names[1] = ["scan"; 30].join("+");
    let (svg, _) = drawn(&study, &request(depths), "long");
    let ends = texts(&svg).into_iter().map(|text| text.ends[1]).fold(0.0, f64::max);
    assert!(ends <= 3.3 * 72.0, "a long name has several lines: {ends}");
    study.panels[0].series[1].slice_names[1] = "scan+put".to_owned();
    let page = sluice_report::page(&study);
    assert!(page.contains("slice get") && page.contains("slice scan+put"), "the page names them, too");
}

/// Where the upright lines of bars stand, in the order of the file.
fn uprights(svg: &str) -> Vec<f64> {
    let bars = svg.split("<path").filter(|path| path.contains("stroke-width=\"0.6\""));
    let outlines = bars.filter_map(|path| path.split(" d=\"").nth(1)?.split('"').next());
    let upright = |line: &str| {
        let ends: Vec<Option<&str>> = line.split('L').map(|end| end.split(' ').next()).collect();
        (ends.len() == 2 && ends[0] == ends[1]).then(|| ends[0]?.parse().ok()).flatten()
    };
    outlines.flat_map(|outline| outline.split('M').filter_map(upright)).collect()
}

#[test]
fn bars_of_several_series_stand_beside_each_other() {
    let (mut study, typeface) = (fixture::one_class(), Typeface::built_in());
    let series = &mut study.panels[0].series;
    series.truncate(2);
    series[1].points = series[0].points.clone();
    let labels: Vec<String> = study.panels[0].series.iter().map(|series| series.label.clone()).collect();
    let of = |only: &str| {
        let request = FigureRequest { only, ..request("p99") };
        uprights(&figure(&study, &request, &typeface).unwrap_or_else(|why| panic!("{why}")).svg())
    };
    let (alone, both) = (of(&labels[0]), of(&labels.join(",")));
    assert!(!alone.is_empty() && both.len() == 2 * alone.len(), "{alone:?} {both:?}");
    for (place, x) in alone.iter().enumerate() {
        let (left, right) = (both[place], both[alone.len() + place]);
        assert!(left < *x && *x < right && right - left < 2.0, "{left} {x} {right}");
    }
}

#[test]
fn depths_of_a_run_are_strips_with_a_line_for_each_slice() {
    let (study, typeface) = (with_depths(), Typeface::built_in());
    let names: Vec<String> =
        figure_names(&study).into_iter().filter(|name| name.contains("depths")).collect();
    let [name] = &names[..] else { panic!("{names:?}") };
    assert!(name.starts_with("depths-rain-2-"), "{name}");
    let (svg, _) = drawn(&study, &request(name), "depths");
    let says: Vec<String> = texts(&svg).into_iter().map(|text| text.says).collect();
    for wanted in
        ["slice 0", "slice 1", "depth", "workers", "p99 slowdown (up to 40)", "p99 response, µs", "time, s"]
    {
        assert!(says.iter().any(|said| said == wanted), "{wanted} in {says:?}");
    }
    let all = says.join(" ");
    for wanted in ["rain:2 at ", "28 judgements deeper", "3 moves between slices", "Square: workers that"] {
        assert!(all.contains(wanted), "{wanted} in {all}");
    }
    assert!(svg.contains("stroke-dasharray"), "the second slice differs in grey");
    let figure_of = |request: &FigureRequest<'_>| figure(&study, request, &typeface);
    figure_of(&FigureRequest { only: "central,rain:2", ..request(name) }).expect("it is among them");
    let other = figure_of(&FigureRequest { only: "central", ..request(name) }).expect_err("another series");
    assert!(matches!(other, FigureError::NoPoints { .. }), "{other}");
    let unknown = figure_of(&FigureRequest { only: "rain:77", ..request(name) }).expect_err("no such series");
    assert!(matches!(unknown, FigureError::NoSuchSeries { .. }), "{unknown}");
    let limit = figure_of(&FigureRequest { slo_ns: Some(1e5), ..request(name) }).expect_err("no latency");
    assert!(matches!(limit, FigureError::NoLatency { .. }), "{limit}");
    let low = FigureRequest { size: "3in x 2in".parse().expect("a size"), ..request(name) };
    let low = figure_of(&low).expect_err("four strips").to_string();
    let asked = low.rsplit("--size ").next().expect("a size");
    let enough = FigureRequest { size: asked.parse().expect("a size"), ..request(name) };
    figure_of(&enough).unwrap_or_else(|why| panic!("{asked}: {why}"));
}

#[test]
fn two_runs_of_one_label_and_rate_have_figures_of_different_names() {
    let mut study = with_depths();
    let panel = &mut study.panels[0];
    panel.series[2].label = "rain-2".to_owned();
    panel.series[2].points[2].depths = panel.series[1].points[2].depths.clone();
    let names: Vec<String> =
        figure_names(&study).into_iter().filter(|name| name.contains("depths")).collect();
    assert_eq!(names.len(), 2);
    assert_eq!(names[1], format!("{}-2", names[0]));
}

#[test]
fn a_picture_of_a_long_run_says_that_it_shows_the_beginning_and_has_a_legend_of_many_slices() {
    let (mut study, typeface) = (with_depths(), Typeface::built_in());
    let depths = &mut study.panels[0].series[1].points[2].depths;
    let first: Vec<SliceDepths> = depths.drain(..2).collect();
    *depths = (0..500u64)
        .flat_map(|number| {
            first.iter().map(move |of| SliceDepths { at_ns: (number + 1) * 10_000_000, ..*of })
        })
        .collect();
    let name = figure_names(&study).into_iter().find(|name| name.contains("depths")).expect("one");
    let (svg, _) = drawn(&study, &request(&name), "long");
    let all: Vec<String> = texts(&svg).into_iter().map(|text| text.says).collect();
    assert!(all.join(" ").contains("First replication, the first 4.00 s of 5.00 s."), "{all:?}");
    let depths = &mut study.panels[0].series[1].points[2].depths;
    let many = |slice| SliceDepths { slice, ..first[0] };
    *depths = [0, 7, u32::MAX].into_iter().flat_map(|slice| [many(slice), many(slice)]).collect();
    let narrow = FigureRequest { size: "1.5in".parse().expect("a size"), ..request(&name) };
    let svg = figure(&study, &narrow, &typeface).expect("a figure").svg();
    assert!(svg.contains("slice 4294967295") && !svg.contains("NaN"), "{svg}");
    assert!(!page_of(&[study], None).contains("NaN"));
}

/// A font is a file from anywhere: one byte in it may be anything.
#[test]
fn a_damaged_font_is_refused_or_serves_and_ends_nothing() {
    let (study, mut state) = (of_one_rate(), 1u64);
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut drawn = 0;
    for _ in 0..DAMAGED_FONTS {
        let mut font = notosans::REGULAR_TTF.to_vec();
        for _ in 0..=draw(30) {
            // The directory of tables is at the beginning.
            let at = if draw(3) == 0 { draw(400) } else { draw(font.len()) };
            font[at] = draw(256) as u8;
        }
        if draw(6) == 0 {
            font.truncate(draw(font.len()));
        }
        let Ok(typeface) = Typeface::from_file(font, "--font damaged.ttf") else { continue };
        let Ok(figure) = figure(&study, &request("p99"), &typeface) else { continue };
        assert!(figure.svg().ends_with("</svg>\n"));
        // Its reason is an error like another.
        drop(figure.pdf());
        drawn += 1;
    }
    assert!(drawn > 0, "some damage shows nowhere");
}

#[test]
fn a_pdf_has_its_font_inside_and_goes_into_a_document_of_tex() {
    let slo = FigureRequest { slo_ns: Some(1e5), ..request("p99") };
    let (_, pdf) = drawn(&fixture::one_class(), &slo, "slo");
    drawn(&of_one_rate(), &request("p99"), "bars");
    drawn(&fixture::one_class(), &FigureRequest { linear: true, ..request("p99") }, "linear");
    let names = figure_names(&fixture::one_class());
    let percentiles = names.iter().rfind(|name| name.starts_with("percentiles-")).expect("such a figure");
    drawn(&fixture::one_class(), &request(percentiles), "percentiles");
    let folder = pdf.parent().expect("a folder");
    let is_embedded = |fonts: &str| {
        let font = fonts.lines().find(|line| line.contains("NotoSans")).expect("its font");
        assert!(font.contains("CID TrueType") && !font.contains("Type 3"), "{font}");
        let columns: Vec<&str> = font.split_whitespace().collect();
        assert!(
            columns.windows(3).any(|yes| yes == ["yes", "yes", "yes"]),
            "embedded, a part, as text: {font}"
        );
    };
    for file in ["slo.pdf", "bars.pdf"] {
        if let Some(fonts) = said("pdffonts", &[file], folder) {
            is_embedded(&fonts);
        }
    }
    if let Some(text) = said("pdftotext", &["-layout", "slo.pdf", "-"], folder) {
        assert!(text.contains("offered rate, kRPS") && text.contains("SLO 100 µs"), "{text}");
    }
    let document = "\\documentclass{article}\\usepackage{graphicx}\\begin{document}\n\
                    A figure: \\includegraphics{slo}\n\\end{document}\n";
    fs::write(folder.join("paper.tex"), document).expect("written");
    let tex = ["-interaction=nonstopmode", "-halt-on-error", "paper.tex"];
    if let Some(log) = said("pdflatex", &tex, folder) {
        assert!(!log.contains("PDF inclusion") && !log.contains("Overfull"), "{log}");
        if let Some(fonts) = said("pdffonts", &["paper.pdf"], folder) {
            is_embedded(&fonts);
        }
    }
}

#[test]
fn several_studies_share_a_page_and_no_id() {
    let page = page_of(&[fixture::one_class(), fixture::two_classes()], Some(1e5));
    let mut ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|of| of.split('"').next()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "an id stands twice");
    for link in page.split(" href=\"#").skip(1).filter_map(|of| of.split('"').next()) {
        assert!(ids.contains(&link), "{link} leads nowhere");
    }
    assert!(page.contains("2 studies: rain-6b, rain-7") && page.contains(">SLO 100 µs</text>"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("figures");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("several.html"), page).expect("written");
    fs::write(folder.join("one.html"), page_of(&[fixture::one_class()], None)).expect("written");
}
