//! The result of a run of `sluice write`. `schemas/write.v1.json` describes its JSON.

use std::collections::HashMap;

use serde::Serialize;
use sluice_net::rdma::{WaitsBy, WriteLeft, WriteSeen, WriteSenderOptions, WriteTotals};
use sluice_report::table::{Table, time};
use sluice_wire::Nanos;

use super::receiver::ReceivedWrites;

/// The WRITEs that left, by flow.
pub(super) struct SentWrites {
    options: WriteSenderOptions,
    flows: Vec<Vec<WriteLeft>>,
}

/// When each WRITE was on the link, by flow and number. A WRITE that was not seen has no entry; one that
/// the kernel did not stamp has no time.
pub(super) struct LinkStamps(Vec<HashMap<u32, Option<u64>>>);

/// The result.
#[derive(Debug, Serialize)]
pub(super) struct WriteOutcome {
    schema: &'static str,
    flows: u16,
    bytes: usize,
    wait: &'static str,
    /// WRITEs that the kernel accepted, and those that it refused.
    sent: u64,
    failed: u64,
    ran_s: f64,
    rate_per_s: f64,
    /// The share of that time for which the sending thread had a processor.
    cpu: f64,
    pacer: Option<PacerResult>,
    on_link: Option<LinkObservations>,
    taken: Option<ReceivedWrites>,
}

#[derive(Debug, Serialize)]
struct PacerResult {
    threshold_us: f64,
    /// T, a percentile of the host's own gaps, in µs; `None` if the pacer has not learnt it.
    tail_us: Option<f64>,
    gaps: u64,
    /// Gaps that reached the threshold without a hold.
    natural: u64,
    holds: u64,
    held_mean_us: f64,
    /// How much later than the threshold held frames left, as seen by the sender.
    late: Option<GapErrors>,
}

/// How far gaps were from the threshold.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "JSON has units in its names")]
struct GapErrors {
    p50_us: f64,
    p99_us: f64,
    most_us: f64,
}

/// What was seen on the link.
#[derive(Debug, Serialize)]
struct LinkObservations {
    seen: u64,
    gaps: u64,
    /// Gaps that reached the threshold.
    flowlets: u64,
    /// Held frames whose gap reached the threshold, and those with a shorter gap.
    held: u64,
    held_short: u64,
    /// WRITEs that the kernel did not stamp, and held ones whose gap is unknown therefore.
    unstamped: u64,
    held_unknown: u64,
    /// How much longer than the threshold the former gaps were, and how much shorter the latter.
    late: Option<GapErrors>,
    short: Option<GapErrors>,
}

impl SentWrites {
    pub(super) fn new(options: &WriteSenderOptions) -> Self {
        Self { options: options.clone(), flows: vec![Vec::new(); options.flows.into()] }
    }

    pub(super) fn add(&mut self, left: WriteLeft) {
        self.flows[left.flow].push(left);
    }

    pub(super) fn result(
        &self,
        totals: &WriteTotals,
        link: Option<&LinkStamps>,
        taken: Option<&ReceivedWrites>,
    ) -> WriteOutcome {
        let (ran_s, options) = (seconds(totals.ran), &self.options);
        WriteOutcome {
            schema: "sluice.write.v1",
            flows: options.flows,
            bytes: options.bytes,
            wait: name(options.waits),
            sent: totals.sent,
            failed: totals.failed,
            ran_s,
            rate_per_s: if ran_s > 0.0 { totals.sent as f64 / ran_s } else { 0.0 },
            cpu: if ran_s > 0.0 { seconds(totals.cpu) / ran_s } else { 0.0 },
            pacer: options.pacer.map(|pacer| self.paced(totals, pacer.threshold)),
            on_link: link.map(|link| self.on_link(link)),
            taken: taken.copied(),
        }
    }

    fn paced(&self, totals: &WriteTotals, threshold: Nanos) -> PacerResult {
        let counts = totals.pacer;
        let own = || self.pairs().filter(|(_, this)| this.held);
        let late = own().map(|(last, this)| this.at.since(last.at).since(threshold).0);
        PacerResult {
            threshold_us: micros(threshold.0),
            tail_us: totals.tail.map(|tail| micros(tail.0)),
            gaps: counts.gaps,
            natural: counts.natural,
            holds: counts.holds,
            held_mean_us: micros(counts.held.0) / counts.holds.max(1) as f64,
            // With the kernel's queue the sender does not know when frames leave.
            late: GapErrors::of(late.filter(|_| self.options.waits != WaitsBy::Kernel).collect()),
        }
    }

