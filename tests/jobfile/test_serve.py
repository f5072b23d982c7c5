"""The section `serve`: what it accepts, what it refuses with one sentence, and what reaches the executor."""

from __future__ import annotations

from pathlib import Path

import pytest

from lynceus.errors import InputError
from lynceus.executors.interface import Request
from lynceus.executors.run_directory import prepare as prepare_run
from lynceus.executors.serve import LoadCommand, Requests, serve_record
from lynceus.jobfile.checks import check_startable
from lynceus.jobfile.command_line import command_line
from lynceus.jobfile.executor import job_command, served
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare

GOOD = """\
name: chat
serve:
  command: [python3, server.py, --port, "${port}", --batch, "${batch}"]
  ready: /health
  load: {rate: 4, warmup: 2s}
  stop_after: 20s
space: {batch: [1, 2], rps: [1, 2]}
price: 0.1
objective: minimize usd_per_mtok
constraints: ["p99_ttft <= 500"]
budget: {cost: 1 USD}
"""


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


def prepared(text: str, folder: Path):
    return prepare(Job.parse(text, folder))


def test_the_request_of_a_run_has_the_server_and_the_load(tmp_path: Path) -> None:
    study = prepared(changed("{rate: 4, warmup: 2s}", "{rate: '${rps}', warmup: 2s, output_tokens: 8}"), tmp_path)
    command = job_command(study.job, {})
    request = Request("chat", 0, 0, {"batch": 2, "rps": 1}, 60.0, True, "id")
    record = prepare_run(tmp_path / "run" / "0", request, command)
    assert record["argv"] == ["python3", "server.py", "--port", "${port}", "--batch", "2"]
    assert record["serve"]["ready"] == {"path": "/health", "within_s": 300.0, "status": None}
    load = record["serve"]["load"]
    assert (load["rate"], load["concurrency"], load["output_tokens"], load["warmup_s"]) == (1.0, None, 8, 2.0)
    assert (record["serve"]["port"], record["serve"]["stop_after_s"]) == (None, 20.0)


def test_a_load_command_may_stand_alone(tmp_path: Path) -> None:
    for written in ("[vllm, bench, serve, --port, '${port}']", "vllm bench serve --port $port"):
        study = prepared(changed("{rate: 4, warmup: 2s}", written), tmp_path)
        serve = job_command(study.job, {}).serve
        assert serve is not None
        assert isinstance(serve.load, LoadCommand)


def test_trials_end_when_their_measurement_must_be_over(tmp_path: Path) -> None:
    rule = prepared(GOOD, tmp_path).policy.timeout.rule
    assert getattr(rule, "seconds", None) == 300.0 + 20.0 + 2 * 60.0
    own = prepared(GOOD + "trial: {max_duration: 2m}\n", tmp_path).policy.timeout.rule
    assert getattr(own, "seconds", None) == 120.0


def test_the_command_to_copy_starts_the_server_alone(tmp_path: Path) -> None:
    job = Job.parse(GOOD, tmp_path)
    assert command_line(job, {"batch": 2, "rps": 1}) == ("LYNCEUS_PARAM_RPS=1 python3 server.py --port 8000 --batch 2")
    script = changed(
        '[python3, server.py, --port, "${port}", --batch, "${batch}"]', '"serve --port $port --batch $batch"'
    )
    assert "port=8000 " in command_line(Job.parse(script, tmp_path), {"batch": 2, "rps": 1})


def test_own_requests_have_a_duration_without_being_told(tmp_path: Path) -> None:
    serve = job_command(prepared(changed("  stop_after: 20s\n", ""), tmp_path).job, {}).serve
    assert serve is not None
    assert isinstance(serve.load, Requests)
    assert serve.stop_after_s == 32.0


