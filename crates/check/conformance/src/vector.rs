//! A vector, and its file format.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sluice_switch::Config;
use sluice_wire::tables::{ClientRow, RingRow, ServerRow, SliceRow, TableOp, WorkerRow};
use sluice_wire::{
    ClientId, Endpoint, Epoch, Generation, Incarnation, Key, Nanos, Psn, Qpn, Rkey, Serial, ServerId,
    SliceId, Sweep, SweepOf, TaskType, WorkerId,
};

use crate::VectorError;
use crate::hex::{bytes, hex};
use crate::sent::{Sent, StepOutput};

/// The version of the format.
const SCHEMA: &str = "sluice.vector.v1";

/// A vector: inputs, expected outputs, and the expected final state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vector {
    /// The version of the format.
    pub schema: String,
    /// The vector's name, which is also its file's.
    pub name: String,
    pub about: String,
    /// The switch's size, and its epoch.
    pub shape: Shape,
    /// The steps, in order.
    pub steps: Vec<Step>,
    pub after: FinalState,
}

impl Vector {
    /// A vector without steps.
    pub fn new(name: &str, about: &str, shape: Shape) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            name: name.to_owned(),
            about: about.to_owned(),
            shape,
            steps: Vec::new(),
            after: FinalState::default(),
        }
    }

    /// Whether a slice has a target in it, which not every plane has.
    pub fn has_target(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::SetSlice { target_ns, .. } if *target_ns > 0))
    }

    /// Parses a vector.
    ///
    /// # Errors
    /// [`VectorError::Format`] if the text is not a vector of this version.
    pub fn parse(text: &str) -> Result<Self, VectorError> {
        let vector: Self = serde_json::from_str(text)?;
        if vector.schema == SCHEMA {
            Ok(vector)
        } else {
            let why = format!("the schema is {}, known is {SCHEMA}", vector.schema);
            Err(VectorError::Format(serde::de::Error::custom(why)))
        }
    }

    /// The vector as JSON, one step a line.
    pub fn to_text(&self) -> String {
        let json = |part: serde_json::Result<String>| part.expect("numbers and text have a JSON form");
        let lines: Vec<String> = self.steps.iter().map(|step| json(serde_json::to_string(step))).collect();
        format!(
            "{{\n\"schema\": {},\n\"name\": {},\n\"about\": {},\n\"shape\": {},\n\"steps\": [\n{}\n],\n\"after\": {}\n}}\n",
            json(serde_json::to_string(&self.schema)),
            json(serde_json::to_string(&self.name)),
            json(serde_json::to_string(&self.about)),
            json(serde_json::to_string(&self.shape)),
            lines.join(",\n"),
            json(serde_json::to_string(&self.after)),
        )
    }
}

/// All vectors in this folder and in the folders below it, by path.
///
/// # Errors
/// What cannot be read, or is not a vector.
pub fn all(folder: &Path) -> Result<Vec<Vector>, VectorError> {
    let mut paths = Vec::new();
    collect(folder, &mut paths)?;
    paths.sort();
    paths.iter().map(|path| Vector::parse(&fs::read_to_string(path)?)).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), VectorError> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    Ok(())
}

/// The size of the switch, and where its counters start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    pub epoch: u32,
    pub workers: u16,
    pub clients: u16,
    pub slices: u16,
    pub types: u16,
    pub tasks_per_slice: u32,
    pub tokens_per_slice: u32,
    pub replay_cells: u32,
    pub counters_start: u32,
    /// The number of servers; if zero, the bytes of large waiting tasks stay with their clients.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub servers: u16,
    /// The program that the switch runs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub program: TestedProgram,
    /// How many idle polls there seem to have been.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub polls_ahead: u32,
}

/// The program that a vector is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TestedProgram {
    #[default]
    Rain,
    Draconis,
    Pallas,
    RackSched,
}

impl TestedProgram {
    /// All programs with vectors.
    pub const ALL: [Self; 4] = [Self::Rain, Self::Draconis, Self::Pallas, Self::RackSched];