    fn on_link(&self, link: &LinkStamps) -> LinkObservations {
        let threshold = self.options.pacer.map_or(u64::MAX, |pacer| as_stamped(pacer.threshold.0));
        let gap =
            |(last, this): (WriteLeft, WriteLeft)| Some(link.at(&this)?.saturating_sub(link.at(&last)?));
        let gaps: Vec<(bool, u64)> = self.pairs().filter_map(|two| Some((two.1.held, gap(two)?))).collect();
        let held = || gaps.iter().filter(|(held, _)| *held).map(|(_, gap)| *gap);
        LinkObservations {
            seen: link.0.iter().map(|of| of.len() as u64).sum(),
            gaps: gaps.len() as u64,
            flowlets: gaps.iter().filter(|(_, gap)| *gap >= threshold).count() as u64,
            held: held().filter(|gap| *gap >= threshold).count() as u64,
            held_short: held().filter(|gap| *gap < threshold).count() as u64,
            unstamped: link.0.iter().flat_map(HashMap::values).filter(|at| at.is_none()).count() as u64,
            held_unknown: self.pairs().filter(|two| two.1.held && gap(*two).is_none()).count() as u64,
            late: GapErrors::of(held().filter_map(|gap| gap.checked_sub(threshold)).collect()),
            short: GapErrors::of(held().filter(|gap| *gap < threshold).map(|gap| threshold - gap).collect()),
        }
    }

    /// Each WRITE except a flow's first, with the one before it.
    fn pairs(&self) -> impl Iterator<Item = (WriteLeft, WriteLeft)> + '_ {
        self.flows.iter().flat_map(|flow| flow.windows(2).map(|two| (two[0], two[1])))
    }
}

impl LinkStamps {
    /// What was seen of flows from these source ports. If a WRITE was seen twice, the first time counts.
    pub(super) fn new(ports: &[u16], seen: &[WriteSeen]) -> Self {
        let mut flows = vec![HashMap::new(); ports.len()];
        for WriteSeen { port, psn, at } in seen {
            if let Some(flow) = ports.iter().position(|known| known == port) {
                flows[flow].entry(psn.get()).or_insert(*at);
            }
        }
        Self(flows)
    }

    fn at(&self, left: &WriteLeft) -> Option<u64> {
        *self.0.get(left.flow)?.get(&left.psn.get())?
    }
}

impl GapErrors {
    fn of(mut late_ns: Vec<u64>) -> Option<Self> {
        late_ns.sort_unstable();
        let most = late_ns.last()?;
        let quantile = |percent: usize| late_ns[((late_ns.len() * percent).div_ceil(100)).max(1) - 1];
        Some(Self { p50_us: micros(quantile(50)), p99_us: micros(quantile(99)), most_us: micros(*most) })
    }

    fn text(self) -> String {
        let [p50, p99, most] = [self.p50_us, self.p99_us, self.most_us].map(|us| time(us * 1e3));
        format!("median {p50}, p99 {p99}, most {most}")
    }
}

impl WriteOutcome {
    /// The result as text.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(["", ""]);
        let mut row = |what: &str, said: String| table.row([what.to_owned(), said]);
        row(
            "sent",
            format!(
                "{} WRITEs of {} bytes in {:.2} s ({:.0} per second)",
                self.sent, self.bytes, self.ran_s, self.rate_per_s
            ),
        );
        if self.failed > 0 {
            row("not taken", format!("{} WRITEs that the kernel refused", self.failed));
        }
        row(
            "processor",
            format!("{:.0} % of a core, by the sending thread ({})", 100.0 * self.cpu, self.wait),
        );
        if let Some(pacer) = &self.pacer {
            let tail = pacer.tail_us.map_or("not learnt".to_owned(), |us| time(us * 1e3));
            row("T", format!("{tail}; the threshold is {}", time(pacer.threshold_us * 1e3)));
            row(
                "gaps",
                format!("{}, of which {} as long as the threshold by themselves", pacer.gaps, pacer.natural),
            );
            row("holds", format!("{}, {} each in the mean", pacer.holds, time(pacer.held_mean_us * 1e3)));
            if let Some(late) = pacer.late {
                row("late", late.text());
            }
        }
        if let Some(link) = &self.on_link {
            row(
                "on the link",
                format!(
                    "{} WRITEs, {} gaps, {} as long as the threshold",
                    link.seen, link.gaps, link.flowlets
                ),
            );
            row("held there", format!("{} as long as the threshold, {} shorter", link.held, link.held_short));
            if link.unstamped > 0 {
                let held = link.held_unknown;
                row(
                    "not stamped",
                    format!("{} WRITEs by the kernel, {held} held ones' gaps with them", link.unstamped),
                );
            }
            if let Some(late) = link.late {
                row("late there", late.text());
            }
            if let Some(short) = link.short {
                row("short there", short.text());
            }
        }
        if let Some(taken) = &self.taken {
            row("taken", format!("{} WRITEs, {} refused", taken.placed, taken.refused));
        }
        table
    }
}

/// Corrects a span for the clock that stamps frames, which is slewed by at most half a thousandth.
const fn as_stamped(span_ns: u64) -> u64 {
    span_ns - span_ns / 2_000
}

const fn name(waits: WaitsBy) -> &'static str {
    match waits {
        WaitsBy::Spinning => "spin",
        WaitsBy::Sleeping => "sleep",
        WaitsBy::Kernel => "kernel",
    }
}

fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn seconds(span: Nanos) -> f64 {
    span.0 as f64 / 1e9
}
