"""The conformance suite of the serving runner: real servers with bad habits, on any executor. A failed check raises an AssertionError.

from lynceus.testing import ExecutorHarness, serving_checks

@pytest.mark.parametrize("check", serving_checks().values(), ids=serving_checks())
def test_servers_on_my_executor(check, tmp_path):
    check(ExecutorHarness(lambda problem, job, root: MyExecutor(problem, job, root), tmp_path))
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from lynceus.executors.command import JobCommand
from lynceus.executors.serve import LoadCommand, Ready, Requests, Serve
from lynceus.testing import unruly_server
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.trial.outcome import End, FailureReason, Outcome

Check = Callable[[ExecutorHarness], None]
_LOAD = Requests(rate=40.0, prompt_tokens=4, output_tokens=8, request_timeout_s=2.0)
_TABLE = """
print("Successful requests:                     90        ")
print("Failed requests:                         10        ")
print("Output token throughput (tok/s):         777.04    ")
print("P99 TTFT (ms):                           43.5      ")
"""


def served(
    harness: ExecutorHarness, *habits: str, load: Requests | LoadCommand = _LOAD, stop_after_s: float | None = 1.0
) -> JobCommand:
    """A job that measures the unruly server."""
    program = harness.folder / "server.py"
    if not program.exists():
        shutil.copy(unruly_server.__file__, program)
    serve = Serve(Ready("/health", within_s=20.0), load, stop_after_s)
    return replace(harness.job((sys.executable, str(program), "${port}", *habits)), serve=serve)


def _failure(harness: ExecutorHarness, job: JobCommand, *words: str) -> Outcome:
    """The run fails with one sentence, and nothing of it is left."""
    _, outcome = harness.run(job)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.JOB), outcome
    for word in words:
        assert word in outcome.detail, f"{outcome.detail!r} does not contain {word!r}"
    assert "\n" not in outcome.detail
    assert "exit code 70" not in outcome.detail, outcome.detail
    harness.check_all_ended()
    return outcome


def _measures(harness: ExecutorHarness) -> None:
    _, outcome = harness.run(served(harness, "slow-start"))
    assert outcome.end is End.FINISHED, outcome
    found = outcome.metrics
    assert 10 <= found["requests"] <= 90, f"40 requests a second for one second: {found['requests']}"
    assert found["error_share"] == 0.0
    assert found["throughput"] > 100, "each answer has 16 tokens, as the server counts them"
    assert found["total_throughput"] > found["throughput"]
    shortest = 1000.0 * unruly_server.TOKEN_S
    for name in ("ttft", "itl", "latency"):
        assert shortest * 0.9 < found[f"p50_{name}"] <= found[f"p95_{name}"] <= found[f"p99_{name}"], (
            name,
            dict(found),
        )
    assert found["ready_s"] >= 0.4, "it starts slowly"
    assert found["usd_per_mtok"] > 0
    assert outcome.trace[-1][1] == 1.0
    harness.check_all_ended()


def _closed_loop(harness: ExecutorHarness) -> None:
    load = replace(_LOAD, rate=None, concurrency="${clients}")
    job = served(harness, load=load)
    request = replace(harness.request(), params={"word": "plain", "clients": 3})
    _, outcome = harness.run(job, request)
    assert outcome.end is End.FINISHED, outcome
    most = 3 / (unruly_server.TOKENS * unruly_server.TOKEN_S)
    assert 0 < outcome.metrics["requests_per_s"] <= 1.1 * most, "three clients cannot have more answers at a time"
    harness.check_all_ended()


def _never_ready(harness: ExecutorHarness) -> None:
    job = served(harness, "never-ready")
    assert job.serve is not None
    ready = replace(job.serve, ready=Ready("/health", within_s=1.0))
    _failure(harness, replace(job, serve=ready), "not ready within 1 s", "HTTP 503")


def _never_listens(harness: ExecutorHarness) -> None:
    job = served(harness, "no-listen")
    assert job.serve is not None
    ready = replace(job.serve, ready=Ready("/health", within_s=1.0))
    _failure(harness, replace(job, serve=ready), "not ready within 1 s", "connection refused")


def _not_http(harness: ExecutorHarness) -> None:
    job = served(harness, "not-http")
    assert job.serve is not None
    ready = replace(job.serve, ready=Ready("/health", within_s=1.0))
    _failure(harness, replace(job, serve=ready), "not ready within 1 s", "not HTTP")


def _ends_before(harness: ExecutorHarness) -> None:
    outcome = _failure(harness, served(harness, "no-start"), "exit code 1 before it was ready", "CUDA out of memory")
    assert outcome.seconds < 15, "nobody waits for a server that has ended"


def _cannot_start(harness: ExecutorHarness) -> None:
    job = replace(served(harness), run=("no-such-server", "${port}"))
    _, outcome = harness.run(job)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.JOB), outcome
    assert "'no-such-server': No such file" in outcome.detail, outcome.detail


def _asks_for_retry(harness: ExecutorHarness) -> None:
    _, outcome = harness.run(served(harness, "retries"))
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.INFRA), outcome


def _crashes(harness: ExecutorHarness) -> None:
    _failure(harness, served(harness, "crashes"), "killed by SIGKILL under load", "Segmentation fault")


def _garbage(harness: ExecutorHarness) -> None:
    for number, (habit, word) in enumerate(
        (
            ("errors", "HTTP 500"),
            ("garbage", "not what the OpenAI API sends"),
            ("html", "not a stream of events"),
            ("cuts", "ended early"),
        )
    ):
        _, outcome = harness.run(served(harness, habit), harness.request(number))
        assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.JOB), outcome
        assert "requests failed" in outcome.detail, f"{habit}: {outcome.detail!r}"
        assert word in outcome.detail, f"{habit}: {outcome.detail!r}"
    harness.check_all_ended()


def _errors_in_part(harness: ExecutorHarness) -> None:
    _failure(harness, served(harness, "some-errors"), "requests failed", "HTTP 500")
    _, outcome = harness.run(served(harness, "some-errors", load=replace(_LOAD, max_errors=0.9)), harness.request(1))
    assert outcome.end is End.FINISHED, outcome
    assert 0.2 < outcome.metrics["error_share"] < 0.8, dict(outcome.metrics)


def _hangs(harness: ExecutorHarness) -> None:
    _failure(harness, served(harness, "hangs", load=replace(_LOAD, request_timeout_s=1.0)), "was answered within 1 s")


def _stubborn(harness: ExecutorHarness) -> None:
    _, outcome = harness.run(served(harness, "stubborn", "daemon"))
    assert outcome.end is End.FINISHED, outcome
    harness.check_all_ended()
    assert len(harness.lines("pids")) == 2, "the server and the daemon that it left"


def _timeout(harness: ExecutorHarness) -> None:
    job = served(harness, "stubborn", "daemon", stop_after_s=1000.0)
    _, outcome = harness.run(job, harness.request(timeout_s=3.0))
    assert outcome.end is End.TIMEOUT, outcome
    harness.check_all_ended()


def _cancel(harness: ExecutorHarness) -> None:
    with harness.executor(job := served(harness, "daemon", stop_after_s=1000.0)) as executor:
        ticket = executor.launch(harness.request())
        harness.wait_for_file(executor, ticket, "pids")
        executor.cancel(ticket)
        outcome = harness.wait(executor, ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.USER), (job, outcome)
    harness.check_all_ended()


def _runner_killed(harness: ExecutorHarness) -> None:
    if not harness.jobs_are_local:
        return
    with harness.executor(served(harness, "stubborn", "daemon", stop_after_s=1000.0)) as executor:
        ticket = executor.launch(harness.request())
        harness.wait_until(lambda: len(harness.lines("pids")) == 2, "the server and its daemon")
        parent = int(
            Path(f"/proc/{harness.lines('pids')[0]}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1]
        )
        os.kill(parent, signal.SIGKILL)
        outcome = harness.wait(executor, ticket)
    assert outcome.end is End.FAILED, outcome
    harness.check_all_ended()


def _load_command(harness: ExecutorHarness) -> None:
    load = LoadCommand(
        (sys.executable, "-c", _TABLE + "import sys; assert sys.argv[1].startswith('http://')", "${url}")
    )
    ticket, outcome = harness.run(served(harness, load=load, stop_after_s=None))
    assert outcome.end is End.FINISHED, outcome
    found = outcome.metrics
    assert (found["throughput"], found["p99_ttft"], found["error_share"]) == (777.04, 43.5, 0.1), dict(found)
    out, err = (Path(ticket, name).read_text(encoding="utf-8") for name in ("stdout", "stderr"))
    assert "P99 TTFT" in out, "the load's output is standard output"
    assert "listening on" in err, "the server's output is standard error"
    harness.check_all_ended()


def _load_script(harness: ExecutorHarness) -> None:
    script = 'echo "{\\"output_throughput\\": 12.5, \\"p99_ttft_ms\\": $port, \\"mine\\": 3}" > "$LYNCEUS_SCRATCH/found.json"'
    load = LoadCommand(script, "$LYNCEUS_SCRATCH/found.json")
    _, outcome = harness.run(served(harness, load=load, stop_after_s=None))
    assert outcome.end is End.FINISHED, outcome
    assert (outcome.metrics["throughput"], outcome.metrics["mine"]) == (12.5, 3.0), dict(outcome.metrics)
    assert 1024 < outcome.metrics["p99_ttft"] < 65536


def _load_fails(harness: ExecutorHarness) -> None:
    failing = LoadCommand(("sh", "-c", "echo no tokenizer found; exit 3"))
    _failure(
        harness, served(harness, load=failing, stop_after_s=None), "the load ended with exit code 3", "no tokenizer"
    )
    silent = LoadCommand(("true",), "nowhere.json")
    _, outcome = harness.run(served(harness, load=silent, stop_after_s=None), harness.request(1))
    assert outcome.end is End.FAILED, outcome
    assert "did not write its results" in outcome.detail, outcome.detail
    odd = LoadCommand('echo "[1, 2" > odd.json', "odd.json")
    _, outcome = harness.run(served(harness, load=odd, stop_after_s=None), harness.request(2))
    assert outcome.end is End.FAILED, outcome
    assert "cannot be read" in outcome.detail, outcome.detail


def _load_is_stopped(harness: ExecutorHarness) -> None:
    endless = LoadCommand(
        "trap 'echo \"Output token throughput (tok/s):  5.0\"; exit 1' INT; echo $$ >> $FOLDER/pids; while true; do sleep 0.05; done"
    )
    _, outcome = harness.run(served(harness, load=endless))
    assert outcome.end is End.FINISHED, outcome
    assert outcome.metrics["throughput"] == 5.0, dict(outcome.metrics)
    harness.check_all_ended()


def _server_output_is_no_result(harness: ExecutorHarness) -> None:
    job = replace(served(harness), metrics={"throughput": r"throughput=(\d+)"})
    _, outcome = harness.run(job)
    assert outcome.end is End.FINISHED, outcome
    assert outcome.metrics["throughput"] != 999.0, "that is what the server says of itself"


def _own_ports(harness: ExecutorHarness) -> None:
    job = served(harness, stop_after_s=2.0)
    with harness.executor(job) as executor:
        tickets = [executor.launch(harness.request(number)) for number in range(3)]
        outcomes = [harness.wait(executor, ticket) for ticket in tickets]
    assert all(one.end is End.FINISHED and one.metrics["error_share"] == 0.0 for one in outcomes), outcomes
    harness.check_all_ended()


def _taken_port(harness: ExecutorHarness) -> None:
    if not harness.jobs_are_local:
        return
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as foreign:
        job = served(harness)
        assert job.serve is not None
        _, outcome = harness.run(replace(job, serve=replace(job.serve, port=foreign.getsockname()[1])))
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.INFRA), outcome
    assert "in use before the server starts" in outcome.detail, outcome.detail
    assert not harness.lines("pids"), "the server is not started: another one would have been measured"


_CHECKS: Mapping[str, Check] = {
    "a server under load is measured": _measures,
    "clients that wait for answers": _closed_loop,
    "a server that is never ready": _never_ready,
    "a server that never listens": _never_listens,
    "a server that does not speak HTTP": _not_http,
    "a server that ends before it is ready": _ends_before,
    "a server that cannot be started": _cannot_start,
    "a server that asks for a retry": _asks_for_retry,
    "a server that crashes under load": _crashes,
    "a server that answers garbage": _garbage,
    "a server that fails in part": _errors_in_part,
    "a server that hangs": _hangs,
    "a server that leaves daemons and ignores SIGTERM": _stubborn,
    "the timeout ends server and load": _timeout,
    "cancel ends server and load": _cancel,
    "a runner that is killed leaves nothing": _runner_killed,
    "the table of a load command": _load_command,
    "the result file of a load script": _load_script,
    "a load command that fails": _load_fails,
    "a load command that does not end": _load_is_stopped,
    "what the server prints is no result": _server_output_is_no_result,
    "parallel runs have ports of their own": _own_ports,
    "a port that is taken": _taken_port,
}


def serving_checks() -> Mapping[str, Check]:
    """All checks by name; each needs a harness with its own folder.

    >>> "a server that crashes under load" in serving_checks()
    True
    """
    return _CHECKS
