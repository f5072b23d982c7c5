"""The batched look-ahead against the recursive text of the papers, written here as literally as it can be."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from lynceus.acquisition.gains import ConstrainedImprovement
from lynceus.choose import LocalSearch, Quadrature, RandomRows, Rollout, TopRows
from lynceus.choose.rollout import _BELIEFS_PER_S
from lynceus.distribution import LogNormal, Normal
from lynceus.history import End, Observation, Order, Outcome, Plan, Reason
from lynceus.parts import Surrogate
from lynceus.policy import preset
from lynceus.problem import Budget, Tariff
from lynceus.situation import Belief, BoolArray, FloatArray, Form, IntArray, Situation
from lynceus.surrogate.gaussian_process import GaussianProcess
from lynceus.surrogate.trees import Trees
from lynceus.testing import SmallJob, small_job

SEED = 4


@dataclass(frozen=True)
class Believing:
    """The same model without its fast path, so that the generic one is taken."""

    trees: Trees

    def __call__(self, situation: Situation, seed: int) -> Belief:
        return self.trees(situation, seed)


@dataclass(frozen=True)
class Only:
    """A shortlist of one row: its score becomes the plan's."""

    row: int

    def __call__(self, situation: Situation, score: FloatArray, candidates: BoolArray, seed: int) -> IntArray:
        return np.array([self.row])


