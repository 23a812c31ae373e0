//! The messages between servers and the controller about registered memory.

use alloc::string::String;
use alloc::vec::Vec;

use sluice_wire::tables::RingRow;
use sluice_wire::{Endpoint, Epoch, Nanos, Psn, Qpn, ServerId, SliceId};

/// A server's registration request; renewals and heartbeats repeat it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHello {
    /// The server's name, one holder at a time.
    pub name: String,
    /// 64 random bits per start of the server.
    pub life: u64,
    /// The address of the server's end of the queue pair, which no other process can hold meanwhile.
    pub at: Endpoint,
    /// The number of the server's queue pair.
    pub qpn: Qpn,
    /// The number of the first WRITE that the pair expects.
    pub first: Psn,
    /// The most bytes of one WRITE: its RDMA MTU.
    pub mtu: u32,
    /// Whether the pair is reliable.
    pub reliable: bool,
    /// Whether the server wants the iCRC computed; a server that ignores the iCRC spares the switch the
    /// work.
    pub icrc: bool,
    /// The rings that the server has registered; empty until it was told which are needed.
    pub rings: Vec<RingOffer>,
}

/// A ring in a server's registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingOffer {
    /// The slice whose tasks the ring holds.
    pub slice: SliceId,
    pub row: RingRow,
}

/// A server's registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerGrant {
    /// The server's index, which is the number of the switch's end of the pair.
    pub server: ServerId,
    /// The switch's epoch. A newer epoch counts its WRITEs anew.
    pub epoch: Epoch,
    /// The switch's address; WRITEs come from no other.
    pub switch: Endpoint,
    /// The rings that the server should have.
    pub rings: Vec<RingNeed>,
    /// How long this registration lasts without a renewal.
    pub lease: Nanos,
    /// How often to renew the server's registration.
    pub renew_every: Nanos,
    /// Whether the switch computes no iCRC, whatever the server asked for.
    pub without_icrc: bool,
    /// The reliable pair that the server offers, if the switch wrote to it before and holds its row no
    /// more. The pair's packet numbers have gone on since, and only a new pair gets a row.
    pub spent_pair: Option<Qpn>,
}

/// A ring that a slice needs on each of its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingNeed {
    pub slice: SliceId,
    pub name: String,
    /// How many slots at least: a power of two.
    pub slots: u32,
    /// How many bytes a slot must have at least, with the task's id.
    pub slot_bytes: u32,
}

/// The ring from which a worker copies its tasks, in memory that it shares with its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPlace {
    /// The server's life: another life may lay its memory out in another way.
    pub life: u64,
    pub slots: u32,
    pub slot_bytes: u32,
}

/// A plan's settings for tasks that are written ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdmaPlan {
    /// The most bytes of a task that its first packet may bring: they have to fit the link's MTU as SUBMIT,
    /// DISPATCH and WRITE, and the RDMA MTU.
    pub first_bytes: u32,
    /// How many tasks of a slice may pass while one of its workers is stopped.
    pub stall_tasks: u32,
    /// The most servers of its slice to which each task is written; zero: all.
    pub copies: u16,
    /// Accepts rings that are smaller than the slices need. For tests: tasks then lose their bytes all the
    /// time.
    pub tiny_rings: bool,
}

impl Default for RdmaPlan {
    /// Sizes that fit plain sockets with an Ethernet MTU of 1,500 bytes, and any RDMA MTU from 2,048 bytes
    /// on.
    fn default() -> Self {
        Self { first_bytes: 1_368, stall_tasks: 1_024, copies: 0, tiny_rings: false }
    }
}
