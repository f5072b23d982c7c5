"""Names and values that look like YAML, commands or results of a node are only text."""

import base64
import io
import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_skypilot_bench import FakeSkyPilot
from lynceus.executors.interface import Request
from lynceus.executors.skypilot import node
from lynceus.executors.skypilot.payload import unpack
from lynceus.trial.outcome import End
from skypilot_runs import StudyRuns, wait

EVIL = "x\nrun: |\n  touch pwned\n!!python/object/apply:os.system ['touch pwned'] {{ 7*7 }} $(touch pwned) ${machine} 日本 '\""


def test_hostile_text_is_not_interpreted(fake: FakeSkyPilot, study: Callable[..., StudyRuns]) -> None:
    made = study(keep_warm="10m", task={"config": {"note": EVIL.replace("${machine}", "")}})
    executor = made.executor('printf %s "$machine" > "$FOLDER/seen"')
    request = Request(EVIL, 0, 0, {"machine": EVIL}, 60.0, True, "0a1b2c3d")
    assert wait(executor, executor.launch(request)).end is End.FINISHED
    (record,) = fake.records()
    assert record["task"]["config"] == {"note": EVIL.replace("${machine}", "")}
    assert re.fullmatch(r'exec python3 -I -S "\$HOME/sky_workdir/lynceus-run-\w+/node\.py" \w+', record["task"]["run"])
    assert re.fullmatch(r"lyn-[a-z0-9-]+", fake.clusters()[0])
    assert (made.folder / "seen").read_text() == EVIL
    executor.close()
    assert not list(made.folder.parent.rglob("pwned*"))


def _log(name: str, data: bytes, rank: str = "0") -> str:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return f"{node.LINE} {rank} 0 1 {base64.b64encode(packed.getvalue()).decode()}\n{node.END} {rank}\n"


@pytest.mark.parametrize(
    "name", ["request.json", "sky.json", "cancel", "../evil", "/tmp/evil", "script", "sub/outcome.json"]
)
def test_a_node_cannot_write_what_lynceus_keeps_about_its_run(tmp_path: Path, name: str) -> None:
    ticket = tmp_path / "ticket"
    ticket.mkdir()
    assert unpack(_log(name, b'{"end": "finished"}'), ticket) is None
    assert [path for path in tmp_path.rglob("*") if path != ticket] == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b'{"end": "finished"}',
        b"\xff\x00",
        b'{"end": "won", "seconds": 1, "metrics": {}, "trace": []}',
    ],
)
def test_an_outcome_that_cannot_be_read_settles_nothing(tmp_path: Path, data: bytes) -> None:
    assert unpack(_log("outcome.json", data), tmp_path) is None
    assert unpack(_log("outcome.json", data).replace(" 0 1 ", " 0 1 !"), tmp_path) is None
    assert unpack(_log("outcome.json", data, "../../x"), tmp_path) is None
    good = {"end": "finished", "seconds": 1.0, "metrics": {}, "trace": []}
    assert unpack(_log("outcome.json", json.dumps(good).encode()), tmp_path) == good
