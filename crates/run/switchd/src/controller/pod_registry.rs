//! Where hosts register with one controller above several spines: each call goes to the state machine of
//! the spine that [`Pods`] names.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sluice_control::{Answer, CallId, ClientHello, Event, PodPlace, PodRoute, Pods, WorkerHello};
use sluice_etcd::EtcdLead;
use sluice_net::clock::Clock;
use sluice_wire::{Incarnation, Key, Nanos};
use tonic::Status;

use super::handle::RunnerHandle;
use super::runner::SpineEvent;

/// The registry of all spines; their servers' threads share it.
pub(super) struct PodRegistry {
    pods: Mutex<Pods>,
    clock: Clock,
    spines: Vec<RunnerHandle>,
    /// Where it is stored where hosts are, for the next leader.
    etcd: Option<EtcdLead>,
}

impl PodRegistry {
    /// `racks` are the racks below each spine; `spines` are the handles of the spines' controllers.
    pub(super) fn new(
        racks: Vec<Vec<String>>,
        lease: Nanos,
        spines: Vec<RunnerHandle>,
        etcd: Option<EtcdLead>,
    ) -> Self {
        let clock = Clock::start();
        Self { pods: Mutex::new(Pods::new(racks, lease, clock.now())), clock, spines, etcd }
    }

    /// The lease that this process needs in order to lead, if several processes contend.
    pub(super) fn etcd(&self) -> Option<EtcdLead> {
        self.etcd.clone()
    }

    /// This process leads from now on; hosts are where it was stored.
    pub(super) fn begin(&self, stored: BTreeMap<String, PodPlace>) {
        self.pods().begin(self.clock.now(), stored);
    }

    /// Takes an event about a spine from that spine's controller.
    pub(super) fn on_spine_event(&self, spine: usize, news: SpineEvent) {
        let (mut pods, number) = (self.pods(), spine + 1);
        let lives = match news {
            SpineEvent::Lives(None) => return pods.leads_not(spine),
            SpineEvent::Lives(Some(lives)) => lives,
            SpineEvent::Serves(has_leaves) => return pods.serves(spine, has_leaves),
            SpineEvent::Found(clients) => return pods.found(spine, clients),
        };
        pods.on_spine(spine, lives);
        match (lives, pods.stand_in()) {
            (true, _) => {
                sluice_log::log!(
                    SpineUp,
                    spine = number,
                    "spine {number} is there: its racks and clients belong to it"
                );
            }
            (false, Some(other)) => {
                let other = other + 1;
                sluice_log::log!(
                    SpineDown,
                    spine = number,
                    "spine {number} is lost: spine {other} stands in for it"
                );
            }
            (false, None) => {
                sluice_log::log!(
                    SpineDown,
                    spine = number,
                    "spine {number} is lost, and none lives to stand in"
                );
            }
        }
    }

    /// Renews a leaf's pool. If the pool moves to another spine, it leaves the old one.
    pub(super) async fn renew_leaf(&self, hello: WorkerHello) -> Result<Answer, Status> {
        let route = match self.pods().of_leaf(self.clock.now(), &hello) {
            Ok(route) => route,
            Err(answer) => return Ok(answer),
        };
        let (name, life) = (hello.name.clone(), hello.life);
        let (answer, at) = self.renew(route, move |call| Event::WorkerHello { call, hello }).await?;
        if let Answer::Worker(grant) = &answer {
            self.change(|pods| pods.granted(self.clock.now(), &name, at, grant.key));
            if let Some(left) = route.from.filter(|from| *from != at) {
                self.spines[left].tell(move |call| Event::WorkerLeave { call, name, life });
            }
        }
        Ok(answer)
    }

    /// Renews a client. If the client moves to another spine, its old registration stays until the lease
    /// ends, for packets that are still under way.
    pub(super) async fn renew_client(&self, home: usize, hello: ClientHello) -> Result<Answer, Status> {
        let route = match self.pods().of_client(self.clock.now(), &hello, home) {
            Ok(route) => route,
            Err(answer) => return Ok(answer),
        };
        let said = hello.clone();
        let (answer, at) = self.renew(route, move |call| Event::ClientHello { call, hello: said }).await?;
        if let Answer::Client(grant) = &answer {
            let others = self.change(|pods| pods.client_granted(self.clock.now(), &hello, at, grant.key));
            for other in others {
                self.spines[other].tell(move |_| Event::ClientElsewhere(hello.incarnation));
            }
        }
        Ok(answer)
    }

    pub(super) async fn leave_leaf(&self, home: usize, name: String, life: u64) -> Result<Answer, Status> {
        let of = name.clone();
        self.leave(home, of, move |call| Event::WorkerLeave { call, name, life }).await
    }

    pub(super) async fn leave_client(
        &self,
        home: usize,
        name: String,
        incarnation: Incarnation,
    ) -> Result<Answer, Status> {
        let of = name.clone();
        self.leave(home, of, move |call| Event::ClientLeave { call, name, incarnation }).await
    }

    /// The controller at which the host with this key is registered.
    pub(super) fn of_key(&self, key: Key) -> Option<&RunnerHandle> {
        let spine = self.pods().seat_of(key)?;
        Some(&self.spines[spine])
    }

    /// Renews a host; returns the spine that answered last. A host stays registered at its spine until
    /// another one accepts it.
    async fn renew(
        &self,
        PodRoute { to, from }: PodRoute,
        renew: impl FnOnce(CallId) -> Event + Clone + Send + 'static,
    ) -> Result<(Answer, usize), Status> {
        let answer = self.spines[to].call(renew.clone()).await?;
        match (from, &answer) {
            (Some(from), Answer::Wait { .. }) => Ok((self.spines[from].call(renew).await?, from)),
            _ => Ok((answer, to)),
        }
    }

    async fn leave(
        &self,
        home: usize,
        name: String,
        leave: impl FnOnce(CallId) -> Event + Send + 'static,
    ) -> Result<Answer, Status> {
        let spine = self.pods().seat(&name).unwrap_or(home);
        let answer = self.spines[spine].call(leave).await?;
        if matches!(answer, Answer::Left { .. }) {
            self.change(|pods| pods.left(&name));
        }
        Ok(answer)
    }

    /// Changes where hosts are, and stores what has changed.
    fn change<T>(&self, change: impl FnOnce(&mut Pods) -> T) -> T {
        let mut pods = self.pods();
        let changed = change(&mut pods);
        let moves = pods.take_moves();
        if let Some(etcd) = &self.etcd {
            etcd.store(moves);
        }
        changed
    }

    fn pods(&self) -> MutexGuard<'_, Pods> {
        // No code under this lock can panic or wait.
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
