// One rack: its switch, slices, workers, types and hosts, and its charts.

import * as changes from "./changes.js";
import { KeyedTable, badge, element, setText, show } from "./elements.js";
import { counted } from "./findings.js";
import * as server from "./server.js";
import { builds, standing } from "./standing.js";
import { NOTHING, clock, count, digits, rate, several, span, time, utc } from "./units.js";

/** @typedef {import("./elements.js").Cell} Cell */
/** @typedef {{ type: number, name: string, slice: string | null, isUnused: boolean }} TypePlace */

const SLICE_COLUMNS = [
  { name: "slice" },
  { name: "takes tasks" },
  { name: "balance" },
  { name: "tasks/s", right: true },
  { name: "wait at worker", right: true },
  { name: "service", right: true },
  { name: "workers", right: true },
  { name: "quotas", right: true },
  { name: "may wait", right: true },
  { name: "refused" },
];
const WORKER_COLUMNS = [
  { name: "worker" },
  { name: "slice" },
  { name: "phase" },
  { name: "tasks/s", right: true },
  { name: "service", right: true },
  { name: "waits", right: true },
  { name: "quota", right: true },
  { name: "renewed ago", right: true },
  { name: "at" },
  { name: "" },
];

export class Rack {
  /** @param {number} number */
  constructor(number) {
    this.number = number;
    const id = `rack-${number}`;
    /** What was heard last, for buttons that stay. @type {Map<number, string>} */
    this.sliceOf = new Map();
    /** @type {Map<number, string | null>} */
    this.mapOf = new Map();
    /** @type {changes.Choice[]} */
    this.choices = [];
    this.heading = element("h2", { id: `${id}-title`, tabindex: "-1" });
    this.lost = element("p", { class: "notice lost" });
    this.line = element("p", { class: "state" });
    this.refusal = element("p", { class: "state" });
    this.standing = element("p", { class: "state" });
    this.slices = new KeyedTable("Slices", SLICE_COLUMNS);
    this.charts = element("div", { class: "charts" });
    this.workers = new KeyedTable("Workers", WORKER_COLUMNS);
    this.types = new KeyedTable("Types of tasks", [{ name: "type" }, { name: "goes to" }, { name: "" }]);
    this.clients = new KeyedTable("Clients", [{ name: "client" }, { name: "at" }, { name: "renewed ago", right: true }]);
    this.servers = new KeyedTable("Servers", [{ name: "server" }, { name: "at" }, { name: "renewed ago", right: true }]);
    const counted = [{ name: "what" }, { name: "how many", right: true }];
    this.counters = new KeyedTable("The switch counted", counted);
    this.refused = new KeyedTable("The controller refused calls for", counted);
    this.more = element(
      "details",
      {},
      element("summary", {}, "Hosts and counters"),
      this.clients.table,
      this.servers.table,
      this.counters.table,
      this.refused.table,
    );
    this.body = element("div", {}, this.line, this.standing, this.refusal, this.slices.table, this.charts, this.workers.table, this.types.table, this.more);
    this.section = element("section", { id, "aria-labelledby": `${id}-title` }, this.heading, this.lost, this.body);
  }

