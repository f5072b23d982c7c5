"""Local runs with real processes: what jobs receive, how they end, and that no process is left."""

import contextlib
import fcntl
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import lynceus
from local_runs import Bench, contains, eventually, files_below, problem_of, processes_below
from lynceus.errors import InfrastructureError, InputError
from lynceus.executors import local
from lynceus.executors.command import JobCommand
from lynceus.executors.interface import LostRunError, OwnedResource, ResourceKind
from lynceus.executors.resources import Resources
from lynceus.executors.supervisor import files
from lynceus.executors.supervisor.process_tree import all_processes, is_dead
from lynceus.problem.objective import Objective
from lynceus.trial.outcome import End, FailureReason

MakeBench = Callable[..., Bench]

ODD_VALUES = (
    "two words",
    "'single' \"double\"",
    "a; touch pwned",
    "$(touch pwned) `touch pwned`",
    "line\nbreak\ttab",
    "naïve – ünïcode ✓ 日本",
    "${word} $HOME %s \\n *",
    "--looks=like -an option",
    " leading and trailing ",
)


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


@pytest.mark.parametrize("row", range(len(ODD_VALUES)))
def test_jobs_receive_values_unchanged(bench: MakeBench, tmp_path: Path, row: int) -> None:
    code = (
        "import json, os, sys; seen = [sys.argv[1], os.environ['LYNCEUS_PARAM_WORD'], "
        "json.load(open(os.environ['LYNCEUS_PARAMS']))['word']]; open('seen', 'w').write(json.dumps(seen))"
    )
    assert bench((*python(code), "${word}"), ODD_VALUES).outcome(row).end is End.FINISHED
    assert json.loads((tmp_path / "seen").read_text()) == [ODD_VALUES[row]] * 3
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("row", range(len(ODD_VALUES)))
@pytest.mark.parametrize("shell", [True, False])
def test_scripts_receive_values_unchanged(bench: MakeBench, tmp_path: Path, row: int, shell: bool) -> None:
    script = "printf '%s' ${word} > seen" if shell else "printf '%s' \"$word\" > seen"
    assert bench(script, ODD_VALUES, shell=shell).outcome(row).end is End.FINISHED
    assert (tmp_path / "seen").read_bytes() == ODD_VALUES[row].encode()
    assert not (tmp_path / "pwned").exists()


def test_a_nul_byte_is_refused(bench: MakeBench) -> None:
    with pytest.raises(InputError, match="a character that cannot be stored"):
        bench(("echo", "${word}"), ("a\0b",)).launch()


def test_metrics_are_read_from_the_result_file_marked_lines_and_expressions(bench: MakeBench) -> None:
    script = """
    echo '{"accuracy": 0.5, "progress": 0.1}' >> "$LYNCEUS_RESULT"
    echo '{"accuracy": 0.9, "progress": 1}' >> "$LYNCEUS_RESULT"
    echo '::lynceus {"loss": 0.25}'
    echo 'epoch 1 f1=0.7' >&2; echo 'epoch 2 f1=0.8' >&2
    """
    outcome = bench(script, metrics={"f1": r"f1=([\d.]+)"}).outcome()
    assert outcome.metrics == {"accuracy": 0.9, "loss": 0.25, "f1": 0.8}
    assert [progress for _, progress in outcome.trace] == [0.1, 1.0]


def test_the_report_function(bench: MakeBench) -> None:
    code = "from lynceus.client.report import report; report(accuracy=0.75, progress=1)"
    outcome = bench((sys.executable, "-c", code)).outcome()
    assert (outcome.metrics, outcome.end) == ({"accuracy": 0.75}, End.FINISHED)


def test_invalid_reports_are_noted_but_not_fatal(bench: MakeBench) -> None:
    script = """
    printf '%s\n' '{"a": 1}' 'garbage' '[1]' '{"b": "x"}' '{"c": NaN}' '{"d": {}}' '{"e": 1e999}' '{"a": 2' > "$LYNCEUS_RESULT"
    head -c 300000 /dev/urandom >> "$LYNCEUS_RESULT"
    """
    outcome = bench(script).outcome()
    assert (outcome.end, outcome.metrics) == (End.FINISHED, {"a": 1.0})
    assert "one report was ignored (not a JSON object: garbage)" in outcome.detail


