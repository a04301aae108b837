"""`.env.example` follows from the descriptors of the providers."""

from helpers.paths import ROOT, load_file
from shared.llm.opening import provider
from shared.llm.providers import provider_names


def test_the_committed_example_is_that_of_the_descriptors() -> None:
    assert (ROOT / ".env.example").read_text() == load_file(ROOT / "scripts" / "env_example.py").text()


def test_containers_get_every_providers_variables() -> None:
    passed_on = set(load_file(ROOT / "scripts" / "run-docker.py").passed_on())
    known = [provider(name) for name in provider_names()]
    assert passed_on == {variable for each in known for variable in (*each.key_variables, each.url_variable)}
