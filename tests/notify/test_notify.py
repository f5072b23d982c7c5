"""Notifications to real receivers: a web server and a mail server on this machine."""

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
from lynceus import create_study
from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.notify.events import events
from lynceus.notify.notifier import Notifier, notifier_of
from lynceus.notify.receivers import Mail, UndeliveredError, Webhook
from lynceus.policy.presets import preset
from lynceus.problem.budget import Budget
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.storage.sql.budgets import BudgetStore
from lynceus.storage.sql.storage import Storage
from lynceus.study.stored import open_study
from lynceus.study.study import Study
from lynceus.trial.shared_budget import Account
from ports import free_ports

SECRET = "T0K3N-in-the-path"


class Hook:
    """A web server that records requests and answers with the given statuses."""

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


class Inbox(Message):
    def __init__(self) -> None:
        super().__init__()
        self.got: list[Any] = []

    def handle_message(self, message: Any) -> None:
        self.got.append(message)


@pytest.fixture
def post_office() -> Iterator[tuple[Inbox, int]]:
    """A mail server that authenticate one user."""
    letters = Inbox()

    def authenticate(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        return AuthResult(success=data.login == b"lynx" and data.password == SECRET.encode(), handled=False)

    office = Controller(letters, "127.0.0.1", 0, authenticator=authenticate, auth_require_tls=False, ready_timeout=60)
    # Port 0 is ours to find out; the controller's own check wants to know it beforehand.
    [office.port] = free_ports(1)
    office.start()
    yield letters, office.port
    office.stop()


def a_study(url: str, usd: float = 100.0, name: str = "sent") -> Study:
    space = Space.build([Integer("n", 1, 10)], price=3600.0)  # a dollar per second
    problem = Problem(space, budget=Budget(usd=usd))
    return open_study(url, name, problem, preset("random", timeout="none"), load_if_exists=True)


def spend(study: Study, *seconds: float) -> None:
    for runtime in seconds:
        trial = study.ask()
        assert trial is not None
        study.tell(trial, runtime=runtime)


def sent_by(hook: Hook, study: Study) -> list[str]:
    """The events that a new worker sends to the hook."""
    before = len(hook.got)
    notifier = Notifier([Webhook("webhook 1", hook.url)])
    notifier.notify(study)
    notifier.close()
    return [one["event"] for one in hook.got[before:]]


def test_every_event_is_sent_once(hook: Hook, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = a_study(url)
    spend(study, 50.0, 29.0)
    assert sent_by(hook, study) == []
    spend(study, 1.5)
    assert sent_by(hook, study) == ["budget"]
    assert sent_by(hook, a_study(url)) == [], "a worker that resumes does not repeat it"
    study.stop("enough")
    assert sent_by(hook, study) == ["end"]
    study.resume()
    study.stop("enough")
    assert sent_by(hook, a_study(url)) == [], "no trial ran in between, so there is no new event"
    study.resume(add_usd=100.0)
    spend(study, 5.0)
    study.stop("enough")
    assert sent_by(hook, study) == ["end"]
    study.resume()
    spend(study, 80.0)
    assert sent_by(hook, study) == ["budget"], "of the larger budget"


def test_one_of_many_workers_sends_an_event(hook: Hook, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    spend(a_study(url), 90.0)
    with ThreadPoolExecutor(8) as many:
        list(many.map(lambda _: sent_by(hook, a_study(url)), range(8)))
    assert [one["event"] for one in hook.got] == ["budget"]


def test_a_study_without_shared_money_sends_a_pause_for_each_month(hook: Hook, tmp_path: Path) -> None:
    now = [1_795_000_000.0]  # 18 November 2026
    storage = Storage(f"sqlite:///{tmp_path}/s.db", now=lambda: now[0])
    budgets, project = BudgetStore(storage), Account.parse("project:forecasts")
    budgets.set(project, 20.0, by="boss")
    space = Space.build([Integer("n", 1, 10)], price=3600.0)
    study = create_study(space=space, policy="random", study_name="sent", storage=storage, project="forecasts")
    trial = study.ask()
    assert trial is not None
    study.tell(trial, runtime=trial.timeout, state="TIMEOUT")
    assert study.ask() is None
    assert sent_by(hook, study) == ["pause"]
    text = hook.got[0]["text"]
    assert "$0 left of $20.00 of project:forecasts for November 2026" in text
    assert "wait until 1 December (UTC), or raise it with: lynceus budget set project:forecasts" in text
    assert text.endswith("When there is money again, continue with: lynceus resume sent")
    study.resume()
    assert study.ask() is None
    assert sent_by(hook, study) == [], "nothing is new: it is still November, and nothing ran"
    budgets.set(project, 0.0, by="boss")
    now[0] = 1_796_083_200.0
    study.resume()
    assert study.ask() is None
    assert sent_by(hook, study) == ["pause"], "December has its own"
    assert "for December 2026" in hook.got[1]["text"]
    storage.close()


def test_the_text_of_a_message(hook: Hook, tmp_path: Path) -> None:
    study = a_study(f"sqlite:///{tmp_path}/s.db")
    spend(study, 20.0, 10.0)
    study.stop("lunch")
    sent_by(hook, study)
    (message,) = hook.got
    assert message["study"] == "sent"
    assert message["spent_usd"] == pytest.approx(30.0)
    assert message["best"] == {"params": study.best_params, "value": pytest.approx(10.0)}
    assert message["text"].splitlines()[:3] == [
        "sent has ended",
        "Lunch.",
        "Spent $30.00 of $100.00 on 2 trials.",
    ]


def test_a_pause_is_an_event_and_a_study_with_open_trials_has_not_ended(hook: Hook, tmp_path: Path) -> None:
    study = a_study(f"sqlite:///{tmp_path}/s.db", usd=10_000.0)
    for _ in range(5):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, state="FAIL", reason="job", runtime=1.0, detail="exit code 7")
    assert study.ask() is None
    assert sent_by(hook, study) == ["pause"]
    assert "exit code 7" in hook.got[0]["text"]
    assert "lynceus resume sent" in hook.got[0]["text"]
    study.resume()
    trial = study.ask()
    assert trial is not None
    study.stop("waiting for the last")
    assert events(study) == []
    study.tell(trial, runtime=2.0)
    assert sent_by(hook, study) == ["end"]


def test_failing_receivers_are_retried_and_do_not_stop_the_study(hook: Hook, tmp_path: Path, caplog) -> None:
    study = a_study(f"sqlite:///{tmp_path}/s.db")
    spend(study, 90.0)
    slept: list[float] = []
    hook.answers = [500, 503]
    with caplog.at_level(logging.WARNING):
        notifier = Notifier(
            [
                Webhook("webhook 1", f"http://127.0.0.1:{free_ports(1)[0]}/{SECRET}"),
                Webhook("webhook 2", f"no-address {SECRET}"),
                Webhook("webhook 3", f"file:///{SECRET}"),
                Webhook("webhook 4", hook.url),
            ],
            sleep=slept.append,
        )
        notifier.notify(study)
        notifier.close()
    assert [one["event"] for one in hook.got] == ["budget"], "the fourth was reached in the third attempt"
    assert slept == [0.0, 1.0, 4.0] * 4
    assert [record.getMessage().partition(" was not reached")[0] for record in caplog.records] == [
        "sent: webhook 1", "sent: webhook 2", "sent: webhook 3",
    ]  # fmt: skip
    assert SECRET not in caplog.text
    assert SECRET not in repr(notifier.__dict__)
    spend(study, 5.0)


def test_a_webhook_does_not_follow_redirects(hook: Hook, tmp_path: Path) -> None:
    study = a_study(f"sqlite:///{tmp_path}/s.db")
    spend(study, 90.0)
    hook.answers = [302]
    with pytest.raises(UndeliveredError, match="the server answered 302"):
        Webhook("webhook 1", hook.url).send(events(study)[0])


def test_mail(post_office: tuple[Inbox, int], tmp_path: Path) -> None:
    letters, port = post_office
    study = a_study(f"sqlite:///{tmp_path}/s.db", name="näch ts")
    spend(study, 90.0)
    (event,) = events(study)
    known = Mail(("a@example.org", "b@example.org"), "l@example.org", "127.0.0.1", port, "none", "lynx", SECRET)
    known.send(event)
    (letter,) = letters.got
    assert letter["To"] == "a@example.org, b@example.org"
    assert str(make_header(decode_header(letter["Subject"]))) == "näch ts: 90 % of the budget is spent"
    assert "$90.00 of $100.00" in letter.get_payload(decode=True).decode()
    wrong_password = Mail(("a@example.org",), "l@example.org", "127.0.0.1", port, "none", "lynx", "wrong")
    with pytest.raises(UndeliveredError, match="the mail server answered 535"):
        wrong_password.send(event)
    with pytest.raises(UndeliveredError):
        Mail(("a@example.org",), "l@example.org", "127.0.0.1", port, "starttls").send(event)
    with pytest.raises(UndeliveredError):
        Mail(("a@example.org",), "l@example.org", "127.0.0.1", free_ports(1)[0], "none").send(event)
    assert SECRET not in repr(known)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the package itself
def test_apprise(hook: Hook, tmp_path: Path) -> None:
    pytest.importorskip("apprise")
    from lynceus.notify.receivers import Apprise

    study = a_study(f"sqlite:///{tmp_path}/s.db")
    spend(study, 90.0)
    address = hook.url.replace("http://", "json://")
    Apprise("apprise 1", address).send(events(study)[0])
    assert "90 % of the budget" in hook.got[0]["title"]
    hook.answers = [500]
    with pytest.raises(UndeliveredError, match="could not deliver"):
        Apprise("apprise 1", address).send(events(study)[0])
    with pytest.raises(UndeliveredError, match="does not know this kind of address"):
        Apprise("apprise 1", f"nothing://{SECRET}").send(events(study)[0])


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


def test_a_search_from_the_command_line_sends_its_end(
    hook: Hook, post_office: tuple[Inbox, int], tmp_path: Path
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
    assert [one["event"] for one in hook.got] == ["end"]
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


def test_a_server_sends_events_of_studies_that_it_writes(
    hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lynceus.jobfile.prepared_study import prepare_file
    from lynceus.library.open_study import create_or_open

    monkeypatch.setenv("HOOK", hook.url)
    (tmp_path / "job.yaml").write_text(TOY % 1 + "seed: 1\n")
    text = (tmp_path / "job.yaml").read_text().replace(', mail: {to: team@example.org, server: "127.0.0.1:1"}', "")
    (tmp_path / "job.yaml").write_text(text)
    url = f"sqlite:///{tmp_path}/s.db"
    create_or_open(prepare_file(tmp_path / "job.yaml"), url)
    with served(url, tmp_path) as server:
        for number in range(3):
            server.post("studies/toy/ask")
            server.post(f"studies/toy/trials/{number}/tell", {"runtime": 5})
        assert hook.got == []
        assert server.post("studies/toy/ask").json["trial"] is None
        eventually(lambda: hook.got)
    assert [one["event"] for one in hook.got] == ["end"]


def test_the_api_refuses_references_to_secrets_of_the_server(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/s.db", tmp_path) as server:
        answer = server.post("studies", JOB | {"notify": {"webhook": "env:HOME"}})
    assert (answer.status, "notify" in answer.sentence) == (422, True)


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        ("{webhook: 'https://hooks.example.org/T0K3N'}", "a secret is given by reference only"),
        ("{mail: {to: team}}", "is not a mail address"),
        ("{mail: {to: a@b, server: 'a b'}}", "is not a mail server"),
        ("{mail: {to: a@b, password: hunter2}}", "a secret is given by reference only"),
        ("{on: [never]}", "never"),
        ("{webhok: 'env:A'}", "webhok"),
    ],
)
def test_invalid_sections_are_refused_without_repeating_secrets(section: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as error:
        Job.parse(f"name: a\nrun: 'true'\nspace: {{n: [1]}}\nbudget: 1\nnotify: {section}\n")
    assert "T0K3N" not in str(error.value)
    assert "hunter2" not in str(error.value)


def test_references_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "hook").write_text("http://127.0.0.1/x\n")
    job = Job.parse(
        "name: a\nrun: 'true'\nspace: {n: [1]}\nbudget: 1\n"
        "notify: {webhook: ['file:hook', 'env:OTHER'], mail: {to: a@b, server: mail.example.org}, on: [end]}\n",
        tmp_path,
    )
    notifier = notifier_of(job, {"OTHER": "http://127.0.0.1/y"})
    hooks, mail = notifier._receivers[:2], notifier._receivers[2]
    assert [one.url for one in hooks] == ["http://127.0.0.1/x", "http://127.0.0.1/y"]  # type: ignore[attr-defined]
    assert isinstance(mail, Mail)
    assert (mail.host, mail.port, mail.security) == ("mail.example.org", 587, "starttls")
    assert notifier._kinds == ("end",)


def test_text_of_a_job_calls_nobody(hook: Hook, post_office: tuple[Inbox, int], tmp_path: Path) -> None:
    """Reasons quote what jobs print: mentions, hidden links, line breaks and surrogates stay text."""
    study = a_study(f"sqlite:///{tmp_path}/s.db")
    study.stop("@everyone <!channel> [safe](http://evil)\r\nBcc: all@example.org \ud800")
    (event,) = [one for one in events(study) if one.kind == "end"]
    Webhook("webhook 1", hook.url).send(event)
    text = hook.got[0]["text"]
    assert not [call for call in ("@everyone", "<!channel>", "](http", "\ud800", "\r") if call in text]
    letters, port = post_office
    Mail(("a@example.org",), "l@example.org", "127.0.0.1", port, "none", "lynx", SECRET).send(event)
    assert letters.got[0]["Bcc"] is None
    assert letters.got[0]["Subject"] == event.title
