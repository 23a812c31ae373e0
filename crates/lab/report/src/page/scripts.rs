//! What a page does beyond showing: small modules, which a browser runs only if they are the ones whose
//! hashes the page's policy names. Without them a page is what it was.

use crate::html::{Html, tag};

/// A module, and the hash of its text in the form of a content security policy.
struct PageScript {
    text: &'static str,
    hash: &'static str,
}

const SCRIPTS: [PageScript; 2] = [
    PageScript {
        text: include_str!("legend.js"),
        hash: "sha256-J35ccYAlwYKHDP/ESnPGnQkclI+pq/94h5UAwVd1sDE=",
    },
    PageScript { text: include_str!("zoom.js"), hash: "sha256-jnBDtm6hZt7TszNzjVWAgzSfUGhm9FnpVlVPW00wrZs=" },
];

/// The scripts that a page's policy allows.
pub(super) fn allowed() -> String {
    let hashes = SCRIPTS.iter().map(|script| format!("'{}'", script.hash));
    hashes.collect::<Vec<_>>().join(" ")
}

/// Writes the modules, behind all that they work on.
pub(super) fn write(html: &mut Html) {
    for script in &SCRIPTS {
        html.element(tag("script").with("type", "module"), |html| html.verbatim(script.text));
        html.line();
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use ring::digest::{SHA256, digest};

    use super::*;

    #[test]
    fn the_policy_names_the_modules_as_they_are() {
        for script in &SCRIPTS {
            let hash = format!("sha256-{}", STANDARD.encode(digest(&SHA256, script.text.as_bytes())));
            assert_eq!(hash, script.hash, "write it where {} stands", script.hash);
            assert!(!script.text.contains("</script"), "it would end the element");
        }
    }
}
