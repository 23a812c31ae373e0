//! Which lines are written: what `RUST_LOG` asks for.

use std::ffi::OsStr;

use sluice_units::shown;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// The filter for this `RUST_LOG`, and why that has no effect if it is malformed. `quiet` is a flag, so it
/// counts more than the environment.
pub(crate) fn of(asked: Option<&OsStr>, quiet: bool) -> (Targets, Option<String>) {
    let default = if quiet { LevelFilter::ERROR } else { LevelFilter::INFO };
    let default = Targets::new().with_default(default);
    let Some(asked) = asked.filter(|asked| !asked.is_empty() && !quiet) else { return (default, None) };
    match read(asked) {
        Ok(filter) => (filter, None),
        Err(why) => (default, Some(format!("{} {why}", shown(&asked.to_string_lossy())))),
    }
}

fn read(asked: &OsStr) -> Result<Targets, String> {
    let text = asked.to_str().ok_or("is no Unicode")?;
    // A module's name has none of these; `env_logger` and `EnvFilter` know more forms than there are spans
    // or fields here to choose by.
    if let Some(odd) = text.chars().find(|c| !c.is_ascii_alphanumeric() && !"_:=,- ".contains(*c)) {
        return Err(format!("has {}, which chooses nothing here", shown(&format!("{odd:?}"))));
    }
    let is_half = |directive: &str| directive.split('=').any(|side| side.trim().is_empty());
    if let Some(half) = text.split(',').find(|directive| is_half(directive)) {
        return Err(format!("has {half:?}, which is no MODULE=LEVEL"));
    }
    text.parse().map_err(|why| format!("is no list of modules and levels ({why})"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use tracing::Level;

    use super::*;

    fn enables(filter: &Targets, target: &str) -> Option<Level> {
        let levels = [Level::TRACE, Level::DEBUG, Level::INFO, Level::WARN, Level::ERROR];
        levels.into_iter().find(|level| filter.would_enable(target, level))
    }

    #[test]
    fn rust_log_chooses_by_module_and_level() {
        let (filter, complaint) = of(Some(OsStr::new("warn,sluice_rpc=debug")), false);
        assert_eq!(complaint, None);
        assert_eq!(enables(&filter, "sluice_net::udp"), Some(Level::WARN));
        assert_eq!(enables(&filter, "sluice_rpc::registrar::session"), Some(Level::DEBUG));
        let (off, complaint) = of(Some(OsStr::new("off")), false);
        assert_eq!((enables(&off, "sluice_net"), complaint), (None, None));
    }

    #[test]
    fn without_it_info_is_written_and_quiet_leaves_errors_only() {
        for empty in [None, Some(OsStr::new(""))] {
            assert_eq!(enables(&of(empty, false).0, "a"), Some(Level::INFO));
        }
        assert_eq!(enables(&of(Some(OsStr::new("trace")), true).0, "a"), Some(Level::ERROR));
    }

    #[test]
    fn a_malformed_one_has_no_effect_and_is_named() {
        let wrong = ["sluice_net=loud", "=", "a=b=c", "[span]=info", "a{b=1}=debug", "info;x", "a\n=info"];
        let wrong = wrong.map(OsStr::new).into_iter().chain([OsStr::from_bytes(b"inf\xff")]);
        for asked in wrong {
            let (filter, complaint) = of(Some(asked), false);
            let complaint = complaint.unwrap_or_else(|| panic!("{asked:?} is no filter"));
            assert!(!complaint.contains('\n'), "{complaint}");
            assert_eq!(enables(&filter, "a"), Some(Level::INFO), "{asked:?}");
        }
    }
}
