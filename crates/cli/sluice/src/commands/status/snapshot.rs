//! The state of a rack at one moment, or of several spines, some of which may be dead.

use std::time::SystemTime;

use serde_json::{Value, json};
use sluice_rpc::Remote;
use sluice_rpc::v1::{LinkState, StatusResponse};
use sluice_support::controller_caller::ControllerCaller;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::findings::findings;
use sluice_support::status_json;

use super::{shown, wrong};

/// The controllers that are asked: a rack's, or that of each spine.
pub(super) struct ControllerCallers(Vec<(String, ControllerCaller)>);

pub(super) struct StatusSnapshot(Vec<ControllerAnswer>);

struct ControllerAnswer {
    controller: String,
    said: Outcome<StatusResponse>,
}

impl ControllerCallers {
    pub(super) fn of(controllers: Vec<Remote>) -> Outcome<Self> {
        let caller = |remote: Remote| Ok((remote.url().to_owned(), ControllerCaller::new(remote)?));
        Ok(Self(controllers.into_iter().map(caller).collect::<Outcome<_>>()?))
    }

    /// Asks all controllers.
    pub(super) fn look(&self) -> StatusSnapshot {
        let ask = |(controller, caller): &(String, ControllerCaller)| ControllerAnswer {
            controller: controller.clone(),
            said: caller.status(),
        };
        StatusSnapshot(self.0.iter().map(ask).collect())
    }

    /// Asks all controllers; an error if none answers.
    pub(super) fn first_look(&self) -> Outcome<StatusSnapshot> {
        let StatusSnapshot(mut seen) = self.look();
        if seen.iter().all(|seen| seen.said.is_err()) {
            seen.swap_remove(0).said?;
        }
        Ok(StatusSnapshot(seen))
    }
}

impl StatusSnapshot {
    /// The whole state as text.
    pub(super) fn text(&self) -> String {
        let [only] = &self.0[..] else {
            if self.is_rack() {
                return self.rack_text();
            }
            let parts = self.numbered().map(|(spine, seen)| format!("spine {spine}: {}", seen.text()));
            let dead = self.0.iter().filter(|seen| seen.why_dead().is_some()).count();
            let head = format!("{} spines, {dead} of them dead\n\n", self.0.len());
            return head + &parts.collect::<Vec<_>>().join("\n");
        };
        only.said
            .as_ref()
            .map_or_else(|why| format!("{why}\n"), |status| shown::text(&only.controller, status))
    }

    /// Whether these are controllers of one rack, of which one leads.
    fn is_rack(&self) -> bool {
        let standing = |seen: &ControllerAnswer| seen.said.as_ref().ok()?.standing.clone();
        self.0.len() > 1 && self.0.iter().find_map(standing).is_some_and(|standing| standing.spine == 0)
    }

    /// The state as text, of a rack with several controllers: the leader's, behind a line for each other one.
    fn rack_text(&self) -> String {
        let leads = |seen: &&ControllerAnswer| seen.said.as_ref().is_ok_and(shown::leads);
        let leader = self.0.iter().find(leads);
        let others = self.0.iter().filter(|seen| !leads(seen)).map(|seen| {
            let role = seen.said.as_ref().map_or_else(|why| format!("dead: {why}"), shown::role);
            format!("controller {}: {role}\n", seen.controller)
        });
        let lines: String = others.collect();
        let leader = leader.and_then(|seen| Some((&seen.controller, seen.said.as_ref().ok()?)));
        let state = leader.map_or_else(
            || format!("no controller leads now\n{}", self.wrong_without_leader()),
            |(controller, status)| shown::text(controller, status),
        );
        lines + &state
    }

    /// What a standby finds wrong while nobody leads; empty if there is none that finds anything.
    fn wrong_without_leader(&self) -> String {
        let found = self.0.iter().filter_map(|seen| seen.said.as_ref().ok());
        let found = found.map(|status| findings(status, SystemTime::now())).find(|found| !found.is_empty());
        found.map_or_else(String::new, |found| wrong::text(&found))
    }

    /// Whether all controllers have answered.
    pub(super) fn is_whole(&self) -> bool {
        self.0.iter().all(|seen| seen.said.is_ok())
    }

