//! Draws the live view: types, slices, workers, replies over time, events. Designed for 80 × 24 and more.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Sparkline, Table};
use sluice_report::table::{digits, time};

use super::heading::Heading;
use crate::board::{BoardState, LoadNow, NoteKind, RackNow, RunStart, SliceNow, SwitchNow, WorkerNow};
use crate::peers;

const HEAD_ROWS: u16 = 4;
/// The widths of the columns of types.
const TYPE_WIDTHS: [u16; 9] = [8, 7, 9, 8, 8, 8, 12, 6, 6];
/// The width of a worker's cell.
const WORKER_WIDTH: u16 = 40;
/// The longest name of a slice or a worker that is shown in full.
const NAME_WIDTH: usize = 10;
/// The mark before a worker that differs from its peers.
const APART_MARK: &str = "!";
/// The smallest height of the replies over time: a heading, two rows of the chart, the axis.
const REPLIES_ROWS_MIN: u16 = 4;
/// The smallest height of the workers.
const WORKERS_ROWS_MIN: u16 = 2;
/// The smallest height of the events.
const EVENTS_ROWS_MIN: u16 = 3;
const EVENTS_SHARE: u16 = 2;
/// The width of the numbers beside the chart.
const SCALE_WIDTH: u16 = 9;
/// The width for which the picture is designed; on a narrower terminal something is left out.
const WIDTH_MIN: u16 = 80;
/// The mark of a fault below the chart.
const FAULT_MARK: &str = "×";

const DIM: Style = Style::new().fg(Color::DarkGray);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const GOOD: Style = Style::new().fg(Color::Green);
const WARN: Style = Style::new().fg(Color::Yellow);
const BAD: Style = Style::new().fg(Color::Red);

pub(super) fn draw(frame: &mut Frame<'_>, heading: &Heading, known: &BoardState) {
    let load = known.load.clone().unwrap_or_default();
    let rack = known.rack.clone().unwrap_or_default();
    let area = frame.area();
    let all_workers = |width: u16| rack.workers.len().div_ceil(worker_columns(width)) as u16;
    let wanted = RowsWanted {
        kinds: load.kinds.len() as u16,
        slices: rack.slices.len() as u16,
        workers: all_workers(area.width).max(1),
        notes: u16::try_from(known.notes.len()).unwrap_or(u16::MAX - 1),
    };
    let [types, slices, workers, replies, events] = rows(area.height, &wanted);
    // The heading is complete, however low the terminal is.
    let lengths = [HEAD_ROWS, types, slices, workers, replies, events].map(Constraint::Length);
    let [head, types, slices, workers, replies, events] = Layout::vertical(lengths).areas(area);
    let others = wanted.least() - 1;
    let is_small = area.width < WIDTH_MIN || area.height <= others;
    let told = is_small.then(|| {
        format!(
            "too small; {WIDTH_MIN} x {} shows all",
            others + all_workers(area.width.max(WIDTH_MIN)).max(1)
        )
    });
    let place_or_size = told.unwrap_or_else(|| heading.place.clone());
    draw_head(frame, head, [&heading.what, &place_or_size], &load, &rack);
    draw_types(frame, types, &load);
    draw_slices(frame, slices, &rack);
    draw_workers(frame, workers, &rack, &load);
    draw_replies(frame, replies, &load, known);
    draw_events(frame, events, known);
}

/// How many rows each part wants, without titles.
struct RowsWanted {
    kinds: u16,
    slices: u16,
    workers: u16,
    notes: u16,
}

impl RowsWanted {
    /// The smallest height that shows something of everything, including the heading.
    fn least(&self) -> u16 {
        HEAD_ROWS + 2 + self.kinds + 2 + self.slices + WORKERS_ROWS_MIN + REPLIES_ROWS_MIN + EVENTS_ROWS_MIN
    }
}

