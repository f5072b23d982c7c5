"""Copies of the working directory, and the resources of configurations."""

from pathlib import Path

import pytest

from lynceus.errors import InputError
from lynceus.executors.ray import working_directory
from lynceus.executors.ray.node import unpack
from lynceus.executors.ray.options import RayOptions, bundles
from lynceus.executors.resources import Resources
from lynceus.space.derived import Mapped
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    for name in ("train.py", "data/a.csv", "data/b.txt", ".git/config", "pkg/__pycache__/x.pyc", "runs/0/stdout"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(name)
    (made / "train.py").chmod(0o755)
    (made / "link.py").symlink_to(made / "train.py")
    (made / "broken").symlink_to(made / "nowhere")
    return made


def test_files_keep_their_permissions(folder: Path, tmp_path: Path) -> None:
    _, packed = working_directory.pack(folder, without=folder / "runs")
    unpack(packed, str(tmp_path / "node"))
    arrived = sorted(path.relative_to(tmp_path / "node").as_posix() for path in (tmp_path / "node").rglob("*.*"))
    assert arrived == ["data/a.csv", "data/b.txt", "link.py", "train.py"]
    assert (tmp_path / "node" / "train.py").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "node" / "data" / "a.csv").read_text() == "data/a.csv"


def test_equal_contents_have_equal_digests(folder: Path) -> None:
    first, packed = working_directory.pack(folder)
    (folder / "train.py").touch()
    assert working_directory.pack(folder) == (first, packed)
    (folder / "train.py").write_text("changed")
    assert working_directory.pack(folder)[0] != first


@pytest.mark.parametrize(
    ("exclude", "excluded"),
    [(["*.csv"], {"data/a.csv"}), (["data/*"], {"data/a.csv", "data/b.txt"}), (["data/"], {"data"})],
)
def test_excluded_files_are_not_copied(folder: Path, tmp_path: Path, exclude: list[str], excluded: set[str]) -> None:
    _, packed = working_directory.pack(folder, exclude)
    unpack(packed, str(tmp_path / "node"))
    assert not any((tmp_path / "node" / name).exists() for name in excluded)
    assert (tmp_path / "node" / "train.py").exists()


def test_a_directory_that_is_too_large_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working_directory, "MAX_BYTES", 10)
    with pytest.raises(InputError, match=r"too much to copy; list what is not needed in 'exclude'"):
        working_directory.pack(folder)


def test_bundles_depend_on_the_configuration() -> None:
    vcpus = Mapped("vcpus", "vm", {"m.large": 2, "m.xlarge": 4})
    space = Space.build([Categorical("vm", ["m.large", "m.xlarge"]), Integer("nodes", 1, 2)], [vcpus], price=1.0)
    options = RayOptions(num_cpus="${vcpus}", num_nodes="${nodes}", memory="${vcpus}", resources={"${vm}": 1})
    row = space.row({"vm": "m.xlarge", "nodes": 2})
    assert bundles(options, space, row) == [{"CPU": 4.0, "memory": 4 << 30, "m.xlarge": 1.0}] * 2
    plain = bundles(RayOptions(), space, row, lambda row: Resources(3.0, 1 << 30))
    assert plain == [{"CPU": 3.0, "memory": 1 << 30}]
    assert bundles(RayOptions(), space, row) == [{"CPU": 1.0}]


def test_the_column_num_nodes_sets_the_number_of_bundles() -> None:
    space = Space.build([Integer("num_nodes", 1, 3)], price=1.0)
    assert [len(bundles(RayOptions(), space, row)) for row in range(3)] == [1, 2, 3]
