"""PDF files, written by hand."""

from collections.abc import Sequence


def a_pdf(lines: Sequence[str], *, pages: int = 1) -> bytes:
    """A document with the same lines on each page."""
    text = " ".join(f"({line}) Tj 0 -20 Td" for line in lines)
    content = f"BT /F1 14 Tf 72 720 Td {text} ET".encode()
    kids = [4 + 2 * page for page in range(pages)]
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {pages} /Kids [{' '.join(f'{kid} 0 R' for kid in kids)}] >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
    page += "/Resources << /Font << /F1 3 0 R >> >> >>"
    for kid in kids:
        objects.append((page % (kid + 1)).encode())
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
    data, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
    return data + f"{end}startxref\n{len(data)}\n%%EOF\n".encode()
