"""Small stand-ins for WebArena's sites, with the addresses, forms and requests of the real applications.

    python benchmarks/webarena_sites.py --site gitlab --port 8023 --rows rows.json

They were written from the texts of the tasks and from knowledge of Magento, Postmill, GitLab and OpenStreetMap, before
the expectations of the benchmark's evaluators were consulted. That revealed three mistakes, which are corrected:
GitLab's follow form posts to `follow.json`, the shop's newsletter has a form in the footer, and the benchmark's own
shop reports what is typed into the contact form to `/dummy_bin`. Rows of the real site's database that no text contains
(a best-selling product, the number of a forum) come from `--rows`.
"""

import argparse
import html
import json
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

FORM_KEY = "aB3dE5fG7hI9jK1l"


class Request(NamedTuple):
    method: str
    path: str
    query: Mapping[str, list[str]]
    body: str
    cookie: str


class Answer(NamedTuple):
    body: str = ""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    kind: str = "text/html; charset=utf-8"


def page(title: str, *parts: str) -> Answer:
    return Answer(f"<!doctype html><title>{html.escape(title)}</title><h1>{html.escape(title)}</h1>{''.join(parts)}")


def link(href: str, name: str) -> str:
    return f'<p><a href="{html.escape(href)}">{html.escape(name)}</a></p>'


def text(label: str, name: str, value: str = "", kind: str = "text") -> str:
    return f'<p><label>{label} <input type="{kind}" name="{name}" value="{html.escape(value)}"></label></p>'


def hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{name}" value="{html.escape(value)}">'


def form(action: str, button: str, *fields: str, method: str = "post", multipart: bool = False) -> str:
    coded = ' enctype="multipart/form-data"' if multipart else ""
    return f'<form action="{action}" method="{method}"{coded}>{"".join(fields)}<button>{button}</button></form>'


def table(head: tuple[str, ...], *rows: tuple[object, ...]) -> str:
    cells = "".join(f"<th>{name}</th>" for name in head)
    lines = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{cells}</tr>{lines}</table>"


def to(address: str, *headers: tuple[str, str]) -> Answer:
    return Answer(status=302, headers=(("Location", address), *headers))


def json_answer(value: object, status: int = 200) -> Answer:
    return Answer(json.dumps(value), status, kind="application/json")


def shopping(request: Request, rows: Mapping[str, Any]) -> Answer | None:
    """A Magento shop, logged in."""
    key = hidden("form_key", FORM_KEY)
    match request.method, request.path:
        case "GET", "/":
            return page(
                "One Stop Market",
                form("/catalogsearch/result/", "Search", text("Search", "q"), method="get"),
                link("/customer/account/", "My Account"),
                link("/contact/", "Contact Us"),
                link("/tide-laundry-detergent.html", "Tide Laundry Detergent"),
                link("/dish-soap.html", "Dish Soap"),
                form("/newsletter/subscriber/new/", "Subscribe", key, text("Your email", "email")),
            )
        case "GET", "/catalogsearch/result/":
            return page(f"Search results for: '{request.query.get('q', [''])[0]}'")
        case "GET", "/customer/account/":
            return page(
                "My Account", link("/sales/order/history/", "My Orders"), link("/newsletter/manage/", "Newsletter")
            )
        case "GET", "/sales/order/history/":
            orders = (("000000170", "Canceled"), ("000000190", "Complete"))
            return page("My Orders", table(("Order #", "Status"), *orders))
        case "GET", "/newsletter/manage/":
            box = '<label><input type="checkbox" name="is_subscribed" value="1">General Subscription</label>'
            return page("Newsletter Subscription", form("/newsletter/manage/save/", "Save", key, box))
        case "GET", "/contact/":
            fields = (text("Name", "name", "Emma Lopez"), text("Email", "email", "emma.lopez@gmail.com"))
            note = '<p><label>What’s on your mind? <textarea name="comment"></textarea></label></p>'
            about = hidden("form_id", "contact-form")
            return page("Contact Us", form("/contact/index/post/", "Submit", key, about, *fields, note), _TYPED_SCRIPT)
        case "GET", "/wishlist/":
            return page("My Wish List")
        case "GET", path if path.endswith(".html"):
            name = _name(path)
            number = str(rows["products"].get(path, 1))
            add = form("/wishlist/index/add/", "Add to Wish List", key, hidden("product", number), hidden("name", name))
            other = form(
                "/wishlist/index/add/", "Add a similar one", key, hidden("product", "2"), hidden("name", "Other")
            )
            return page(name, add, other, "<h2>Customer Reviews</h2><p>Nice camera, good zoom. By Anne</p>")
        case "POST", _:
            return _shopping_sent(request, rows)
    return None


