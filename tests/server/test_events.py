"""Listeners come and go at any moment; those that stay hear of every change."""

import asyncio
import contextlib
import random
from dataclasses import replace

from lynceus.server.events import Events
from lynceus.storage.sql.rows import Cursor


class Changing:
    """A storage that changes whenever it is asked."""

    def __init__(self) -> None:
        self.cursor = Cursor("s", "ab12", 0, 0)

    def cursors(self) -> list[Cursor]:
        self.cursor = replace(self.cursor, sequence=self.cursor.sequence + 1)
        return [self.cursor]


def test_listeners_that_leave_in_the_middle_of_a_change_do_not_silence_the_others() -> None:
    async def listen(events: Events) -> None:
        async for _ in events.messages("127.0.0.1"):
            pass

    async def story() -> None:
        events, chance = Events(Changing()), random.Random(7)  # type: ignore[arg-type]
        for _ in range(20):
            tasks = [asyncio.create_task(listen(events)) for _ in range(50)]
            for task in tasks:
                events.check_now()
                if chance.random() < 0.3:
                    await asyncio.sleep(0.001)
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        stream = events.messages("127.0.0.1")
        assert (await anext(stream)).startswith("retry")
        seen = set()
        while len(seen) < 3:
            events.check_now()
            seen.add(await asyncio.wait_for(anext(stream), 30))
        with contextlib.suppress(StopAsyncIteration):
            closing = asyncio.create_task(events.close())
            while True:
                await asyncio.wait_for(anext(stream), 30)
        await asyncio.wait_for(closing, 30)

    asyncio.run(asyncio.wait_for(story(), 120))
