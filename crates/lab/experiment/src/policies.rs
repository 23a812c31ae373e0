//! Policies on the command line: as words, or by `--policy`, given once or several times, with commas
//! between them.
//!
//! A policy may contain commas itself (`racksched:2,tracked`). So a list is split only where a policy's
//! name begins; a part without a name belongs to the policy before it.

use clap::Args;
use sluice_sim::policy::Policy;
use sluice_study::StudyError;

use crate::{StudyResult, bad_input};

/// The policies of a command that runs some.
#[derive(Clone, Debug, Default, Args)]
pub struct PolicyArgs {
    /// Which schedulers to run, such as rain:2 (Rain, at most two tasks at a worker) racksched:2,tracked
    /// central; `sluice policies` lists them all.
    #[arg(value_name = "POLICY")]
    words: Vec<String>,
    /// The same by a flag, which may be repeated; one value may hold several:
    /// rain:2,racksched:2,tracked,central.
    #[arg(long = "policy", value_name = "POLICIES")]
    flags: Vec<String>,
}

impl PolicyArgs {
    /// All policies, in the given order; `otherwise` if there are none.
    pub fn or(&self, otherwise: &[&str]) -> StudyResult<Vec<String>> {
        let given: Vec<&String> = self.words.iter().chain(&self.flags).collect();
        if given.is_empty() {
            return Ok(otherwise.iter().map(|policy| (*policy).to_owned()).collect());
        }
        listed(given)
    }

    /// All policies; an error if there are none, since `command` needs at least one.
    pub fn some(&self, command: &str) -> StudyResult<Vec<String>> {
        let all = self.or(&[])?;
        if all.is_empty() {
            return Err(bad_input(format!(
                "which policies? name some, such as sluice {command} rain:2 central; `sluice policies` lists them"
            )));
        }
        Ok(all)
    }

    /// Exactly `N` policies, as `command` requires.
    pub fn exactly<const N: usize>(&self, command: &str) -> StudyResult<[String; N]> {
        <[String; N]>::try_from(self.or(&[])?).map_err(|given| count(command, N, &given))
    }

    /// The single policy; `otherwise` if none is given.
    pub fn one(&self, command: &str, otherwise: &str) -> StudyResult<String> {
        <[String; 1]>::try_from(self.or(&[otherwise])?)
            .map(|[one]| one)
            .map_err(|given| count(command, 1, &given))
    }
}

/// The policies in these lists; an error if one is unknown.
pub fn listed<S: AsRef<str>>(lists: impl IntoIterator<Item = S>) -> StudyResult<Vec<String>> {
    let mut policies = Vec::new();
    for list in lists {
        let parts = split(list.as_ref());
        for (place, policy) in parts.iter().enumerate() {
            let before = place.checked_sub(1).map(|before| parts[before].as_str());
            Policy::parse(policy).map_err(|why| bad_input(explain(&why.to_string(), policy, before)))?;
        }
        policies.extend(parts);
    }
    Ok(policies)
}

/// The policy of a command that takes at most one.
pub fn at_most_one<S: AsRef<str>>(
    command: &str,
    lists: impl IntoIterator<Item = S>,
) -> StudyResult<Option<String>> {
    let mut policies = listed(lists)?;
    match policies.len() {
        0 | 1 => Ok(policies.pop()),
        _ => Err(count(command, 1, &policies)),
    }
}

/// The policies of a list, including unknown ones.
pub fn split(list: &str) -> Vec<String> {
    let mut policies: Vec<String> = Vec::new();
    for part in list.split(',') {
        match policies.last_mut() {
            Some(last) if last.contains(':') && !is_name(name_of(part)) => {
                last.push(',');
                last.push_str(part);
            }
            _ => policies.push(part.to_owned()),
        }
    }
    policies
}

/// The part before a colon.
fn name_of(policy: &str) -> &str {
    policy.split(':').next().unwrap_or(policy)
}

fn names() -> impl Iterator<Item = &'static str> {
    Policy::all().map(|known| name_of(known.name))
}

fn is_name(name: &str) -> bool {
    names().any(|known| known == name)
}

