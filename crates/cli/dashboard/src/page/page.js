// The page: asks its dashboard once a second, shows what it says, and says so when it says nothing.

import * as changes from "./changes.js";
import { Report } from "./document.js";
import { KeyedTable, element, setText, show } from "./elements.js";
import { Events, Speaker } from "./events.js";
import { Findings } from "./findings.js";
import { Rack, overviewRow } from "./rack.js";
import * as server from "./server.js";
import { clock, count, rate, span, time, zone } from "./units.js";

/** How often the state is asked for, and the charts. */
const STATE_EVERY_MS = 1_000;
const CHARTS_EVERY_MS = 2_000;
/** How wide a window is for each rack that stands in it beside others. */
const RACK_WIDTH_PX = 1_100;

/** @param {string} id */
const place = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
const main = place("main");
const speaker = new Speaker(place("news"));
const findings = new Findings();
const events = new Events();
const report = new Report();
/** @type {Rack[]} */
let racks = [];
/** The rack that the address names. */
let shown = 0;
/** How many racks stand beside each other. */
let columns = 1;
/** Since when the dashboard is silent, if it is. @type {number | null} */
let silentSince = null;
let wasSilent = new Set();
let isAsking = false;
let isDrawing = false;

const overview = new KeyedTable("Racks and spines", [
  { name: "name" },
  { name: "kind" },
  { name: "state" },
  { name: "wrong" },
  { name: "workers", right: true },
  { name: "tasks/s", right: true },
  { name: "tasks wait", right: true },
  { name: "differ from peers", right: true },
]);
const racksPlace = element("div", { class: "racks" });
const overviewSection = element(
  "section",
  { id: "overview", "aria-labelledby": "overview-title" },
  element("h2", { id: "overview-title" }, "All racks"),
  overview.table,
);
const load = new KeyedTable("Load: the last second", [
  { name: "type" },
  { name: "due/s", right: true },
  { name: "replies/s", right: true },
  { name: "p50", right: true },
  { name: "p99", right: true },
  { name: "p99.9", right: true },
]);
const loadLine = element("p", { class: "state" });
const loadCharts = element("div", { class: "charts" });
const loadSection = element(
  "section",
  { id: "load", "aria-labelledby": "load-title" },
  element("h2", { id: "load-title" }, "Load"),
  loadLine,
  load.table,
  loadCharts,
);

changes.prepare((said) => {
  setText(place("done"), said);
  show(place("done"), true);
  speaker.say([said]);
  setTimeout(() => show(place("done"), false), 10_000);
  ask();
});
window.addEventListener("hashchange", () => {
  select();
  racks[shown]?.heading.focus();
  ask();
  draw();
});
window.addEventListener("resize", () => {
  if (columns !== fitting()) {
    select();
    ask();
    draw();
  }
});
// A browser lets a page that nobody sees ask seldom: what it shows then is old.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    ask();
    draw();
  }
});
/** Asks for the state and shows it. */
async function ask() {
  if (isAsking) {
    return;
  }
  isAsking = true;
  try {
    const state = await server.state();
    const wasLost = silentSince !== null;
    silentSince = null;
    show(place("lost"), false);
    document.body.classList.remove("stale");
    set(state);
    if (wasLost) {
      speaker.say(["The dashboard answers again"]);
      draw();
    }
  } catch (why) {
    lose(why);
  } finally {
    isAsking = false;
  }
}

/** @param {unknown} why */
function lose(why) {
  const isFirst = silentSince === null;
  silentSince ??= Date.now();
  const since = `since ${clock(silentSince)} (for ${span(Date.now() - silentSince)})`;
  const text =
    why instanceof server.Refused
      ? why.message
      : `The dashboard at ${location.host} does not answer ${since}: is it still running? What stands below is what ` +
        "was heard last. The page goes on by itself.";
  setText(place("lost"), text);
  show(place("lost"), true);
  document.body.classList.add("stale");
  if (isFirst) {
    speaker.say([text]);
  }
}

