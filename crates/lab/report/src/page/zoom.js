// Zooms into a panel's main picture: a rectangle that is dragged, or the buttons below it. Curves are stretched
// within their frame, markers keep their size, and the axes get new numbers. Without JavaScript the picture is
// what it was.

/**
 * An axis: values between `low` and `high` lie between the pixels `from` and `to`; `one` is a unit of its numbers.
 * @typedef {{ isLog: boolean, low: number, high: number, from: number, to: number, one: number }} Axis
 * @typedef {{ left: number, right: number, top: number, bottom: number }} View
 */

const SVG = "http://www.w3.org/2000/svg";
const NUMBER = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 6 });
/** The least part of the whole picture that is shown, and the least drag that is one. */
const LEAST = 0.01;
const DRAG_PX = 6;

/**
 * @param {string | undefined} text
 * @returns {Axis}
 */
function axisOf(text) {
  const [steps, ...numbers] = (text ?? "").split(" ");
  const [low = 0, high = 1, from = 0, to = 1, one = 1] = numbers.map(Number);
  return { isLog: steps === "log", low, high, from, to, one };
}

/**
 * The axis whose ends are two pixels of another one.
 * @param {Axis} axis
 * @param {number} from
 * @param {number} to
 * @returns {Axis}
 */
function part(axis, from, to) {
  const value = (/** @type {number} */ px) => {
    const share = (px - axis.from) / (axis.to - axis.from);
    return axis.isLog ? axis.low * (axis.high / axis.low) ** share : axis.low + share * (axis.high - axis.low);
  };
  return { ...axis, low: value(from), high: value(to) };
}

/**
 * The round numbers on an axis, and their pixels.
 * @param {Axis} axis
 * @param {number} most
 */
function ticks(axis, most) {
  const [low, high] = [axis.low / axis.one, axis.high / axis.one];
  const values = [];
  if (axis.isLog && high / low > 8) {
    for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
      values.push(...[1, 2, 5].map((mantissa) => mantissa * 10 ** power));
    }
  } else {
    const rough = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5].find((mantissa) => mantissa * power >= rough) ?? 10);
    for (let count = Math.ceil(low / step); count * step <= high; count += 1) {
      values.push(count * step);
    }
  }
  const share = (/** @type {number} */ value) =>
    axis.isLog ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  const shown = values.filter((value) => value >= low && value <= high);
  return shown.map((value) => ({ px: axis.from + share(value) * (axis.to - axis.from), text: NUMBER.format(value) }));
}

/** A picture, and the part of it that is shown. */
class Zoom {
  /** @param {SVGSVGElement} svg */
  constructor(svg) {
    this.svg = svg;
    this.x = axisOf(svg.dataset["x"]);
    this.y = axisOf(svg.dataset["y"]);
    this.inner = /** @type {SVGSVGElement} */ (svg.querySelector("svg"));
    this.inner.setAttribute("preserveAspectRatio", "none");
    /** @type {View} */
    this.whole = { left: this.x.from, right: this.x.to, top: this.y.to, bottom: this.y.from };
    this.view = this.whole;
    this.drawn = document.createElementNS(SVG, "g");
    svg.prepend(this.drawn);
    this.#letDrag();
  }

  /**
   * Makes the view larger or smaller around its middle, and moves it by a share of itself.
   * @param {number} times
   * @param {number} [right]
   * @param {number} [down]
   */
  change(times, right = 0, down = 0) {
    const { left, right: end, top, bottom } = this.view;
    const [wide, high] = [(end - left) * times, (bottom - top) * times];
    const [x, y] = [(left + end) / 2 + right * wide, (top + bottom) / 2 + down * high];
    this.show({ left: x - wide / 2, right: x + wide / 2, top: y - high / 2, bottom: y + high / 2 });
  }

