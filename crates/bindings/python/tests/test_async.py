"""The client on asyncio: futures, cancellation, loops that end, clients that end."""

import asyncio
import gc
import os
import threading
import time
import weakref
from typing import Awaitable, Callable, List, Optional, Type

import pytest

import sluice
from racks import PATIENCE_S, Gate, Rack, wait_until

NEW_LOOPS: List[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop]
try:
    import uvloop

    NEW_LOOPS.append(uvloop.new_event_loop)
except ImportError:
    # Not for this Python: the other loop is enough.
    pass


def run(work: Awaitable[None], new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop) -> None:
    """Like asyncio.run(), with a limit, and nothing on the loop's exception handler."""
    loop = new_loop()
    wrong: List[object] = []
    loop.set_exception_handler(lambda _, context: wrong.append(context))
    try:
        loop.run_until_complete(asyncio.wait_for(work, PATIENCE_S))
        gc.collect()
    finally:
        loop.close()
    assert not wrong, wrong


@pytest.mark.parametrize("new_loop", NEW_LOOPS)
def test_tasks_are_awaited(client: sluice.Client, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def work() -> None:
        assert (await client.submit_async(9, b"ab", deadline=PATIENCE_S)).bytes == b"ba"
        replies = await asyncio.gather(
            *(client.submit_async("reverse", b"%d!" % n, deadline=PATIENCE_S) for n in range(1000))
        )
        assert [reply.bytes for reply in replies] == [(b"%d!" % n)[::-1] for n in range(1000)]
        outcomes = await client.submit_many_async(9, [b"%d!" % n for n in range(1000)], deadline=PATIENCE_S)
        assert [bytes(outcome) for outcome in outcomes if isinstance(outcome, sluice.Reply)] == [
            (b"%d!" % n)[::-1] for n in range(1000)
        ]
        assert await client.submit_many_async(9, []) == []

    run(work(), new_loop)


@pytest.mark.parametrize(
    "task_type, data, deadline, kind",
    [
        (10, b"", PATIENCE_S, sluice.Failed),
        (99, b"", PATIENCE_S, sluice.Refused),
        # Without bytes it waits at the gate, which nobody opens in time.
        (15, None, 1.0, sluice.Unknown),
        (9, bytes(65537), PATIENCE_S, sluice.TooLong),
    ],
)
def test_await_raises_what_submit_raises(
    client: sluice.Client,
    gate: Gate,
    task_type: int,
    data: Optional[bytes],
    deadline: float,
    kind: Type[sluice.Error],
) -> None:
    task = gate.task if data is None else data

    async def work() -> None:
        with pytest.raises(kind):
            await client.submit_async(task_type, task, deadline=deadline)
        [outcome] = await client.submit_many_async(task_type, [task], deadline=deadline)
        assert isinstance(outcome, kind)

    run(work())


def test_without_a_loop_the_error_says_what_to_do(client: sluice.Client) -> None:
    with pytest.raises(RuntimeError, match="use submit"):
        client.submit_async(9, b"")


def test_a_cancelled_wait_disturbs_nobody(client: sluice.Client) -> None:
    async def work() -> None:
        for _ in range(3):
            # No outcome is taken before this coroutine waits for something.
            slow = [asyncio.ensure_future(client.submit_async(11, b"100")) for _ in range(4)]
            for future in slow[::2]:
                future.cancel()
            ended = await asyncio.gather(*slow, return_exceptions=True)
            assert [type(outcome) for outcome in ended] == [asyncio.CancelledError, sluice.Reply] * 2
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.submit_async(11, b"100"), 0)
            many = client.submit_many_async(11, [b"50"] * 6)
            many.cancel()
            with pytest.raises(asyncio.CancelledError):
                await many
        assert (await client.submit_async(9, b"live")).bytes == b"evil"

    run(work())


def test_more_tasks_than_there_is_room_for_wait_their_turn_and_the_cancelled_never_run(
    client: sluice.Client,
) -> None:
    async def work() -> None:
        futures = [client.submit_async(9, b"%d" % n, deadline=PATIENCE_S) for n in range(5000)]
        for future in futures[4000:]:
            future.cancel()
        ended = await asyncio.gather(*futures, return_exceptions=True)
        kinds = {type(outcome) for outcome in ended[:4000]}
        assert kinds <= {sluice.Reply, sluice.Refused}, kinds
        assert {type(outcome) for outcome in ended[4000:]} == {asyncio.CancelledError}

    run(work())


