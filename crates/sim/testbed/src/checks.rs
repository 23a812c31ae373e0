//! Checks that a testbed can be simulated.

use sluice_wire::Nanos;

use super::{Rates, Testbed, racks};
use crate::error::TestbedError;

/// The most workers: more do not fit the switch's memory beside their tokens.
const WORKERS_MAX: u32 = 4_096;
/// The chip's 128 Ki entries.
const QUEUE_MAX: u32 = 128 * 1024;
const CLIENTS_MAX: u16 = 256;
const WEIGHT_MAX: u32 = 1_000_000;
/// The most tasks of one priority that a core may have room for.
const DEPTH_MAX: u32 = 64;
/// The longest span of any setting.
const SPAN_MAX: Nanos = Nanos::from_millis(10_000);

impl Testbed {
    /// Checks that a simulation can be run on it; the error says what to change.
    pub fn check(&self) -> Result<(), TestbedError> {
        self.complaint().map_or(Ok(()), |why| Err(TestbedError { place: String::new(), why }))
    }

    fn complaint(&self) -> Option<String> {
        let whole = |what: &str, value: u32, most: u32| {
            let fits = (1..=most).contains(&value);
            (!fits).then(|| format!("{what} = {value}: write a number from 1 to {most}"))
        };
        let workers_max = if self.racks.are_none() { WORKERS_MAX } else { racks::WORKERS_MAX };
        whole("workers", self.workers, workers_max)
            .or_else(|| whole("clients", self.clients.into(), CLIENTS_MAX.into()))
            .or_else(|| self.bad_weights())
            .or_else(|| whole("queue", self.queue, QUEUE_MAX))
            .or_else(|| self.too_long())
            .or_else(|| self.bad_bandwidth())
            .or_else(|| self.bad_servers())
            .or_else(|| self.racks.complaint(self.workers, self.queue))
            .or_else(|| whole("servers.agents", self.servers.agents.map_or(1, u32::from), self.workers))
            .or_else(|| self.faults.kinds().into_iter().find_map(bad_rate))
            .or_else(|| self.bad_stalls())
            .or_else(|| self.bad_slow())
            .or_else(|| self.labels.complaint(self.workers))
            .or_else(|| self.bad_retries())
            .or_else(|| self.fabric.as_ref().and_then(|fabric| fabric.complaint(self.workers)))
            .or_else(|| self.bad_background())
    }

    fn bad_weights(&self) -> Option<String> {
        let (weights, clients) = (&self.client_weights, usize::from(self.clients));
        if weights.is_empty() {
            return None;
        }
        if weights.len() != clients {
            let count = weights.len();
            return Some(format!(
                "client_weights has {count} numbers for {clients} clients: write one for each"
            ));
        }
        if let Some(weight) = weights.iter().find(|weight| !(1..=WEIGHT_MAX).contains(*weight)) {
            return Some(format!("client_weights has a {weight}: write numbers from 1 to {WEIGHT_MAX}"));
        }
        (!self.racks.are_none())
            .then(|| "client_weights are for a single rack: leave them out, or [racks]".to_owned())
    }

    fn too_long(&self) -> Option<String> {
        let spans = [
            ("links.client", self.links.client),
            ("links.worker", self.links.worker),
            ("switch.pass", self.switch.pass),
            ("switch.recirculation", self.switch.recirculation),
            ("racks.hop", self.racks.hop),
            ("racks.detour", self.racks.detour),
            ("worker.receive", self.worker.receive),
            ("worker.send", self.worker.send),
            ("faults.reorder_by", self.faults.reorder_by),
            ("stalls.length", self.stalls.length),
            ("slow.from", self.slow.from),
            ("slow.length", self.slow.length),
            ("retries.first_timeout", self.retries.first_timeout),
            ("retries.timeout_max", self.retries.timeout_max),
            ("retries.deadline", self.retries.deadline),
        ];
        let (key, _) = spans.into_iter().chain(self.cores.spans()).find(|(_, span)| *span > SPAN_MAX)?;
        Some(format!("{key} is longer than 10 s: write a shorter span"))
    }

