//! The controllers with which a host may register.

use super::calls::ControllerCalls;
use crate::Remote;

/// The controllers with which a host may register, one at a time: its home, and others that stand in for
/// the home.
#[derive(Clone, Debug)]
pub struct Controllers {
    all: Vec<Remote>,
    at: usize,
}

impl From<Remote> for Controllers {
    fn from(home: Remote) -> Self {
        Self::new(home, [])
    }
}

impl Controllers {
    /// The home, and the others in the order in which they are tried.
    pub fn new(home: Remote, others: impl IntoIterator<Item = Remote>) -> Self {
        Self { all: [home].into_iter().chain(others).collect(), at: 0 }
    }

    /// For each of these controllers, itself as the home and the others behind it in order.
    pub fn homes(all: &[Remote]) -> Vec<Self> {
        let turned = |home| all.iter().cycle().skip(home).take(all.len()).cloned();
        (0..all.len()).map(|home| Self { all: turned(home).collect(), at: 0 }).collect()
    }

    /// The controller that is used now.
    pub fn here(&self) -> &Remote {
        &self.all[self.at]
    }

    /// Whether the controller in use is not the home.
    pub(super) const fn is_away(&self) -> bool {
        self.at > 0
    }

    /// Whether the host has other controllers beside its home.
    pub(super) const fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// Switches to the next controller. Returns false if there is no other.
    pub(super) fn turn(&mut self) -> bool {
        self.at = (self.at + 1) % self.all.len();
        self.are_several()
    }

    pub(super) fn go_home(&mut self) {
        self.at = 0;
    }

    /// A channel to the controller in use.
    pub(super) fn line(&self) -> ControllerCalls {
        ControllerCalls::new(self.here().connect())
    }

    /// A channel to the home.
    pub(super) fn line_home(&self) -> ControllerCalls {
        ControllerCalls::new(self.all[0].connect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_a_home_once_and_the_others_stand_in_by_turns() {
        let all = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"];
        let all = all.map(|at| Remote::new(at, None).expect("an address"));
        let mut second = Controllers::homes(&all).remove(1);
        let mut seen = vec![second.here().url().to_owned()];
        assert!(!second.is_away());
        for _ in 0..3 {
            assert!(second.turn());
            seen.push(second.here().url().to_owned());
        }
        assert_eq!(seen, [1, 2, 0, 1].map(|at: usize| all[at].url().to_owned()));
        assert!(!Controllers::from(all[0].clone()).turn(), "there is no other");
    }
}
