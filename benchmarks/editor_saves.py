"""Honest work in real editors: how often what they save later counts as evidence, and how often its cause is unknown.

Each walk writes into an editor, at once, key by key or in bold, and publishes. The page saves a while later, in one of
several ways, and tells a collaboration server through a socket. Everything that reaches the site with the final text
has to be evidence. With `--followed`, a link in another editor is clicked first, after which causes are followed.

    npm pack quill@2.0.3 && tar xzf quill-2.0.3.tgz       # makes `package`
    pip download --no-deps django-tinymce==5.0.0 django-ckeditor-5==0.2.20 django-prose-editor==0.28.0
    for wheel in *.whl; do unzip -q $wheel; done
    PYTHONPATH=tests python benchmarks/editor_saves.py --editors FOLDER --settle page-time
"""

import argparse
import asyncio
import itertools
import mimetypes
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from helpers.browser.hostile_site import Page, hostile_site
from helpers.browser.kept import browser_pool
from helpers.browser.sessions import browser_settings, ref_of
from judge.browser.playwright import PlaywrightBrowser
from judge.browser.pool import BrowserPool
from judge.browser.session import Traffic
from judge.browser.settle import SettleMode
from judge.network.policy import NetworkPolicy
from judge.records.causes import Cause

# What makes the editor, whose `changed` is called with its content.
EDITORS = {
    "Quill": """<link rel=stylesheet href="/files/package/dist/quill.snow.css"><div id=editor><p>Start</p></div>
        <script src="/files/package/dist/quill.js"></script><script>
        const quill = new Quill('#editor', { theme: 'snow' });
        quill.on('text-change', () => changed(quill.root.innerHTML));</script>""",
    "TinyMCE": """<textarea id=editor><p>Start</p></textarea><script src="/files/tinymce/static/tinymce/tinymce.min.js">
        </script><script>tinymce.init({ selector: '#editor', license_key: 'gpl', promotion: false, toolbar: 'bold',
        menubar: false, setup: one => one.on('input ExecCommand', () => changed(one.getContent())) });</script>""",
    "CKEditor": """<textarea id=editor><p>Start</p></textarea>
        <script src="/files/django_ckeditor_5/static/django_ckeditor_5/dist/bundle.js"></script><script>
        ClassicEditor.create(document.getElementById('editor'), { toolbar: ['bold'], licenseKey: 'GPL' })
        .then(one => one.model.document.on('change:data', () => changed(one.getData())));</script>""",
    "ProseMirror": """<textarea hidden id=editor>&lt;p>Start&lt;/p></textarea><script type=module>
        import { Bold, Document, HTML, Menu, Paragraph, Text, createTextareaEditor } from
          '/files/django_prose_editor/static/django_prose_editor/editor.js';
        const one = createTextareaEditor(document.getElementById('editor'), [Document, Paragraph, Text, Bold, Menu]);
        one.on('transaction', () => changed(one.getHTML()));</script>""",
}
# How `save(text)` comes to be called after `changed(text)`.
SAVES = {
    "debounce": "clearTimeout(timer); timer = setTimeout(save, 800, text)",
    "chain": """clearTimeout(timer);
        timer = setTimeout(() => fetch('/lock').then(r => r.text()).then(() => save(text)), 500)""",
    "idle": "clearTimeout(timer); timer = setTimeout(() => requestIdleCallback(() => save(text)), 700)",
    "interval": "dirty = text; timer ??= setInterval(() => { if (dirty) { save(dirty); dirty = '' } }, 1000)",
    "request": """clearTimeout(timer); timer = setTimeout(() => { const one = new XMLHttpRequest();
        one.open('POST', '/save'); one.send(text) }, 800)""",
}
_PAGE = """<!doctype html><title>%(name)s</title><script>
const collaboration = new WebSocket('ws://127.0.0.1:%(port)d/');
let timer, dirty;
const save = text => fetch('/save', { method: 'POST', body: text });
const changed = text => { collaboration.readyState === 1 && collaboration.send(text); %(save)s };
</script><div contenteditable><div contenteditable=false><a href="#other">other</a></div>
</div>%(editor)s<button id=publish onclick="fetch('/publish', { method: 'POST', body: '%(word)s' })">
Publish</button>"""
WRITES = ("at once", "slowly", "with bold")


