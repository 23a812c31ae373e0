//! placeholder
#[allow(unsafe_code)]
pub(crate) mod sys;
