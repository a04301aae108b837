from judge.browser.session import Hop
from judge.episode.only_tab import OnlyTab


def request(tab: int | None, *, in_frame: bool = False) -> Hop:
    return Hop(event="request", url="https://shop.example/", tab=tab, in_frame=in_frame)


def document(tab: int, *, in_frame: bool = False) -> Hop:
    return Hop(event="document", url="https://shop.example/", tab=tab, in_frame=in_frame)


def followed(*hops: Hop) -> OnlyTab:
    tab = OnlyTab()
    for hop in hops:
        tab.follow(hop)
    return tab


def test_a_document_in_the_only_tab_is_the_page() -> None:
    tab = followed(request(1), document(1))
    assert tab.take()
    assert not tab.take()
    tab.follow(request(1))
    tab.follow(document(1))
    assert tab.take()


def test_a_document_that_was_requested_before_is_not_known() -> None:
    tab = followed(request(1))
    assert not tab.take()
    tab.follow(document(1))
    assert not tab.take()


def test_a_request_without_a_document_and_a_document_in_a_frame_leave_the_page() -> None:
    assert not followed(request(1)).take()
    assert not followed(request(1, in_frame=True), document(1, in_frame=True)).take()


def test_after_another_tab_nothing_is_certain() -> None:
    assert not followed(request(1), document(1), document(2)).take()
    assert not followed(request(1), request(None), document(1)).take()
