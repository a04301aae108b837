"""Makes a Trac project with tickets and wiki pages in the current folder."""

import hashlib
from pathlib import Path

from trac.admin.console import TracAdmin
from trac.env import Environment
from trac.perm import PermissionSystem
from trac.ticket.model import Component, Ticket
from trac.wiki.model import WikiPage

USER, PASSWORD, REALM = "ada", "harbour-light", "trac"
SUMMARIES = (
    "Door of the boathouse sticks",
    "Harbour light is dark on Mondays",
    "Ferry timetable shows the wrong year",
    "Map of the quay has no scale",
    "Ticket machine prints twice",
    "Bench at the pier is loose",
    "Weather page is empty at night",
    "Parking sign points to the sea",
)
PAGES = {
    "HarbourRules": "= Harbour rules =\n * Moor at the '''north''' quay.\n * Speed limit: 4 knots.\n",
    "FerryGuide": "= Ferry guide =\nThe ferry leaves at 7:40 and at 16:10. See HarbourRules.\n",
}


def main() -> None:
    """Every value follows from its number, so that each installation has the same data."""
    folder = str(Path("project").resolve())
    TracAdmin(folder).onecmd('initenv "Harbour office" sqlite:db/trac.db')
    env = Environment(folder)
    for page, text in PAGES.items():
        one = WikiPage(env, page)
        one.text = text
        one.save("office", "First version")
    component = Component(env)
    component.name = "quay"
    component.insert()
    for number, summary in enumerate(SUMMARIES):
        ticket = Ticket(env)
        ticket["summary"] = summary
        ticket["description"] = f"Reported at the desk, case {number + 1}."
        ticket["reporter"] = "office"
        ticket["component"] = "quay" if number % 2 else "component1"
        ticket["priority"] = ("major", "minor", "critical")[number % 3]
        ticket["type"] = "defect"
        ticket["status"] = "new"
        ticket["owner"] = "office"
        ticket.insert()
    permissions = PermissionSystem(env)
    permissions.grant_permission(USER, "TRAC_ADMIN")
    env.shutdown()
    digest = hashlib.md5(f"{USER}:{REALM}:{PASSWORD}".encode(), usedforsecurity=False).hexdigest()
    Path("users.htdigest").write_text(f"{USER}:{REALM}:{digest}\n")


if __name__ == "__main__":
    main()
