"""Pages that take files in the ways that pages do, and what the site was sent.

The drop zones are in the style of two common libraries: one reads `dataTransfer.files`, the other takes each item's
entry, and calls off what is not a file.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from helpers.browser.hostile_site import Handler, Page

# What every page sends: a form, or what a script puts together.
_SEND = """
  const send = async (files, fields = {}) => {
    const data = new FormData();
    for (const [name, value] of Object.entries(fields)) data.append(name, value);
    for (const file of files) data.append('cv', file, file.name);
    const answer = await fetch('/upload', { method: 'POST', body: data });
    said.textContent = await answer.text();
  };"""
_STATUS = '<p id="said" role="status">nothing yet</p>'
_PLAIN = f"""<form method="post" action="/upload" enctype="multipart/form-data">
  <input type="file" name="cv" aria-label="Your CV"><button>Send</button></form>{_STATUS}"""
_HIDDEN = f"""<input type="file" id="input" style="display:none"><button onclick="input.click()">Choose a file</button>
  <button onclick="send(input.files)">Send</button>{_STATUS}<script>{_SEND}</script>"""
_MULTIPLE = f"""<form method="post" action="/upload" enctype="multipart/form-data">
  <input type="file" name="cv" multiple aria-label="Your CV"><button>Send</button></form>{_STATUS}"""
# An area that a click on a hidden input serves too; it counts how often something is dragged over it.
_ZONE = f"""<div id="zone" role="button" aria-label="Drop files here" tabindex="0"
    style="width:300px;height:80px">Drop</div>
  <input type="file" id="input" multiple style="position:absolute;visibility:hidden;width:0;height:0">
  <button onclick="send(added)">Send</button><ul id="list"></ul>{_STATUS}<script>{_SEND}
  const added = [];
  const add = files => {{
    for (const file of files) {{
      added.push(file);
      list.insertAdjacentHTML('beforeend', `<li>${{file.name}} (${{file.size}} bytes)</li>`);
    }}
  }};
  input.onchange = () => add(input.files);
  zone.onclick = () => input.click();"""
# Takes drops only after it was dragged over with files, and reads the items' entries.
_ENTRIES = (
    _ZONE
    + """
  let entered = 0;
  const hasFiles = event => Array.from(event.dataTransfer.types).includes('Files');
  zone.addEventListener('dragenter', event => { if (hasFiles(event)) entered += 1; event.preventDefault(); });
  zone.addEventListener('dragover', event => { event.dataTransfer.dropEffect = 'copy'; event.preventDefault(); });
  zone.addEventListener('dragleave', () => { entered -= 1; });
  zone.addEventListener('drop', event => {
    event.preventDefault();
    if (!entered) return;
    entered = 0;
    for (const item of event.dataTransfer.items) {
      const entry = item.webkitGetAsEntry?.();
      if (entry?.isFile) entry.file(file => add([file]));
      else if (!entry && item.kind === 'file') add([item.getAsFile()]);
    }
  });</script>"""
)
# Reads the files later, as a component that renders in between does.
_FILES = (
    _ZONE
    + """
  const stop = event => { event.preventDefault(); event.stopPropagation(); };
  let isActive = false;
  zone.addEventListener('dragenter', event => { stop(event); isActive = event.dataTransfer.types.includes('Files'); });
  zone.addEventListener('dragover', stop);
  zone.addEventListener('drop', event => {
    stop(event);
    const files = [...event.dataTransfer.files];
    if (isActive) setTimeout(() => add(files), 50);
  });</script>"""
)
_FRAME = '<h1>Outer</h1><iframe src="/plain" title="Upload" width="500" height="200"></iframe>'
_SHADOW = f"""<my-upload></my-upload>{_STATUS}<script>{_SEND}
  customElements.define('my-upload', class extends HTMLElement {{
    connectedCallback() {{
      const root = this.attachShadow({{ mode: 'open' }});
      root.innerHTML = '<label>Your CV <input type="file"></label><button>Send</button>';
      root.querySelector('button').onclick = () => send(root.querySelector('input').files);
    }}
  }});</script>"""
# A component that renders itself again while the chooser is open, and with each choice.
_REPLACED = f"""<div id="box"></div><button onclick="send(chosen)">Send</button>{_STATUS}<script>{_SEND}
  let chosen = [];
  const render = () => {{
    box.innerHTML = '<input type="file" style="display:none"><button>Choose a file</button><output></output>';
    const [input, button, output] = box.children;
    output.textContent = chosen.map(file => file.name).join(', ') || 'no file';
    button.onclick = () => {{ input.click(); setTimeout(render, 100); }};
    input.onchange = () => {{ chosen = [...input.files]; render(); }};
  }};
  render();</script>"""
# Shows the picture first, as an application that lets one crop it does.
_PREVIEW = f"""<label>Picture <input type="file" id="input" accept="image/*"></label><img id="seen" alt="">
  <button id="go" disabled onclick="send(input.files, {{ width: seen.naturalWidth }})">Send</button>{_STATUS}
  <script>{_SEND}
  input.onchange = () => {{
    const reader = new FileReader();
    reader.onload = () => {{ seen.src = reader.result; }};
    reader.readAsDataURL(input.files[0]);
  }};
  seen.onload = () => {{ seen.alt = `preview, ${{seen.naturalWidth}} wide`; go.disabled = false; }};</script>"""

PAGES: Mapping[str, str] = MappingProxyType(
    {
        name: f"<!doctype html><title>{name}</title>{body}"
        for name, body in {
            "plain": _PLAIN,
            "hidden": _HIDDEN,
            "multiple": _MULTIPLE,
            "entries": _ENTRIES,
            "files": _FILES,
            "frame": _FRAME,
            "shadow": _SHADOW,
            "replaced": _REPLACED,
            "preview": _PREVIEW,
        }.items()
    }
)


def receives(handler: Handler) -> None:
    """Answer an upload with the names of its files."""
    names = re.findall(rb'filename="([^"]*)"', handler.body)
    handler.send(b"received " + b", ".join(names), Content_Type="text/plain")


def upload_site() -> dict[str, Page]:
    """The pages by path."""
    return {**{f"/{name}": page for name, page in PAGES.items()}, "/upload": receives}
