"""The blocking client: arguments, outcomes, threads, signals."""

import gc
import os
import pickle
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any, Callable, List

import pytest

import sluice
from racks import PATIENCE_S, Gate, Rack, wait_until


def test_a_reply_has_bytes_and_times(client: sluice.Client) -> None:
    before = time.monotonic_ns()
    reply = client.submit(11, b"20")
    assert reply.bytes == bytes(reply) == b"slept"
    assert len(reply) == 5
    assert reply.service_ns >= 20_000_000
    assert before < reply.received_ns < time.monotonic_ns()
    assert reply.attempts >= 1
    assert "b'slept'" in repr(reply)


def test_an_empty_reply_is_true(client: sluice.Client) -> None:
    reply = client.submit(9, b"")
    assert reply and reply.bytes == b""


def test_a_type_may_be_a_name_of_the_plan(client: sluice.Client) -> None:
    assert client.types["reverse"] == 9
    assert client.submit("reverse", b"ab").bytes == b"ba"
    with pytest.raises(sluice.BadInput, match="no type `revers` .*reverse"):
        client.submit("revers", b"")


@pytest.mark.parametrize(
    "data", [b"abc", bytearray(b"abc"), memoryview(b"abc"), memoryview(bytearray(b"xabc"))[1:]]
)
def test_bytes_like_objects_are_tasks(client: sluice.Client, data: bytes) -> None:
    assert client.submit(9, data).bytes == b"cba"


def test_a_bytearray_may_change_its_length_once_it_was_submitted(client: sluice.Client, gate: Gate) -> None:
    data = bytearray(gate.task)
    waiting = threading.Thread(target=client.submit, args=(15, data), kwargs={"deadline": PATIENCE_S})
    waiting.start()
    gate.wait()
    data[:] = b"abc"
    gate.open()
    waiting.join()
    assert client.submit(9, data).bytes == b"cba"


@pytest.mark.parametrize(
    "call, error, said",
    [
        (lambda client: client.submit(9, "text"), TypeError, "encode the text"),
        (lambda client: client.submit(9, 5), TypeError, "not int"),
        (lambda client: client.submit(9, None), TypeError, "not NoneType"),
        (lambda client: client.submit(9, memoryview(b"abcd")[::2]), BufferError, "contiguous"),
        (lambda client: client.submit(-1, b""), sluice.BadInput, "0 to 65535, not -1"),
        (lambda client: client.submit(65536, b""), sluice.BadInput, "0 to 65535"),
        (lambda client: client.submit(2**80, b""), sluice.BadInput, "0 to 65535"),
        (lambda client: client.submit(9.0, b""), TypeError, "a number, or a name"),
        (lambda client: client.submit(9, b"", deadline=-1), sluice.BadInput, "deadline"),
        (lambda client: client.submit(9, b"", deadline=float("nan")), sluice.BadInput, "deadline"),
        (lambda client: client.submit(9, b"", deadline=float("inf")), sluice.BadInput, "deadline"),
        (lambda client: client.submit(9, b"", deadline="5"), TypeError, "real number"),
        (lambda client: client.submit(9, b"", budget=-1), sluice.BadInput, "budget"),
        (lambda client: client.submit(9, b"", priority=1, work=0.1), sluice.BadInput, "one of both"),
        (lambda client: client.submit(9, b"", priority=-1), sluice.BadInput, "0 to 255, not -1"),
        (lambda client: client.submit(9, b"", priority=256), sluice.BadInput, "0 to 255, not 256"),
        (lambda client: client.submit(9, b"", priority="high"), TypeError, "integer"),
        (lambda client: client.submit(9, b"", labels="gpu"), TypeError, "not one text"),
        (lambda client: client.submit(9, b"", labels=[5]), TypeError, "str"),
        (lambda client: client.submit_many(9, b"abc"), TypeError, "list of bytes"),
        (lambda client: client.submit_many(9, [b"a", "b"]), TypeError, "encode the text"),
    ],
)
def test_an_argument_that_makes_no_sense_is_an_error_that_says_so(
    client: sluice.Client, call: Callable[[Any], object], error: type, said: str
) -> None:
    with pytest.raises(error, match=said):
        call(client)
    assert client.submit(9, b"live").bytes == b"evil"


