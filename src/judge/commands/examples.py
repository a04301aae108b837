"""Every command with the example command lines at the end of its help; a test checks that they can be parsed."""

from collections.abc import Mapping
from types import MappingProxyType

EXAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "run": (
            "wabe run demo",
            "wabe run demo --agent ./my-agent",
            "wabe run demo docs --agent ./my-agent --agent http://127.0.0.1:9019 --epochs 3",
            "wabe run my.toml --max-parallel 4 --judge-model gemini:gemini-3-flash-preview",
            "wabe run my.toml --level easy --limit 10 --display plain",
            "wabe run my.toml --epochs 5",
            "wabe run my.toml --fail-under 80 --output results.json",
            "wabe run my.toml --exclude 'winter_sale=closed until December'",
            "wabe run my.toml --resume",
            "wabe run my.toml --engine ray --shards 6",
        ),
        "serve": ("wabe serve --port 9009", "wabe serve --host 0.0.0.0 --card-url https://judge.example.org/"),
        "participant": ("wabe participant --list", "wabe participant gemini --port 9019"),
        "report": (
            "wabe report latest --open",
            "wabe report latest --single-file --output report.html",
            "wabe report 20260101-120000-1a2b3c4d 20260102-120000-5e6f7a8b --output comparison",
        ),
        "tasks": (
            "wabe tasks validate my.toml --try",
            "wabe tasks sample --from my.toml --count 5 --seed 1",
            "wabe tasks import dataset.json --level easy --limit 20 --output easy.toml",
        ),
        "doctor": ("wabe doctor", "wabe doctor my.toml", "wabe doctor --agent http://127.0.0.1:9019 --wait 30"),
    }
)
