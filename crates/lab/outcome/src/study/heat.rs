//! Numbers over two settings.

use serde::{Deserialize, Serialize};

use super::{Estimate, Unit};

/// A number at each combination of two settings: a table whose cells are coloured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeatMap {
    /// Unique in the study.
    pub id: String,
    /// What stands above it.
    pub title: String,
    /// The unit of all numbers.
    pub unit: Unit,
    /// The setting whose values stand beside each other.
    pub across: Axis,
    /// The setting whose values stand below each other.
    pub down: Axis,
    /// A row for each value of `down`, in it a number for each value of `across`.
    pub cells: Vec<Vec<Estimate>>,
}

/// A setting and its values, in growing order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// What is set, such as `keys`.
    pub name: String,
    pub values: Vec<u64>,
}

impl HeatMap {
    /// All cells with the values that they belong to: `across`, `down`, the number.
    pub fn numbers(&self) -> impl Iterator<Item = (u64, u64, &Estimate)> {
        let rows = self.down.values.iter().zip(&self.cells);
        rows.flat_map(|(down, row)| {
            self.across.values.iter().zip(row).map(move |(across, number)| (*across, *down, number))
        })
    }
}
