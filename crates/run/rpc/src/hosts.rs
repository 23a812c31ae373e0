//! The messages between hosts and the controller, converted from and to values.

use std::borrow::Borrow;

use sluice_control::{
    Answer, ClientGrant, ClientHello, RecentWork, RingPlace, ServerGrant, WorkerGrant, WorkerHello,
};
use sluice_wire::registrations::{ClientRegistration, Sizes, WorkerRegistration};
use sluice_wire::serving::Labels;
use sluice_wire::tables::Feed;
use sluice_wire::{
    ClientId, Epoch, Generation, Incarnation, Key, Nanos, Serial, SliceId, TaskType, WorkerId,
};
use tonic::Status;

use super::fields::{Malformed, classes, endpoint, jobs, name, name_or_none, number, present, reachable};
use super::{shown, v1};

impl From<&WorkerHello> for v1::RenewWorkerRequest {
    fn from(hello: &WorkerHello) -> Self {
        Self {
            name: hello.name.clone(),
            life: hello.life,
            at: hello.at.to_string(),
            slice: hello.slice.clone(),
            types: hello.types.iter().map(|t| t.0.into()).collect(),
            quota: hello.quota.into(),
            tasks_per_second: hello.capacity,
            recent: Some(hello.recent.into()),
            refused_late: hello.refused_late,
            held: hello.held.map(|(worker, key, generation)| v1::HeldWorker {
                worker: worker.0.into(),
                key: key.0,
                generation: generation.0,
            }),
            server: hello.server.clone(),
            rejoins: hello.rejoins,
            labels: hello.labels.clone(),
            workers: hello.workers.into(),
        }
    }
}

impl TryFrom<v1::RenewWorkerRequest> for WorkerHello {
    type Error = Malformed;

    fn try_from(message: v1::RenewWorkerRequest) -> Result<Self, Malformed> {
        let held = |held: v1::HeldWorker| -> Result<_, Malformed> {
            Ok((WorkerId(number("held.worker", held.worker)?), Key(held.key), Generation(held.generation)))
        };
        Ok(Self {
            name: name("name", message.name)?,
            life: message.life,
            at: reachable("at", &message.at)?,
            slice: name_or_none("slice", message.slice)?,
            types: types(&message.types)?,
            quota: number("quota", message.quota)?,
            capacity: message.tasks_per_second,
            recent: message.recent.map(RecentWork::from).unwrap_or_default(),
            refused_late: message.refused_late,
            held: message.held.map(held).transpose()?,
            server: name_or_none("server", message.server)?,
            rejoins: message.rejoins,
            workers: number("workers", message.workers)?,
            labels: labels(message.labels)?,
        })
    }
}

impl From<RecentWork> for v1::RecentWork {
    fn from(work: RecentWork) -> Self {
        Self {
            span_ns: work.span.0,
            tasks: work.tasks,
            service_ns: work.service.0,
            deviation_ns: work.deviation.0,
            wait_ns: work.wait.0,
            lost_tokens: work.lost_tokens,
            unanswered_ns: work.unanswered.0,
        }
    }
}

impl From<v1::RecentWork> for RecentWork {
    fn from(message: v1::RecentWork) -> Self {
        Self {
            span: Nanos(message.span_ns),
            tasks: message.tasks,
            service: Nanos(message.service_ns),
            deviation: Nanos(message.deviation_ns),
            wait: Nanos(message.wait_ns),
            lost_tokens: message.lost_tokens,
            unanswered: Nanos(message.unanswered_ns),
        }
    }
}

impl From<&(TaskType, String)> for v1::TypeName {
    fn from((task_type, name): &(TaskType, String)) -> Self {
        Self { task_type: task_type.0.into(), name: name.clone() }
    }
}

impl TryFrom<v1::TypeName> for (TaskType, String) {
    type Error = Malformed;

    fn try_from(message: v1::TypeName) -> Result<Self, Malformed> {
        // A plan may give a type any name; code that prints a name escapes it.
        Ok((TaskType(number("type_names.task_type", message.task_type)?), message.name))
    }
}

/// The labels of a worker or a plan; their number is limited to the labels that the wire format can tell
/// apart.
fn labels(labels: Vec<String>) -> Result<Vec<String>, Malformed> {
    let count = labels.len();
    if count > Labels::MAX {
        return Err(Malformed::new("labels", format!("are {count}, {} are the most", Labels::MAX)));
    }
    labels.into_iter().map(|label| name("labels", label)).collect()
}

