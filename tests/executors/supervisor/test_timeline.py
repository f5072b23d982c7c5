import os
import time

from lynceus.executors.supervisor.timeline import Timeline


def test_a_reader_never_sees_a_moment_half_written() -> None:
    """Both processes write the same moment again and again; no reader may see anything else in between."""
    line = Timeline()
    moments = (1234.5678, 98765.4321)
    line.ended = moments[0]
    writer = os.fork()
    if writer == 0:
        until = time.monotonic() + 20.0
        while line.gone == 0.0 and time.monotonic() < until:
            for one in moments:
                line.ended = one
        os._exit(0)
    try:
        seen = {line.ended for _ in range(300_000)}
    finally:
        line.gone = 1.0
        os.waitpid(writer, 0)
    assert seen <= set(moments)
