// What the page asks its dashboard. `schemas/dashboard.v1.json` describes the state.

/**
 * @typedef {{ needs: string[], types: number[], workers: number, refused: boolean }} ClassNow
 * @typedef {{ slice: number, name: string, types: number[], open: boolean, limit: number, workers: number,
 *   quotas: number, balance: number | null, stale_tokens: number, target_ns: number,
 *   measured_limit: number | null, refused_busy: number, late_in_switch: number, late_at_worker: number,
 *   classes: ClassNow[] }} SliceStatus
 * @typedef {{ span_ns: number, tasks: number, tasks_per_s: number | null, service_ns: number | null,
 *   wait_ns: number | null }} RecentWork
 * @typedef {{ worker: number, name: string, slice: string, phase: string, quota: number, at: string,
 *   renewed_ago_ns: number, labels: string[], workers: number, recent: RecentWork | null,
 *   differs: string | null }} WorkerStatus
 * @typedef {{ name: string, at: string, renewed_ago_ns: number }} HostStatus
 * @typedef {{ code: string, severity: string, subject: { kind: string, name: string }, what: string, why: string,
 *   next: string }} Finding
 * @typedef {{ role: string, leader: string, standbys: string[], other_plan: boolean, spine: number,
 *   untold: string, etcd_lost: string }} Standing
 * @typedef {{ switch: { epoch: number, link: string, at: string, counters: Record<string, number> },
 *   slices: SliceStatus[], workers: WorkerStatus[], clients: HostStatus[], servers: HostStatus[],
 *   refused: Record<string, number>, types: { type: number, name: string, unused: boolean }[],
 *   ending: { certificate: string, unix_s: number }[], findings: Finding[], standing: Standing | null,
 *   builds: { kind: string, name: string, build: string, oldest: number, newest: number }[] }} RackStatus
 * @typedef {{ name: string, tasks_per_s: number | null, wait_ns: number | null, service_ns: number | null }} SliceWork
 * @typedef {{ why: string, since_unix_ms: number, lasts_ms: number }} Silence
 * @typedef {{ name: string, kind: string, controller: string, heard_ago_ms: number | null,
 *   silence: Silence | null, unchangeable: string | null, slices: SliceWork[],
 *   status: RackStatus | null }} RackState
 * @typedef {{ number: number, at_unix_ms: number, controller: number | null, kind: string, text: string }} EventState
 * @typedef {{ name: string, due_per_s: number, replied_per_s: number, latency_p50_ns: number | null,
 *   latency_p99_ns: number | null, latency_p999_ns: number | null }} LoadType
 * @typedef {{ elapsed_s: number, length_s: number, sent: number, replied: number, refused: number, late: number,
 *   unknown: number, outstanding: number, types: LoadType[] }} LoadState
 * @typedef {{ schema: string, title: string, version: string, at_unix_ms: number,
 *   visitor: { name: string | null, may_change: boolean }, asked_every_ms: number, racks: RackState[],
 *   load: LoadState | null, events: EventState[], document: { version: string, complete: boolean | null,
 *   grew_ago_ms: number | null, why: string | null } | null }} DashboardState
 */

/** How long an answer may take. */
const PATIENCE_MS = 5_000;
/** How long a change may take: a controller that cannot make it yet is asked for ten seconds. */
const CHANGE_PATIENCE_MS = 20_000;

/** Says that the dashboard answered, and refused. */
export class Refused extends Error {}

/**
 * The whole state.
 * @returns {Promise<DashboardState>}
 */
export async function state() {
  const answer = await asked("/state.json");
  return answer.json();
}

/**
 * The elements of a piece of HTML.
 * @param {string} path
 * @returns {Promise<Element[]>}
 */
export async function piece(path) {
  const answer = await asked(path);
  const made = new DOMParser().parseFromString(await answer.text(), "text/html");
  return [...made.body.children].map((one) => document.adoptNode(one));
}

/**
 * Makes a change; the dashboard's sentence about it.
 * @param {"/move" | "/map"} path
 * @param {Record<string, unknown>} change
 * @returns {Promise<string>}
 */
export async function change(path, change) {
  const headers = { "content-type": "application/json" };
  const signal = AbortSignal.timeout(CHANGE_PATIENCE_MS);
  const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(change), signal });
  const said = (await answer.text()).trim();
  if (!answer.ok) {
    throw new Refused(said);
  }
  return said;
}

/** @param {string} path */
async function asked(path) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(PATIENCE_MS) });
  if (!answer.ok) {
    throw new Refused((await answer.text()).trim() || `${path}: ${answer.status}`);
  }
  return answer;
}
