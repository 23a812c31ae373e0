//! The font of a figure: how wide its texts are, and its glyphs for PDF.

use std::borrow::Cow;

use krilla::text::{Font, GlyphId, KrillaGlyph};
use skrifa::instance::{LocationRef, Size};
use skrifa::raw::TableProvider;
use skrifa::string::StringId;
use skrifa::{FontRef, MetadataProvider};

use super::error::FigureError;

/// The rights in a font file's `fsType`, and the value that forbids to embed it.
const RIGHTS: u16 = 0xf;
const RESTRICTED: u16 = 2;
/// The bits of `fsType` that forbid what a PDF has: a part of the font, as outlines.
const NO_PART: u16 = 0x100;
const BITMAPS_ONLY: u16 = 0x200;

/// A font.
#[derive(Clone, Debug)]
pub struct Typeface {
    data: Cow<'static, [u8]>,
    font: Font,
    /// The family's name, such as `Noto Sans`.
    pub(super) family: String,
}

impl Typeface {
    /// The font that the program holds: Noto Sans, whose tables name the Apache License 2.0.
    pub fn built_in() -> Self {
        Self::new(Cow::Borrowed(notosans::REGULAR_TTF), "the built-in font").expect("it is a whole font")
    }

    /// A font from the contents of a file; `file` is its name in errors.
    pub fn from_file(contents: Vec<u8>, file: &str) -> Result<Self, FigureError> {
        Self::new(Cow::Owned(contents), file)
    }

    fn new(data: Cow<'static, [u8]>, file: &str) -> Result<Self, FigureError> {
        let unreadable = || FigureError::NoFont { file: file.to_owned() };
        let tables = FontRef::from_index(&data, 0).map_err(|_| unreadable())?;
        let family = tables.localized_strings(StringId::FAMILY_NAME).english_or_first();
        let family = family.map_or_else(|| "sans-serif".to_owned(), |name| name.to_string());
        let rights = tables.os2().map_or(0, |os2| os2.fs_type());
        if rights & RIGHTS == RESTRICTED || rights & (NO_PART | BITMAPS_ONLY) != 0 {
            return Err(FigureError::NotEmbeddable { file: file.to_owned() });
        }
        let for_pdf: krilla::Data = match &data {
            Cow::Borrowed(bytes) => (*bytes).into(),
            Cow::Owned(bytes) => bytes.clone().into(),
        };
        let font = Font::new(for_pdf, 0).ok_or_else(unreadable)?;
        Ok(Self { data, font, family })
    }

    /// The width of a line of text, in the unit of `size`.
    pub(super) fn width(&self, text: &str, size: f64) -> f64 {
        self.glyphs(text).iter().map(|glyph| f64::from(glyph.x_advance)).sum::<f64>() * size
    }

    /// The first character of these texts for which the font has no glyph.
    pub(super) fn lacks<'t>(&self, mut texts: impl Iterator<Item = &'t str>) -> Option<char> {
        let charmap = self.tables().charmap();
        texts.find_map(|text| text.chars().find(|letter| charmap.map(*letter).is_none()))
    }

    pub(super) fn font(&self) -> Font {
        self.font.clone()
    }

    /// A text's glyphs, one for each character. Charts have no ligatures and no text from right to left.
    pub(super) fn glyphs(&self, text: &str) -> Vec<KrillaGlyph> {
        let tables = self.tables();
        let (charmap, em) = (tables.charmap(), self.font.units_per_em());
        let metrics = tables.glyph_metrics(Size::unscaled(), LocationRef::default());
        let glyph = |(at, letter): (usize, char)| {
            let of = charmap.map(letter).unwrap_or_default();
            let advance = metrics.advance_width(of).unwrap_or(0.0) / em;
            let range = at..at + letter.len_utf8();
            KrillaGlyph::new(GlyphId::new(of.to_u32()), advance, 0.0, 0.0, 0.0, range, None)
        };
        text.char_indices().map(glyph).collect()
    }

    fn tables(&self) -> FontRef<'_> {
        FontRef::from_index(&self.data, 0).expect("it was read before")
    }
}