/// The heights of types, slices, workers, replies over time and events, including titles. On a low terminal
/// the chart is dropped first, then workers, slices and events; the latencies stay.
fn rows(height: u16, wanted: &RowsWanted) -> [u16; 5] {
    let mut left = height.saturating_sub(HEAD_ROWS);
    let mut take = |most: u16, least: u16| {
        let taken = if left < least { 0 } else { most.min(left) };
        left -= taken;
        taken
    };
    let types = take(2 + wanted.kinds, 1);
    let mut events = take(EVENTS_ROWS_MIN, 2);
    let slices = take(2 + wanted.slices, 2 + wanted.slices);
    let mut workers = take(WORKERS_ROWS_MIN, WORKERS_ROWS_MIN);
    let mut replies = if slices > 0 && workers > 0 { take(REPLIES_ROWS_MIN, REPLIES_ROWS_MIN) } else { 0 };
    if workers > 0 {
        // If there are many workers, some of them are shown.
        workers += take(wanted.workers - 1, 0);
    }
    if replies == 0 {
        return [types, slices, workers, 0, events + left];
    }
    let both = replies + events + left;
    events = (1 + wanted.notes).min(both - REPLIES_ROWS_MIN).min(both / EVENTS_SHARE).max(EVENTS_ROWS_MIN);
    replies = both - events;
    [types, slices, workers, replies, events]
}

fn section<'t>(title: impl Into<Line<'t>>) -> Block<'t> {
    Block::new().borders(Borders::TOP).border_style(DIM).title(title).title_style(BOLD)
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, [what, second]: [&str; 2], load: &LoadNow, rack: &RackNow) {
    let [name, place, bar, totals] =
        Layout::vertical([Constraint::Length(1); HEAD_ROWS as usize]).areas(area);
    beside(frame, name, Span::styled(format!(" {what}"), BOLD), switches(&rack.switches));
    let leave = Span::styled("q or Ctrl-C ends the run", DIM);
    beside(frame, place, Span::raw(format!(" {second}")), leave);
    draw_progress(frame, bar, load);
    frame.render_widget(Line::from(outcomes(load)), totals);
}

/// The state of the switch, or of the spines.
fn switches(all: &[SwitchNow]) -> Span<'static> {
    match all {
        [SwitchNow { up: true, epoch }] => Span::styled(format!("switch up, epoch {epoch}"), GOOD),
        [] | [SwitchNow { epoch: 0, .. }] => Span::styled("switch starting", DIM),
        [_] => Span::styled("switch away", BAD),
        several => {
            let away = (1..).zip(several).filter(|(_, switch)| !switch.up);
            let away: Vec<String> = away.map(|(spine, _)| spine.to_string()).collect();
            let up = several.len() - away.len();
            match &away[..] {
                [] => Span::styled(format!("{up} spines up"), GOOD),
                away => Span::styled(format!("spine {} away, {up} up", away.join(", ")), BAD),
            }
        }
    }
}

/// Draws one text at the left and one at the right. The right one is complete; the left one is cut if there
/// is not enough room.
fn beside(frame: &mut Frame<'_>, area: Rect, left: Span<'_>, right: Span<'_>) {
    let width = right.width() as u16 + 2;
    let [first, second] = Layout::horizontal([Constraint::Fill(1), Constraint::Length(width)]).areas(area);
    frame.render_widget(Line::from(left), first);
    frame.render_widget(Line::from(vec![Span::raw(" "), right, Span::raw(" ")]), second);
}

/// Draws the current phase, the remaining time, and a progress bar.
fn draw_progress(frame: &mut Frame<'_>, area: Rect, load: &LoadNow) {
    let (elapsed, length) = (load.elapsed.as_secs_f64(), load.length.as_secs_f64());
    if load.length.is_zero() {
        frame.render_widget(Line::raw(" no load yet"), area);
        return;
    }
    let phase = match load.elapsed {
        Duration::ZERO => "starting",
        elapsed if elapsed < load.warm_up => "warm-up",
        elapsed if elapsed < load.length => "measuring",
        _ => "waiting for the last tasks",
    };
    let left = (length - elapsed).max(0.0);
    let share = if length > 0.0 { (elapsed / length).min(1.0) } else { 0.0 };
    let text = format!(" {phase}: {:.1} of {length:.1} s, {left:.0} s left", elapsed.min(length));
    let [said, bar] = Layout::horizontal([Constraint::Length(40), Constraint::Min(0)]).areas(area);
    frame.render_widget(Line::raw(text), said);
    let filled = (share * f64::from(bar.width)).round() as usize;
    let rest = usize::from(bar.width) - filled;
    let spans =
        [Span::styled("━".repeat(filled), Style::new().fg(Color::Blue)), Span::styled("─".repeat(rest), DIM)];
    frame.render_widget(Line::from(spans.to_vec()), bar);
}

