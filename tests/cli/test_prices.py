"""`lynceus prices`: what it prints and stores, and studies that continue at other prices."""

import json
import sqlite3
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lynceus.cli.app import main

HEAD = "InstanceType,vCPUs,MemoryGiB,Price,SpotPrice,Region\n"
JOB = """\
name: nightly
run: sleep "$(awk -v n="$num_nodes" 'BEGIN{print 1/n}')"
resources: {infra: cloud9/east, num_nodes: [1, 2]}
constraints: ["runtime <= 20s"]
budget: {cost: 1 USD}
policy: sweep
trial: {timeout: none}
"""


@dataclass
class Ended:
    """The output of a command."""

    stdout: str
    stderr: str


class Shell:
    """The command line with a home folder of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._patch, self._capsys = folder, monkeypatch, capsys
        monkeypatch.chdir(folder)
        monkeypatch.delenv("LYNCEUS_STORAGE", raising=False)
        monkeypatch.setenv("LYNCEUS_HOME", str(folder / "home"))
        monkeypatch.setenv("HOME", str(folder))

    def __call__(self, *arguments: str, code: int = 0) -> Ended:
        self._patch.setattr(sys, "argv", ["lynceus", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        output = Ended(*self._capsys.readouterr())
        assert (ended.value.code or 0) == code, output.stderr
        return output

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json").stdout)

    def catalog(self, **prices: float) -> None:
        lines = [f"{name},{2 if name == 'small' else 4},8,{usd},{usd / 4},east" for name, usd in prices.items()]
        (self.folder / "cloud9.csv").write_text(HEAD + "\n".join(lines) + "\n")
        self("prices", "import", "cloud9.csv", "--cloud", "cloud9", "--as-of", "2026-11-01")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, monkeypatch, capsys)


def test_the_embedded_prices_are_listed_with_source_and_age(shell: Shell) -> None:
    found = shell.json("prices", "list", "--infra", "aws/us-east-1", "--cpus", "4+", "--memory", "16+", "--spot")
    machines = found["machines"]
    assert machines
    assert all(one["vcpus"] >= 4 and one["memory_gib"] >= 16 and one["infra"] == "aws/us-east-1" for one in machines)
    spot = [one["spot_usd_per_hour"] for one in machines]
    assert spot == sorted(spot)
    (catalog,) = found["catalogs"]
    assert catalog["source"].startswith("embedded")
    assert catalog["age_days"] >= 0
    text = shell("prices", "list", "--infra", "aws/us-east-1", "--limit", "2").stdout
    assert "more; narrow the search" in text
    assert "prices: aws of 20" in text
    assert "the spot prices of aws are estimates" in shell("prices", "list", "--infra", "aws", "--spot").stderr
    assert "estimates" not in shell("prices", "list", "--infra", "gcp", "--spot").stderr
    assert catalog["spot_note"].startswith("estimates")
    assert "m5.xlarge" in shell("prices", "show", "m5.xlarge").stdout


def test_imported_prices_are_shown_and_old_prices_give_a_warning(shell: Shell) -> None:
    shell.catalog(small=0.1, large=0.3)
    (shell.folder / "old.csv").write_text(HEAD + "m5.xlarge,4,16,0.5,,mars\n")
    kept = shell("prices", "import", "old.csv", "--cloud", "aws", "--as-of", "2020-01-01")
    assert "1 price in 1 region: aws of 2020-01-01" in kept.stdout
    assert "days old" in kept.stderr
    shown = shell("prices", "show", "m5.xlarge")
    assert "aws/mars" in shown.stdout
    assert "0.5000" in shown.stdout
    assert "renew them with: lynceus prices refresh" in shown.stderr
    assert [one["instance_type"] for one in shell.json("prices", "list", "--infra", "cloud9")["machines"]] == [
        "small",
        "large",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["list", "--infra", "awz"], 2, "Did you mean 'aws'?"),
        (["list", "--cpus", "lots"], 2, "write 4 (exactly)"),
        (["show", "m5.xlarg"], 2, "Did you mean 'm5.xlarge'?"),
        (["import", "gone.csv", "--cloud", "aws"], 2, "cannot be read: No such file"),
        (["refresh", "--from", "http://127.0.0.1:9/{cloud}.csv"], 4, "the stored prices stay"),
        (["refresh", "--from", "nowhere"], 2, "nowhere cannot be read"),
    ],
)
def test_mistakes_are_one_line(shell: Shell, arguments: list[str], code: int, said: str) -> None:
    ended = shell("prices", *arguments, code=code)
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_study_continues_at_new_prices_and_keeps_past_charges(shell: Shell) -> None:
    """The cheap machine becomes expensive: the recommendation changes, the money spent does not."""
    shell.catalog(small=0.1, large=0.3)
    (shell.folder / "job.yaml").write_text(JOB)
    first = shell.json("run", "job.yaml", "-y")
    assert first["best"]["params"]["instance_type"] == "small"
    before = shell.json("trials", "nightly")
    assert len(before) == 4

    shell.catalog(small=0.9, large=0.3)
    for command in (["run", "job.yaml", "-y"], ["resume", "nightly"]):
        note = shell(*command).stderr
        assert "prices have changed: small (cloud9/east) $0.1000 → $0.9000 (+800 %)" in note
        assert "lynceus prices apply nightly" in note
    assert shell.json("best", "nightly")["params"]["instance_type"] == "small", "nothing changes by itself"

    applied = shell.json("prices", "apply", "nightly")
    assert applied["changes"] == ["small (cloud9/east) $0.1000 → $0.9000 (+800 %)"]
    best = shell.json("best", "nightly")
    assert best["params"]["instance_type"] == "large"
    after = shell.json("trials", "nightly")
    for old, new in zip(before, after, strict=True):
        assert (old["charged_usd"], old["runtime_s"]) == (new["charged_usd"], new["runtime_s"])
        factor = 9.0 if old["params"]["instance_type"] == "small" else 1.0
        assert new["cost_usd"] == pytest.approx(factor * old["cost_usd"])
    assert shell.json("status", "nightly")["spent_usd"] == pytest.approx(first["spent_usd"])
    assert shell.json("prices", "apply", "nightly")["changes"] == []
    with sqlite3.connect(shell.folder / "lynceus.db") as storage:
        ((detail,),) = storage.execute("select detail from events where kind = 'repriced'").fetchall()
    storage.close()
    assert json.loads(detail)["changes"] == applied["changes"]


def test_resume_applies_new_prices_with_reprice(shell: Shell) -> None:
    shell.catalog(small=0.1, large=0.3)
    (shell.folder / "job.yaml").write_text(JOB)
    shell("run", "job.yaml", "-y")
    shell.catalog(large=0.01)
    ended = shell("resume", "nightly", "--reprice")
    assert "small (cloud9/east) has no price any more; $0.1000 stays" in ended.stderr
    assert shell.json("best", "nightly")["params"]["instance_type"] == "large"


def test_a_price_in_the_job_file_can_be_changed_but_nothing_else(shell: Shell) -> None:
    text = "name: plain\nrun: sleep 0.05\nspace: {n: [1, 2]}\nprice: USD\nbudget: {cost: 1 USD}\npolicy: sweep\n"
    job = shell.folder / "job.yaml"
    job.write_text(text.replace("USD\n", "n\n", 1))
    shell("run", "job.yaml", "-y")
    spent = shell.json("status", "plain")["spent_usd"]
    job.write_text(text.replace("USD\n", "5 - n\n", 1))
    refused = shell("run", "job.yaml", "-y", code=2).stderr
    assert "if only prices differ: lynceus prices apply job.yaml" in refused
    assert shell.json("prices", "apply", "job.yaml")["changes"] == ["price: n → 5 - n"]
    shell("run", "job.yaml", "-y")
    assert shell.json("status", "plain")["spent_usd"] == pytest.approx(spent)
    job.write_text(text.replace("USD\n", "n\n", 1).replace("[1, 2]", "[1, 2, 3]"))
    assert "more than prices has changed" in shell("prices", "apply", "job.yaml", code=2).stderr