def _shopping_sent(request: Request, rows: Mapping[str, Any]) -> Answer | None:
    match request.method, request.path:
        case "POST", "/newsletter/manage/save/":
            return to("/customer/account/")
        case "POST", "/contact/index/post/":
            return to("/contact/")
        case "POST", "/wishlist/index/add/":
            name = parse_qs(request.body)["name"][0]
            return to("/wishlist/", message_cookie("success", f"{name} has been added to your Wish List."))
        case "POST", "/newsletter/subscriber/new/":
            # As Magento does for an unknown path.
            return to("/") if "%40" in request.body else Answer("Please enter a valid email address.", 400)
    return None


def _name(path: str) -> str:
    return path.strip("/").removesuffix(".html").replace("-", " ").title()


def message_cookie(kind: str, message: str) -> tuple[str, str]:
    """Magento's notice of what happened, for the next page to show."""
    return "Set-Cookie", f"mage-messages={quote(json.dumps([{'type': kind, 'text': message}]))}; path=/"


# The benchmark's own addition to the shop. Nothing answers there.
_TYPED_SCRIPT = """<script>document.forms[0].onchange = () => fetch('/dummy_bin',
  {method: 'POST', body: new URLSearchParams(new FormData(document.forms[0]))}).catch(() => {})</script>"""

_REPORT_SCRIPT = """<script>document.forms[0].onsubmit = event => {
  event.preventDefault();
  const fields = new URLSearchParams(new FormData(document.forms[0])).toString();
  location = '/admin/reports/report_sales/sales/filter/' + btoa(fields) + '/';
}</script>"""


def shopping_admin(request: Request, rows: Mapping[str, Any]) -> Answer | None:
    """Magento's back office, under `/admin`."""
    match request.method, request.path.removeprefix("/admin").rstrip("/"):
        case "GET", "":
            return page(
                "Dashboard",
                link("/admin/customer/index/", "All Customers"),
                link("/admin/reports/report_sales/bestsellers/", "Bestsellers"),
                link("/admin/review/product/index/", "All Reviews"),
                link("/admin/reports/report_sales/sales/", "Orders Report"),
            )
        case "GET", "/customer/index":
            return page("Customers", '<iframe src="/admin/notices/" title="Notices"></iframe>')
        case "GET", "/notices":
            return page("Notices")
        case "GET", "/reports/report_sales/bestsellers":
            return page("Bestsellers Report", table(("Period", "Product"), ("2022", rows["bestseller"])))
        case "GET", "/review/product/index":
            return page("Reviews", f"<p>{rows['disappointed']} records found for disappointed</p>")
        case "GET", "/reports/report_sales/sales":
            fields = (
                hidden("report_type", "created_at_order"),
                hidden("period_type", "day"),
                text("From", "from"),
                text("To", "to"),
                hidden("show_order_statuses", "0"),
                hidden("show_empty_rows", "0"),
                hidden("show_actual_columns", "0"),
            )
            return page("Orders Report", form("#", "Show Report", *fields), _REPORT_SCRIPT)
        case "GET", path if path.startswith("/reports/report_sales/sales/filter/"):
            return page("Orders Report", "<p>No records found.</p>")
    return None


# The account in the benchmark's own configuration, and the browser's cookies afterwards.
ACCOUNT = {"username": "MarvelsGrantMan136", "password": "test1234"}
SESSION = "0123456789abcdef0123456789abcdef"


def reddit(request: Request, rows: Mapping[str, Any]) -> Answer | None:
    """A Postmill forum, where everything needs an account."""
    if request.path == "/login":
        fields = {key: values[0] for key, values in parse_qs(request.body).items()}
        if fields == {"_username": ACCOUNT["username"], "_password": ACCOUNT["password"]}:
            return to("/", ("Set-Cookie", f"PHPSESSID={SESSION}; path=/; HttpOnly"))
        password = text("Password", "_password", kind="password")
        return page("Log in", form("/login", "Log in", text("Username", "_username"), password))
    return _forum(request, rows) if f"PHPSESSID={SESSION}" in request.cookie else to("/login")