def _echo(connection: ServerConnection) -> None:
    with suppress(ConnectionClosed):
        for message in connection:
            connection.send(message)


def _serving(folder: Path) -> dict[str, Page]:
    def answer(path: Path) -> Page:
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        return lambda handler: handler.send(path.read_bytes(), Content_Type=kind)

    files = (path for path in folder.rglob("*") if path.suffix in (".js", ".css", ".svg", ".woff2"))
    pages: dict[str, Page] = {f"/files/{path.relative_to(folder)}": answer(path) for path in files}
    return pages | dict.fromkeys(("/save", "/publish", "/lock"), "ok")


async def _edited(browser: PlaywrightBrowser, writes: str, word: str, *, is_followed: bool) -> None:
    async def click(element: str) -> None:
        await browser.act("browser_click", {"target": ref_of((await browser.observe()).snapshot, element)})

    if is_followed:
        await click('link "other"')
    await click("Start")
    await browser.act("browser_press_key", {"key": "End"})
    if writes == "with bold":
        await browser.act("browser_press_key", {"key": "Control+b"})
    await browser.act("browser_type", {"text": word, "slowly": writes == "slowly"})
    for _ in range(6):
        await browser.observe()
        await asyncio.sleep(0.4)
    await click('"Publish"')
    await browser.observe()


def _causes(traffic: Traffic, word: str) -> list[tuple[str, Cause]]:
    """Of everything that was sent with the word."""
    found = []
    for entry in traffic.entries:
        path = entry["request"]["url"].rpartition("/")[2]
        if word in entry["request"].get("postData", {}).get("text", ""):
            found.append((path, Cause(**entry["_cause"])))
        for message in entry.get("_webSocketMessages", ()):
            if message["type"] == "send" and word in message.get("data", ""):
                found.append(("socket", Cause(**message["_cause"])))
    return found


async def _walked(
    pool: BrowserPool, folder: Path, settle: SettleMode, walk: tuple[str, str, str], port: int, *, is_followed: bool
) -> str | None:
    """Why the walk's success would be lost; `None` if it is not."""
    editor, saves, writes = walk
    word = f"word{len(editor)}{len(saves)}{len(writes)}"
    with hostile_site(_serving(folder)) as site:
        known = {"name": editor, "port": port, "save": SAVES[saves], "editor": EDITORS[editor], "word": word}
        site.pages["/article"] = _PAGE % known
        policy = NetworkPolicy.for_websites([site.url, f"http://127.0.0.1:{port}/"])
        async with pool.browser(policy) as browser:
            await browser.open(f"{site.url}article", settle)
            await _edited(browser, writes, word, is_followed=is_followed)
            traffic = browser.traffic()
    assert traffic is not None
    causes = _causes(traffic, word)
    missing = {"save", "publish", "socket"} - {name for name, _ in causes}
    refused = [f"{name}: {cause.why_not}" for name, cause in causes if cause.why_not]
    print(*walk, *Counter(f"{name} by {cause.by}" for name, cause in causes).items(), sep=", ", flush=True)
    return "; ".join([*(f"nothing arrived by {name}" for name in missing), *refused]) or None


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--editors", type=Path, required=True)
    parser.add_argument("--settle", choices=("page-time", "real-time"), default="page-time")
    parser.add_argument("--followed", action="store_true")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    walks = [each for each in itertools.product(EDITORS, SAVES, WRITES) if given.only in " ".join(each)]
    lost = {}
    collaboration = serve(_echo, "127.0.0.1", 0)
    threading.Thread(target=collaboration.serve_forever, daemon=True).start()
    port = collaboration.socket.getsockname()[1]
    async with browser_pool(browser_settings(action_timeout_s=5)) as pool:
        for walk in walks:
            if why := await _walked(pool, given.editors, given.settle, walk, port, is_followed=given.followed):
                lost[walk] = why
                print("  LOST:", why, flush=True)
    print(f"{len(walks)} walks, {len(lost)} lost")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
