"""What `wabe run --meter` starts, and the variables that lead the participants to it."""

import secrets
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from judge.plugins.metering.program import VARIABLE
from judge.plugins.metering.proxy import MeterSettings, ProviderRoute
from judge.plugins.metering.wire import WIRES
from judge.runner.launch import Member
from judge.runner.meter import METER
from shared.a2a.serving import listen
from shared.engines import Engine
from shared.llm.environment import require_network
from shared.llm.opening import provider
from shared.llm.providers import provider_names

_LOOPBACK = "127.0.0.1"
# Programs that use a proxy for all addresses would otherwise send their calls there.
_NO_PROXY = ("NO_PROXY", "no_proxy")


def metered(
    members: Sequence[Member],
    roles: Sequence[str],
    *,
    ledger: Path,
    environ: Mapping[str, str],
    one_slot: bool,
    prices: str | None,
) -> tuple[Member, ...]:
    """The members with a meter before them, through which those in `roles` that start here reach models.

    `environ` is the environment that they get. A provider is reached where it would have been without the meter.
    Raises `ConfigError` for a proxy or certificates in `environ` that cannot be used.
    """
    require_network(environ)
    port = _free_port()
    known = [each for each in map(provider, provider_names()) if each.name in WIRES]
    upstreams: list[ProviderRoute] = []
    changed: list[Member] = []
    for member in members:
        if member.cmd is None or member.name not in roles:
            changed.append(member)
            continue
        member_environ, secret = {**environ, **member.env}, secrets.token_urlsafe(16)
        env = {}
        for each in known:
            url = member_environ.get(each.url_variable) or WIRES[each.name].default_url
            env[each.url_variable] = f"http://{_LOOPBACK}:{port}/{secret}/{len(upstreams)}"
            upstreams.append(ProviderRoute(role=member.name, secret=secret, provider=each.name, url=url))
        env |= {name: ",".join(filter(None, (member_environ.get(name), _LOOPBACK))) for name in _NO_PROXY}
        changed.append(member.model_copy(update={"env": {**member.env, **env}}))
    settings = MeterSettings(ledger=str(ledger.resolve()), upstreams=tuple(upstreams), one_slot=one_slot, prices=prices)
    command = shlex.join([sys.executable, "-m", "judge.plugins.metering.program", str(port)])
    meter = Member(
        name=METER,
        endpoint=f"http://{_LOOPBACK}:{port}/",
        cmd=command,
        is_agent=False,
        env={VARIABLE: settings.model_dump_json()},
    )
    return meter, *changed


ENGINE = Engine(meter=metered)


def _free_port() -> int:
    with listen(_LOOPBACK, 0) as sock:
        return int(sock.getsockname()[1])
