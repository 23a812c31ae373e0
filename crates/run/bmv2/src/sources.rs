//! The program's sources, which come with this crate, compiled for a switch on links.

use std::fs;
use std::path::Path;

use sluice_switch::Config;

use crate::error::Bmv2Error;
use crate::launch::Compiled;
use crate::links::CONTROL_PORT;
use crate::sizes;
use crate::tools::tool;

/// The file that includes the others.
const TOP: &str = "rain_v1model.p4";

macro_rules! source {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../targets/p4/", $name)))
    };
}

/// The files of `targets/p4` from which the program is made.
const FILES: [(&str, &str); 19] = [
    source!("arch_v1model.p4"),
    source!("copies.p4"),
    source!("entry.p4"),
    source!("form.p4"),
    source!("headers.p4"),
    source!("parser.p4"),
    source!("passes.p4"),
    source!("queue.p4"),
    source!("rain.p4"),
    source!("rain_v1model.p4"),
    source!("replies.p4"),
    source!("sizes.p4"),
    source!("slots_v1model.p4"),
    source!("sources.p4"),
    source!("times.p4"),
    source!("tokens.p4"),
    source!("top_v1model.p4"),
    source!("unused.p4"),
    source!("write.p4"),
];

/// Compiles the program in a folder, for this size and the switch's UDP port; returns the files. What
/// the same compiler made there of the same sources for the same size is used again.
pub(crate) fn compiled(folder: &Path, config: &Config, port: u16) -> Result<Compiled, Bmv2Error> {
    let compiler = tool("p4c-bm2-ss")?;
    let mut flags = sizes::flags(config);
    flags.extend([format!("-DSWITCH_PORT={port}"), format!("-DCONTROL_PORT={CONTROL_PORT}")]);
    let (to, key) = (Compiled::at(folder, "rain"), folder.join("rain.key"));
    let wanted = key_of(&compiler, &flags);
    let is_there = to.program.is_file() && to.p4info.is_file();
    if is_there && fs::read_to_string(&key).is_ok_and(|held| held == wanted) {
        return Ok(to);
    }
    let failed = || Bmv2Error::system("write the P4 program's sources");
    fs::create_dir_all(folder).map_err(failed())?;
    for (name, text) in FILES {
        fs::write(folder.join(name), text).map_err(failed())?;
    }
    // A compiler that is killed must not leave a part of a file that counts as whole.
    drop(fs::remove_file(&key));
    to.compile(&compiler, &folder.join(TOP), flags.into_iter()).map_err(in_one_line)?;
    fs::write(&key, wanted).map_err(failed())?;
    Ok(to)
}

/// All on which the compiled file depends.
fn key_of(compiler: &Path, flags: &[String]) -> String {
    let about = fs::metadata(compiler).and_then(|about| Ok((about.len(), about.modified()?)));
    let mut key = format!("{} {about:?}\n{}\n", compiler.display(), flags.join(" "));
    for (name, text) in FILES {
        key.extend([name, ":\n", text]);
    }
    key
}

/// The compiler's first line about an error.
fn in_one_line(why: Bmv2Error) -> Bmv2Error {
    let Bmv2Error::Compile { program, why } = why else { return why };
    let mut lines = why.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().find(|line| line.contains("error")).or_else(|| lines.next());
    Bmv2Error::Compile { program, why: first.unwrap_or("it says nothing").to_owned() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn text_of(name: &str) -> &'static str {
        FILES.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("{name} is not there")).1
    }

    /// A file, and all that it includes.
    fn included(name: &str, seen: &mut BTreeSet<String>) {
        if seen.insert(name.to_owned()) {
            let lines = text_of(name).lines().filter_map(|line| line.strip_prefix("#include \""));
            lines.for_each(|rest| included(rest.trim_end_matches('"'), seen));
        }
    }

    #[test]
    fn all_files_that_the_program_includes_come_with_it_and_no_others() {
        let mut seen = BTreeSet::new();
        included(TOP, &mut seen);
        assert_eq!(seen, FILES.iter().map(|(name, _)| (*name).to_owned()).collect());
    }

    #[test]
    fn another_size_or_port_is_another_program() {
        let flags = |size: &str| vec![size.to_owned()];
        let key = |size| key_of(Path::new("p4c"), &flags(size));
        assert_eq!(key("-DWORKERS=8"), key("-DWORKERS=8"));
        assert_ne!(key("-DWORKERS=8"), key("-DWORKERS=9"));
    }

    #[test]
    fn what_the_compiler_says_becomes_one_line() {
        let why = "\nrain.p4(3): [--Werror=x] error: no\n  bit<1> a\n       ^\n".to_owned();
        let said = in_one_line(Bmv2Error::Compile { program: TOP.into(), why }).to_string();
        assert!(said.ends_with("error: no") && said.lines().count() == 1, "{said}");
    }
}
