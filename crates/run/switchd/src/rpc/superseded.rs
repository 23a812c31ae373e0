//! Controllers that call a switch which obeys another one.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sluice_rpc::v1;

/// How long after its last call a controller is remembered.
const REMEMBERED: Duration = Duration::from_mins(1);
/// How many are remembered.
const CALLERS_MAX: usize = 16;

/// Superseded controllers by number and name, and when each called last.
#[derive(Debug, Default)]
pub(super) struct SupersededCallers(Mutex<BTreeMap<(u32, String), Instant>>);

impl SupersededCallers {
    /// Notes a call of the controller of this number.
    pub(super) fn note(&self, term: u32, who: String) {
        let mut callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        callers.retain(|_, at| at.elapsed() < REMEMBERED);
        if callers.len() < CALLERS_MAX || callers.contains_key(&(term, who.clone())) {
            callers.insert((term, who), Instant::now());
        }
    }

    pub(super) fn told(&self) -> Vec<v1::SupersededCaller> {
        let callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = callers.iter().filter(|(_, at)| at.elapsed() < REMEMBERED);
        let told = recent.map(|((term, who), at)| v1::SupersededCaller {
            term: *term,
            who: who.clone(),
            ago_ns: u64::try_from(at.elapsed().as_nanos()).unwrap_or(u64::MAX),
        });
        told.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_told_once_however_often_it_calls_and_a_crowd_is_cut_off() {
        let callers = SupersededCallers::default();
        for _ in 0..3 {
            callers.note(1, "10.0.0.1".to_owned());
            callers.note(2, "10.0.0.1".to_owned());
        }
        let told = callers.told();
        assert_eq!(told.iter().map(|caller| caller.term).collect::<Vec<_>>(), [1, 2]);
        (0..100).for_each(|term| callers.note(term, "10.0.0.2".to_owned()));
        assert_eq!(callers.told().len(), CALLERS_MAX);
    }
}