def test_room_without_a_wait_is_busy(client: sluice.Client) -> None:
    async def work() -> None:
        # More than there is room for: what comes later waits behind them, or does not want to.
        crowd = client.submit_many_async(9, [b"1"] * 30_000)
        with pytest.raises(sluice.Busy, match="no room"):
            client.submit_async(9, b"1", wait_for_room=False)
        assert len(await crowd) == 30_000
        assert (await client.submit_async(9, b"live", wait_for_room=False)).bytes == b"evil"

    run(work())


def test_each_thread_has_its_own_loop(client: sluice.Client) -> None:
    replies: List[bytes] = []

    def loop_of_a_thread(name: bytes) -> None:
        async def work() -> None:
            for n in range(50):
                replies.append((await client.submit_async(9, name + b"%d" % n)).bytes)

        asyncio.run(work())

    threads = [threading.Thread(target=loop_of_a_thread, args=(b"%d-" % number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(replies) == sorted((b"%d-%d" % (t, n))[::-1] for t in range(4) for n in range(50))


def test_a_loop_that_is_closed_with_tasks_under_way_leaves_nothing(own_rack: Rack) -> None:
    own_rack.start_worker()
    with own_rack.client() as client:
        loops: List["weakref.ref[asyncio.AbstractEventLoop]"] = []
        for _ in range(4):
            loop = asyncio.new_event_loop()
            loops.append(weakref.ref(loop))

            async def leave() -> None:
                client.submit_async(11, b"200")
                client.submit_many_async(11, [b"10"] * 3)

            loop.run_until_complete(leave())
            loop.close()
            del loop
        assert client.submit(9, b"live").bytes == b"evil"
    del client
    gc.collect()
    wait_until(lambda: gc.collect() >= 0 and not any(loop() for loop in loops), "loops are freed")


def test_close_in_the_loop_lets_tasks_end_first(rack: Rack) -> None:
    async def work() -> None:
        async with rack.client() as client:
            slow = client.submit_async(11, b"200")
            many = client.submit_many_async(11, [b"10"] * 4)
        assert client.closed
        assert (await slow).bytes == b"slept"
        assert [type(outcome) for outcome in await many] == [sluice.Reply] * 4
        with pytest.raises(sluice.Closed):
            await client.submit_async(9, b"")

    run(work())


async def reached(gate: Gate) -> None:
    """Waits until a task is at the gate."""
    await asyncio.get_running_loop().run_in_executor(None, gate.wait)


def test_an_abort_ends_all_that_is_awaited(own_rack: Rack, gate: Gate) -> None:
    own_rack.start_worker()

    async def work() -> None:
        client = own_rack.client()
        runs = client.submit_async(15, gate.task, deadline=PATIENCE_S)
        # More than the client has room for: some wait here.
        waiting = client.submit_many_async(15, [gate.task] * 20_000, deadline=PATIENCE_S)
        await reached(gate)
        threading.Thread(target=client.abort).start()
        with pytest.raises(sluice.Unknown):
            await runs
        kinds = {type(outcome) for outcome in await waiting}
        assert kinds <= {sluice.Unknown, sluice.Refused, sluice.Closed}, kinds
        assert sluice.Closed in kinds

    run(work())


def test_a_client_that_is_dropped_while_it_is_awaited_ends_the_wait(own_rack: Rack, gate: Gate) -> None:
    own_rack.start_worker()

    async def work() -> None:
        client = own_rack.client()
        slow = client.submit_async(15, gate.task, deadline=PATIENCE_S)
        await reached(gate)
        with pytest.warns(ResourceWarning):
            del client
            gc.collect()
        with pytest.raises(sluice.Unknown):
            await slow

    run(work())


def test_a_loop_forgets_the_descriptors_of_closed_clients(rack: Rack) -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()

        def descriptors() -> int:
            return len(os.listdir("/proc/self/fd"))

        before = descriptors()
        for _ in range(5):
            async with rack.client() as client:
                await client.submit_async(9, b"x")
            del client
        until = time.monotonic() + PATIENCE_S
        while descriptors() > before and time.monotonic() < until:
            await asyncio.sleep(0.01)
            gc.collect()
        assert descriptors() <= before
        assert loop.is_running()

    run(work())


def test_finished_tasks_leave_no_objects(client: sluice.Client) -> None:
    async def work() -> None:
        async def some() -> None:
            await asyncio.gather(*(client.submit_async(9, b"%d" % n) for n in range(200)))
            cancelled = client.submit_async(11, b"1")
            cancelled.cancel()
            await asyncio.sleep(0.05)

        await some()
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(5):
            await some()
        gc.collect()
        assert len(gc.get_objects()) - before < 100

    run(work())
