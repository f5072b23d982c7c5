"""What SkyPilot runs on each node: the supervisor with the job. Afterwards it prints the result files into the job's log.

It needs only the standard library, not Lynceus. `python3 -I -S node.py KEY` is called in the folder of a run, as it was copied to the node.
A second call for the same run starts nothing: it waits for the end of the first one and prints the same.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from typing import Any

LINE, END, TROUBLE = "LYNCEUS-LINE", "LYNCEUS-END", "LYNCEUS-TROUBLE"
ENVIRONMENT, RUNNER = "environment", "runner.pyz"
RESULT_FILES = ("outcome.json", "stdout", "stderr", "result.jsonl", "supervisor.log")
SPARE, SPARE_BYTES = "spare", 16 * 1024
"""A file that is copied with the run, and removed on a full disk: the log, which then has to say so, may be on that disk, too."""
EXIT_NO_DIRECTORY, EXIT_DISK_FULL = 73, 74
"""As in `supervisor.commands`, which is not here."""
_LINE_CHARS = 4000
_POLL_S = 0.5


def crypt(data: bytes, key: str) -> bytes:
    """Encrypt or decrypt data with a key that is used once and transferred separately."""
    keystream = bytearray()
    while len(keystream) < len(data):
        keystream += hashlib.sha256(f"{key}:{len(keystream)}".encode()).digest()
    return bytes(one ^ keystream[position] for position, one in enumerate(data))


def print_line(line: str) -> None:
    """Write one line to the log, past the buffer of Python, which would repeat what a full disk has refused."""
    data = f"{line}\n".encode()
    while data:
        data = data[os.write(1, data) :]


def print_trouble(folder: str, code: int) -> None:
    """Say in the log why there are no results, on a line of its own."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(folder, SPARE))
    with contextlib.suppress(OSError):  # what is left is the exit code
        print_line(f"\n{TROUBLE} {code}")


def result_lines(directory: str, rank: str) -> list[str]:
    """The result files as lines of a log."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in sorted(os.listdir(directory)):
            if name in RESULT_FILES:
                archive.add(os.path.join(directory, name), arcname=name)
    text = base64.b64encode(packed.getvalue()).decode()
    lines = [text[start : start + _LINE_CHARS] for start in range(0, len(text), _LINE_CHARS)]
    return [f"{LINE} {rank} {index} {len(lines)} {line}" for index, line in enumerate(lines)]


def run(folder: str, key: str, rank: str) -> str | None:
    """Run the job under its supervisor, or wait for another call that does; returns the directory with its outcome, or None."""
    directory = os.path.join(folder, f"rank-{rank}")
    os.makedirs(directory, exist_ok=True)
    for name in ("request.json", "params.json", "script"):
        source = os.path.join(folder, name)
        if os.path.exists(source) and not os.path.exists(os.path.join(directory, name)):
            shutil.copy(source, os.path.join(directory, f".{name}"))
            os.rename(os.path.join(directory, f".{name}"), os.path.join(directory, name))
    command = [sys.executable, "-I", "-S", os.path.join(folder, RUNNER)]
    supervisor = subprocess.Popen([*command, "run", directory, "-"], stdin=subprocess.PIPE)
    for which in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(which, lambda *_: supervisor.send_signal(signal.SIGTERM))
    assert supervisor.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        with open(os.path.join(folder, ENVIRONMENT), "rb") as file:
            supervisor.stdin.write(crypt(file.read(), key))
        supervisor.stdin.close()
    code = supervisor.wait()
    if code != 0:
        print_trouble(folder, code)
        return None
    outcome = os.path.join(directory, "outcome.json")
    while not os.path.exists(outcome):  # another call runs it
        asked = subprocess.run([*command, "state", directory], check=False, stdout=subprocess.PIPE)
        if asked.returncode == 0 and json.loads(asked.stdout)["state"] == "gone":
            print_trouble(folder, EXIT_NO_DIRECTORY)
            return None
        time.sleep(_POLL_S)
    return directory


def main(arguments: list[str]) -> int:
    """Run the job and print its results; fails if the job failed, so that SkyPilot shows it as failed."""
    folder, rank = os.path.dirname(os.path.abspath(__file__)), os.environ.get("SKYPILOT_NODE_RANK", "0")
    try:
        directory = run(folder, arguments[0], rank)
        return 1 if directory is None else print_results(folder, directory, rank)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print_trouble(folder, EXIT_DISK_FULL)
        return 1


def print_results(folder: str, directory: str, rank: str) -> int:
    """Print the result files; returns the exit code."""
    if rank == "0":
        os.truncate(os.path.join(folder, ENVIRONMENT), 0)
    for line in result_lines(directory, rank):
        print_line(line)
    print_line(f"{END} {rank}")
    with open(os.path.join(directory, "outcome.json"), encoding="utf-8") as file:
        outcome: Any = json.load(file)
    return 1 if outcome["end"] == "failed" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
