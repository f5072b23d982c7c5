"""The calibration experiment: the truth against sampling, paired runs, and what the default policy claims."""

import math

import numpy as np
import pytest

from lynceus.errors import InputError
from lynceus.policy.presets import preset
from lynceus.problem.billing import Billing
from lynceus_lab.noisy_claims import NoiseLaw, NoisyCase, cases, run_case, true_times
from lynceus_lab.noisy_claims_table import lines, markdown, paired, read, write

POLICY = preset("lynceus")


@pytest.mark.parametrize("law", [NoiseLaw(0.0), NoiseLaw(0.1), NoiseLaw(0.25, 0.05)])
def test_the_truth_is_what_sampling_finds(law: NoiseLaw) -> None:
    problem, _ = true_times("made/valley")
    factors = np.array([law.draw(3, 0, repetition) for repetition in range(4000)])
    assert law.mean_cost(problem, 5, 100.0) == pytest.approx(problem.cost(5, 100.0 * factors.mean()), rel=0.02)
    for most in (0.9, 1.0, 1.2, 2.0):
        assert law.chance(most) == pytest.approx((factors <= most).mean(), abs=0.02)


def test_the_mean_cost_knows_the_billing() -> None:
    problem, _ = true_times("made/valley")
    whole_minutes = type(problem)(problem.space, billing=Billing(granularity_s=60.0))
    law = NoiseLaw(0.3)
    sampled = np.mean([whole_minutes.cost(5, 100.0 * law.draw(1, 0, each)) for each in range(4000)])
    assert law.mean_cost(whole_minutes, 5, 100.0) == pytest.approx(sampled, rel=0.03)


def test_factors_depend_on_seed_configuration_and_repetition_only() -> None:
    law = NoiseLaw(0.2)
    assert law.draw(1, 2, 0) == law.draw(1, 2, 0)
    assert len({law.draw(1, 2, 0), law.draw(2, 2, 0), law.draw(1, 3, 0), law.draw(1, 2, 1)}) == 4


def test_all_combinations_are_tried_once() -> None:
    found = cases(["a", "b"], (0.0, 0.1), (0.0, 0.05), (0.0, 0.95))
    assert len(found) == len(set(found)) == 2 * 2 * 2 * 2
    assert [case for case in found if case.law.spread == 0 and case.law.outliers > 0]
    assert {case.confidence for case in found} == {None, 0.95}


def test_without_noise_every_claim_is_true() -> None:
    claimed = run_case(NoisyCase("made/steps", NoiseLaw(0.0)), POLICY, seed=1)
    assert claimed.claimed_usd == pytest.approx(claimed.true_usd, rel=0.05)
    assert claimed.low_usd == pytest.approx(claimed.true_usd, rel=0.01)
    assert claimed.stated > 0.97
    assert (claimed.kept, claimed.repeats) == (1.0, 1)
    assert claimed.regret < 1.2


def test_runs_that_are_slow_for_a_reason_of_their_own_are_expected_without_noise_too() -> None:
    """All but one in twenty runs are equal, so the few that were made look free of noise."""
    made = [run_case(NoisyCase("made/valley", NoiseLaw(0.0, 0.05)), POLICY, seed) for seed in range(3)]
    (line,) = lines(made)
    assert 0.92 < line.claimed[0] < 1.05
    assert line.covered > 0.5


def test_a_table_of_claims_is_written_and_read(tmp_path) -> None:
    made = [run_case(NoisyCase("made/valley", NoiseLaw(0.25)), POLICY, seed) for seed in range(2)]
    write(made, tmp_path / "claims.jsonl")
    again = read(tmp_path / "claims.jsonl")
    assert again == made
    (line,) = lines(again, made)
    assert line.money == pytest.approx(1.0)
    assert line.claimed[0] == pytest.approx(
        math.exp(np.mean([math.log(one.claimed_usd / one.true_usd) for one in made]))
    )
    text = markdown([line], [line]).splitlines()[2]
    assert text.startswith("| 25% | 0% | plain | 2 | ")
    assert f"({line.claimed[0]:.2f})" in text
    assert f"{100 * (line.stated - line.kept):+.1f} ± " in text
    assert text.split("|")[9] == " 1.00 "
    assert paired(again, made[1:]) == made[1:]
    alone = markdown(lines(again)).splitlines()[2]
    assert alone.split("|")[9] == " – "
    assert "(" not in alone
    (tmp_path / "wrong").write_text("{}\n")
    with pytest.raises(InputError, match="no file of claims"):
        read(tmp_path / "wrong")
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "missing")


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.05, 0.1, 0.25])
def test_claims_are_calibrated_on_a_made_surface(spread: float) -> None:
    made = [run_case(NoisyCase("made/valley", NoiseLaw(spread)), POLICY, seed) for seed in range(30)]
    (line,) = lines(made)
    assert 0.93 < line.claimed[0] < 1.07
    # Over many problems the errors of the chance cancel (docs/policy.md); on this one it is overstated by 15 points at 25 %.
    assert abs(line.stated - line.kept) < (0.16 if spread > 0.2 else 0.08)
    assert line.covered > 0.6
