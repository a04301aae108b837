"""What is logged is plain: one bounded line for a record, marked lines for a traceback of our own, no secrets."""

import io
import json
import logging
import sys
import unicodedata
import warnings
from collections.abc import Iterator
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from shared.files import read_json
from shared.logs import (
    PUBLIC,
    BoundedHandler,
    CleanRecords,
    JsonLines,
    Lines,
    configure_logging,
    log_context,
    sealed_logs,
)

FOREIGN = ("a2a.server.routes.jsonrpc_dispatcher", "uvicorn.error", "uvicorn.access", "asyncio", "redis", "py.warnings")


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def logger_to(stream: io.StringIO, name: str, *secrets: SecretStr) -> logging.Logger:
    handler = BoundedHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    handler.addFilter(CleanRecords(secrets))
    logger = logging.Logger(name)
    logger.addHandler(handler)
    return logger


ATTACKS = {
    "a colour": "\x1b[31mred\x1b[0m",
    "a cleared screen": "\x1b[2J\x1b[H",
    "a window's title": "\x1b]0;owned\x07",
    "a forged record": "x\nERROR judge.server: the disk is full",
    "a carriage return": "x\rERROR judge: all is lost",
    "CR and LF": "x\r\n2026-01-01 ERROR judge: x",
    "a line separator": "x\u2028ERROR judge: x\u2029y\x85z",
    "a reversed text": "\u202egnp.exe\u2066x\u2069",
    "a lone surrogate": "\ud800",
    "a null": "a\x00b",
    "a C1 control": "a\x9b31mb",
    "backspaces": "secret\b\b\b\b\b\b",
    "form feed and tab": "a\fb\vc\td",
    "tag characters": "\U000e0041\U000e0042",
}


