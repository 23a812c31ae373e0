//! `sluice report`: writes the page and the tables of an earlier study again, or one of its pictures alone.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sluice_outcome::study::StudyOutcome;
use sluice_report::{self as report, Figure, FigureError, FigureRequest, Typeface};
use sluice_support::fail::{Failure, Outcome};
use sluice_support::file_name::file_name;
use sluice_support::print;
use sluice_support::results::{export, files, studies};
use sluice_support::view;

use crate::args::ReportArgs;

/// The names that stand for every figure, and for a list of their names.
const ALL: &str = "all";
const LIST: &str = "list";
/// Endings of pictures that are not written.
const OTHERS: [&str; 7] = ["png", "jpg", "jpeg", "gif", "webp", "eps", "ps"];

/// Writes the page and the CSV (with `--out` also the JSON), and prints the summary; or writes figures.
pub(crate) fn run(args: &ReportArgs) -> Outcome<()> {
    let slo_ns = slo_ns(args)?;
    let given: Vec<PathBuf> = args.studies.iter().map(|given| studies::file_of(given)).collect();
    let read = given.iter().map(|path| studies::read(path)).collect::<Outcome<Vec<_>>>()?;
    let beside = given[0].parent().unwrap_or(Path::new(""));
    export::check(args.export.file())?;
    match (&read[..], &args.figure, &args.out) {
        ([study], Some(name), _) => {
            let texts = texts(&args.label, study)?;
            return figures(&WantedFigures { args, study, beside, slo_ns, texts }, name);
        }
        (_, Some(_), _) => return Err(Failure::bad_input("a figure is of one study: name one study.json")),
        ([study], None, Some(folder)) => {
            studies::write(folder, study)?;
            studies::show_again(folder, &read, slo_ns)?;
        }
        ([_], None, None) => studies::show_again(beside, &read, slo_ns)?,
        (_, None, Some(folder)) => studies::show_again(folder, &read, slo_ns)?,
        (_, None, None) => {
            return Err(Failure::bad_input(
                "several studies come into one page: name its folder with --out FOLDER",
            ));
        }
    }
    for study in &read {
        print::text(report::summary(study, view::columns()))?;
    }
    let tables: Vec<String> = read.iter().map(report::markdown).collect();
    export::write(args.export.file(), &tables.join("\n"))
}

/// The latency that must be kept.
fn slo_ns(args: &ReportArgs) -> Outcome<Option<f64>> {
    if args.slo.is_some_and(|slo| slo.is_zero()) {
        return Err(Failure::bad_input("--slo 0: no latency keeps it; give one such as 100us"));
    }
    Ok(args.slo.map(|slo| slo.as_nanos() as f64))
}

/// The labels of series and the texts that stand for them. A label may have signs of equality of its own:
/// the longest that is known is meant.
fn texts(given: &[String], study: &StudyOutcome) -> Outcome<Vec<(String, String)>> {
    let series = study.panels.iter().flat_map(|panel| &panel.series);
    let known: BTreeSet<&str> = series.map(|series| series.label.as_str()).collect();
    let meant = |given: &String| {
        let fitting =
            known.iter().filter_map(|label| Some((*label, given.strip_prefix(label)?.strip_prefix('=')?)));
        let Some((label, text)) = fitting.max_by_key(|(label, _)| label.len()) else {
            let known = known.iter().copied().collect::<Vec<_>>().join(", ");
            let why = format!("--label {given}: write SERIES=TEXT; the series of this study are {known}");
            return Err(Failure::bad_input(why));
        };
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            let why = format!("--label {label}=: a label is a line of text, such as {label}=Rain");
            return Err(Failure::bad_input(why));
        }
        Ok((label.to_owned(), text.to_owned()))
    };
    let texts: Vec<(String, String)> = given.iter().map(meant).collect::<Outcome<_>>()?;
    for (place, (label, _)) in texts.iter().enumerate() {
        if texts[..place].iter().any(|(before, _)| before == label) {
            let why = format!("--label {label}=: this series has more than one text; give it one");
            return Err(Failure::bad_input(why));
        }
    }
    Ok(texts)
}

/// Writes one figure or all, or names them.
fn figures(wanted: &WantedFigures<'_>, name: &str) -> Outcome<()> {
    let WantedFigures { args, study, .. } = wanted;
    if name == LIST {
        let names = report::figure_names(study).into_iter().map(|name| name + "\n");
        print::text(names.collect::<String>())?;
        return Ok(());
    }
    if !study.complete {
        let shown = args.studies[0].display();
        let go_on = study.commands.first().filter(|_| study.settings.dilation.is_none());
        let next = go_on.map_or_else(
            || "run it again to its end".to_owned(),
            |command| format!("{command} continues it"),
        );
        return Err(Failure::bad_input(format!(
            "{shown} is of a study that was stopped or still runs, and its figure would look whole: {next}"
        )));
    }
    let typeface = typeface(args.font.as_deref())?;
    if name == ALL {
        wanted.all(&typeface)
    } else {
        let drawn = wanted.drawn(name, wanted.slo_ns, &typeface);
        wanted.write(name, &drawn.map_err(Failure::bad_input)?)
    }
}

