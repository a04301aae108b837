"""Whether the calls of a run's participants reach the meter."""

from judge.runner.agents import agents_of, is_container
from judge.runner.start import Start
from shared.errors import ConfigError


def require_reached(start: Start) -> None:
    """Raises `ConfigError` if they do not."""
    participants, options = start.scenario.participants, start.options
    if not start.is_recorded_here or all(agent.cmd is None for agent in participants):
        raise ConfigError(
            f"{start.scenario.path}: --meter needs a judge and a participant that are started here",
            remedy="give both a cmd, or leave --meter out: a participant elsewhere may report its own usage",
        )
    agents = () if options.player else agents_of(options.agent, [each.role for each in participants]).values()
    if any(map(is_container, agents)):
        raise ConfigError(
            "--meter cannot count the calls of an agent in a container, which does not reach the meter",
            remedy="run the agent's command, or leave --meter out",
        )
