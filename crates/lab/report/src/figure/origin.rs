//! What ran, for the metadata of a figure's files.

use sluice_outcome::study::StudyOutcome;

use crate::show;

/// Where a figure's numbers come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FigureOrigin {
    pub(super) title: String,
    /// The program that ran the study.
    pub(super) creator: String,
    /// What ran, a line each.
    pub(super) lines: Vec<String>,
    pub(super) keywords: Vec<String>,
}

impl FigureOrigin {
    /// What ran for a figure; `says` describes the picture.
    pub(super) fn of(study: &StudyOutcome, figure: &str, says: String, sources: &[&str]) -> Self {
        let settings = &study.settings;
        let tasks = show::tasks(settings).unwrap_or_else(|| "all".to_owned());
        let machine = match (&settings.machine, settings.dilation) {
            (Some(machine), _) => machine.clone(),
            (None, None) => "any, as virtual time is the same on all".to_owned(),
            (None, Some(_)) => "not kept".to_owned(),
        };
        let mut lines = vec![says];
        lines.extend(study.commands.first().map(|command| format!("command: {command}")));
        lines.extend([
            format!("plan: {}", settings.plan.as_deref().unwrap_or("none, from the command line")),
            format!("seed: {}", settings.seed),
            format!("sluice: {}, commit {}", study.sluice, study.commit),
            format!("testbed: {}, {} workers", settings.testbed, settings.workers),
            format!("length: {} x {tasks} tasks a point", settings.replications),
            format!("machine: {machine}"),
        ]);
        lines.extend(settings.dilation.map(|factor| format!("dilation: {factor}")));
        lines.extend(sources.iter().map(|place| format!("stated numbers: {place}")));
        Self {
            title: format!("{}: {figure}", study.title),
            creator: format!("sluice {} ({})", study.sluice, study.commit),
            lines,
            keywords: vec![study.name.clone(), figure.to_owned(), format!("seed {}", settings.seed)],
        }
    }
}
