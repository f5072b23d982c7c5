"""`lynceus init`: a new job file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

pytestmark = pytest.mark.usefixtures("here")


def test_init_writes_a_valid_job_file(lynceus, here: Path) -> None:
    code, _, _ = lynceus(
        "init",
        "new.yaml",
        "-y",
        "--name",
        "mine",
        "-p",
        "threads=1, 2",
        "-p",
        "mode=fast, slow",
        "--command",
        "run ${threads} ${mode}",
    )
    assert code == 0
    assert lynceus("check", "new.yaml")[0] == 0
    code, _, err = lynceus("init", "new.yaml", "-y")
    assert (code, "--force" in err) == (2, True)


@pytest.mark.parametrize("options", [(), ("--template", "vllm")])
def test_editors_find_the_schema_of_the_file(lynceus, here: Path, options: tuple[str, ...]) -> None:
    (here / "jobs").mkdir()
    assert lynceus("init", "jobs/new.yaml", "-y", *options)[0] == 0
    text = (here / "jobs" / "new.yaml").read_text()
    named = re.match(r"# yaml-language-server: \$schema=(.+)\n", text)
    assert named
    schema = json.loads((here / "jobs" / named[1]).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    job = yaml.safe_load(text)
    assert not list(validator.iter_errors(job))
    assert [str(error.message) for error in validator.iter_errors(job | {"colour": "red"})]
    assert lynceus("check", "jobs/new.yaml")[0] == 0


def test_a_bad_answer_is_asked_for_again_and_the_others_are_kept(here: Path) -> None:
    answers = [
        *("my: job", "mine"),
        *("threads", "threads=1, 2", "level=", "level=1..3", ""),
        *("run ${thread}", "run ${threads} ${level}"),
        *("0.1 * nodes", "0.1 * threads"),
        *("soon", "5m"),
        *("lots", "2 USD"),
    ]
    command = [sys.executable, "-m", "lynceus.cli", "init", "new.yaml"]
    done = subprocess.run(
        command, cwd=here, input="\n".join(answers) + "\n", text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 7, "one line for every bad answer"
    job = yaml.safe_load((here / "new.yaml").read_text())
    assert (job["name"], job["run"], job["price"]) == ("mine", ["run", "${threads}", "${level}"], "0.1 * threads")
    assert (job["space"], job["constraints"], job["budget"]["cost"]) == (
        {"threads": [1, 2], "level": {"int": [1, 3]}},
        ["runtime <= 5m"],
        "2 USD",
    )


def test_options_may_name_parameters_that_are_asked_for(here: Path) -> None:
    command = [sys.executable, "-m", "lynceus.cli", "init", "new.yaml", "--command", "run ${n}", "--price", "2 * n"]
    done = subprocess.run(command, cwd=here, input="\nn=1, 2\n\n\n\n\n\n", text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    job = yaml.safe_load((here / "new.yaml").read_text())
    assert (job["run"], job["price"]) == (["run", "${n}"], "2 * n")


@pytest.mark.parametrize("template", ["vllm", "sglang", "triton", "torchserve", "training"])
def test_every_template_is_a_valid_job_file(lynceus, here: Path, template: str) -> None:
    code, out, _ = lynceus("init", "new.yaml", "--template", template)
    assert (code, "Wrote new.yaml" in out) == (0, True)
    code, out, err = lynceus("check", "new.yaml")
    assert code == 0, err
    assert "configurations" in out
    assert yaml.safe_load((here / "new.yaml").read_text())["name"] == template
    assert lynceus("init", "new.yaml", "--template", template, "--name", "mine", "--force")[0] == 0
    assert yaml.safe_load((here / "new.yaml").read_text())["name"] == "mine"


def test_a_template_is_a_whole_file(lynceus, here: Path) -> None:
    code, _, err = lynceus("init", "new.yaml", "--template", "vlm")
    assert (code, "Did you mean 'vllm'?" in err) == (2, True)
    code, _, err = lynceus("init", "new.yaml", "--template", "vllm", "--price", "1")
    assert (code, "--template is a whole job file" in err) == (2, True)
    assert not (here / "new.yaml").exists()


PROJECTS = {
    "dbt": ({"dbt_project.yml": "name: shop\n", "models/a.py": "import pyspark\n"}, "dbt run --threads ${threads}"),
    "spark": (
        {"jobs/sessions.py": "from pyspark.sql import SparkSession\n\nif __name__ == '__main__':\n    pass\n"},
        "--executor-memory ${memory_gb}g --conf spark.sql.shuffle.partitions=${partitions} jobs/sessions.py",
    ),
    "torch": (
        {
            "model.py": "import torch.nn as nn\n",
            "train.py": (
                "import argparse, torch\np = argparse.ArgumentParser()\np.add_argument('--batch-size', type=int)\n"
                "p.add_argument('--lr')\np.add_argument('--out')\nif __name__ == '__main__':\n    p.parse_args()\n"
            ),
        },
        "python3 train.py --batch-size ${batch_size} --lr ${lr}",
    ),
    "make": ({"Makefile": "CFLAGS := -O2\nall: x\n\nbench: x\n\t./x\n"}, "make bench --jobs ${jobs}"),
    "script": (
        {
            "broken.py": "def (:\n",
            "work.py": "import click\n@click.option('--threads')\ndef f(): ...\nif __name__ == '__main__':\n    f()\n",
        },
        "python3 work.py --threads ${threads}",
    ),
}


@pytest.mark.parametrize("kind", PROJECTS)
def test_init_proposes_what_fits_the_folder(lynceus, here: Path, kind: str) -> None:
    files, command = PROJECTS[kind]
    for name, text in files.items():
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(text)
    code, out, _ = lynceus("init", "new.yaml", "-y")
    job = yaml.safe_load((here / "new.yaml").read_text())
    assert (code, "the job file starts from that" in out) == (0, True)
    assert " ".join(job["run"]).endswith(command)
    assert lynceus("check", "new.yaml")[0] == 0


def test_proposed_answers_can_all_be_changed(here: Path) -> None:
    (here / "Makefile").write_text("run:\n\techo\n")
    command = [sys.executable, "-m", "lynceus.cli", "init", "new.yaml"]
    kept = subprocess.run(command, cwd=here, input="\n" * 7, text=True, capture_output=True, check=True)
    assert "keeps: jobs=1, 2, 4, 8" in kept.stdout
    job = yaml.safe_load((here / "new.yaml").read_text())
    assert (job["run"], job["price"]) == (["make", "run", "--jobs", "${jobs}"], "0.05 * jobs")
    answers = "mine\nlevel=1..3\n\n\n\n\n\n"
    subprocess.run([*command, "--force"], cwd=here, input=answers, text=True, capture_output=True, check=True)
    job = yaml.safe_load((here / "new.yaml").read_text())
    assert (job["name"], job["run"]) == ("mine", ["python3", "job.py", "--level", "${level}"])


def test_options_win_over_what_is_found(lynceus, here: Path) -> None:
    (here / "Makefile").write_text("run:\n\techo\n")
    assert lynceus("init", "new.yaml", "-y", "-p", "n=1, 2", "--command", "go ${n}")[0] == 0
    assert yaml.safe_load((here / "new.yaml").read_text())["run"] == ["go", "${n}"]