  /**
   * Shows a rack's state.
   * @param {import("./server.js").RackState} rack
   * @param {boolean} mayChange
   * @param {Set<string>} loaded the types of the load
   */
  set(rack, mayChange, loaded) {
    setText(this.heading, rack.name);
    const { silence, status } = rack;
    show(this.lost, silence !== null);
    if (silence !== null) {
      const last = status === null ? "" : " What stands below is what was heard last.";
      const for_ = `since ${clock(silence.since_unix_ms)} (for ${span(silence.lasts_ms)})`;
      setText(this.lost, `Nothing is heard of ${rack.name} ${for_}: ${silence.why}.${last} The page goes on by itself.`);
    }
    this.section.classList.toggle("stale", silence !== null);
    show(this.body, status !== null);
    if (status === null) {
      return;
    }
    const isWorking = mayChange && rack.unchangeable === null;
    this.#heading(rack, status, mayChange);
    this.slices.set(status.slices.map((slice, place) => sliceRow(slice, place, rack, status)));
    this.choices = status.slices.map(choice);
    this.workers.set(
      [...status.workers].sort((one, other) => (one.name < other.name ? -1 : 1)).map((worker) => ({
        key: `${worker.worker}`,
        cells: this.#worker(worker, isWorking, silence !== null),
      })),
    );
    const spines = status.workers.some((worker) => worker.workers > 0);
    setText(this.workers.caption, spines ? "Leaves: the racks below" : "Workers");
    this.types.set(typesOf(status, loaded).map((type) => this.#type(type, isWorking, silence !== null)));
    this.clients.set(status.clients.map(host));
    this.servers.set(status.servers.map(host));
    this.counters.set(counts(status.switch.counters));
    this.refused.set(counts(status.refused));
  }

  /** Fetches the charts anew. */
  async draw() {
    const figures = await server.piece(`/charts/${this.number}.html`);
    this.charts.replaceChildren(...figures);
  }

  /**
   * @param {import("./server.js").RackState} rack
   * @param {import("./server.js").RackStatus} status
   * @param {boolean} mayChange
   */
  #heading(rack, status, mayChange) {
    const { link, at, epoch } = status.switch;
    const said = {
      up: `Its switch at ${at} is up, epoch ${epoch}`,
      down: "Its controller cannot reach its switch",
      reading: "Its controller reads the switch's tables",
      too_small: "Its switch is too small for the plan",
      superseded: "Its switch obeys another controller",
      standby: "It waits for the lead, and does not know hosts and slices",
    }[link] ?? "Nothing is known of its switch yet";
    const ends = status.ending.map((end) => `; ${end.certificate} ends ${utc(end.unix_s)}`);
    const isSpine = status.workers.some((worker) => worker.workers > 0);
    const leaves = status.workers.length;
    const hosts = isSpine ? `${leaves} ${leaves === 1 ? "leaf" : "leaves"}` : several(status.workers.length, "worker");
    const totals = `${hosts}, ${several(status.clients.length, "client")}`;
    setText(this.line, `${said}; controller ${rack.controller}; ${totals}${ends.join("")}.`);
    this.line.classList.toggle("notice", link !== "up");
    const who = [standing(status), builds(status)].filter((text) => text !== "").join(" ");
    show(this.standing, who !== "");
    setText(this.standing, who);
    show(this.refusal, mayChange && rack.unchangeable !== null);
    setText(this.refusal, `No changes here: ${rack.unchangeable}.`);
  }

  /**
   * @param {import("./server.js").WorkerStatus} worker
   * @param {boolean} mayChange
   * @param {boolean} isSilent
   * @returns {Cell[]}
   */
  #worker(worker, mayChange, isSilent) {
    const { name, recent, differs, labels, workers } = worker;
    const shown = name === "" ? "?" : name;
    const below = [workers > 0 ? several(workers, "worker") : "", labels.length > 0 ? labels.join("+") : ""];
    const notes = below.filter((note) => note !== "");
    const title = {
      key: `${shown} ${notes} ${differs}`,
      nodes: () => [
        shown,
        ...(differs === null ? [] : [" ", badge("differs", "fair"), element("small", {}, differs)]),
        ...notes.map((note) => element("small", {}, note)),
      ],
    };
    const move = (/** @type {Event} */ event) => {
      const isOff = /** @type {Element} */ (event.currentTarget).getAttribute("aria-disabled") === "true";
      if (!isOff) {
        changes.moveWorker(this.number, name, this.sliceOf.get(worker.worker) ?? worker.slice, this.choices);
      }
    };
    this.sliceOf.set(worker.worker, worker.slice);
    return [
      title,
      worker.slice,
      phase(worker.phase),
      rate(recent?.tasks_per_s),
      time(recent?.service_ns),
      time(recent?.wait_ns),
      `${worker.quota}`,
      time(worker.renewed_ago_ns),
      worker.at,
      mayChange && name !== "" ? action("Move…", `Move worker ${name}`, isSilent, move) : "",
    ];
  }

