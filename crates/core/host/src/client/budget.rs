//! The retry budget: a token bucket that first attempts fill.

use super::ClientSettings;

/// The cost of one retry, in hundredths: a first attempt earns `retry_budget_percent` of them.
const RETRY_COST: u64 = 100;

/// The debt: what retries cost and first attempts have not yet earned back. A full bucket has debt zero.
#[derive(Debug, Default)]
pub(super) struct RetryBudget {
    debt: u64,
}

impl RetryBudget {
    /// A first attempt was sent: it pays back a part of the debt.
    pub(super) fn earn(&mut self, settings: &ClientSettings) {
        self.debt = self.debt.saturating_sub(u64::from(settings.retry_budget_percent));
    }

    /// Pays for one retry; false if the budget is spent.
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
        let mut budget = RetryBudget::default();
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
        let mut budget = RetryBudget::default();
        for _ in 0..1_000 {
            budget.earn(&settings);
        }
        let paid = (0..10).filter(|_| budget.pay(&settings)).count();
        assert_eq!(paid, 2);
    }
}
