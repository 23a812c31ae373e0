"""The conformance cases, in each way that Python has to submit a task."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Set, Tuple, TypedDict
from urllib.parse import unquote_to_bytes

import sluice
from racks import CASES, Rack, wait_until

#: A deadline that a busy machine meets.
LONG_S = 60.0


class Step:
    """What is done or expected: a word, and values by name."""

    def __init__(self, text: str) -> None:
        self.word, *values = text.split()
        pairs = (value.split("=", 1) for value in values)
        self.values: Dict[str, bytes] = {name: unquote_to_bytes(value) for name, value in pairs}

    def number(self, name: str) -> Optional[int]:
        return int(self.values[name]) if name in self.values else None

    def seconds(self, name: str) -> Optional[float]:
        ns = self.number(name)
        return None if ns is None else ns / 1e9

    def text(self, name: str) -> Optional[str]:
        return self.values[name].decode() if name in self.values else None

    def task(self) -> bytes:
        return self.values.get("text", b"x" * (self.number("fill") or 0))

    def task_of_burst(self, number: int) -> bytes:
        fill = self.number("fill") or 0
        return (f"{number:08}".encode() * (fill // 8 + 1))[:fill]


def cases() -> Iterator[Tuple[str, Step, Step]]:
    """All cases: name, act, expected."""
    for line in (CASES / "cases.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            act, expected = line.split(" -> ")
            case, name, act = act.split(None, 2)
            assert case == "case", line
            yield name, Step(act), Step(expected)


class Arguments(TypedDict):
    """The optional arguments of a case's task."""

    deadline: Optional[float]
    budget: Optional[float]
    labels: List[str]


def asked(act: Step) -> Tuple[int, bytes, Arguments]:
    label = act.text("label")
    of: Arguments = {
        "deadline": act.seconds("deadline_ns") or LONG_S,
        "budget": act.seconds("budget_ns"),
        "labels": [label] if label else [],
    }
    return act.number("type") or 0, act.task(), of


Way = Callable[[sluice.Client, Step], sluice.Outcome]


def blocking(client: sluice.Client, act: Step) -> sluice.Outcome:
    task_type, task, of = asked(act)
    return client.submit(task_type, task, **of)


def as_one_of_many(client: sluice.Client, act: Step) -> sluice.Outcome:
    task_type, task, of = asked(act)
    [outcome] = client.submit_many(task_type, [bytearray(task)], **of)
    return outcome


def awaited(client: sluice.Client, act: Step) -> sluice.Outcome:
    task_type, task, of = asked(act)

    async def submit() -> sluice.Outcome:
        return await client.submit_async(task_type, memoryview(task), **of)

    return asyncio.run(submit())


def awaited_as_one_of_many(client: sluice.Client, act: Step) -> sluice.Outcome:
    task_type, task, of = asked(act)

    async def submit() -> sluice.Outcome:
        [outcome] = await client.submit_many_async(task_type, [task], **of)
        return outcome

    return asyncio.run(submit())


def check(outcome: sluice.Outcome, expected: Step) -> None:
    """Holds an outcome against what is expected."""
    if expected.word == "reply":
        assert isinstance(outcome, sluice.Reply), outcome
        if "text" in expected.values:
            assert outcome.bytes == expected.values["text"]
        if "bytes" in expected.values:
            assert len(outcome.bytes) == expected.number("bytes")
    elif expected.word == "failed":
        assert isinstance(outcome, sluice.Failed), outcome
        assert expected.values.get("has", b"") in outcome.reply.bytes
        assert outcome.text in str(outcome) or len(outcome.text) > 100
    elif expected.word in ("refused", "unknown"):
        assert isinstance(outcome, (sluice.Refused, sluice.Unknown)), outcome
        assert type(outcome).__name__.lower() == expected.word, outcome
        assert outcome.why == expected.text("why")
        assert ": " in str(outcome)
    else:
        assert expected.word == "error"
        kinds = {"too-long": sluice.TooLong, "closed": sluice.Closed, "busy": sluice.Busy}
        assert isinstance(outcome, kinds[expected.text("is") or ""]), outcome


WAYS = [blocking, as_one_of_many, awaited, awaited_as_one_of_many]


