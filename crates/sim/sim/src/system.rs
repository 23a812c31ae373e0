//! The schedulers of a datacenter's racks, with their names.

use std::fmt;

use sluice_switch::horus::{FabricReading, IdleRack, LoadsTold, PolicyParts};
use sluice_switch::registry::Choice;
use sluice_units::WholeSpan;
use sluice_wire::sizes::QUOTA_MAX;
use sluice_wire::tables::Feed;

/// The programs of spines and leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Horus at both.
    Horus(FabricReading),
    /// RackSched at both (RS-H, Horus §4.1): a task goes to the better of two racks by the means that they
    /// told, and each leaf tells its mean with every reply.
    Hierarchy {
        /// Whether clients draw spines evenly, whatever is below them; otherwise by the workers below, as
        /// Horus' clients do.
        even_spines: bool,
        /// Whether spines draw racks by the number of their workers; otherwise evenly, as RackSched draws
        /// workers.
        by_size: bool,
    },
    /// Racks drawn evenly, however large they are, and RackSched in each (RS-LB, which Horus' Figure 19 and
    /// its authors' code call RS-R).
    Balanced {
        /// How many connections each client has, each of which goes to one rack; zero: each task goes to
        /// any rack.
        flows: u16,
    },
    /// Horus' spines above racks of Rain, whose workers have so many tokens each.
    Rain {
        /// Tokens of each worker.
        tokens: u8,
        /// The reading of Horus.
        reading: FabricReading,
    },
}

/// The description of a system for people.
pub(crate) struct SystemAbout {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) arguments: &'static str,
    pub(crate) example: &'static str,
}

/// The default number of tokens of each worker.
const TOKENS: u8 = 1;
/// The arguments of Rain, before those of Horus.
const RAIN_ARGUMENTS: &str =
    "N, how many tokens each worker has: 1 to 8, else 1; and the settings of dc-horus but affinity";

/// The arguments of RackSched at both.
const HIERARCHY_ARGUMENTS: &str = "spines=even, clients draw spines evenly: else by the workers below \
    them, as Horus' clients do; racks=by-size, spines draw racks by how many workers these have: else evenly";

/// The arguments of the load balancer.
const BALANCED_ARGUMENTS: &str =
    "flows=N, each client has N connections, each of which goes to one rack: else each task goes to any";

const HORUS_ARGUMENTS: &str = "idle-from=K, a rack is idle from K idle workers on: else 1; \
    idle-rack=random, a spine takes any idle rack: else the newest; \
    told=replies, a leaf tells its mean after as many replies as workers: else when it moved by one from \
    what its spine makes of it; \
    resubmit=writes, a task that goes round writes the load anew; \
    idle=uncounted, a task for an idle node does not count; \
    only=idle, without idle nodes any node gets the task; \
    only=loads, the lesser of two loads as they were told last; \
    as-published, lists and means with their holes, and means that are told when they moved by one; \
    affinity=SPAN, a task's later tries go to the rack and the worker of the one before, if that was within \
    66us to 500s: else anywhere; racks of Rain have none";

impl System {
    /// All systems, each with its default settings.
    pub(crate) const ALL: [SystemAbout; 4] = [
        SystemAbout {
            name: "dc-horus",
            about: "racks below spines: idle racks and workers first, else the shorter of two random queues",
            arguments: HORUS_ARGUMENTS,
            example: "dc-horus:idle-from=2,idle-rack=random",
        },
        SystemAbout {
            name: "dc-rs-h",
            about: "racks below spines: RackSched chooses the rack, and RackSched its worker",
            arguments: HIERARCHY_ARGUMENTS,
            example: "dc-rs-h",
        },
        SystemAbout {
            name: "dc-rs-lb",
            about: "racks below spines: any rack, and RackSched chooses its worker",
            arguments: BALANCED_ARGUMENTS,
            example: "dc-rs-lb:flows=2",
        },
        SystemAbout {
            name: "dc-rain",
            about: "racks of Rain below Horus' spines: a rack is idle while an idle worker's token is parked",
            arguments: RAIN_ARGUMENTS,
            example: "dc-rain:2",
        },
    ];

    /// How tasks come to workers.
    pub(crate) const fn feed(self) -> Feed {
        match self {
            Self::Rain { tokens, .. } => Feed::Tokens { ranked: tokens > 1 },
            Self::Horus(_) | Self::Hierarchy { .. } | Self::Balanced { .. } => Feed::Pushed { reports: true },
        }
    }

