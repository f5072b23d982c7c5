"""The example of docs/api.md, run against a real server process."""

import re
import subprocess
import sys
from pathlib import Path

from dashboards import WRITE, dashboard
from lynceus.storage.sql.storage import Storage

PAGE = Path(__file__).parents[2] / "docs" / "api.md"


def test_the_example_of_the_documentation_runs(tmp_path: Path) -> None:
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    url = f"sqlite:///{tmp_path}/s.db"
    with dashboard(url, tmp_path) as server:
        text = text.replace('"http://127.0.0.1:8080", token="…"', f'"{server.url}", token="{WRITE}"')
        assert server.url in text
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", text], capture_output=True, text=True, timeout=120, check=False
        )
        best = server.get("studies/nightly-sessions").json
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(best["best_params"]))
    assert best["reason"] in done.stdout
    with Storage(url) as storage:
        assert storage.totals("nightly-sessions").spent_usd < 2


def test_every_operation_is_in_the_documentation() -> None:
    from lynceus.server.app import create_app

    app = create_app("sqlite://")
    page = PAGE.read_text(encoding="utf-8").replace("{n}", "{number}")
    words = {path.removeprefix("/api/v1").rpartition("/")[2] for path in app.openapi()["paths"]} - {
        "{name}",
        "{number}",
    }
    app.state.context.storage.close()
    assert not [word for word in words if word not in page and word != "session"]
