//! Hosts without our schedulers: workers that answer datagrams one after the other, and a client with many
//! ports.
//!
//! They measure today's ways to spread datagrams over workers (a proxy, the kernel itself) with the same
//! tasks as a rack. As in a [group](crate::host_group) all hosts share a thread and a worker only holds its
//! tasks; a task starts at the kernel's timestamp of its arrival or at the end of the task before. A
//! datagram contains the task's number and its duration, 8 bytes each in network order; the answer repeats
//! it. Left out: retries; a lost task's outcome is unknown.

mod worker;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use sluice_host::client::Outcome;
use sluice_net::NetError;
use sluice_net::clock::Clock;
use sluice_net::pin::settle_thread;
use sluice_net::udp::{ReadySet, Socket, SocketOptions, Wait, Waiting, Waker};
use sluice_wire::{Endpoint, Nanos, Reply};
use worker::{DATAGRAM_BYTES, PlainWorker, words};

use crate::schedule::{DueTask, Planned, PlayCommand, Playback, Playing};

/// The size of the group, and how its thread waits.
#[derive(Clone, Copy, Debug)]
pub struct PlainOptions {
    pub workers: usize,
    /// Whether all workers share one address, so that the kernel chooses among them (`SO_REUSEPORT`); if
    /// not, each has its own.
    pub shared: bool,
    /// How many ports the client uses in turn.
    pub ports: usize,
    /// How the thread waits.
    pub waiting: Waiting,
    pub core: Option<usize>,
}

/// Running workers and a client.
pub struct PlainRack {
    workers: Vec<SocketAddr>,
    commands: Sender<(Endpoint, PlayCommand)>,
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: JoinHandle<Result<Vec<u64>, NetError>>,
}

impl PlainRack {
    /// Starts the hosts on free ports of the loopback.
    ///
    /// # Errors
    /// [`NetError::Bind`] and [`NetError::Socket`] if the kernel has no ports or descriptors left;
    /// [`NetError::Thread`].
    pub fn start(options: &PlainOptions) -> Result<Self, NetError> {
        let ready = ReadySet::new(options.waiting)?;
        let waker = ready.waker();
        let workers = bind_workers(options)?;
        let ports = (0..options.ports.max(1)).map(|_| bind(loopback(0)));
        let ports = ports.collect::<Result<Vec<_>, _>>()?;
        let at = workers.iter().map(Socket::local).collect();
        for (token, socket) in workers.iter().chain(&ports).enumerate() {
            ready.add(socket.fd(), token)?;
        }
        let (commands, asked) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let hosts = Hosts {
            workers: workers.into_iter().map(PlainWorker::new).collect(),
            ports,
            ready,
            asked,
            stop: Arc::clone(&stop),
            playing: None,
        };
        let core = options.core;
        let builder = thread::Builder::new().name("plain".to_owned());
        let thread =
            builder.spawn(move || hosts.run(core)).map_err(|why| NetError::Thread { name: "plain", why })?;
        Ok(Self { workers: at, commands, stop, waker, thread })
    }

    /// The addresses of the workers; all the same if they share one.
    pub fn workers(&self) -> &[SocketAddr] {
        &self.workers
    }

    /// Sends `tasks` to `target`, each at its scheduled time. A task without an answer `deadline` after
    /// that time is unknown.
    pub fn play(&self, target: SocketAddr, tasks: Vec<Planned>, deadline: Nanos) -> Playing {
        let (command, playing) = PlayCommand::new(Nanos(0), tasks, deadline);
        // A thread that has ended drops the command, which also ends the wait for its answer.
        self.commands.send((target.into(), command)).ok();
        self.waker.wake();
        playing
    }

    /// Stops the thread. Returns how many tasks each worker took.
    ///
    /// # Errors
    /// The error that ended the thread early.
    pub fn end(self) -> Result<Vec<u64>, NetError> {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        self.thread.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))
    }
}

/// The hosts on their thread.
struct Hosts {
    workers: Vec<PlainWorker>,
    ports: Vec<Socket>,
    ready: ReadySet,
    asked: Receiver<(Endpoint, PlayCommand)>,
    stop: Arc<AtomicBool>,
    playing: Option<(Endpoint, Playback)>,
}

impl Hosts {
    fn run(mut self, core: Option<usize>) -> Result<Vec<u64>, NetError> {
        settle_thread(core)?;
        let clock = Clock::start();
        while !self.stop.load(Ordering::Relaxed) {
            let due = self.next_due();
            self.ready.wait(due)?;
            self.take_packets()?;
            let now = clock.now();
            self.take_command(now);
            self.send_due(now);
        }
        Ok(self.workers.iter().map(PlainWorker::tasks).collect())
    }

    fn next_due(&self) -> Option<Nanos> {
        let workers = self.workers.iter().filter_map(PlainWorker::next_due).min();
        [workers, self.playing.as_ref().map(|(_, playback)| playback.next_due())].into_iter().flatten().min()
    }

    fn take_packets(&mut self) -> Result<(), NetError> {
        let workers = self.workers.len();
        for ready in self.ready.ready() {
            if let Some(worker) = self.workers.get_mut(ready.token) {
                worker.take(ready.error)?;
            } else if let Some(port) = self.ports.get_mut(ready.token - workers) {
                let playback = self.playing.as_mut().map(|(_, playback)| playback);
                take(port, ready.error, playback)?;
            }
        }
        Ok(())
    }

    fn take_command(&mut self, now: Nanos) {
        if self.playing.is_none()
            && let Ok((to, command)) = self.asked.try_recv()
        {
            self.playing = Some((to, command.begin(now, Nanos(0))));
        }
    }

