"""Kills and upgrades each process of a rack under load: rack_trial.py INIT [NEWER TABLE].

INIT is the first process of a booted tree in which docs/manual/packages.md was typed: a switch apart, two controllers, two
workers, the page, Prometheus. NEWER is a package in the tree. After each step all runs again, every task has its outcome,
and `sluice status`, the page and Prometheus tell the same. Writes what each step cost to TABLE. Without NEWER and
TABLE it only waits until the rack is in order and all tell the same."""

import collections
import json
import re
import subprocess
import sys
import time

BOTH = "127.0.0.1:7400,127.0.0.1:7402"
UNITS = ["sluice-switch", "sluice-controller@a", "sluice-controller@b", "sluice-worker@spin-1", "sluice-worker@spin-2",
         "sluice-dashboard"]
WORKERS = ["spin-1", "spin-2"]
CONTROLLER_AT = {"http://127.0.0.1:7400": "sluice-controller@a", "http://127.0.0.1:7402": "sluice-controller@b"}
ENV = ["env", "-i", "HOME=/root", "TERM=dumb", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
       "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
# How long anything may take on a busy machine.
PATIENCE_S = 240
# The load before a step, so that the step falls into it.
BEFORE_S = 3
# Says for five minutes that a host died; `status` says so until the host is back.
TOLD_LONGER = {"SluiceHostsDied"}
# What a step may cost a task: an outcome that is no reply, but is an honest one.
HONEST = ("refused", "unknown")


class Tree:
    """The booted tree."""

    def __init__(self, init):
        self.enter = ["nsenter", "--target", init, "--all", *ENV]

    def run(self, *command):
        return subprocess.run([*self.enter, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def text(self, *command):
        done = self.run(*command)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def json(self, *command):
        return json.loads(self.text(*command))

    def pid(self, unit):
        return self.text("systemctl", "show", "--property", "MainPID", "--value", unit).strip()

    def query(self, text):
        """What Prometheus says: labels and value of each series."""
        answer = self.json("curl", "--silent", "--get", "http://127.0.0.1:9090/api/v1/query", "--data-urlencode",
                           f"query={text}")
        return [(of["metric"], float(of["value"][1])) for of in answer["data"]["result"]]


class Failed(Exception):
    """What did not hold."""


def only(values, what):
    values = list(values)
    if len(values) != 1:
        raise Failed(f"{what}: {len(values)} in place of one")
    return values[0]


def told(controllers):
    """What the answers of both controllers say."""
    answers = [status for status in controllers if status is not None]
    if len(answers) != 2:
        raise Failed("a controller is silent")
    leader = only([of for of in answers if of["standing"]["role"] == "leads"], "leaders")
    slice_ = only(leader["slices"], "slices")
    builds = collections.Counter()
    for answer in answers:
        # Each controller says its own and its switch's build; the leader those of hosts, too. The load is not scraped.
        builds.update(of["build"] for of in answer["builds"]
                      if of["kind"] == "controller" or (answer is leader and of["kind"] != "client"))
    return {
        "leader": leader["standing"]["leader"],
        "standbys": len([of for of in answers if of["standing"]["role"] == "standby"]),
        "switch": leader["switch"]["link"],
        "epoch": leader["switch"]["epoch"],
        "workers": len([of for of in leader["workers"] if of["phase"] == "open"]),
        "slice": (slice_["open"], slice_["workers"]),
        "wrong": sorted({finding["code"] for of in answers for finding in of["findings"]}),
        "builds": dict(builds),
        "dispatched": leader["switch"]["counters"]["dispatched"],
    }


def by_status(tree):
    answer = tree.json("sluice", "status", "--controller", BOTH, "--json")
    return told([of["status"] for of in answer["controllers"]])


def by_page(tree):
    state = tree.json("curl", "--silent", "--fail", "http://127.0.0.1:7410/state.json")
    silent = [rack["controller"] for rack in state["racks"] if rack["silence"] is not None]
    if silent:
        raise Failed(f"the page hears nothing of {silent}")
    return told([rack["status"] for rack in state["racks"]])


def by_prometheus(tree):
    series = collections.defaultdict(list)
    for labels, value in tree.query('{job="sluice"}'):
        series[labels.pop("__name__")].append((labels, value))
    down = [labels["instance"] for labels, up in series["up"] if up != 1]
    if down or len(series["up"]) != 5:
        raise Failed(f"Prometheus reaches {len(series['up'])} processes, and not {down}")
    leads = {labels["instance"]: value for labels, value in series["sluice_controller_leads"]}
    at = only([instance for instance, value in leads.items() if value == 1], "leaders")
    up = {labels["instance"]: value for labels, value in series["sluice_controller_switch_up"]}

    def leaders(name, **labels):
        found = [value for of, value in series[name] if labels.items() <= of.items()]
        return only(found, name)

    builds = collections.Counter(labels["build"] for labels, _ in series["sluice_process_version"])
    hosts = int(leaders("sluice_controller_hosts", kind="worker"))
    registered = int(sum(value for _, value in series["sluice_worker_registered"]))
    return {
        "leader": {"127.0.0.1:9467": "http://127.0.0.1:7400", "127.0.0.1:9468": "http://127.0.0.1:7402"}[at],
        "standbys": len([value for value in leads.values() if value == 0]),
        "switch": "up" if set(up.values()) == {1.0} else "down",
        "epoch": int(leaders("sluice_controller_switch_epoch")),
        "workers": hosts if hosts == registered else f"{hosts}, of which {registered} say so",
        "slice": (leaders("sluice_slice_open") == 1, int(leaders("sluice_slice_workers"))),
        "wrong": sorted(alerts(tree) - TOLD_LONGER),
        "builds": dict(builds),
        "dispatched": int(leaders("sluice_switch_tasks_dispatched_total")),
    }


TELLERS = {"status": by_status, "page": by_page, "Prometheus": by_prometheus}


def alerts(tree, over=None):
    """The alerts that fire, or that fired within the last seconds."""
    of = 'ALERTS{alertstate="firing"}'
    return {labels["alertname"] for labels, _ in tree.query(of if over is None else f"max_over_time({of}[{over}s])")}


class Trial:
    """The steps, what all told in each, and what each cost."""

    def __init__(self, tree, table):
        self.tree, self.table, self.loads, self.begun = tree, table, 0, time.monotonic()
        # What each teller last said: how many tasks the switch sent to workers.
        self.dispatched = {}
        # The lives of the switch.
        self.epochs = set()
        self.rows = []

    def until(self, what, check):
        """Waits until the check raises nothing."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                return check()
            except (Failed, KeyError, TypeError, json.JSONDecodeError) as why:
                if time.monotonic() > end:
                    raise Failed(f"{what}, after {PATIENCE_S} s: {why!r}") from why
            time.sleep(0.5)

    def in_order(self):
        """All units run, all works, and all tell the same."""
        states = self.tree.run("systemctl", "is-active", *UNITS).stdout.split()
        if states != ["active"] * len(UNITS):
            raise Failed(f"units: {dict(zip(UNITS, states))}")
        said = {name: teller(self.tree) for name, teller in TELLERS.items()}
        first = said["status"]
        is_same_life = first["epoch"] in self.epochs
        self.epochs.add(first["epoch"])
        for name, of in said.items():
            count, before = of.pop("dispatched"), self.dispatched.get(name, 0)
            # Prometheus has the counter and the life from two processes, which it asks at two times.
            if count < before and is_same_life and name != "Prometheus":
                raise SystemExit(f"{name}: {before} tasks were dispatched, and now {count}")
            self.dispatched[name] = count
        for name, of in said.items():
            other = {key: (first[key], of[key]) for key in first if of[key] != first[key]}
            if other:
                raise Failed(f"status and {name} differ: {other}")
        good = {"standbys": 1, "switch": "up", "workers": len(WORKERS), "wrong": []}
        bad = {key: first[key] for key, value in good.items() if first[key] != value}
        if bad or not first["slice"][0]:
            raise Failed(f"not in order: {bad or first['slice']}")
        return first

    def both_tell(self, finding, alert):
        """A finding of status and page, and an alert, speak of the same trouble."""
        answer = self.tree.json("sluice", "status", "--controller", BOTH, "--json")
        state = self.tree.json("curl", "--silent", "--fail", "http://127.0.0.1:7410/state.json")
        status = {found["code"] for of in answer["controllers"] for found in of["status"]["findings"]}
        page = {found["code"] for of in state["racks"] for found in of["status"]["findings"]}
        firing = alerts(self.tree)
        if finding not in status or status != page or alert not in firing:
            raise Failed(f"status {status}, page {page}, Prometheus {firing}; {finding} and {alert} should be there")

    def begins_load(self, rate):
        self.loads += 1
        unit = f"load-{self.loads}"
        self.tree.text("systemd-run", "--quiet", "--collect", "--unit", unit, "--property",
                       f"StandardOutput=truncate:/run/{unit}.json", "sluice", "load", "--controller", BOTH, "--mix", "spin=1",
                       "--rate", str(rate), "--warm-up", "0s", "--length", "120min", "--deadline", "60s", "--json")
        return unit

    def ends_load(self, unit):
        self.tree.text("systemctl", "stop", unit)
        # A second line may say that the sender was late, as on a busy machine it is.
        return json.loads(self.tree.text("head", "--lines", "1", f"/run/{unit}.json"))["tasks"]

    def step(self, what, does, may_cost=()):
        """Does something under load, waits until all is in order, and holds the load's tasks to what is promised."""
        begun, load = time.monotonic(), self.begins_load(500)
        time.sleep(BEFORE_S)
        acted = time.monotonic()
        does()
        done = time.monotonic()
        first = self.until(what, self.in_order)
        ordered = time.monotonic()
        time.sleep(BEFORE_S)
        tasks = self.ends_load(load)
        fired = sorted(alerts(self.tree, int(time.monotonic() - begun)))
        self.rows.append((what, f"{done - acted:.0f}", f"{ordered - done:.0f}", tasks, ", ".join(fired) or "none"))
        self.write()
        print(what, tasks, first, fired, flush=True)
        self.holds(what, tasks, may_cost)

    def holds(self, what, tasks, may_cost):
        outcomes = sum(tasks[of] for of in ("replied", *HONEST))
        if tasks["lost"] or tasks["failed"] or outcomes != tasks["sent"] or not tasks["replied"]:
            raise SystemExit(f"{what}: tasks have no outcome: {tasks}")
        dear = {of: tasks[of] for of in HONEST if tasks[of] and of not in may_cost}
        if dear:
            raise SystemExit(f"{what} cost tasks: {dear}, {tasks['refused_by']}, {tasks['unknown_by']}")

    def killed(self, unit):
        """A process is killed; its service manager starts it again."""
        before = self.tree.pid(unit)
        self.tree.text("systemctl", "kill", "--signal", "KILL", "--kill-whom", "main", unit)

        def is_another():
            now = self.tree.pid(unit)
            if now in (before, "0"):
                raise Failed(f"{unit} has process {now}")

        self.until(f"{unit} starts again", is_another)

    def leader(self):
        return CONTROLLER_AT[by_status(self.tree)["leader"]]

    def standby(self):
        return only(set(CONTROLLER_AT.values()) - {self.leader()}, "standbys")

    def stands_still(self, unit, finding, alert):
        self.tree.text("systemctl", "kill", "--signal", "STOP", "--kill-whom", "main", unit)
        self.until(f"all tell that {unit} stands still", lambda: self.both_tell(finding, alert))
        self.tree.text("systemctl", "kill", "--signal", "CONT", "--kill-whom", "main", unit)

    def upgraded(self, package):
        before = {unit: self.tree.pid(unit) for unit in UNITS}
        self.tree.text("apt-get", "install", "--yes", "--quiet", "--allow-downgrades", package)
        same = [unit for unit in UNITS if self.tree.pid(unit) == before[unit]]
        if same:
            raise Failed(f"{same} run as before the upgrade")

    def rests(self):
        """Without a load all tell the same numbers, and they are those of the tasks that were sent."""
        before = self.until("at rest before", self.at_rest)
        load = self.begins_load(200)
        time.sleep(2 * BEFORE_S)
        tasks = self.ends_load(load)
        after = self.until("at rest after", self.at_rest)
        more = {key: after[key] - before[key] for key in before}
        print("at rest", tasks, before, after, flush=True)
        self.holds("at rest", tasks, ())
        if more["dispatched"] != more["served"] + more["repeated"] or more["served"] != tasks["replied"]:
            raise SystemExit(f"{tasks}, and the switch and workers counted {more}")
        since = int(time.monotonic() - self.begun)
        # For Prometheus a counter that falls is a process that began anew.
        _, fell = only(self.tree.query(f"resets(sluice_switch_tasks_dispatched_total[{since}s])"), "switches")
        if fell != len(self.epochs) - 1:
            raise SystemExit(f"the switch had {len(self.epochs)} lives, and its counter fell {fell} times")
        return f"{tasks['replied']} tasks: sent, dispatched and served are the same number in all"

    def at_rest(self):
        """What was counted, once it is the same in two looks of Prometheus and for all who tell."""
        def counted():
            self.in_order()
            now = dict(self.dispatched)
            of = {key: int(sum(value for _, value in self.tree.query(f"sum({name})"))) for key, name in
                  [("served", "sluice_worker_tasks_served_total"), ("repeated", "sluice_worker_tasks_repeated_total")]}
            if len(set(now.values())) != 1:
                raise Failed(f"dispatched: {now}")
            return {"dispatched": now["status"], **of}

        first = counted()
        # Longer than two scrapes.
        time.sleep(11)
        if counted() != first:
            raise Failed(f"not at rest: {first}")
        return first

    def write(self):
        head = ("step", "took s", "in order after s", "sent", "replied", "tried again", "refused", "unknown", "alerts")
        lines = [head] + [(what, took, order, *(f"{tasks[of]}" for of in ("sent", "replied")),
                           f"{tasks['attempts'] - tasks['sent']}", f"{tasks['refused']}", f"{tasks['unknown']}", fired)
                          for what, took, order, tasks, fired in self.rows]
        with open(self.table, "w", encoding="utf-8") as out:
            for line in lines:
                out.write(f"  | {' | '.join(line)} |\n")


def main(init, newer=None, table=None):
    trial = Trial(Tree(init), table)
    print(trial.until("in order", trial.in_order))
    if newer is None:
        return
    whole = trial.begins_load(50)
    step = trial.step
    step("the page is killed", lambda: trial.killed("sluice-dashboard"))
    step("the standby is killed", lambda: trial.killed(trial.standby()))
    step("the leader is killed", lambda: trial.killed(trial.leader()))
    for name in WORKERS:
        step(f"worker {name} is killed", lambda: trial.killed(f"sluice-worker@{name}"), HONEST)
    step("the switch is killed", lambda: trial.killed("sluice-switch"), HONEST)
    step("worker spin-2 stands still",
         lambda: trial.stands_still("sluice-worker@spin-2", "worker-stopped", "SluiceHostsDied"), HONEST)
    step("the switch stands still",
         lambda: trial.stands_still("sluice-switch", "switch-lost", "SluiceSwitchLost"), HONEST)
    step("the upgrade", lambda: trial.upgraded(newer))
    trial.holds("the load over all steps", trial.ends_load(whole), HONEST)
    print(trial.rests())


if __name__ == "__main__":
    main(*sys.argv[1:])