def test_a_job_that_does_not_report_its_objective_has_failed(tmp_path: Path) -> None:
    problem = replace(problem_of(), objective=Objective.parse("minimize loss"))
    bench = Bench(tmp_path / "runs", JobCommand("echo '::lynceus {\"lass\": 3}'", workdir=tmp_path), problem)
    outcome = bench.outcome()
    bench.executor.close()
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.JOB)
    assert outcome.detail == "the job finished but did not report loss"


@pytest.mark.parametrize(
    ("script", "reason", "words"),
    [
        ("echo careful >&2; exit 3", FailureReason.JOB, "exit code 3: careful"),
        ("exit 75", FailureReason.INFRA, "asks for a retry"),
        ("kill -SEGV $$", FailureReason.JOB, "SIGSEGV"),
        ("kill -KILL $$", FailureReason.INFRA, "SIGKILL"),
    ],
)
def test_failures_have_a_reason(bench: MakeBench, script: str, reason: FailureReason, words: str) -> None:
    outcome = bench(script).outcome()
    assert (outcome.end, outcome.reason) == (End.FAILED, reason)
    assert words in outcome.detail


def test_a_command_that_does_not_exist_is_named(bench: MakeBench) -> None:
    outcome = bench(("no-such-command", "x")).outcome()
    assert (outcome.reason, outcome.detail) == (
        FailureReason.JOB,
        "'no-such-command' cannot be started: No such file or directory",
    )


def test_a_timeout_stops_the_run_and_keeps_its_results(bench: MakeBench) -> None:
    script = 'echo \'{"accuracy": 0.5, "progress": 0.3}\' > $LYNCEUS_RESULT; echo said; sleep 1000'
    one = bench(script, grace_s=0.1)
    outcome = one.outcome(timeout_s=3.0)
    assert outcome.end is End.TIMEOUT
    assert 3.0 <= outcome.seconds < 10.0
    assert outcome.metrics == {"accuracy": 0.5}
    assert [progress for _, progress in outcome.trace] == [0.3]
    assert one.output() == b"said\n"


def test_a_job_that_exits_with_0_on_sigterm_has_timed_out(bench: MakeBench) -> None:
    outcome = bench("trap 'echo bye; exit 0' TERM; sleep 1000 & wait", grace_s=60.0).outcome(timeout_s=0.3)
    assert outcome.end is End.TIMEOUT


def test_no_process_survives_its_run(bench: MakeBench, tmp_path: Path) -> None:
    """Children in other groups and sessions, daemons that forked twice, and processes that ignore SIGTERM."""
    script = """
    (trap '' TERM; sleep 1000) &
    setsid sleep 1000 &
    (setsid sh -c 'sleep 1000 & exit' &)
    setsid sh -c "trap '' TERM HUP; (setsid sleep 1000 &) ; sleep 1000" &
    touch ready; sleep 1000
    """
    one = bench(script, grace_s=0.2)
    ticket = one.launch(timeout_s=1000)
    eventually((tmp_path / "ready").exists)
    eventually(lambda: len(processes_below(tmp_path)) >= 6)
    one.executor.cancel(ticket)
    outcome = one.wait(ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.USER)
    assert processes_below(tmp_path) == set()


def test_a_daemon_is_killed_at_the_end_of_its_run(bench: MakeBench, tmp_path: Path) -> None:
    """It has an empty environment, but is found as a descendant."""
    daemon = "setsid env -i /bin/sh -c 'echo $$ > daemon; exec sleep 1000'"
    one = bench(f"({daemon} &); while [ ! -s daemon ]; do sleep 0.01; done")
    assert one.outcome().end is End.FINISHED
    assert not Path("/proc", (tmp_path / "daemon").read_text().strip()).exists()


