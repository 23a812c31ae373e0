// Who leads a rack, who waits for the lead, and which builds its processes are.

/** @typedef {import("./server.js").RackStatus} RackStatus */

/**
 * Who leads and who waits; empty if there is one controller.
 * @param {RackStatus} status
 */
export function standing({ standing }) {
  if (standing === null) {
    return "";
  }
  const { role, leader, standbys, other_plan, untold } = standing;
  const unknown = untold === "" ? "who leads is not known" : `the switch does not say who leads: ${untold}`;
  const leads = leader === "" ? unknown : `${leader} leads`;
  if (role === "superseded") {
    return "The controller that was asked has lost the switch to another one.";
  }
  if (role === "standby") {
    const never = other_plan ? "; it has another plan than the leader and will not lead" : "";
    return `The controller that was asked waits; ${leads}${never}.`;
  }
  const wait = standbys.length === 1 ? "waits" : "wait";
  return standbys.length === 0 ? "" : `The controller that was asked leads; ${standbys.join(", ")} ${wait}.`;
}

/**
 * Which processes are of which build; empty unless there are several builds.
 * @param {RackStatus} status
 */
export function builds({ builds }) {
  /** @type {Map<string, string[]>} */
  const of = new Map();
  for (const { kind, name, build, oldest, newest } of builds) {
    const protocol = newest === 0 ? "unknown" : oldest === newest ? `${newest}` : `${oldest} to ${newest}`;
    const called = `${build || "an unnamed build"} (protocol ${protocol})`;
    of.set(called, [...(of.get(called) ?? []), `${kind} ${name}`.trim()]);
  }
  const told = [...of].map(([build, who]) => `${build}: ${who.join(", ")}`);
  return told.length < 2 ? "" : `${told.length} builds: ${told.join("; ")}.`;
}
