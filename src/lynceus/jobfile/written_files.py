"""Files that a command writes under the same name in every trial, as far as its text tells.

Only what is certain counts, so that there are no false alarms: redirections, `tee` and options for outputs, with a name that holds
no variable. Appending (`>>`) is left alone: it is how trials share a log on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath

_HERE_DOCUMENT = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1([^\n]*)\n.*?^[ \t]*\2[ \t]*$", re.DOTALL | re.MULTILINE)
_TOKEN = re.compile(
    r"""(?P<comment>(?<!\S)\#[^\n]*)
      | (?P<operator>\d*(?:&>>|>>|&>|>\||>&|<>|<<<|<&|>|<)|\|\||&&|;;|[|&;()\n])
      | (?P<word>(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|`[^`]*`|\$\((?:[^()]|\([^()]*\))*\)|\$\{[^}]*\}|[^\s|&;()<>'"\\`])+)""",
    re.VERBOSE | re.DOTALL,
)
_WRITES = re.compile(r"\d*(?:>|>\||&>|>&)")
_OUTPUT_OPTIONS = frozenset({"--output", "--out", "--outfile", "--out-file", "--output-file"})
_OTHER_O = frozenset(
    {
        "set",
        "ssh",
        "scp",
        "sftp",
        "grep",
        "egrep",
        "fgrep",
        "zgrep",
        "rg",
        "ps",
        "find",
        "test",
        "[",
        "[[",
        "mount",
        "ls",
        "unzip",
    }
    | {
        "tar",
        "shopt",
        "su",
        "column",
        "date",
        "kubectl",
        "lynceus",
        "stdbuf",
        "ip",
        "lsblk",
        "flock",
        "xargs",
        "make",
        "read",
    }
)
"""Programs whose option `-o` names no output."""
_FORMATS = frozenset(
    {
        "json",
        "jsonl",
        "yaml",
        "yml",
        "csv",
        "tsv",
        "table",
        "text",
        "txt",
        "wide",
        "name",
        "html",
        "xml",
        "plain",
        "none",
        "-",
    }
)
_PLAIN_NAME = re.compile(r"[\w./\-+@~][\w./\-+@~ ]*")


def written_files(run: str | Sequence[str], shells: Collection[str]) -> list[str]:
    """The files that a script or a list of arguments writes under a fixed name, once each.

    >>> shells = ("sh", "bash")
    >>> written_files('gzip -c data > out.gz; wc -c < out.gz | tee "size.txt"', shells)
    ['out.gz', 'size.txt']
    >>> written_files(["train", "--output", "model.bin", "-o", "${threads}.log"], shells)
    ['model.bin']
    >>> written_files('a > /dev/null 2>&1; b > "$LYNCEUS_SCRATCH/x"; c >> log; [ 1 -gt 0 ] || d', shells)
    []
    """
    if isinstance(run, str):
        first, _, _ = run.partition("\n")
        names = (
            list(_by_script(run)) if not first.startswith("#!") or _names_shell(first[2:].split()[:2], shells) else []
        )
    else:
        names = list(_by_options(list(run)))
        at = next((place for place, word in enumerate(run) if _names_shell([word], shells)), None)
        if at is not None:
            options = [word for word in run[at + 1 :] if word.startswith("-")]
            texts = [word for word in run[at + 1 :] if not word.startswith("-")]
            if any(re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", one) for one in options) and texts:
                names = list(_by_script(max(texts, key=len)))
    return list(dict.fromkeys(names))


def _names_shell(words: Sequence[str], shells: Collection[str]) -> bool:
    return any(PurePosixPath(word).name in shells for word in words)


def _by_script(script: str) -> Iterator[str]:
    """Redirections, `tee` and options of each simple command. After a `cd` to a variable folder, only absolute names count."""
    text = _HERE_DOCUMENT.sub(r"\3", script.replace("\\\n", " "))
    command: list[str] = []
    targets: list[str] = []
    redirect, elsewhere = "", False
    for token in [*_TOKEN.finditer(text), None]:
        word = token["word"] if token is not None else None
        if word is not None and redirect:
            if _WRITES.fullmatch(redirect):
                targets.append(word)
            redirect = ""
        elif word is not None:
            command.append(word)
        elif token is not None and token["operator"] and re.search("[<>]", token["operator"]):
            redirect = token["operator"]
        elif token is None or token["operator"]:
            elsewhere = elsewhere or (command[:1] in (["cd"], ["pushd"]) and "$" in " ".join(command[1:]))
            found = (
                []
                if command[:1] in (["[["], ["(("])
                else [*map(_fixed, targets), *_by_options(command), *_by_tee(command)]
            )
            yield from (name for name in found if name is not None and (name.startswith("/") or not elsewhere))
            command, targets, redirect = [], [], ""


def _by_tee(command: Sequence[str]) -> Iterator[str]:
    words = list(command)
    if words and PurePosixPath(words[0]).name == "tee" and not {"-a", "--append"} & set(words):
        yield from (name for word in words[1:] if not word.startswith("-") and (name := _fixed(word)) is not None)


def _by_options(command: Sequence[str]) -> Iterator[str]:
    """What follows `-o`, `--output` and the like."""
    for place, word in enumerate(command):
        option, equals, value = word.partition("=")
        if option == "-o" and any(PurePosixPath(one).name in _OTHER_O or _is_shell(one) for one in command[:place]):
            continue
        if option in _OUTPUT_OPTIONS or word == "-o":
            given = value if equals else command[place + 1] if place + 1 < len(command) else ""
            name = _fixed(given)
            if name is not None and not name.startswith("-") and name.lower() not in _FORMATS:
                yield name


def _is_shell(word: str) -> bool:
    return PurePosixPath(word).name.endswith("sh")


def _fixed(word: str) -> str | None:
    """The file that a word names in every trial; None if it holds a variable, or is a device or a descriptor."""
    if word.startswith("'") and word.endswith("'"):
        word = word[1:-1]
        if "${" in word:
            return None
    elif "$" in word or "`" in word:
        return None
    name = re.sub(r"\\(.)", r"\1", word).replace('"', "").replace("'", "")
    if (
        not _PLAIN_NAME.fullmatch(name)
        or name.isdigit()
        or name in ("-", ".", "/")
        or name.startswith(("/dev/", "/proc/"))
    ):
        return None
    return name
