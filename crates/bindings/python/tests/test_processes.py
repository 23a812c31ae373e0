"""Forks, ends of the interpreter, Ctrl-C: each in a process of its own."""

import multiprocessing
import signal
import subprocess
import sys
import time
from typing import List, Tuple

import pytest

import sluice
from racks import PATIENCE_S, Rack


def run_code(code: str, *words: str, interrupt: bool = False) -> Tuple[int, str]:
    """Runs a program; returns its exit code and all that it printed. Ctrl-C follows a line `ready`."""
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-W", "ignore::DeprecationWarning", "-c", code, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said: List[str] = []
    if interrupt:
        said.append(process.stdout.readline())
        assert said == ["ready\n"], said + [process.stdout.read()]
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
    try:
        said.append(process.communicate(timeout=PATIENCE_S)[0])
    finally:
        process.kill()
    return process.returncode, "".join(said)


FORK = """
import os, sys, sluice
client = sluice.connect(sys.argv[1], patience=60)
assert client.submit(9, b"ab", deadline=60).bytes == b"ba"
child = os.fork()
if child == 0:
    code = 1
    try:
        client.submit(9, b"ab")
    except sluice.Closed as why:
        assert "connect in the child" in str(why), why
        assert client.closed
        try:
            client.close()
        except sluice.Closed:
            with sluice.connect(sys.argv[1], patience=60) as own:
                assert own.submit(9, b"cd", deadline=60).bytes == b"dc"
                assert len(own.submit_many(9, [b"x"] * 10)) == 10
            code = 0
    # Through the interpreter's end, which frees the parent's client here.
    sys.exit(code)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert client.submit(9, b"live", deadline=60).bytes == b"evil"
client.close()
"""


def test_after_a_fork_the_child_is_told_to_connect_and_can(rack: Rack) -> None:
    code, said = run_code(FORK, rack.controller)
    assert (code, said) == (0, "")


FORKS_UNDER_LOAD = """
import os, sys, threading, sluice
client = sluice.connect(sys.argv[1], patience=60)
stop = threading.Event()
def load():
    while not stop.is_set():
        client.submit_many(9, [b"ab"] * 100)
threads = [threading.Thread(target=load) for _ in range(2)]
for thread in threads:
    thread.start()
for turn in range(30):
    client.submit(9, b"ab", deadline=60)
    child = os.fork()
    if child == 0:
        try:
            client.submit(9, b"ab")
        except sluice.Closed:
            pass
        # Frees the parent's client, whose locks its other threads may have held at the fork.
        del client
        if turn == 29:
            with sluice.connect(sys.argv[1], patience=60) as own:
                own.submit(9, b"ab", deadline=60)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
stop.set()
for thread in threads:
    thread.join()
client.close()
"""


def test_a_fork_under_load_leaves_no_child_that_waits_for_ever(rack: Rack) -> None:
    assert run_code(FORKS_UNDER_LOAD, rack.controller) == (0, "")


def forked_child(client: sluice.Client, controller: str, answers: "multiprocessing.Queue[object]") -> None:
    try:
        client.submit(9, b"x")
    except sluice.Closed:
        with sluice.connect(controller, patience=60) as own:
            answers.put(own.submit(9, b"ab", deadline=60).bytes)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_multiprocessing_by_fork_and_by_spawn(rack: Rack) -> None:
    context = multiprocessing.get_context("fork")
    with rack.client() as client:
        client.submit(9, b"x", deadline=60)
        answers = context.Queue()
        children = [
            context.Process(target=forked_child, args=(client, rack.controller, answers)) for _ in range(3)
        ]
        for child in children:
            child.start()
        assert [answers.get(timeout=PATIENCE_S) for _ in children] == [b"ba"] * 3
        for child in children:
            child.join(PATIENCE_S)
            assert child.exitcode == 0
        assert client.submit(9, b"ab", deadline=60).bytes == b"ba"
        with pytest.raises(TypeError, match="pickle"):
            multiprocessing.get_context("spawn").Process(target=print, args=(client,)).start()