REFUSED: dict[str, tuple[str, str]] = {
    "both": (GOOD + "run: 'true'\n", "it has both 'run' and 'serve'; a trial is either a job or a server under load"),
    "no port": (
        changed('--port, "${port}"', "--fast, yes"),
        "job.yaml:3: serve.command: the server is not told on which port to listen; write ${port} among its arguments",
    ),
    "two ports": (
        changed("  ready: /health", "  port: 80\n  ready: /health"),
        "it uses ${port}, so it needs no serve.port",
    ),
    "unknown placeholder": (
        changed('"${batch}"', '"${bacth}"'),
        "${bacth} is not a parameter of the space. Did you mean 'batch'?",
    ),
    "unknown in load": (
        changed("rate: 4", "rate: '${rsp}'"),
        "job.yaml:5: serve.load.rate: ${rsp} is not a parameter of the space.",
    ),
    "no load": (changed("{rate: 4, warmup: 2s}", "{warmup: 2s}"), "it says neither; write one of command, rate"),
    "two loads": (changed("rate: 4,", "rate: 4, concurrency: 2,"), "got rate and concurrency; write one of"),
    "rate of zero": (changed("rate: 4", "rate: 0"), "serve.load.rate: got 0; write a number above 0."),
    "rate that is a word": (changed("rate: 4", "rate: fast"), "got 'fast'; write a number above 0, or a parameter"),
    "rate that is zero somewhere": (
        changed("rate: 4", "rate: '${rps}'").replace("rps: [1, 2]", "rps: [0, 2]"),
        "serve.load.rate: '0' is not a number above 0",
    ),
    "path without a slash": (
        changed("/health", "health"),
        "serve.ready: got 'health'; write a path that begins with '/'",
    ),
    "ready at once": (changed("/health", "{path: /health, within: 0}"), "got 0 seconds, in which no server is ready"),
    "results without a command": (
        changed("rate: 4,", "rate: 4, results: a.json,"),
        "'results' names the file of a load command",
    ),
    "settings of another load": (
        changed("{rate: 4, warmup: 2s}", "{command: ['true'], warmup: 2s}"),
        "'warmup' is for requests of Lynceus itself; write it as an argument of the command.",
    ),
    "only warm-up": (changed("stop_after: 20s", "stop_after: 2s"), "nothing would count; raise stop_after"),
    "parameter named port": (
        changed("{batch: [1, 2], rps", "{port: [1, 2], batch: [1, 2], rps"),
        "space.port: serve sets ${port} for every trial; choose another name, such as 'my_port'.",
    ),
    "one port for two trials": (
        changed(', --port, "${port}"', "").replace("  ready:", "  port: 8080\n  ready:") + "trial: {parallel: 2}\n",
        "serve.port: 2 trials at a time cannot all listen on port 8080",
    ),
    "no prompts": (
        changed("rate: 4,", "rate: 4, prompts: mine.txt,"),
        "serve.load.prompts: there is no file 'mine.txt' in",
    ),
    "interpreter": (
        changed("{rate: 4, warmup: 2s}", '"#!/usr/bin/python3\\nprint(1)"'),
        "write a list such as [python3, load.py]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_mistakes_are_one_sentence(case: str, tmp_path: Path) -> None:
    text, words = REFUSED[case]
    with pytest.raises(InputError) as error:
        prepared(text, tmp_path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_program_is_named_with_its_field(tmp_path: Path) -> None:
    job = Job.parse(changed("{rate: 4, warmup: 2s}", "[no-such-bench, '${url}']"), tmp_path)
    with pytest.raises(InputError, match=r"job.yaml:5: serve.load.command: there is no program 'no-such-bench'"):
        check_startable(job)
    assert any("serve.load.command: there is no program" in note for note in prepare(job).notes)


RAMP = (
    GOOD.replace("{rate: 4, warmup: 2s}", "{concurrency: '${clients}', warmup: 2s, request_timeout: 10s}")
    .replace(
        "space: {batch: [1, 2], rps: [1, 2]}", "space: {batch: {ordinal: [1, 2]}, clients: {ordinal: [1, 2, 4, 8]}}"
    )
    .replace("  stop_after: 20s\n", "  stop_after: 20s\n  ramp: clients\n")
)


def test_a_ramp_names_the_further_loads_of_the_same_server(tmp_path: Path) -> None:
    study = prepared(RAMP, tmp_path)
    serve = served(study.job, study.problem)
    assert serve is not None
    record = serve_record(serve, {"batch": 2, "clients": 2}, shell=False)["ramp"]
    assert [(one["row"], one["load"]["concurrency"]) for one in record["higher"]] == [
        ("clients=4", 4),
        ("clients=8", 8),
    ]
    assert [one["row"] for one in record["lower"]] == ["clients=1"]
    assert record["limits"] == [{"name": "p99_ttft", "bound": 500.0, "at_least": False}]
    # 300 s until it is ready, then four loads of 20 s that wait twice 10 s for answers.
    assert study.policy.timeout.rule.seconds == 300 + 4 * 40  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ramp: clients", "ramp: client", "serve.ramp: there is no parameter 'client'; did you mean 'clients'?"),
        ("ramp: clients", "ramp: batch", "the server's command reads 'batch'"),
        ("ramp: clients", "ramp: {parameter: clients, most: 0}", "serve.ramp.most"),
        (
            "clients: {ordinal: [1, 2, 4, 8]}",
            "clients: ['1', '2']",
            "the values of 'clients' have no order",
        ),
        ("concurrency: '${clients}'", "concurrency: 4", "the load does not read 'clients'"),
        ("price: 0.1", "price: 0.1 * clients", "the price depends on 'clients'"),
    ],
)
def test_a_ramp_over_something_that_is_no_load_is_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert RAMP.count(old) == 1
    with pytest.raises(InputError) as caught:
        prepared(RAMP.replace(old, new), tmp_path)
    assert message in str(caught.value)
