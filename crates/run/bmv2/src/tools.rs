//! Finds the P4 tools.

use std::env;
use std::path::PathBuf;

use crate::error::Bmv2Error;

/// The folders in which tools are looked for before the path, as in `PATH`.
const FOLDERS: &str = "P4_TOOLS";

/// The tool of this name: in a folder of `P4_TOOLS`, or on the path.
///
/// # Errors
/// [`Bmv2Error::NoTool`] if it is nowhere.
pub fn tool(name: &'static str) -> Result<PathBuf, Bmv2Error> {
    let listed = [FOLDERS, "PATH"].into_iter().filter_map(env::var_os);
    let folders: Vec<PathBuf> = listed.flat_map(|list| env::split_paths(&list).collect::<Vec<_>>()).collect();
    let found = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    found.ok_or(Bmv2Error::NoTool(name))
}