    fn send_due(&mut self, now: Nanos) {
        for worker in &mut self.workers {
            worker.send_due(now);
        }
        let Some((to, playback)) = &mut self.playing else { return };
        while let Some((task, _)) = playback.next(now) {
            let place = task.number as usize % self.ports.len();
            send(&mut self.ports[place], *to, &task);
        }
        if let Some((_, playback)) = self.playing.take_if(|(_, playback)| playback.is_over(now)) {
            playback.hand_over();
        }
    }
}

fn send(port: &mut Socket, to: Endpoint, task: &DueTask) {
    let mut bytes = [0; DATAGRAM_BYTES];
    let (number, span) = bytes.split_at_mut(8);
    number.copy_from_slice(&task.number.to_be_bytes());
    span.copy_from_slice(&task.task.bytes);
    port.send(to, &bytes);
    port.flush();
}

/// Receives from one of the client's ports.
fn take(port: &mut Socket, error: bool, mut playback: Option<&mut Playback>) -> Result<(), NetError> {
    if error {
        port.take_errors();
    }
    port.receive(Wait::Poll)?;
    for datagram in port.inbox().datagrams() {
        let Ok(task) = <[u8; DATAGRAM_BYTES]>::try_from(datagram.bytes) else { continue };
        if let Some(playback) = &mut playback {
            playback.ended(words(task)[0], datagram.received, 1, Outcome::Reply(Reply::default()));
        }
    }
    Ok(())
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The sockets' options. Refusals are not reported, since none is expected.
fn options() -> SocketOptions {
    SocketOptions { datagram_max: DATAGRAM_BYTES, refusals: false, ..SocketOptions::default() }
}

fn bind(at: SocketAddr) -> Result<Socket, NetError> {
    Socket::bind(at, &options())
}

fn bind_workers(options: &PlainOptions) -> Result<Vec<Socket>, NetError> {
    let mut sockets: Vec<Socket> = Vec::with_capacity(options.workers);
    for _ in 0..options.workers {
        let socket = if options.shared {
            let port = sockets.first().map_or(0, |first| first.local().port());
            Socket::over(shared(loopback(port))?, &self::options())?
        } else {
            bind(loopback(0))?
        };
        sockets.push(socket);
    }
    Ok(sockets)
}

/// A socket whose address others may share; the kernel spreads datagrams over them by a hash of addresses
/// and ports.
fn shared(at: SocketAddr) -> Result<UdpSocket, NetError> {
    use socket2::{Domain, Type};
    let failed = |why| NetError::Bind { at, why };
    let socket = socket2::Socket::new(Domain::for_address(at), Type::DGRAM, None).map_err(failed)?;
    socket.set_reuse_port(true).map_err(failed)?;
    socket.bind(&at.into()).map_err(failed)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use sluice_wire::TaskType;

    use super::*;
    use crate::schedule::PlayedTask;
    use sluice_net::client::Urgency;

    const SPAN: Nanos = Nanos::from_millis(2);

    fn play(rack: &PlainRack, tasks: usize, deadline: Nanos) -> Vec<PlayedTask> {
        let planned = |index: usize| Planned {
            due: Nanos::from_micros(100).times(index as u64),
            kind: TaskType(0),
            urgency: Urgency::Unstated,
            bytes: SPAN.0.to_be_bytes(),
        };
        let playing = rack.play(rack.workers()[0], (0..tasks).map(planned).collect(), deadline);
        playing.wait(Duration::from_mins(1)).expect("it runs").expect("it ends by its deadline")
    }

    fn start(shared: bool) -> PlainRack {
        let options = PlainOptions { workers: 4, shared, ports: 64, waiting: Waiting::Block, core: None };
        PlainRack::start(&options).expect("the loopback has free ports")
    }

    #[test]
    fn a_worker_takes_one_task_after_the_other() {
        let rack = start(false);
        assert_eq!(rack.workers().iter().collect::<HashSet<_>>().len(), 4);
        let played = play(&rack, 5, Nanos::from_millis(30_000));
        assert!(played.iter().all(|task| matches!(task.outcome, Outcome::Reply(_))));
        assert!(played.is_sorted_by_key(|task| task.ended) && played[4].ended >= SPAN.times(5), "{played:?}");
        assert_eq!(rack.end().expect("it ran to its end"), [5, 0, 0, 0]);
    }

    #[test]
    fn the_kernel_spreads_tasks_over_workers_that_share_an_address() {
        let rack = start(true);
        assert_eq!(rack.workers().iter().collect::<HashSet<_>>().len(), 1);
        let played = play(&rack, 64, Nanos::from_millis(30_000));
        assert!(played.iter().all(|task| matches!(task.outcome, Outcome::Reply(_))));
        let tasks = rack.end().expect("it ran to its end");
        assert_eq!(tasks.iter().sum::<u64>(), 64);
        assert!(tasks.iter().filter(|tasks| **tasks > 0).count() > 1, "{tasks:?}");
    }

    #[test]
    fn a_task_without_an_answer_is_unknown() {
        let rack = start(false);
        let silent = UdpSocket::bind(loopback(0)).expect("a port is free");
        let at = silent.local_addr().expect("it is bound");
        let task = Planned { due: Nanos(0), kind: TaskType(0), urgency: Urgency::Unstated, bytes: [0; 8] };
        let playing = rack.play(at, vec![task], Nanos::from_millis(20));
        let played = playing.wait(Duration::from_mins(1)).expect("it runs").expect("it ends by its deadline");
        assert!(matches!(played[0].outcome, Outcome::Unknown(_)));
        assert_eq!(rack.end().expect("it ran to its end"), [0; 4]);
    }
}
