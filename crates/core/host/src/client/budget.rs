//! The retry budget: a token bucket that first attempts fill.

use super::ClientSettings;

/// What a retry costs, in the unit in which a first attempt earns its percentage.
const RETRY_COST: u64 = 100;

/// Counts what was taken out and not yet earned back, so that a full bucket is zero.
#[derive(Debug, Default)]
pub(super) struct Budget {
    debt: u64,
}

impl Budget {
    /// A first attempt was sent.
    pub(super) fn earn(&mut self, settings: &ClientSettings) {
        self.debt = self.debt.saturating_sub(u64::from(settings.retry_budget_percent));
    }

    /// Pays for one retry, if it can.
    pub(super) fn pay(&mut self, settings: &ClientSettings) -> bool {
        let debt = self.debt + RETRY_COST;
        let affordable = debt <= u64::from(settings.retry_burst) * RETRY_COST;
        if affordable {
            self.debt = debt;
        }
        affordable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_its_burst_it_pays_one_retry_for_ten_first_attempts() {
        let settings = ClientSettings { retry_burst: 2, ..ClientSettings::default() };
        let mut budget = Budget::default();
        assert!(budget.pay(&settings) && budget.pay(&settings));
        for _ in 0..3 {
            for _ in 0..9 {
                budget.earn(&settings);
                assert!(!budget.pay(&settings));
            }
            budget.earn(&settings);
            assert!(budget.pay(&settings));
        }
    }

    #[test]
    fn it_never_saves_more_than_its_burst() {
        let settings = ClientSettings { retry_burst: 2, ..ClientSettings::default() };
        let mut budget = Budget::default();
        for _ in 0..1_000 {
            budget.earn(&settings);
        }
        let paid = (0..10).filter(|_| budget.pay(&settings)).count();
        assert_eq!(paid, 2);
    }
}