fn outcomes(load: &LoadNow) -> Vec<Span<'static>> {
    let bad = |count: u64| if count == 0 { Style::new() } else { BAD };
    vec![
        Span::raw(format!(" sent {}  replied {}  ", load.sent, load.replied)),
        Span::styled(format!("refused {}  ", load.refused_text()), bad(load.refused)),
        Span::styled(format!("unknown {}  ", load.unknown), bad(load.unknown)),
        Span::raw(format!("in flight {}  ", load.outstanding)),
        Span::styled(
            format!("pushed back {}", load.pushed_back),
            if load.pushed_back == 0 { Style::new() } else { WARN },
        ),
    ]
}

fn draw_types(frame: &mut Frame<'_>, area: Rect, load: &LoadNow) {
    let heads = ["", "due/s", "replies/s", "p50", "p99", "p99.9", "slowdown p50", "p99", "p99.9"];
    // A column that would be cut is left out: half a number would be a wrong one.
    let fitting = TYPE_WIDTHS.iter().scan(0, |used, width| {
        *used += width + 1;
        Some(*used - 1)
    });
    let columns = fitting.take_while(|used| *used <= area.width).count();
    let heads = heads.into_iter().take(columns);
    let header = Row::new(heads.map(|head| Cell::from(Line::from(head).right_aligned()))).style(DIM);
    let rows = load.kinds.iter().map(|kind| {
        let numbers = [format!("{:.0}", kind.due_per_s), format!("{:.0}", kind.replied_per_s)];
        let latency = kind.latency_ns.map(|ns| time(ns as f64));
        let slowdown = kind.slowdown.map(digits);
        let cells = numbers.into_iter().chain(latency).chain(slowdown);
        let name = Cell::from(Span::styled(format!(" {}", kind.name), BOLD));
        let cells = cells.map(|cell| Cell::from(Line::from(cell).right_aligned()));
        Row::new(std::iter::once(name).chain(cells).take(columns))
    });
    let widths = TYPE_WIDTHS.iter().take(columns).copied().map(Constraint::Length);
    frame.render_widget(
        Table::new(rows, widths)
            .header(header)
            .column_spacing(1)
            .block(section("Latency and slowdown, last second ")),
        area,
    );
}

fn draw_slices(frame: &mut Frame<'_>, area: Rect, rack: &RackNow) {
    let is_shown = !rack.was_up() || rack.switches.iter().any(|switch| switch.up);
    let last_known = if is_shown { "" } else { ", as they stood before the switch went away" };
    let block = section(format!("Slices, on a logarithmic scale{last_known} "));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let half = usize::from(inner.width).saturating_sub(NAME_WIDTH + 3 + 9) / 2;
    let head = format!("{:NAME_WIDTH$}  {:>half$}|{:<half$}", "", "tasks waiting ", " tokens parked");
    let lines = std::iter::once(Line::styled(head, DIM));
    let lines = lines.chain(rack.slices.iter().map(|slice| slice_line(slice, half)));
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), inner);
}

