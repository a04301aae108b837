"""Writes two calendars and an address book of the user `ada` into the current folder."""

import json
from pathlib import Path

COLLECTIONS = {
    "team": {"tag": "VCALENDAR", "D:displayname": "Team", "ICAL:calendar-color": "#1f77b4ff"},
    "private": {"tag": "VCALENDAR", "D:displayname": "Private", "ICAL:calendar-color": "#d62728ff"},
    "friends": {"tag": "VADDRESSBOOK", "D:displayname": "Friends"},
}
EVENT = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//WABE//EN
BEGIN:VEVENT
UID:{uid}
DTSTAMP:20260101T000000Z
DTSTART:20260{month}10T090000Z
DTEND:20260{month}10T100000Z
SUMMARY:Meeting {month}
END:VEVENT
END:VCALENDAR
"""


def main() -> None:
    """The layout is that of Radicale's file storage."""
    root = Path("data/collection-root/ada")
    for name, props in COLLECTIONS.items():
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".Radicale.props").write_text(json.dumps(props))
    for month in range(1, 4):
        text = EVENT.format(uid=f"meeting-{month}", month=month).replace("\n", "\r\n")
        (root / "team" / f"meeting-{month}.ics").write_text(text, newline="")


if __name__ == "__main__":
    main()
