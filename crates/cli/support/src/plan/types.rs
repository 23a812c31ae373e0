//! Names of task types: the built-in ones, and those that a plan adds in `[types]`. A type's number can be
//! used in place of its name everywhere.

use sluice_control::NAME_BYTES_MAX;

/// The built-in types and their numbers.
const OURS: [(&str, u16); 8] = [
    ("get", 1),
    ("scan", 2),
    ("spin", 3),
    ("hold", 4),
    ("kv-get", 20),
    ("kv-scan", 21),
    ("kv-set", 22),
    ("kv-del", 23),
];

/// Names and numbers of types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Types(Vec<(String, u16)>);

impl Types {
    /// The built-in types.
    pub fn built_in() -> Self {
        Self(OURS.map(|(name, number)| (name.to_owned(), number)).to_vec())
    }

    /// The types that a plan adds.
    pub fn added(&self) -> impl Iterator<Item = &(String, u16)> {
        self.0.iter().filter(|(name, number)| !OURS.contains(&(name.as_str(), *number)))
    }

    /// The built-in types, and those with which a rack was started.
    pub fn of_rack(names: impl IntoIterator<Item = (u16, String)>) -> Self {
        let mut types = Self::built_in();
        for (number, name) in names {
            // A name that is taken is a built-in one.
            types.name(&name, number).ok();
        }
        types
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &(String, u16)> {
        self.0.iter()
    }

    /// Names a number.
    pub fn name(&mut self, name: &str, number: u16) -> Result<(), String> {
        check_shown(name)?;
        let half = |(known, used): &&(String, u16)| (known == name) != (*used == number);
        if let Some((other, _)) = self.0.iter().find(half) {
            return Err(format!("{number} and the name must both be new; `{other}` has one of them already"));
        }
        if self.number(name).is_none() {
            self.add(name.to_owned(), number);
        }
        Ok(())
    }

    /// The name of the type that `text` names, by name or number; a number without a name is its own name.
    pub fn called(&mut self, text: &str) -> Result<String, String> {
        if self.number(text).is_some() {
            return Ok(text.to_owned());
        }
        let Some(number) = text.parse::<u16>().ok().filter(|number| *number > 0) else {
            let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
            return Err(format!("{}; or give its number", sluice_units::unknown("type", text, &names)));
        };
        if let Some((name, _)) = self.0.iter().find(|(_, used)| *used == number) {
            return Ok(name.clone());
        }
        self.add(number.to_string(), number);
        Ok(number.to_string())
    }

    /// The mix with the types' names in place of numbers.
    pub fn named_mix(&mut self, mix: Vec<(String, f64)>) -> Result<Vec<(String, f64)>, String> {
        let mut named: Vec<(String, f64)> = Vec::new();
        for (said, share) in mix {
            let name = self.called(&said)?;
            if named.iter().any(|(known, _)| *known == name) {
                return Err(format!(
                    "the mix names `{name}` twice, by its name and by its number: give it one share"
                ));
            }
            named.push((name, share));
        }
        Ok(named)
    }

    /// Inserts in order, so that the order in which types are added does not matter.
    fn add(&mut self, name: String, number: u16) {
        let place = self.0.partition_point(|(_, used)| *used < number);
        self.0.insert(place, (name, number));
    }

    /// The number of the type with this name.
    pub fn number(&self, name: &str) -> Option<u16> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, number)| *number)
    }

    /// A type for display: its name and number, or the number alone.
    pub fn shown(&self, number: u32) -> String {
        let name = self.0.iter().find(|(_, used)| u32::from(*used) == number).map(|(name, _)| name);
        name.map_or_else(|| number.to_string(), |name| format!("{name} ({number})"))
    }

    /// The largest number.
    pub fn largest(&self) -> u16 {
        self.0.iter().map(|(_, number)| *number).max().unwrap_or(0)
    }
}

/// Refuses a name that results could not show: names stand in tables, lines and file names.
pub(super) fn check_shown(name: &str) -> Result<(), String> {
    let hides = |letter: &char| !matches!(letter, '"' | '\'' | '\\') && letter.escape_debug().len() > 1;
    if name.trim().is_empty() {
        return Err("a name needs at least one letter".to_owned());
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("a name of {} bytes is too long; {NAME_BYTES_MAX} are the most", name.len()));
    }
    name.chars().find(hides).map_or(Ok(()), |letter| {
        let (name, letter) = (name.escape_debug(), letter.escape_debug());
        Err(format!("the name `{name}` holds `{letter}`, which no table can show; leave it out"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_found_by_its_name_and_by_its_number() {
        let mut types = Types::built_in();
        types.name("reverse", 9).expect("both are new");
        for (said, name, number) in
            [("get", "get", 1), ("1", "get", 1), ("9", "reverse", 9), ("70", "70", 70)]
        {
            assert_eq!(types.called(said).as_deref(), Ok(name));
            assert_eq!(types.number(name), Some(number));
        }
        assert_eq!([1, 9, 8].map(|number| types.shown(number)), ["get (1)", "reverse (9)", "8"]);
        assert_eq!(types.largest(), 70);
        for wrong in ["revers", "0", "65536", "-1"] {
            assert!(types.called(wrong).is_err_and(|why| why.contains("or give its number")), "{wrong}");
        }
    }

    #[test]
    fn a_name_may_be_a_path_and_a_quotation_but_nothing_that_no_line_shows() {
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for right in ["kv/read", "../../../evil", "say \"hi\"", "größe", &long[1..]] {
            assert_eq!(Types::built_in().name(right, 17), Ok(()), "{right}");
        }
        for wrong in ["", " ", "a\nb", "a\tb", "\u{1b}[2J", "a\u{202e}b", "a\0", &long] {
            assert!(Types::built_in().name(wrong, 17).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_name_or_number_that_is_taken_is_refused() {
        let mut types = Types::built_in();
        assert!(types.name("get", 7).is_err() && types.name("echo", 1).is_err());
        assert_eq!(types.name("get", 1), Ok(()), "it says what is so");
    }
}
