import optuna
import optunahub

package = optunahub.load_module("samplers/lynceus")
sampler = package.LynceusSampler(price="0.1 * nodes", objective="cost", constraints=["runtime <= 20m"], budget="1 USD")
study = optuna.create_study(sampler=sampler, pruner=package.TimeoutPruner())


def run(trial: optuna.Trial) -> float:
    """The running time of a job in seconds; a real one would run it, and stop it at its timeout."""
    seconds = 3000 / trial.suggest_int("nodes", 1, 8) + 120
    return min(seconds, trial.user_attrs.get("lynceus:timeout_s", seconds))


study.optimize(sampler.objective_of(run), callbacks=[sampler.stop_when_over])
print(study.best_params, round(study.best_value, 3), sampler.stop_reason(study))
