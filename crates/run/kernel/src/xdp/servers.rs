//! Servers, into whose memory large waiting tasks are written, and the paths to them.
//!
//! The controller names a server's address. The path to it is that of a worker with the same address:
//! workers share their server's memory, so they run on its machine, and the program knows where their
//! packets come from. So the switch need not ask the kernel for neighbours, and finds a server that moves.
//! A server without workers is not written to: no worker would read the memory.
//!
//! The kernel hands each copy of a WRITE to a link, and the program finds the server by the link. So there
//! can be one server per link. If a server shares its link with another, nothing is written ahead for its
//! slices: the workers ask the clients.

use std::collections::{BTreeMap, BTreeSet};

use aya::Ebpf;
use aya::maps::HashMap;
use aya::maps::xdp::DevMapHash;
use sluice_wire::roce::MAX_WRITE_BYTES;
use sluice_wire::tables::{RingRow, ServerRow, ServerState, TableAnswer, TableOp};
use sluice_wire::{Endpoint, INLINE_BYTES, Psn, SLOT_HEAD_BYTES, ServerId, SliceId};

use super::XdpSwitch;
use super::failing::{chain, failed};
use super::layout::Worker;
use super::links::copies;
use super::maps::{Maps, Table};
use super::server_rows::{Group, HostPath, Ring, Server, WorkerLine};
use crate::KernelError;

impl XdpSwitch {
    /// Finds the paths to the servers from their workers' packets, and writes tasks to these servers from
    /// then on. Call this regularly: a worker's path is known once it has sent a packet.
    ///
    /// # Errors
    /// [`KernelError::Xdp`] with the kernel's message.
    pub fn find_servers(&mut self) -> Result<(), KernelError> {
        let size = self.config.size;
        let found: Vec<(ServerId, HostPath)> = (0..size.servers)
            .filter_map(|server| {
                let held: Server = self.maps.rows(Table::Servers, server.into()).holds();
                let way = way_to(&self.maps, size.workers, held.at()?)?;
                (way != held.way).then_some((ServerId(server), way))
            })
            .collect();
        found.into_iter().try_for_each(|(server, way)| self.set_server_way(server, way))
    }

    /// Sets the path to a server.
    ///
    /// # Errors
    /// [`KernelError::Xdp`] with the kernel's message.
    pub fn set_server_way(&mut self, server: ServerId, way: HostPath) -> Result<(), KernelError> {
        let held: Server = self.maps.rows(Table::Servers, server.0.into()).holds();
        self.maps.change(Table::Servers, server.0.into(), held.by(way))?;
        self.regroup()
    }

    /// Carries out a step on servers. Indices and values are checked as in the model, except that a pair
    /// must be unreliable and without iCRC.
    pub(super) fn server_step(&mut self, op: TableOp) -> Result<TableAnswer, KernelError> {
        let size = self.config.size;
        let known = |slice: SliceId, server: ServerId| slice.0 < size.slices && server.0 < size.servers;
        match op {
            TableOp::SetServer(server, row)
                if server.0 < size.servers && row.is_none_or(|(row, _)| !row.reliable && !row.icrc) =>
            {
                self.set_server(server, row)?;
                if !self.config.test_mode {
                    self.find_servers()?;
                }
            }
            TableOp::SetRing(slice, server, row) if known(slice, server) && row.is_none_or(is_ring) => {
                let ring = row.map_or_else(Ring::default, Ring::from);
                let index = ring_index(size.servers, slice, server.0);
                self.maps.change(Table::Rings, index, ring)?;
                self.regroup()?;
            }
            TableOp::SetCopies(slice, copies) if size.servers > 0 && slice.0 < size.slices => {
                let group: Group = self.maps.groups.get(slice.0.into());
                self.maps.groups.set(slice.0.into(), Group { copies, ..group });
            }
            TableOp::ReadServer(server) if server.0 < size.servers => {
                let held: Server = self.maps.rows(Table::Servers, server.0.into()).holds();
                let next = Psn::new(self.maps.psns.get(server.0.into()));
                return Ok(TableAnswer::Server(ServerState { row: held.row(), next }));
            }
            TableOp::ReadRing(slice, server) if known(slice, server) => {
                let index = ring_index(size.servers, slice, server.0);
                return Ok(TableAnswer::Ring(self.maps.rows::<Ring>(Table::Rings, index).holds().row()));
            }
            _ => return Ok(TableAnswer::OutOfRange),
        }
        Ok(TableAnswer::Done)
    }

