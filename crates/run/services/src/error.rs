/// Why a request to a service is invalid, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// An operation cannot have this many keys: stay within the stated bounds.
    #[error("{flag} {keys} is not from 1 to {most} keys")]
    Keys {
        /// The flag that asked for it.
        flag: &'static str,
        keys: u32,
        /// The largest number of keys in one request.
        most: u32,
    },
    /// The flags name an operation twice: leave one out.
    #[error("{flag} names {keys} twice: leave one out")]
    Twice {
        /// The flag that asked for it.
        flag: &'static str,
        keys: u32,
    },
}