    /// Tokens of each worker; 0 if tasks are pushed.
    pub(crate) const fn tokens(self) -> u8 {
        match self {
            Self::Rain { tokens, .. } => tokens,
            Self::Horus(_) | Self::Hierarchy { .. } | Self::Balanced { .. } => 0,
        }
    }

    /// The reading of Horus at live spines, and the program of the switches below them; `None` for systems
    /// that are only simulated.
    pub fn live(self) -> Option<(FabricReading, Choice)> {
        let (reading, leaf) = match self {
            Self::Horus(reading) => (reading, "horus".to_owned()),
            Self::Rain { tokens: 1, reading } => (reading, "rain:1".to_owned()),
            Self::Rain { tokens, reading } => (reading, format!("rain:{tokens},ranked")),
            Self::Hierarchy { .. } | Self::Balanced { .. } => return None,
        };
        Some((reading, Choice::parse(&leaf).expect("a program with as many tokens")))
    }

    /// Reads `dc-horus:told=replies` and so on. `None` if no system has this name.
    ///
    /// # Errors
    /// A line that says which setting is wrong.
    pub fn parse(text: &str) -> Option<Result<Self, String>> {
        let (name, settings) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        match name {
            "dc-horus" => Some(horus(settings.unwrap_or_default())),
            "dc-rain" => Some(rain(settings.unwrap_or_default())),
            "dc-rs-lb" => Some(balanced(settings)),
            "dc-rs-h" => Some(hierarchy(settings)),
            _ => None,
        }
    }
}

fn horus(settings: &str) -> Result<System, String> {
    let mut reading = FabricReading::default();
    for setting in settings.split(',').filter(|_| !settings.is_empty()) {
        take(&mut reading, setting).ok_or_else(|| {
            format!("`{setting}` means nothing to dc-horus; its settings: {HORUS_ARGUMENTS}")
        })?;
    }
    Ok(System::Horus(reading))
}

fn balanced(settings: Option<&str>) -> Result<System, String> {
    let Some(settings) = settings else { return Ok(System::Balanced { flows: 0 }) };
    let flows = settings.strip_prefix("flows=").and_then(|flows| flows.parse().ok());
    flows
        .filter(|flows| *flows > 0)
        .map(|flows| System::Balanced { flows })
        .ok_or_else(|| format!("`{settings}` means nothing to dc-rs-lb; its settings: {BALANCED_ARGUMENTS}"))
}

fn hierarchy(settings: Option<&str>) -> Result<System, String> {
    let (mut even_spines, mut by_size) = (false, false);
    for setting in settings.into_iter().flat_map(|settings| settings.split(',')) {
        match setting {
            "spines=even" => even_spines = true,
            "racks=by-size" => by_size = true,
            other => {
                let why = format!("`{other}` means nothing to dc-rs-h; its settings: {HIERARCHY_ARGUMENTS}");
                return Err(why);
            }
        }
    }
    Ok(System::Hierarchy { even_spines, by_size })
}

fn rain(settings: &str) -> Result<System, String> {
    let (mut tokens, mut reading) = (TOKENS, FabricReading::default());
    for setting in settings.split(',').filter(|_| !settings.is_empty()) {
        let is_read = match setting.parse() {
            Ok(number) if (1..=QUOTA_MAX).contains(&number) => {
                tokens = number;
                true
            }
            _ => take(&mut reading, setting).is_some() && reading.affinity.is_none(),
        };
        if !is_read {
            return Err(format!(
                "`{setting}` means nothing to dc-rain; its settings: {RAIN_ARGUMENTS}: {HORUS_ARGUMENTS}"
            ));
        }
    }
    Ok(System::Rain { tokens, reading })
}

