// Numbers with their units, as the command writes them.

/** What stands in a cell of which nothing is known. */
export const NOTHING = "–";

/**
 * A number with about three digits.
 * @param {number} number
 */
export function digits(number) {
  const size = Math.abs(number);
  return number.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0);
}

/**
 * A time in a suitable unit.
 * @param {number | null | undefined} ns
 */
export function time(ns) {
  if (ns === null || ns === undefined) {
    return NOTHING;
  }
  const units = /** @type {const} */ ([[1e3, 1, "ns"], [1e6, 1e3, "µs"], [1e9, 1e6, "ms"], [Infinity, 1e9, "s"]]);
  const [, one, name] = units.find(([below]) => ns < below) ?? units[3];
  return `${one === 1 ? Math.round(ns) : digits(ns / one)} ${name}`;
}

/**
 * A rate.
 * @param {number | null | undefined} perSecond
 */
export function rate(perSecond) {
  return perSecond === null || perSecond === undefined ? NOTHING : digits(perSecond);
}

/**
 * A count, with its thousands apart.
 * @param {number} number
 */
export function count(number) {
  return number.toLocaleString("en");
}

/**
 * A number of things.
 * @param {number} number
 * @param {string} one
 */
export function several(number, one) {
  return `${count(number)} ${one}${number === 1 ? "" : "s"}`;
}

/**
 * How long something lasts, in seconds or minutes.
 * @param {number} ms
 */
export function span(ms) {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 120) {
    return `${seconds} s`;
  }
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
}

/**
 * A second as a date and a time of day in UTC.
 * @param {number} unixS
 */
export function utc(unixS) {
  const at = new Date(unixS * 1_000);
  return Number.isNaN(at.getTime()) ? "in a very long time" : `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/**
 * How far this browser's clock is from UTC, such as `UTC+5:30`.
 * @param {number} unixMs
 */
export function zone(unixMs) {
  const ahead = -new Date(unixMs).getTimezoneOffset();
  const [hours, minutes] = [Math.floor(Math.abs(ahead) / 60), Math.abs(ahead) % 60];
  const sign = ahead < 0 ? "−" : "+";
  return ahead === 0 ? "UTC" : `UTC${sign}${hours}${minutes === 0 ? "" : `:${String(minutes).padStart(2, "0")}`}`;
}

/**
 * The time of day.
 * @param {number} unixMs
 */
export function clock(unixMs) {
  const at = new Date(unixMs);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}