  /**
   * @param {TypePlace} type
   * @param {boolean} mayChange
   * @param {boolean} isSilent
   */
  #type({ type, name, slice, isUnused }, mayChange, isSilent) {
    const label = name === `${type}` ? `type ${type}` : `${name} (${type})`;
    this.mapOf.set(type, slice);
    const map = (/** @type {Event} */ event) => {
      const isOff = /** @type {Element} */ (event.currentTarget).getAttribute("aria-disabled") === "true";
      if (!isOff) {
        changes.mapType(this.number, name, this.mapOf.get(type) ?? null, this.choices);
      }
    };
    const cells = /** @type {Cell[]} */ ([
      label,
      goesTo(slice, isUnused),
      mayChange ? action("Send elsewhere…", `Send type ${name} elsewhere`, isSilent, map) : "",
    ]);
    return { key: `${type}`, cells };
  }
}

/**
 * A button in a cell.
 * @param {string} text
 * @param {string} name
 * @param {boolean} isOff
 * @param {(event: Event) => void} then
 * @returns {Cell}
 */
function action(text, name, isOff, then) {
  return {
    key: `${name} ${isOff}`,
    nodes: () => {
      const button = element("button", { type: "button", "aria-label": name, "aria-haspopup": "dialog" }, text);
      if (isOff) {
        button.setAttribute("aria-disabled", "true");
      }
      button.addEventListener("click", then);
      return [button];
    },
  };
}

/**
 * @param {string} word
 * @returns {Cell}
 */
function phase(word) {
  const kind = word === "open" ? "good" : word === "dying" ? "bad" : "fair";
  return { key: word, nodes: () => [badge(word, kind)] };
}

/**
 * @param {import("./server.js").SliceStatus} slice
 * @param {number} place
 * @param {import("./server.js").RackState} rack
 * @param {import("./server.js").RackStatus} status
 */
function sliceRow(slice, place, rack, status) {
  const work = rack.slices.find((work) => work.name === slice.name);
  const late = slice.late_in_switch + slice.late_at_worker;
  const nobody = slice.classes.filter((one) => one.refused).map((one) => one.needs.join("+") || "none");
  const refused = [
    slice.refused_busy > 0 ? `${count(slice.refused_busy)} busy` : "",
    late > 0 ? `${count(late)} late` : "",
    nobody.length > 0 ? `nobody for ${nobody.join(", ")}` : "",
  ].filter((text) => text !== "");
  const types = slice.types.map((type) => status.types.find((known) => known.type === type)?.name ?? `${type}`);
  const cells = /** @type {Cell[]} */ ([
    {
      key: `${slice.name} ${types}`,
      nodes: () => [
        element("span", { class: `dot c${place % 8}`, "aria-hidden": "true" }),
        slice.name,
        element("small", {}, types.length > 0 ? `types ${types.join(", ")}` : "no types"),
      ],
    },
    { key: `${slice.open}`, nodes: () => [slice.open ? badge("yes", "good") : badge("no", "bad")] },
    balance(slice.balance),
    rate(work?.tasks_per_s),
    time(work?.wait_ns),
    time(work?.service_ns),
    count(slice.workers),
    count(slice.quotas),
    may(slice),
    refused.join("; ") || NOTHING,
  ]);
  return { key: slice.name, cells };
}

/** @param {import("./server.js").SliceStatus} slice */
function may(slice) {
  if (slice.target_ns === 0) {
    return count(slice.limit);
  }
  return `${slice.measured_limit ?? "?"} for ${time(slice.target_ns)}`;
}

/** @param {number | null} balance */
function balance(balance) {
  if (balance === null) {
    return "not known yet";
  }
  return balance < 0 ? `${several(-balance, "task")} wait${balance === -1 ? "s" : ""}` : `${several(balance, "token")} parked`;
}