# The text ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """value(S, x, d) and its parts, one situation and one row at a time, with its own arithmetic for money."""

    rollout: Rollout
    surrogate: Surrogate

    def value(self, situation: Situation, belief: Belief, row: int, depth: int) -> tuple[float, float]:
        worth = float(self.rollout.gain(belief, situation)[0, row])
        cost = self.expected_charge(situation, belief, row)
        if depth == 0:
            return worth, cost
        for outcome, weight in self.outcomes(belief, row):
            follower = self.after(situation, belief, row, outcome)
            if follower is None:
                continue
            refitted = self.surrogate(follower, SEED)
            best = self.best_row(follower, refitted)
            if best is None:
                continue
            u, c = self.value(follower, refitted, best, depth - 1)
            worth += self.rollout.discount * weight * u
            cost += self.rollout.discount * weight * c
        return worth, cost

    def outcomes(self, belief: Belief, row: int) -> list[tuple[tuple[float, ...], float]]:
        nodes, weights = np.polynomial.hermite.hermgauss(self.rollout.quadrature.points)
        mean, std = belief.mean[0, row], belief.std[0, row]
        found = []
        for index in itertools.product(range(len(nodes)), repeat=len(mean)):
            told = tuple(float(m + math.sqrt(2) * s * nodes[i]) for m, s, i in zip(mean, std, index, strict=True))
            found.append((told, float(np.prod([weights[i] / math.sqrt(math.pi) for i in index]))))
        return found

    def after(self, situation: Situation, belief: Belief, row: int, told: tuple[float, ...]) -> Situation | None:
        problem = situation.problem
        price = float(problem.price[row])
        if belief.form == "cost":
            if told[0] <= 0:
                return None
            cost, seconds = told[0], max(float(problem.tariff.seconds_for(np.array(told[0]), np.array(price))), 0.0)
        else:
            seconds = math.exp(told[0])
            cost = problem.tariff.charge(seconds, price)
        charged, value = cost, self.goal_value(situation, belief, row, cost, seconds, told)
        if self.rollout.charge == "capped":
            cap = self.cap_s(situation, row)
            charged = min(cost, problem.tariff.charge(max(cap, 0.0), price))
            if seconds > cap:
                value = math.nan
        charged = max(charged - self.saving(situation, row), 0.0)
        left = float(situation.left[0]) - charged
        if left <= 0:
            return None
        return replace(
            situation,
            left=np.array([left]),
            best=np.fmin(situation.best, value),
            current=np.array([row]),
            imagined_rows=np.concatenate([situation.imagined_rows, [[row]]], axis=1),
            imagined_told=np.concatenate([situation.imagined_told, [[told]]], axis=1),
        )

    def goal_value(
        self, situation: Situation, belief: Belief, row: int, cost: float, seconds: float, told: tuple[float, ...]
    ) -> float:
        problem = situation.problem
        metrics = dict(zip(problem.metrics, told[1:], strict=True))
        for limit in problem.limits:
            if limit.metric == "time":
                # A model of cost sees a deadline as the cost of a run that just keeps it.
                kept = (
                    cost <= problem.tariff.charge(limit.bound, float(problem.price[row]))
                    if belief.form == "cost"
                    else seconds <= limit.bound
                )
            else:
                kept = limit.holds(metrics[limit.metric])
            if not kept:
                return math.nan
        if problem.kind == "metric":
            return -metrics[problem.goal.metric] if problem.goal.maximise else metrics[problem.goal.metric]
        return cost if problem.kind == "cost" else seconds

    def best_row(self, situation: Situation, belief: Belief) -> int | None:
        """argmax of the gain over V = {x open: P(C(x) ≤ B) ≥ β}."""
        gain = self.rollout.gain(belief, situation)[0]
        rows = self.candidates(situation, belief)
        return max(rows, key=lambda row: gain[row]) if rows else None

    def candidates(self, situation: Situation, belief: Belief) -> list[int]:
        problem, rows = situation.problem, []
        for row in np.flatnonzero(situation.open).tolist():
            if row in situation.imagined_rows[0]:
                continue
            upper = belief.mean[0, row, 0] + 2.3263478740408408 * belief.std[0, row, 0]
            if belief.form == "log time":
                upper = problem.tariff.charge(math.exp(upper), float(problem.price[row]))
            if upper - self.saving(situation, row) <= situation.left[0]:
                rows.append(row)
        return rows

    def saving(self, situation: Situation, row: int) -> float:
        problem = situation.problem
        current = int(situation.current[0])
        if not problem.tariff.warm or current < 0:
            return 0.0
        same = all(
            problem.space.column(name)[row] == problem.space.column(name)[current] for name in problem.tariff.warm
        )
        return problem.tariff.boot_s * float(problem.price[row]) + problem.tariff.fee_usd if same else 0.0

    def cap_s(self, situation: Situation, row: int) -> float:
        problem, best = situation.problem, float(situation.best[0])
        cap = problem.deadline_s
        if not math.isnan(best) and problem.kind == "cost":
            cap = min(cap, float(problem.tariff.seconds_for(np.array(best), problem.price[row])))
        if not math.isnan(best) and problem.kind == "time":
            cap = min(cap, best)
        return cap

    def expected_charge(self, situation: Situation, belief: Belief, row: int) -> float:
        """C = setup + E[charge], or E[min(charge, cap)]."""
        tariff, price = situation.problem.tariff, float(situation.problem.price[row])
        mean, std = float(belief.mean[0, row, 0]), float(belief.std[0, row, 0])
        cap = max(self.cap_s(situation, row), 0.0) if self.rollout.charge == "capped" else math.inf
        if belief.form == "cost":
            usd = (
                Normal(mean, std).expectation()
                if math.isinf(cap)
                else Normal(mean, std).capped_mean(tariff.charge(cap, price))
            )
            usd = max(float(usd), 0.0)
        else:
            run, floor = LogNormal(mean, std), tariff.minimum_s - tariff.boot_s
            seconds = float(run.expectation() if math.isinf(cap) else run.capped_mean(max(cap, floor)))
            seconds += float(run.put(floor)) if floor > 0 else 0.0
            usd = price * (seconds + tariff.boot_s + tariff.granularity_s / 2) + tariff.fee_usd
        return max(usd - self.saving(situation, row), 0.0)


# The comparison ------------------------------------------------------------------------------------------------------------

BOOTED = Tariff(minimum_s=120.0, boot_s=60.0, fee_usd=0.002)
WARM = Tariff(boot_s=90.0, fee_usd=0.004, warm=("vm",))
JOBS = {
    "deadline": small_job("runtime <= 30m"),
    "nothing feasible yet": small_job("runtime <= 12m"),
    "no limit": small_job(),
    "tight budget": small_job("runtime <= 30m", budget=Budget(usd=4.2)),
    "booted": small_job("runtime <= 30m", budget=Budget(usd=5.5), tariff=BOOTED),
    "warm": small_job("runtime <= 30m", budget=Budget(usd=5.5), tariff=WARM),
    "warm and tight": small_job("runtime <= 30m", budget=Budget(usd=4.27), tariff=WARM),
    "two metrics": small_job("runtime <= 30m", "accuracy >= 0.88", budget=Budget(usd=6.0)),
    "time": small_job(goal="time", budget=Budget(usd=5.0)),
    "accuracy": small_job("runtime <= 30m", goal="maximize accuracy", budget=Budget(usd=5.0)),
}
MODELS = {"cost": Trees(), "log time": Trees(target="log time"), "total": Trees(spread="total", trees=6)}
ROUGH = {"three trees": Trees(trees=3, zero_spread=10.0)}
"""σ = 10 μ where all agree: outcomes below zero must be skipped."""


