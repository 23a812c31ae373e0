//! Average queues in fixed point (Horus A.2): per worker 16 bits of whole tasks and 16 bits of a fraction.

use core::fmt;

use super::HorusError;

/// How many workers of a pool a rack has, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RackSize(u16);

impl RackSize {
    /// Checks a number of workers.
    ///
    /// # Errors
    /// [`HorusError::NoWorkers`], [`HorusError::TooManyWorkers`].
    pub fn new(workers: u32) -> Result<Self, HorusError> {
        match u16::try_from(workers) {
            Ok(0) => Err(HorusError::NoWorkers),
            Ok(count) => Ok(Self(count)),
            Err(_) => Err(HorusError::TooManyWorkers { workers }),
        }
    }

    /// The number of workers.
    pub const fn count(self) -> u32 {
        self.0 as u32
    }
}

/// Tasks before each of a rack's workers, on average; the unit is 2⁻¹⁶ of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Average(u32);

impl Average {
    /// One task before each worker.
    pub const ONE: Self = Self(1 << 16);
    /// The largest average that can be told.
    pub const MAX: Self = Self(u32::MAX);

    /// The amount that one task adds to the average of so many workers (the paper's additive factor). It is
    /// rounded up, so that as many tasks as workers make at least one.
    pub const fn share(workers: RackSize) -> Self {
        Self(Self::ONE.0.div_ceil(workers.count()))
    }

    /// The average that so many tasks of this share make.
    ///
    /// # Errors
    /// [`HorusError::AverageTooLarge`] beyond 65,536 tasks a worker.
    pub fn of(tasks: u32, share: Self) -> Result<Self, HorusError> {
        tasks.checked_mul(share.0).map(Self).ok_or(HorusError::AverageTooLarge { tasks })
    }

    /// The fixed-point number: 16 bits of tasks, 16 bits of a fraction.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The average with this fixed-point number.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The average in tasks, with its fraction.
    pub fn to_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ONE.0)
    }

    /// The absolute difference of two averages.
    #[must_use]
    pub const fn apart(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl fmt::Display for Average {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.to_f64())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn workers(count: u32) -> RackSize {
        RackSize::new(count).expect("a rack's size")
    }

    #[test]
    fn the_papers_numbers() {
        let share = Average::share(workers(8));
        assert_eq!(share.bits(), 0x2000);
        assert_eq!(Average::of(11, share).map(Average::bits), Ok(0x1_6000));
        assert_eq!(Average::of(11, share).map(|average| average.to_string()), Ok("1.375".into()));
    }

    #[test]
    fn as_many_tasks_as_workers_are_one_at_least_and_hardly_more() {
        for count in 1..=u32::from(u16::MAX) {
            let one = Average::of(count, Average::share(workers(count))).expect("one task a worker");
            assert!(one >= Average::ONE && one.bits() - Average::ONE.bits() < count, "{count}: {one}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_and_does_not_wrap() {
        let share = Average::share(workers(1));
        assert!(Average::of(65_535, share).is_ok());
        assert_eq!(Average::of(65_536, share), Err(HorusError::AverageTooLarge { tasks: 65_536 }));
        assert_eq!(RackSize::new(0), Err(HorusError::NoWorkers));
        assert_eq!(RackSize::new(65_536), Err(HorusError::TooManyWorkers { workers: 65_536 }));
    }
}
