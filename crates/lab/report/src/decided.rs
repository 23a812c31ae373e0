//! The page of a rack whose depths were found at run time: depths over time, and every decision with its
//! reason.

use sluice_outcome::run::Decision;
use sluice_outcome::study::SliceDepths;

use super::html::{Html, tag};
use super::{page, timeline};

/// How many decisions the page lists; the JSON has all of them.
const LISTED_MAX: usize = 500;

/// The page.
pub fn decided(title: &str, slices: &[String], depths: &[SliceDepths], decisions: &[Decision]) -> String {
    let header = |html: &mut Html| html.leaf("h1", format_args!("Depths over time: {title}"));
    whole(title, header, |html| {
        html.element("section", |html| {
            html.leaf("h2", "Depths, workers and slowdowns");
            timeline::legend(html, slices);
            timeline::figure(html, "The whole run", depths);
        });
        html.element("section", |html| list(html, decisions));
    })
}

/// A whole page in the common layout.
pub(super) fn whole(title: &str, header: impl FnOnce(&mut Html), main: impl FnOnce(&mut Html)) -> String {
    let mut html = Html::new();
    html.verbatim("<!doctype html>\n");
    html.element(tag("html").with("lang", "en"), |html| {
        page::head(html, title, "");
        html.element("body", |html| {
            html.element("header", |html| {
                html.leaf(tag("p").with("class", "kicker"), "Sluice");
                header(html);
            });
            html.element("main", main);
        });
    });
    html.line();
    html.into_string()
}

fn list(html: &mut Html, decisions: &[Decision]) {
    html.leaf("h2", "Decisions");
    if decisions.len() > LISTED_MAX {
        let (shown, all) = (LISTED_MAX, decisions.len());
        html.leaf(
            tag("p").with("class", "notice"),
            format_args!("The first {shown} of {all}; result.json has all."),
        );
    }
    html.element(tag("table").with("class", "cards"), |html| {
        html.element("thead", |html| {
            html.element("tr", |html| {
                for head in ["at", "what", "why"] {
                    html.leaf(tag("th").with("scope", "col"), head);
                }
            });
        });
        html.element("tbody", |html| {
            for decision in decisions.iter().take(LISTED_MAX) {
                let (what, why) = decision.said();
                html.element("tr", |html| {
                    html.leaf(tag("td").with("data-of", "at"), format_args!("{:.2} s", decision.at_s));
                    html.leaf(tag("td").with("data-of", "what"), what);
                    html.leaf(tag("td").with("data-of", "why"), why);
                });
            }
        });
    });
}