    fn set_server(&mut self, server: ServerId, row: Option<(ServerRow, Psn)>) -> Result<(), KernelError> {
        let index = server.0.into();
        let held: Server = self.maps.rows(Table::Servers, index).holds();
        if let Some((_, start)) = row {
            self.maps.psns.set(index, start.get());
        }
        let way = |at: Endpoint| {
            let stays = held.at().is_some_and(|known| known.ip == at.ip);
            if stays { held.way } else { HostPath::default() }
        };
        let row = row.map_or_else(Server::default, |(row, _)| Server::new(&row, way(row.at)));
        self.maps.change(Table::Servers, index, row)?;
        self.regroup()
    }

    /// Recomputes what follows from the servers' rows: the server behind each link, and each slice's group.
    pub(super) fn regroup(&mut self) -> Result<(), KernelError> {
        let size = self.config.size;
        let servers: Vec<Server> =
            (0..size.servers).map(|server| self.maps.rows(Table::Servers, server.into()).holds()).collect();
        let sharing = sharing(&servers);
        self.warn_shared_links(&sharing, &servers);
        let leads = |server: u16| {
            let row = &servers[usize::from(server)];
            row.at().is_some() && row.way.link != 0
        };
        let behind = (0..size.servers).filter(|server| leads(*server) && !sharing.contains(server));
        let behind: BTreeMap<u32, u16> =
            behind.map(|server| (servers[usize::from(server)].way.link, server)).collect();
        self.link(behind)?;
        (0..size.slices).try_for_each(|slice| self.regroup_slice(SliceId(slice), &servers, &sharing))
    }

    fn regroup_slice(
        &mut self,
        slice: SliceId,
        servers: &[Server],
        sharing: &BTreeSet<u16>,
    ) -> Result<(), KernelError> {
        let held: Group = self.maps.groups.get(slice.0.into());
        let mut group = Group { copies: held.copies, fits: u16::MAX, ..Group::default() };
        let mut is_shared = false;
        for (server, row) in servers.iter().enumerate() {
            let index = ring_index(servers.len() as u16, slice, server as u16);
            let ring: Ring = self.maps.rows(Table::Rings, index).holds();
            let (Some(at), Some(ring_row)) = (row.at(), ring.row()) else { continue };
            is_shared |= sharing.contains(&(server as u16));
            if row.way.link == 0 {
                continue;
            }
            let rank = u32::from(group.members);
            if ring.rank != rank {
                self.maps.change(Table::Rings, index, ring.ranked(rank))?;
            }
            group.members += 1;
            group.fits = group.fits.min(longest(&ring_row));
            group.wants_check |= u16::from(!std::net::SocketAddr::from(at).is_ipv4());
        }
        if group.members == 0 || is_shared {
            group = Group { copies: held.copies, ..Group::default() };
        }
        if group != held {
            self.maps.groups.set(slice.0.into(), group);
        }
        Ok(())
    }

    /// Logs once for servers that share a link what this costs.
    fn warn_shared_links(&mut self, sharing: &BTreeSet<u16>, servers: &[Server]) {
        for server in sharing.difference(&self.servers.told) {
            let row = &servers[usize::from(*server)];
            let at = row.at().map(std::net::SocketAddr::from);
            sluice_log::log!(
                LinkShared,
                server = u64::from(*server),
                link = row.way.link,
                "server {server} ({}) is behind link {} like another: tasks of their slices are not written ahead, their \
                 workers ask the clients for the bytes; give each server a link of its own",
                at.map_or_else(String::new, |at| at.to_string()),
                row.way.link
            );
        }
        self.servers.told.clone_from(sharing);
    }