/// The figures that are asked for of a study.
struct WantedFigures<'w> {
    args: &'w ReportArgs,
    study: &'w StudyOutcome,
    /// The study's folder.
    beside: &'w Path,
    slo_ns: Option<f64>,
    /// Texts for labels of series.
    texts: Vec<(String, String)>,
}

impl WantedFigures<'_> {
    fn drawn<'t>(
        &self,
        name: &str,
        slo_ns: Option<f64>,
        typeface: &'t Typeface,
    ) -> Result<Figure<'t>, FigureError> {
        let Self { args, study, texts, .. } = self;
        let &ReportArgs { size, ref only, linear, .. } = *args;
        let request = FigureRequest { name, size, only, texts, linear, slo_ns };
        report::figure(study, &request, typeface)
    }

    /// Writes each figure that has what is asked for: the line of a limit is for latencies, and not every
    /// picture has every series, or room in every size.
    fn all(&self, typeface: &Typeface) -> Outcome<()> {
        let (mut why_none, mut is_one_written, mut too_large) = (None, false, Vec::new());
        for name in report::figure_names(self.study) {
            let drawn = match self.drawn(&name, self.slo_ns, typeface) {
                Err(FigureError::NoLatency { .. }) => self.drawn(&name, None, typeface),
                drawn => drawn,
            };
            match drawn {
                Err(why @ (FigureError::NoSuchSeries { .. } | FigureError::NoPoints { .. })) => {
                    why_none.get_or_insert(why);
                }
                Err(why @ (FigureError::NoRoom { .. } | FigureError::TooLarge { .. })) => {
                    why_none.get_or_insert(why);
                    too_large.push(name);
                }
                drawn => {
                    self.write(&name, &drawn.map_err(Failure::bad_input)?)?;
                    is_one_written = true;
                }
            }
        }
        if is_one_written && !too_large.is_empty() {
            let names = too_large.join(", ");
            print::to_stderr(format_args!("left out, as they need more room than --size gives: {names}"));
        }
        let none_at_all = || FigureError::NoFigures { study: self.study.name.clone() };
        if is_one_written { Ok(()) } else { Err(Failure::bad_input(why_none.unwrap_or_else(none_at_all))) }
    }

    /// Writes a figure and prints the names of its files.
    fn write(&self, name: &str, figure: &Figure<'_>) -> Outcome<()> {
        self.save(name, figure)?.iter().try_for_each(print::line)
    }

    /// Writes a figure into the file that is asked for, or as SVG and PDF into a folder.
    fn save(&self, name: &str, figure: &Figure<'_>) -> Outcome<Vec<String>> {
        let svg = || figure.svg().into_bytes();
        let pdf = || figure.pdf().map_err(Failure::broken);
        let args = self.args;
        let out = args.out.as_deref();
        let ending = out.and_then(|path| path.extension()?.to_str()).map(str::to_lowercase);
        if let (Some(path), Some(_)) = (out, ending.as_deref().filter(|ending| OTHERS.contains(ending))) {
            let path = path.display();
            return Err(Failure::bad_input(format!(
                "--out {path}: figures are SVG or PDF; end the name with .svg or .pdf, or name a folder for \
                 both"
            )));
        }
        let ending = ending.as_deref().filter(|ending| ["svg", "pdf"].contains(ending));
        let (folder, contents) = match (out, ending) {
            (Some(path), Some(_)) if args.figure.as_deref() == Some(ALL) => {
                let path = path.display();
                return Err(Failure::bad_input(format!(
                    "--out {path} is one file, and --figure all makes many: name a folder"
                )));
            }
            (Some(path), Some(ending)) => {
                let contents = if ending == "svg" { svg() } else { pdf()? };
                let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                (path.parent().unwrap_or(Path::new("")), vec![(file, contents)])
            }
            (folder, _) => {
                let file = file_name(name);
                let both = vec![(format!("{file}.svg"), svg()), (format!("{file}.pdf"), pdf()?)];
                (folder.unwrap_or(self.beside), both)
            }
        };
        if !folder.as_os_str().is_empty() {
            files::make(folder)?;
        }
        let save = |(file, contents): (String, Vec<u8>)| {
            files::save(folder, &file, &contents)?;
            Ok(folder.join(file).display().to_string())
        };
        contents.into_iter().map(save).collect()
    }
}

fn typeface(file: Option<&Path>) -> Outcome<Typeface> {
    let Some(file) = file else { return Ok(Typeface::built_in()) };
    let shown = format!("--font {}", file.display());
    let contents = fs::read(file).map_err(|why| {
        Failure::bad_input(format!(
            "{shown} cannot be read: {why}; name a .ttf or .otf file, or leave it away"
        ))
    })?;
    Typeface::from_file(contents, &shown).map_err(Failure::bad_input)
}
