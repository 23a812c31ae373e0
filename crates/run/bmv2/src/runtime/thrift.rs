//! Calls of BMv2's own runtime server, over Apache Thrift.
//!
//! Only the calls that are needed, written by hand: BMv2's interface files are not ours to copy.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TFieldIdentifier, TInputProtocol, TListIdentifier,
    TMessageIdentifier, TMessageType, TOutputProtocol, TStructIdentifier, TType,
};
use thrift::transport::{TBufferedReadTransport, TBufferedWriteTransport};

use super::entry::{ActionCall, EntryChange, EntryName};
use crate::error::Bmv2Error;

/// The only pipeline of a simple switch.
const CONTEXT: i32 = 0;
/// How long the switch may take to start its server, and to answer.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);
/// The tag of an exact match among BMv2's kinds of matches.
const EXACT: i32 = 0;

/// A connection with the runtime server.
pub(crate) struct Thrift {
    asks: TBinaryOutputProtocol<TBufferedWriteTransport<TcpStream>>,
    hears: TBinaryInputProtocol<TBufferedReadTransport<TcpStream>>,
    sequence: i32,
    /// The handles of the entries that were written.
    handles: BTreeMap<EntryName, i32>,
    /// For each multicast group the handles of its members' nodes.
    nodes: Vec<Vec<i32>>,
}