  /**
   * Shows a part of the picture.
   * @param {View} wanted
   */
  show(wanted) {
    const within = (/** @type {number[]} */ [from = 0, to = 0], /** @type {number} */ low, /** @type {number} */ high) => {
      const length = Math.min(Math.max(to - from, LEAST * (high - low)), high - low);
      const start = Math.min(Math.max(from, low), high - length);
      return /** @type {[number, number]} */ ([start, start + length]);
    };
    const [left, right] = within([wanted.left, wanted.right], this.whole.left, this.whole.right);
    const [top, bottom] = within([wanted.top, wanted.bottom], this.whole.top, this.whole.bottom);
    this.view = { left, right, top, bottom };
    this.inner.setAttribute("viewBox", `${left} ${top} ${right - left} ${bottom - top}`);
    const isWhole = right - left >= this.whole.right - this.whole.left && bottom - top >= this.whole.bottom - this.whole.top;
    this.svg.classList.toggle("zoomed", !isWhole);
    this.#placeMarks();
    this.drawn.replaceChildren(...(isWhole ? [] : this.#axes()));
  }

  #placeMarks() {
    const { left, right, top, bottom } = this.view;
    const wide = (this.whole.right - this.whole.left) / (right - left);
    const high = (this.whole.bottom - this.whole.top) / (bottom - top);
    for (const mark of /** @type {NodeListOf<SVGElement>} */ (this.svg.querySelectorAll("[data-at]"))) {
      const [x = 0, y = 0] = (mark.dataset["at"] ?? "").split(" ").map(Number);
      const isInside = x >= left && x <= right && y >= top && y <= bottom;
      mark.classList.toggle("outside", !isInside);
      const [toX, toY] = [this.whole.left + (x - left) * wide, this.whole.top + (y - top) * high];
      mark.setAttribute("transform", `translate(${toX - x} ${toY - y})`);
    }
  }

  #axes() {
    const { left, right, top, bottom } = this.whole;
    const xs = ticks(part(this.x, this.view.left, this.view.right), 5);
    const ys = ticks(part(this.y, this.view.bottom, this.view.top), 7);
    const grid = document.createElementNS(SVG, "path");
    grid.setAttribute("class", "grid");
    const lines = [...ys.map(({ px }) => `M${left} ${px}H${right}`), ...xs.map(({ px }) => `M${px} ${top}V${bottom}`)];
    grid.setAttribute("d", lines.join(""));
    const label = (/** @type {string} */ text, /** @type {string} */ anchor, /** @type {number} */ x, /** @type {number} */ y) => {
      const made = document.createElementNS(SVG, "text");
      made.setAttribute("text-anchor", anchor);
      made.setAttribute("x", String(x));
      made.setAttribute("y", String(y));
      made.textContent = text;
      return made;
    };
    return [
      grid,
      ...ys.map(({ px, text }) => label(text, "end", left - 5, px + 3.5)),
      ...xs.map(({ px, text }) => label(text, "middle", px, bottom + 14)),
    ];
  }

  /** A rectangle that is dragged becomes the view. */
  #letDrag() {
    const box = document.createElementNS(SVG, "rect");
    box.setAttribute("class", "dragged");
    /** @type {DOMPoint | undefined} */
    let from;
    const at = (/** @type {PointerEvent} */ event) =>
      new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM()?.inverse());
    const sides = (/** @type {DOMPoint} */ one, /** @type {DOMPoint} */ other) => ({
      left: Math.min(one.x, other.x),
      right: Math.max(one.x, other.x),
      top: Math.min(one.y, other.y),
      bottom: Math.max(one.y, other.y),
    });
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button === 0 && event.pointerType !== "touch") {
        from = at(event);
        this.svg.setPointerCapture(event.pointerId);
        event.preventDefault();
      }
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (from === undefined) {
        return;
      }
      const { left, right, top, bottom } = sides(from, at(event));
      const size = { x: left, y: top, width: right - left, height: bottom - top };
      Object.entries(size).forEach(([name, value]) => box.setAttribute(name, String(value)));
      this.svg.append(box);
    });
    this.svg.addEventListener("pointercancel", () => {
      from = undefined;
      box.remove();
    });
    this.svg.addEventListener("pointerup", (event) => {
      const began = from;
      from = undefined;
      box.remove();
      if (began === undefined) {
        return;
      }
      const drag = sides(began, at(event));
      if (drag.right - drag.left < DRAG_PX || drag.bottom - drag.top < DRAG_PX) {
        return;
      }
      const { left, right, top, bottom } = this.view;
      const wide = (right - left) / (this.whole.right - this.whole.left);
      const high = (bottom - top) / (this.whole.bottom - this.whole.top);
      this.show({
        left: left + (drag.left - this.whole.left) * wide,
        right: left + (drag.right - this.whole.left) * wide,
        top: top + (drag.top - this.whole.top) * high,
        bottom: top + (drag.bottom - this.whole.top) * high,
      });
    });
  }
}

/**
 * The buttons below a figure; with the focus on one of them, arrows move the view.
 * @param {HTMLElement} figure
 */
function addButtons(figure) {
  const svgs = /** @type {NodeListOf<SVGSVGElement>} */ (figure.querySelectorAll("svg[data-x]"));
  const zooms = [...svgs].map((svg) => new Zoom(svg));
  const bar = document.createElement("div");
  bar.className = "zoom";
  bar.title = "Drag over the picture, or use these; arrow keys move it";
  const button = (/** @type {string} */ text, /** @type {(zoom: Zoom) => void} */ act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", () => zooms.forEach(act));
    bar.append(made);
  };
  button("Zoom in", (zoom) => zoom.change(0.5));
  button("Zoom out", (zoom) => zoom.change(2));
  button("Whole picture", (zoom) => zoom.show(zoom.whole));
  bar.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const move = Object.entries(moves).find(([key]) => key === event.key)?.[1];
    if (move !== undefined) {
      const [right = 0, down = 0] = move;
      zooms.forEach((zoom) => zoom.change(1, right / 4, down / 4));
      event.preventDefault();
    }
  });
  figure.append(bar);
}

for (const figure of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".lead > figure"))) {
  if (figure.querySelector("svg[data-x]") !== null) {
    addButtons(figure);
  }
}
