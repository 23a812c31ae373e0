//! `sluice diff`: holds two results against each other, point by point, and says which numbers differ and
//! which are within noise.

mod held;
mod loads;
mod shown;
mod studies;

use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::print;
use sluice_support::results::either::{ResultFile, file_of, of_two_kinds, read};

use crate::args::DiffArgs;
use held::ResultDiff;

/// Prints what differs; with `--exit-code` that is a failure.
pub(crate) fn run(args: &DiffArgs) -> Outcome<()> {
    let files = [&args.one, &args.other].map(|given| file_of(given));
    let found = match (read(&files[0])?, read(&files[1])?) {
        (ResultFile::Study(a), ResultFile::Study(b)) => studies::diff(&a, &b),
        (ResultFile::Load(a), ResultFile::Load(b)) => loads::diff(&a, &b),
        _ => return Err(of_two_kinds(&files[0], &files[1])),
    };
    let names = files.map(|file| file.display().to_string());
    let found = ResultDiff::new(names, found);
    if found.numbers.is_empty() {
        let [a, b] = &found.files;
        let why = format!(
            "{a} and {b} have no point in common: a point is a policy at a rate, a type or a stage; {}",
            shown::one_sided(&found)
        );
        return Err(Failure::bad_input(why));
    }
    if args.json {
        print::line(found.to_json())?;
    } else {
        print::text(shown::text(&found, args.all))?;
    }
    let unequal = unequal(&found);
    if !args.exit_code || unequal.is_empty() {
        return Ok(());
    }
    Err(Failure::new(Kind::GateFailed, unequal.join("; ")).with_result_shown())
}

/// In what the results are unequal by more than noise: numbers, and points that only one of them has.
fn unequal(found: &ResultDiff) -> Vec<String> {
    let (differing, all) = (found.differing, found.numbers.len());
    let numbers = (differing > 0).then(|| format!("{differing} of {all} numbers differ by more than noise"));
    let points = Some(shown::one_sided(found)).filter(|lone| !lone.is_empty());
    numbers.into_iter().chain(points).collect()
}
