//! The page of a study or of several: a single file that loads nothing else.

mod scripts;

use sluice_outcome::study::{Settings, StudyOutcome, Verdict};

use super::html::{Html, tag};
use super::panel::Pictures;
use super::series_style::SeriesStyles;
use super::{heat, panel, show, tables};

/// The page of a study.
pub fn page(study: &StudyOutcome) -> String {
    page_of(std::slice::from_ref(study), None)
}

/// The page of one or more studies, with a line at a latency that must be kept. A policy looks the same in
/// all of them.
pub fn page_of(studies: &[StudyOutcome], slo_ns: Option<f64>) -> String {
    let looks = SeriesStyles::of(studies.iter().flat_map(|study| &study.panels));
    let title = match studies {
        [study] => format!("{}: {}", study.name, study.title),
        _ => several(studies),
    };
    let mut html = Html::new();
    html.verbatim("<!doctype html>\n");
    html.element(tag("html").with("lang", "en"), |html| {
        head(html, &title, &scripts::allowed());
        html.element("body", |html| {
            match studies {
                [study] => {
                    let part = PagePart { study, looks: &looks, slo_ns, before: "", panels_before: 0 };
                    heading(html, &part);
                    html.element("main", |html| body(html, &part));
                    html.line();
                }
                _ => all(html, studies, &looks, slo_ns),
            }
            scripts::write(html);
        });
    });
    html.line();
    html.into_string()
}

/// What stands in the page of a study, for a page of another program that has the style sheet.
pub fn page_body(study: &StudyOutcome) -> String {
    let looks = SeriesStyles::of(&study.panels);
    let part = PagePart { study, looks: &looks, slo_ns: None, before: "", panels_before: 0 };
    let mut html = Html::new();
    heading(&mut html, &part);
    body(&mut html, &part);
    html.into_string()
}

/// A study on a page.
struct PagePart<'p> {
    study: &'p StudyOutcome,
    looks: &'p SeriesStyles,
    slo_ns: Option<f64>,
    /// What the ids of its sections begin with, so that no two studies share one.
    before: &'p str,
    /// How many panels stand above.
    panels_before: usize,
}

/// The title of a page of several studies.
fn several(studies: &[StudyOutcome]) -> String {
    let names: Vec<&str> = studies.iter().map(|study| study.name.as_str()).collect();
    format!("{} studies: {}", studies.len(), names.join(", "))
}

/// Several studies, below a table of contents.
fn all(html: &mut Html, studies: &[StudyOutcome], looks: &SeriesStyles, slo_ns: Option<f64>) {
    html.element("header", |html| {
        html.leaf(tag("p").with("class", "kicker"), "Sluice");
        html.leaf("h1", several(studies));
        html.element(tag("nav").with("aria-label", "Studies"), |html| {
            for (place, study) in studies.iter().enumerate() {
                let link = tag("a").with("href", format_args!("#study-{place}"));
                html.leaf(link, format_args!("{}: {}", study.name, study.title));
                html.verbatim(" ");
            }
        });
    });
    html.line();
    html.element("main", |html| {
        let mut panels_before = 0;
        for (place, study) in studies.iter().enumerate() {
            let before = format!("study-{place}-");
            let part = PagePart { study, looks, slo_ns, before: &before, panels_before };
            html.element(tag("article").with("id", format_args!("study-{place}")), |html| {
                heading(html, &part);
                body(html, &part);
            });
            html.line();
            panels_before += study.panels.len();
        }
    });
    html.line();
}

/// The head of a page: metadata, style, and the scripts that its policy allows.
pub(super) fn head(html: &mut Html, title: &str, scripts: &str) {
    html.element("head", |html| {
        html.verbatim(concat!(
            "<meta charset=\"utf-8\"/>\n",
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n",
            "<meta name=\"color-scheme\" content=\"light dark\"/>\n",
        ));
        let scripts = if scripts.is_empty() { String::new() } else { format!("; script-src {scripts}") };
        let policy = format!("default-src 'none'; style-src 'unsafe-inline'{scripts}");
        html.lone(tag("meta").with("http-equiv", "Content-Security-Policy").with("content", policy));
        html.line();
        html.leaf("title", format_args!("{title} · Sluice"));
        html.verbatim(concat!("\n<style>\n", include_str!("style.css"), "</style>\n"));
    });
}

fn heading(html: &mut Html, part: &PagePart<'_>) {
    let study = part.study;
    html.element("header", |html| {
        html.element(tag("p").with("class", "kicker"), |html| {
            html.text("Sluice · ");
            html.leaf("code", &study.name);
        });
        html.leaf("h1", &study.title);
        html.leaf(tag("p").with("class", "made"), made(study));
        if let Some(command) = study.commands.first() {
            html.leaf("pre", command);
        }
        if let Some(factor) = study.settings.dilation.filter(|factor| *factor > 1) {
            let says = format!(
                "Dilated: the live rack ran {factor} times slower than the one that is stood for; the times here are \
                 that one’s."
            );
            html.leaf(tag("p").with("class", "notice"), says);
        }
        if !study.complete {
            // Live measurements start anew.
            let goes_on =
                if study.settings.dilation.is_none() { " The same command goes on from here." } else { "" };
            let says = format_args!(
                "Points that were asked for are missing: the study still runs, or was stopped early.{goes_on}"
            );
            html.leaf(tag("p").with("class", "notice"), says);
        }
        contents(html, part);
    });
    html.line();
}