    fn bad_bandwidth(&self) -> Option<String> {
        let all = [
            ("switch.recirculation_gbps", self.switch.recirculation_gbps),
            ("servers.gbps", self.servers.gbps),
            ("servers.copy_gbps", self.servers.copy_gbps),
        ];
        let wrong = |(_, gbps): &(_, Option<f64>)| gbps.is_some_and(|gbps| !(0.001..=1e6).contains(&gbps));
        let (key, gbps) = all.into_iter().find(wrong)?;
        let gbps = gbps.unwrap_or_default();
        Some(format!("{key} = {gbps}: write a number from 0.001 to 1000000, or leave it out"))
    }

    fn bad_servers(&self) -> Option<String> {
        let (servers, workers) = (u32::from(self.servers.count), self.workers);
        let fits = servers == 0 || (servers <= workers && workers.is_multiple_of(servers));
        let uneven = (!fits).then(|| {
            format!("servers.count = {servers}: {workers} workers do not go into as many equal blocks")
        });
        uneven.or_else(|| self.bad_depth())
    }

    /// Why servers of many cores do not fit the other settings; `None` if they do.
    fn bad_depth(&self) -> Option<String> {
        let (depth, servers) = (self.servers.depth?, &self.servers);
        if !(1..=DEPTH_MAX).contains(&depth) {
            return Some(format!("servers.depth = {depth}: write a number from 1 to {DEPTH_MAX}"));
        }
        if servers.count == 0 {
            return Some("servers.depth is for servers of many cores: write servers.count, too".to_owned());
        }
        let others = [
            ("servers.gbps", servers.gbps.is_some()),
            ("servers.copy_gbps", servers.copy_gbps.is_some()),
            ("servers.agents", servers.agents.is_some()),
            ("[faults]", !self.faults.are_none()),
            ("[stalls]", self.stalls.per_s > 0.0),
            ("[slow]", self.slow.is_any()),
            ("[labels]", !self.labels.is_none()),
            ("[racks]", !self.racks.are_none()),
            ("[fabric]", self.fabric.is_some()),
        ];
        let (key, _) = others.into_iter().find(|(_, is_there)| *is_there)?;
        Some(format!("{key} is not simulated with servers of many cores: leave it out, or servers.depth"))
    }

    fn bad_stalls(&self) -> Option<String> {
        let stalls = &self.stalls;
        let share = stalls.per_s * stalls.length.0 as f64 / 1e9;
        if !(stalls.per_s.is_finite() && stalls.per_s >= 0.0) {
            return Some(format!("stalls.per_s = {}: write a number from 0 on", stalls.per_s));
        }
        if share >= 1.0 {
            return Some("stalls take all of a worker's time: make them shorter or rarer".to_owned());
        }
        self.unknown_worker("stalls", &stalls.workers)
    }

    fn bad_slow(&self) -> Option<String> {
        let factor = self.slow.factor;
        if !(1.0..=1e3).contains(&factor) {
            return Some(format!("slow.factor = {factor}: write a number from 1 to 1000"));
        }
        self.unknown_worker("slow", &self.slow.workers)
    }

    /// Why a rack cannot be on this fabric; it has to be at one ToR switch, and only the fabric may lose
    /// its packets. `None` if it can.
    fn bad_background(&self) -> Option<String> {
        let (_, background) = self.background()?;
        if !(0.0..=1.0).contains(&background.load) {
            return Some(format!("fabric.background.load = {}: write 0 to 1", background.load));
        }
        if !self.faults.are_none() {
            return Some("a rack on a fabric has no other network: leave [faults] out".to_owned());
        }
        if self.racks.detour > Nanos(0) {
            return Some(
                "racks.detour is not simulated on a fabric, where leaves are switches: leave it out"
                    .to_owned(),
            );
        }
        self.joined_topology()?.err()
    }

