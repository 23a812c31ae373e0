//! Options of clients and workers: texts by their keys, as a plan or a command line has them.

use std::ffi::c_char;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use sluice_net::client::{SpineClients, deadline_default};
use sluice_net::first::{FirstPacket, LINK_MTU_MIN};
use sluice_net::program::{CONTROLLER_DEFAULT, TlsArgs};
use sluice_net::udp::Waiting;
use sluice_net::{ClientOptions, NetError, WorkerOptions};
use sluice_rpc::RpcError;
use sluice_units::span;
use sluice_wire::sizes::QUOTA_LIMIT;

use crate::fault::{Fault, call};
use crate::pointers::{ResultPlace, text};
use crate::table::{HandleKind, HandleTable};
use crate::types::{SLUICE_ABI, SluiceOptions, SluiceStatus};

static OPTIONS: LazyLock<HandleTable<Mutex<ChosenOptions>>> =
    LazyLock::new(|| HandleTable::new(HandleKind::Options));

/// Whose option it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OptionOf {
    Both,
    Client,
    Worker,
}

/// All keys.
const KEYS: [(&str, OptionOf); 18] = [
    ("controller", OptionOf::Both),
    ("name", OptionOf::Both),
    ("listen", OptionOf::Both),
    ("ca", OptionOf::Both),
    ("identity", OptionOf::Both),
    ("dilation", OptionOf::Both),
    ("link-mtu", OptionOf::Both),
    ("waiting", OptionOf::Both),
    ("pin", OptionOf::Both),
    ("patience", OptionOf::Client),
    ("retry", OptionOf::Client),
    ("deadline", OptionOf::Client),
    ("slice", OptionOf::Worker),
    ("labels", OptionOf::Worker),
    ("quota", OptionOf::Worker),
    ("capacity", OptionOf::Worker),
    ("early", OptionOf::Worker),
    ("drain-limit", OptionOf::Worker),
];

/// What was set.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChosenOptions {
    /// The keys, in the order in which they were set.
    keys: Vec<&'static str>,
    controller: Option<String>,
    name: Option<String>,
    listen: Option<SocketAddr>,
    tls: TlsArgs,
    dilation: Option<u32>,
    link_mtu: Option<u16>,
    waiting: Option<Waiting>,
    pin: Option<usize>,
    patience: Option<Duration>,
    retry: Option<bool>,
    deadline: Option<Duration>,
    slice: Option<String>,
    labels: Option<Vec<String>>,
    quota: Option<u8>,
    capacity: Option<u32>,
    early: Option<bool>,
    drain_limit: Option<Duration>,
}