def test_the_beginning_and_the_end_of_long_output_are_kept(bench: MakeBench) -> None:
    one = bench(python("import sys\nfor i in range(20000): print(f'line {i:06}')"), output_bytes=10_000)
    assert one.outcome().end is End.FINISHED
    output = one.output()
    assert output.startswith(b"line 000000\n")
    assert output.endswith(b"line 019999\n")
    assert b"bytes left out" in output
    assert len(output) <= 10_050


def test_secrets_are_masked_and_not_on_disk(bench: MakeBench, tmp_path: Path) -> None:
    secret = "hunter2-and-more"
    halves = 'printf "${TOKEN%and-more}"; sleep 0.1; echo "${TOKEN#hunter2-}"'
    one = bench(f'{halves}; echo "$TOKEN" >&2; exit 1', secrets={"TOKEN": secret})
    outcome = one.outcome()
    assert (one.output(), one.output("stderr")) == (b"***\n", b"***\n")
    assert outcome.detail == "exit code 1: ***"
    assert [path for path in files_below(tmp_path) if contains(path, secret)] == []


def test_cpus_are_limited(bench: MakeBench) -> None:
    one = bench(python("import os; print(len(os.sched_getaffinity(0)))"), resources=lambda row: Resources(cpus=1))
    one.outcome()
    assert one.output() == b"1\n"


def test_exceeding_the_memory_limit_is_out_of_memory(bench: MakeBench) -> None:
    hungry = python("x = bytearray(400 << 20); x[::4096] = b'1' * len(x[::4096]); print('got it')")
    one = bench(hungry, resources=lambda row: Resources(memory_bytes=(100 if row == 0 else 2000) << 20))
    outcome = one.outcome(row=0, number=0)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.OOM)
    assert "out of memory" in outcome.detail
    assert one.outcome(row=1, number=1).end is End.FINISHED


def test_a_run_that_is_launched_several_times_runs_once(bench: MakeBench, tmp_path: Path) -> None:
    one = bench("echo ran >> log; sleep 0.3")
    other = Bench(one.root, one.job, one.problem)
    tickets = {maker.launch() for maker in (one, other, one, other)}
    assert len(tickets) == 1
    first, second = one.wait(next(iter(tickets))), other.wait(next(iter(tickets)))
    assert first == second
    one.launch()
    assert one.wait(next(iter(tickets))) == first
    assert (tmp_path / "log").read_text() == "ran\n"
    other.executor.close()


