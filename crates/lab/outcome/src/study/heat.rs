//! Numbers over two settings.

use serde::{Deserialize, Serialize};

use super::{Estimate, Unit};

/// A number for each combination of two settings: a table with coloured cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeatMap {
    /// The map's id, unique in the study.
    pub id: String,
    pub title: String,
    /// The unit of all numbers.
    pub unit: Unit,
    /// The setting of the columns.
    pub across: Axis,
    /// The setting of the rows.
    pub down: Axis,
    /// For each value of `down` a row, with a number for each value of `across`.
    pub cells: Vec<Vec<Estimate>>,
}

/// A setting and its values, in growing order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The name of the setting, such as `keys`.
    pub name: String,
    pub values: Vec<u64>,
}

impl HeatMap {
    /// All cells: the value of `across`, the value of `down`, and the number.
    pub fn numbers(&self) -> impl Iterator<Item = (u64, u64, &Estimate)> {
        let rows = self.down.values.iter().zip(&self.cells);
        rows.flat_map(|(down, row)| {
            self.across.values.iter().zip(row).map(move |(across, number)| (*across, *down, number))
        })
    }
}
