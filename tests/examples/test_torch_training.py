"""A training with PyTorch, in the environment of vLLM (`make serving`): learning rate × batch size, an accuracy limit, learning curves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TORCH = ROOT / ".venv-vllm" / "bin" / "python"
TRAIN = """\
import json, sys
import torch

torch.set_num_threads(1)
torch.manual_seed(0)
rate, batch, epochs = float(sys.argv[1]), int(sys.argv[2]), 12
inputs = torch.randn(3000, 16)
classes = (torch.tanh(inputs) @ torch.randn(16, 4)).argmax(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=rate)
for epoch in range(epochs):
    for rows in torch.randperm(2500).split(batch):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs[rows]), classes[rows]).backward()
        optimizer.step()
    accuracy = (model(inputs[2500:]).argmax(1) == classes[2500:]).float().mean().item()
    print("::lynceus " + json.dumps({"accuracy": accuracy, "progress": (epoch + 1) / epochs}), flush=True)
"""
JOB = f"""\
version: 1
name: torch
run: ["{TORCH}", train.py, "${{rate}}", "${{batch}}"]
space: {{rate: {{ordinal: [0.00001, 0.001, 0.1]}}, batch: {{ordinal: [16, 128]}}}}
price: 0.04
objective: cost
constraints: ["accuracy >= 0.8"]
budget: {{cost: 0.05 USD, max_trials: 6}}
trial: {{grace: 1s, max_duration: 120s, stop_hopeless: 0.05}}
"""


@pytest.mark.slow
@pytest.mark.skipif(not TORCH.exists(), reason="make serving installs PyTorch")
def test_a_training_with_pytorch_reaches_its_accuracy(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "job.yaml").write_text(JOB)
    environment = {name: value for name, value in os.environ.items() if name != "LYNCEUS_STORAGE"}

    def lynceus(*arguments: str) -> Any:
        command = [sys.executable, "-m", "lynceus.cli", *arguments, "-o", "json"]
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode in (0, 3), ended.stderr
        return json.loads(ended.stdout)

    found, rows = lynceus("run", "job.yaml", "-y"), lynceus("trials", "torch")
    assert found["best"]["params"]["rate"] == 0.1, rows
    assert all(row["state"] != "FAIL" for row in rows), [row["detail"] for row in rows]
    assert not any(row["keeps_constraints"] for row in rows if row["params"]["rate"] == 0.00001)