EXITS = {
    "with a client open": "client.submit(9, b'x', deadline=60)",
    "with a task under way": "threading.Thread(target=client.submit, args=(11, b'300')).start()",
    "with a daemon's task under way": """
def ask():
    # CPython ends with an error if a daemon writes to stderr while it ends.
    with contextlib.suppress(sluice.Error):
        client.submit(11, b'600')
for _ in range(8):
    threading.Thread(target=ask, daemon=True).start()
time.sleep(0.2)""",
    "with a loop's task under way": """
async def leave():
    client.submit_async(11, b'600')
    client.submit_many_async(11, [b'1'] * 2000)
    await asyncio.sleep(0.05)
asyncio.run(leave())""",
    "with a loop that was never closed": """
loop = asyncio.new_event_loop()
async def leave():
    return client.submit_async(11, b'600')
future = loop.run_until_complete(leave())""",
    "in a garbage circle": "client.itself = [client]; del client",
    "by an exception": "raise SystemExit(0)",
    "while daemons submit": """
def hammer():
    while True:
        with contextlib.suppress(sluice.Error):
            client.submit(9, b'x')
for _ in range(4):
    threading.Thread(target=hammer, daemon=True).start()
time.sleep(0.2)""",
}


@pytest.mark.parametrize("what", EXITS)
def test_an_interpreter_may_end(rack: Rack, what: str) -> None:
    code = (
        "import asyncio, contextlib, sys, threading, time, sluice\n"
        "client = sluice.connect(sys.argv[1], patience=60)\n" + EXITS[what]
    )
    ended, said = run_code(code, rack.controller)
    assert ended == 0, said
    for wrong in ("Fatal", "panicked", "FATAL", "Segmentation", "SIGABRT"):
        assert wrong not in said, said


INTERRUPTED = {
    "a submit": "client.submit(11, b'600000', deadline=600)",
    "a submit_many": "client.submit_many(11, [b'600000'] * 4, deadline=600)",
    "a wait for room": "client.submit_many(11, [b'600000'] * 100_000, deadline=600)",
    "a close": """
threading.Thread(target=lambda: client.submit(11, b'600000', deadline=600), daemon=True).start()
time.sleep(0.2)
client.close()""",
    "a loop": """
async def wait():
    await client.submit_async(11, b'600000', deadline=600)
asyncio.run(wait())""",
    "a close in a loop": """
async def wait():
    async with client:
        client.submit_async(11, b'600000', deadline=600)
asyncio.run(wait())""",
    "a connect": "sluice.connect('127.0.0.1:1', patience=600)",
}


@pytest.mark.parametrize("what", INTERRUPTED)
def test_ctrl_c_ends(own_rack: Rack, what: str) -> None:
    own_rack.start_worker()
    # Until the worker serves, a task is refused.
    own_rack.client().close()
    code = (
        "import asyncio, sys, threading, time, sluice\n"
        "client = sluice.connect(sys.argv[1], patience=60)\nclient.submit(9, b'x', deadline=60)\n"
        "print('ready', flush=True)\n" + INTERRUPTED[what]
    )
    # Nothing above would end by itself as long as this waits.
    ended, said = run_code(code, own_rack.controller, interrupt=True)
    assert ended == -signal.SIGINT, said
    assert "KeyboardInterrupt" in said


def test_the_interpreters_end_frees_a_name(rack: Rack) -> None:
    code = "import sys, sluice\nclient = sluice.connect(sys.argv[1], name='the-one', patience=60)"
    for _ in range(3):
        assert run_code(code, rack.controller) == (0, "")


def test_no_thread_of_ours_runs_without_a_client() -> None:
    code = "import os, sluice\nassert len(os.listdir('/proc/self/task')) == 1"
    assert run_code(code) == (0, "")