    /// The folder of its vectors below that of all vectors: Rain's are in the latter.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Rain => "",
            Self::Draconis => "draconis",
            Self::Pallas => "pallas",
            Self::RackSched => "racksched",
        }
    }

    /// The policy by which the registry of programs knows it.
    pub const fn policy(self) -> &'static str {
        match self {
            // Slices may have targets; one without is a slice of plain Rain.
            Self::Rain => "rain:2,target",
            Self::Draconis => "draconis",
            Self::Pallas => "pallas",
            Self::RackSched => "racksched:2",
        }
    }
}

impl Shape {
    /// The size for the model. Without servers it has room for one that never comes, so that no plane
    /// stores the bytes of large waiting tasks.
    pub const fn config(&self) -> Config {
        Config {
            workers: self.workers,
            clients: self.clients,
            slices: self.slices,
            types: self.types,
            tasks_per_slice: self.tasks_per_slice,
            tokens_per_slice: self.tokens_per_slice,
            replay_cells: self.replay_cells,
            servers: if self.servers == 0 { 1 } else { self.servers },
            counters_start: Serial(self.counters_start),
            polls_ahead: self.polls_ahead,
            ..Config::full(Epoch(self.epoch))
        }
    }
}

/// A step: one of the controller's, a datagram, or a SWEEP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Maps a type to a slice, or to none.
    SetType { r#type: u16, slice: Option<u16> },
    /// Set a slice's row.
    SetSlice {
        slice: u16,
        open: bool,
        limit: u32,
        retry_after_ns: u64,
        /// The slice's target; zero for none.
        #[serde(default, skip_serializing_if = "is_zero")]
        target_ns: u64,
        /// How many tasks its workers are expected to take within the target.
        #[serde(default, skip_serializing_if = "is_zero")]
        expected: u32,
    },
    /// Set a worker's row.
    SetWorker { worker: u16, key: u32, at: SocketAddr, slice: u16, generation: u32, open: bool },
    /// Clear a worker's row.
    ClearWorker { worker: u16 },
    /// Raise the generation that popped tokens must have.
    RaiseGeneration { worker: u16, generation: u32 },
    /// Set a worker's counters.
    ResetCounters { worker: u16, start: u32 },
    /// Set a client's row and start its replay cells.
    SetClient { client: u16, key: u32, at: SocketAddr, incarnation: u64, start: u32 },
    /// Clear a client's row.
    ClearClient { client: u16 },
    /// Set a server's row: an unreliable queue pair, without an iCRC.
    SetServer { server: u16, at: SocketAddr, qpn: u32, psn: u32 },
    /// Clear a server's row.
    ClearServer { server: u16 },
    /// Set the ring that a server keeps for a slice.
    SetRing { slice: u16, server: u16, rkey: u32, address: u64, slots: u32, slot_bytes: u32 },
    /// Clear the ring that a server keeps for a slice.
    ClearRing { slice: u16, server: u16 },
    /// Limits the copies of each of a slice's tasks; zero for all servers.
    SetCopies { slice: u16, copies: u16 },
    /// A datagram arrives, and `out` leaves.
    Packet {
        at_ns: u64,
        from: SocketAddr,
        #[serde(serialize_with = "hex", deserialize_with = "bytes")]
        r#in: Vec<u8>,
        out: Option<Sent>,
        /// The WRITE's copies, by their servers' indices.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        written: Vec<Sent>,
        /// How often the packet recirculated.
        #[serde(default, skip_serializing_if = "is_zero")]
        rounds: u32,
    },
    /// The controller's sweep is performed to its end, and `out` leaves.
    Sweep {
        at_ns: u64,
        slice: u16,
        tasks: bool,
        left: u16,
        out: Option<Sent>,
        /// How often the SWEEP recirculated.
        #[serde(default, skip_serializing_if = "is_zero")]
        rounds: u32,
    },
}

