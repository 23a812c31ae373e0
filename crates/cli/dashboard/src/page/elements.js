// Makes elements, and changes them in place: what has the focus stays where it is. Text from outside becomes
// text, never markup.

/**
 * An element with attributes and children.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/**
 * Sets an element's text, if it is another.
 * @param {Element} of
 * @param {string} text
 */
export function setText(of, text) {
  if (of.textContent !== text) {
    of.textContent = text;
  }
}

/**
 * Sets an element's text, if it is another; what stands between backticks becomes code.
 * @param {HTMLElement} of
 * @param {string} text
 */
export function setMarked(of, text) {
  if (of.dataset["text"] === text) {
    return;
  }
  of.dataset["text"] = text;
  const parts = text.split("`");
  // A backtick without another is one.
  const last = parts.length % 2 === 0 ? `\`${parts.pop()}` : "";
  of.replaceChildren(...parts.map((part, place) => (place % 2 === 0 ? part : element("code", {}, part))), last);
}

/**
 * Shows or hides an element.
 * @param {HTMLElement} of
 * @param {boolean} shown
 */
export function show(of, shown) {
  if (of.hidden === shown) {
    of.hidden = !shown;
  }
}

/**
 * A cell: a text, or nodes that stay while their key is the same.
 * @typedef {string | { key: string, nodes: () => (Node | string)[] }} Cell
 * @typedef {{ key: string, cells: Cell[] }} Row
 * @typedef {{ name: string, right?: boolean }} Column
 */

/** A table whose rows are kept by their keys. */
export class KeyedTable {
  /**
   * @param {string} caption
   * @param {Column[]} columns
   * @param {string} [kind] a class beside that of all tables
   */
  constructor(caption, columns, kind = "") {
    this.columns = columns;
    /** @type {Map<string, HTMLTableRowElement>} */
    this.rows = new Map();
    this.caption = element("caption", {}, caption);
    // On narrow screens rows are cards, which would take the table's roles away.
    const heading = (/** @type {Column} */ column) => {
      const name = column.name === "" ? element("span", { class: "unseen" }, "change") : column.name;
      const cell = element("th", { scope: "col", role: "columnheader" }, name);
      cell.classList.toggle("right", column.right === true);
      return cell;
    };
    const head = element("tr", { role: "row" }, ...columns.map(heading));
    this.body = element("tbody", { role: "rowgroup" });
    this.table = element(
      "table",
      { class: `cards ${kind}`.trim(), role: "table" },
      this.caption,
      element("thead", { role: "rowgroup" }, head),
      this.body,
    );
  }

  /**
   * Shows these rows, in this order.
   * @param {Row[]} rows
   */
  set(rows) {
    const keys = new Set(rows.map((row) => row.key));
    for (const [key, row] of this.rows) {
      if (!keys.has(key)) {
        row.remove();
        this.rows.delete(key);
      }
    }
    let place = this.body.firstElementChild;
    for (const { key, cells } of rows) {
      const row = this.rows.get(key) ?? this.#made(key);
      if (row === place) {
        place = place.nextElementSibling;
      } else {
        this.body.insertBefore(row, place);
      }
      cells.forEach((cell, column) => setCell(/** @type {HTMLElement} */ (row.children[column]), cell));
    }
    show(this.table, rows.length > 0);
  }

  /** @param {string} key */
  #made(key) {
    const cell = (/** @type {Column} */ column, /** @type {number} */ place) => {
      if (place === 0) {
        return element("th", { scope: "row", role: "rowheader" });
      }
      const made = element("td", { role: "cell", "data-of": column.name });
      made.classList.toggle("right", column.right === true);
      return made;
    };
    const row = element("tr", { role: "row" }, ...this.columns.map(cell));
    this.rows.set(key, row);
    return row;
  }
}

/**
 * @param {HTMLElement} place
 * @param {Cell} cell
 */
function setCell(place, cell) {
  if (typeof cell === "string") {
    setText(place, cell);
  } else if (place.dataset["key"] !== cell.key) {
    place.dataset["key"] = cell.key;
    place.replaceChildren(...cell.nodes());
  }
}

/**
 * A word with a colour.
 * @param {string} word
 * @param {"good" | "fair" | "bad" | "open"} kind
 */
export function badge(word, kind) {
  return element("span", { class: `badge ${kind}` }, word);
}
