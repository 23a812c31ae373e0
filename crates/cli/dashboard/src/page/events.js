// What happened: a table, newest first, and the few words that are spoken of it.

import { KeyedTable, badge, element } from "./elements.js";
import { clock, several } from "./units.js";

/** The shortest time between two announcements: a reader has to come to the end of one. */
const SPEAK_EVERY_MS = 6_000;

/** @type {Record<string, [string, "good" | "fair" | "bad" | "open"]>} */
const KINDS = { fault: ["fault", "bad"], kill: ["killed", "fair"], back: ["back", "good"], plain: ["", "open"] };

export class Events {
  constructor() {
    this.list = new KeyedTable("Events, newest first", [{ name: "when" }, { name: "kind" }, { name: "what" }], "events");
    this.empty = element("p", { class: "state" }, "Nothing has happened since the dashboard began to look.");
    this.section = element(
      "section",
      { id: "events", "aria-labelledby": "events-title" },
      element("h2", { id: "events-title" }, "Events"),
      this.empty,
      this.list.table,
    );
    this.spoken = -1;
  }

  /**
   * Shows the events; returns those that are worth speaking of.
   * @param {import("./server.js").EventState[]} events
   * @param {import("./server.js").RackState[]} racks
   */
  set(events, racks) {
    const row = (/** @type {import("./server.js").EventState} */ event) => {
      const [word, kind] = KINDS[event.kind] ?? ["", "open"];
      const at = new Date(event.at_unix_ms).toISOString();
      const rack = racks.length > 1 && event.controller !== null ? `${racks[event.controller]?.name}: ` : "";
      return {
        key: `${event.number} ${event.at_unix_ms}`,
        cells: [
          { key: at, nodes: () => [element("time", { datetime: at }, clock(event.at_unix_ms))] },
          { key: word, nodes: () => (word === "" ? [] : [badge(word, kind)]) },
          rack + event.text,
        ],
      };
    };
    this.list.set(events.map(row).reverse());
    this.empty.hidden = events.length > 0;
    const isFirst = this.spoken < 0;
    const last = events.at(-1)?.number ?? -1;
    // After a restart of the dashboard its numbers begin anew.
    const from = last < this.spoken ? -1 : this.spoken;
    const news = events.filter((event) => event.number > from && event.kind !== "plain");
    this.spoken = Math.max(last, 0);
    return isFirst ? [] : news.map((event) => event.text);
  }
}

/** Speaks to a screen reader, a sentence at a time. */
export class Speaker {
  /** @param {Element} place */
  constructor(place) {
    this.place = place;
    /** @type {string[]} */
    this.waiting = [];
    this.isResting = false;
  }

  /** @param {string[]} lines */
  say(lines) {
    this.waiting.push(...lines);
    if (this.waiting.length > 0 && !this.isResting) {
      const more = this.waiting.length - 1;
      const last = this.waiting.at(-1);
      this.place.textContent = more > 0 ? `${several(more + 1, "event")}; the last: ${last}` : `${last}`;
      this.waiting = [];
      this.isResting = true;
      setTimeout(() => {
        this.isResting = false;
        this.say([]);
      }, SPEAK_EVERY_MS);
    }
  }
}
