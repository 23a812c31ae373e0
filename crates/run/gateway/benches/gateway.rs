//! What a command costs in a gateway, compared with a bare server on the same event loop, and with the rack's
//! own client.
//!
//! The bare server reads commands as the gateway does and answers each with a fixed value; both are a thread
//! with tokio's event loop. Behind the gateway is a rack of threads: a switch, its controller, and a worker
//! that answers every GET with the same value. Only processor time of the threads counts, as the kernel tells
//! it, so the rack's own work on the same cores does not. Blocks alternate; the result is the median of their
//! ratios. Prints one line of JSON.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sluice_control::{Plan, SlicePlan};
use sluice_gateway::resp::RespReader;
use sluice_gateway::{BoundGateway, Gateway, GatewayMetrics, GatewayOptions, Protocol};
use sluice_net::client::CompletionQueue;
use sluice_net::clock::thread_cpu;
use sluice_net::worker::Stopper;
use sluice_net::{Client, ClientOptions, TaskType, Worker, WorkerOptions, service_fn};
use sluice_switch::registry::Choice;
use sluice_switchd::controller::{ControllerOptions, SwitchLink, start_controller};
use sluice_switchd::rpc::{Guard, LocalSwitch, RpcServer};
use sluice_switchd::switch::{SwitchConfig, SwitchDriver, SwitchHandle};
use sluice_wire::Epoch;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::LocalSet;

/// Connections, and commands of each that are sent at once.
const CASES: [(usize, usize); 3] = [(50, 1), (50, 4), (10, 16)];
const COMMANDS_A_BLOCK: usize = 20_000;
const BLOCKS: usize = 7;
const VALUE: [u8; 64] = [b'v'; 64];
const GET: &[u8] = b"*2\r\n$3\r\nGET\r\n$8\r\nkey-0001\r\n";
const KV_GET: TaskType = TaskType(20);
/// Tasks that the direct client has under way.
const UNDER_WAY: usize = 64;

fn main() {
    let rack = BenchRack::start();
    let gateway = rack.gateway();
    let bare = bare_server();
    let cases: Vec<String> = CASES.iter().map(|case| measure(*case, gateway.at, bare)).collect();
    drop(gateway);
    let direct = direct(&rack);
    println!(r#"{{"bench":"gateway","cases":[{}],{direct}}}"#, cases.join(","));
    rack.end();
}

fn measure((connections, pipeline): (usize, usize), gateway: SocketAddr, bare: SocketAddr) -> String {
    let open = |at| (0..connections).map(|_| connect(at)).collect::<Vec<_>>();
    let (mut before, mut against) = (open(gateway), open(bare));
    let (mut ratios, mut ours, mut theirs, mut packets, mut rates) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    // The first block warms up.
    for block in 0..=BLOCKS {
        let [loops, clients] = ["sluice-gateway", "sluice-client"].map(cpu_of);
        let began = Instant::now();
        send(&mut before, pipeline);
        let rate = COMMANDS_A_BLOCK as f64 / began.elapsed().as_secs_f64();
        let (gateway_ns, packets_ns) = (cpu_of("sluice-gateway") - loops, cpu_of("sluice-client") - clients);
        let (began, loops) = (Instant::now(), cpu_of("bare-server"));
        send(&mut against, pipeline);
        let bare_rate = COMMANDS_A_BLOCK as f64 / began.elapsed().as_secs_f64();
        let bare_ns = cpu_of("bare-server") - loops;
        if block > 0 {
            let each = |ns: u64| ns as f64 / COMMANDS_A_BLOCK as f64;
            ratios.push(bare_ns as f64 / gateway_ns as f64);
            ours.push(each(gateway_ns));
            theirs.push(each(bare_ns));
            packets.push(each(packets_ns));
            rates[0].push(rate);
            rates[1].push(bare_rate);
        }
    }
    let [rate, bare_rate] = rates.map(median);
    format!(
        "{{\"connections\":{connections},\"pipeline\":{pipeline},\"ratio\":{:.3},\"gateway_ns\":{:.0},\
         \"bare_ns\":{:.0},\"packets_ns\":{:.0},\"per_s\":{rate:.0},\"bare_per_s\":{bare_rate:.0}}}",
        median(ratios),
        median(ours),
        median(theirs),
        median(packets),
    )
}

/// Sends a block of GETs, so many of each connection at once, and reads the replies.
fn send(connections: &mut [TcpStream], pipeline: usize) {
    let commands = GET.repeat(pipeline);
    let mut replies = vec![0; pipeline * reply().len()];
    for _ in 0..COMMANDS_A_BLOCK.div_ceil(connections.len() * pipeline) {
        for connection in connections.iter_mut() {
            connection.write_all(&commands).expect("it is taken");
        }
        for connection in connections.iter_mut() {
            connection.read_exact(&mut replies).expect("it is answered");
        }
    }
    assert!(replies.starts_with(&reply()), "{}", replies.escape_ascii());
}

fn reply() -> Vec<u8> {
    [b"$64\r\n", &VALUE[..], b"\r\n"].concat()
}

fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).expect("it listens");
    stream.set_nodelay(true).expect("an option");
    stream
}