/** @param {import("./server.js").SliceStatus} slice */
function choice(slice) {
  return { value: slice.name, text: `${slice.name}: ${several(slice.workers, "worker")}, ${balance(slice.balance)}` };
}

/** @param {import("./server.js").HostStatus} host */
function host(host) {
  return { key: host.name + host.at, cells: [host.name || "?", host.at, time(host.renewed_ago_ns)] };
}

/** @param {Record<string, number>} counted */
function counts(counted) {
  const some = Object.entries(counted).filter(([, number]) => number > 0);
  return some.map(([name, number]) => ({ key: name, cells: [name, count(number)] }));
}

/**
 * Where a type's tasks go. That nobody would serve a type which nobody uses is no trouble.
 * @param {string | null} slice
 * @param {boolean} isUnused
 * @returns {Cell}
 */
function goesTo(slice, isUnused) {
  if (slice !== null) {
    return { key: `to ${slice}`, nodes: () => [slice] };
  }
  const word = isUnused ? element("span", { class: "state" }, "nowhere: not used here") : badge("nowhere: refused", "bad");
  return { key: word.textContent ?? "", nodes: () => [word] };
}

/**
 * All types that are known, and where each goes; those that nobody uses last.
 * @param {import("./server.js").RackStatus} status
 * @param {Set<string>} loaded
 */
function typesOf(status, loaded) {
  /** @type {Map<number, TypePlace>} */
  const types = new Map();
  for (const { type, name, unused } of status.types) {
    types.set(type, { type, name, slice: null, isUnused: unused && !loaded.has(name) });
  }
  for (const slice of status.slices) {
    for (const type of slice.types) {
      types.set(type, { type, name: types.get(type)?.name ?? `${type}`, slice: slice.name, isUnused: false });
    }
  }
  return [...types.values()].sort((one, other) => Number(one.isUnused) - Number(other.isUnused) || one.type - other.type);
}

/**
 * A rack in the table of all racks.
 * @param {import("./server.js").RackState} rack
 * @param {number} number
 * @param {boolean} isShown
 */
export function overviewRow(rack, number, isShown) {
  const waiting = rack.status?.slices.reduce((sum, slice) => sum + Math.max(0, -(slice.balance ?? 0)), 0);
  const rates = rack.slices.map((slice) => slice.tasks_per_s).filter((rate) => rate !== null);
  const link = rack.status?.switch.link;
  const [word, kind] = /** @type {[string, "good" | "fair" | "bad"]} */ (
    rack.silence !== null ? [`silent for ${span(rack.silence.lasts_ms)}`, "bad"] : link === "up" ? ["up", "good"] : [link ?? "asked", "fair"]
  );
  const differing = rack.status?.workers.filter((worker) => worker.differs !== null).length ?? 0;
  const wrong = counted(rack.status?.findings ?? []);
  const worst = rack.status?.findings[0]?.severity === "wrong" ? "bad" : "fair";
  const cells = /** @type {Cell[]} */ ([
    {
      key: `${rack.name} ${isShown}`,
      nodes: () => {
        const link = element("a", { href: `#rack-${number}` }, rack.name);
        if (isShown) {
          link.setAttribute("aria-current", "true");
        }
        return [link];
      },
    },
    rack.kind,
    { key: word, nodes: () => [badge(word, kind)] },
    { key: wrong, nodes: () => [wrong === "" ? NOTHING : badge(wrong, worst)] },
    count(rack.status?.workers.reduce((sum, worker) => sum + Math.max(1, worker.workers), 0) ?? 0),
    rates.length > 0 ? digits(rates.reduce((one, other) => one + other, 0)) : NOTHING,
    waiting === undefined ? NOTHING : count(waiting),
    differing > 0 ? several(differing, "worker") : NOTHING,
  ]);
  return { key: `${number}`, cells };
}