impl Step {
    /// The controller's step, if this is one.
    pub fn table(&self) -> Option<TableOp> {
        Some(match *self {
            Self::SetType { r#type, slice } => TableOp::SetType(TaskType(r#type), slice.map(SliceId)),
            Self::SetSlice { slice, open, limit, retry_after_ns, target_ns, expected } => {
                let (retry_after, target) = (Nanos(retry_after_ns), Nanos(target_ns));
                let row = SliceRow { open, limit, retry_after, target, expected, ..SliceRow::default() };
                TableOp::SetSlice(SliceId(slice), row)
            }
            Self::SetWorker { worker, key, at, slice, generation, open } => {
                let (key, slice, generation) = (Key(key), SliceId(slice), Generation(generation));
                let row = WorkerRow {
                    key,
                    at: Endpoint::from(at),
                    slice,
                    generation,
                    open,
                    life: 0,
                    ..WorkerRow::default()
                };
                TableOp::SetWorker(WorkerId(worker), Some(row))
            }
            Self::ClearWorker { worker } => TableOp::SetWorker(WorkerId(worker), None),
            Self::RaiseGeneration { worker, generation } => {
                TableOp::RaiseGeneration(WorkerId(worker), Generation(generation))
            }
            Self::ResetCounters { worker, start } => TableOp::ResetCounters(WorkerId(worker), Serial(start)),
            Self::SetClient { client, key, at, incarnation, start } => {
                let row = ClientRow { key: Key(key), at: at.into(), incarnation: Incarnation(incarnation) };
                TableOp::SetClient(ClientId(client), Some((row, Serial(start))))
            }
            Self::ClearClient { client } => TableOp::SetClient(ClientId(client), None),
            Self::SetServer { server, at, qpn, psn } => {
                let row = ServerRow { at: at.into(), qpn: Qpn(qpn), reliable: false, icrc: false };
                TableOp::SetServer(ServerId(server), Some((row, Psn::new(psn))))
            }
            Self::ClearServer { server } => TableOp::SetServer(ServerId(server), None),
            Self::SetRing { slice, server, rkey, address, slots, slot_bytes } => {
                let row = RingRow { rkey: Rkey(rkey), address, slots, slot_bytes };
                TableOp::SetRing(SliceId(slice), ServerId(server), Some(row))
            }
            Self::ClearRing { slice, server } => TableOp::SetRing(SliceId(slice), ServerId(server), None),
            Self::SetCopies { slice, copies } => TableOp::SetCopies(SliceId(slice), copies),
            Self::Packet { .. } | Self::Sweep { .. } => return None,
        })
    }

    /// Records the outputs of the step.
    pub(crate) fn set_left(&mut self, left: StepOutput) {
        match self {
            Self::Packet { out, written, rounds, .. } => {
                (*out, *written, *rounds) = (left.sent, left.written, left.rounds.unwrap_or_default());
            }
            Self::Sweep { out, rounds, .. } => {
                (*out, *rounds) = (left.sent, left.rounds.unwrap_or_default());
            }
            _ => {}
        }
    }

    /// The SWEEP that this step sends to a switch of this epoch; `None` if the step sends none.
    pub fn sweep(&self, epoch: u32) -> Option<(Nanos, Sweep)> {
        let Self::Sweep { at_ns, slice, tasks, left, .. } = *self else { return None };
        let of = if tasks { SweepOf::Tasks } else { SweepOf::Tokens };
        let (epoch, slice) = (Epoch(epoch), SliceId(slice));
        Some((Nanos(at_ns), Sweep { epoch, slice, of, left, carried: None }))
    }
}

/// The state of a switch when no packet recirculates any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinalState {
    /// The epoch of the registers.
    pub epoch: u32,
    pub slices: Vec<FinalSlice>,
    pub workers: Vec<FinalWorker>,
    /// The number of the next WRITE to each server; empty in a shape without servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub psns: Vec<u32>,
    /// The counters, with the UDP switch's names; a missing one is zero.
    pub counts: BTreeMap<String, u64>,
}

/// A slice's queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinalSlice {
    /// Parked tokens if positive, waiting tasks if negative.
    pub balance: i32,
    /// The waiting tasks, oldest first.
    pub tasks: Vec<FinalTask>,
    /// Worker and generation of the parked tokens, oldest first.
    pub tokens: Vec<(u16, u32)>,
    /// How many tasks may wait by what was measured or expected for the slice's target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_limit: Option<u32>,
}

/// A waiting task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinalTask {
    pub client: u16,
    pub incarnation: u64,
    pub sequence: u32,
    pub attempt: u16,
}

/// A worker's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinalWorker {
    /// Tokens granted.
    pub seen: u32,
    /// Tasks sent.
    pub sent: u32,
    /// The generation that popped tokens must have.
    pub generation_out: u32,
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}