/// A line with the settings behind all numbers of the page.
fn made(study: &StudyOutcome) -> String {
    let Settings { testbed, workers, seed, replications, warm_up, .. } = &study.settings;
    let tasks = show::tasks(&study.settings).unwrap_or_else(|| "all".to_owned());
    format!(
        "testbed {testbed}, {workers} workers · {replications} × {tasks} tasks a point, warm-up: {warm_up} · \
         seed {seed} · sluice {} ({})",
        study.sluice, study.commit
    )
}

fn body(html: &mut Html, part: &PagePart<'_>) {
    let PagePart { study, looks, slo_ns, before, panels_before } = *part;
    let section = |html: &mut Html, id: &str, title: &str, inside: &dyn Fn(&mut Html)| {
        section(html, &format!("{before}{id}"), title, inside);
    };
    if !study.expectations.is_empty() {
        section(html, "verdicts", "Beside the paper", &|html| {
            tally(html, study);
            tables::verdicts(html, study);
        });
    }
    study.heats.iter().for_each(|map| heat::heat(html, map, before));
    for (number, of) in study.panels.iter().enumerate() {
        panel::panel(html, &Pictures { panel: of, looks, slo_ns }, panels_before + number);
    }
    if !study.searches.is_empty() {
        section(html, "searches", "The most that keeps a limit", &|html| tables::searches(html, study));
    }
    if !study.comparisons.is_empty() {
        section(html, "comparisons", "Pairs on the same tasks", &|html| tables::comparisons(html, study));
    }
    section(html, "reading", "How to read this", &|html| html.verbatim(include_str!("reading.html")));
    section(html, "settings", "Settings", &|html| settings(html, study));
    if !study.panels.is_empty() {
        section(html, "numbers", "All numbers", &|html| {
            study.panels.iter().for_each(|panel| tables::numbers(html, panel));
        });
    }
}

/// The table of contents.
fn contents(html: &mut Html, part: &PagePart<'_>) {
    let PagePart { study, before, panels_before, .. } = *part;
    let of_panels = study
        .panels
        .iter()
        .enumerate()
        .map(|(number, panel)| (format!("panel-{}", panels_before + number), panel.title.as_str()));
    let of_heats = study.heats.iter().map(|map| (format!("{before}heat-{}", map.id), map.title.as_str()));
    let verdicts = (!study.expectations.is_empty()).then_some(("verdicts", "Beside the paper"));
    let behind = [
        (!study.searches.is_empty()).then_some(("searches", "Limits")),
        (!study.comparisons.is_empty()).then_some(("comparisons", "Pairs")),
        Some(("reading", "How to read this")),
        Some(("settings", "Settings")),
        (!study.panels.is_empty()).then_some(("numbers", "All numbers")),
    ];
    let ours = |(id, title): (&str, &'static str)| (format!("{before}{id}"), title);
    let links = verdicts
        .map(ours)
        .into_iter()
        .chain(of_heats)
        .chain(of_panels)
        .chain(behind.into_iter().flatten().map(ours));
    html.element(tag("nav").with("aria-label", "On this page"), |html| {
        for (id, title) in links {
            html.leaf(tag("a").with("href", format_args!("#{id}")), title);
            html.verbatim(" ");
        }
    });
}

fn section(html: &mut Html, id: &str, title: &str, inside: &dyn Fn(&mut Html)) {
    html.element(tag("section").with("id", id), |html| {
        html.leaf("h2", title);
        inside(html);
    });
    html.line();
}

/// How many statements have each verdict.
fn tally(html: &mut Html, study: &StudyOutcome) {
    html.element(tag("p").with("class", "tally"), |html| {
        for verdict in Verdict::ALL {
            let count = study.expectations.iter().filter(|row| row.verdict == verdict).count();
            if count > 0 {
                html.element("span", |html| {
                    html.leaf("b", count);
                    html.verbatim(" ");
                    tables::badge(html, verdict, verdict);
                });
                html.verbatim(" ");
            }
        }
    });
}

fn settings(html: &mut Html, study: &StudyOutcome) {
    let of = &study.settings;
    html.element("dl", |html| {
        let mut pair = |name: &str, value: &str| {
            html.leaf("dt", name);
            html.leaf("dd", value);
        };
        pair("Plan", of.plan.as_deref().unwrap_or("none: from the command line"));
        pair("Testbed", &of.testbed);
        pair("Workers", &of.workers.to_string());
        pair("Seed", &of.seed.to_string());
        pair("Replications", &of.replications.to_string());
        let tasks = show::tasks(of).unwrap_or_else(|| "all of a time".to_owned());
        pair("Measured tasks", &format!("{tasks} each"));
        pair("Warm-up", &of.warm_up);
        pair("Version", &format!("{}, commit {}", study.sluice, study.commit));
        let dilation =
            of.dilation.map_or_else(|| "none: virtual time".to_owned(), |factor| format!("× {factor}"));
        pair("Dilation", &dilation);
        of.notes.iter().for_each(|note| pair("Note", note));
    });
    html.leaf("h3", "Run it again");
    study.commands.iter().for_each(|command| html.leaf("pre", command));
    html.element("details", |html| {
        html.leaf("summary", "The testbed in full");
        html.leaf("pre", &of.testbed_toml);
    });
}
