"""The scratch directory of a run: empty or with files of the working directory, its own, and gone when the run has ended.

It is filled under a temporary name, so that a directory called `scratch` is complete. What a run leaves there is not a result: it is
removed, or, if it is to be kept and the run did not finish, renamed `scratch.unfinished`.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

NAME = "scratch"
UNFINISHED = f"{NAME}.unfinished"
_WILDCARDS = frozenset("*?[")
SENT_RUN = "lynceus-run-"
"""How the folders are called in which runs are sent to a cluster: they lie in its working directory, and are not part of the job."""
_COPY_BYTES = 8 << 20
"""How much is copied before we look whether the run is to be stopped."""


class ScratchError(Exception):
    """A scratch directory cannot be made; the message is a clause for the user."""


class NoMatchError(ScratchError):
    """A pattern names nothing."""


class StoppedError(ScratchError):
    """The run was stopped while its scratch directory was made."""


def in_use(directory: str) -> list[str]:
    """The scratch directories in a run directory that no run should leave there."""
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    return sorted(os.path.join(directory, one) for one in names if one == NAME or one.startswith(f"{NAME}."))


def make(directory: str, request: Mapping[str, Any], stops: Callable[[], bool]) -> str | None:
    """Make and fill the scratch directory of a run under a temporary name; None if the run has none. See `adopt`."""
    wanted = request.get("scratch")
    if not wanted:
        return None
    temporary = os.path.join(directory, f"{NAME}.{os.getpid()}.{time.monotonic_ns()}.new")
    source = os.path.expanduser(request["cwd"])
    try:
        os.mkdir(temporary, 0o700)
        bring_in(source, temporary, wanted.get("copy", ()), wanted.get("link", ()), wanted.get("without", ()), stops)
    except OSError as error:
        remove_tree(temporary)
        where = f" ({error.filename})" if error.filename else ""
        raise ScratchError(f"its scratch directory could not be made: {error.strerror}{where}") from None
    except ScratchError:
        remove_tree(temporary)
        raise
    return temporary


def adopt(directory: str, temporary: str) -> str:
    """Give the scratch directory its name; returns its path."""
    path = os.path.join(directory, NAME)
    remove_tree(path)
    os.rename(temporary, path)
    return path


def leave(directory: str, request: Mapping[str, Any], *, finished: bool) -> None:
    """What happens to the scratch directory of a run that has ended: it is removed, or kept under a name that says whether it finished."""
    wanted = request.get("scratch") or {}
    path = os.path.join(directory, NAME)
    if wanted.get("keep"):
        if not finished:
            with contextlib.suppress(OSError):
                os.rename(path, os.path.join(directory, UNFINISHED))
        return
    for one in in_use(directory):
        remove_tree(one)


def remove_tree(path: str) -> None:
    """Remove a directory with everything in it, also what a job made read-only; never what symbolic links in it lead to."""
    if os.path.islink(path) or os.path.isfile(path):
        with contextlib.suppress(OSError):
            os.unlink(path)
        return
    shutil.rmtree(path, ignore_errors=True)
    if os.path.isdir(path):
        for where, folders, _ in os.walk(path):
            for one in (where, *(os.path.join(where, folder) for folder in folders)):
                with contextlib.suppress(OSError):
                    if not os.path.islink(one):
                        os.chmod(one, 0o700)
        shutil.rmtree(path, ignore_errors=True)


def matches(folder: str, pattern: str, without: Iterable[str] = ()) -> list[str]:
    """The paths in a folder that a pattern names, relative to it. `*` and `**` leave out hidden names, as in a shell.

    Raises `ScratchError` if there are none, or if a symbolic link leads out of the folder.
    """
    segments = [one for one in pattern.split("/") if one not in ("", ".")]
    skipped = frozenset(without)
    try:
        found = list(_expanded(folder, "", segments, skipped)) if segments else _names(folder, "", skipped)
    except OSError as error:
        raise ScratchError(f"{error.filename} cannot be read: {error.strerror}") from None
    if not found:
        raise NoMatchError(f"nothing in {folder} matches '{pattern}'")
    root = os.path.realpath(folder)
    for one in found:
        _check_inside(root, one)
    return list(dict.fromkeys(found))


def _names(folder: str, inside: str, without: Iterable[str]) -> list[str]:
    names = sorted(os.listdir(os.path.join(folder, inside)))
    paths = [os.path.join(inside, name) for name in names if not name.startswith(SENT_RUN)]
    return [path for path in paths if path not in without]


def _expanded(folder: str, inside: str, segments: list[str], without: frozenset[str]) -> Iterator[str]:
    """The paths below `inside` that match; symbolic links to folders are not searched by `**`."""
    if not segments:
        yield inside
        return
    first, rest = segments[0], segments[1:]
    if not _WILDCARDS & set(first):
        path = os.path.join(inside, first)
        if path not in without and os.path.lexists(os.path.join(folder, path)):
            yield from _expanded(folder, path, rest, without)
        return
    if first == "**":
        yield from _expanded(folder, inside, rest or ["*"], without)
    if not os.path.isdir(os.path.join(folder, inside)):
        return
    for path in _names(folder, inside, without):
        name, whole = os.path.basename(path), os.path.join(folder, path)
        if name.startswith(".") and not first.startswith("."):
            continue
        if first == "**":
            if os.path.isdir(whole) and not os.path.islink(whole):
                yield from _expanded(folder, path, segments, without)
        elif fnmatch.fnmatchcase(name, first):
            yield from _expanded(folder, path, rest, without)


def _check_inside(root: str, path: str) -> str:
    """The real path of what `path` leads to, which must be inside the folder `root`, a real path."""
    real = os.path.realpath(os.path.join(root, path))
    if os.path.commonpath([root, real]) != root:
        raise ScratchError(f"'{path}' leads out of {root}, to {real}")
    return real


def bring_in(
    folder: str,
    target: str,
    copy: Iterable[str],
    link: Iterable[str],
    without: Iterable[str] = (),
    stops: Callable[[], bool] = lambda: False,
) -> None:
    """Copy and link what the patterns name into another folder, under the same paths. What `link` names is not copied."""
    root, skipped = os.path.realpath(folder), frozenset(without)
    named = [path for pattern in link for path in matches(folder, pattern, skipped)]
    links = [one for one in dict.fromkeys(named) if not any(one.startswith(f"{other}/") for other in named)]
    for pattern in copy:
        for path in matches(folder, pattern, skipped):
            if not any(path == one or path.startswith(f"{one}/") for one in links):
                _copy(root, path, target, {*links, *skipped}, stops, ())
    for path in links:
        place = os.path.join(target, path)
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        os.symlink(os.path.join(root, path), place)


def _copy(
    root: str, path: str, target: str, without: set[str], stops: Callable[[], bool], above: tuple[str, ...]
) -> None:
    """Copy a file, or a folder but for some paths, with permissions and times. Symbolic links are followed inside `root`."""
    if stops():
        raise StoppedError("it was stopped before it started")
    real, place = _check_inside(root, path), os.path.join(target, path)
    if real in above:
        raise ScratchError(f"'{path}' is a symbolic link to a folder that contains it")
    found = os.stat(real)
    if stat.S_ISDIR(found.st_mode):
        os.makedirs(place, mode=0o700, exist_ok=True)
        for inner in _names(root, path, without):
            _copy(root, inner, target, without, stops, (*above, real))
    elif stat.S_ISREG(found.st_mode):
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        if not os.path.lexists(place):
            _copy_file(real, place, found, stops)
    else:
        raise ScratchError(f"'{path}' is neither a file nor a folder")


def _copy_file(source: str, place: str, found: os.stat_result, stops: Callable[[], bool]) -> None:
    mode = stat.S_IMODE(found.st_mode) & 0o777 | 0o600
    reads = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        writes = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            offset = 0
            while sent := os.sendfile(writes, reads, offset, _COPY_BYTES):
                offset += sent
                if stops():
                    raise StoppedError("it was stopped before it started")
            os.fchmod(writes, mode)
        finally:
            os.close(writes)
    finally:
        os.close(reads)
    os.utime(place, ns=(found.st_atime_ns, found.st_mtime_ns))
