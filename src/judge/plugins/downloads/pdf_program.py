"""A program: reads a PDF from standard input and writes `{"text": …}` or `{"problem": …}` to standard output.

It is started by its path, so it imports nothing of WABE, and the library only after its limits are set.
"""

import contextlib
import io
import json
import sys

LIMIT_S = 20.0
MAX_PAGES = 200
MAX_OUTPUT_BYTES = 1_000_000
MAX_MEMORY_BYTES = 600_000_000


def limit() -> None:
    """Limit this process, as far as the system can: on Windows, only the caller's time limit holds."""
    try:
        import resource
    except ImportError:
        return
    seconds = round(LIMIT_S)
    # Some systems do not limit memory.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    with contextlib.suppress(ValueError, OSError):
        # It writes no file.
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def read(data: bytes) -> dict[str, str]:
    """The text of a PDF, or the problem with it."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        document = PdfReader(io.BytesIO(data))
        if document.is_encrypted and not document.decrypt(""):
            return {"problem": "it is encrypted"}
        if len(document.pages) > MAX_PAGES:
            return {"problem": f"{len(document.pages)} pages, more than {MAX_PAGES}"}
        pages: list[str] = []
        bytes_left = MAX_OUTPUT_BYTES
        for page in document.pages:
            pages.append(page.extract_text())
            bytes_left -= len(pages[-1].encode("utf-8", "replace"))
            if bytes_left < 0:
                return {"problem": f"more than {MAX_OUTPUT_BYTES} bytes of text"}
        return {"text": "\n".join(pages)}
    except (MemoryError, RecursionError):
        return {"problem": "reading it takes more memory than it may"}
    except PyPdfError as error:
        return {"problem": f"{type(error).__name__}: {error}"[:200]}
    # A hostile file can break the library anywhere.
    except Exception as error:  # noqa: BLE001
        return {"problem": f"it is damaged ({type(error).__name__})"}


def main() -> None:
    """Read standard input to its end."""
    data = sys.stdin.buffer.read()
    limit()
    sys.stdout.buffer.write(json.dumps(read(data), ensure_ascii=False).encode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    main()
