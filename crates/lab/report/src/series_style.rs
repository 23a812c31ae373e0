//! Which colour, dash and marker each series has: the same in all pictures of a report, and distinguishable
//! without colour.

use sluice_outcome::study::{Panel, Series};

use super::html::Tag;

/// How many colours the style sheet has, from `--c0` on.
const COLOURS: usize = 8;
const DASHES: [&str; 5] = ["", "7 3", "2 2.5", "9 3 2 3", "5 2 1 2 1 2"];

/// The colour, dash and marker of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeriesStyle {
    colour: usize,
    dash: usize,
    pub(crate) marker: Marker,
}

/// The marker of a point. All shapes are closed, so that each can be drawn hollow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    Circle,
    Square,
    Up,
    Diamond,
    Down,
    Star,
    Right,
    Left,
}

const MARKERS: [Marker; COLOURS] = [
    Marker::Circle,
    Marker::Square,
    Marker::Up,
    Marker::Diamond,
    Marker::Down,
    Marker::Star,
    Marker::Right,
    Marker::Left,
];

impl SeriesStyle {
    /// The look of a number without a series, such as one of the paper.
    pub(crate) const NEUTRAL: Self = Self { colour: COLOURS, dash: 0, marker: Marker::Circle };

    /// The look of the line of this number in a picture; the first eight differ in colour.
    pub(crate) const fn numbered(place: usize) -> Self {
        let colour = place % COLOURS;
        Self { colour, dash: (place / COLOURS) % DASHES.len(), marker: MARKERS[colour] }
    }

    /// The look of this number among few: the first five differ in dash and marker, too.
    pub(crate) fn apart(place: usize) -> Self {
        Self::unlike(&[], place % COLOURS)
    }

    /// A look of this colour whose dash and marker no other series has, so that both differ in grey too.
    /// There are forty such pairs; after that, only colours differ, and in the end looks repeat.
    fn unlike(known: &[(Key, Self)], colour: usize) -> Self {
        let nth = |n: usize| Self {
            colour,
            dash: (colour + n) % DASHES.len(),
            marker: MARKERS[(colour + n) % COLOURS],
        };
        let all = || (0..DASHES.len() * COLOURS).map(nth);
        let differs_in_grey = |look: &Self| {
            known.iter().all(|(_, other)| (other.dash, other.marker) != (look.dash, look.marker))
        };
        let differs = |look: &Self| known.iter().all(|(_, other)| other != look);
        all().find(differs_in_grey).or_else(|| all().find(differs)).unwrap_or(nth(0))
    }

    /// The CSS class of the colour.
    pub(crate) const fn class(self) -> &'static str {
        const CLASSES: [&str; COLOURS + 1] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "cn"];
        CLASSES[self.colour]
    }

    /// The number of the colour; one more than the last is that of a number without a series.
    pub(crate) const fn colour(self) -> usize {
        self.colour
    }

    /// The lengths of dashes and gaps, in widths of the page's lines; none for a whole line.
    pub(crate) fn dashes(self) -> Vec<f64> {
        DASHES[self.dash].split_whitespace().filter_map(|length| length.parse().ok()).collect()
    }

    /// Adds the look's dashes to a line.
    pub(crate) fn dashed(self, line: Tag) -> Tag {
        match DASHES[self.dash] {
            "" => line,
            dashes => line.with("stroke-dasharray", dashes),
        }
    }
}

/// The looks of all series of a page.
#[derive(Clone, Debug)]
pub(crate) struct SeriesStyles {
    known: Vec<(Key, SeriesStyle)>,
}

/// Series with the same key look alike: one policy from the simulator and from a live rack.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    policy: String,
    slices: Option<String>,
    /// Distinguishes equal series of one panel and source.
    nth: usize,
}

impl SeriesStyles {
    /// The looks of these panels' series, by first appearance. With few series each has its own colour; with
    /// many, each family has one.
    pub(crate) fn of<'p>(panels: impl IntoIterator<Item = &'p Panel>) -> Self {
        let mut keys: Vec<Key> = Vec::new();
        for panel in panels {
            for key in (0..panel.series.len()).map(|index| Key::of(panel, index)) {
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        let by_family = keys.len() > COLOURS;
        let mut families: Vec<String> = Vec::new();
        let mut known: Vec<(Key, SeriesStyle)> = Vec::new();
        for key in keys {
            let family = if by_family { key.family().to_owned() } else { known.len().to_string() };
            let place = families.iter().position(|known| *known == family).unwrap_or_else(|| {
                families.push(family);
                families.len() - 1
            });
            let look = SeriesStyle::unlike(&known, place % COLOURS);
            known.push((key, look));
        }
        Self { known }
    }

    /// The look of a panel's series.
    pub(crate) fn get(&self, panel: &Panel, index: usize) -> SeriesStyle {
        let key = Key::of(panel, index);
        self.known.iter().find(|(known, _)| *known == key).map_or(SeriesStyle::NEUTRAL, |(_, look)| *look)
    }
}

impl Key {
    fn of(panel: &Panel, index: usize) -> Self {
        let series = &panel.series[index];
        let alike = |other: &&Series| {
            other.policy == series.policy && other.slices == series.slices && other.source == series.source
        };
        Self {
            policy: series.policy.clone(),
            slices: series.slices.clone(),
            nth: panel.series[..index].iter().filter(alike).count(),
        }
    }

    fn family(&self) -> &str {
        self.policy.split(':').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_outcome::study::Source;

    fn panel(policies: impl IntoIterator<Item = String>) -> Panel {
        let series = |policy: String| Series {
            label: policy.clone(),
            policy,
            slices: None,
            slice_names: Vec::new(),
            source: Source::Simulator,
            points: Vec::new(),
        };
        Panel {
            id: String::new(),
            title: String::new(),
            workload: String::new(),
            classes: Vec::new(),
            capacity_per_s: 1.0,
            series: policies.into_iter().map(series).collect(),
            paper: Vec::new(),
        }
    }

    fn looks(panel: &Panel) -> Vec<SeriesStyle> {
        let looks = SeriesStyles::of([panel]);
        (0..panel.series.len()).map(|index| looks.get(panel, index)).collect()
    }

    #[test]
    fn no_two_series_look_the_same() {
        for count in [3, 8, 20, 60] {
            let of = panel((0..count).map(|n| format!("p{}:{}", n % 13, n / 13)));
            let looks = looks(&of);
            for (index, look) in looks.iter().enumerate() {
                assert!(!looks[..index].contains(look), "{index} of {count}");
                let in_grey = |other: &SeriesStyle| (other.dash, other.marker) == (look.dash, look.marker);
                assert!(count > 40 || !looks[..index].iter().any(in_grey), "{index} of {count} in grey");
            }
        }
    }

    #[test]
    fn a_family_has_one_colour_where_there_are_many() {
        let of = panel((1..=9).map(|depth| format!("rain:{depth}")).chain(["draconis".to_owned()]));
        let looks = looks(&of);
        assert!(looks[..9].iter().all(|look| look.class() == looks[0].class()));
        assert_ne!(looks[9].class(), looks[0].class());
    }
}
