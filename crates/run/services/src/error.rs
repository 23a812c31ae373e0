/// Why something cannot be asked of a service, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// An operation of this many keys cannot be asked for: stay within the stated bounds.
    #[error("{flag} {keys} is not from 1 to {most} keys")]
    Keys {
        /// Where it was asked for.
        flag: &'static str,
        keys: u32,
        /// The most that one request can name.
        most: u32,
    },
    /// An operation is to be measured twice: leave one out.
    #[error("{flag} names {keys} twice: leave one out")]
    Twice {
        /// Where it was asked for.
        flag: &'static str,
        keys: u32,
    },
}
