//! What racks and spines are called on the page, and which of them may be changed.

use std::rc::Rc;

use sluice_rpc::v1::StatusResponse;

use super::watch::RackWatch;

/// What a controller controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchedKind {
    Rack,
    /// A switch above racks: its workers are leaves.
    Spine,
}

impl WatchedKind {
    pub(crate) fn of(rack: &RackWatch) -> Self {
        let seen = rack.seen();
        let is_spine = seen.status.as_ref().is_some_and(|(status, _)| has_leaves(status));
        if is_spine { Self::Spine } else { Self::Rack }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Rack => "rack",
            Self::Spine => "spine",
        }
    }
}

fn has_leaves(status: &StatusResponse) -> bool {
    status.workers.iter().any(|worker| worker.workers > 0)
}

/// The names of all racks and spines. A rack below a spine is called as its leaf is there: both know its
/// switch's address.
pub(crate) fn names(racks: &[Rc<RackWatch>]) -> Vec<String> {
    let leaves: Vec<(String, String)> = racks.iter().flat_map(|rack| leaves(rack)).collect();
    let mut spines = 0;
    let name = |rack: &Rc<RackWatch>| {
        if WatchedKind::of(rack) == WatchedKind::Spine {
            spines += 1;
            return format!("spine {spines}");
        }
        let at = rack.seen().status.as_ref().and_then(|(status, _)| Some(status.switch.as_ref()?.at.clone()));
        let known = at.and_then(|at| leaves.iter().find(|(leaf, _)| *leaf == at));
        known.map_or_else(|| format!("rack at {}", place(rack)), |(_, name)| name.clone())
    };
    racks.iter().map(name).collect()
}

/// The addresses of a spine's leaves, and the names of their racks.
fn leaves(rack: &RackWatch) -> Vec<(String, String)> {
    let seen = rack.seen();
    let Some((status, _)) = &seen.status else { return Vec::new() };
    let leaves = status.workers.iter().filter(|worker| worker.workers > 0);
    let named = |name: &str| name.split('/').next().unwrap_or(name).to_owned();
    leaves.map(|leaf| (leaf.at.clone(), named(&leaf.name))).collect()
}

fn place(rack: &RackWatch) -> &str {
    let url = rack.remote().url();
    url.split_once("://").map_or(url, |(_, place)| place)
}

/// Why a rack cannot be changed here; `None` if it can.
pub(crate) fn why_unchangeable(racks: &[Rc<RackWatch>], rack: &RackWatch) -> Option<String> {
    let spines = racks.iter().filter(|rack| WatchedKind::of(rack) == WatchedKind::Spine).count();
    (spines > 1 && WatchedKind::of(rack) == WatchedKind::Spine).then(|| {
        format!(
            "{spines} spines have one map of types and pools, which stands in their plan: change it, \
             and start them anew; a worker moves at its rack"
        )
    })
}
