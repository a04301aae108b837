"""A model of the resources that an assessment needs, fitted to measured runs. Pure; docs/scaling.md explains it."""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

# The usable share of a machine. Beyond it, waiting for the processor makes steps longer, and a large page may not fit
# into memory.
USED_CPU, USED_MEMORY = 0.8, 0.8
# A judge is one thread, and plays at most this many tasks at once (`max_parallel`); several judges play shards.
JUDGE_CPU, JUDGE_SLOTS = 0.7, 64
_MAX_WAIT_S, _WAIT_STEP_S = 2.0, 0.01


@dataclass(frozen=True)
class Run:
    """A measured run: `slots` tasks at once, each of `steps` steps for which the participant thinks `think_s`.

    `memory_mb` is of the judge with its browsers, the rest is per task: how long it held its slot, the CPU time of
    judge and browsers, how much of that was the judge's own process, the CPU time of what else the run needs on this
    machine (participant, site), and what it wrote and sent. `cores` are the machine's, minus what other programs
    used meanwhile.
    """

    cores: float
    slots: int
    think_s: float
    steps: int
    held_s: float
    cpu_s: float
    judge_cpu_s: float
    others_cpu_s: float
    memory_mb: float
    disk_kb: float
    participant_kb: float
    site_kb: float


@dataclass(frozen=True)
class PerStep:
    """A quantity that each task and each of its steps adds to."""

    task: float
    step: float

    def of(self, steps: int) -> float:
        return self.task + self.step * steps


@dataclass(frozen=True)
class Model:
    """`cpu` is without what an open page takes while the participant thinks (`think_cpu`, in CPU seconds a second)."""

    cpu: PerStep
    think_cpu: float
    judge_share: float
    others_cpu: PerStep
    wait: PerStep
    memory_mb: float
    slot_mb: float
    disk_kb: PerStep
    participant_kb: PerStep
    site_kb: PerStep

    def predict(
        self, slots: int, think_s: float, steps: int, cores: float, *, are_others_here: bool = False
    ) -> "Prediction":
        """The resources that a run needs. `are_others_here`: participant and site run on the same machine."""
        waiting = self.wait.of(steps) + think_s * steps
        others = self.others_cpu.of(steps) if are_others_here else 0.0
        cpu = self.cpu.of(steps) + self.think_cpu * think_s * steps
        held_time_s = held_s(cpu + others, waiting, slots, cores)
        return Prediction(held_time_s, cpu, cpu * self.judge_share, self.memory_mb + self.slot_mb * slots)


@dataclass(frozen=True)
class Prediction:
    """As in `Run`."""

    held_s: float
    cpu_s: float
    judge_cpu_s: float
    memory_mb: float


@dataclass(frozen=True)
class Load:
    """The best use of a machine: the number of `slots` and judge processes, and how long a task holds its slot."""

    slots: int
    judges: int
    held_s: float

    def machine_hours(self, tasks: int) -> float:
        return tasks * self.held_s / self.slots / 3600


def held_s(cpu_s: float, waiting_s: float, slots: int, cores: float) -> float:
    """How long each of `slots` concurrent tasks holds its slot, given its CPU time and waiting time.

    Mean value analysis (Reiser and Lavenberg, 1980): a task that arrives at the processor finds the average queue of a
    system without it. Several cores are one of that many times the speed, and a delay for what one task alone cannot
    use of them (Seidmann et al., 1987).
    """
    fast, delay = cpu_s / cores, max(0.0, cpu_s * (cores - 1) / cores)
    queue = here = 0.0
    for number in range(1, slots + 1):
        here = fast * (1 + queue)
        queue = number * here / (here + delay + waiting_s)
    return here + delay + waiting_s


def fit(runs: Sequence[Run], short: Run) -> Model:
    """The model of `runs`, all of the same number of steps, and of one run with tasks of a single step."""
    steps = runs[0].steps

    def per_step(value: Callable[[Run], float]) -> PerStep:
        one = max(0.0, (fmean(map(value, runs)) - value(short)) / (steps - short.steps))
        return PerStep(max(0.0, value(short) - one * short.steps), one)

    slope = linear_regression([run.think_s * steps for run in runs], [run.cpu_s for run in runs]).slope
    think_cpu = max(0.0, slope)
    memory = linear_regression([run.slots for run in runs], [run.memory_mb for run in runs])
    parts = {
        "cpu": per_step(lambda run: run.cpu_s - think_cpu * run.think_s * run.steps),
        "others_cpu": per_step(lambda run: run.others_cpu_s),
        "disk_kb": per_step(lambda run: run.disk_kb),
        "participant_kb": per_step(lambda run: run.participant_kb),
        "site_kb": per_step(lambda run: run.site_kb),
    }
    judge_share = sum(run.judge_cpu_s for run in runs) / sum(run.cpu_s for run in runs)
    # The waiting of a task with one step beyond CPU and thinking, for its start and that step.
    both = short.held_s - short.cpu_s - short.others_cpu_s - short.think_s

    def with_wait(step_s: float) -> Model:
        wait = PerStep(max(0.0, both - step_s), step_s)
        rest = {"memory_mb": memory.intercept, "slot_mb": memory.slope, "judge_share": judge_share}
        return Model(wait=wait, think_cpu=think_cpu, **parts, **rest)

    def distance(model: Model) -> float:
        return sum(error(model, run)["time"] ** 2 for run in runs)

    waits = [_WAIT_STEP_S * number for number in range(round(_MAX_WAIT_S / _WAIT_STEP_S))]
    return min((with_wait(wait) for wait in waits), key=distance)


def error(model: Model, run: Run) -> dict[str, float]:
    """The relative error of the model for a measured run."""
    prediction = model.predict(run.slots, run.think_s, run.steps, run.cores, are_others_here=True)
    disk = model.disk_kb.of(run.steps)
    pairs = {
        "time": (prediction.held_s, run.held_s),
        "CPU": (prediction.cpu_s, run.cpu_s),
        "memory": (prediction.memory_mb, run.memory_mb),
        "disk": (disk, run.disk_kb),
    }
    return {name: predicted / actual - 1 for name, (predicted, actual) in pairs.items()}


def best_load(model: Model, cores: int, memory_gb: float, think_s: float, steps: int) -> Load:
    """The most slots (at least 1) that take no more than `USED_CPU` of its cores and `USED_MEMORY` of the memory."""

    def load_of(slots: int) -> tuple[Load, bool]:
        prediction = model.predict(slots, think_s, steps, cores)
        judges = math.ceil(max(slots * prediction.judge_cpu_s / prediction.held_s / JUDGE_CPU, slots / JUDGE_SLOTS))
        memory_mb = judges * model.memory_mb + slots * model.slot_mb
        used = slots * prediction.cpu_s / prediction.held_s
        fits = used <= USED_CPU * cores and memory_mb <= USED_MEMORY * 1000 * memory_gb
        return Load(slots, judges, prediction.held_s), fits

    most = bisect_left(range(1, JUDGE_SLOTS * cores + 1), 1, key=lambda slots: not load_of(slots)[1])
    return load_of(max(1, most))[0]
