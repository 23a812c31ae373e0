//! The live view's picture: types, slices, workers, replies over time, events. Made for 80 × 24 and more.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Sparkline, Table};

use crate::board::{Known, LoadNow, Note, NoteKind, RackNow, SliceNow, WorkerNow};
use crate::results::table::{digits, time};

/// The width of one worker's place.
const WORKER_WIDTH: u16 = 38;
/// The widest name of a slice or a worker that is shown whole.
const NAME_WIDTH: usize = 10;
/// The width of the bar of tasks at a worker.
const LEVEL_WIDTH: usize = 8;
/// Rows of the replies over time: at least, at most.
const HISTORY_ROWS: (u16, u16) = (3, 9);

const DIM: Style = Style::new().fg(Color::DarkGray);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const GOOD: Style = Style::new().fg(Color::Green);
const WARN: Style = Style::new().fg(Color::Yellow);
const BAD: Style = Style::new().fg(Color::Red);

/// Draws everything that is known.
pub(super) fn draw(frame: &mut Frame<'_>, title: &str, known: &Known) {
    let load = known.load.clone().unwrap_or_default();
    let rack = known.rack.clone().unwrap_or_default();
    let area = frame.area();
    let worker_rows = rack.workers.len().div_ceil(worker_columns(area.width)) as u16;
    let spare = area.height.saturating_sub(3 + 2 + load.kinds.len() as u16 + 2 + rack.slices.len() as u16);
    let history = (spare.saturating_sub(worker_rows + 2) / 3).clamp(HISTORY_ROWS.0, HISTORY_ROWS.1);
    let [head, types, slices, workers, replies, events] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(2 + load.kinds.len() as u16),
        Constraint::Length(2 + rack.slices.len() as u16),
        Constraint::Length(1 + worker_rows),
        Constraint::Length(1 + history),
        Constraint::Min(2),
    ])
    .areas(area);
    draw_head(frame, head, title, &load, &rack);
    draw_types(frame, types, &load);
    draw_slices(frame, slices, &rack);
    draw_workers(frame, workers, &rack, &load);
    draw_replies(frame, replies, &load);
    draw_events(frame, events, &known.notes);
}

fn section<'t>(title: impl Into<Line<'t>>) -> Block<'t> {
    Block::new().borders(Borders::TOP).border_style(DIM).title(title).title_style(BOLD)
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, title: &str, load: &LoadNow, rack: &RackNow) {
    let [name, bar, totals] = Layout::vertical([Constraint::Length(1); 3]).areas(area);
    let switch = match (rack.up, rack.epoch) {
        (true, epoch) => Span::styled(format!("switch up, epoch {epoch}"), GOOD),
        (false, 0) => Span::styled("switch starting", DIM),
        (false, _) => Span::styled("switch away", BAD),
    };
    frame.render_widget(Line::from(vec![Span::styled(format!(" {title}"), BOLD)]), name);
    frame.render_widget(Line::from(vec![switch, Span::raw(" ")]).right_aligned(), name);
    draw_progress(frame, bar, load);
    frame.render_widget(Line::from(outcomes(load)), totals);
}

/// What goes on and for how long still, and a bar that says the same.
fn draw_progress(frame: &mut Frame<'_>, area: Rect, load: &LoadNow) {
    let (elapsed, length) = (load.elapsed.as_secs_f64(), load.length.as_secs_f64());
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
        Span::styled(format!("refused {}  ", load.refused), bad(load.refused)),
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
    let header = Row::new(heads.map(|head| Cell::from(Line::from(head).right_aligned()))).style(DIM);
    let rows = load.kinds.iter().map(|kind| {
        let numbers = [format!("{:.0}", kind.due_per_s), format!("{:.0}", kind.replied_per_s)];
        let latency = kind.latency_ns.map(|ns| time(ns as f64));
        let slowdown = kind.slowdown.map(digits);
        let cells = numbers.into_iter().chain(latency).chain(slowdown);
        let name = Cell::from(Span::styled(format!(" {}", kind.name), BOLD));
        let cells = cells.map(|cell| Cell::from(Line::from(cell).right_aligned()));
        Row::new(std::iter::once(name).chain(cells))
    });
    let widths = [8, 7, 9, 8, 8, 8, 12, 6, 6].map(Constraint::Length);
    frame.render_widget(
        Table::new(rows, widths)
            .header(header)
            .column_spacing(1)
            .block(section("Latency and slowdown, last second ")),
        area,
    );
}

fn draw_slices(frame: &mut Frame<'_>, area: Rect, rack: &RackNow) {
    let block = section("Slices ");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let half = usize::from(inner.width).saturating_sub(NAME_WIDTH + 3 + 9) / 2;
    let head = format!("{:NAME_WIDTH$}  {:>half$}|{:<half$}", "", "tasks waiting ", " tokens parked");
    let lines = std::iter::once(Line::styled(head, DIM));
    let lines = lines.chain(rack.slices.iter().map(|slice| slice_line(slice, half)));
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), inner);
}