impl ChosenOptions {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "controller" => self.controller = Some(value.to_owned()),
            "name" => self.name = Some(value.to_owned()),
            "listen" => self.listen = Some(parsed(value, "an address such as 127.0.0.1:0")?),
            "ca" => self.tls.ca = Some(PathBuf::from(value)),
            "identity" => self.tls.identity = Some(identity(value)?),
            "dilation" => self.dilation = Some(within(value, 1, u32::MAX)?),
            "link-mtu" => self.link_mtu = Some(within(value, LINK_MTU_MIN, u16::MAX)?),
            "waiting" => self.waiting = Some(waiting(value)?),
            "pin" => self.pin = Some(parsed(value, "the number of a core")?),
            "patience" => self.patience = Some(time(value)?),
            "retry" => self.retry = Some(switched(value)?),
            "deadline" => self.deadline = Some(time(value)?),
            "slice" => self.slice = Some(value.to_owned()),
            "labels" => self.labels = Some(value.split(',').map(str::to_owned).collect()),
            "quota" => self.quota = Some(within(value, 1, QUOTA_LIMIT)?),
            "capacity" => self.capacity = Some(parsed(value, "tasks per second, such as 20000")?),
            "early" => self.early = Some(switched(value)?),
            "drain-limit" => self.drain_limit = Some(time(value)?),
            _ => {
                return Err(format!(
                    "there is no such option; there are {}",
                    KEYS.map(|(key, _)| key).join(", ")
                ));
            }
        }
        self.keys.extend(KEYS.iter().map(|(known, _)| *known).filter(|known| *known == key));
        Ok(())
    }

    /// Fails if an option was set that this role does not have.
    fn are_of(&self, role: OptionOf, called: &str) -> Result<(), Fault> {
        let of = |key: &str| KEYS.iter().find(|(known, _)| *known == key).map(|(_, of)| *of);
        let is_others = |key: &&&str| !matches!(of(key), Some(of) if of == OptionOf::Both || of == role);
        match self.keys.iter().find(is_others) {
            None => Ok(()),
            Some(key) => {
                let line = format!("option `{key}`: a {called} has none; leave it out");
                Err(Fault::new(SluiceStatus::BadOption, line))
            }
        }
    }

    fn controller(&self) -> &str {
        self.controller.as_deref().unwrap_or(CONTROLLER_DEFAULT)
    }

    /// Registers the client that these options describe. Returns it with the deadline of its tasks.
    pub(crate) fn connect(&self) -> Result<(SpineClients, Duration), Fault> {
        self.are_of(OptionOf::Client, "client")?;
        let remotes = self.tls.remotes(self.controller()).map_err(|why| of_remote(&why))?;
        let mut options = ClientOptions::of(remotes[0].clone());
        options.name = self.name.clone().unwrap_or(options.name);
        options.listen = self.listen.unwrap_or(options.listen);
        options.patience = self.patience.unwrap_or(options.patience);
        options.retry = self.retry.unwrap_or(options.retry);
        options.dilation = self.dilation.unwrap_or(options.dilation);
        options.waiting = self.waiting.unwrap_or(options.waiting);
        options.pin = self.pin.or(options.pin);
        if let Some(mtu) = self.link_mtu {
            options.datagram_max = FirstPacket::fitting(mtu, None).datagram_max;
        }
        let deadline = self.deadline.unwrap_or_else(|| deadline_default(options.dilation));
        // One seed for all: which spine a task goes to decides nothing but its way.
        Ok((SpineClients::connect(&options, &remotes, 1)?, deadline))
    }

    /// The options of the worker that these options describe.
    pub(crate) fn worker(&self) -> Result<WorkerOptions, Fault> {
        self.are_of(OptionOf::Worker, "worker")?;
        let remote = self.tls.remote(self.controller()).map_err(|why| of_remote(&why))?;
        let defaults = WorkerOptions::of(remote);
        Ok(WorkerOptions {
            name: self.name.clone().unwrap_or(defaults.name),
            listen: self.listen.unwrap_or(defaults.listen),
            slice: self.slice.clone().unwrap_or(defaults.slice),
            labels: self.labels.clone().unwrap_or(defaults.labels),
            quota: self.quota.unwrap_or(defaults.quota),
            capacity: self.capacity.unwrap_or(defaults.capacity),
            dilation: self.dilation.unwrap_or(defaults.dilation),
            early: self.early.unwrap_or(defaults.early),
            datagram_max: self
                .link_mtu
                .map_or(defaults.datagram_max, |mtu| FirstPacket::fitting(mtu, None).datagram_max),
            waiting: self.waiting.unwrap_or(defaults.waiting),
            drain_limit: self.drain_limit.map_or(defaults.drain_limit, nanos),
            pin: self.pin.or(defaults.pin),
            ..defaults
        })
    }
}

fn nanos(span: Duration) -> sluice_net::Nanos {
    sluice_net::Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

/// A fault in where the controller is, or in the files for TLS.
fn of_remote(why: &NetError) -> Fault {
    let keys = match why {
        NetError::Rpc(RpcError::Address { .. }) => "option `controller`",
        _ => "options `ca` and `identity`",
    };
    Fault::new(SluiceStatus::BadOption, format!("{keys}: {why}"))
}

fn parsed<T: FromStr>(value: &str, what: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("`{value}` is not {what}"))
}

fn within<T>(value: &str, least: T, most: T) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display + Copy,
{
    let wrong = || format!("`{value}` is not a whole number from {least} to {most}");
    let number: Option<T> = value.parse().ok();
    number.filter(|number| *number >= least && *number <= most).ok_or_else(wrong)
}

fn time(value: &str) -> Result<Duration, String> {
    span(value).map(|span| Duration::from_nanos(span.0))
}

