from judge.plugins.frozen.credentials import credentials_in
from judge.plugins.frozen.merging import merged
from plugins.frozen.made import answer, recording, request, walk

TOKEN = "9f8e7d6c5b4a39281706aabb"


def test_all_walks_are_kept_and_equal_ones_once() -> None:
    one = recording(walk("a", (request(), answer(b"1"))), walk("b", (request("/b"), answer(b"2"))))
    other = recording(walk("a", (request(), answer(b"1"))), walk("b", (request("/b"), answer(b"3"))))
    result = merged([one, other])
    assert [each.name for each in result.walks] == ["a", "b", "b~2"]
    assert [(each.walk, each.answer and each.answer.body) for each in result.exchanges] == [
        ("a", b"1"),
        ("b", b"2"),
        ("b~2", b"3"),
    ]


def test_what_looks_like_a_credential_is_named_with_its_place_and_not_shown() -> None:
    (exchange,) = walk("w", (request("/me"), answer(f'{{"api_token": "{TOKEN}"}}'.encode(), mime="application/json")))
    (result,) = credentials_in([exchange])
    assert (result.record, result.what, result.where) == ("w/0", "the value of api_token", "the answer")
    assert TOKEN not in repr(result)


def test_tokens_of_forms_and_placeholders_are_not_credentials() -> None:
    page = f'<input name="csrf_token" value="{TOKEN}"><script>session = "redacted-0123456789abcdef"</script>'
    assert credentials_in(walk("w", (request("/"), answer(page.encode())))) == []
