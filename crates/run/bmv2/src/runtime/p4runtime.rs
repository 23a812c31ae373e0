//! Tables, groups and counters over P4Runtime.
//!
//! A server may carry out the updates of a batch in any order. So no batch has two updates of an entry, and
//! none has a removal beside anything else: there may be no room for the rest before it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::entry::{ActionCall, EntryChange, EntryName};
use super::names::{P4Names, canonical};
use super::proto::p4::v1::p4_data::Data;
use super::proto::p4::v1::packet_replication_engine_entry::Type as Replicated;
use super::proto::p4::v1::replica::PortKind;
use super::proto::p4::v1::update::Type;
use super::proto::p4::v1::{
    CounterData, CounterEntry, Entity, Index, MulticastGroupEntry, P4Data, PacketReplicationEngineEntry,
    RegisterEntry, Replica, TableEntry, Update, entity,
};
use super::session::P4Session;
use crate::error::Bmv2Error;

/// The most updates of a batch: servers take messages of 4 MiB at least.
const BATCH_MAX: usize = 1_024;

/// The tables of a program behind a server.
pub(crate) struct P4Runtime {
    session: P4Session,
    names: P4Names,
    has_registers: bool,
    /// How many entries each table has.
    entries: BTreeMap<String, i64>,
    /// What was not sent yet, and what it is about.
    pending: Vec<Update>,
    about: BTreeSet<EntryName>,
    are_removals: bool,
    groups: u16,
    /// The link of each member's copies.
    links: Vec<Option<u16>>,
}

impl P4Runtime {
    /// The tables of a program that the session's switch runs.
    pub(crate) fn new(mut session: P4Session, names: P4Names) -> Result<Self, Bmv2Error> {
        let has_registers = match names.first_register() {
            Some(name) => session.can_read(name, register(names.array(name)?.id, Some(0), None))?,
            None => false,
        };
        Ok(Self {
            session,
            has_registers,
            names,
            entries: BTreeMap::new(),
            pending: Vec::new(),
            about: BTreeSet::new(),
            are_removals: false,
            groups: 0,
            links: Vec::new(),
        })
    }

    /// Whether the server has the program's registers too.
    pub(crate) fn has_registers(&self) -> bool {
        self.has_registers
    }

    /// Where the server is.
    pub(crate) fn at(&self) -> SocketAddr {
        self.session.at()
    }

    /// Changes an entry with the next batch.
    pub(crate) fn write(&mut self, entry: &EntryName, change: EntryChange<'_>) -> Result<(), Bmv2Error> {
        let named = self.names.entry(entry)?;
        let (of, action) = match change {
            EntryChange::Insert(action) => (Type::Insert, Some(self.names.action(action)?)),
            EntryChange::Modify(action) => (Type::Modify, Some(self.names.action(action)?)),
            EntryChange::Delete => (Type::Delete, None),
        };
        let is_removal = of == Type::Delete;
        self.count_entry(&entry.table, of)?;
        let is_full = self.pending.len() >= BATCH_MAX;
        if is_full || is_removal != self.are_removals || self.about.contains(entry) {
            self.settle()?;
        }
        self.are_removals = is_removal;
        self.about.insert(entry.clone());
        self.pending.push(update(of, entity::Entity::TableEntry(TableEntry { action, ..named })));
        Ok(())
    }

    /// Servers may say no more of a full table than that an entry failed.
    fn count_entry(&mut self, table: &str, of: Type) -> Result<(), Bmv2Error> {
        let held = self.entries.entry(table.to_owned()).or_default();
        match of {
            Type::Insert if *held >= self.names.size_of(table)? => {
                let why = "the table is full; the program was compiled for fewer entries".to_owned();
                return Err(Bmv2Error::Refused { call: format!("entries of {table}"), why });
            }
            Type::Insert => *held += 1,
            Type::Delete => *held -= 1,
            _ => {}
        }
        Ok(())
    }

