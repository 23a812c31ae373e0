//! One picture of a study alone, for a paper: as SVG and as PDF, readable in grey, with what ran in its
//! metadata.

mod bars;
mod depths;
mod entries;
mod error;
mod heat;
mod layout;
mod legend;
mod notes;
mod origin;
mod pdf;
mod pictures;
mod plot;
mod request;
mod sheet;
mod size;
mod svg;
mod symbols;
mod typeface;

use sluice_outcome::study::StudyOutcome;

pub use error::FigureError;
use origin::FigureOrigin;
pub use request::FigureRequest;
use sheet::Sheet;
pub use size::FigureSize;
pub use typeface::Typeface;

/// A figure that can be written.
#[derive(Clone, Debug)]
pub struct Figure<'f> {
    sheet: Sheet,
    origin: FigureOrigin,
    typeface: &'f Typeface,
}

/// The names of all figures of a study. A name begins with its panel's, if there are several.
pub fn figure_names(study: &StudyOutcome) -> Vec<String> {
    pictures::all(study, None).into_iter().map(|(name, _)| name).collect()
}

/// A figure of a study.
pub fn figure<'f>(
    study: &StudyOutcome,
    request: &FigureRequest<'_>,
    typeface: &'f Typeface,
) -> Result<Figure<'f>, FigureError> {
    let mut all = pictures::all(study, request.slo_ns);
    if all.is_empty() {
        return Err(FigureError::NoFigures { study: study.name.clone() });
    }
    let figure = request.name.to_owned();
    let Some(wanted) = all.iter().position(|(name, _)| *name == figure) else {
        let known = all.into_iter().map(|(name, _)| name).collect();
        return Err(FigureError::NoSuchFigure { name: figure, known });
    };
    let (_, mut picture) = all.swap_remove(wanted);
    if request.slo_ns.is_some() && !picture.has_slo() {
        return Err(FigureError::NoLatency { figure });
    }
    picture.keep_only(&figure, request.only)?;
    picture.rename(request.texts);
    let (sheet, origin) = picture.drawn(study, request, typeface)?;
    match typeface.lacks(sheet.texts()) {
        Some(letter) => Err(FigureError::NoGlyph { family: typeface.family.clone(), letter }),
        None => Ok(Figure { sheet, origin, typeface }),
    }
}

impl Figure<'_> {
    /// The figure as an SVG file.
    pub fn svg(&self) -> String {
        svg::svg(&self.sheet, self.typeface, &self.origin)
    }

    /// The figure as a PDF file.
    pub fn pdf(&self) -> Result<Vec<u8>, FigureError> {
        pdf::pdf(&self.sheet, self.typeface, &self.origin)
    }
}
