//! The running switch's tables, groups, registers and counters, over its servers.
//!
//! Tables, groups and counters go over P4Runtime if there is a session with such a server, otherwise over
//! BMv2's own Thrift server. Registers do too if that server has them; BMv2's answers with UNIMPLEMENTED.
//! All else goes over Thrift always: P4Runtime has no words for links and for the depth of queues.

mod entry;
#[cfg(test)]
mod fake;
mod names;
mod p4runtime;
mod proto;
mod session;
mod thrift;

pub(crate) use entry::EntryChange;
pub use entry::{ActionCall, EntryName};
pub(crate) use names::P4Names;
pub(crate) use p4runtime::P4Runtime;
pub(crate) use session::P4Session;
pub(crate) use thrift::Thrift;

use std::net::SocketAddr;

use crate::error::Bmv2Error;

/// The servers of a running switch.
pub(crate) struct Runtime {
    thrift: Thrift,
    p4runtime: Option<P4Runtime>,
}

impl Runtime {
    pub(crate) fn new(thrift: Thrift, p4runtime: Option<P4Runtime>) -> Self {
        Self { thrift, p4runtime }
    }

    /// Where the P4Runtime server is, if tables go there.
    pub(crate) fn p4runtime(&self) -> Option<SocketAddr> {
        self.p4runtime.as_ref().map(P4Runtime::at)
    }

    /// Makes multicast groups, numbered from 1, each with so many members. No copy leads anywhere yet.
    pub(crate) fn make_groups(&mut self, groups: u16, members: u16) -> Result<(), Bmv2Error> {
        match &mut self.p4runtime {
            Some(calls) => calls.make_groups(groups, members),
            None => self.thrift.make_groups(groups, members),
        }
    }

    /// Lets the copies for a member leave by this link, or by none, in all groups.
    pub(crate) fn lead_copies(&mut self, member: u16, link: Option<u16>) -> Result<(), Bmv2Error> {
        match &mut self.p4runtime {
            Some(calls) => calls.lead_copies(member, link),
            None => self.thrift.lead_copies(member, link),
        }
    }

    /// Sets what happens to packets that no entry of a table matches.
    pub(crate) fn set_default(&mut self, table: &str, action: &ActionCall) -> Result<(), Bmv2Error> {
        match &mut self.p4runtime {
            Some(calls) => calls.set_default(table, action),
            None => self.thrift.set_default(table, action),
        }
    }

    /// Changes an entry, at the latest when [`Runtime::settle`] is called. What is written between two such
    /// calls may come to the switch in any order.
    pub(crate) fn write(&mut self, entry: &EntryName, change: EntryChange<'_>) -> Result<(), Bmv2Error> {
        match &mut self.p4runtime {
            Some(calls) => calls.write(entry, change),
            None => self.thrift.write(entry, change),
        }
    }

    /// Returns when the switch has all that was written.
    pub(crate) fn settle(&mut self) -> Result<(), Bmv2Error> {
        self.p4runtime.as_mut().map_or(Ok(()), P4Runtime::settle)
    }

    /// An error if another controller has taken the switch over.
    pub(crate) fn check(&mut self) -> Result<(), Bmv2Error> {
        self.p4runtime.as_mut().map_or(Ok(()), P4Runtime::check)
    }

    /// How many packets a counter has counted.
    pub(crate) fn count(&mut self, counter: &str, index: usize) -> Result<u64, Bmv2Error> {
        match &mut self.p4runtime {
            Some(calls) => Ok(calls.counts(&[(counter.to_owned(), index)])?[0]),
            None => self.thrift.count(counter, index),
        }
    }

    /// How many packets these cells of counters have counted.
    pub(crate) fn counts(&mut self, cells: &[(String, usize)]) -> Result<Vec<u64>, Bmv2Error> {
        match &mut self.p4runtime {
            Some(calls) => calls.counts(cells),
            None => cells.iter().map(|(counter, at)| self.thrift.count(counter, *at)).collect(),
        }
    }

    /// Sets all numbers of a counter to zero.
    pub(crate) fn reset_counter(&mut self, counter: &str) -> Result<(), Bmv2Error> {
        match &mut self.p4runtime {
            Some(calls) => calls.reset_counter(counter),
            None => self.thrift.reset_counter(counter),
        }
    }

    /// Sets all cells of a register array to zero.
    pub(crate) fn reset_register(&mut self, register: &str) -> Result<(), Bmv2Error> {
        match self.registers()? {
            Some(calls) => calls.fill(register, 0, None, 0),
            None => self.thrift.reset_register(register),
        }
    }

    /// All words of a register array.
    pub(crate) fn words(&mut self, register: &str) -> Result<Vec<i64>, Bmv2Error> {
        match self.registers()? {
            Some(calls) => calls.words(register),
            None => self.thrift.words(register),
        }
    }

    /// One word of a register array.
    pub(crate) fn word(&mut self, register: &str, at: usize) -> Result<i64, Bmv2Error> {
        match self.registers()? {
            Some(calls) => calls.word(register, at),
            None => self.thrift.word(register, at),
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
        match self.registers()? {
            Some(calls) => calls.fill(register, from, Some(len), word),
            None => self.thrift.fill(register, from, len, word),
        }
    }

    /// The P4Runtime server if it has registers, when it has all that was written before.
    fn registers(&mut self) -> Result<Option<&mut P4Runtime>, Bmv2Error> {
        self.settle()?;
        Ok(self.p4runtime.as_mut().filter(|calls| calls.has_registers()))
    }

    /// Sets how many frames may wait for each link.
    pub(crate) fn set_queues(&mut self, frames: u16) -> Result<(), Bmv2Error> {
        self.thrift.set_queues(frames)
    }

    /// How many links the switch has opened.
    pub(crate) fn links(&mut self) -> Result<usize, Bmv2Error> {
        self.thrift.links().map(|links| links.len())
    }

    /// Sends a frame into the program by the port of the switch's processor, which P4Runtime alone has.
    pub(crate) fn packet_out(&mut self, frame: Vec<u8>) -> Result<(), Bmv2Error> {
        match &mut self.p4runtime {
            Some(calls) => calls.packet_out(frame),
            None => Err(Bmv2Error::Unknown("packets of its processor".to_owned())),
        }
    }
}