    /// Sends what was not sent yet.
    pub(crate) fn settle(&mut self) -> Result<(), Bmv2Error> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let tables: BTreeSet<&str> = self.about.iter().map(|entry| entry.table.as_str()).collect();
        let what = format!("entries of {}", tables.into_iter().collect::<Vec<_>>().join(", "));
        self.about.clear();
        self.session.write(&what, std::mem::take(&mut self.pending))
    }

    /// Sends a frame into the program, by the port of the switch's processor.
    pub(crate) fn packet_out(&mut self, frame: Vec<u8>) -> Result<(), Bmv2Error> {
        self.settle()?;
        self.session.packet_out(frame)
    }

    pub(crate) fn check(&mut self) -> Result<(), Bmv2Error> {
        self.session.check()
    }

    pub(crate) fn set_default(&mut self, table: &str, action: &ActionCall) -> Result<(), Bmv2Error> {
        self.settle()?;
        let entry = self.names.default_entry(table)?;
        let action = Some(self.names.action(action)?);
        let entry = entity::Entity::TableEntry(TableEntry { action, ..entry });
        self.session.write(&format!("the default entry of {table}"), vec![update(Type::Modify, entry)])
    }

    pub(crate) fn make_groups(&mut self, groups: u16, members: u16) -> Result<(), Bmv2Error> {
        self.links = vec![None; members.into()];
        self.groups = groups;
        self.write_groups(Type::Insert)
    }

    pub(crate) fn lead_copies(&mut self, member: u16, link: Option<u16>) -> Result<(), Bmv2Error> {
        match self.links.get_mut(usize::from(member)) {
            Some(held) if *held != link => *held = link,
            _ => return Ok(()),
        }
        self.write_groups(Type::Modify)
    }

    /// All slices' groups have the same members.
    fn write_groups(&mut self, of: Type) -> Result<(), Bmv2Error> {
        self.settle()?;
        let led = (0..).zip(&self.links).filter_map(|(member, link)| Some((member, (*link)?)));
        // The newer field for ports is unknown to older servers, and BMv2 refuses port 0 in it.
        let replica = |(instance, link): (u32, u16)| Replica {
            instance,
            port_kind: Some(PortKind::EgressPort(link.into())),
        };
        let replicas: Vec<Replica> = led.map(replica).collect();
        let group = |multicast_group_id| {
            let group = MulticastGroupEntry { multicast_group_id, replicas: replicas.clone() };
            let entry = PacketReplicationEngineEntry { r#type: Some(Replicated::MulticastGroupEntry(group)) };
            update(of, entity::Entity::PacketReplicationEngineEntry(entry))
        };
        let groups: Vec<Update> = (1..=u32::from(self.groups)).map(group).collect();
        if groups.is_empty() { Ok(()) } else { self.session.write("multicast groups", groups) }
    }

    /// What these cells of counters have counted, read at once.
    pub(crate) fn counts(&mut self, cells: &[(String, usize)]) -> Result<Vec<u64>, Bmv2Error> {
        self.settle()?;
        let asked: Result<Vec<Entity>, Bmv2Error> =
            cells.iter().map(|(counter, at)| self.counter(counter, *at, None)).collect();
        let read = self.session.read("to read counters", asked?)?.into_iter();
        // Servers answer in any order.
        let read = read.filter_map(|entity| match entity.entity? {
            entity::Entity::CounterEntry(entry) => {
                let packets = entry.data.unwrap_or_default().packet_count as u64;
                Some(((entry.counter_id, entry.index?.index), packets))
            }
            _ => None,
        });
        let read: BTreeMap<(u32, i64), u64> = read.collect();
        let number = |(counter, at): &(String, usize)| {
            let number = read.get(&(self.names.array(counter)?.id, *at as i64)).copied();
            number.ok_or_else(|| Bmv2Error::Gone(format!("answers cell {at} of {counter} without a number")))
        };
        cells.iter().map(number).collect()
    }

    pub(crate) fn reset_counter(&mut self, counter: &str) -> Result<(), Bmv2Error> {
        self.settle()?;
        let cells = self.names.array(counter)?.size as usize;
        let zero = Some(CounterData::default());
        let zeros = (0..cells).map(|at| Ok(update_of(Type::Modify, self.counter(counter, at, zero)?)));
        let zeros = zeros.collect::<Result<Vec<_>, Bmv2Error>>()?;
        zeros.chunks(BATCH_MAX).try_for_each(|batch| self.session.write(counter, batch.to_vec()))
    }

    /// All words of a register array.
    pub(crate) fn words(&mut self, name: &str) -> Result<Vec<i64>, Bmv2Error> {
        let cells = self.names.array(name)?.size as usize;
        let mut words = vec![0; cells];
        for (at, word) in self.read_register(name, None)? {
            // A cell that the program has not is nobody's.
            if let Some(held) = words.get_mut(at) {
                *held = word;
            }
        }
        Ok(words)
    }

    /// One word of a register array.
    pub(crate) fn word(&mut self, name: &str, at: usize) -> Result<i64, Bmv2Error> {
        let read = self.read_register(name, Some(at))?;
        let word = read.into_iter().find(|(cell, _)| *cell == at).map(|(_, word)| word);
        word.ok_or_else(|| Bmv2Error::Gone(format!("answers cell {at} of {name} without a word")))
    }

    fn read_register(&mut self, name: &str, at: Option<usize>) -> Result<Vec<(usize, i64)>, Bmv2Error> {
        self.settle()?;
        let asked = register(self.names.array(name)?.id, at, None);
        let read = self.session.read(&format!("to read {name}"), vec![asked])?;
        let cells = read.into_iter().filter_map(|entity| {
            let Some(entity::Entity::RegisterEntry(entry)) = entity.entity else { return None };
            let Some(P4Data { data: Some(Data::Bitstring(bytes)) }) = entry.data else { return None };
            let word = bytes.iter().fold(0, |word: i64, byte| word << 8 | i64::from(*byte));
            Some((entry.index.unwrap_or_default().index as usize, word))
        });
        Ok(cells.collect())
    }

    /// Writes one word to `len` cells of a register array; to all behind `from` without it.
    pub(crate) fn fill(
        &mut self,
        name: &str,
        from: usize,
        len: Option<usize>,
        word: i64,
    ) -> Result<(), Bmv2Error> {
        self.settle()?;
        let array = self.names.array(name)?;
        let end = len.map_or(array.size as usize, |len| from + len);
        let write = |at| update_of(Type::Modify, register(array.id, Some(at), Some(word)));
        let updates: Vec<Update> = (from..end).map(write).collect();
        updates.chunks(BATCH_MAX).try_for_each(|batch| self.session.write(name, batch.to_vec()))
    }

    fn counter(&self, name: &str, at: usize, data: Option<CounterData>) -> Result<Entity, Bmv2Error> {
        let (counter_id, index) = (self.names.array(name)?.id, Some(Index { index: at as i64 }));
        Ok(Entity { entity: Some(entity::Entity::CounterEntry(CounterEntry { counter_id, index, data })) })
    }
}

/// A register's cell, or all cells; with a word to be written or without.
fn register(register_id: u32, at: Option<usize>, word: Option<i64>) -> Entity {
    let index = at.map(|at| Index { index: at as i64 });
    let data = word.map(|word| P4Data { data: Some(Data::Bitstring(canonical(&word.to_be_bytes()))) });
    Entity { entity: Some(entity::Entity::RegisterEntry(RegisterEntry { register_id, index, data })) }
}

fn update(of: Type, entity: entity::Entity) -> Update {
    update_of(of, Entity { entity: Some(entity) })
}

fn update_of(of: Type, entity: Entity) -> Update {
    Update { r#type: of.into(), entity: Some(entity) }
}