/// A slice's balance as a bar in two directions, on a logarithmic scale: a single waiting task must be
/// visible, and so must a full ring.
fn slice_line(slice: &SliceNow, half: usize) -> Line<'static> {
    let waiting = u32::try_from(-i64::from(slice.balance)).unwrap_or(0);
    let parked = u32::try_from(slice.balance).unwrap_or(0);
    let (left, right) = (bar(waiting, slice.tasks_max, half), bar(parked, slice.tokens_max, half));
    let style = if left * 4 > half * 3 { BAD } else { WARN };
    Line::from(vec![
        Span::styled(format!(" {:NAME_WIDTH$} ", shorten(&slice.name)), BOLD),
        Span::raw(" ".repeat(half - left)),
        Span::styled("█".repeat(left), style),
        Span::raw("|"),
        Span::styled("█".repeat(right), GOOD),
        Span::raw(" ".repeat(half - right)),
        Span::raw(format!("{:>8}", format!("{:+}", slice.balance))),
    ])
}

fn bar(count: u32, most: u32, width: usize) -> usize {
    let scale = |count: u32| f64::from(count).ln_1p();
    let share = scale(count) / scale(most.max(1));
    ((share * width as f64).ceil() as usize).min(width)
}

fn worker_columns(width: u16) -> usize {
    usize::from(width / WORKER_WIDTH).max(1)
}

fn draw_workers(frame: &mut Frame<'_>, area: Rect, rack: &RackNow, load: &LoadNow) {
    let columns = worker_columns(area.width);
    let rows = usize::from(area.height.saturating_sub(1)).min(rack.workers.len().div_ceil(columns)).max(1);
    let hidden = rack.workers.len().saturating_sub(rows * columns);
    let hidden = if hidden > 0 { format!("; {hidden} more") } else { String::new() };
    let are_leaves = rack.workers.iter().any(|worker| worker.stands_for > 0);
    let (who, holds) = if are_leaves { ("Leaves", "workers") } else { ("Workers", "tasks there") };
    let some_apart = rack.workers.iter().any(|worker| worker.apart.is_some());
    let marked = if some_apart { format!("; {APART_MARK} unlike its peers") } else { String::new() };
    let what = format!("{who}: {holds}, service, wait, tasks/s{marked}");
    let block = section(format!("{what}{hidden} "));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let lines = (0..rows).map(|row| {
        let workers = (0..columns).filter_map(|column| rack.workers.get(column * rows + row));
        Line::from(workers.flat_map(|worker| worker_spans(worker, load)).collect::<Vec<_>>())
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), inner);
}

/// A worker's cell: its name, its held tasks, and its work over the last seconds. Differences from its
/// peers are highlighted.
fn worker_spans(worker: &WorkerNow, load: &LoadNow) -> Vec<Span<'static>> {
    let apart = worker.apart.unwrap_or_default();
    let mark = if worker.apart.is_some() { APART_MARK } else { " " };
    let depth = load.depths.get(usize::from(worker.index)).copied().unwrap_or(0.0);
    // The depths are indexed by workers; a leaf's index is not a worker's.
    let holds = if worker.stands_for > 0 { worker.stands_for.to_string() } else { format!("{depth:.2}") };
    let name = [
        Span::styled(format!("{mark}{:NAME_WIDTH$}", shorten(&worker.name)), BOLD),
        Span::styled(format!("{holds:>5}"), DIM),
    ];
    if worker.phase != "open" {
        return name.into_iter().chain([Span::styled(format!(" {:23}", worker.phase), BAD)]).collect();
    }
    let recent = &worker.recent;
    let mean = |ns: u64| if recent.tasks > 0 { time(ns as f64) } else { "-".to_owned() };
    let style = |is_apart: bool| if is_apart { WARN.add_modifier(Modifier::BOLD) } else { Style::new() };
    let rate = peers::rate(recent).map_or_else(|| "?".to_owned(), digits);
    let did = [
        Span::styled(format!("{:>9}", mean(recent.service_ns)), style(apart.service.is_some())),
        Span::styled(format!("{:>8}", mean(recent.wait_ns)), style(apart.wait.is_some())),
        Span::styled(format!("{rate:>6} "), style(apart.rate.is_some())),
    ];
    name.into_iter().chain(did).collect()
}