/// An argument of a call.
#[derive(Clone, Copy)]
enum Argument<'a> {
    Number(i32),
    Long(i64),
    Name(&'a str),
    /// Exact matches of a table's key.
    Key(&'a [Vec<u8>]),
    /// An action's arguments.
    Data(&'a [Vec<u8>]),
    /// Options of an entry, of which none is set.
    NoOptions,
}

/// What a call returns.
enum Returned {
    Nothing,
    Number(i64),
    Numbers(Vec<i64>),
    Ports(Vec<(u16, String)>),
}

impl Thrift {
    /// Connects once the server listens. `is_alive` says whether the switch still runs.
    pub(crate) fn connect(at: SocketAddr, mut is_alive: impl FnMut() -> bool) -> Result<Self, Bmv2Error> {
        let began = Instant::now();
        let stream = loop {
            match TcpStream::connect(at) {
                Ok(stream) => break stream,
                Err(_) if is_alive() && began.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                Err(why) => return Err(Bmv2Error::Gone(format!("does not listen on {at}: {why}"))),
            }
        };
        let set_up = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(PATIENCE)));
        set_up.map_err(Bmv2Error::system("set up the connection with BMv2"))?;
        let other = stream.try_clone().map_err(Bmv2Error::system("set up the connection with BMv2"))?;
        Ok(Self {
            asks: TBinaryOutputProtocol::new(TBufferedWriteTransport::new(stream), true),
            hears: TBinaryInputProtocol::new(TBufferedReadTransport::new(other), true),
            sequence: 0,
            handles: BTreeMap::new(),
            nodes: Vec::new(),
        })
    }

    /// Sets all cells of a register array to zero.
    pub(crate) fn reset_register(&mut self, register: &str) -> Result<(), Bmv2Error> {
        let arguments = [Argument::Number(CONTEXT), Argument::Name(register)];
        self.call("bm_register_reset", &arguments).map(drop)
    }

    /// Sets all numbers of a counter to zero.
    pub(crate) fn reset_counter(&mut self, counter: &str) -> Result<(), Bmv2Error> {
        let arguments = [Argument::Number(CONTEXT), Argument::Name(counter)];
        self.call("bm_counter_reset_all", &arguments).map(drop)
    }

    /// Makes multicast groups, numbered from 1, each with a node for each of so many members. No node leads
    /// anywhere yet.
    pub(crate) fn make_groups(&mut self, groups: u16, members: u16) -> Result<(), Bmv2Error> {
        for group in 1..=groups {
            let made = self.replicate("bm_mc_mgrp_create", &[Argument::Number(group.into())])?;
            let mut nodes = Vec::new();
            for id in 0..members {
                let none = Argument::Name("");
                let node = self.replicate("bm_mc_node_create", &[Argument::Number(id.into()), none, none])?;
                let member = [Argument::Number(made), Argument::Number(node)];
                self.call_of("simple_pre_lag", "bm_mc_node_associate", &in_context(&member))?;
                nodes.push(node);
            }
            self.nodes.push(nodes);
        }
        Ok(())
    }

    /// Lets the copies for a member leave by this link, or by none, in all groups.
    pub(crate) fn lead_copies(&mut self, member: u16, link: Option<u16>) -> Result<(), Bmv2Error> {
        // A digit for each link, the last one for link 0.
        let links = link.map_or_else(String::new, |link| format!("1{}", "0".repeat(link.into())));
        let nodes: Vec<i32> =
            self.nodes.iter().filter_map(|nodes| nodes.get(usize::from(member)).copied()).collect();
        nodes.into_iter().try_for_each(|node| {
            let arguments = [Argument::Number(node), Argument::Name(&links), Argument::Name("")];
            self.call_of("simple_pre_lag", "bm_mc_node_update", &in_context(&arguments)).map(drop)
        })
    }

    /// Sets how many frames may wait for each link.
    pub(crate) fn set_queues(&mut self, frames: u16) -> Result<(), Bmv2Error> {
        let arguments = [Argument::Number(frames.into())];
        self.call_of("simple_switch", "set_all_egress_queue_depths", &arguments).map(drop)
    }

    /// A call of the replication engine that returns a handle.
    fn replicate(&mut self, call: &str, arguments: &[Argument<'_>]) -> Result<i32, Bmv2Error> {
        match self.call_of("simple_pre_lag", call, &in_context(arguments))? {
            Returned::Number(handle) => Ok(handle as i32),
            _ => Err(Bmv2Error::Gone("answers a group without a handle".to_owned())),
        }
    }

    /// Adds, changes or removes an entry.
    pub(crate) fn write(&mut self, entry: &EntryName, change: EntryChange<'_>) -> Result<(), Bmv2Error> {
        let table = &entry.table;
        match change {
            EntryChange::Insert(action) => {
                let handle = self.add(entry, action)?;
                self.handles.insert(entry.clone(), handle);
                Ok(())
            }
            EntryChange::Modify(action) => {
                let arguments = [
                    Argument::Number(CONTEXT),
                    Argument::Name(table),
                    Argument::Number(self.handle(entry)?),
                    Argument::Name(&action.name),
                    Argument::Data(&action.data),
                ];
                self.call("bm_mt_modify_entry", &arguments).map(drop)
            }
            EntryChange::Delete => {
                let handle = Argument::Number(self.handle(entry)?);
                let arguments = [Argument::Number(CONTEXT), Argument::Name(table), handle];
                self.call("bm_mt_delete_entry", &arguments)?;
                self.handles.remove(entry);
                Ok(())
            }
        }
    }

    fn handle(&self, entry: &EntryName) -> Result<i32, Bmv2Error> {
        let handle = self.handles.get(entry).copied();
        handle.ok_or_else(|| Bmv2Error::Gone(format!("never gave a handle for an entry of {}", entry.table)))
    }

    fn add(&mut self, entry: &EntryName, action: &ActionCall) -> Result<i32, Bmv2Error> {
        let arguments = [
            Argument::Number(CONTEXT),
            Argument::Name(&entry.table),
            Argument::Key(&entry.key),
            Argument::Name(&action.name),
            Argument::Data(&action.data),
            Argument::NoOptions,
        ];
        match self.call("bm_mt_add_entry", &arguments)? {
            Returned::Number(handle) => Ok(handle as i32),
            _ => Err(Bmv2Error::Gone("answers an entry without a handle".to_owned())),
        }
    }

    /// Sets what happens to packets that no entry of a table matches.
    pub(crate) fn set_default(&mut self, table: &str, action: &ActionCall) -> Result<(), Bmv2Error> {
        let arguments = [
            Argument::Number(CONTEXT),
            Argument::Name(table),
            Argument::Name(&action.name),
            Argument::Data(&action.data),
        ];
        self.call("bm_mt_set_default_action", &arguments).map(drop)
    }

    /// All words of a register array.
    pub(crate) fn words(&mut self, register: &str) -> Result<Vec<i64>, Bmv2Error> {
        let arguments = [Argument::Number(CONTEXT), Argument::Name(register)];
        match self.call("bm_register_read_all", &arguments)? {
            Returned::Numbers(words) => Ok(words),
            _ => Err(Bmv2Error::Gone("answers a register without words".to_owned())),
        }
    }

    /// One word of a register array.
    pub(crate) fn word(&mut self, register: &str, at: usize) -> Result<i64, Bmv2Error> {
        let arguments = [Argument::Number(CONTEXT), Argument::Name(register), Argument::Number(at as i32)];
        match self.call("bm_register_read", &arguments)? {
            Returned::Number(word) => Ok(word),
            _ => Err(Bmv2Error::Gone("answers a register without a word".to_owned())),
        }
    }

    /// Writes one word to `len` cells of a register array.
    pub(crate) fn fill(
        &mut self,
        register: &str,
        from: usize,
        len: usize,
        word: i64,
    ) -> Result<(), Bmv2Error> {
        let arguments = [
            Argument::Number(CONTEXT),
            Argument::Name(register),
            Argument::Number(from as i32),
            Argument::Number((from + len) as i32),
            Argument::Long(word),
        ];
        self.call("bm_register_write_range", &arguments).map(drop)
    }

    /// The links that the switch has opened: port and interface.
    pub(crate) fn links(&mut self) -> Result<Vec<(u16, String)>, Bmv2Error> {
        match self.call("bm_dev_mgr_show_ports", &[])? {
            Returned::Ports(links) => Ok(links),
            _ => Err(Bmv2Error::Gone("answers its links without a list".to_owned())),
        }
    }

    /// How many packets a counter has counted.
    pub(crate) fn count(&mut self, counter: &str, index: usize) -> Result<u64, Bmv2Error> {
        let arguments = [Argument::Number(CONTEXT), Argument::Name(counter), Argument::Number(index as i32)];
        match self.call("bm_counter_read", &arguments)? {
            Returned::Number(packets) => Ok(packets as u64),
            _ => Err(Bmv2Error::Gone("answers a counter without a number".to_owned())),
        }
    }

    fn call(&mut self, call: &str, arguments: &[Argument<'_>]) -> Result<Returned, Bmv2Error> {
        self.call_of("standard", call, arguments)
    }

    fn call_of(
        &mut self,
        service: &str,
        call: &str,
        arguments: &[Argument<'_>],
    ) -> Result<Returned, Bmv2Error> {
        self.sequence += 1;
        let named = match arguments {
            [_, Argument::Name(of), ..] => format!("{call} of {of}"),
            _ => call.to_owned(),
        };
        self.ask(&format!("{service}:{call}"), arguments)
            .and_then(|()| self.hear())
            .map_err(|why| failed(&named, &why))?
            .map_err(|code| Bmv2Error::Refused { call: named.clone(), why: refusal(call, code) })
    }

    fn ask(&mut self, name: &str, arguments: &[Argument<'_>]) -> thrift::Result<()> {
        let out = &mut self.asks;
        out.write_message_begin(&TMessageIdentifier::new(name, TMessageType::Call, self.sequence))?;
        out.write_struct_begin(&TStructIdentifier::new("arguments"))?;
        for (id, argument) in (1..).zip(arguments) {
            out.write_field_begin(&TFieldIdentifier::new("argument", argument.kind(), id))?;
            argument.write(out)?;
            out.write_field_end()?;
        }
        out.write_field_stop()?;
        out.write_struct_end()?;
        out.write_message_end()?;
        out.flush()
    }

    /// What the call returns, or the code of the exception with which the switch answers.
    fn hear(&mut self) -> thrift::Result<Result<Returned, i64>> {
        let hears = &mut self.hears;
        let message = hears.read_message_begin()?;
        if message.message_type == TMessageType::Exception {
            let why = thrift::Error::read_application_error_from_in_protocol(hears)?;
            return Err(thrift::Error::Application(why));
        }
        let mut returned = Ok(Returned::Nothing);
        hears.read_struct_begin()?;
        loop {
            let field = hears.read_field_begin()?;
            match (field.field_type, field.id) {
                (TType::Stop, _) => break,
                (of, Some(0)) => returned = Ok(read(hears, of)?),
                (of, _) => returned = Err(read_code(hears, of)?),
            }
            hears.read_field_end()?;
        }
        hears.read_struct_end()?;
        hears.read_message_end()?;
        Ok(returned)
    }
}

impl Argument<'_> {
    const fn kind(&self) -> TType {
        match self {
            Self::Number(_) => TType::I32,
            Self::Long(_) => TType::I64,
            Self::Name(_) => TType::String,
            Self::Key(_) | Self::Data(_) => TType::List,
            Self::NoOptions => TType::Struct,
        }
    }

    fn write(&self, out: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        match self {
            Self::Number(number) => out.write_i32(*number),
            Self::Long(number) => out.write_i64(*number),
            Self::Name(name) => out.write_string(name),
            Self::Key(key) => write_key(out, key),
            Self::Data(data) => {
                out.write_list_begin(&TListIdentifier::new(TType::String, data.len() as i32))?;
                data.iter().try_for_each(|bytes| out.write_bytes(bytes))?;
                out.write_list_end()
            }
            Self::NoOptions => {
                out.write_struct_begin(&TStructIdentifier::new("options"))?;
                out.write_field_stop()?;
                out.write_struct_end()
            }
        }
    }
}

/// A list of structures: the kind of match, and a structure with the bytes.
fn write_key(out: &mut dyn TOutputProtocol, key: &[Vec<u8>]) -> thrift::Result<()> {
    out.write_list_begin(&TListIdentifier::new(TType::Struct, key.len() as i32))?;
    for bytes in key {
        out.write_struct_begin(&TStructIdentifier::new("match"))?;
        out.write_field_begin(&TFieldIdentifier::new("type", TType::I32, 1))?;
        out.write_i32(EXACT)?;
        out.write_field_end()?;
        out.write_field_begin(&TFieldIdentifier::new("exact", TType::Struct, 2))?;
        out.write_struct_begin(&TStructIdentifier::new("exact"))?;
        out.write_field_begin(&TFieldIdentifier::new("key", TType::String, 1))?;
        out.write_bytes(bytes)?;
        out.write_field_end()?;
        out.write_field_stop()?;
        out.write_struct_end()?;
        out.write_field_end()?;
        out.write_field_stop()?;
        out.write_struct_end()?;
    }
    out.write_list_end()
}

/// Reads a returned value: a number, numbers, or a counter's structure, whose second number counts packets.
fn read(hears: &mut dyn TInputProtocol, of: TType) -> thrift::Result<Returned> {
    Ok(match of {
        TType::I32 => Returned::Number(hears.read_i32()?.into()),
        TType::I64 => Returned::Number(hears.read_i64()?),
        TType::List => {
            let list = hears.read_list_begin()?;
            let returned = if list.element_type == TType::Struct {
                let ports = (0..list.size).map(|_| read_port(hears));
                Returned::Ports(ports.collect::<thrift::Result<_>>()?)
            } else {
                Returned::Numbers((0..list.size).map(|_| hears.read_i64()).collect::<thrift::Result<_>>()?)
            };
            hears.read_list_end()?;
            returned
        }
        TType::Struct => {
            let mut packets = 0;
            hears.read_struct_begin()?;
            loop {
                let field = hears.read_field_begin()?;
                match (field.field_type, field.id) {
                    (TType::Stop, _) => break,
                    (TType::I64, Some(2)) => packets = hears.read_i64()?,
                    (of, _) => hears.skip(of)?,
                }
                hears.read_field_end()?;
            }
            hears.read_struct_end()?;
            Returned::Number(packets)
        }
        of => {
            hears.skip(of)?;
            Returned::Nothing
        }
    })
}

/// A port's number and interface, the first two fields of its structure.
fn read_port(hears: &mut dyn TInputProtocol) -> thrift::Result<(u16, String)> {
    let mut port = (0, String::new());
    hears.read_struct_begin()?;
    loop {
        let field = hears.read_field_begin()?;
        match (field.field_type, field.id) {
            (TType::Stop, _) => break,
            (TType::I32, Some(1)) => port.0 = hears.read_i32()? as u16,
            (TType::String, Some(2)) => port.1 = hears.read_string()?,
            (of, _) => hears.skip(of)?,
        }
        hears.read_field_end()?;
    }
    hears.read_struct_end()?;
    Ok(port)
}

/// The code of an exception, its first field.
fn read_code(hears: &mut dyn TInputProtocol, of: TType) -> thrift::Result<i64> {
    let mut code = 0;
    if of != TType::Struct {
        hears.skip(of)?;
        return Ok(code);
    }
    hears.read_struct_begin()?;
    loop {
        let field = hears.read_field_begin()?;
        match (field.field_type, field.id) {
            (TType::Stop, _) => break,
            (TType::I32, Some(1)) => code = hears.read_i32()?.into(),
            (of, _) => hears.skip(of)?,
        }
        hears.read_field_end()?;
    }
    hears.read_struct_end()?;
    Ok(code)
}

/// What an exception's code means for this call.
fn refusal(call: &str, code: i64) -> String {
    let is_of = |start: &str| call.starts_with(start);
    let other_program = "the switch runs another program, or one of another version";
    match code {
        1 if is_of("bm_mt_") => "the table is full; the program was compiled for fewer entries".to_owned(),
        7 | 8 if is_of("bm_mt_") => format!("no such table or action; {other_program}"),
        1 if is_of("bm_register_") || is_of("bm_counter_") => format!("it is not there; {other_program}"),
        2 if is_of("bm_register_") || is_of("bm_counter_") => {
            "it has no such cell; the program was compiled for another size".to_owned()
        }
        code => format!("code {code} of its interface"),
    }
}

/// The arguments behind the context's number.
fn in_context<'a>(arguments: &[Argument<'a>]) -> Vec<Argument<'a>> {
    [Argument::Number(CONTEXT)].into_iter().chain(arguments.iter().copied()).collect()
}

fn failed(call: &str, why: &thrift::Error) -> Bmv2Error {
    Bmv2Error::Refused { call: call.to_owned(), why: why.to_string() }
}
