//! Requests of people, agents and strangers to the controller during a run: everything that its services
//! offer beside the registrations and renewals of hosts. They look at the rack, move workers, map types
//! (also to no slice, and types that do not exist), report waits, say goodbye in the name of lives that
//! have ended, and read the switch's tables. The controller's machine is busy at times, so that its ticks
//! come late.
//!
//! All of it is drawn from a stream of its own.

use sluice_control::{Event as Told, ServerHello};
use sluice_nodes::names;
use sluice_wire::tables::TableOp;
use sluice_wire::{ClientId, Endpoint, Incarnation, Psn, Qpn, ServerId, SliceId, TaskType, WorkerId};

use crate::event::Event;
use crate::hosts::Host;
use crate::network::CALLS;
use crate::orders::Order;
use crate::rack::Rack;
use crate::replay_log::Party;

impl Rack<'_> {
    pub(crate) fn order(&mut self, order: Order) {
        self.say(Party::Rack, || format!("ORDER: {order}"));
        match order {
            Order::Look => {
                let [at, again] = self.arrivals(CALLS);
                for at in [at, again].into_iter().flatten() {
                    self.remind(at, Event::Look);
                }
            }
            Order::Move { worker, slice } => self.move_worker(worker, slice),
            Order::Map { task_type, slice } => self.map_type(task_type, slice),
            Order::Report { server, tallies } => {
                let advises = self.seed.is_multiple_of(8);
                self.call(Told::Tallies { server: names::server(server), advises, tallies });
            }
            Order::Goodbye(host) => self.deregister(host),
            Order::Server => self.introduce_a_server(),
            Order::Read => self.read_tables(),
            Order::Standby { looks_after, is_cut } => self.start_standby(looks_after, is_cut),
            Order::Slip(lasts) => {
                self.controllers.stalled_until = self.controllers.stalled_until.max(self.world.now + lasts);
            }
        }
    }

    fn deregister(&mut self, host: Host) {
        let call = self.controllers.call(host, 0);
        let gone = self.life_of(host) ^ 2;
        self.call(match host {
            Host::Worker(worker) => Told::WorkerLeave { call, name: self.workers[worker].name(), life: gone },
            Host::Client(client) => {
                let (name, incarnation) = (names::client(client), Incarnation(gone));
                Told::ClientLeave { call, name, incarnation }
            }
            Host::Server(server) => {
                Told::ServerLeave { call, name: self.servers.nodes[server].name(), life: gone }
            }
        });
    }

    fn introduce_a_server(&mut self) {
        let (name, life) = (names::server(0), 7);
        let call = self.controllers.call(Host::Worker(0), 0);
        let hello = ServerHello {
            name: name.clone(),
            life,
            at: Endpoint::default(),
            qpn: Qpn(17),
            first: Psn::new(0),
            mtu: 2_048,
            reliable: true,
            icrc: true,
            rings: Vec::new(),
        };
        self.call(Told::ServerHello { call, hello });
        let call = self.controllers.call(Host::Worker(0), 0);
        self.call(Told::ServerLeave { call, name, life });
    }

    /// Reads the switch's tables, as a second reader that changes nothing.
    fn read_tables(&mut self) {
        let Some(program) = &mut self.switch.program else { return };
        for op in [
            TableOp::ReadShape,
            TableOp::ReadType(TaskType(0)),
            TableOp::ReadSlice(SliceId(0)),
            TableOp::ReadWorker(WorkerId(0)),
            TableOp::ReadClient(ClientId(u16::MAX)),
            TableOp::ReadServer(ServerId(0)),
            TableOp::ReadRing(SliceId(0), ServerId(0)),
            TableOp::Drain,
        ] {
            program.table(op);
        }
    }
}
