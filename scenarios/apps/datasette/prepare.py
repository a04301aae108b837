"""Writes the database of a small library into the current folder."""

import sqlite3
from pathlib import Path

SUBJECTS = ("Astronomy", "Botany", "Chess", "Gardening", "History", "Sailing")
BRANCHES = ("Central", "Harbour", "Northgate")
MEMBERS = ("Ada Berg", "Boris Lind", "Carla Mota", "Dag Holm", "Elin Roos")


def main() -> None:
    """Every value follows from its row's number, so that each installation has the same data."""
    path = Path("library.db")
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        database.executescript("""
            create table branches (id integer primary key, name text, city text);
            create table books (id integer primary key, title text, subject text, year integer, pages integer,
                branch_id integer references branches(id), available integer);
            create table members (id integer primary key, name text, joined text);
            create table loans (id integer primary key, book_id integer references books(id),
                member_id integer references members(id), due text, returned integer);
        """)
        database.executemany(
            "insert into branches values (?, ?, ?)", [(n + 1, name, "Port Ellen") for n, name in enumerate(BRANCHES)]
        )
        database.executemany(
            "insert into books values (?, ?, ?, ?, ?, ?, ?)",
            [
                (n, f"{SUBJECTS[n % 6]} for All, Volume {n // 6 + 1}", SUBJECTS[n % 6], 1960 + n * 7 % 60,
                 90 + n * 37 % 400, n % 3 + 1, n % 4 != 0)
                for n in range(1, 91)
            ],
        )  # fmt: skip
        database.executemany(
            "insert into members values (?, ?, ?)",
            [(n + 1, name, f"20{18 + n}-03-0{n + 1}") for n, name in enumerate(MEMBERS)],
        )
        database.executemany(
            "insert into loans values (?, ?, ?, ?, ?)",
            [(n, n * 4 % 90 + 1, n % 5 + 1, f"2026-0{n % 9 + 1}-15", n % 3 == 0) for n in range(1, 41)],
        )


if __name__ == "__main__":
    main()
