"""Images: type and size from the first bytes, and re-encoding with Pillow, which is optional."""

import io
from collections.abc import Mapping
from types import MappingProxyType

from shared.imports import optional_package

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8\xff"
# A file of a few kilobytes can decode to gigabytes of pixels.
_MAX_PIXELS = 50_000_000
# The most that JPEG can express; the header of a damaged PNG may claim any 32-bit number.
_MAX_SIDE = 65_535
# The usual file name extension, by media type.
SUFFIXES: Mapping[str, str] = MappingProxyType({"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp"})
_WEBP_QUALITY = 80
# On a scale of 0 to 6: takes a third of the default's time and a few percent more bytes.
_WEBP_EFFORT = 2


def media_type(data: bytes) -> str | None:
    """The media type of a JPEG, PNG or WebP; `None` for other bytes."""
    if data.startswith(b"RIFF"):
        return "image/webp" if data[8:12] == b"WEBP" else None
    return "image/png" if data.startswith(_PNG) else "image/jpeg" if data.startswith(_JPEG) else None


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels of a JPEG, PNG or WebP, from its first bytes; `None` if unknown."""
    # Imported here because it loads far more than reading sizes needs.
    import imagesize

    if media_type(data) is None:
        return None
    try:
        width, height = imagesize.get(io.BytesIO(data))
    except Exception:  # noqa: BLE001
        # The library fails in many ways on damaged files; without a size, a page only lacks the outline.
        return None
    return (width, height) if 0 < width <= _MAX_SIDE and 0 < height <= _MAX_SIDE else None


def require_pillow(what: str, extra: str) -> None:
    """Raises `ConfigError` when Pillow is not installed; `extra` is our optional dependency that installs it."""
    with optional_package(f"{what} need Pillow", extra):
        import PIL.Image  # noqa: F401


def encoded_as_jpeg(data: bytes) -> bytes:
    """The image as JPEG. Raises whatever the decoder raises."""
    from PIL import Image

    image = Image.open(io.BytesIO(data))
    out = io.BytesIO()
    # As Online-Mind2Web's evaluator does it: requests with published prompts must match its own byte for byte.
    (image.convert("RGB") if image.mode == "RGBA" else image).save(out, format="JPEG")
    return out.getvalue()


def scaled_webp(data: bytes, max_width: int) -> bytes | None:
    """The image as WebP, at most `max_width` pixels wide; `None` if it is huge or not an image."""
    from PIL import Image

    out = io.BytesIO()
    try:
        opened = Image.open(io.BytesIO(data), formats=("JPEG", "PNG", "WEBP"))
        if opened.width * opened.height > _MAX_PIXELS:
            return None
        image = opened.convert("RGB")
        image.thumbnail((max_width, image.height))
        image.save(out, format="WEBP", quality=_WEBP_QUALITY, method=_WEBP_EFFORT)
    # The bytes are foreign, and image decoders raise all kinds of exceptions.
    except Exception:  # noqa: BLE001
        return None
    return out.getvalue()
