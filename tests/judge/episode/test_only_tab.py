from judge.browser.session import Hop
from judge.episode.only_tab import OnlyTab


def request(tab: int | None, *, in_frame: bool = False) -> Hop:
    return Hop(event="request", url="https://shop.example/", tab=tab, in_frame=in_frame)


def document(tab: int, *, in_frame: bool = False) -> Hop:
    return Hop(event="document", url="https://shop.example/", tab=tab, in_frame=in_frame)


def test_a_document_in_the_only_tab_is_the_page() -> None:
    tab = OnlyTab()
    assert tab.has_loaded([request(1), document(1)])
    assert tab.has_loaded([request(1), document(1)])


def test_a_request_without_a_document_and_a_document_in_a_frame_leave_the_page() -> None:
    tab = OnlyTab()
    assert not tab.has_loaded([request(1)])
    assert not tab.has_loaded([request(1, in_frame=True), document(1, in_frame=True)])
    assert not tab.has_loaded([])


def test_after_another_tab_nothing_is_certain() -> None:
    known, unknown = OnlyTab(), OnlyTab()
    known.has_loaded([document(1), document(2)])
    assert not known.has_loaded([document(1)])
    unknown.has_loaded([document(1), request(None)])
    assert not unknown.has_loaded([document(1)])