/// Why a policy is unknown, and how a comma may be the reason.
fn explain(why: &str, policy: &str, before: Option<&str>) -> String {
    let joined = before.map(|before| format!("{before}:{policy}"));
    if let Some(joined) = joined.filter(|joined| Policy::parse(joined).is_ok()) {
        return format!("{why}; a policy's arguments stand behind a colon: {joined}");
    }
    let mut parts = policy.split(',');
    let name = name_of(parts.next().unwrap_or_default());
    let wrong = parts.find(|part| Policy::parse(&format!("{name}:{part}")).is_err());
    match wrong.and_then(|part| sluice_units::nearest(name_of(part), names()).map(|near| (part, near))) {
        Some((part, near)) => format!("{why}; if `{part}` was to be a policy: did you mean `{near}`?"),
        None => why.to_owned(),
    }
}

fn count(command: &str, takes: usize, given: &[String]) -> StudyError {
    let policies = if takes == 1 { "one policy" } else { "two policies" };
    let were = if given.is_empty() { "none was".to_owned() } else { format!("{} were", given.len()) };
    let example = ["rain:2", "racksched:2,tracked"][..takes.min(2)].join(" --policy ");
    let shown = if given.is_empty() { String::new() } else { format!(": {}", given.join(" and ")) };
    bad_input(format!("sluice {command} takes {policies}, and {were} given{shown}; give --policy {example}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str], flags: &[&str]) -> PolicyArgs {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        PolicyArgs { words: owned(words), flags: owned(flags) }
    }

    #[test]
    fn what_names_no_policy_belongs_to_the_one_before() {
        assert_eq!(
            split("rain:2,racksched:2,tracked,pallas,rain:adaptive,replay"),
            ["rain:2", "racksched:2,tracked", "pallas", "rain:adaptive,replay"]
        );
        assert_eq!(split("rian,pallas"), ["rian", "pallas"]);
    }

    #[test]
    fn no_policys_argument_is_a_policys_name() {
        for program in Policy::all() {
            for other in names() {
                let text = format!("{}:{other}", name_of(program.name));
                assert!(Policy::parse(&text).is_err(), "`{text}`: where does the first policy end?");
            }
        }
    }

    #[test]
    fn words_and_flags_are_one_list_in_their_order() {
        let given = args(&["rain:1", "central"], &["racksched:2,tracked,jbsq:2", "pallas"]);
        let all = ["rain:1", "central", "racksched:2,tracked", "jbsq:2", "pallas"];
        assert_eq!(given.some("sweep").expect("all are known"), all);
        assert_eq!(args(&[], &[]).one("sim", "rain:2").expect("the default"), "rain:2");
        let [a, b] = args(&[], &["rain:1,rain:2"]).exactly("compare").expect("two");
        assert_eq!((a.as_str(), b.as_str()), ("rain:1", "rain:2"));
    }

    #[test]
    fn what_is_wrong_is_told_with_what_was_meant() {
        for (flags, parts) in [
            ("rain:2,rackshced", vec!["`rackshced` means nothing to rain", "did you mean `racksched`?"]),
            ("rain,2", vec!["unknown policy `2`", "behind a colon: rain:2"]),
            ("rian:2,central", vec!["unknown policy `rian`", "did you mean `rain`?"]),
            ("rain:2,", vec!["means nothing to rain"]),
            ("horus:foo", vec!["it takes resubmit=adds, resubmit=writes,", "`sluice policies` says"]),
        ] {
            let said = args(&[], &[flags]).some("sweep").expect_err(flags).to_string();
            assert!(parts.iter().all(|part| said.contains(part)), "{flags}: {said}");
        }
        for (command, given) in [("compare", args(&["rain:1"], &[])), ("compare", args(&[], &[]))] {
            let said = given.exactly::<2>(command).expect_err("too few").to_string();
            assert!(said.contains("takes two policies"), "{said}");
        }
        let said = args(&["rain:1", "rain:2"], &[]).one("sim", "rain:2").expect_err("too many").to_string();
        assert!(said.contains("takes one policy, and 2 were given"), "{said}");
    }
}