/** @param {import("./server.js").DashboardState} state */
function set(state) {
  setText(place("title"), state.title);
  document.title = `${state.title} · Sluice`;
  const who = state.visitor.name === null ? "" : ` You are ${state.visitor.name}.`;
  const may = state.visitor.may_change ? "" : " You may look; changes take an operator.";
  // Logs and findings have UTC: who compares them has to know which clock this is.
  const at = `${clock(state.at_unix_ms)} ${zone(state.at_unix_ms)}`;
  setText(place("made"), `Asked at ${at}, once a second.${who}${may}`);
  if (state.document !== null) {
    setText(place("made"), `Looked at ${at}, once a second.`);
    if (!report.section.isConnected) {
      main.replaceChildren(report.section);
    }
    report.set(state.document).catch(lose);
    return;
  }
  if (racks.length !== state.racks.length) {
    racks = state.racks.map((_, number) => new Rack(number));
    const several = racks.length > 1 ? [overviewSection] : [];
    racksPlace.replaceChildren(...racks.map((rack) => rack.section));
    main.replaceChildren(findings.section, ...several, racksPlace, loadSection, events.section);
    select();
    draw();
  }
  const loaded = new Set(state.load?.types.map((type) => type.name));
  racks.forEach((rack, number) => {
    const of = state.racks[number];
    if (of !== undefined && isInView(number)) {
      rack.set(of, state.visitor.may_change, loaded);
    }
  });
  findings.set(state.racks);
  overview.set(state.racks.map((rack, number) => overviewRow(rack, number, number === shown)));
  show(loadSection, state.load !== null);
  if (state.load !== null) {
    setLoad(state.load);
  }
  speaker.say([...silences(state), ...events.set(state.events, state.racks)]);
}

/**
 * What is worth saying of racks that fell silent or came back.
 * @param {import("./server.js").DashboardState} state
 */
function silences(state) {
  const silent = new Set(state.racks.filter((rack) => rack.silence !== null).map((rack) => rack.controller));
  const said = state.racks.flatMap((rack) => {
    const [is, was] = [silent.has(rack.controller), wasSilent.has(rack.controller)];
    return is === was ? [] : [is ? `Nothing is heard of ${rack.name}` : `${rack.name} answers again`];
  });
  wasSilent = silent;
  return said;
}

/** @param {import("./server.js").LoadState} of */
function setLoad(of) {
  const late = of.late > 0 ? ` (${count(of.late)} late)` : "";
  setText(
    loadLine,
    `${of.elapsed_s.toFixed(0)} of ${of.length_s.toFixed(0)} s: ${count(of.sent)} sent, ${count(of.replied)} replied, ` +
      `${count(of.refused)} refused${late}, ${count(of.unknown)} unknown, ${count(of.outstanding)} outstanding.`,
  );
  load.set(
    of.types.map((type) => ({
      key: type.name,
      cells: [
        type.name,
        rate(type.due_per_s),
        rate(type.replied_per_s),
        time(type.latency_p50_ns),
        time(type.latency_p99_ns),
        time(type.latency_p999_ns),
      ],
    })),
  );
}

/** Shows the rack that the address names; the first one if it names none. */
function select() {
  const number = Number(/^#rack-(\d+)$/.exec(location.hash)?.[1] ?? 0);
  shown = number < racks.length ? number : 0;
  columns = fitting();
  document.body.classList.toggle("wide", columns > 1);
  racks.forEach((rack, number) => show(rack.section, isInView(number)));
}

/** How many racks the window has room for beside each other. */
function fitting() {
  return Math.max(1, Math.min(racks.length, Math.floor(window.innerWidth / RACK_WIDTH_PX)));
}

/**
 * Whether a rack is in view: the one that the address names, and those after it for which there is room.
 * @param {number} number
 */
function isInView(number) {
  const first = Math.min(shown, racks.length - columns);
  return number >= first && number < first + columns;
}

/** Fetches the charts of what is shown. */
async function draw() {
  if (isDrawing || document.hidden || silentSince !== null) {
    return;
  }
  isDrawing = true;
  try {
    for (const rack of racks.filter((rack) => isInView(rack.number))) {
      await rack.draw();
    }
    if (!loadSection.hidden && loadSection.isConnected) {
      loadCharts.replaceChildren(...(await server.piece("/charts/load.html")));
    }
  } catch {
    // The state says what is wrong; the charts stay as they are.
  } finally {
    isDrawing = false;
  }
}

ask();
setInterval(ask, STATE_EVERY_MS);
setInterval(draw, CHARTS_EVERY_MS);
