"""Makes the workshop's database in the current folder: users, customers, orders, and a session that is logged in."""

import datetime
import os
import sys
from pathlib import Path

import django
from django.core.management import call_command

CUSTOMERS = (
    ("Ada Berg", "Lisbon"),
    ("Boris Lind", "Oslo"),
    ("Carla Mota", "Lisbon"),
    ("Dag Holm", "Oslo"),
    ("Elin Roos", "Turin"),
    ("Fred Vale", "Turin"),
)
ITEMS = ("Bicycle", "Clock", "Lamp", "Radio", "Sewing machine", "Typewriter")
STATES = ("open", "progress", "done")


def main() -> None:
    """Every value follows from its number, so that each installation has the same data."""
    sys.path.insert(0, str(Path.cwd()))
    os.environ["DJANGO_SETTINGS_MODULE"] = "workshop.settings"
    django.setup()
    call_command("migrate", run_syncdb=True, verbosity=0)
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.auth.models import User
    from django.contrib.sessions.backends.db import SessionStore
    from django.contrib.sessions.models import Session
    from workshop.models import Customer, Order

    staff = User.objects.create_superuser("staff", "staff@workshop.test", "bench-and-vice")
    customers = [
        Customer.objects.create(
            name=name, city=city, email=f"{name.split()[0].lower()}@mail.test", newsletter=number % 2 == 0
        )
        for number, (name, city) in enumerate(CUSTOMERS)
    ]
    for number in range(18):
        Order.objects.create(
            title=f"{ITEMS[number % 6]} repair {number + 1}",
            customer=customers[number * 5 % 6],
            status=STATES[number % 3],
            price=20 + number * 7,
            due=datetime.date(2026, 1 + number % 12, 10),
        )
    # `login.json` has its key.
    content = {
        SESSION_KEY: str(staff.pk),
        BACKEND_SESSION_KEY: "django.contrib.auth.backends.ModelBackend",
        HASH_SESSION_KEY: staff.get_session_auth_hash(),
    }
    Session.objects.create(
        session_key="wabewabewabewabewabewabewabewabe",
        session_data=SessionStore().encode(content),
        expire_date=datetime.datetime(2046, 1, 1, tzinfo=datetime.UTC),
    )


if __name__ == "__main__":
    main()