/// One slice's balance as a bar that goes both ways, on a logarithmic scale: one waiting task must be seen, and so
/// must a full ring.
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
    let block = section("Workers: tasks there on average, as a share of the quota ");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let columns = worker_columns(inner.width);
    let rows = rack.workers.len().div_ceil(columns).max(1);
    let lines = (0..rows).map(|row| {
        let workers = (0..columns).filter_map(|column| rack.workers.get(column * rows + row));
        Line::from(workers.flat_map(|worker| worker_spans(worker, load)).collect::<Vec<_>>())
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), inner);
}

fn worker_spans(worker: &WorkerNow, load: &LoadNow) -> [Span<'static>; 4] {
    let depth = load.depths.get(usize::from(worker.index)).copied().unwrap_or(0.0);
    let (doing, style) =
        if worker.phase == "open" { (shorten(&worker.slice), DIM) } else { (worker.phase.to_owned(), BAD) };
    [
        Span::styled(format!(" {:NAME_WIDTH$} ", shorten(&worker.name)), BOLD),
        Span::styled(level(depth / f64::from(worker.quota.max(1))), GOOD),
        Span::raw(format!("{depth:5.2} ")),
        Span::styled(format!("{doing:10}  "), style),
    ]
}

/// A share as a bar of [`LEVEL_WIDTH`] cells, each in eight steps.
fn level(share: f64) -> String {
    const STEPS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = ((share * 8.0 * LEVEL_WIDTH as f64).round() as usize).min(8 * LEVEL_WIDTH);
    let full = std::iter::repeat_n('█', eighths / 8);
    full.chain([STEPS[eighths % 8]]).chain(std::iter::repeat('·')).take(LEVEL_WIDTH).collect()
}

fn draw_replies(frame: &mut Frame<'_>, area: Rect, load: &LoadNow) {
    let now = load.history.iter().rev().nth(1).copied().unwrap_or(0);
    let block = section(format!("Replies per second: {now} "));
    let width = usize::from(area.width);
    let shown = &load.history[load.history.len().saturating_sub(width)..];
    let spark = Sparkline::default().data(shown).style(Style::new().fg(Color::Cyan)).block(block);
    frame.render_widget(spark, area);
}

fn draw_events(frame: &mut Frame<'_>, area: Rect, notes: &[Note]) {
    let block = section("Events ");
    let inner = block.inner(area);
    let first = notes.len().saturating_sub(usize::from(inner.height));
    let lines = notes[first..].iter().map(|note| {
        let style = match note.kind {
            NoteKind::Plain => Style::new(),
            NoteKind::Fault => BAD,
            NoteKind::Back => GOOD,
        };
        let at = Span::styled(format!(" {:7.2} s  ", note.at.as_secs_f64()), DIM);
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
    use crate::board::KindNow;

    fn known() -> Known {
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
            depths: vec![0.4; 8],
            ..LoadNow::default()
        };
        let rack = RackNow {
            epoch: 1_700_000_000,
            up: true,
            slices: vec![slice("get", 5), slice("scan", -40)],
            workers: (0..8).map(worker).collect(),
        };
        let text = "killed worker worker-3 with -9".to_owned();
        let notes = vec![Note { at: Duration::from_secs(6), text, kind: NoteKind::Fault }];
        Known { load: Some(load), rack: Some(rack), notes }
    }

    fn picture(width: u16, height: u16, known: &Known) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a test's terminal");
        terminal.draw(|frame| draw(frame, "demo: rain", known)).expect("drawn");
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
            ] {
                assert!(picture.contains(part), "{part} is missing at {width} x {height}:\n{picture}");
            }
        }
    }

    #[test]
    fn a_tiny_terminal_and_an_empty_board_are_no_reason_to_panic() {
        for (width, height) in [(1, 1), (10, 3), (80, 24)] {
            picture(width, height, &Known::default());
            picture(width, height, &known());
        }
    }

    #[test]
    fn a_level_has_its_width_at_any_share() {
        assert_eq!(level(0.0), " ·······");
        assert_eq!(level(0.5), "████ ···");
        assert_eq!(level(7.0), "████████");
    }

    #[test]
    fn a_bar_shows_one_task_and_fills_at_the_bound() {
        assert_eq!(bar(0, 2_048, 20), 0);
        assert!(bar(1, 2_048, 20) >= 1);
        assert_eq!(bar(2_048, 2_048, 20), 20);
        assert_eq!(bar(9_999, 2_048, 20), 20);
    }
}