fn take(reading: &mut FabricReading, setting: &str) -> Option<()> {
    if let Some(count) = setting.strip_prefix("idle-from=") {
        reading.idle_from = count.parse().ok().filter(|count| *count > 0)?;
        return Some(());
    }
    if let Some(keeps) = setting.strip_prefix("affinity=") {
        reading.affinity = Some(FabricReading::keeps(keeps)?);
        return Some(());
    }
    match setting {
        "idle-rack=newest" => reading.idle_rack = IdleRack::Newest,
        "idle-rack=random" => reading.idle_rack = IdleRack::Random,
        "told=one" => reading.told = LoadsTold::ByOne,
        "told=replies" => reading.told = LoadsTold::ByReplies,
        "told=always" => reading.told = LoadsTold::Always,
        "resubmit=adds" => reading.resubmit_writes = false,
        "resubmit=writes" => reading.resubmit_writes = true,
        "idle=counted" => reading.idle_uncounted = false,
        "idle=uncounted" => reading.idle_uncounted = true,
        "only=idle" => reading.parts = PolicyParts::IdleOnly,
        "only=loads" => reading.parts = PolicyParts::LoadsOnly,
        "as-published" => reading.as_published = true,
        _ => return None,
    }
    Some(())
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Horus(reading) => write_name(f, "dc-horus", &settings(*reading)),
            Self::Rain { tokens, reading } => {
                let settings = [tokens.to_string()].into_iter().chain(settings(*reading));
                write_name(f, "dc-rain", &settings.collect::<Vec<_>>())
            }
            Self::Hierarchy { even_spines, by_size } => {
                let set = [(*even_spines, "spines=even"), (*by_size, "racks=by-size")];
                let set = set.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name.to_owned());
                write_name(f, "dc-rs-h", &set.collect::<Vec<_>>())
            }
            Self::Balanced { flows: 0 } => f.write_str("dc-rs-lb"),
            Self::Balanced { flows } => write!(f, "dc-rs-lb:flows={flows}"),
        }
    }
}

fn write_name(f: &mut fmt::Formatter<'_>, name: &str, settings: &[String]) -> fmt::Result {
    f.write_str(name)?;
    for (at, setting) in settings.iter().enumerate() {
        write!(f, "{}{setting}", if at == 0 { ':' } else { ',' })?;
    }
    Ok(())
}

/// The settings that differ from the text's reading.
fn settings(reading: FabricReading) -> Vec<String> {
    let FabricReading { as_published, resubmit_writes, idle_uncounted, .. } = reading;
    let FabricReading { idle_from, idle_rack, told, parts, affinity, .. } = reading;
    let idle_from = (idle_from != 1).then(|| format!("idle-from={idle_from}"));
    let known = [
        (idle_rack == IdleRack::Random, "idle-rack=random"),
        (told == LoadsTold::ByReplies, "told=replies"),
        (told == LoadsTold::Always, "told=always"),
        (resubmit_writes, "resubmit=writes"),
        (idle_uncounted, "idle=uncounted"),
        (parts == PolicyParts::IdleOnly, "only=idle"),
        (parts == PolicyParts::LoadsOnly, "only=loads"),
        (as_published, "as-published"),
    ];
    let differs = known.into_iter().filter(|(differs, _)| *differs).map(|(_, setting)| setting.to_owned());
    let affinity = affinity.map(|keeps| format!("affinity={}", WholeSpan(keeps)));
    idle_from.into_iter().chain(differs).chain(affinity).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_again() {
        for text in [
            "dc-horus",
            "dc-horus:idle-from=2,idle-rack=random,told=replies",
            "dc-horus:told=always,resubmit=writes,idle=uncounted,only=idle,as-published",
            "dc-horus:only=loads",
            "dc-horus:told=replies,affinity=100ms",
            "dc-rs-h",
            "dc-rs-h:spines=even",
            "dc-rs-h:spines=even,racks=by-size",
            "dc-rs-lb",
            "dc-rs-lb:flows=2",
            "dc-rain:1",
            "dc-rain:2,idle-from=3,told=replies",
        ] {
            assert_eq!(
                System::parse(text).map(|read| read.map(|system| system.to_string())),
                Some(Ok(text.into()))
            );
        }
    }

    #[test]
    fn live_racks_feed_their_workers_as_simulated_ones_do() {
        for text in ["dc-horus:told=replies", "dc-rain", "dc-rain:2,idle-from=3", "dc-rain:8"] {
            let system = System::parse(text).expect("a system").expect("legal");
            let (_, leaf) = system.live().expect("it runs live");
            assert_eq!((leaf.traits().feed, leaf.traits().quota), (system.feed(), system.tokens()), "{text}");
        }
        assert_eq!(System::Hierarchy { even_spines: false, by_size: false }.live(), None);
        assert_eq!(System::Balanced { flows: 0 }.live(), None);
    }

    #[test]
    fn a_setting_that_means_nothing_is_refused_by_name() {
        for text in [
            "dc-horus:idle-from=0",
            "dc-horus:told",
            "dc-horus:affinity=1us",
            "dc-horus:affinity=501s",
            "dc-rain:1,affinity=10ms",
            "dc-horus:",
            "dc-rs-h:2",
            "dc-rs-h:racks=even",
            "dc-rain:9",
            "dc-rain:0",
            "dc-rs-lb:flows=0",
        ] {
            let read = System::parse(text).expect("it names a system");
            assert_eq!(read.is_ok(), text == "dc-horus:", "{text}");
        }
        assert!(System::parse("horus").is_none());
    }
}