def test_each_case_holds_in_each_way(tmp_path: Path) -> None:
    with ExitStack() as ends:
        rack: Optional[Rack] = None
        client: Optional[sluice.Client] = None
        for number, (name, act, expected) in enumerate(cases()):
            if act.word == "rack":
                assert expected.word == "ready"
                if client is not None:
                    client.abort()
                ends.close()
                folder = tmp_path / str(number)
                folder.mkdir()
                rack = ends.enter_context(Rack(folder, CASES / "rack.toml", act.text("faults") or ""))
                client = rack.client()
                continue
            assert rack is not None and client is not None, "the first case starts a rack"
            if act.word == "submit":
                for way in WAYS:
                    try_way(name, act, expected, client, way)
            elif act.word == "burst":
                for burst in BURSTS:
                    try_burst(client, rack, act, expected, burst)
            else:
                assert (act.word, expected.word) == ("close", "closed"), f"{name}: unknown"
                client.close()


def try_way(name: str, act: Step, expected: Step, client: sluice.Client, way: Way) -> None:
    try:
        outcome = way(client, act)
    except sluice.Error as error:
        outcome = error
    try:
        check(outcome, expected)
    except AssertionError as why:
        raise AssertionError(f"case {name}, {way.__name__}: {why}") from why


#: Hands many tasks to a client, and calls a function with the number and the outcome of each that ends.
Burst = Callable[[sluice.Client, int, List[bytes], Callable[[int, sluice.Outcome], None]], None]


def in_threads(
    client: sluice.Client, task_type: int, tasks: List[bytes], ended: Callable[[int, sluice.Outcome], None]
) -> None:
    def one(number: int) -> None:
        try:
            ended(number, client.submit(task_type, tasks[number], deadline=LONG_S))
        except sluice.Error as error:
            ended(number, error)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, range(len(tasks))))


def on_a_loop(
    client: sluice.Client, task_type: int, tasks: List[bytes], ended: Callable[[int, sluice.Outcome], None]
) -> None:
    async def one(number: int) -> None:
        try:
            ended(number, await client.submit_async(task_type, tasks[number], deadline=LONG_S))
        except sluice.Error as error:
            ended(number, error)

    async def all_of_them() -> None:
        await asyncio.gather(*(one(number) for number in range(len(tasks))))

    asyncio.run(all_of_them())


def in_lists(
    client: sluice.Client, task_type: int, tasks: List[bytes], ended: Callable[[int, sluice.Outcome], None]
) -> None:
    third = len(tasks) // 3 + 1
    for first in range(0, len(tasks), third):
        outcomes = client.submit_many(task_type, tasks[first : first + third], deadline=LONG_S)
        for number, outcome in enumerate(outcomes, first):
            ended(number, outcome)


BURSTS: List[Burst] = [in_threads, on_a_loop, in_lists]


def workers_of(client: sluice.Client, rack: Rack) -> Set[int]:
    """The processes of the workers, once all that live have answered: also one that was started a moment ago."""
    living = {worker.pid for worker in rack.workers if worker.poll() is None}
    answered: Set[int] = set()

    def all_serve() -> bool:
        [outcome] = client.submit_many(14, [b""], deadline=LONG_S)
        if isinstance(outcome, sluice.Reply):
            answered.add(int(outcome.bytes))
        return living <= answered

    wait_until(all_serve, "all workers serve")
    return living


def try_burst(client: sluice.Client, rack: Rack, act: Step, expected: Step, burst: Burst) -> None:
    count, kills = act.number("count") or 0, act.text("kill") == "worker"
    victim = workers_of(client, rack).pop() if kills else 0
    tasks = [act.task_of_burst(number) for number in range(count)]
    outcomes: Dict[int, sluice.Outcome] = {}
    killed: List[int] = []

    def ended(number: int, outcome: sluice.Outcome) -> None:
        assert number not in outcomes, "it ended twice"
        outcomes[number] = outcome
        if kills and not killed and len(outcomes) > count // 3:
            killed.append(victim)
            rack.kill(victim)
            rack.start_worker()

    burst(client, act.number("type") or 0, tasks, ended)
    assert sorted(outcomes) == list(range(count))
    replies = {number: outcome for number, outcome in outcomes.items() if isinstance(outcome, sluice.Reply)}
    assert len(replies) >= (expected.number("replies_least") or 0), [
        f"{number}: {outcome}" for number, outcome in outcomes.items() if number not in replies
    ]
    assert all(reply.bytes == tasks[number][::-1] for number, reply in replies.items())
