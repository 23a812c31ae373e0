// What is wrong with the racks, the worst first: what `sluice status` begins with. Only the headline is
// spoken, and only when it changes; the list is changed in place.

import { badge, element, setMarked, setText, show } from "./elements.js";
import { count, several } from "./units.js";

/** @typedef {import("./server.js").RackState} RackState */
/** @typedef {import("./server.js").Finding} Finding */
/** @typedef {{ key: string, rack: RackState, finding: Finding }} Told */

/** The most findings that stand in the list: who reads more of them asks `sluice status`. */
const TOLD_MAX = 50;

/** @type {Record<string, "fair" | "bad">} */
const COLOURS = { wrong: "bad", warning: "fair" };

export class Findings {
  constructor() {
    this.headline = element("p", { class: "headline", role: "status" });
    this.unheard = element("p", { class: "state" });
    this.list = element("ul", { class: "findings", role: "list" });
    this.more = element("p", { class: "state" });
    /** @type {Map<string, FindingItem>} */
    this.items = new Map();
    this.section = element(
      "section",
      { id: "wrong", "aria-labelledby": "wrong-title" },
      element("h2", { id: "wrong-title" }, "What is wrong"),
      this.headline,
      this.unheard,
      this.list,
      this.more,
    );
  }

  /** @param {RackState[]} racks */
  set(racks) {
    const all = worstFirst(racks);
    const isKnown = racks.some((rack) => rack.status !== null);
    const silent = racks.filter((rack) => rack.silence !== null);
    // A rack that is silent is no rack in order.
    const nothing = silent.length > 0 || !isKnown ? "Not known." : "Nothing wrong found.";
    setText(this.headline, all.length > 0 ? `${counted(all.map((told) => told.finding))}.` : nothing);
    this.headline.classList.toggle("calm", all.length === 0 && silent.length === 0);
    show(this.unheard, silent.length > 0);
    const last = all.some((told) => told.rack.silence !== null) ? ": what is told of it was heard last" : "";
    setText(this.unheard, `Nothing is heard of ${silent.map((rack) => rack.name).join(", ")}${last}.`);
    this.#list(all.slice(0, TOLD_MAX), racks.length > 1);
    const left = all.length - TOLD_MAX;
    show(this.more, left > 0);
    setText(this.more, `And ${count(left)} more: sluice status tells all.`);
  }

  /**
   * @param {Told[]} all
   * @param {boolean} isOneOfSeveral
   */
  #list(all, isOneOfSeveral) {
    const keys = new Set(all.map((told) => told.key));
    for (const [key, { item }] of this.items) {
      if (!keys.has(key)) {
        item.remove();
        this.items.delete(key);
      }
    }
    let place = this.list.firstElementChild;
    for (const { key, rack, finding } of all) {
      const shown = this.items.get(key) ?? new FindingItem(finding);
      this.items.set(key, shown);
      if (shown.item === place) {
        place = place.nextElementSibling;
      } else {
        this.list.insertBefore(shown.item, place);
      }
      shown.set(finding, isOneOfSeveral ? `${rack.name}: ` : "", rack.silence !== null);
    }
    show(this.list, all.length > 0);
  }
}

/** A finding in the list. */
class FindingItem {
  /** @param {Finding} finding */
  constructor({ severity, code }) {
    this.subject = element("strong");
    this.what = element("p");
    this.why = element("span");
    this.next = element("span");
    this.item = element(
      "li",
      {},
      element("p", {}, badge(severity, COLOURS[severity] ?? "fair"), " ", this.subject, " ", element("small", {}, code)),
      this.what,
      element("p", {}, element("b", {}, "Why:"), " ", this.why),
      element("p", {}, element("b", {}, "Do:"), " ", this.next),
    );
  }

  /**
   * @param {Finding} finding
   * @param {string} rack
   * @param {boolean} isOld
   */
  set({ subject, what, why, next }, rack, isOld) {
    setText(this.subject, `${rack}${subject.kind} ${subject.name}`.trim());
    setText(this.what, sentence(what));
    setMarked(this.why, sentence(why));
    setMarked(this.next, next);
    this.item.classList.toggle("old", isOld);
  }
}

/**
 * All findings; those of one severity in the racks' order.
 * @param {RackState[]} racks
 * @returns {Told[]}
 */
function worstFirst(racks) {
  /** @type {Map<string, number>} */
  const seen = new Map();
  const all = racks.flatMap((rack) =>
    (rack.status?.findings ?? []).map((finding) => {
      const { code, severity, subject } = finding;
      const of = JSON.stringify([rack.controller, severity, code, subject.kind, subject.name]);
      const before = seen.get(of) ?? 0;
      seen.set(of, before + 1);
      return { key: `${of} ${before}`, rack, finding };
    }),
  );
  return [...all.filter(isWrong), ...all.filter((told) => !isWrong(told))];
}

/** @param {Told} told */
function isWrong({ finding }) {
  return finding.severity === "wrong";
}

/**
 * How many findings there are of each severity, in words.
 * @param {Finding[]} findings
 */
export function counted(findings) {
  const wrong = findings.filter(({ severity }) => severity === "wrong").length;
  const warnings = findings.length - wrong;
  return [wrong > 0 ? `${count(wrong)} wrong` : "", warnings > 0 ? several(warnings, "warning") : ""]
    .filter((text) => text !== "")
    .join(", ");
}

/** @param {string} text */
function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