/// The processor time of this process's threads with this name, in ns.
fn cpu_of(name: &str) -> u64 {
    let threads = fs::read_dir("/proc/self/task").expect("procfs").flatten();
    let named = threads.filter(|thread| {
        fs::read_to_string(thread.path().join("comm")).is_ok_and(|comm| name.starts_with(comm.trim_end()))
    });
    let spent = named.filter_map(|thread| {
        let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    });
    spent.sum()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A server that answers each command with the value, on the same event loop.
fn bare_server() -> SocketAddr {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.set_nonblocking(true).expect("an option");
    let at = listener.local_addr().expect("it is bound");
    let serve = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        LocalSet::new().block_on(&runtime, async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("it is bound");
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).expect("an option");
                tokio::task::spawn_local(answer(stream));
            }
        });
    };
    thread::Builder::new().name("bare-server".to_owned()).spawn(serve).expect("a thread");
    at
}

async fn answer(mut stream: tokio::net::TcpStream) {
    let (mut reader, mut out, reply) = (RespReader::new(), Vec::new(), reply());
    loop {
        match stream.read(reader.room()).await {
            Ok(count @ 1..) => reader.filled(count),
            _ => return,
        }
        while reader.read().expect("it is a command") {
            assert_eq!(reader.args().len(), 2);
            out.extend_from_slice(&reply);
            reader.consume();
        }
        if stream.write_all(&out).await.is_err() {
            return;
        }
        out.clear();
    }
}

/// The same tasks by the rack's own client, without a gateway.
fn direct(rack: &BenchRack) -> String {
    let client =
        Client::connect(&ClientOptions::new(&rack.controller.local().to_string()).expect("an address"));
    let client = client.expect("the rack takes clients");
    let queue = CompletionQueue::new();
    let bytes = [&0_u64.to_be_bytes()[..], &8_u16.to_be_bytes(), b"key-0001"].concat();
    let (mut submits, mut packets) = (Vec::new(), Vec::new());
    for block in 0..=BLOCKS {
        let (began, clients) = (thread_cpu(), cpu_of("sluice-client"));
        let (mut sent, mut ended, mut into) = (0, 0, Vec::new());
        while ended < COMMANDS_A_BLOCK {
            while sent < COMMANDS_A_BLOCK && sent - ended < UNDER_WAY {
                let submitted = client.try_submit_to(&queue, 0, KV_GET, &bytes, Duration::from_mins(1));
                submitted.expect("there is room");
                sent += 1;
            }
            ended += queue.wait(&mut into, UNDER_WAY, None);
            for completed in into.drain(..) {
                assert!(completed.ended.outcome.done().is_some(), "{}", completed.ended.outcome);
            }
        }
        if block > 0 {
            let each = |ns: u64| ns as f64 / COMMANDS_A_BLOCK as f64;
            submits.push(each(thread_cpu().since(began).0));
            packets.push(each(cpu_of("sluice-client") - clients));
        }
    }
    client.close().expect("it ends");
    format!(r#""direct_ns":{:.0},"direct_packets_ns":{:.0}"#, median(submits), median(packets))
}

/// A rack on threads of this process.
struct BenchRack {
    switch: SwitchHandle,
    switching: JoinHandle<Result<(), sluice_net::NetError>>,
    controller: RpcServer,
    stopper: Stopper,
    working: JoinHandle<()>,
}

/// A gateway before it, and where it listens.
struct BenchGateway {
    _gateway: Gateway,
    at: SocketAddr,
}

impl BenchRack {
    fn start() -> Self {
        let program = Choice::default();
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let size = program.traits().full_size(Epoch(1));
        let config = SwitchConfig { at: anywhere, program, ..SwitchConfig::new(size) };
        let driver = SwitchDriver::new(&config).expect("the loopback has free ports");
        let switch = driver.handle();
        let switching = driver.spawn().expect("a thread");
        let at = switch.local().into();
        let slice = SlicePlan { name: "store".to_owned(), types: vec![KV_GET], ..SlicePlan::default() };
        let controller = start_controller(ControllerOptions {
            at: anywhere,
            guard: Guard::Loopback,
            plan: Plan::new(at, vec![slice]),
            seed: [7; 32],
            switch: SwitchLink::Here(LocalSwitch::new(switch.clone(), at)),
            standby: false,
            spine: 0,
        });
        let controller = controller.expect("the port is free");
        let options = WorkerOptions {
            quota: 8,
            ..WorkerOptions::new(&controller.local().to_string()).expect("an address")
        };
        let answers = service_fn(KV_GET, |_, reply| {
            reply.extend_from_slice(&(VALUE.len() as u32).to_be_bytes());
            reply.extend_from_slice(&VALUE);
            Ok(())
        });
        let worker = Worker::new(&options, answers).expect("the loopback has free ports");
        let stopper = worker.stopper();
        let working = thread::spawn(|| drop(worker.run().expect("no error")));
        Self { switch, switching, controller, stopper, working }
    }

    fn gateway(&self) -> BenchGateway {
        let options = GatewayOptions {
            listen: [
                (Protocol::Resp, Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))),
                (Protocol::Http, None),
                (Protocol::Grpc, None),
            ],
            tls: None,
            deadline: Some(Duration::from_mins(1)),
            budget: None,
            methods: Vec::new(),
            connections_max: 1_024,
            metrics: GatewayMetrics::default(),
        };
        let client = ClientOptions::new(&self.controller.local().to_string()).expect("an address");
        let bound = BoundGateway::bind(options).expect("the loopback has free ports");
        let (_, at) = bound.local()[0];
        let client = Client::connect(&client).expect("the rack takes clients");
        BenchGateway { _gateway: bound.serve(client.into()).expect("it starts"), at }
    }

    fn end(self) {
        self.stopper.stop();
        self.working.join().expect("no panic");
        drop(self.controller);
        self.switch.stop();
        self.switching.join().expect("no panic").expect("no error");
    }
}
