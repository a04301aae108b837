"""Pages that offer files in the ways that pages do, each with another file under the same name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from helpers.browser.hostile_site import Handler, Page
from helpers.pdf import a_pdf

ORDERS = "id,total\nL-7,40\nL-9,12\n"
OLD_ORDERS = "id,total\nL-1,40\nL-2,12\n"
_SAVE = """
  const save = (content, name, type) => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const [first, second] = document.querySelectorAll('button');"""
_BUTTONS = "<button>Export</button><button>Last year</button>"
_BLOB = f"""{_BUTTONS}<script>{_SAVE}
  const json = total => JSON.stringify({{ total, orders: [{{ id: 'L-7' }}] }});
  first.onclick = () => save(json(52), 'orders.json', 'application/json');
  second.onclick = () => save(json(53), 'orders.json', 'application/json');</script>"""
# Put together from a table of the page, by a library that takes its time.
_GENERATED = f"""<table><tr><td>L-7</td><td>40</td></tr><tr><td>L-9</td><td>12</td></tr></table>{_BUTTONS}
  <script>{_SAVE}
  const table = async order => {{
    await new Promise(done => setTimeout(done, 300));
    const rows = [...document.querySelectorAll('tr')];
    const lines = rows.map(row => [...row.cells].map(cell => cell.textContent).join(','));
    save(['id,total', ...order(lines)].join('\\n'), 'orders-2026.csv', 'text/csv');
  }};
  first.onclick = () => table(lines => lines);
  second.onclick = () => table(lines => lines.reverse());</script>"""
_FORM = '<form method="post" action="/export"><input type="hidden" name="since" value="{}"><button>{}</button></form>'
_POST = _FORM.format(2026, "Export") + _FORM.format(2025, "Last year")

PAGES: Mapping[str, str] = MappingProxyType(
    {
        name: f"<!doctype html><title>{name}</title><h1>Orders</h1>{body}"
        for name, body in {
            "attachment": '<a href="/orders.csv">Export</a> <a href="/orders.csv?2025">Last year</a>',
            "tab": '<base target="_blank"><a href="/orders.csv">Export</a> <a href="/orders.csv?2025">Last year</a>',
            "blob": _BLOB,
            "data": '<a href="data:text/plain,L-7%20is%20paid" download="note.txt">Export</a>'
            ' <a href="data:text/plain,L-7%20is%20unpaid" download="note.txt">Last year</a>',
            "generated": _GENERATED,
            "pdf": '<a href="/invoice.pdf" download>Export</a> <a href="/old/invoice.pdf" download>Last year</a>',
            "post": _POST,
        }.items()
    }
)


def attached(name: str, content: bytes, kind: str) -> Callable[[Handler], None]:
    """A file that the site gives away under this name."""
    disposition = f'attachment; filename="{name}"'
    return lambda handler: handler.send(content, Content_Type=kind, Content_Disposition=disposition)


def _orders(handler: Handler) -> None:
    text = OLD_ORDERS if "2025" in handler.path else ORDERS
    attached("orders.csv", text.encode(), "text/csv; charset=utf-8")(handler)


def _exported(handler: Handler) -> None:
    text = ORDERS if handler.command == "POST" and b"since=2026" in handler.body else OLD_ORDERS
    attached("orders.csv", text.encode(), "text/csv")(handler)


def download_site() -> dict[str, Page]:
    """The pages by path."""
    return {
        **{f"/{name}": page for name, page in PAGES.items()},
        "/orders.csv": _orders,
        "/invoice.pdf": attached("invoice.pdf", a_pdf(["Invoice L-7", "Total 52"]), "application/pdf"),
        "/old/invoice.pdf": attached("invoice.pdf", a_pdf(["Invoice L-7", "Total 25"]), "application/pdf"),
        "/export": _exported,
    }
