// A study as it grows, or two results beside each other: the report's own page, put in anew when it changed.

import { element, setText, show } from "./elements.js";
import * as server from "./server.js";
import { span } from "./units.js";

export class Report {
  constructor() {
    this.line = element("p", { class: "state" });
    this.why = element("p", { class: "notice" });
    this.body = element("div", { class: "report" });
    this.section = element("div", {}, this.line, this.why, this.body);
    this.version = "";
  }

  /** @param {NonNullable<import("./server.js").DashboardState["document"]>} state */
  async set(state) {
    show(this.why, state.why !== null);
    setText(this.why, state.why === null ? "" : `${state.why}.`);
    const grew = state.grew_ago_ms === null ? "" : ` Its last run ended ${span(state.grew_ago_ms)} ago.`;
    const how = { true: "The study is complete.", false: "The study grows: points are still missing." };
    show(this.line, state.complete !== null);
    setText(this.line, `${how[state.complete === true ? "true" : "false"]}${grew}`);
    if (state.version !== this.version) {
      const pieces = await server.piece("/document.html");
      this.version = state.version;
      this.#replace(pieces);
    }
  }

  /**
   * Puts the pieces in; what was open, chosen and focused stays so.
   * @param {Element[]} pieces
   */
  #replace(pieces) {
    const summaries = [...this.body.querySelectorAll("details[open] > summary")].map(nameOf);
    const focusedSummary = document.activeElement?.tagName === "SUMMARY" ? nameOf(document.activeElement) : null;
    const chosen = [...this.body.querySelectorAll("input:checked")].map((one) => one.id);
    const focused = document.activeElement?.id ?? "";
    const hadFocus = this.body.contains(document.activeElement);
    this.body.replaceChildren(...pieces);
    for (const summary of this.body.querySelectorAll("details > summary")) {
      if (summaries.includes(nameOf(summary))) {
        summary.parentElement?.setAttribute("open", "");
      }
      if (hadFocus && summary instanceof HTMLElement && nameOf(summary) === focusedSummary) {
        summary.focus();
      }
    }
    for (const id of chosen) {
      const input = document.getElementById(id);
      if (input instanceof HTMLInputElement) {
        input.checked = true;
      }
    }
    if (hadFocus && focused !== "") {
      document.getElementById(focused)?.focus();
    }
  }
}

/**
 * What a summary is called, whatever it has grown to.
 * @param {Element} summary
 */
function nameOf(summary) {
  return (summary.textContent ?? "").replace(/ · [\d,]+ points?$/, "");
}
