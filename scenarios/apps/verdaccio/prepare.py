"""Writes a user and four packages into the current folder, as Verdaccio stores them."""

import base64
import hashlib
import io
import json
import tarfile
from pathlib import Path

PACKAGES = (
    ("tide-tables", "Times of high and low water", ("1.0.0", "1.1.0", "2.0.0"), {"knots": "^1.0.0"}),
    ("knots", "Names and drawings of knots", ("1.0.0", "1.2.0"), {}),
    ("buoy-finder", "Finds the nearest buoy", ("0.9.0",), {"tide-tables": "^2.0.0", "knots": "^1.2.0"}),
    ("@harbour/moorings", "Which moorings are free; for the staff", ("3.1.0",), {}),
)


def tarball(name: str, version: str, readme: str) -> bytes:
    """A package with a manifest and a readme, the same bytes every time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, text in (
            ("package/package.json", json.dumps({"name": name, "version": version})),
            ("package/README.md", readme),
        ):
            member = tarfile.TarInfo(path)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def main() -> None:
    """Versions were published on fixed days."""
    storage = Path("storage")
    for name, about, versions, needs in PACKAGES:
        folder = storage / name
        folder.mkdir(parents=True, exist_ok=True)
        plain = name.rpartition("/")[2]
        readme = f"# {name}\n\n{about}.\n\n## Usage\n\nCall `open()` once a day.\n"
        metadata = {
            "_id": name, "name": name, "readme": readme, "users": {}, "_uplinks": {}, "_distfiles": {},
            "dist-tags": {"latest": versions[-1]}, "versions": {}, "_attachments": {}, "_rev": "1-1", "time": {},
        }  # fmt: skip
        for day, version in enumerate(versions, start=1):
            data = tarball(name, version, readme)
            file, sha = f"{plain}-{version}.tgz", hashlib.sha1(data, usedforsecurity=False).hexdigest()
            (folder / file).write_bytes(data)
            metadata["_attachments"][file] = {"shasum": sha}
            metadata["time"][version] = f"2026-03-0{day}T09:00:00.000Z"
            metadata["versions"][version] = {
                "_id": f"{name}@{version}", "name": name, "version": version, "description": about, "license": "MIT",
                "author": {"name": "Harbour office"}, "keywords": ["sea"], "dependencies": needs, "readme": readme,
                "dist": {
                    "shasum": sha, "tarball": f"http://127.0.0.1/{name}/-/{file}",
                    "integrity": "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode(),
                },
            }  # fmt: skip
        metadata["time"] |= {"created": "2026-03-01T09:00:00.000Z", "modified": "2026-03-09T09:00:00.000Z"}
        (folder / "package.json").write_text(json.dumps(metadata))
    names = [name for name, *_ in PACKAGES]
    (storage / ".verdaccio-db.json").write_text(json.dumps({"list": names, "secret": "0123456789abcdef" * 2}))
    digest = base64.b64encode(hashlib.sha1(b"harbour-light", usedforsecurity=False).digest()).decode()
    Path("htpasswd").write_text(f"ada:{{SHA}}{digest}:autocreated\n")


if __name__ == "__main__":
    main()