/// Draws replies over the whole run, with a scale at the side and the time below.
fn draw_replies(frame: &mut Frame<'_>, area: Rect, load: &LoadNow, known: &BoardState) {
    let now = load.history.iter().rev().nth(1).copied().unwrap_or(0);
    let faults = faults(known, load.length);
    let marks = if faults.is_empty() { String::new() } else { format!(" ({FAULT_MARK} a kill)") };
    let block = section(format!("Replies per second: {now}, over the seconds since the load began{marks} "));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [chart, axis] = Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(inner);
    let beside = [Constraint::Length(SCALE_WIDTH), Constraint::Min(0)];
    let [scale, chart] = Layout::horizontal(beside).areas(chart);
    let [_, axis] = Layout::horizontal(beside).areas(axis);
    let shown = columns(load, chart.width.into());
    let most = round_up(shown.iter().copied().max().unwrap_or(0));
    let steps = (0..scale.height).map(|row| Line::raw(step(most, row, scale.height)).right_aligned());
    frame.render_widget(Paragraph::new(steps.collect::<Vec<_>>()), scale);
    frame.render_widget(
        Sparkline::default().data(&shown).max(most).style(Style::new().fg(Color::Cyan)),
        chart,
    );
    draw_time_axis(frame, axis, load, &faults);
}

/// The times of kills, as shares of the run.
fn faults(known: &BoardState, length: Duration) -> Vec<f64> {
    let killed = known.notes.iter().filter(|note| note.kind == NoteKind::Kill);
    let at = killed.filter_map(|note| note.at).map(|at| at.as_secs_f64() / length.as_secs_f64().max(1e-9));
    at.filter(|share| (0.0..=1.0).contains(share)).collect()
}

/// The scale's text in a row of the chart: the maximum in the first row, half of it in the middle, 0 in the
/// last.
fn step(most: u64, row: u16, rows: u16) -> String {
    match row {
        0 => format!("{most} ┤"),
        row if row + 1 == rows => "0 ┤".to_owned(),
        row if rows > 6 && row == rows / 2 && most.is_multiple_of(2) => format!("{} ┤", most / 2),
        _ => "│".to_owned(),
    }
}

/// Draws the run's time axis, with a mark for each fault. Marks replace the text in the middle.
fn draw_time_axis(frame: &mut Frame<'_>, area: Rect, load: &LoadNow, faults: &[f64]) {
    let at = |share: f64| format!("{:.1} s", load.length.as_secs_f64() * share);
    let last = area.width.saturating_sub(1);
    let places: Vec<u16> =
        faults.iter().map(|share| ((share * f64::from(area.width)) as u16).min(last)).collect();
    let middle = at(0.5);
    let wide = middle.len() as u16;
    let from = area.width.saturating_sub(wide) / 2;
    let is_free = |place: &u16| *place + 1 < from || *place > from + wide;
    frame.render_widget(Line::styled("0 s", DIM), area);
    if places.iter().all(is_free) {
        frame.render_widget(Line::styled(middle, DIM).centered(), area);
    }
    for place in places {
        let mark = Rect { x: area.x + place, width: area.width.min(1), ..area };
        frame.render_widget(Span::styled(FAULT_MARK, BAD), mark);
    }
    frame.render_widget(Line::styled(at(1.0), DIM).right_aligned(), area);
}

/// Replies per second, a number for each column of the whole run so far.
fn columns(load: &LoadNow, width: usize) -> Vec<u64> {
    let every = load.history_every.as_secs_f64();
    if width == 0 || every <= 0.0 {
        return Vec::new();
    }
    let all = (load.length.as_secs_f64() / every).ceil().max(1.0) as usize;
    // The last stretch is not complete yet.
    let known = &load.history[..load.history.len().saturating_sub(1).min(all)];
    let stretches = (0..width).map(|column| {
        let from = column * all / width;
        from..((column + 1) * all / width).max(from + 1)
    });
    let mean = |of: &[u64]| of.iter().sum::<u64>() / of.len().max(1) as u64;
    stretches.map_while(|stretch| known.get(stretch)).map(mean).collect()
}

