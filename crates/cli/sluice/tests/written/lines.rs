//! Commands that users are told to type: the lines of code blocks in pages, the examples in help texts, and
//! commands in running text.

use std::fs;
use std::path::{Path, PathBuf};

/// A line that a user may type.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// The page, from the repository's root, or the command whose help it is.
    pub(crate) page: String,
    /// The line number in the page.
    pub(crate) number: usize,
    /// The index of the page's code block; lines of one block belong together.
    pub(crate) block: usize,
    /// The words, split as a shell splits them, without `sudo` and without commands that enter a namespace.
    pub(crate) words: Vec<String>,
}

impl Line {
    /// The line's name in failures.
    pub(crate) fn told(&self) -> String {
        format!("{}:{}: {}", self.page, self.number, self.words.join(" "))
    }

    /// The subcommand of `sluice`, or the first target of `make`.
    pub(crate) fn verb(&self) -> &str {
        self.words.get(1).map_or("", String::as_str)
    }

    /// Whether the line contains this word.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|known| known == word)
    }
}

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// All pages, with their names from the root.
pub(crate) fn pages() -> Vec<(String, String)> {
    let mut names = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    let within = |folder: &str| {
        let entries = fs::read_dir(root().join(folder)).expect("a folder of the repository");
        let names = entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned());
        names.map(|name| format!("{folder}/{name}")).collect::<Vec<_>>()
    };
    let is_page = |name: &String| Path::new(name).extension().is_some_and(|ending| ending == "md");
    names.extend(["docs/book", "docs/manual", "docs/results"].into_iter().flat_map(within).filter(is_page));
    names.extend(within("targets").into_iter().map(|name| format!("{name}/README.md")));
    names.retain(|name| root().join(name).is_file());
    names.sort();
    let read = |name: String| (fs::read_to_string(root().join(&name)).expect("readable"), name);
    names.into_iter().map(read).map(|(text, name)| (name, text)).collect()
}

/// The lines in a page's code blocks that run `program`.
pub(crate) fn in_blocks(page: &str, text: &str, program: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let (mut block, mut inside) = (0, false);
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
            block += usize::from(inside);
        } else if inside {
            let mut whole = line.to_owned();
            while whole.ends_with('\\') {
                whole.pop();
                whole.push_str(lines.next().map_or("", |(_, more)| more));
            }
            let words = command(&whole);
            if words.first().is_some_and(|first| first == program) {
                found.push(Line { page: page.to_owned(), number: at + 1, block, words });
            }
        }
    }
    found
}

/// The examples of a help text.
pub(crate) fn in_help(page: &str, text: &str) -> Vec<Line> {
    let examples = text.lines().enumerate().skip_while(|(_, line)| *line != "Examples:").skip(1);
    let examples = examples.take_while(|(_, line)| line.starts_with("  "));
    examples
        .map(|(at, line)| Line { page: page.to_owned(), number: at + 1, block: 0, words: command(line) })
        .collect()
}

/// Texts in backticks in a page's running text that begin with `program`.
pub(crate) fn in_text(page: &str, text: &str, program: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            let spans = line.split('`').skip(1).step_by(2).map(command);
            let spans = spans.filter(|words| words.first().is_some_and(|first| first == program));
            found.extend(spans.map(|words| Line { page: page.to_owned(), number: at + 1, block: 0, words }));
        }
    }
    found
}

/// The words of a command line, without the prompt, the remark and optional parts.
fn command(line: &str) -> Vec<String> {
    let mut words = shell_words(line);
    for prompt in ["$", "sudo"] {
        if words.first().is_some_and(|first| first == prompt) {
            words.remove(0);
        }
    }
    if words.first().is_some_and(|first| first == "nsenter") {
        let program = words.iter().position(|word| word == "sluice").unwrap_or(0);
        words.drain(..program);
    }
    words.retain(|word| !word.starts_with('['));
    words
}

/// Splits a line as a shell does, up to a remark.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[test]
fn a_line_is_cut_as_a_shell_cuts_it() {
    let text =
        "```sh\n$ sudo sluice sim --slo 'p99<1 ms' \\\n  --load 0.5  # why\nmake all\n```\nand `sluice x`";
    let lines = in_blocks("a.md", text, "sluice");
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].words, ["sluice", "sim", "--slo", "p99<1 ms", "--load", "0.5"]);
    assert_eq!((lines[0].number, lines[0].verb()), (2, "sim"));
    assert_eq!(in_blocks("a.md", text, "make")[0].words, ["make", "all"]);
    assert_eq!(in_text("a.md", text, "sluice")[0].words, ["sluice", "x"]);
    assert_eq!(in_help("h", "A\n\nExamples:\n  sluice a   # b\n\nOptions:\n")[0].words, ["sluice", "a"]);
}