    /// A line for each controller.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |seen: &ControllerAnswer| seen.said.as_ref().map_or_else(Failure::to_string, shown::line);
        match &self.0[..] {
            [only] => vec![line(only)],
            all if self.is_rack() => {
                all.iter().map(|seen| format!("controller {}: {}", seen.controller, line(seen))).collect()
            }
            _ => self
                .numbered()
                .map(|(spine, seen)| match seen.why_dead() {
                    Some(why) => format!("spine {spine}: dead: {why}"),
                    None => format!("spine {spine}: {}", line(seen)),
                })
                .collect(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let [only] = &self.0[..] else {
            if self.is_rack() {
                let controllers: Vec<Value> = self.0.iter().map(ControllerAnswer::standing_json).collect();
                return json!({ "schema": "sluice.controllers.v1", "controllers": controllers });
            }
            let spines = self.numbered().map(|(spine, seen)| seen.to_json(spine));
            return json!({ "schema": "sluice.statuses.v1", "spines": spines.collect::<Vec<_>>() });
        };
        only.said.as_ref().map_or_else(Failure::to_json, status_json::to_json)
    }

    fn numbered(&self) -> impl Iterator<Item = (usize, &ControllerAnswer)> {
        (1..).zip(&self.0)
    }
}

impl ControllerAnswer {
    /// Why a spine counts as dead: its controller does not answer, or cannot reach it. `None` if it lives.
    fn why_dead(&self) -> Option<String> {
        let status = match &self.said {
            Ok(status) => status,
            Err(why) => return Some(why.to_string()),
        };
        let is_down = status.switch.as_ref().is_none_or(|switch| switch.link() == LinkState::Down);
        is_down.then(|| format!("its controller at {} cannot reach it", self.controller))
    }

    fn text(&self) -> String {
        match (self.why_dead(), &self.said) {
            (None, Ok(status)) => shown::text(&self.controller, status),
            (why, _) => format!("dead: {}\n", why.unwrap_or_default()),
        }
    }

    fn standing_json(&self) -> Value {
        let status = self.said.as_ref().ok().map(status_json::to_json);
        let why_dead = self.said.as_ref().err().map(ToString::to_string);
        json!({ "controller": self.controller, "why_dead": why_dead, "status": status })
    }

    fn to_json(&self, spine: usize) -> Value {
        let (why_dead, status) = (self.why_dead(), self.said.as_ref().ok().map(status_json::to_json));
        json!({ "spine": spine, "controller": self.controller, "why_dead": why_dead, "status": status })
    }
}

#[cfg(test)]
mod tests {
    use sluice_rpc::v1::{SwitchStatus, WorkerStatus};

    use super::*;

    fn seen(link: LinkState, leaf: &str) -> ControllerAnswer {
        let switch = SwitchStatus { epoch: 7, link: link.into(), ..SwitchStatus::default() };
        let worker = WorkerStatus { name: leaf.to_owned(), workers: 3, ..WorkerStatus::default() };
        let status =
            StatusResponse { switch: Some(switch), workers: vec![worker], ..StatusResponse::default() };
        ControllerAnswer { controller: "http://127.0.0.1:7400".to_owned(), said: Ok(status) }
    }

    fn silent() -> ControllerAnswer {
        ControllerAnswer {
            controller: "http://127.0.0.1:7401".to_owned(),
            said: Err(Failure::bad_input("nobody answers")),
        }
    }

    #[test]
    fn several_spines_are_told_by_their_numbers_and_the_dead_with_why() {
        let up = || seen(LinkState::Up, "rack-1/get");
        let look = StatusSnapshot(vec![up(), silent(), seen(LinkState::Down, "rack-3/get")]);
        let text = look.text();
        for part in [
            "3 spines, 2 of them dead",
            "spine 1: controller http://127.0.0.1:7400; switch  up",
            "rack-1/get",
            "spine 2: dead: nobody answers",
            "spine 3: dead: its controller at http://127.0.0.1:7400 cannot reach it",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("rack-3/get"), "who is there is not known: {text}");
        let lines = look.lines();
        assert!(lines[0].starts_with("spine 1: switch up, epoch 7"), "{lines:?}");
        assert_eq!(lines[1], "spine 2: dead: nobody answers");
    }

    #[test]
    fn one_that_is_asked_alone_has_no_number() {
        let text = StatusSnapshot(vec![seen(LinkState::Down, "w")]).text();
        assert!(
            text.starts_with("controller http://127.0.0.1:7400; switch  down") && text.contains('w'),
            "{text}"
        );
        assert_eq!(StatusSnapshot(vec![silent()]).lines(), ["nobody answers"]);
    }
}