    fn unknown_worker(&self, section: &str, named: &[u32]) -> Option<String> {
        let unknown = named.iter().find(|worker| **worker >= self.workers)?;
        let last = self.workers - 1;
        Some(format!("{section}.workers names worker {unknown}: the last one is {last}"))
    }

    fn bad_retries(&self) -> Option<String> {
        let retries = &self.retries;
        if retries.first_timeout == Nanos(0) || retries.deadline < retries.first_timeout {
            let why =
                "retries.first_timeout must be above 0 and at most retries.deadline: change one of them";
            return Some(why.to_owned());
        }
        None
    }
}

fn bad_rate(rates: Rates) -> Option<String> {
    let shares = [("loss", rates.loss), ("duplicate", rates.duplicate), ("reorder", rates.reorder)];
    let (name, share) = shares.into_iter().find(|(_, share)| !(0.0..=1.0).contains(share))?;
    Some(format!("{name} = {share}: write a share from 0 to 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_testbeds_are_refused_in_one_line_that_helps() {
        for (text, key) in [
            ("workers = 0", "workers = 0"),
            ("clients = 1000", "clients"),
            ("queue = 0", "queue"),
            ("[links]\nclient = \"11s\"", "links.client"),
            ("[switch]\nrecirculation_gbps = nan", "recirculation_gbps"),
            ("[servers]\ncount = 5", "servers.count = 5"),
            ("[servers]\ndepth = 4", "write servers.count"),
            ("[servers]\ncount = 2\ndepth = 0", "servers.depth = 0"),
            ("[servers]\ncount = 2\ndepth = 4\ngbps = 100.0", "servers.gbps is not simulated"),
            ("[servers]\ncount = 2\ndepth = 4\n[faults.reply]\nloss = 0.1", "[faults] is not simulated"),
            ("[servers]\ncopy_gbps = 0.0", "servers.copy_gbps"),
            ("[servers]\nagents = 0", "servers.agents = 0"),
            ("[faults.reply]\nloss = 1.5", "loss = 1.5"),
            ("[faults.reply]\nloss = nan", "loss = NaN"),
            ("[stalls]\nper_s = -1.0", "stalls.per_s"),
            ("[stalls]\nper_s = 1000.0\nlength = \"1ms\"", "shorter or rarer"),
            ("workers = 2\n[stalls]\nworkers = [2]", "worker 2"),
            ("[slow]\nfactor = 0.5", "slow.factor"),
            ("workers = 2\n[slow]\nworkers = [2]", "worker 2"),
            ("[retries]\ndeadline = \"1us\"", "first_timeout"),
            ("[fabric]", "write workers = 16"),
            ("workers = 16\n[fabric]\ntopology = \"fat-tree:3\"", "even number from 2 to 32"),
            ("workers = 16\n[fabric]\ntopology = \"ring:3\"", "leaf-spine:LEAVES:SPINES:HOSTS"),
            ("workers = 16\n[fabric]\ngbps = 0.0", "rate 0 Gb/s"),
            ("workers = 16\n[fabric]\nheadroom = 1000", "loses frames under PFC"),
            ("[fabric.background]", "write 1 to 2"),
            ("[servers]\ncount = 4\n[fabric.background]", "servers.count = 4"),
            ("[servers]\ncount = 2\n[fabric.background]\nload = 1.5", "fabric.background.load = 1.5"),
            ("[servers]\ncount = 2\n[faults.reply]\nloss = 0.1\n[fabric.background]", "leave [faults]"),
            (
                "[servers]\ncount = 2\n[fabric]\ntopology = \"leaf-spine:1:2:4\"\n[fabric.background]",
                "one switch with hosts",
            ),
            ("workers = 16\n[fabric]\nanswer_every = 0", "answered together is 0"),
        ] {
            let said = Testbed::parse(text).unwrap_err().to_string();
            assert!(said.contains(key) && !said.contains('\n'), "{text}: {said}");
        }
    }
}