    /// Writes the map from links to servers, and adds these links to the broadcast map.
    fn link(&mut self, behind: BTreeMap<u32, u16>) -> Result<(), KernelError> {
        if behind == self.servers.behind {
            return Ok(());
        }
        let map = self.ebpf.map("link_servers").ok_or_else(|| failed("find the map", "link_servers"))?;
        let map = HashMap::<_, u32, u32>::try_from(map).map_err(|why| failed("open a map", &why))?;
        // Includes entries of an earlier process.
        let gone: Vec<u32> = map.keys().flatten().filter(|link| !behind.contains_key(link)).collect();
        if !self.config.test_mode {
            broadcast_to(&mut self.ebpf, behind.keys().copied(), &gone)?;
        }
        let map = self.ebpf.map_mut("link_servers").ok_or_else(|| failed("find the map", "link_servers"))?;
        let mut map = HashMap::<_, u32, u32>::try_from(map).map_err(|why| failed("open a map", &why))?;
        for link in &gone {
            map.remove(link).map_err(|why| failed("clear a link's server", &chain(&why)))?;
        }
        for (link, server) in &behind {
            map.insert(link, u32::from(*server), 0)
                .map_err(|why| failed("set a link's server", &chain(&why)))?;
        }
        self.servers.behind = behind;
        Ok(())
    }
}

/// Adds links to the map over which WRITEs are broadcast, with the program that makes the copy for each.
fn broadcast_to(ebpf: &mut Ebpf, links: impl Iterator<Item = u32>, gone: &[u32]) -> Result<(), KernelError> {
    let program = copies(ebpf)?;
    let map = ebpf.map_mut("server_links").ok_or_else(|| failed("find the map", "server_links"))?;
    let mut map = DevMapHash::try_from(map).map_err(|why| failed("open a map", &why))?;
    for link in gone {
        // The kernel has already removed a deleted link from the map.
        map.remove(*link).ok();
    }
    for link in links {
        // The link disappeared while no process drove the switch: the workers of its server ask the
        // clients.
        if let Err(why) = map.insert(link, link, Some(&program), 0) {
            let why = chain(&why);
            sluice_log::log!(LinkLost, link, why, "nothing is written ahead over link {link}: {why}");
        }
    }
    Ok(())
}

/// The path by which packets of a worker with this address came.
fn way_to(maps: &Maps, workers: u16, at: Endpoint) -> Option<HostPath> {
    (0..u32::from(workers)).find_map(|worker| {
        let row = maps.rows::<Worker>(Table::Workers, worker).holds().row()?;
        let way = maps.worker_counters.get::<WorkerLine>(worker).way;
        (row.at.ip == at.ip && way.link != 0).then_some(way)
    })
}

/// The servers that share a link with another server.
fn sharing(servers: &[Server]) -> BTreeSet<u16> {
    let links = |server: &Server| server.at().map(|_| server.way.link).filter(|link| *link != 0);
    let is_shared = |link: u32| servers.iter().filter(|other| links(other) == Some(link)).nth(1).is_some();
    let shared = servers.iter().enumerate().filter(|(_, server)| links(server).is_some_and(is_shared));
    shared.map(|(index, _)| index as u16).collect()
}

/// The index of a server's ring for a slice: a row of servers for each slice.
fn ring_index(servers: u16, slice: SliceId, server: u16) -> u32 {
    u32::from(slice.0) * u32::from(servers) + u32::from(server)
}

fn is_ring(row: RingRow) -> bool {
    row.slots.is_power_of_two() && usize::from(longest(&row)) > INLINE_BYTES
}

/// The longest payload that fits into a ring's slot and a WRITE.
fn longest(row: &RingRow) -> u16 {
    let bytes = row.slot_bytes.min(MAX_WRITE_BYTES as u32);
    bytes.saturating_sub(SLOT_HEAD_BYTES as u32) as u16
}
