"""Real vLLM on the CPU, with dummy weights of a tiny model, measured by Lynceus itself and by guidellm. `make serving` installs both."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from lynceus.executors.command import JobCommand
from lynceus.executors.local import LocalExecutor
from lynceus.executors.serve import LoadCommand, Ready, Requests, Serve
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.trial.outcome import End

ROOT = Path(__file__).parents[3]
VLLM, GUIDELLM = ROOT / ".venv-vllm" / "bin", ROOT / ".venv-guidellm" / "bin"
CONFIGURATION = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "vocab_size": 512,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
}
"""A Llama of 0.5 million parameters; vLLM fills in random weights (`--load-format dummy`)."""
pytestmark = pytest.mark.slow


def tiny_model(folder: Path) -> Path:
    """Configuration and tokenizer: one token per word."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIGURATION))
    words = ["<unk>", "<s>", "</s>", *(f"w{number}" for number in range(3, 512))]
    vocabulary = {word: number for number, word in enumerate(words)}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"}
    tokenizer = {"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, "model": model, "added_tokens": []}
    for absent in ("truncation", "padding", "normalizer", "post_processor", "decoder"):
        tokenizer[absent] = None
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": "<unk>",
        "bos_token": "<s>",
        "eos_token": "</s>",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def vllm(harness: ExecutorHarness, load: Requests | LoadCommand, stop_after_s: float | None) -> JobCommand:
    model = str(tiny_model(harness.folder / "tiny"))
    command = (str(VLLM / "vllm"), "serve", model, "--load-format", "dummy", "--port", "${port}")
    command += ("--max-model-len", "256", "--max-num-seqs", "8", "--enforce-eager")
    env = {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "OMP_NUM_THREADS": "1"}
    env["PATH"] = f"{VLLM}{os.pathsep}{os.environ['PATH']}"
    serve = Serve(Ready("/health", within_s=500.0), load, stop_after_s)
    return replace(harness.job(command, env), serve=serve, grace_s=10.0)


def harness_in(folder: Path) -> ExecutorHarness:
    return ExecutorHarness(lambda problem, job, root: LocalExecutor(problem, job, root), folder, patience_s=900.0)


@pytest.mark.skipif(not (VLLM / "vllm").exists(), reason="make serving installs vLLM for CPUs")
def test_vllm_is_measured_and_ended(tmp_path: Path) -> None:
    harness = harness_in(tmp_path)
    load = Requests(concurrency=2, prompt_tokens=8, output_tokens=8, extra={"ignore_eos": True}, max_errors=0.0)
    _, outcome = harness.run(vllm(harness, load, 10.0), harness.request(timeout_s=800.0))
    assert outcome.end is End.FINISHED, outcome
    assert outcome.metrics["throughput"] > 0
    assert outcome.metrics["error_share"] == 0.0
    assert outcome.metrics["p50_ttft"] <= outcome.metrics["p99_ttft"]
    assert outcome.metrics["total_throughput"] > outcome.metrics["throughput"], "vLLM counts the tokens of prompts"


@pytest.mark.skipif(not (GUIDELLM / "guidellm").exists(), reason="make serving installs guidellm")
@pytest.mark.skipif(not (VLLM / "vllm").exists(), reason="make serving installs vLLM for CPUs")
def test_guidellm_drives_the_load(tmp_path: Path) -> None:
    harness = harness_in(tmp_path)
    results, prompts = tmp_path / "benchmarks.json", tmp_path / "prompts.txt"
    prompts.write_text("one two three four five six seven eight\n" * 40)
    command = (
        *(str(GUIDELLM / "guidellm"), "run", "--disable-progress"),
        *("--backend", "kind=openai_http,target=${url},request_format=/v1/completions,max_tokens=8"),
        *("--profile", "kind=concurrent,streams=2"),
        *("--constraint", "kind=max_requests,count=20"),
        *("--data", f"kind=text_file,path={prompts}"),
        *("--tokenizer", f"kind=hf_auto,model={tmp_path / 'tiny'}"),
        *("--output", f"kind=json,path={results}"),
    )
    load = LoadCommand(command, str(results))
    _, outcome = harness.run(vllm(harness, load, None), harness.request(timeout_s=800.0))
    assert outcome.end is End.FINISHED, outcome
    assert outcome.metrics["throughput"] > 0
    assert outcome.metrics["p50_ttft"] <= outcome.metrics["p99_ttft"]
