"""Which reads change later answers, and after which pages write something, as far as the recordings show. Pure.

Reading is safe (RFC 9110, 9.2.1), unless a recorded read did one of these: it set a cookie to another value, it was a
link with side effects, a page wrote something after it in the same step, or it was between two requests that had
different cookies, or that the site answered differently after the same writes. Pages are known to write nothing after
an answer only if one like it was recorded. A request is like a recorded one if they differ in values only, and in at
most one segment of the path; one like a link with side effects also has a word for one in its address.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http.client import UNAUTHORIZED
from itertools import pairwise

from judge.network.interception import WireRequest
from judge.plugins.frozen.exchanges import RecordedExchange
from judge.plugins.frozen.kinds import DOCUMENTS, kind_of
from judge.plugins.frozen.matching.contexts import content_of
from judge.plugins.frozen.matching.places import Tree
from judge.plugins.frozen.matching.plays import cookies_in
from judge.plugins.frozen.matching.requests import is_recorded_write, is_writing_link, names_effect
from judge.plugins.frozen.matching.states import ObservationGroup
from judge.plugins.frozen.matching.synthesis import after_preflight, is_preflight
from judge.plugins.frozen.matching.writes import RecordedWrites

_KINDS = frozenset({"document", "frame", "fetch", "event_stream", "other"})
# By the shape of requests.
_Paths = defaultdict[str, set[tuple[str, ...]]]
_SAFE = frozenset({"", "GET", "HEAD"})


class ReadEffects:
    """What is known of reads. `sessions` are the names of cookies that differ in each play."""

    def __init__(
        self,
        walks: Iterable[Sequence[RecordedExchange]],
        groups: Iterable[ObservationGroup],
        writes: RecordedWrites,
        tree_of: Callable[[WireRequest], Tree],
        sessions: frozenset[str],
    ) -> None:
        self._tree_of = tree_of
        self._sessions = sessions
        self._walks = {walk[0].walk: walk for walk in walks if walk}
        # By shape: the paths of reads that changed something, of links, and of reads with the cookies that they set.
        self._changing: _Paths = defaultdict(set)
        self._links: _Paths = defaultdict(set)
        self._setting: defaultdict[str, list[tuple[tuple[str, ...], Mapping[str, str]]]] = defaultdict(list)
        # By shape: the paths of reads after which the page wrote nothing in the same step.
        self._quiet: _Paths = defaultdict(set)
        for walk in self._walks.values():
            self._learn_cookies(walk)
            self._learn_links(walk)
            for each in walk:
                self._add([each], self._changing if writes.has_after(each) else self._quiet)
        for group in groups:
            self._learn_answers(group)

    def may_change(self, request: WireRequest) -> bool:
        """Whether a request other than a write may change later answers."""
        if is_preflight(request):
            # Without an answer, what it announces is not sent.
            return after_preflight(request) not in _SAFE
        tree = self._tree_of(request)
        path = tuple(tree.root["path"])
        if _is_among(tree, self._changing) or (names_effect(request) and _is_among(tree, self._links)):
            return True
        cookies = {name: content_of(value) for name, value in cookies_in(request).items()}
        return any(
            cookies.get(name, "") != content
            for recorded, contents in self._setting.get(tree.shape, ())
            if _is_like(path, recorded)
            for name, content in contents.items()
        )

    def is_quiet(self, request: WireRequest) -> bool:
        """Whether a read changes nothing, and is like recorded ones after which pages wrote nothing by themselves."""
        return not self.may_change(request) and _is_among(self._tree_of(request), self._quiet)

    def _add(self, exchanges: Iterable[RecordedExchange], paths: _Paths) -> None:
        for each in exchanges:
            kind = kind_of(each.request)
            # What follows the question for a log-in is the browser's answer to it.
            is_question = kind in DOCUMENTS and each.answer is not None and each.answer.status == UNAUTHORIZED
            if kind in _KINDS and not is_recorded_write(each) and not is_question:
                tree = self._tree_of(each.request)
                paths[tree.shape].add(tuple(tree.root["path"]))

    def _learn_cookies(self, walk: Sequence[RecordedExchange]) -> None:
        last: dict[str, RecordedExchange] = {}
        explained: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for each in walk:
            before = last.get(each.host)
            if before is not None and each.request.step:
                was, now = (self._cookies(one.request) for one in (before, each))
                if not now.items() <= was.items() | explained[each.host]:
                    steps = range(max(1, before.request.step), each.request.step + 1)
                    earlier = (one for one in walk if one.request.step in steps and one.began < each.began)
                    self._add(earlier, self._changing)
            last[each.host] = each
            if contents := dict(self._set_cookies(each)):
                explained[each.host] |= contents.items()
                if not is_recorded_write(each):
                    tree = self._tree_of(each.request)
                    self._setting[tree.shape].append((tuple(tree.root["path"]), contents))

    def _cookies(self, request: WireRequest) -> dict[str, str]:
        return {name: content_of(value) for name, value in cookies_in(request).items() if name not in self._sessions}

    def _set_cookies(self, exchange: RecordedExchange) -> Iterator[tuple[str, str]]:
        for name, value in exchange.answer.headers if exchange.answer else ():
            cookie, _, content = value.partition(";")[0].strip().partition("=")
            if name.lower() == "set-cookie" and cookie not in self._sessions:
                yield cookie, content_of(content)

    def _learn_links(self, walk: Sequence[RecordedExchange]) -> None:
        for each in walk:
            if each.answer is not None and is_writing_link(each.request, each.answer):
                tree = self._tree_of(each.request)
                self._links[tree.shape].add(tuple(tree.root["path"]))

    def _learn_answers(self, group: ObservationGroup) -> None:
        if group.is_one:
            return
        by_walk: defaultdict[str, list[int]] = defaultdict(list)
        for place, each in enumerate(group.observations):
            by_walk[each.exchange.walk].append(place)
        for walk, places in by_walk.items():
            observations = sorted((group.observations[place] for place in places), key=lambda each: each.exchange.began)
            for one, other in pairwise(observations):
                if one.context == other.context and one.likeness != other.likeness:
                    between = range(one.exchange.began, other.exchange.began)
                    self._add((each for each in self._walks[walk] if each.began in between), self._changing)


def _is_among(tree: Tree, paths: _Paths) -> bool:
    own = tuple(tree.root["path"])
    return any(_is_like(own, each) for each in paths.get(tree.shape, ()))


def _is_like(path: Sequence[str], recorded: Sequence[str]) -> bool:
    return len(path) == len(recorded) and sum(one != other for one, other in zip(path, recorded, strict=True)) <= 1
