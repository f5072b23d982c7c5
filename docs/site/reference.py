"""Reference pages that are written from the code: command line, job file, Python, HTTP API."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer

import lynceus
from lynceus.cli import exit_codes
from lynceus.cli.app import app
from lynceus.jobfile.json_schema import job_schema

MADE = "<!-- Written from the code by docs/site/reference.py. -->\n\n"


def pages() -> dict[str, str]:
    """Markdown by file name."""
    return {
        "reference/cli.md": MADE + "\n".join(_cli()),
        "reference/job-file-fields.md": MADE + "\n".join(_job_file()),
        "reference/python-api.md": MADE + "\n".join(_python()),
        "reference/http-api.md": MADE + "\n".join(_http()),
    }


def _cell(text: object) -> str:
    """A table cell: one line, no column of its own."""
    return " ".join(str(text).split()).replace("|", "\\|")


def _cli() -> Iterator[str]:
    yield "# Command line\n\n`lynceus COMMAND --help` shows the same in a terminal.\n"
    yield "| exit code | meaning |\n|---|---|\n| 0 | Success. |"
    yield from (f"| {code} | {_cell(meaning)} |" for code, meaning in _exit_codes())
    root = typer.main.get_command(app)
    for name, command in sorted(root.commands.items()):  # type: ignore[attr-defined]
        yield from _command(f"lynceus {name}", command)
        for sub, nested in sorted(getattr(command, "commands", {}).items()):
            yield from _command(f"lynceus {name} {sub}", nested)


def _exit_codes() -> Iterator[tuple[int, str]]:
    """Each code with the text below it."""
    body = ast.parse(Path(exit_codes.__file__).read_text(encoding="utf-8")).body
    for given, text in pairwise(body):
        if isinstance(given, ast.Assign) and isinstance(text, ast.Expr):
            yield ast.literal_eval(given.value), ast.literal_eval(text.value)


def _command(path: str, command: Any) -> Iterator[str]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and "--help" not in one.opts]
    yield f"\n## {path}\n\n{inspect.cleandoc(command.help or '')}\n"
    if hasattr(command, "commands"):
        return
    usage = " ".join(_placeholder(one) for one in arguments)
    yield f"```text\n{path} {usage}{' [OPTIONS]' if options else ''}\n```\n"
    if arguments or options:
        yield "| | | default |\n|---|---|---|"
        for one in arguments:
            yield f"| `{one.name.upper()}` | {_cell(one.help or '')} | |"
        for one in options:
            names = ", ".join(f"`{name}`" for name in [*one.opts, *one.secondary_opts])
            yield f"| {names} | {_cell(one.help or '')} | {_default(one.default)} |"


def _placeholder(argument: Any) -> str:
    name = argument.name.upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _default(value: object) -> str:
    if value is None or value is False or value in ("", [], ()) or callable(value):
        return ""
    return f"`{_cell(getattr(value, 'value', value))}`"


def _job_file() -> Iterator[str]:
    schema = json.loads(job_schema())
    yield "# Fields of a job file\n"
    yield "Every field, from the JSON Schema that editors read. [The job file](../job-file.md) explains them with examples.\n"
    yield from _fields("The whole file", schema)
    for name, section in sorted(schema["$defs"].items()):
        yield from _fields(name.removesuffix("Section"), section)


def _fields(title: str, section: Mapping[str, Any]) -> Iterator[str]:
    yield f"\n## {title}\n\n{section.get('description', '')}\n"
    properties = section.get("properties", {})
    if properties:
        needed = set(section.get("required", ()))
        yield "| field | type | default | meaning |\n|---|---|---|---|"
        for name, field in properties.items():
            default = "required" if name in needed else _json_default(field)
            yield f"| `{name}` | {_type(field)} | {default} | {_cell(field.get('description', ''))} |"


def _json_default(field: Mapping[str, Any]) -> str:
    return "" if field.get("default") is None else f"`{_cell(json.dumps(field['default']))}`"


def _type(field: Mapping[str, Any]) -> str:
    if "$ref" in field:
        section = field["$ref"].rsplit("/", 1)[1].removesuffix("Section")
        return f"[{section}](#{section.lower()})"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in field:
            kinds = dict.fromkeys(_type(one) for one in field[several] if one.get("type") != "null")
            return " or ".join(kinds)
    if "enum" in field or "const" in field:
        return ", ".join(f"`{_cell(one)}`" for one in field.get("enum", [field.get("const")]))
    kind = field.get("type", "any")
    if kind == "array":
        return f"list of {_type(field.get('items', {}))}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _python() -> Iterator[str]:
    yield "# Python API\n\n`import lynceus` loads each name when it is used. [Studies in Python](../python.md) is a walk through them.\n"
    for name in lynceus.__all__:
        thing = getattr(lynceus, name)
        yield f"\n## {name}\n\n```python\n{_signature(name, thing)}\n```\n\n{_markdown(thing)}\n"
        if inspect.isclass(thing):
            yield from _members(thing)


def _members(kind: type) -> Iterator[str]:
    rows = []
    for name, member in inspect.getmembers_static(kind):
        if name.startswith("_") or not (about := inspect.getdoc(getattr(kind, name, None))):
            continue
        if isinstance(member, property):
            rows.append(f"| `{name}` | {_cell(about.split(chr(10) + chr(10))[0])} |")
        elif inspect.isfunction(member) or isinstance(member, classmethod | staticmethod):
            call = _cell(f"{name}{_arguments(getattr(kind, name))}")
            rows.append(f"| `{call}` | {_cell(about.split(chr(10) + chr(10))[0])} |")
    if rows:
        yield "\n".join(["| | |", "|---|---|", *rows]) + "\n"


def _signature(name: str, thing: object) -> str:
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return f"class {name}({thing.__mro__[1].__name__})"
    return f"{'class ' if inspect.isclass(thing) else ''}{name}{_arguments(thing)}"


def _arguments(thing: Any) -> str:
    try:
        return re.sub(r"\blynceus\.[\w.]*\.(\w+)", r"\1", str(inspect.signature(thing)))
    except (TypeError, ValueError):
        return "(...)"


def _markdown(thing: object) -> str:
    """A docstring as Markdown: sessions of the interpreter and indented blocks become code."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n", inspect.getdoc(thing) or ""):
        if block.lstrip().startswith(">>>"):
            found.append(f"```python\n{block}\n```")
        elif all(line.startswith("    ") for line in block.splitlines()):
            found.append(f"```text\n{inspect.cleandoc(block)}\n```")
        else:
            found.append(block)
    return "\n\n".join(found)


