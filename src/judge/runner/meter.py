"""Meters the participants' model calls in a run (`--meter`), with the meter of a plug-in; a run ends with its meter."""

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from judge.results.metering import LEDGER
from judge.results.run_record import withdraw_since
from judge.runner.launch import Child, Member
from judge.runner.options import resume_command
from judge.runner.plan import Plan
from shared.engines import ENGINES
from shared.errors import ConfigError, WabeError

METER = "meter"
# An attempt that ended in an error of its participant so shortly before the meter's end was noticed may have had none.
_NOTICED_S = 2.0
T = TypeVar("T")


def with_meter(plan: Plan, environ: Mapping[str, str]) -> tuple[Member, ...]:
    """The members of the run, with a meter if the plan has one."""
    config = plan.config
    if config is None or not config.meter or plan.store is None:
        return plan.members
    roles = [agent.role for agent in plan.scenario.participants]
    meter = ENGINES.load(METER).meter
    if meter is None:
        raise ConfigError(f"--meter: the engine {METER!r} has no meter", remedy="uninstall its package")
    members: tuple[Member, ...] = meter(
        plan.members,
        roles,
        ledger=plan.store.folder / LEDGER,
        environ=environ,
        one_slot=config.max_parallel == 1,
        prices=config.prices,
    )
    return members


class MeterLost(WabeError):
    """The meter has ended during the run; `noticed` is when, in seconds since 1970."""

    def __init__(self, message: str, noticed: float) -> None:
        super().__init__(message)
        self.noticed = noticed


async def while_metered(work: Coroutine[Any, Any, T], children: Sequence[Child]) -> T:
    """The result of `work`, which is cancelled when the meter ends. Raises `MeterLost` then."""
    meter = next((child for child in children if child.name == METER), None)
    if meter is None:
        return await work
    working, ending = asyncio.create_task(work), asyncio.create_task(meter.process.wait())
    try:
        await asyncio.wait((working, ending), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise MeterLost(f"stopped: {meter.crash() or METER}", time.time())
    finally:
        for each in (working, ending):
            each.cancel()
        await asyncio.wait((working, ending))


def without_meter(plan: Plan, error: MeterLost) -> WabeError:
    """The error that ends a run without its meter. Withdraws the zero scores that this may have caused."""
    if plan.store is None or not plan.store.has_begun:
        return WabeError(error.message)
    try:
        withdraw_since(plan.store, error.noticed - _NOTICED_S, error.message)
    except ConfigError as caught:
        return WabeError(f"{error.message}; the run cannot be resumed: {caught}")
    return WabeError(error.message, remedy=f"resume with: {resume_command(plan.options, plan.store)}")
