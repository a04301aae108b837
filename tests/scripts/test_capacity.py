"""The model of `benchmarks/capacity.py`: what it makes of runs that follow it exactly, and its limits."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.paths import ROOT, load_file

CORES = 2
capacity = load_file(ROOT / "benchmarks" / "capacity.py")


def a_model(**changes: Any) -> Any:
    values = {
        "cpu": capacity.PerStep(0.2, 0.4),
        "think_cpu": 0.02,
        "judge_share": 0.1,
        "others_cpu": capacity.PerStep(0.0, 0.02),
        "wait": capacity.PerStep(0.3, 0.15),
        "memory_mb": 250.0,
        "slot_mb": 180.0,
        "disk_kb": capacity.PerStep(30.0, 90.0),
        "participant_kb": capacity.PerStep(10.0, 110.0),
        "site_kb": capacity.PerStep(20.0, 10.0),
    }
    return capacity.Model(**(values | changes))


def a_run(model: Any, slots: int, think_s: float, steps: int = 6) -> Any:
    """A run that goes exactly as the model says."""
    prediction = model.predict(slots, think_s, steps, CORES, are_others_here=True)
    per_task = {name: getattr(model, name).of(steps) for name in ("disk_kb", "participant_kb", "site_kb")}
    return capacity.Run(
        CORES,
        slots,
        think_s,
        steps,
        prediction.held_s,
        prediction.cpu_s,
        prediction.judge_cpu_s,
        others_cpu_s=model.others_cpu.of(steps),
        memory_mb=prediction.memory_mb,
        **per_task,
    )


def test_the_model_is_found_again_in_runs_that_follow_it() -> None:
    true = a_model()
    runs = [a_run(true, slots, think_s) for slots in (1, 2, 4) for think_s in (0.0, 2.0, 8.0)]
    result = capacity.fit(runs, a_run(true, 1, 0.0, steps=1))
    eight = [a_run(true, 8, think_s) for think_s in (0.0, 2.0, 8.0)]
    assert max(abs(off) for run in eight for off in capacity.error(result, run).values()) < 0.01
    assert result.predict(20, 8.0, 15, 8).held_s == pytest.approx(true.predict(20, 8.0, 15, 8).held_s, rel=0.01)


@pytest.mark.parametrize(("cores", "expected"), [(2, 8.0), (1, 8.0), (0.5, 11.0)])
def test_a_task_alone_takes_its_cpu_time_and_its_waiting(cores: float, expected: float) -> None:
    assert capacity.held_s(3.0, 5.0, 1, cores) == pytest.approx(expected)


@given(st.floats(0.1, 10), st.floats(0, 100), st.integers(1, 64), st.integers(1, 32))
def test_no_more_is_done_than_the_cores_and_the_slots_can_do(
    cpu_s: float, waiting_s: float, slots: int, cores: int
) -> None:
    tasks_a_second = slots / capacity.held_s(cpu_s, waiting_s, slots, cores)
    assert tasks_a_second <= cores / cpu_s * (1 + 1e-9)
    assert tasks_a_second <= slots / (cpu_s + waiting_s) * (1 + 1e-9)


def test_a_machine_carries_what_its_memory_holds() -> None:
    load = capacity.best_load(a_model(cpu=capacity.PerStep(0, 0.001), think_cpu=0.0), 8, 4, 8.0, 15)
    assert (load.slots, load.judges) == ((0.8 * 4000 - 250) // 180, 1)


def test_a_machine_carries_what_its_cores_do() -> None:
    model = a_model(slot_mb=0.0)
    used = [
        slots * prediction.cpu_s / prediction.held_s
        for load in [capacity.best_load(model, CORES, 64, 8.0, 15)]
        for slots in (load.slots, load.slots + 1)
        for prediction in [model.predict(slots, 8.0, 15, CORES)]
    ]
    assert used[0] <= 0.8 * CORES < used[1]


def test_more_tasks_than_one_judge_plays_take_several_judges() -> None:
    load = capacity.best_load(a_model(slot_mb=1.0, think_cpu=0.0), 32, 64, 20.0, 15)
    assert load.slots > 64
    assert load.judges >= load.slots / 64


def test_the_hours_of_a_run_are_those_of_its_tasks_in_all_slots() -> None:
    assert capacity.Load(slots=4, judges=1, held_s=120.0).machine_hours(300) == pytest.approx(2.5)
