"""A real llama.cpp on the CPU, with a tiny model of random weights, tuned under a p99 limit. `make serving` installs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-llamacpp" / "bin" / "python"
READY = PYTHON.parents[1] / ".installed"
MODEL = """\
# A Llama of 0.4 million parameters. The tokens are ASCII bytes, so every generated token is valid text of its own.
import gguf
import numpy as np

WIDTH, INNER, BLOCKS, HEADS = 128, 256, 2, 4
tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(128)), "\\u2581"]
kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 128, gguf.TokenType.NORMAL]
writer = gguf.GGUFWriter("tiny.gguf", "llama")
writer.add_context_length(1024)
writer.add_embedding_length(WIDTH)
writer.add_feed_forward_length(INNER)
writer.add_block_count(BLOCKS)
writer.add_head_count(HEADS)
writer.add_rope_dimension_count(WIDTH // HEADS)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_tokenizer_model("llama")
writer.add_token_list(tokens)
writer.add_token_scores([0.0] * len(tokens))
writer.add_token_types(kinds)
writer.add_unk_token_id(0)
writer.add_bos_token_id(1)
writer.add_eos_token_id(2)

shapes = {"token_embd": (len(tokens), WIDTH), "output": (len(tokens), WIDTH), "output_norm": (WIDTH,)}
for block in range(BLOCKS):
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        shapes[f"blk.{block}.{name}"] = (WIDTH, WIDTH)
    for name in ("ffn_gate", "ffn_up"):
        shapes[f"blk.{block}.{name}"] = (INNER, WIDTH)
    shapes[f"blk.{block}.ffn_down"] = (WIDTH, INNER)
    shapes |= {f"blk.{block}.attn_norm": (WIDTH,), f"blk.{block}.ffn_norm": (WIDTH,)}
random = np.random.default_rng(0)
for name, shape in shapes.items():
    weights = np.ones(shape) if len(shape) == 1 else random.normal(0.0, shape[-1] ** -0.5, shape)
    writer.add_tensor(f"{name}.weight", weights.astype(np.float32))
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
"""
SERVER = """\
import sys
import threading

import xllamacpp

port, threads, batch, ubatch = map(int, sys.argv[2:])
settings = xllamacpp.CommonParams()
settings.model.path, settings.port = sys.argv[1], port
settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
settings.n_batch, settings.n_ubatch = batch, ubatch
settings.n_parallel, settings.n_ctx = 4, 4096
settings.verbosity = 4  # llama.cpp prints the settings of its context
server = xllamacpp.Server(settings)
threading.Event().wait()
"""
JOB = """\
version: 1
name: llamacpp
serve:
  command: ["{python}", "{folder}/server.py", "{folder}/tiny.gguf", "${{port}}", "${{threads}}", "${{batch}}", "${{ubatch}}"]
  ready: {{path: /health, within: 120s}}
  load: {{concurrency: 4, prompt_tokens: 48, output_tokens: 8, extra: {{ignore_eos: true}}, max_errors: 0.0}}
  stop_after: 3s
space: {{threads: {{ordinal: [1, 2]}}, batch: {{ordinal: [16, 256]}}, ubatch: {{ordinal: [16, 256]}}}}
forbid: ["ubatch > batch"]
price: 0.02 * threads
objective: minimize usd_per_mtok
constraints: ["p99_ttft <= {limit_ms}"]
budget: {{cost: 0.05 USD, max_trials: {trials}}}
trial: {{grace: 5s}}
"""
PRINTED = {
    "threads": r"threadpool init, n_threads = (\d+)",
    "batch": r"llama_context: n_batch +=\s*(\d+)",
    "ubatch": r"llama_context: n_ubatch +=\s*(\d+)",
}
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not READY.exists(), reason="make serving installs llama.cpp")]


class Study:
    """The search over llama.cpp's settings in a folder of its own."""

    def __init__(self, folder: Path, limit_ms: float, trials: int) -> None:
        self._folder, self._limit_ms = folder, limit_ms
        for name, script in (("model.py", MODEL), ("server.py", SERVER)):
            (folder / name).write_text(script)
        job = JOB.format(python=PYTHON, folder=folder, limit_ms=limit_ms, trials=trials)
        (folder / "job.yaml").write_text(job)
        subprocess.run([str(PYTHON), "model.py"], cwd=folder, check=True, timeout=300.0)
        self.best = json.loads(self.lynceus("run", "job.yaml", "-y", "-o", "json"))["best"]
        self.trials: list[dict[str, Any]] = json.loads(self.lynceus("trials", "llamacpp", "-o", "json"))

    def lynceus(self, *arguments: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "LYNCEUS_STORAGE"}
        command = [sys.executable, "-m", "lynceus.cli", *arguments]
        ended = subprocess.run(
            command, cwd=self._folder, env=environment, capture_output=True, text=True, check=False, timeout=1500.0
        )
        assert ended.returncode in (0, 3), ended.stderr
        return ended.stdout

    def check(self) -> None:
        """Every trial measured a llama.cpp with the settings of its configuration, and the limit was held against its p99."""
        assert self.trials
        for trial in self.trials:
            assert trial["state"] == "COMPLETE", trial["detail"]
            metrics = trial["metrics"]
            assert metrics["error_share"] == 0.0
            assert 0.0 < metrics["p50_ttft"] <= metrics["p99_ttft"]
            assert metrics["total_throughput"] > metrics["throughput"] > 0.0, "llama.cpp counts the tokens of prompts"
            assert trial["keeps_constraints"] == (metrics["p99_ttft"] <= self._limit_ms)
            assert self._settings(trial["number"]) == trial["params"]

    def _settings(self, number: int) -> dict[str, int]:
        """The settings that llama.cpp itself printed in a trial."""
        printed = self.lynceus("logs", "llamacpp", str(number), "--stream", "stderr")
        found = {name: re.search(pattern, printed) for name, pattern in PRINTED.items()}
        return {name: int(match[1]) for name, match in found.items() if match}


def test_llama_cpp_is_tuned_under_a_p99_limit(tmp_path: Path) -> None:
    study = Study(tmp_path, limit_ms=1000.0, trials=6)
    study.check()
    kept = [trial["params"] for trial in study.trials if trial["keeps_constraints"]]
    assert study.best["params"] in kept if kept else study.best is None
    assert all(trial["params"]["ubatch"] <= trial["params"]["batch"] for trial in study.trials)


def test_llama_cpp_cannot_keep_an_impossible_limit(tmp_path: Path) -> None:
    study = Study(tmp_path, limit_ms=0.001, trials=2)
    study.check()
    assert study.best is None
