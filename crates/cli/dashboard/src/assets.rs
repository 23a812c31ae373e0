//! The page's own files, which the program holds.

use sluice_report::STYLE;

/// A file: its path, its media type, and its parts.
pub(crate) struct Asset {
    path: &'static str,
    pub(crate) media: &'static str,
    pub(crate) parts: &'static [&'static str],
}

const JS: &str = "text/javascript; charset=utf-8";

const ASSETS: &[Asset] = &[
    Asset { path: "/", media: "text/html; charset=utf-8", parts: &[include_str!("page/index.html")] },
    Asset {
        path: "/style.css",
        media: "text/css; charset=utf-8",
        parts: &[STYLE, include_str!("page/style.css")],
    },
    Asset { path: "/icon.svg", media: "image/svg+xml", parts: &[include_str!("page/icon.svg")] },
    Asset { path: "/page.js", media: JS, parts: &[include_str!("page/page.js")] },
    Asset { path: "/server.js", media: JS, parts: &[include_str!("page/server.js")] },
    Asset { path: "/elements.js", media: JS, parts: &[include_str!("page/elements.js")] },
    Asset { path: "/rack.js", media: JS, parts: &[include_str!("page/rack.js")] },
    Asset { path: "/document.js", media: JS, parts: &[include_str!("page/document.js")] },
    Asset { path: "/events.js", media: JS, parts: &[include_str!("page/events.js")] },
    Asset { path: "/findings.js", media: JS, parts: &[include_str!("page/findings.js")] },
    Asset { path: "/standing.js", media: JS, parts: &[include_str!("page/standing.js")] },
    Asset { path: "/changes.js", media: JS, parts: &[include_str!("page/changes.js")] },
    Asset { path: "/units.js", media: JS, parts: &[include_str!("page/units.js")] },
];

/// The file at a path.
pub(crate) fn asset(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}