impl From<&WorkerGrant> for v1::WorkerGrant {
    fn from(grant: &WorkerGrant) -> Self {
        Self {
            worker: grant.worker.0.into(),
            key: grant.key.0,
            epoch: grant.epoch.0,
            generation: grant.generation.0,
            slice: grant.slice.0.into(),
            feed: Some(grant.feed.into()),
            quota: grant.quota.into(),
            start: grant.start.0,
            switch: grant.switch.to_string(),
            lease_ns: grant.lease.0,
            renew_every_ns: grant.renew_every.0,
            retry_horizon_ns: grant.retry_horizon.0,
            transit_ns: grant.transit.0,
            final_sent: grant.final_sent.map(|sent| sent.0),
            below_spines: grant.below_spines,
            ring: grant.ring.map(|RingPlace { life, slots, slot_bytes }| v1::RingPlace {
                life,
                slots,
                slot_bytes,
            }),
        }
    }
}

impl TryFrom<v1::WorkerGrant> for WorkerGrant {
    type Error = Malformed;

    fn try_from(message: v1::WorkerGrant) -> Result<Self, Malformed> {
        let registration = WorkerRegistration {
            worker: WorkerId(number("worker", message.worker)?),
            key: Key(message.key),
            epoch: Epoch(message.epoch),
            generation: Generation(message.generation),
            slice: SliceId(number("slice", message.slice)?),
            feed: message.feed.map_or_else(Feed::default, Feed::from),
            quota: number("quota", message.quota)?,
            start: Serial(message.start),
            switch: endpoint("switch", &message.switch)?,
            below_spines: message.below_spines,
        };
        Ok(Self {
            registration,
            final_sent: message.final_sent.map(Serial),
            ring: message.ring.map(|v1::RingPlace { life, slots, slot_bytes }| RingPlace {
                life,
                slots,
                slot_bytes,
            }),
            retry_horizon: Nanos(message.retry_horizon_ns),
            transit: Nanos(message.transit_ns),
            lease: Nanos(message.lease_ns),
            renew_every: Nanos(message.renew_every_ns),
        })
    }
}

impl From<&ClientHello> for v1::RenewClientRequest {
    fn from(hello: &ClientHello) -> Self {
        Self {
            name: hello.name.clone(),
            incarnation: hello.incarnation.0,
            at: hello.at.to_string(),
            floor: hello.floor.0,
            held: hello.held.map(|(client, key)| v1::HeldClient { client: client.0.into(), key: key.0 }),
        }
    }
}

impl TryFrom<v1::RenewClientRequest> for ClientHello {
    type Error = Malformed;

    fn try_from(message: v1::RenewClientRequest) -> Result<Self, Malformed> {
        let held = |held: v1::HeldClient| -> Result<_, Malformed> {
            Ok((ClientId(number("held.client", held.client)?), Key(held.key)))
        };
        Ok(Self {
            name: name("name", message.name)?,
            incarnation: Incarnation(message.incarnation),
            at: reachable("at", &message.at)?,
            floor: Serial(message.floor),
            held: message.held.map(held).transpose()?,
        })
    }
}

impl From<&ClientGrant> for v1::ClientGrant {
    fn from(grant: &ClientGrant) -> Self {
        let mapping = |(task_type, slice): &(TaskType, SliceId)| v1::TypeMapping {
            task_type: task_type.0.into(),
            slice: slice.0.into(),
        };
        Self {
            client: grant.client.0.into(),
            key: grant.key.0,
            epoch: grant.epoch.0,
            switch: grant.switch.to_string(),
            replay_cells: grant.replay_cells,
            types: grant.slices.iter().map(mapping).collect(),
            shares: grant
                .shares
                .iter()
                .map(|(s, tasks)| v1::Share { slice: s.0.into(), tasks: *tasks })
                .collect(),
            classes: grant.classes.into(),
            jobs: grant.jobs.into(),
            sizes: grant.sizes.iter().map(sizes_message).collect(),
            lease_ns: grant.lease.0,
            renew_every_ns: grant.renew_every.0,
            retry_for_ns: grant.retry_for.0,
            first_bytes: grant.first_bytes,
            labels: grant.labels.clone(),
            type_names: grant.type_names.iter().map(v1::TypeName::from).collect(),
            workers: grant
                .workers
                .iter()
                .map(|(s, workers)| v1::Weight { slice: s.0.into(), workers: *workers })
                .collect(),
        }
    }
}

impl TryFrom<v1::ClientGrant> for ClientGrant {
    type Error = Malformed;