/// The next number that consists of one digit and zeros, or of 12, 15 or 25 and zeros. Half of it is short
/// too, and the highest column takes most of the height.
fn round_up(number: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        let steps = [10, 12, 15, 20, 25, 30, 40, 50, 60, 80].map(|first| power.saturating_mul(first) / 10);
        if let Some(round) = steps.into_iter().find(|round| *round >= number.max(1)) {
            return round;
        }
        power = power.saturating_mul(10);
    }
}

fn draw_events(frame: &mut Frame<'_>, area: Rect, known: &BoardState) {
    let notes = &known.notes;
    let since = |start: &RunStart| format!("Events, in seconds since {} ", start.text());
    let title = known.zero.as_ref().map_or_else(|| "Events ".to_owned(), since);
    let block = section(title);
    let inner = block.inner(area);
    let first = notes.len().saturating_sub(usize::from(inner.height));
    let lines = notes[first..].iter().map(|note| {
        let style = match note.kind {
            NoteKind::Plain => Style::new(),
            NoteKind::Kill | NoteKind::Fault => BAD,
            NoteKind::Back => GOOD,
        };
        let at = Span::styled(format!(" {}  ", note.when()), DIM);
        Line::from(vec![at, Span::styled(note.text.clone(), style)])
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(block), area);
}

fn shorten(name: &str) -> String {
    if name.chars().count() <= NAME_WIDTH {
        return name.to_owned();
    }
    name.chars().take(NAME_WIDTH - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use sluice_rpc::v1::RecentWork;

    use crate::board::{Board, KindNow};
    use crate::peers::PeerDifference;

    fn known() -> BoardState {
        let kind = |name: &str| KindNow {
            name: name.to_owned(),
            due_per_s: 1_800.0,
            replied_per_s: 1_795.0,
            latency_ns: [250_000, 1_250_000, 9_000_000],
            slowdown: [1.2, 4.5, 31.0],
        };
        let slice = |name: &str, balance| SliceNow {
            name: name.to_owned(),
            balance,
            tokens_max: 8,
            tasks_max: 2_048,
        };
        let worker = |index: u16| WorkerNow {
            index,
            name: format!("worker-{index}"),
            slice: "get".to_owned(),
            quota: 2,
            phase: if index == 3 { "dying" } else { "open" },
            stands_for: 0,
            ..WorkerNow::default()
        };
        let load = LoadNow {
            elapsed: Duration::from_secs(7),
            length: Duration::from_secs(17),
            warm_up: Duration::from_secs(2),
            sent: 14_000,
            replied: 13_990,
            outstanding: 10,
            kinds: vec![kind("get"), kind("scan")],
            history: (0..70).map(|i| 1_900 + i % 7 * 30).collect(),
            history_every: Duration::from_millis(100),
            depths: vec![0.4; 8],
            ..LoadNow::default()
        };
        let rack = RackNow {
            switches: vec![SwitchNow { epoch: 1_700_000_000, up: true }],
            slices: vec![slice("get", 5), slice("scan", -40)],
            workers: (0..8).map(worker).collect(),
        };
        let text = "killed worker worker-3 with -9".to_owned();
        let board = Board::default();
        board.note(NoteKind::Back, "8 workers are ready");
        board.begin("the load began");
        board.note(NoteKind::Kill, text);
        BoardState { load: Some(load), rack: Some(rack), ..board.known() }
    }

    fn picture(width: u16, height: u16, known: &BoardState) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a test's terminal");
        let (what, place) = ("demo: rain".to_owned(), "controller at 127.0.0.1:41234".to_owned());
        terminal.draw(|frame| draw(frame, &Heading { what, place }, known)).expect("drawn");
        terminal.backend().to_string()
    }

    #[test]
    fn everything_is_seen_on_a_small_and_on_a_large_terminal() {
        for (width, height) in [(80, 24), (120, 40)] {
            let picture = picture(width, height, &known());
            for part in [
                "measuring",
                "1.25 ms",
                "31.0",
                "tokens parked",
                "-40",
                "+5",
                "worker-7",
                "dying",
                "killed worker",
                "before  8 workers are ready",
                "controller at 127.0.0.1:41234",
                "q or Ctrl-C ends the run",
                "since the load began",
                "2500 ┤",
                "0 ┤",
                "17.0 s",
            ] {
                assert!(picture.contains(part), "{part} is missing at {width} x {height}:\n{picture}");
            }
        }
    }

    #[test]
    fn a_narrow_terminal_shows_whole_numbers_or_none_and_says_what_would_do() {
        for (width, height) in [(60, 16), (40, 10), (79, 8)] {
            let picture = picture(width, height, &known());
            assert!(
                picture.contains("too small") && picture.contains("q or Ctrl-C ends the run"),
                "{picture}"
            );
        }
        for width in [79, 60, 40] {
            let picture = picture(width, 24, &known());
            let latencies = picture.lines().find(|line| line.contains(" get  ")).unwrap_or_default();
            let numbers =
                latencies.split_whitespace().filter(|word| word.contains(|c: char| c.is_ascii_digit()));
            for number in numbers {
                assert!(
                    ["1800", "1795", "250", "1.25", "9.00", "1.20", "4.50"].contains(&number),
                    "{number}:\n{picture}"
                );
            }
        }
    }

    #[test]
    fn on_a_low_terminal_the_latencies_stay_and_the_chart_goes() {
        for (width, height) in [(60, 15), (60, 12), (79, 10), (60, 9)] {
            let picture = picture(width, height, &known());
            for part in ["1.25 ms", " get ", " scan ", "p99"] {
                assert!(picture.contains(part), "{part} is missing at {width} x {height}:\n{picture}");
            }
            assert!(!picture.contains("Replies per second"), "{picture}");
        }
        assert!(picture(60, 15, &known()).contains("killed worker"));
        assert!(picture(80, 24, &known()).contains("Replies per second"));
    }

    #[test]
    fn all_rows_are_used_and_none_twice_however_high_the_terminal_is() {
        for height in 1..80 {
            for (kinds, slices, workers, notes) in [(1, 1, 1, 0), (2, 2, 4, 7), (9, 6, 64, 300), (0, 0, 1, 0)]
            {
                let wanted = RowsWanted { kinds, slices, workers, notes };
                let rows = rows(height, &wanted);
                let all: u16 = rows.iter().sum();
                assert_eq!(all, height.saturating_sub(HEAD_ROWS), "{height}: {rows:?}");
                let is_whole = height >= wanted.least();
                assert_eq!(is_whole, rows[3] > 0, "{height}: {rows:?}");
            }
        }
    }

    #[test]
    fn workers_are_told_with_services_waits_and_rates_and_who_is_unlike_its_peers() {
        let mut known = known();
        assert!(!picture(80, 24, &known).contains("unlike"));
        let mut rack = known.rack.take().expect("it was asked");
        let recent = |service_ns, wait_ns| RecentWork {
            span_ns: 5_000_000_000,
            tasks: 500,
            service_ns,
            wait_ns,
            ..RecentWork::default()
        };
        for worker in &mut rack.workers {
            worker.recent = recent(1_250_000, 30_000);
        }
        rack.workers[5].recent = recent(8_100_000, 640_000_000);
        rack.workers[5].apart =
            Some(PeerDifference { service: Some((8.1e6, 1.25e6)), ..PeerDifference::default() });
        known.rack = Some(rack);
        let picture = picture(80, 24, &known);
        let line = picture.lines().find(|line| line.contains("worker-5")).unwrap_or_default();
        for part in ["!worker-5", "8.10 ms", "640 ms", " 100 "] {
            assert!(line.contains(part), "{part}:\n{picture}");
        }
        assert!(picture.contains("! unlike its peers") && picture.contains(" worker-2 "), "{picture}");
        let dying = picture.lines().find(|line| line.contains("worker-3")).unwrap_or_default();
        assert!(dying.contains("dying"), "{picture}");
    }

    #[test]
    fn of_more_workers_than_fit_the_first_are_shown_and_the_rest_counted() {
        let mut known = known();
        let worker = |index: u16| WorkerNow {
            index,
            name: format!("w-{index}"),
            quota: 2,
            phase: "open",
            ..WorkerNow::default()
        };
        known.rack = known.rack.map(|rack| RackNow { workers: (0..64).map(worker).collect(), ..rack });
        let picture = picture(80, 24, &known);
        for part in ["; 56 more", "2500 ┤", "killed worker", "q or Ctrl-C"] {
            assert!(picture.contains(part), "{part} is missing:\n{picture}");
        }
    }

    #[test]
    fn slices_are_not_taken_for_the_present_ones_while_the_switch_is_away() {
        let mut known = known();
        assert!(!picture(80, 24, &known).contains("before the switch went away"));
        let mut rack = known.rack.take().expect("it was asked");
        rack.switches[0].up = false;
        known.rack = Some(rack);
        assert!(picture(80, 24, &known).contains("before the switch went away"));
    }

    #[test]
    fn spines_that_are_away_are_named_and_leaves_are_told_by_what_they_stand_for() {
        let mut known = known();
        let mut rack = known.rack.take().expect("it was asked");
        rack.workers.iter_mut().for_each(|leaf| (leaf.stands_for, leaf.quota) = (17, 2));
        rack.switches = vec![SwitchNow { epoch: 1, up: true }; 3];
        known.rack = Some(rack.clone());
        let all = picture(80, 24, &known);
        assert!(all.contains("3 spines up") && all.contains("17 ") && all.contains("Leaves"), "{all}");
        rack.switches[1].up = false;
        known.rack = Some(rack);
        let picture = picture(80, 24, &known);
        assert!(picture.contains("spine 2 away, 2 up") && !picture.contains("went away"), "{picture}");
    }

    #[test]
    fn a_kill_is_marked_where_it_happened_and_takes_the_place_of_the_middle_of_the_axis() {
        let axis = |share: f64| {
            let mut terminal = Terminal::new(TestBackend::new(20, 1)).expect("a test's terminal");
            let load = LoadNow { length: Duration::from_secs(10), ..LoadNow::default() };
            let draw = |frame: &mut Frame<'_>| draw_time_axis(frame, frame.area(), &load, &[share]);
            terminal.draw(draw).expect("drawn");
            terminal.backend().to_string()
        };
        assert_eq!(axis(0.25).trim(), "\"0 s  × 5.0 s  10.0 s\"");
        assert_eq!(axis(0.5).trim(), "\"0 s       ×   10.0 s\"");
    }

    #[test]
    fn a_tiny_terminal_and_an_empty_board_are_no_reason_to_panic() {
        for (width, height) in [(1, 1), (10, 3), (80, 24)] {
            picture(width, height, &BoardState::default());
            picture(width, height, &known());
        }
    }

    #[test]
    fn the_chart_takes_the_height_that_a_large_terminal_has() {
        let rows =
            |height| picture(100, height, &known()).lines().filter(|line| line.contains(['│', '┤'])).count();
        assert_eq!((rows(24), rows(60)), (2, 38));
    }

    #[test]
    fn the_chart_spans_the_whole_run_whether_it_is_long_or_short() {
        let load = |bins: u64, length: u64| LoadNow {
            length: Duration::from_secs(length),
            history: (0..bins).collect(),
            history_every: Duration::from_millis(100),
            ..LoadNow::default()
        };
        assert_eq!(columns(&load(6, 1), 20), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], "half of it is over");
        assert_eq!(columns(&load(401, 40), 4), [49, 149, 249, 349], "means of a hundred each");
        assert_eq!(columns(&load(0, 40), 4), Vec::<u64>::new());
        assert_eq!([0, 3, 995, 1_001, 3_970].map(round_up), [1, 3, 1_000, 1_200, 4_000]);
    }

    #[test]
    fn a_bar_shows_one_task_and_fills_at_the_bound() {
        assert_eq!(bar(0, 2_048, 20), 0);
        assert!(bar(1, 2_048, 20) >= 1);
        assert_eq!(bar(2_048, 2_048, 20), 20);
        assert_eq!(bar(9_999, 2_048, 20), 20);
    }
}
