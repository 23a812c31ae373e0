//! What each client offers and gets, where clients differ.

/// Each client's tasks in the measured span.
#[derive(Clone, Debug)]
pub(super) struct ClientTally {
    offered: Vec<u64>,
    replied: Vec<u64>,
}

impl ClientTally {
    pub(super) fn new(clients: usize) -> Self {
        Self { offered: vec![0; clients], replied: vec![0; clients] }
    }

    pub(super) fn offered(&mut self, client: usize) {
        self.offered[client] += 1;
    }

    pub(super) fn replied(&mut self, client: usize) {
        self.replied[client] += 1;
    }

    /// The least of all clients' replies, each over the client's max-min fair share of all replies; `None`
    /// if there are none.
    pub(super) fn share_min(&self) -> Option<f64> {
        let level = level(&self.offered, self.replied.iter().sum());
        let share = |(offered, replied): (&u64, &u64)| {
            let fair = level.min(*offered as f64);
            (fair > 0.0).then(|| *replied as f64 / fair)
        };
        self.offered.iter().zip(&self.replied).filter_map(share).reduce(f64::min)
    }
}

/// How much each client gets at most, if `all` is given out so that nobody could get more without taking it
/// from one who has no more (max-min).
fn level(offered: &[u64], all: u64) -> f64 {
    let mut ascending = offered.to_vec();
    ascending.sort_unstable();
    let (mut left, mut clients) = (all as f64, ascending.len());
    for offered in ascending {
        let level = left / clients as f64;
        if offered as f64 > level {
            return level;
        }
        left -= offered as f64;
        clients -= 1;
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_offers_little_gets_all_of_it_and_the_others_the_same() {
        assert!((level(&[10, 200, 400], 210) - 100.0).abs() < 1e-9);
        assert!((level(&[400, 100], 200) - 100.0).abs() < 1e-9);
        assert!(level(&[10, 20], 30).is_infinite());
    }

    #[test]
    fn the_least_share_is_that_of_the_client_who_lost_most() {
        let tally = ClientTally { offered: vec![400, 100], replied: vec![150, 50] };
        assert!((tally.share_min().unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(ClientTally::new(2).share_min(), None);
    }
}
