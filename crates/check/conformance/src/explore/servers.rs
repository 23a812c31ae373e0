//! A rack whose large tasks are written ahead: servers come and go, and rings are laid out anew while tasks
//! wait.

use std::net::{IpAddr, SocketAddr};

use super::{Rack, SHAPE};
use crate::vector::{Shape, Step, Vector};

/// [`SHAPE`] with room for servers.
pub const SERVERS_SHAPE: Shape = Shape { servers: 3, ..SHAPE };

/// The first number of each queue pair, shortly before the wrap.
const PSN_START: u32 = 0xff_fff8;
/// Lengths of rings' slots. The first length is too small for any large task; the second one holds the
/// smallest large task.
const SLOT_BYTES: [u32; 6] = [20, 21, 128, 300, 720, 4_096];

/// Like [`explore`](super::explore), with servers and more large tasks.
pub fn explore_servers(seed: u64, steps: usize) -> Vector {
    let mut rack = Rack::new(seed, SERVERS_SHAPE);
    rack.set_up();
    rack.set_servers_up();
    (0..steps).for_each(|_| if rack.below(12) == 0 { rack.rearrange_servers() } else { rack.step() });
    rack.end()
}

impl Rack {
    /// Gives all servers but the last a ring for each slice.
    pub(super) fn set_servers_up(&mut self) {
        for server in 0..SERVERS_SHAPE.servers - 1 {
            self.set_server(server);
            (0..SHAPE.slices).for_each(|slice| self.set_ring(slice, server, 720));
        }
    }

    /// Gives the last server a ring for the first slice.
    pub(super) fn set_last_server_up(&mut self) {
        let server = SERVERS_SHAPE.servers - 1;
        self.set_server(server);
        let (slice, rkey, address) = (0, 0xf000_0003, 0x1000);
        self.take(Step::SetRing { slice, server, rkey, address, slots: 64, slot_bytes: 720 });
    }

    /// The bytes of a large task: of many lengths, some of them at a slot's bounds.
    pub(super) fn large_body(&mut self) -> Vec<u8> {
        let len = match self.below(4) {
            0 => SLOT_BYTES[1 + self.below(4) as usize] - 12 + self.below(2),
            _ => 9 + self.below(700),
        };
        let first = self.below(256);
        (first..first + len).map(|at| (at * 7) as u8).collect()
    }

    fn rearrange_servers(&mut self) {
        let server = self.below(SERVERS_SHAPE.servers.into()) as u16;
        let slice = self.below(SHAPE.slices.into()) as u16;
        match self.below(12) {
            0 => self.take(Step::ClearServer { server }),
            1 | 2 => self.set_server(server),
            3 => self.take(Step::ClearRing { slice, server }),
            4 => {
                let copies = self.below(4) as u16;
                self.take(Step::SetCopies { slice, copies });
            }
            // Indices that no switch has.
            5 => self.set_server(SERVERS_SHAPE.servers),
            6 => self.take(Step::SetCopies { slice: SHAPE.slices, copies: 1 }),
            7 => self.set_ring(slice, SERVERS_SHAPE.servers, 720),
            _ => {
                let slot_bytes = SLOT_BYTES[self.below(SLOT_BYTES.len() as u32) as usize];
                self.set_ring(slice, server, slot_bytes);
            }
        }
    }

    fn set_server(&mut self, server: u16) {
        let qpn = 0xff_ff00 + self.below(255);
        self.take(Step::SetServer { server, at: server_at(server), qpn, psn: PSN_START });
    }

    fn set_ring(&mut self, slice: u16, server: u16, slot_bytes: u32) {
        let slots = [1, 2, 16, 64, 3][self.below(5) as usize];
        let address = [0x1000, 0xfffe_ffff_ffff_ff00, 1 << 32][self.below(3) as usize];
        let rkey = 0xf000_0000 + self.below(1 << 16);
        self.take(Step::SetRing { slice, server, rkey, address, slots, slot_bytes });
    }
}

/// Every other server has an IPv6 address, and the last another port.
fn server_at(server: u16) -> SocketAddr {
    let ip = if server % 2 == 1 {
        [0xfd00, 0, 0, 0, 0, 0, 3, server].into()
    } else {
        IpAddr::from([10, 0, 3, server as u8])
    };
    SocketAddr::new(ip, if server == 2 { 4_999 } else { 4_791 })
}