def _forum(request: Request, rows: Mapping[str, Any]) -> Answer | None:
    me = "/user/MarvelsGrantMan136"
    token = hidden("user_biography[_token]", "b1946ac92492d2347c6235b4d2611184")
    match request.method, request.path:
        case "GET", "/":
            links = ((f"{me}/edit_biography", "Edit biography"), ("/create_forum", "Create new forum"))
            return page(
                "Postmill", *(link(*each) for each in links), link("/submit/books", "Submit to books"), _SUBSCRIBE
            )
        case "GET", path if path == f"{me}/edit_biography":
            note = '<p><label>Biography <textarea name="user_biography[biography]"></textarea></label></p>'
            return page("Edit biography", form(path, "Save", note, token))
        case "POST", path if path == f"{me}/edit_biography":
            return to(me)
        case "GET", path if path == me:
            return page("MarvelsGrantMan136")
        case "GET", "/create_forum":
            fields = (text("Name", "forum[name]"), text("Title", "forum[title]"))
            areas = (
                f'<p><label>{label} <textarea name="forum[{name}]"></textarea></label></p>'
                for label, name in (("Description", "description"), ("Sidebar", "sidebar"))
            )
            return page("Create new forum", form("/create_forum", "Create forum", *fields, *areas))
        case "POST", "/create_forum":
            return to(f"/f/{parse_qs(request.body).get('forum[name]', ['x'])[0]}")
        case "GET", "/submit/books":
            note = '<p><label>Body <textarea name="submission[body]"></textarea></label></p>'
            fields = (
                hidden("submission[url]", ""),
                text("Title", "submission[title]"),
                note,
                text("Leave this empty", "submission[email]"),
                hidden("submission[mediaType]", "url"),
                hidden("submission[forum]", str(rows["forum_id"])),
            )
            return page("Create submission", form("/submit/books", "Create submission", *fields))
        case "POST", "/submit/books":
            # Postmill's trap for robots.
            return Answer("Spam", 422) if "submission[email]" in parse_qs(request.body) else to("/f/books/1/post")
        case "GET", path if path.startswith("/f/"):
            return page(path, _SUBSCRIBE)
        case "POST", "/f/space/subscribe.json":
            return json_answer({"subscribed": True})
    return None


_SUBSCRIBE = """<button onclick="fetch('/f/space/subscribe.json', {method: 'POST', body: 'token=1',
  headers: {'Content-Type': 'application/x-www-form-urlencoded'}})">Subscribe to space</button>"""

_STATUS = """<button onclick="send('busy')">Busy</button><button onclick="send('not_set')">Clear</button><script>
function send(availability) {
  fetch('/api/v4/user/status', {method: 'PUT', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(
    {emoji: 'speech_balloon', message: '', availability: availability, clear_status_after: null})});
}</script>"""


_NOTE_SCRIPT = """<script>function comment() {
  fetch('/primer/design/notes?target_id=139245&target_type=merge_request', {method: 'POST',
    headers: {'Content-Type': 'application/json'},
    body: JSON.stringify({note: {noteable_type: 'MergeRequest', note: document.querySelector('textarea').value}})});
}</script>"""


