"""Where the bundled task sets are found."""

from pathlib import Path

from shared.settings import Settings


def test_in_a_source_tree_the_task_sets_lie_beside_the_code() -> None:
    result = Settings().bundled_scenarios
    assert {"demo", "docs", "live"} <= set(result)
    assert all(path.is_file() for path in result.values())


def test_an_image_names_their_folder() -> None:
    settings = Settings.from_environ({"WABE_SCENARIOS": "/app/scenarios"})
    assert settings.scenarios_folder == Path("/app/scenarios")
    assert settings.bundled_scenarios == {}
