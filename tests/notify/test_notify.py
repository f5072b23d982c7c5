"""Messages to real receivers: a web server and a mail server of this machine."""

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.header import decode_header, make_header
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message
from aiosmtpd.smtp import AuthResult

from dashboards import JOB, served
from local_runs import eventually
from lynceus.durable import open_study
from lynceus.errors import InputError
from lynceus.job import Job
from lynceus.ledger.sql import Storage
from lynceus.notify import Courier, courier_of, occasions
from lynceus.notify.receivers import Mail, UndeliveredError, Webhook
from lynceus.policy import preset
from lynceus.problem import Budget, Problem
from lynceus.space import Integer, Space
from lynceus.study import Study
from ports import free_ports

SECRET = "T0K3N-in-the-path"


class Hook:
    """A web server that remembers what it was sent, and answers as it is told."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.answers: list[int] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = hook.answers.pop(0) if hook.answers else 200
                if status == 200:
                    hook.got.append(json.loads(body))
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/{SECRET}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def hook() -> Iterator[Hook]:
    running = Hook()
    yield running
    running.server.shutdown()
    running.server.server_close()


class Letters(Message):
    def __init__(self) -> None:
        super().__init__()
        self.got: list[Any] = []

    def handle_message(self, message: Any) -> None:
        self.got.append(message)


@pytest.fixture
def post_office() -> Iterator[tuple[Letters, int]]:
    """A mail server that knows one user."""
    letters = Letters()

    def knows(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        return AuthResult(success=data.login == b"lynx" and data.password == SECRET.encode(), handled=False)

    office = Controller(letters, "127.0.0.1", 0, authenticator=knows, auth_require_tls=False, ready_timeout=60)
    # Port 0 is ours to find out; the controller's own check wants to know it beforehand.
    [office.port] = free_ports(1)
    office.start()
    yield letters, office.port
    office.stop()


def a_study(url: str, usd: float = 100.0, name: str = "told") -> Study:
    space = Space.build([Integer("n", 1, 10)], price=3600.0)  # a dollar per second
    problem = Problem(space, budget=Budget(usd=usd))
    return open_study(url, name, problem, preset("random", timeout="capped"), load_if_exists=True)


def spend(study: Study, *seconds: float) -> None:
    for runtime in seconds:
        trial = study.ask()
        assert trial is not None
        study.tell(trial, runtime=runtime)


def told_by(hook: Hook, study: Study) -> list[str]:
    """What the hook is sent when a new worker looks at a study."""
    before = len(hook.got)
    courier = Courier([Webhook("webhook 1", hook.url)])
    courier.look(study)
    courier.close()
    return [one["occasion"] for one in hook.got[before:]]


def test_each_thing_is_told_once_whoever_looks_and_however_often(hook: Hook, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = a_study(url)
    spend(study, 50.0, 29.0)
    assert told_by(hook, study) == []
    spend(study, 1.5)
    assert told_by(hook, study) == ["budget"]
    assert told_by(hook, a_study(url)) == [], "a worker that resumes does not repeat it"
    study.stop("enough")
    assert told_by(hook, study) == ["end"]
    study.resume()
    study.stop("enough")
    assert told_by(hook, a_study(url)) == [], "nothing ran in between: no news"
    study.resume(add_usd=100.0)
    spend(study, 5.0)
    study.stop("enough")
    assert told_by(hook, study) == ["end"]
    study.resume()
    spend(study, 80.0)
    assert told_by(hook, study) == ["budget"], "of the larger budget"


def test_of_many_workers_one_tells(hook: Hook, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    spend(a_study(url), 90.0)
    with ThreadPoolExecutor(8) as many:
        list(many.map(lambda _: told_by(hook, a_study(url)), range(8)))
    assert [one["occasion"] for one in hook.got] == ["budget"]


def test_what_the_message_says(hook: Hook, tmp_path: Path) -> None:
    study = a_study(f"sqlite:///{tmp_path}/s.db")
    spend(study, 20.0, 10.0)
    study.stop("lunch")
    told_by(hook, study)
    (message,) = hook.got
    assert message["study"] == "told"
    assert message["spent_usd"] == pytest.approx(30.0)
    assert message["best"] == {"params": study.best_params, "value": pytest.approx(10.0)}
    assert message["text"].splitlines()[:3] == [
        "told has ended",
        "Lunch.",
        "$30.00 of $100.00 were spent on 2 trials.",
    ]


def test_a_pause_is_told_and_open_trials_are_no_end(hook: Hook, tmp_path: Path) -> None:
    study = a_study(f"sqlite:///{tmp_path}/s.db", usd=10_000.0)
    for _ in range(5):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, state="FAIL", reason="job", runtime=1.0, detail="exit code 7")
    assert study.ask() is None
    assert told_by(hook, study) == ["pause"]
    assert "exit code 7" in hook.got[0]["text"]
    assert "lynceus resume told" in hook.got[0]["text"]
    study.resume()
    trial = study.ask()
    assert trial is not None
    study.stop("waiting for the last")
    assert occasions(study) == []
    study.tell(trial, runtime=2.0)
    assert told_by(hook, study) == ["end"]


def test_receivers_that_fail_are_tried_again_and_never_harm(hook: Hook, tmp_path: Path, caplog) -> None:
    study = a_study(f"sqlite:///{tmp_path}/s.db")
    spend(study, 90.0)
    slept: list[float] = []
    hook.answers = [500, 503]
    with caplog.at_level(logging.WARNING):
        courier = Courier(
            [
                Webhook("webhook 1", f"http://127.0.0.1:{free_ports(1)[0]}/{SECRET}"),
                Webhook("webhook 2", f"no-address {SECRET}"),
                Webhook("webhook 3", f"file:///{SECRET}"),
                Webhook("webhook 4", hook.url),
            ],
            sleep=slept.append,
        )
        courier.look(study)
        courier.close()
    assert [one["occasion"] for one in hook.got] == ["budget"], "the fourth was reached at its third try"
    assert slept == [0.0, 1.0, 4.0] * 4
    assert [record.getMessage().partition(" was not reached")[0] for record in caplog.records] == [
        "told: webhook 1", "told: webhook 2", "told: webhook 3",
    ]  # fmt: skip
    assert SECRET not in caplog.text
    assert SECRET not in repr(courier.__dict__)
    spend(study, 5.0)


def test_a_webhook_follows_nobody_elsewhere(hook: Hook, tmp_path: Path) -> None:
    study = a_study(f"sqlite:///{tmp_path}/s.db")
    spend(study, 90.0)
    hook.answers = [302]
    with pytest.raises(UndeliveredError, match="it answered 302"):
        Webhook("webhook 1", hook.url).tell(occasions(study)[0])


def test_mail(post_office: tuple[Letters, int], tmp_path: Path) -> None:
    letters, port = post_office
    study = a_study(f"sqlite:///{tmp_path}/s.db", name="näch\nts")
    spend(study, 90.0)
    (occasion,) = occasions(study)
    known = Mail(("a@example.org", "b@example.org"), "l@example.org", "127.0.0.1", port, "none", "lynx", SECRET)
    known.tell(occasion)
    (letter,) = letters.got
    assert letter["To"] == "a@example.org, b@example.org"
    assert str(make_header(decode_header(letter["Subject"]))) == "näch ts: 90 % of the budget is spent"
    assert "$90.00 of $100.00" in letter.get_payload(decode=True).decode()
    stranger = Mail(("a@example.org",), "l@example.org", "127.0.0.1", port, "none", "lynx", "wrong")
    with pytest.raises(UndeliveredError, match="the mail server answered 535"):
        stranger.tell(occasion)
    with pytest.raises(UndeliveredError):
        Mail(("a@example.org",), "l@example.org", "127.0.0.1", port, "starttls").tell(occasion)
    with pytest.raises(UndeliveredError):
        Mail(("a@example.org",), "l@example.org", "127.0.0.1", free_ports(1)[0], "none").tell(occasion)
    assert SECRET not in repr(known)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the package itself
def test_apprise(hook: Hook, tmp_path: Path) -> None:
    pytest.importorskip("apprise")
    from lynceus.notify.receivers import Apprise

    study = a_study(f"sqlite:///{tmp_path}/s.db")
    spend(study, 90.0)
    address = hook.url.replace("http://", "json://")
    Apprise("apprise 1", address).tell(occasions(study)[0])
    assert "90 % of the budget" in hook.got[0]["title"]
    hook.answers = [500]
    with pytest.raises(UndeliveredError, match="could not deliver"):
        Apprise("apprise 1", address).tell(occasions(study)[0])
    with pytest.raises(UndeliveredError, match="does not understand"):
        Apprise("apprise 1", f"nothing://{SECRET}").tell(occasions(study)[0])


TOY = """\
name: toy
run: sleep 0.0${n}; test ${n} != 3
shell: true
space: {n: [1, 2, 3]}
price: 36.0
budget: {cost: 100 USD, max_trials: 3}
policy: sweep
trial: {timeout: none, grace: 100ms}
notify: {webhook: env:HOOK, mail: {to: team@example.org, server: "127.0.0.1:%d"}}
"""


def test_a_search_from_the_command_line_tells_its_end(
    hook: Hook, post_office: tuple[Letters, int], tmp_path: Path
) -> None:
    letters, port = post_office
    (tmp_path / "job.yaml").write_text(TOY % port)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LYNCEUS_")}

    def lynceus(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "lynceus.cli", *arguments],
            cwd=tmp_path, env=environment | variables, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    refused = lynceus("run", "job.yaml", "-y")
    assert refused.returncode == 2
    assert "notify.webhook.0: the variable HOOK is not set" in refused.stderr
    assert not (tmp_path / "lynceus.db").exists()
    done = lynceus("run", "job.yaml", "-y", HOOK=hook.url)
    assert done.returncode == 0, done.stderr
    assert [one["occasion"] for one in hook.got] == ["end"]
    assert [letter["Subject"] for letter in letters.got] == ["toy has ended"]
    again = lynceus("resume", "toy", HOOK=hook.url)
    assert again.returncode == 0
    assert len(hook.got) == len(letters.got) == 1
    with Storage(f"sqlite:///{tmp_path}/lynceus.db") as storage:
        assert [event.detail for event in storage.events("toy") if event.kind == "announced"] == [
            {"occasion": "end trials 3"}
        ]
    assert SECRET.encode() not in (tmp_path / "lynceus.db").read_bytes()
    assert SECRET not in done.stdout + done.stderr


def test_a_server_tells_of_studies_that_are_told_through_it(
    hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lynceus.cli.opened import create_or_open

    monkeypatch.setenv("HOOK", hook.url)
    (tmp_path / "job.yaml").write_text(TOY % 1 + "seed: 1\n")
    text = (tmp_path / "job.yaml").read_text().replace(', mail: {to: team@example.org, server: "127.0.0.1:1"}', "")
    (tmp_path / "job.yaml").write_text(text)
    url = f"sqlite:///{tmp_path}/s.db"
    create_or_open(str(tmp_path / "job.yaml"), url)
    with served(url, tmp_path) as server:
        for number in range(3):
            server.post("studies/toy/ask")
            server.post(f"studies/toy/trials/{number}/tell", {"runtime": 5})
        assert hook.got == []
        assert server.post("studies/toy/ask").json["trial"] is None
        eventually(lambda: hook.got)
    assert [one["occasion"] for one in hook.got] == ["end"]


def test_the_api_takes_no_references_to_secrets_of_the_server(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/s.db", tmp_path) as server:
        answer = server.post("studies", JOB | {"notify": {"webhook": "env:HOME"}})
    assert (answer.status, "notify" in answer.sentence) == (422, True)


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        ("{webhook: 'https://hooks.example.org/T0K3N'}", "a secret is given by reference only"),
        ("{mail: {to: nobody}}", "is no mail address"),
        ("{mail: {to: a@b, server: 'a b'}}", "is no mail server"),
        ("{mail: {to: a@b, password: hunter2}}", "a secret is given by reference only"),
        ("{on: [never]}", "never"),
        ("{webhok: 'env:A'}", "webhok"),
    ],
)
def test_odd_sections_are_refused_and_secrets_not_repeated(section: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as error:
        Job.parse(f"name: a\nrun: 'true'\nspace: {{n: [1]}}\nbudget: 1\nnotify: {section}\n")
    assert "T0K3N" not in str(error.value)
    assert "hunter2" not in str(error.value)


def test_references_are_looked_up(tmp_path: Path) -> None:
    (tmp_path / "hook").write_text("http://127.0.0.1/x\n")
    job = Job.parse(
        "name: a\nrun: 'true'\nspace: {n: [1]}\nbudget: 1\n"
        "notify: {webhook: ['file:hook', 'env:OTHER'], mail: {to: a@b, server: mail.example.org}, on: [end]}\n",
        tmp_path,
    )
    courier = courier_of(job, {"OTHER": "http://127.0.0.1/y"})
    hooks, mail = courier._receivers[:2], courier._receivers[2]
    assert [one.url for one in hooks] == ["http://127.0.0.1/x", "http://127.0.0.1/y"]  # type: ignore[attr-defined]
    assert isinstance(mail, Mail)
    assert (mail.host, mail.port, mail.security) == ("mail.example.org", 587, "starttls")
    assert courier._kinds == ("end",)