fn switched(value: &str) -> Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{value}` is neither on nor off")),
    }
}

fn waiting(value: &str) -> Result<Waiting, String> {
    match value {
        "adaptive" => Ok(Waiting::Adaptive),
        "spin" => Ok(Waiting::Spin),
        "block" => Ok(Waiting::Block),
        _ => Err(format!("`{value}` is none of adaptive, spin and block")),
    }
}

/// The files of a certificate and its key.
fn identity(value: &str) -> Result<Vec<PathBuf>, String> {
    match value.split_once(',') {
        Some((certificate, key)) if !certificate.is_empty() && !key.is_empty() => {
            Ok(vec![PathBuf::from(certificate), PathBuf::from(key)])
        }
        _ => Err(format!("`{value}` is not two files: write CERTIFICATE,KEY")),
    }
}

/// Fails if the caller was compiled with another header.
pub(crate) fn same_abi(abi: u32) -> Result<(), Fault> {
    if abi == SLUICE_ABI {
        return Ok(());
    }
    let line = format!(
        "the program was compiled with sluice.h of interface {abi}, and this is libsluice {} of interface \
         {SLUICE_ABI}: compile it again with the header of this library",
        env!("CARGO_PKG_VERSION")
    );
    Err(Fault::new(SluiceStatus::OtherAbi, line))
}

/// The options that a handle stands for.
pub(crate) fn chosen(options: SluiceOptions) -> Result<ChosenOptions, Fault> {
    OPTIONS.with(options.id, |chosen| chosen.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

/// Called by sluice_options_new(), which passes the header's version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_options_new_of(abi: u32, options: *mut SluiceOptions) -> SluiceStatus {
    call(|| {
        same_abi(abi)?;
        // SAFETY: as the header asks.
        let place = unsafe { ResultPlace::empty(options, "options") }?;
        place.put(SluiceOptions { id: OPTIONS.add(Mutex::default())? });
        Ok(())
    })
}

/// Sets an option. A value that makes no sense is refused here; an address or a file is looked at later.
///
/// Of clients and workers:
///   controller  HOST:PORT or a URL; its standbys, or the controllers of several spines, behind commas
///               (127.0.0.1:7400)
///   name        unlike all others (one of its own)
///   listen      ADDRESS:PORT at which switch and workers reach it (127.0.0.1:0)
///   ca          PEM file of the authority that signed the controller's certificate; turns TLS on
///   identity    PEM files of the own certificate and its key, with a comma between
///   dilation    a factor for all times of the network (1)
///   link-mtu    the longest packet that the links carry, in bytes
///   waiting     how to wait for packets: adaptive, spin or block (adaptive)
///   pin         the core of the thread that handles packets
/// Of clients:
///   patience    how long to wait for the registration, such as 5s or 300ms (5s)
///   retry       on or off: whether a task may be tried again (on)
///   deadline    of tasks that state none (5s times the dilation)
/// Of workers: slice, labels, quota, capacity, early (on or off) and drain-limit, as the flags of a worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_options_set(
    options: SluiceOptions,
    key: *const c_char,
    value: *const c_char,
) -> SluiceStatus {
    call(|| {
        // SAFETY: as the header asks.
        let (key, value) = unsafe { (text(key, "key")?, text(value, "value")?) };
        let set = OPTIONS.with(options.id, |chosen| {
            chosen.lock().unwrap_or_else(PoisonError::into_inner).set(key, value)
        })?;
        set.map_err(|why| Fault::new(SluiceStatus::BadOption, format!("option `{key}`: {why}")))
    })
}

/// Frees options; what was made with them stays.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_options_free(options: SluiceOptions) -> SluiceStatus {
    call(|| OPTIONS.take(options.id).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_can_be_set_and_a_wrong_value_is_refused() {
        let sound = [
            ("controller", "127.0.0.1:7400"),
            ("name", "n"),
            ("listen", "127.0.0.1:0"),
            ("ca", "ca.pem"),
            ("identity", "own.pem,own.key"),
            ("dilation", "10"),
            ("link-mtu", "1500"),
            ("waiting", "block"),
            ("pin", "0"),
            ("patience", "300ms"),
            ("retry", "off"),
            ("deadline", "1s"),
            ("slice", "words"),
            ("labels", "gpu,ssd"),
            ("quota", "2"),
            ("capacity", "100"),
            ("early", "on"),
            ("drain-limit", "1s"),
        ];
        assert_eq!(sound.map(|(key, _)| key), KEYS.map(|(key, _)| key));
        for (key, value) in sound {
            assert_eq!(ChosenOptions::default().set(key, value), Ok(()), "{key}");
        }
        let wrong = [
            ("listen", "here"),
            ("identity", "own.pem"),
            ("dilation", "0"),
            ("link-mtu", "100"),
            ("waiting", "sleep"),
            ("pin", "-1"),
            ("patience", "5"),
            ("retry", "true"),
            ("quota", "99"),
            ("contoller", "x"),
        ];
        for (key, value) in wrong {
            assert!(ChosenOptions::default().set(key, value).is_err(), "{key}={value}");
        }
    }

    #[test]
    fn an_option_of_the_other_role_is_refused_by_its_name() {
        let mut options = ChosenOptions::default();
        options.set("quota", "2").expect("sound");
        let why = options.are_of(OptionOf::Client, "client").expect_err("it is a worker's");
        assert!(why.line().to_string_lossy().contains("`quota`: a client has none"));
        assert!(options.are_of(OptionOf::Worker, "worker").is_ok());
    }
}