def situation_of(job: SmallJob, runs: int = 8) -> Situation:
    return Situation.present(job.problem, job.finished(job.order_of_runs[:runs]))


def planned(rollout: Rollout, situation: Situation, surrogate: Surrogate) -> Plan:
    plan = rollout(situation, surrogate, SEED)
    assert plan is not None
    return plan


CASES = [
    (name, model)
    for name, model in itertools.product(JOBS, MODELS)
    if model != "total" or not JOBS[name].problem.metrics  # nine outcomes per run make the text slow
] + [("deadline", "three trees"), ("no limit", "three trees")]


@pytest.mark.parametrize("charge", ["full", "capped"])
@pytest.mark.parametrize(("name", "model"), CASES)
def test_levels_in_batches_are_the_recursive_text(name: str, model: str, charge: str) -> None:
    situation, trees = situation_of(JOBS[name]), (MODELS | ROUGH)[model]
    for depth in (0, 1, 2):
        rollout = Rollout(ConstrainedImprovement(), depth=depth, charge=charge)  # type: ignore[arg-type]
        text = Text(rollout, trees)
        belief = trees(situation, SEED)
        rows = text.candidates(situation, belief)
        assert rows, "the case must have candidates, or it shows nothing"
        if depth == 2:
            rows = rows[:2] if situation.targets == 1 else rows[:1]
        values = {row: text.value(situation, belief, row, depth) for row in rows}
        scores = {row: worth / max(cost, 1e-12) for row, (worth, cost) in values.items()}
        if depth < 2:
            for surrogate in (trees, Believing(trees)):
                plan = planned(rollout, situation, surrogate)
                assert plan.row == max(scores, key=lambda row: scores[row])
                assert plan.score == pytest.approx(max(scores.values()), rel=1e-9, abs=1e-15)
        if depth > 0:
            for row, surrogate in itertools.product(rows, (trees, Believing(trees))):
                plan = planned(replace(rollout, shortlist=Only(row)), situation, surrogate)
                assert plan.score == pytest.approx(scores[row], rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("target", ["cost", "log time"])
@pytest.mark.parametrize("name", ["deadline", "warm", "two metrics", "nothing feasible yet"])
def test_a_gaussian_process_looks_ahead_by_the_same_text(name: str, target: Form) -> None:
    """Conditioned on a batch of imagined runs at once, or on one at a time: the same path."""
    process, situation = GaussianProcess(target=target), situation_of(JOBS[name])
    rollout = Rollout(ConstrainedImprovement(), depth=1, charge="capped")
    text, belief = Text(rollout, process), process(situation, SEED)
    for row in text.candidates(situation, belief)[:2]:
        worth, cost = text.value(situation, belief, row, 1)
        plan = planned(replace(rollout, shortlist=Only(row)), situation, process)
        assert plan.score == pytest.approx(worth / cost, rel=1e-9)


def imagined(rollout: Rollout, situation: Situation, trees: Trees, levels: int) -> Situation:
    """All situations some runs ahead, three outcomes of each candidate (or of the best row there)."""
    for level in range(levels):
        belief = trees(situation, SEED)
        if level == 0:
            rows, at = np.flatnonzero(situation.open), np.zeros(int(situation.open.sum()), dtype=int)
        else:
            rows, at = rollout._pick_by_belief(situation, trees, SEED).row, np.arange(len(situation))
            situation, rows, at = situation.part(rows >= 0), rows[rows >= 0], at[rows >= 0]
        situation, _, _ = rollout._children(situation, belief.form, rows, (belief.mean[at, rows], belief.std[at, rows]))
    return situation


@pytest.mark.parametrize("name", list(JOBS))
def test_the_fused_and_the_generic_path_pick_alike(name: str) -> None:
    compared = 0
    for runs, levels, exact, trees in itertools.product((3, 8), (1, 2), (False, True), MODELS.values()):
        rollout = Rollout(ConstrainedImprovement(exact=exact))
        children = imagined(rollout, situation_of(JOBS[name], runs), trees, levels)
        fused = trees.pick(children, rollout.gain, rollout.sure, SEED)
        if fused is None or not len(children):
            continue
        generic = rollout._pick_by_belief(children, trees, SEED)
        found = generic.row >= 0
        assert np.array_equal(fused.row >= 0, found)
        np.testing.assert_allclose(fused.gain[found], generic.gain[found], rtol=1e-9, atol=1e-15)
        # Two rows may be equally good up to the last bit of a sum; then either is right.
        same = fused.row == generic.row
        gain = rollout.gain(trees(children, SEED), children)
        each = np.flatnonzero(found & ~same)
        np.testing.assert_allclose(gain[each, fused.row[each]], gain[each, generic.row[each]], rtol=1e-12)
        assert same.mean() > 0.8
        np.testing.assert_allclose(fused.mean[found & same], generic.mean[found & same], rtol=1e-9)
        np.testing.assert_allclose(fused.std[found & same], generic.std[found & same], rtol=1e-9, atol=1e-12)
        compared += len(children)
    assert compared > 500 or JOBS[name].problem.kind != "cost" or JOBS[name].problem.tariff.warm


def test_the_fast_path_is_taken() -> None:
    """Otherwise the comparison above compares a thing with itself."""
    job = JOBS["deadline"]
    assert MODELS["cost"].pick(situation_of(job), ConstrainedImprovement(), 0.99, SEED) is not None
    assert MODELS["log time"].pick(situation_of(job), ConstrainedImprovement(), 0.99, SEED) is not None


# Settings ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shortlist", [TopRows(24), RandomRows(24), LocalSearch(24), TopRows(1000)])
def test_a_shortlist_of_everything_is_no_shortlist(shortlist: TopRows | RandomRows | LocalSearch) -> None:
    situation = situation_of(JOBS["deadline"])
    rollout = Rollout(ConstrainedImprovement(), depth=1)
    whole = planned(rollout, situation, Trees())
    assert planned(replace(rollout, shortlist=shortlist), situation, Trees()) == whole


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("surrogate", [Trees(), Believing(Trees())], ids=["fused", "generic"])
def test_imagined_money_may_run_out(surrogate: Surrogate, depth: int) -> None:
    """No outcome leaves money for a second run: the path ends after the first one."""
    job = JOBS["deadline"]
    situation = replace(situation_of(job), left=np.array([1e-6]))
    free = Rollout(ConstrainedImprovement(), sure=0.0)
    plan = planned(replace(free, depth=depth), situation, surrogate)
    assert plan.path == ()
    assert plan.score == pytest.approx(planned(free, situation, surrogate).score)


def test_nothing_affordable_is_no_plan() -> None:
    situation = replace(situation_of(JOBS["deadline"]), left=np.array([1e-6]))
    assert Rollout(ConstrainedImprovement(), depth=1)(situation, Trees(), SEED) is None


def test_sure_zero_asks_nothing_of_the_money() -> None:
    situation = replace(situation_of(JOBS["deadline"]), left=np.array([0.3]))
    for surrogate in (Trees(), Believing(Trees())):
        careless = planned(Rollout(ConstrainedImprovement(), depth=1, sure=0.0), situation, surrogate)
        assert str(int(situation.open.sum())) in careless.why
        assert careless.score == pytest.approx(
            planned(Rollout(ConstrainedImprovement(), depth=1, sure=0.0), situation, Trees()).score, rel=1e-9
        )


def test_discount_zero_is_no_look_ahead() -> None:
    situation = situation_of(JOBS["deadline"])
    near = planned(Rollout(ConstrainedImprovement()), situation, Trees())
    far = planned(Rollout(ConstrainedImprovement(), depth=2, discount=0.0), situation, Trees())
    assert (far.row, far.score) == (near.row, near.score)


def test_real_money_forgets_what_was_imagined() -> None:
    """The published program tests imagined runs with the money really left, so its paths are longer."""
    job = JOBS["tight budget"]
    situation = replace(situation_of(job), left=np.array([0.62]))
    honest = planned(Rollout(ConstrainedImprovement(), depth=1, shortlist=Only(22)), situation, Trees())
    forgetful = planned(
        Rollout(ConstrainedImprovement(), depth=1, shortlist=Only(22), real_money=True), situation, Trees()
    )
    assert forgetful.score != honest.score


def test_a_plan_carries_what_the_chooser_thought() -> None:
    situation = situation_of(JOBS["deadline"])
    rollout = Rollout(ConstrainedImprovement(), depth=1)
    plan = planned(rollout, situation, Trees())
    belief = Trees()(situation, SEED)
    gain = ConstrainedImprovement()(belief, situation)[0]
    assert plan.gain == gain[plan.row]
    assert plan.best_gain == gain[situation.open].max()
    assert plan.best_rate == pytest.approx((gain / belief.mean[0, :, 0])[situation.open].max())
    assert plan.usd == pytest.approx(belief.mean[0, plan.row, 0])
    assert plan.probability == pytest.approx(
        Normal(belief.mean[0, plan.row, 0], belief.std[0, plan.row, 0]).cdf(1800.0 * situation.problem.price[plan.row])
    )
    assert plan.expected == belief.expected(plan.row)
    assert plan.stoppable
    assert ", 1 ahead, best of 16 affordable" in plan.why
    assert len(plan.path) == 1
    assert situation.open[plan.path[0]]
    assert plan.path[0] != plan.row


def test_an_allowance_of_time_shortens_the_look_ahead_and_then_drops_it() -> None:
    """Three outcomes of 24 rows: what a row costs, and so from how many the time allows to look ahead."""
    situation = situation_of(JOBS["deadline"])
    far = Rollout(ConstrainedImprovement(), depth=1)
    each_s = 3 * len(situation.open) / _BELIEFS_PER_S
    whole, near = planned(far, situation, Trees()), planned(replace(far, depth=0), situation, Trees())
    assert planned(replace(far, allowance_s=24 * each_s), situation, Trees()) == whole
    some = planned(replace(far, allowance_s=5.5 * each_s), situation, Trees())
    assert some == planned(replace(far, shortlist=TopRows(5)), situation, Trees())
    assert ", 1 ahead" in some.why
    assert planned(replace(far, allowance_s=3.5 * each_s), situation, Trees()) == near
    assert planned(replace(far, depth=2, allowance_s=5.5 * each_s), situation, Trees()) == near, (
        "2 ahead take 4 × as long"
    )


def test_before_the_first_result_runs_are_cheap() -> None:
    problem = JOBS["deadline"].problem
    plan = planned(Rollout(ConstrainedImprovement(), depth=2), Situation.present(problem, ()), Trees())
    assert problem.price[plan.row] == problem.price.min()


def test_after_failures_luck_is_a_way_on() -> None:
    problem = JOBS["deadline"].problem
    failed = Observation(
        Order(0, 0, 600.0, 1.0, Plan(0, why="cheap")), Outcome(End.FAILED, 1.0, 0.01, reason=Reason.OOM), None
    )
    plan = planned(Rollout(ConstrainedImprovement(), depth=2), Situation.present(problem, (failed,)), Trees())
    assert plan.why == "random, one of 23 left"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"depth": -1}, "look-ahead depth -1 is negative"),
        ({"discount": 1.5}, r"discount 1.5 must lie in \[0, 1\]"),
        ({"sure": 1.0}, r"sure 1.0 in \[0, 1\)"),
        ({"allowance_s": -1.0}, "allowance_s -1.0 must not be negative"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Rollout(ConstrainedImprovement(), **wrong)  # type: ignore[arg-type]


def test_a_planner_without_a_model_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a surrogate"):
        Rollout(ConstrainedImprovement())(situation_of(JOBS["deadline"]), None, SEED)


# Quadrature ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [1, 2, 3, 5])
def test_quadrature_is_exact_for_polynomials(points: int) -> None:
    mean, std = np.array([[2.0, -1.0]]), np.array([[0.5, 3.0]])
    nodes, weights = Quadrature(points)(mean, std)
    assert nodes.shape == (1, points**2, 2)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights * nodes[0, :, 0] * nodes[0, :, 1]).sum() == pytest.approx(-2.0)
    if points > 1:
        assert (weights * nodes[0, :, 1] ** 2).sum() == pytest.approx(1.0 + 9.0)


def test_the_authors_rule_is_theirs_with_three_points_only() -> None:
    with pytest.raises(ValueError, match="3 for the authors' rule"):
        Quadrature(5, "authors")
    nodes, weights = Quadrature(3, "authors")(np.array([[2.0]]), np.array([[1.0]]))
    assert weights.sum() == pytest.approx(math.sqrt(math.pi))
    assert nodes[0, 1, 0] == pytest.approx(2.0 / math.sqrt(math.pi))


def test_every_preset_with_a_planner_can_look_two_ahead() -> None:
    job = JOBS["two metrics"]
    for name in ("lynceus-2020", "authors-2020", "obol", "bo"):
        policy = preset(name, 2)
        assert policy.choose(situation_of(job, 12), policy.surrogate, SEED) is not None