def test_all_errors_are_of_one_class_and_say_what_next(client: sluice.Client, gate: Gate) -> None:
    with pytest.raises(sluice.Error) as failed:
        client.submit(10, b"it")
    assert isinstance(failed.value, sluice.Failed)
    assert failed.value.text == "told to fail: it"
    assert str(failed.value) == "the service failed: told to fail: it"
    with pytest.raises(sluice.Refused, match="no slice takes type 99: ") as refused:
        client.submit(99, b"")
    assert (refused.value.why, refused.value.retry_after) == ("no-slice", None)
    with pytest.raises(sluice.Unknown, match="deadline passed") as unknown:
        client.submit(15, gate.task, deadline=1.0)
    assert unknown.value.why == "deadline"
    with pytest.raises(sluice.TooLong, match="65537 bytes"):
        client.submit(9, bytes(65537))


def test_outcomes_can_be_pickled(client: sluice.Client) -> None:
    refused = sluice.Refused("too much", "busy", 0.25)
    failed = sluice.Failed("it failed", sluice.Reply(b"why", 3))
    for error in (refused, failed, sluice.Unknown("gone", "reply-gone"), sluice.Busy("full")):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error)
    assert pickle.loads(pickle.dumps(refused)).retry_after == 0.25
    assert pickle.loads(pickle.dumps(failed)).text == "why"
    reply = client.submit(9, b"ab")
    copy = pickle.loads(pickle.dumps(reply))
    assert (copy.bytes, copy.service_ns) == (b"ba", reply.service_ns)


def test_many_outcomes_come_in_the_order_of_their_tasks_and_errors_are_values(client: sluice.Client) -> None:
    tasks = [f"{number:04}".encode() for number in range(100)]
    outcomes = client.submit_many(9, tasks)
    assert [bytes(outcome) for outcome in outcomes if isinstance(outcome, sluice.Reply)] == [
        task[::-1] for task in tasks
    ]
    mixed = client.submit_many(9, (task for task in (b"ab", bytes(70_000), b"cd")))
    assert [type(outcome) for outcome in mixed] == [sluice.Reply, sluice.TooLong, sluice.Reply]
    assert client.submit_many(9, []) == []