def gitlab(request: Request, rows: Mapping[str, Any]) -> Answer | None:
    """GitLab, logged in as byteblaze."""
    token = hidden("authenticity_token", "Zm9vYmFyYmF6cXV4")
    match request.method, request.path:
        case "GET", "/":
            return page(
                "Projects",
                link("/dashboard/merge_requests?assignee_username=byteblaze", "Merge requests"),
                link("/dashboard/todos", "To-Do List"),
                link("/projects/new", "New project"),
                link("/-/profile", "Edit profile"),
                link("/explore/projects/starred", "Most starred"),
                table(("Project", "Stars"), ("byteblaze/a11y-syntax-highlighting", 1), ("byteblaze/dotfiles", 0)),
                _STATUS,
            )
        case "GET", "/dashboard/todos" | "/dashboard/merge_requests":
            return page(request.path)
        case "GET", "/projects/new":
            levels = "".join(
                f'<label><input type="radio" name="project[visibility_level]" value="{level}">{name}</label>'
                for level, name in ((0, "Private"), (20, "Public"))
            )
            fields = (text("Project name", "project[name]"), text("Project slug", "project[path]"))
            more = hidden("project[namespace_id]", str(rows["namespace_id"]))
            return page("Create blank project", form("/projects", "Create project", token, *fields, levels, more))
        case "GET", "/-/profile":
            fields = (hidden("_method", "put"), token, text("Website url", "user[website_url]"))
            return page("Edit Profile", form("/-/profile", "Update profile settings", *fields, multipart=True))
        case "GET", "/primer/design/-/milestones/new":
            fields = (
                text("Title", "milestone[title]"),
                text("Start Date", "milestone[start_date]"),
                text("Due Date", "milestone[due_date]"),
            )
            return page("New Milestone", form("/primer/design/-/milestones", "Create milestone", token, *fields))
        case "GET", "/explore/projects/starred":
            return page("Starred", link(f"/{rows['starred']}", "First"), link("/other/project", "Second"))
        case "GET", path if path.count("/") == 1:
            return page(path, form(f"/users{path}/follow.json", "Follow", token))
        case "GET", "/primer/design/-/merge_requests/450":
            note = "<p><label>Comment <textarea></textarea></label></p>"
            return page("Octovisuals page", note, "<button onclick='comment()'>Comment</button>", _NOTE_SCRIPT)
        case "GET", path:
            star = f"fetch('{path}/toggle_star.json', {{method: 'POST'}})"
            return page(path, f'<button onclick="{star}">Star</button>')
    return _gitlab_sent(request, rows)


def _gitlab_sent(request: Request, rows: Mapping[str, Any]) -> Answer | None:
    match request.method, request.path:
        case "PUT", "/api/v4/user/status":
            return json_answer(json.loads(request.body))
        case "POST", "/primer/design/notes":
            return json_answer({"valid": True})
        case "POST", "/projects":
            return to(f"/byteblaze/{parse_qs(request.body).get('project[path]', ['x'])[0]}")
        case "POST", "/-/profile":
            return to("/-/profile")
        case "POST", "/primer/design/-/milestones":
            return to("/primer/design/-/milestones/1")
        case "POST", path if path.endswith("/follow.json"):
            return to(path.removesuffix("/follow.json").replace("/users", ""))
        case "POST", path if path.endswith("/toggle_star.json"):
            # Each browser has its own state here.
            is_starred = "starred=1" in request.cookie
            response = json_answer({"star_count": rows["star_count"] - is_starred})
            return response._replace(headers=(("Set-Cookie", f"starred={int(not is_starred)}; path=/"),))
    return None


def map_(request: Request, rows: Mapping[str, Any]) -> Answer | None:
    """OpenStreetMap's directions."""
    if request.path == "/":
        return page("OpenStreetMap", link("/directions", "Directions"))
    if request.path == "/directions":
        return page("Directions", table(("Mode", "Time"), *((row["mode"], row["duration"]) for row in rows["routes"])))
    return None


SITES: Mapping[str, Callable[[Request, Mapping[str, Any]], Answer | None]] = {
    "shopping": shopping,
    "shopping_admin": shopping_admin,
    "reddit": reddit,
    "gitlab": gitlab,
    "map": map_,
}


def serve(site: str, port: int, rows: Mapping[str, Any]) -> None:
    answer_to = SITES[site]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "replace")
            request = Request(self.command, parts.path, parse_qs(parts.query), body, self.headers.get("Cookie") or "")
            if parts.path == "/dummy_bin":
                self.close_connection = True
                return
            response = answer_to(request, rows) or Answer("Not found", 404)
            data = response.body.encode()
            self.send_response(response.status)
            for name, value in (("Content-Type", response.kind), ("Content-Length", str(len(data))), *response.headers):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = _answer

        def log_message(self, *args: object) -> None:
            pass

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", choices=SITES, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--rows", type=Path, required=True)
    options = parser.parse_args()
    serve(options.site, options.port, json.loads(options.rows.read_text()))
