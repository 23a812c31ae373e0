//! RESP2 and RESP3, as clients of Redis speak them: commands become tasks of a store of keys and values.

mod answers;
mod commands;
mod cursors;
mod glob;
mod kv;
mod pending;
mod reader;
mod reply;
mod session;

pub use answers::RespStanding;
pub use cursors::Cursors;
pub use kv::KvTask;
pub use reader::{ARGS_MAX, Args, COMMAND_BYTES_MAX, FrameError, INLINE_BYTES_MAX, RespReader};
pub(crate) use session::full;
pub use session::{NotTaken, PIPELINE_MAX, Paused, RespDesk, RespSession, UNREAD_MAX};
