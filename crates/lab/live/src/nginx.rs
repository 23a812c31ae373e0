//! nginx as a UDP proxy: one session per task, to the worker with the fewest sessions.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sluice_support::fail::{Failure, Outcome};
use sluice_support::results::files;

/// The path of the UDP module on Debian.
const STREAM: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";
/// How long nginx may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A running proxy; dropping it stops it.
pub(super) struct Nginx {
    child: Child,
    at: SocketAddr,
}

impl Nginx {
    /// What this machine lacks to run nginx, in one line.
    pub(super) fn missing() -> Option<String> {
        let version = Command::new("nginx").arg("-v").stderr(Stdio::null()).status();
        let is_here = version.is_ok_and(|status| status.success()) && Path::new(STREAM).exists();
        let install = "apt-get install nginx-core libnginx-mod-stream";
        (!is_here).then(|| format!("nginx was left out: it is not here, or cannot proxy UDP; {install}"))
    }

    /// Starts nginx in front of these workers, pinned to `core`, with its files in `folder`.
    pub(super) fn start(workers: &[SocketAddr], folder: &Path, core: Option<usize>) -> Outcome<Self> {
        files::make(folder)?;
        let folder = std::path::absolute(folder)
            .map_err(|why| Failure::broken(format!("{} has no path: {why}", folder.display())))?;
        let at = free_port()?;
        files::save(&folder, "nginx.conf", &config(workers, at, &folder, core))?;
        let failed = |why| Failure::broken(format!("nginx cannot be started: {why}"));
        let child = Command::new("nginx")
            .arg("-p")
            .arg(&folder)
            .arg("-c")
            .arg(folder.join("nginx.conf"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let mut nginx = Self { child, at };
        nginx.wait_until_ready(&folder)?;
        Ok(nginx)
    }

    /// The address on which the proxy listens.
    pub(super) const fn at(&self) -> SocketAddr {
        self.at
    }

    /// Waits until nginx listens, which makes its address unavailable.
    fn wait_until_ready(&mut self, folder: &Path) -> Outcome<()> {
        let until = Instant::now() + PATIENCE;
        while UdpSocket::bind(self.at).is_ok() {
            let ended = self.child.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > until {
                let log = folder.join("error.log");
                return Err(Failure::broken(format!("nginx does not listen; {} says why", log.display())));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Without a master process, this ends everything.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn free_port() -> Outcome<SocketAddr> {
    let failed = |why| Failure::broken(format!("no UDP port is free on the loopback: {why}"));
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    socket.local_addr().map_err(failed)
}

/// The configuration that nginx's documentation gives for UDP services with one answer per request. A
/// session ends with the answer, so the next task from the same port is balanced anew, and `least_conn`
/// counts the tasks of a worker. A single process sees all sessions. There is no master process, so killing
/// nginx leaves no child behind.
fn config(workers: &[SocketAddr], at: SocketAddr, folder: &Path, core: Option<usize>) -> String {
    let folder = folder.display();
    let mut text = format!("load_module {STREAM};\n");
    text += "daemon off;\nmaster_process off;\nworker_rlimit_nofile 65536;\n";
    if let Some(core) = core {
        let mask = format!("1{}", "0".repeat(core));
        writeln!(text, "worker_cpu_affinity {mask};").expect("a string takes it");
    }
    writeln!(text, "pid {folder}/nginx.pid;\nerror_log {folder}/error.log warn;").expect("a string takes it");
    text += "events { worker_connections 32768; }\nstream {\n  upstream workers {\n    least_conn;\n";
    for worker in workers {
        writeln!(text, "    server {worker} max_fails=0;").expect("a string takes it");
    }
    writeln!(
        text,
        "  }}\n  server {{\n    listen {at} udp;\n    proxy_pass workers;\n    proxy_requests 1;\n    proxy_responses 1;\n    \
         proxy_timeout 120s;\n  }}\n}}"
    )
    .expect("a string takes it");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_is_an_upstream_server() {
        let [one, two, at] =
            ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"].map(|at| at.parse().expect("literal"));
        let text = config(&[one, two], at, Path::new("/out"), Some(1));
        for line in
            ["server 127.0.0.1:1 max_fails=0;", "server 127.0.0.1:2 max_fails=0;", "listen 127.0.0.1:3 udp;"]
        {
            assert!(text.contains(line), "{text}");
        }
        assert!(text.contains("worker_cpu_affinity 10;") && text.contains("proxy_responses 1;"), "{text}");
    }
}
