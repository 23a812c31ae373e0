"""Services in Python, as processes: exceptions, answers, signals, command lines."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import List

import pytest

import sluice
from racks import PATIENCE_S, SERVICE, Gate, Rack, wait_until

ODD = '''
import sluice, sys, time
answers = {
    b"none": lambda: None, b"text": lambda: "text", b"list": lambda: [1],
    b"strided": lambda: memoryview(b"abcd")[::2], b"bytearray": lambda: bytearray(b"good"),
    b"exit": lambda: sys.exit("bye"), b"interrupt": lambda: (_ for _ in ()).throw(KeyboardInterrupt),
    b"key": lambda: {}["missing"], b"deep": lambda: deep(), b"memory": lambda: bytes(1 << 60),
    b"bad-text": lambda: (_ for _ in ()).throw(Unsayable()),
}
class Unsayable(Exception):
    def __str__(self): raise ValueError("no text")
def deep(): return deep()
def odd(task):
    return answers[task]()
sluice.run_service({**dict.fromkeys(range(9, 16), odd), 10: lambda task: task})
'''

EXPECTED = {
    b"none": "bytes, bytearray or memoryview expected, not NoneType",
    b"text": "not str: encode the text",
    b"list": "not list",
    b"strided": "BufferError",
    b"exit": "SystemExit: bye",
    b"interrupt": "KeyboardInterrupt",
    b"key": "KeyError: 'missing'",
    b"deep": "RecursionError",
    b"memory": "MemoryError",
    b"bad-text": "its exception has no text",
    b"other": "KeyError: b'other'",
}


def test_whatever_a_function_does_is_a_failed_reply_and_the_worker_goes_on(own_rack: Rack, tmp_path: Path) -> None:
    program = tmp_path / "odd.py"
    program.write_text(ODD)
    worker = own_rack.start_worker(program)
    with own_rack.client() as client:
        for task, text in EXPECTED.items():
            with pytest.raises(sluice.Failed) as failed:
                client.submit(9, task)
            assert text in failed.value.text, task
        assert client.submit(9, b"bytearray").bytes == b"good"
        assert client.submit(10, bytes(range(256))).bytes == bytes(range(256))
    worker.send_signal(signal.SIGTERM)
    _, said = worker.communicate()
    assert worker.returncode == 0, said


def test_a_signal_drains_the_worker_and_a_second_one_ends_it(own_rack: Rack, tmp_path: Path) -> None:
    outcomes: List[object] = []

    def submit(client: sluice.Client, gate: Gate) -> None:
        try:
            outcomes.append(client.submit(15, gate.task, deadline=PATIENCE_S).bytes)
        except sluice.Error as error:
            outcomes.append(type(error))

    for number in (signal.SIGTERM, signal.SIGINT):
        own_rack.workers.clear()
        worker, gate = own_rack.start_worker(more=["--json"]), Gate(tmp_path / number.name)
        with own_rack.client() as client:
            thread = threading.Thread(target=submit, args=(client, gate))
            thread.start()
            gate.wait()
            worker.send_signal(number)
            gate.open()
            out, said = worker.communicate()
            thread.join()
            assert outcomes.pop() == b"passed"
        assert worker.returncode == 0, said
        assert json.loads(out)["drained"] is True
        assert "KeyboardInterrupt" not in said and "Traceback" not in said
    own_rack.workers.clear()
    worker, gate = own_rack.start_worker(), Gate(tmp_path / "both")
    client = own_rack.client()
    thread = threading.Thread(target=submit, args=(client, gate))
    thread.start()
    gate.wait()
    # Two of one kind may become one on their way.
    worker.send_signal(signal.SIGINT)
    worker.send_signal(signal.SIGTERM)
    worker.communicate()
    assert worker.returncode == 4
    client.abort()
    thread.join()
    assert outcomes == [sluice.Unknown]


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["--help"], 0, "--controller"),
        (["--nonsense"], 2, "--nonsense"),
        (["--quota", "99"], 2, "99"),
        (["--cores", "2", "--slice", "cases"], 2, "own"),
        (["--controller", "no address"], 2, "address"),
        (["--listen", "0.0.0.0:0"], 2, "others need an address"),
    ],
)
def test_the_command_line_is_that_of_all_workers(words: List[str], code: int, said: str) -> None:
    ran = subprocess.run([sys.executable, SERVICE, *words], capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran
    assert said in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_service_that_makes_no_sense_is_refused_before_it_runs() -> None:
    async def coroutine(task: bytes) -> bytes:
        return task

    with pytest.raises(TypeError, match="coroutine"):
        sluice.service(9)(coroutine)  # type: ignore[type-var]
    with pytest.raises(ValueError, match="no function"):
        sluice.run_service({})
    with pytest.raises(ValueError, match="0 to 65535"):
        sluice.service(70_000)
    with pytest.raises(TypeError, match="a function"):
        sluice.run_service({9: b"no function"})  # type: ignore[dict-item]

    @sluice.service(4711)
    def once(task: bytes) -> bytes:
        return task

    assert once(b"x") == b"x"
    with pytest.raises(ValueError, match="has a service already"):
        sluice.service(4711)(once)


def test_a_worker_that_is_killed_loses_no_task_that_may_be_tried_again(own_rack: Rack) -> None:
    own_rack.start_worker()
    with own_rack.client() as client:
        pid = int(client.submit(14, b"").bytes)
        own_rack.start_worker()
        wait_until(lambda: int(client.submit(14, b"").bytes) != pid, "the other worker serves")
        own_rack.kill(pid)
        outcomes = client.submit_many(9, [b"%d" % n for n in range(200)])
        assert {type(outcome) for outcome in outcomes} == {sluice.Reply}