    fn try_from(message: v1::ClientGrant) -> Result<Self, Malformed> {
        let mapping = |m: &v1::TypeMapping| -> Result<_, Malformed> {
            Ok((TaskType(number("types.task_type", m.task_type)?), SliceId(number("types.slice", m.slice)?)))
        };
        let share = |s: &v1::Share| Ok((SliceId(number("shares.slice", s.slice)?), s.tasks));
        let weight = |w: &v1::Weight| Ok((SliceId(number("workers.slice", w.slice)?), w.workers));
        let registration = ClientRegistration {
            client: ClientId(number("client", message.client)?),
            key: Key(message.key),
            epoch: Epoch(message.epoch),
            switch: endpoint("switch", &message.switch)?,
            replay_cells: message.replay_cells,
            slices: message.types.iter().map(mapping).collect::<Result<_, _>>()?,
            shares: message.shares.iter().map(share).collect::<Result<_, Malformed>>()?,
            classes: classes("classes", message.classes)?,
            jobs: jobs("jobs", message.jobs)?,
            sizes: message.sizes.iter().map(sizes).collect::<Result<_, Malformed>>()?,
            retry_for: Nanos(message.retry_for_ns),
        };
        Ok(Self {
            registration,
            lease: Nanos(message.lease_ns),
            renew_every: Nanos(message.renew_every_ns),
            first_bytes: if message.first_bytes == 0 { u32::MAX } else { message.first_bytes },
            labels: labels(message.labels)?,
            type_names: message.type_names.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
            workers: message.workers.iter().map(weight).collect::<Result<_, Malformed>>()?,
        })
    }
}

fn sizes_message((slice, sizes): &(SliceId, Sizes)) -> v1::Sizes {
    v1::Sizes { slice: slice.0.into(), ends_ns: sizes.ends().iter().map(|end| end.0).collect() }
}

fn sizes(message: &v1::Sizes) -> Result<(SliceId, Sizes), Malformed> {
    let ends: Vec<Nanos> = message.ends_ns.iter().copied().map(Nanos).collect();
    let wrong = || Malformed::new("sizes.ends_ns", "at most three, ascending from above zero");
    Ok((SliceId(number("sizes.slice", message.slice)?), Sizes::new(&ends).ok_or_else(wrong)?))
}

/// The controller's answer when a host of any kind registers, renews or leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewal<G> {
    Granted(G),
    Wait { why: String, retry_after: Nanos },
    Refused { why: String },
}

/// The controller's answer when a host leaves: a worker's last `sent` number, if it is known.
pub(crate) type Departure = Renewal<Option<Serial>>;

macro_rules! answers {
    (
        $response:ident, $outcome:ident::$granted:ident, $grant:ty,
        $told:ident => $read:expr, $answer:pat => $said:expr
    ) => {
        impl TryFrom<v1::$response> for Renewal<$grant> {
            type Error = Malformed;

            fn try_from(message: v1::$response) -> Result<Self, Malformed> {
                use v1::$outcome::Outcome;
                Ok(match present("outcome", message.outcome)? {
                    Outcome::$granted($told) => Self::Granted($read),
                    Outcome::Wait(wait) => {
                        Self::Wait { why: shown(&wait.why), retry_after: Nanos(wait.retry_after_ns) }
                    }
                    Outcome::Refused(refused) => Self::Refused { why: shown(&refused.why) },
                })
            }
        }

        impl TryFrom<Answer> for v1::$response {
            type Error = Status;

            fn try_from(answer: Answer) -> Result<Self, Status> {
                use v1::$outcome::Outcome;
                let outcome = match &answer {
                    $answer => Outcome::$granted($said),
                    Answer::Wait { why, retry_after } => {
                        Outcome::Wait(v1::Wait { why: why.to_string(), retry_after_ns: retry_after.0 })
                    }
                    Answer::Refused { why } => Outcome::Refused(v1::Refused { why: why.to_string() }),
                    other => return Err(misanswered(other)),
                };
                Ok(Self { outcome: Some(outcome) })
            }
        }
    };
}

macro_rules! renewals {
    ($response:ident, $outcome:ident, $grant:ty, $answer:ident) => {
        answers!(
            $response, $outcome::Granted, $grant,
            grant => grant.try_into()?, Answer::$answer(grant) => Borrow::<$grant>::borrow(grant).into()
        );
    };
}

renewals!(RenewWorkerResponse, renew_worker_response, WorkerGrant, Worker);
renewals!(RenewClientResponse, renew_client_response, ClientGrant, Client);
renewals!(RenewServerResponse, renew_server_response, ServerGrant, Server);

macro_rules! departures {
    ($response:ident, $outcome:ident) => {
        answers!(
            $response, $outcome::Left, Option<Serial>, left => left.final_sent.map(Serial),
            Answer::Left { final_sent } => v1::Left { final_sent: final_sent.map(|sent| sent.0) }
        );
    };
}

departures!(LeaveWorkerResponse, leave_worker_response);
departures!(LeaveClientResponse, leave_client_response);
departures!(LeaveServerResponse, leave_server_response);

/// The status for an answer that does not fit its call: a bug of the controller.
pub fn misanswered(answer: &Answer) -> Status {
    sluice_log::log!(Misanswered, "an answer that does not go with its call: {answer:?}");
    Status::internal("the controller's answer does not go with the call; please report this bug")
}

fn types(types: &[u32]) -> Result<Vec<TaskType>, Malformed> {
    types.iter().map(|t| Ok(TaskType(number("types", *t)?))).collect()
}