def _http() -> Iterator[str]:
    from lynceus.server.app import create_app

    document = create_app("sqlite://").openapi()
    yield "# HTTP API\n"
    yield "[The HTTP API](../api.md) explains tokens, idempotency and errors. The same as OpenAPI: `GET /api/v1/openapi.json`.\n"
    operations = [one for verbs in document["paths"].values() for one in verbs.values()]
    shared = set.intersection(*(set(_answers(one)) for one in operations))
    yield "Every operation may also answer:\n\n| status | meaning |\n|---|---|"
    yield from (f"| {code} | {meaning} |" for code, meaning in sorted(shared))
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            yield f"\n## {verb.upper()} {path}\n\n{operation.get('summary', '')}\n\n{operation.get('description', '')}\n"
            if role := operation.get("x-role"):
                yield f"Role: {role}.\n"
            if operation.get("parameters"):
                yield "| parameter | in | meaning |\n|---|---|---|"
                for one in operation["parameters"]:
                    yield f"| `{one['name']}` | {one['in']} | {_cell(one.get('description', ''))} |"
            own = [f"{code} {meaning}" for code, meaning in _answers(operation) if (code, meaning) not in shared]
            yield f"\nAnswers: {', '.join(own)}.\n"


def _answers(operation: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each status code with its meaning."""
    return [
        (code, _cell(answer.get("description", "")).replace("Successful Response", "success"))
        for code, answer in operation["responses"].items()
    ]


def write(folder: Path) -> None:
    """Write all pages below a folder."""
    for name, text in pages().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
