//! `sluice man`: manual pages, one for each command, made from the command line itself.

use std::fs;
use std::io;
use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::print;
use sluice_system::{Attempt, advice};

use crate::args::{ManArgs, Sluice};

/// Writes all pages into the folder.
pub(crate) fn run(args: &ManArgs) -> Outcome<()> {
    write(&args.folder).map_err(|why| {
        let (folder, helps) = (args.folder.display(), advice(Attempt::Write, &why));
        Failure::bad_input(format!("manual pages cannot be written to {folder}: {why}; {helps}"))
    })?;
    print::line(format_args!("manual pages in {0}; man {0}/sluice.1 shows the first", args.folder.display()))
}

fn write(folder: &Path) -> io::Result<()> {
    // `help` repeats what the pages say.
    let mut all = Sluice::command().disable_help_subcommand(true);
    // Names the commands as they are typed: `sluice up`, and sluice-up for its page.
    all.build();
    fs::create_dir_all(folder)?;
    for command in all.get_subcommands().chain([&all]) {
        let source = format!("sluice {}", env!("CARGO_PKG_VERSION"));
        let page = Man::new(command.clone()).source(source).manual("Sluice");
        fs::write(folder.join(page.get_filename()), text(&page, command)?)?;
    }
    Ok(())
}

/// A page's text, in roff.
fn text(page: &Man, command: &Command) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    page.render_title(&mut out)?;
    page.render_name_section(&mut out)?;
    page.render_synopsis_section(&mut out)?;
    page.render_description_section(&mut out)?;
    page.render_options_section(&mut out)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut out)?;
    }
    let end = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    out.extend(sections(&end).into_bytes());
    Ok(out)
}

/// The end of a help text: each of its headings begins a section, and lines stay as they are.
fn sections(end: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in end.lines().filter(|line| !line.is_empty()) {
        if let Some(heading) = line.strip_suffix(':').filter(|_| !line.starts_with(' ')) {
            if !lines.is_empty() {
                lines.push(".fi".to_owned());
            }
            lines.extend([format!(".SH {}", literal(&heading.to_uppercase())), ".nf".to_owned()]);
        } else if !lines.is_empty() {
            lines.push(literal(line));
        }
    }
    if !lines.is_empty() {
        lines.extend([".fi".to_owned(), String::new()]);
    }
    lines.join("\n")
}

/// The line as roff prints it unchanged.
fn literal(line: &str) -> String {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-");
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_begin_sections_and_no_line_is_taken_for_a_request() {
        let text = "Examples:\n  sluice up   # a\\b\n.SH no\n\nExit codes:\n  0  well";
        assert_eq!(
            sections(text),
            ".SH EXAMPLES\n.nf\n  sluice up   # a\\eb\n\\&.SH no\n.fi\n.SH EXIT CODES\n.nf\n  0  well\n.fi\n"
        );
        assert_eq!(sections(""), "");
    }
}
