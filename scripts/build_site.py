"""Build the documentation as a site with search: every document, plug-ins' pages, and the API from docstrings.

python scripts/build_site.py OUTPUT     with the packages of docs/site/requirements.lock

The navigation is docs/README.md and docs/plugins.md. A link that leads nowhere fails; one to another file leads to
the repository.
"""

import importlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = "https://github.com/hjerpe/wabe"
API = "docs/api-reference.md"
LINK = re.compile(r"(\]\()((?!https?:|mailto:|#)[^)\s]+)(\))")


def pages() -> list[str]:
    """The documents and pictures that git tracks."""
    patterns = ["*.md", "docs/images/*"]
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split() if not name.startswith("tests/")]


def staged(name: str, known: set[str]) -> str:
    """A document, as the generator reads it."""

    def resolve(link: re.Match[str]) -> str:
        file = link[2].partition("#")[0]
        target = (ROOT / name).parent.joinpath(file).resolve().relative_to(ROOT)
        if str(target) in known:
            return link[0]
        kind = "tree" if (ROOT / target).is_dir() else "blob"
        return f"{link[1]}{REPOSITORY}/{kind}/main/{target}{link[3]}"

    text = LINK.sub(resolve, (ROOT / name).read_text("utf-8"))
    # A word after a block's language is for the tests.
    return re.sub(r"^( *```\w+) .*$", r"\1", text, flags=re.MULTILINE)


def api() -> str:
    """The page of what `wabe` exports, from its docstrings."""
    sys.path.insert(0, str(ROOT / "src"))
    homes = vars(importlib.import_module("wabe"))["_HOMES"]
    entries = "\n".join(f"::: {home}.{name}\n" for name, home in sorted(homes.items()))
    return f"# What `wabe` exports\n\n[The Python interface](api.md) explains how these belong together.\n\n{entries}"


def navigation() -> Iterator[str]:
    """The lines of `nav`, from the rows of docs/README.md and docs/plugins.md."""
    text = (ROOT / "docs" / "README.md").read_text("utf-8")
    groups = re.findall(r"^\| ([^|]+) \| (.*\]\(.*) \|$", text, re.MULTILINE)
    groups.append(("plug-ins", "](plugins.md)" + (ROOT / "docs" / "plugins.md").read_text("utf-8")))
    yield "nav:"
    yield "  - README.md"
    for title, row in groups:
        yield f"  - {title.capitalize()}:"
        for target in re.findall(r"\]\(([^)]+)\)", row):
            yield f"    - {(ROOT / 'docs' / target).resolve().relative_to(ROOT)}"
            if target == "api.md":
                yield f"    - {API}"


def build(output: Path) -> int:
    """The generator's exit code."""
    names = pages()
    with tempfile.TemporaryDirectory(prefix="wabe-site-") as folder:
        content = Path(folder, "content")
        for name in names:
            target = content / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith(".md"):
                target.write_text(staged(name, {*names, API}), "utf-8")
            else:
                shutil.copy(ROOT / name, target)
        (content / API).write_text(api(), "utf-8")
        settings = Path(folder, "mkdocs.yml")
        lines = ["docs_dir: content", "site_dir: site", *navigation()]
        text = (ROOT / "docs/site/mkdocs.yml").read_text("utf-8")
        text = text.replace("        python:\n", f"        python:\n          paths: [{ROOT / 'src'}]\n")
        settings.write_text(text + "\n".join(lines) + "\n", "utf-8")
        command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", settings]
        built = subprocess.run(command, cwd=folder, check=False).returncode
        if built == 0:
            shutil.copytree(Path(folder, "site"), output, dirs_exist_ok=True)
        return built


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    raise SystemExit(build(Path(sys.argv[1])))