def test_reading_the_status_of_a_starting_run_does_not_stop_it(
    bench: MakeBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading the status holds the lock for a moment. The supervisor waits for it; a second one would start only after 10 s."""
    monkeypatch.setattr(local, "_START_S", math.inf)
    one = bench("true")
    folder = tmp_path / "runs" / "study-id" / "0"
    folder.mkdir(parents=True)
    lock = os.open(folder / files.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    ticket = one.launch()
    eventually(lambda: (folder / files.LOG).exists())  # the supervisor is alive
    time.sleep(0.1)
    assert not (folder / files.STARTED).exists()
    os.close(lock)
    assert one.wait(ticket).end is End.FINISHED


def test_a_run_outlives_its_executor(bench: MakeBench) -> None:
    one = bench("sleep 0.5; echo '::lynceus {\"done\": 1}'")
    ticket = one.launch()
    one.executor.close()
    other = Bench(one.root, one.job, one.problem)
    assert other.wait(ticket).metrics == {"done": 1.0}


def test_a_fork_server_that_was_killed_is_replaced(bench: MakeBench) -> None:
    one = bench(("true",))
    assert one.outcome(number=0).end is End.FINISHED
    assert one.executor._fork_server is not None
    os.kill(one.executor._fork_server._pid, signal.SIGKILL)
    eventually(lambda: one.executor._fork_server is None or not one.executor._fork_server.is_alive())
    assert one.outcome(number=1).end is End.FINISHED


def test_the_time_to_stop_is_charged(bench: MakeBench) -> None:
    outcome = bench("trap '' TERM; touch ready; while :; do sleep 0.1; done", grace_s=0.5).outcome(timeout_s=0.5)
    assert outcome.end is End.TIMEOUT
    assert outcome.charged_usd >= outcome.seconds + 0.5
    assert 0.5 <= outcome.seconds < outcome.charged_usd - 0.4


def test_run_directories_are_private(bench: MakeBench, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        one = bench("echo hello")
        ticket = Path(one.launch())
    finally:
        os.umask(before)
    one.wait(str(ticket))
    assert [oct(path.stat().st_mode & 0o777) for path in (ticket, ticket.parent)] == ["0o700"] * 2
    mine = (files.REQUEST, files.PARAMS, "script", files.STARTED, files.OUTCOME, files.LOG, files.STDOUT)
    assert [name for name in mine if (ticket / name).stat().st_mode & 0o077] == []


def test_folders_that_lynceus_did_not_make_are_not_its_own(bench: MakeBench, tmp_path: Path) -> None:
    """As with `run_directory: .`, where the user's own folders are beside those of studies."""
    one = bench("true")
    one.outcome(number=7)
    photos = one.root / "photos" / "123"
    photos.mkdir(parents=True)
    (photos / "cat.jpg").write_bytes(b"cat")
    (photos.parent / "124").mkdir()
    (photos.parent / "124" / files.REQUEST).write_text('{"number": 124, "url": "https://example.org"}')
    (photos.parent / "8").symlink_to(one.root / "study-id" / "7")
    owned = one.executor.owned_resources()
    assert {(resource.name, resource.study, resource.identity, resource.number) for resource in owned} == {
        (str(one.root / "study-id" / "7"), "study", "id", 7)
    }
    for name in (photos, photos.parent / "124", photos.parent / "8"):
        for kind in (ResourceKind.DIRECTORY, ResourceKind.PROCESSES):
            one.executor.remove(OwnedResource(kind, str(name), "photos", "", 123))
    assert (photos / "cat.jpg").exists()
    assert (photos.parent / "124").exists()
    for resource in owned:
        one.executor.remove(resource)
    assert not (one.root / "study-id" / "7").exists()


def test_directories_of_earlier_versions_are_recognised(bench: MakeBench) -> None:
    one = bench("true")
    ticket = one.launch(number=3)
    one.wait(ticket)
    Path(ticket, files.MARKER).unlink()
    directory = [one for one in one.executor.owned_resources() if one.kind is ResourceKind.DIRECTORY]
    assert [(one.study, one.identity, one.number) for one in directory] == [("study", "id", 3)]


def test_an_interrupted_launch_leaves_a_directory_that_is_recognised(bench: MakeBench) -> None:
    one = bench("true")
    ticket = one.launch(number=3)
    one.wait(ticket)
    Path(ticket, files.REQUEST).unlink()
    assert [(one.study, one.identity, one.number) for one in one.executor.owned_resources()] == [("study", "id", 3)]


@pytest.mark.parametrize(
    "script",
    ["printf 'boom \\000\\n' >&2; exit 3", "printf 'boom \\033[2J\\302\\205\\377\\n' >&2; exit 3"],
)
def test_odd_bytes_of_a_job_do_not_reach_the_outcome(bench: MakeBench, script: str) -> None:
    detail = bench(script).outcome().detail
    assert detail.startswith("exit code 3: boom")
    assert detail.isprintable()


def test_secrets_are_masked_wherever_a_job_puts_them(bench: MakeBench, tmp_path: Path) -> None:
    secret = "correct horse\nbattery-staple"
    script = """
    printf '%s\n' "{\\"$(echo "$TOKEN" | tail -1)\\": 1}" "refused $TOKEN" > "$LYNCEUS_RESULT"
    echo "::lynceus {\\"x\\": \\"$(echo "$TOKEN" | head -1)\\"}"; echo "$TOKEN" | tail -1 >&2; exit 5
    """
    outcome = bench(script, secrets={"TOKEN": secret}).outcome()
    assert "exit code 5: ***" in outcome.detail
    assert list(outcome.metrics) == ["***"]
    words = ("correct horse", "battery-staple")
    kept = [path for path in files_below(tmp_path) if path.name != files.RESULT]
    assert [(path, word) for path in kept for word in words if contains(path, word)] == []
    assert [word for word in words if word in repr(outcome)] == []


def test_a_secret_in_a_command_that_cannot_be_started_is_masked(bench: MakeBench) -> None:
    outcome = bench(("/no/such/battery-staple",), secrets={"TOKEN": "battery-staple"}).outcome()
    assert outcome.detail == "'/no/such/***' cannot be started: No such file or directory"


UNPRIVILEGED = """
import os, sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from local_runs import Bench, problem_of
from lynceus.executors.command import JobCommand
from lynceus.executors.resources import Resources
folder = Path(sys.argv[1])
hungry = f"{sys.executable} -I -S -c 'bytearray(600 << 20)'"
daemon = "(setsid env -i /bin/sleep 1000 &)"
scripts = [f"{daemon}; echo '::lynceus {{\\"x\\": 1}}'", hungry, f"{daemon}; trap '' TERM; sleep 1000"]
for number, script in enumerate(scripts):
    job = JobCommand(script, workdir=folder, grace_s=0.2)
    bench = Bench(folder / "runs", job, problem_of(), lambda row: Resources(cpus=1, memory_bytes=200 << 20))
    outcome = bench.outcome(timeout_s=1.0 if number == 2 else 60.0, number=number)
    print(outcome.end, outcome.reason, dict(outcome.metrics))
    bench.executor.close()
"""


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="only root can become another user")
def test_everything_holds_for_an_unprivileged_user() -> None:
    """Who cannot create control groups: memory is limited by rlimits, and daemons are found below their supervisor."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chown(folder, 65534, 65534)
        paths = [str(Path(__file__).parents[1]), str(Path(lynceus.__file__).parents[1]), *filter(None, sys.path)]
        read = [
            "--inh-caps=-all,+dac_read_search",
            "--ambient-caps=-all,+dac_read_search",
        ]  # Python may be in root's home
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *read]
        command = [*user, sys.executable, "-c", UNPRIVILEGED, str(folder), *paths]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        assert done.stdout.splitlines() == ["finished None {'x': 1.0}", "failed oom {}", "capped None {}"], done.stderr
        mine = {process for process in all_processes() if owner_of(process) == 65534}
        assert [process for process in mine if not is_dead(process)] == []


def owner_of(process: int) -> int | None:
    with contextlib.suppress(OSError):
        return os.stat(f"/proc/{process}").st_uid
    return None


def test_a_run_prepared_before_a_reboot_is_not_started(bench: MakeBench, tmp_path: Path) -> None:
    one = bench("touch ran")
    ticket = one.launch()
    one.wait(ticket)
    with open(Path(ticket, files.LOCK)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # its supervisor has ended
    request = files.read_json(os.path.join(ticket, files.REQUEST))
    assert request is not None
    for name in (files.OUTCOME, files.STARTED):
        Path(ticket, name).unlink()
    (tmp_path / "ran").unlink()
    files.write_atomically(os.path.join(ticket, files.REQUEST), {**request, "boot": "another"})
    assert one.launch() == ticket
    outcome = one.wait(ticket)
    assert (outcome.reason, outcome.charged_usd) == (FailureReason.INFRA, 0.0)
    assert not (tmp_path / "ran").exists()


def test_a_run_without_a_directory_is_lost(bench: MakeBench) -> None:
    with pytest.raises(LostRunError, match=r"the run directory .* no longer exists"):
        bench(("true",)).executor.collect("/no/such/run")


def test_a_root_that_cannot_be_written_is_an_infrastructure_error(bench: MakeBench, tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where a folder should be")
    with pytest.raises(InfrastructureError, match=r"the run directory .* cannot be written"):
        bench(("true",)).launch()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"run": ()}, "there is no command"),
        ({"run": ("a",), "shell": True}, "needs a script, not a list"),
        ({"run": "x", "metrics": {"m": "(["}}, "is not a valid regular expression"),
        ({"run": "x", "metrics": {"m": "abc"}}, "has 0 groups"),
        ({"run": "x", "grace_s": -1.0}, "grace must not be negative"),
    ],
)
def test_invalid_commands_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        JobCommand(**options)  # type: ignore[arg-type]
