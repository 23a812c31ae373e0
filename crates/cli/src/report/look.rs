//! Which colour, dash and marker a series has: the same in all pictures of a report, and told apart by shape alone.

use sluice_sim::study::outcome::{Panel, Series, StudyOutcome};

use super::html::Tag;

/// Colours in the style sheet, `--c0` on.
const COLOURS: usize = 8;
const DASHES: [&str; 5] = ["", "7 3", "2 2.5", "9 3 2 3", "5 2 1 2 1 2"];

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    colour: usize,
    dash: usize,
    /// Its marker.
    pub(crate) marker: Marker,
}

/// Closed shapes, so that each can be hollow.
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

impl Look {
    /// What is beside the series, such as a number of the paper that stands for no series.
    pub(crate) const NEUTRAL: Self = Self { colour: COLOURS, dash: 0, marker: Marker::Circle };

    /// The class that sets the colour.
    pub(crate) const fn class(self) -> &'static str {
        const CLASSES: [&str; COLOURS + 1] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "cn"];
        CLASSES[self.colour]
    }

    /// A line with its dashes.
    pub(crate) fn dashed(self, line: Tag) -> Tag {
        match DASHES[self.dash] {
            "" => line,
            dashes => line.with("stroke-dasharray", dashes),
        }
    }
}

/// The looks of all series of a study.
#[derive(Clone, Debug)]
pub(crate) struct Looks {
    keys: Vec<Key>,
    /// With few series each has a colour of its own; with many, each family.
    by_family: bool,
}

/// Series that look alike: one policy from the simulator and from a live rack.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    policy: String,
    slices: Option<String>,
    /// Tells apart what one panel has twice from one source.
    nth: usize,
}

impl Looks {
    /// The looks of a study's series, by first appearance.
    pub(crate) fn of(study: &StudyOutcome) -> Self {
        let mut keys: Vec<Key> = Vec::new();
        for panel in &study.panels {
            for index in 0..panel.series.len() {
                let key = Key::of(panel, index);
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        Self { by_family: keys.len() > COLOURS, keys }
    }

    /// The look of a panel's series.
    pub(crate) fn get(&self, panel: &Panel, index: usize) -> Look {
        let key = Key::of(panel, index);
        let place = self.keys.iter().position(|known| *known == key).unwrap_or_default();
        if !self.by_family {
            let at = place % COLOURS;
            return Look { colour: at, dash: at % DASHES.len(), marker: MARKERS[at] };
        }
        let mut families: Vec<&str> = self.keys.iter().map(Key::family).collect();
        let variant = families[..place].iter().filter(|family| **family == key.family()).count();
        let mut seen = Vec::new();
        families.retain(|family| !seen.contains(family) && (seen.push(*family), true).1);
        let colour = families.iter().position(|family| *family == key.family()).unwrap_or_default() % COLOURS;
        Look { colour, dash: variant % DASHES.len(), marker: MARKERS[(colour + variant) % COLOURS] }
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