@pytest.mark.parametrize("name", [*FOREIGN, "judge.server.service"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_record_is_one_line_without_controls(stream: io.StringIO, name: str, attack: str) -> None:
    logger_to(stream, name).warning("Request Error (ID: %s)", ATTACKS[attack])
    (line,) = stream.getvalue().removesuffix("\n").split("\n")
    assert not [character for character in line if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


def fails(function: Any, *arguments: Any) -> Any:
    try:
        function(*arguments)
    except Exception:
        return sys.exc_info()
    raise AssertionError("it did not fail")


def test_a_librarys_error_about_a_request_is_one_bounded_line(stream: io.StringIO) -> None:
    error = fails(json.loads, '{"a": \x1b[2J' + "x" * 100_000)
    logger_to(stream, FOREIGN[0]).error("Failed to parse %s", "y\n" * 100_000, exc_info=error, stack_info=True)
    log_text = stream.getvalue()
    assert (log_text.count("\n"), len(log_text) < 1_200) == (1, True)
    logger_to(stream, FOREIGN[0]).error("Failed to parse", exc_info=error)
    assert (
        stream.getvalue()
        .splitlines()[-1]
        .endswith(": Failed to parse: json.decoder.JSONDecodeError: Expecting value: line 1 column 7 (char 6)")
    )


def test_our_own_error_keeps_its_traceback_in_marked_lines(stream: io.StringIO) -> None:
    error = fails(int, "1\nERROR judge: forged \x1b[2J")
    logger_to(stream, "judge.server.service").error("an assessment failed", exc_info=error)
    first, *rest = stream.getvalue().splitlines()
    assert first == "ERROR judge.server.service: an assessment failed"
    assert rest[0] == "  | Traceback (most recent call last):"
    assert all(line.startswith("  | ") for line in rest)
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("name", ["uvicorn.error", "asyncio", "a2a.server"])
def test_an_error_in_our_code_that_a_library_reports_keeps_its_traceback(stream: io.StringIO, name: str) -> None:
    logger_to(stream, name).error("Exception in ASGI application\n", exc_info=fails(read_json, "no path"))
    first, *rest = stream.getvalue().splitlines()
    assert first == f"ERROR {name}: Exception in ASGI application"
    assert any("read_json" in line for line in rest)
    assert all(line.startswith("  | ") for line in rest)


def test_code_that_every_request_passes_does_not_make_an_error_ours(stream: io.StringIO) -> None:
    guard = ModuleType("shared.a2a.serving")
    exec("import json\ndef guarded(): json.loads('{')", guard.__dict__)
    logger_to(stream, "uvicorn.error").error("Exception in ASGI application", exc_info=fails(guard.guarded))
    assert stream.getvalue().count("\n") == 1


def test_a_long_traceback_is_cut_in_the_middle(stream: io.StringIO) -> None:
    error = fails(int, "\n" * 5_000)
    long_error = ValueError("\n".join(f"line {number}" for number in range(10_000)))
    logger_to(stream, "judge").error("x", exc_info=(type(long_error), long_error, error[2]))
    lines = stream.getvalue().splitlines()
    assert (len(lines) < 250, lines[-1]) == (True, "  | line 9999")
    assert any("more lines" in line for line in lines)


def test_arguments_that_do_not_fit_their_message_are_still_logged(stream: io.StringIO) -> None:
    logger_to(stream, "a2a").warning("%d tasks", "many\x1b")
    assert stream.getvalue() == "WARNING a2a: '%d tasks' (cannot be formatted)\n"


def test_a_secret_is_found_where_it_is_surrounded_by_controls_or_cut(stream: io.StringIO) -> None:
    secret = "sk-planted-0123456789"
    logger = logger_to(stream, "a2a", SecretStr(secret))
    for text in (f"\x1b{secret}\x1b", "x" * 990 + secret):
        logger.warning(text)
    assert "sk-planted" not in stream.getvalue()


@given(message=st.text(), argument=st.text(), name=st.sampled_from(["a2a.x", "judge.x"]))
def test_no_text_writes_more_than_its_line(message: str, argument: str, name: str) -> None:
    stream = io.StringIO()
    error = ValueError(argument)
    logger_to(stream, name).warning(message, exc_info=(ValueError, error, None))
    first, *rest = stream.getvalue().removesuffix("\n").split("\n")
    assert first.startswith("WARNING ")
    assert all(line.startswith("  | ") for line in rest)
    assert not rest or name == "judge.x"
    assert not [character for character in "".join([first, *rest]) if character in "\r\x1b\x85\u2028\u202e"]


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, which is put back as it was."""
    logger, names = logging.getLogger(), ("judge", "participants", "shared")
    before, levels = (logger.handlers[:], logger.level), [logging.getLogger(name).level for name in names]
    yield logger
    logging.captureWarnings(False)
    logger.handlers, logger.level = before
    for name, level in zip(names, levels, strict=True):
        logging.getLogger(name).setLevel(level)


def test_every_logger_of_the_process_is_cleaned(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    # Names that no server started by another test has silenced.
    names = ("a2a.of.a.test", "judge.of_a_test", "some.package")
    for name in names:
        logging.getLogger(name).warning("by %s: \x1b[2J\nforged", name)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # Another test may have left them captured elsewhere.
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        warnings.warn("odd \x1b[2J input", stacklevel=1)
    output = capsys.readouterr().err
    assert output.count("\n") == len(names) + 1
    assert "\x1b" not in output


def in_its_place(stream: io.StringIO, form: logging.Formatter) -> list[str]:
    """The lines of records from a run, from an attempt in it, from a part that serves all tasks, and from outside."""
    logger = logger_to(stream, "judge.server")
    logger.handlers[0].setFormatter(form)
    with log_context(run="r1"):
        logger.warning("begins")
        with log_context(task="t.2", attempt=3):
            logger.warning("plays\n%s", ATTACKS["a forged record"])
            with log_context(task=None, attempt=None):
                logger.warning("a browser starts")
    logger.warning("waits")
    return stream.getvalue().splitlines()


def test_a_line_names_the_run_the_task_and_the_attempt(stream: io.StringIO) -> None:
    lines = [line.partition("judge.server: ")[2] for line in in_its_place(stream, Lines())]
    assert lines == [
        "[run r1] begins",
        r"[run r1 task t.2 attempt 3] plays\nx\nERROR judge.server: the disk is full",
        "[run r1] a browser starts",
        "waits",
    ]


def test_a_json_line_names_them_as_fields(stream: io.StringIO) -> None:
    records = [json.loads(line) for line in in_its_place(stream, JsonLines())]
    assert [{key: record.get(key) for key in ("run", "task", "attempt")} for record in records] == [
        {"run": "r1", "task": None, "attempt": None},
        {"run": "r1", "task": "t.2", "attempt": 3},
        {"run": "r1", "task": None, "attempt": None},
        {"run": None, "task": None, "attempt": None},
    ]
    assert {(record["level"], record["logger"]) for record in records} == {("WARNING", "judge.server")}
    assert datetime.fromisoformat(records[0]["time"]).utcoffset() == timedelta(0)


def test_a_traceback_is_part_of_its_json_line(stream: io.StringIO) -> None:
    logger = logger_to(stream, "judge.server")
    logger.handlers[0].setFormatter(JsonLines())
    try:
        raise ValueError("no such page")
    except ValueError:
        logger.exception("it failed")
    (line,) = stream.getvalue().splitlines()
    message = json.loads(line)["message"]
    assert message.startswith("it failed\n  | Traceback")
    assert message.endswith("ValueError: no such page")


@pytest.mark.parametrize("name", ["judge.episode", "httpx"])
def test_no_record_contains_a_value_while_a_sealed_set_is_played(
    root: logging.Logger, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    configure_logging()

    with sealed_logs():
        logging.getLogger(name).warning("task %s: %s", "t1", "quimble", exc_info=fails(int, "quimble"))
        logging.getLogger(name).warning("assessment %s", "started", extra=PUBLIC)
    logging.getLogger(name).warning("task %s", "zorblat")

    text = capsys.readouterr().err
    assert "quimble" not in text
    assert ("task %s: %s ValueError" in text) == (name == "judge.episode")
    assert "values withheld" in text
    assert "assessment started" in text
    assert "task zorblat" in text