def test_threads_share_a_client(client: sluice.Client) -> None:
    wrong: List[bytes] = []

    def submit(name: bytes) -> None:
        for number in range(50):
            task = name + b"%d" % number
            if client.submit(9, task).bytes != task[::-1]:
                wrong.append(task)

    threads = [threading.Thread(target=submit, args=(b"thread%d-" % number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_threads_run_while_one_waits(client: sluice.Client) -> None:
    turns, stop = 0, threading.Event()

    def count() -> None:
        nonlocal turns
        while not stop.is_set():
            turns += 1

    counter = threading.Thread(target=count)
    counter.start()
    before = turns
    client.submit(11, b"100")
    stop.set()
    counter.join()
    assert turns > before


def signal_when_a_task_is_at(gate: Gate) -> threading.Thread:
    """Sends this process a signal when its task runs."""

    def send() -> None:
        gate.wait()
        os.kill(os.getpid(), signal.SIGUSR1)

    sender = threading.Thread(target=send)
    sender.start()
    return sender


def test_a_signal_ends_a_wait_and_the_next_task_is_not_confused(client: sluice.Client, tmp_path: Path) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise InterruptedError(number)

    ways: List[Callable[[bytes], object]] = [
        lambda task: client.submit(15, task, deadline=PATIENCE_S),
        lambda task: client.submit_many(15, [task] * 4, deadline=PATIENCE_S),
    ]
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        for number, submit in enumerate(ways):
            gate = Gate(tmp_path / str(number))
            sender = signal_when_a_task_is_at(gate)
            with pytest.raises(InterruptedError):
                submit(gate.task)
            sender.join()
            gate.open()
            outcomes = client.submit_many(9, [b"ab"] * 20, deadline=PATIENCE_S)
            assert [bytes(outcome) for outcome in outcomes if isinstance(outcome, sluice.Reply)] == [b"ba"] * 20
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_handler_of_a_signal_may_submit_within_a_wait(client: sluice.Client, gate: Gate) -> None:
    replies: List[bytes] = []

    def submit(number: int, frame: object) -> None:
        # This task may wait behind the one at the gate.
        gate.open()
        replies.append(client.submit(9, b"within", deadline=PATIENCE_S).bytes)

    before = signal.signal(signal.SIGUSR1, submit)
    try:
        sender = signal_when_a_task_is_at(gate)
        assert client.submit(15, gate.task, deadline=PATIENCE_S).bytes == b"passed"
        sender.join()
        assert replies == [b"nihtiw"]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_busy_is_an_error_only_if_one_does_not_want_to_wait(client: sluice.Client) -> None:
    # As long as these wait for room, there is none.
    crowd = threading.Thread(target=client.submit_many, args=(9, [b"1"] * 20_000))
    crowd.start()
    found = False
    while crowd.is_alive() and not found:
        try:
            client.submit(9, b"1", deadline=0.01, wait_for_room=False)
        except sluice.Busy as why:
            found = "no room" in str(why)
        except (sluice.Refused, sluice.Unknown):
            pass
    crowd.join()
    assert found


def test_a_closed_client_says_so_and_may_be_closed_again(rack: Rack) -> None:
    client = rack.client()
    assert not client.closed and "open" in repr(client)
    client.close()
    client.close()
    client.abort()
    assert client.closed and "closed" in repr(client)
    for call in (lambda: client.submit(9, b""), lambda: client.submit("reverse", b""), lambda: client.types):
        with pytest.raises(sluice.Closed, match="connect a new one"):
            call()
    with rack.client() as another:
        assert [type(o) for o in another.submit_many(9, [b""])] == [sluice.Reply]


def test_close_waits_for_tasks_and_abort_does_not(rack: Rack, tmp_path: Path) -> None:
    outcomes: List[object] = []

    def submit(client: sluice.Client, gate: Gate) -> None:
        try:
            outcomes.append(client.submit(15, gate.task, deadline=PATIENCE_S).bytes)
        except sluice.Error as error:
            outcomes.append(type(error))

    for ends, outcome in ((sluice.Client.close, b"passed"), (sluice.Client.abort, sluice.Unknown)):
        client, gate = rack.client(), Gate(tmp_path / ends.__name__)
        thread = threading.Thread(target=submit, args=(client, gate))
        thread.start()
        gate.wait()
        if outcome == b"passed":
            threading.Timer(0.1, gate.open).start()
        ends(client)
        thread.join()
        assert outcomes.pop() == outcome
        gate.open()


def test_an_exception_in_a_with_block_ends_the_client_at_once(rack: Rack) -> None:
    with pytest.raises(KeyError):
        with rack.client() as client:
            raise KeyError
    assert client.closed


def test_a_client_that_nobody_closes_is_warned_of_and_leaves(rack: Rack) -> None:
    name = "left-alone"
    client = rack.client(name=name)
    with pytest.warns(ResourceWarning, match="unclosed"):
        del client
        gc.collect()
    # Its name is free as soon as it has left.
    with rack.client(name=name) as again:
        assert again.submit(9, b"live").bytes == b"evil"


def test_nobody_there_is_an_error_with_the_address(tmp_path: Path) -> None:
    with pytest.raises(sluice.NotConnected, match="127.0.0.1:1 "):
        sluice.connect("127.0.0.1:1", patience=0.1)
    assert issubclass(sluice.NotConnected, ConnectionError)
    with pytest.raises(sluice.BadInput, match="no such file"):
        sluice.connect("127.0.0.1:1", ca=tmp_path / "none.pem")
    with pytest.raises(sluice.BadInput, match="listen"):
        sluice.connect("127.0.0.1:1", listen="nowhere")
    with pytest.raises(sluice.BadInput, match="authority"):
        sluice.connect("127.0.0.1:1", identity=("a", "b"))
    for dilation in (0, -1, 2**40):
        with pytest.raises(sluice.BadInput, match=f"factor from 1 on, not {dilation}"):
            sluice.connect("127.0.0.1:1", dilation=dilation)
    with pytest.raises(sluice.BadInput):
        sluice.connect("no address at all")


def test_no_test_leaves_descriptors_behind(rack: Rack) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    def use() -> None:
        with rack.client() as client:
            client.submit(9, b"x")

    use()
    before = descriptors()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            use()
    wait_until(lambda: descriptors() <= before, "sockets are closed")
