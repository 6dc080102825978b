"""What every matching algorithm promises, whatever paper it is from."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tamis.algorithms import ALGORITHMS, load, make
from tamis.algorithms.simple import Simple
from tamis.errors import (
    InvalidEvent,
    InvalidSchema,
    InvalidSubscription,
    NotSupported,
    UnknownSubscription,
)
from tamis.matching import (
    Attribute,
    Capabilities,
    EventMatcher,
    Kinds,
    Matcher,
    NotEqual,
    Order,
    Table,
)
from tamis.values import Range
from tests.contract.matching_reference import (
    N_ATTRIBUTES,
    NUMBERS,
    Asked,
    Shadow,
    Subscription,
    accepts,
    random_events,
    random_subscriptions,
    table_of,
)

NAMES = [f"a{number}" for number in range(N_ATTRIBUTES)]
EVENT_MATCHERS = [name for name in ALGORITHMS if load(name).capabilities.matches_subscriptions]
REMOVABLE = [name for name in ALGORITHMS if load(name).capabilities.can_remove]

every = pytest.mark.parametrize("name", ALGORITHMS)


@pytest.fixture(autouse=True)
def _skip_without_its_library(request: pytest.FixtureRequest) -> None:
    if "r_star_tree" in request.node.name:
        pytest.importorskip("rtree")


def kinds_of(name: str) -> Kinds:
    return load(name).capabilities.kinds


def check(matcher: Any, shadow: Shadow, event: Any) -> None:
    """The result is what it should be, or a superset if so declared; unique and in order."""
    found = matcher.match(event).tolist()
    expected = shadow.expected(event)
    assert len(found) == len(set(found)), "an id came twice"
    assert set(found) <= set(shadow.saved), "an id that is not there"
    if matcher.capabilities.is_exact:
        assert set(found) == expected
    else:
        assert set(found) >= expected
    if matcher.capabilities.order is Order.ASCENDING:
        assert found == sorted(found)
    else:
        levels = [shadow.priority[id] for id in found]
        assert levels == sorted(levels)


def filled(
    name: str, subscriptions: list[Subscription], n_attributes: int = N_ATTRIBUTES
) -> tuple[Any, Shadow]:
    matcher, shadow = make(name, [f"a{m}" for m in range(n_attributes)]), Shadow()
    shadow.add(matcher, subscriptions, [number % 10 for number in range(len(subscriptions))])
    return matcher, shadow


# -- exactness


@every
@pytest.mark.parametrize("seed", range(3))
def test_random_subscriptions_and_events(name: str, seed: int) -> None:
    random, kinds = np.random.default_rng(seed), kinds_of(name)
    matcher, shadow = filled(name, random_subscriptions(random, 300, kinds))
    assert len(matcher) == 300
    for event in random_events(random, 60, kinds):
        check(matcher, shadow, event)


@every
def test_many_subscriptions_split_and_fill_every_structure(name: str) -> None:
    random = np.random.default_rng(7)
    center, width = random.random((3_000, 3)), random.choice([0, 0.001, 0.1, 0.7], (3_000, 3))
    low, high = np.maximum(center - width, 0), np.minimum(center + width, 1)
    table = Table.from_boxes(low, high)
    matcher = make(name, ["x", "y", "z"])
    ids = matcher.add_many(table)
    events = np.vstack([random.random((40, 3)), center[:40]])
    for event, found in zip(events, matcher.match_many(events), strict=True):
        expected = ids[((low <= event) & (event <= high)).all(axis=1)]
        if matcher.capabilities.is_exact:
            assert sorted(found) == expected.tolist()
        else:
            assert set(found) >= set(expected)


def allowed(name: str, asked: Asked) -> bool:
    return not table_of([{0: asked}]).kinds & ~kinds_of(name)


@every
def test_open_and_closed_ends_equal_bounds_infinities_and_points(name: str) -> None:
    bounds = (None, -np.inf, 0.0, 0.25, 0.5, 1.0, 7.0, np.inf)
    forms = [
        Asked(low, high, low_open, high_open)
        for low in bounds
        for high in bounds
        for low_open in (False, True)
        for high_open in (False, True)
    ]
    forms += [Asked(value, value, negated=True) for value in (-np.inf, 0.0, 0.5, 7.0, np.inf)]
    rest = {m: Asked(-10.0, 10.0) for m in range(1, N_ATTRIBUTES)}
    matcher, shadow = filled(name, [{0: one} | rest for one in forms if allowed(name, one)])
    for value in NUMBERS:
        check(matcher, shadow, np.array([value, *[0.5] * (N_ATTRIBUTES - 1)]))


@every
def test_values_at_the_borders_of_cells(name: str) -> None:
    borders = [k / n for n in (4, 6, 10, 64, 1_000, 4_096) for k in (0, 1, n // 2, n - 1, n)]
    borders = sorted({float(np.nextafter(x, s)) for x in borders for s in (x, -1, 2)})
    subscriptions = [{0: Asked(x, x), 1: Asked(0.0, x)} for x in borders]
    rest = {m: Asked(0.0, 1.0) for m in range(2, N_ATTRIBUTES)}
    matcher, shadow = filled(name, [one | rest for one in subscriptions])
    for x in borders:
        check(matcher, shadow, np.array([x, x, *[0.5] * (N_ATTRIBUTES - 2)]))


@every
def test_values_that_differ_in_their_last_digit(name: str) -> None:
    """Saved one by one, so that a structure grows around what it has."""
    random = np.random.default_rng(17)
    around = [np.nextafter(one, to) for one in (0.0, 0.1, 0.25, 0.5) for to in (-1, one, 1)]
    around += [0.1 + 3e-16, 1e-16, 0.5 + 3e-16, 1.0, 0.7661132812499999]
    matcher = make(name, ["x", "y"])
    boxes = np.sort(random.choice(around, (60, 2, 2)), axis=1)
    low, high = boxes[:, 0], boxes[:, 1]
    for box in boxes:
        x, y = (Range(*ends) for ends in box.T.tolist())
        matcher.add({"x": x, "y": y})
    for event in random.choice(around, (80, 2)):
        expected = np.flatnonzero(((low <= event) & (event <= high)).all(axis=1)).tolist()
        found = sorted(matcher.match(event).tolist())
        assert set(found) >= set(expected)
        assert found == expected or not matcher.capabilities.is_exact


@every
def test_other_domains(name: str) -> None:
    random = np.random.default_rng(5)
    bounds = np.sort(random.uniform(-300, 40_000, (200, 2, 2)), axis=2)
    low, high = bounds[..., 0], bounds[..., 1]
    matcher = make(name, [Attribute("price", 0, 50_000), Attribute("place", -180, 180)])
    matcher.add_many(Table.from_boxes(low, high))
    for event in random.uniform(-300, 40_000, (30, 2)):
        expected = np.flatnonzero(((low <= event) & (event <= high)).all(axis=1)).tolist()
        found = sorted(matcher.match(event).tolist())
        assert set(found) >= set(expected)
        assert found == expected or not matcher.capabilities.is_exact


@every
def test_nothing_saved_finds_nothing(name: str) -> None:
    matcher = make(name, NAMES)
    assert matcher.match([0.5] * N_ATTRIBUTES).tolist() == []
    assert matcher.add_many(table_of([])).tolist() == []
    found = matcher.match_many(np.zeros((3, N_ATTRIBUTES)))
    assert (found.ids.tolist(), found.offsets.tolist()) == ([], [0, 0, 0, 0])
    assert len(matcher.match_many(np.zeros((0, N_ATTRIBUTES)))) == 0
    assert len(matcher.match_many([])) == 0


@every
def test_subscriptions_that_hold_nothing_are_saved_and_never_found(name: str) -> None:
    hollow = {m: Asked(0.75, 0.25) for m in range(N_ATTRIBUTES)}
    whole = {m: Asked(0.25, 0.75) for m in range(N_ATTRIBUTES)}
    matcher, shadow = filled(name, [hollow, whole])
    shadow.add(matcher, [hollow] * 200, [5] * 200)
    assert len(matcher) == 202
    assert matcher.match(np.full(N_ATTRIBUTES, 0.5)).tolist() == [1]
    if matcher.capabilities.can_remove:
        shadow.remove(matcher, list(range(100)))
        shadow.add(matcher, [whole] * 300, [5] * 300)
    check(matcher, shadow, np.full(N_ATTRIBUTES, 0.5))


@every
def test_equal_subscriptions_are_all_found(name: str) -> None:
    same = {m: Asked(0.25, 0.5) for m in range(N_ATTRIBUTES)}
    matcher, shadow = filled(name, [same] * 70)
    check(matcher, shadow, np.full(N_ATTRIBUTES, 0.5))
    check(matcher, shadow, np.full(N_ATTRIBUTES, 0.51))
    assert len(matcher.match(np.full(N_ATTRIBUTES, 0.5))) == 70


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if Kinds.PARTIAL in kinds_of(name)])
def test_a_subscription_without_constraints_accepts_every_event(name: str) -> None:
    matcher, shadow = filled(name, [{}, {2: Asked(0.1, 0.2)}])
    events = random_events(np.random.default_rng(1), 10, kinds_of(name))
    assert all(0 in matcher.match(event) for event in events)
    for event in events:
        check(matcher, shadow, event)


@every
def test_more_attributes_than_any_structure_indexes(name: str) -> None:
    random, kinds = np.random.default_rng(11), kinds_of(name) & ~Kinds.NOT_EQUAL
    subscriptions = random_subscriptions(random, 200, kinds, n_attributes=12)
    matcher = make(name, [f"a{m}" for m in range(12)])
    matcher.add_many(table_of(subscriptions, 12))
    for event in random_events(random, 20, kinds, n_attributes=12):
        expected = [id for id, one in enumerate(subscriptions) if accepts(one, event[None])[0]]
        found = sorted(matcher.match(event).tolist())
        assert set(found) >= set(expected)
        assert found == expected or not matcher.capabilities.is_exact


@every
def test_match_many_and_match_parts_find_what_match_finds(name: str) -> None:
    random, kinds = np.random.default_rng(3), kinds_of(name)
    matcher, _ = filled(name, random_subscriptions(random, 200, kinds))
    events = random_events(random, 10, kinds)
    for event, found in zip(events, matcher.match_many(events), strict=True):
        assert found.tolist() == matcher.match(event).tolist()
        parts = np.concatenate(list(matcher.match_parts(event)))
        if matcher.capabilities.order is Order.ASCENDING:
            parts.sort()
        assert parts.tolist() == found.tolist()


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if Kinds.TEXT in kinds_of(name)])
def test_texts(name: str) -> None:
    matcher = make(name, [Attribute("brand", is_text=True), "price"])
    ford = matcher.add({"brand": "FORD", "price": Range(0, 0.5)})
    others = set()
    if Kinds.NOT_EQUAL in kinds_of(name):
        others = {matcher.add({"brand": NotEqual("FORD"), "price": Range(0, 0.5)})}
    seat = matcher.add({"brand": "SEAT", "price": Range(0, 1)})
    expected: list[tuple[dict[str, Any], set[int]]] = [
        ({"brand": "FORD", "price": 0.5}, {ford}),
        ({"brand": "LADA", "price": 0.5, "color": "red"}, others),
        ({"brand": "SEAT", "price": 0.75}, {seat}),
    ]
    if Kinds.MISSING in kinds_of(name):
        expected += [({"price": 0.5}, set()), ({"brand": 3, "price": 0.5}, set())]
    for event, ids in expected:
        found = set(matcher.match(event).tolist())
        assert found == ids if matcher.capabilities.is_exact else found >= ids


# -- changes


class Machine(RuleBasedStateMachine):
    """A matcher beside its shadow: adds, bulk adds, removals and matches in any order."""

    name = ""

    def __init__(self) -> None:
        super().__init__()
        self.kinds = kinds_of(self.name)
        self.matcher, self.shadow = make(self.name, NAMES), Shadow()

    @rule(seed=st.integers(0, 2**32 - 1), n=st.sampled_from([1, 1, 2, 40, 300]))
    def add(self, seed: int, n: int) -> None:
        random = np.random.default_rng(seed)
        priority = random.integers(0, 10, n).tolist()
        self.shadow.add(self.matcher, random_subscriptions(random, n, self.kinds), priority)

    @rule(seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.0, 0.02, 0.5, 1.0]))
    def remove(self, seed: int, share: float) -> None:
        if not self.matcher.capabilities.can_remove or not self.shadow.saved:
            return
        ids = np.random.default_rng(seed).permutation(sorted(self.shadow.saved))
        self.shadow.remove(self.matcher, ids[: max(1, int(share * len(ids)))].tolist())

    @rule(seed=st.integers(0, 2**32 - 1), n=st.sampled_from([1, 3, 50]))
    def update(self, seed: int, n: int) -> None:
        if not self.matcher.capabilities.can_remove or not self.shadow.saved:
            return
        random = np.random.default_rng(seed)
        ids = random.permutation(sorted(self.shadow.saved))[:n].tolist()
        others = random_subscriptions(random, len(ids), self.kinds)
        self.matcher.update_many(ids, table_of(others))
        self.shadow.saved.update(zip(ids, others, strict=True))

    @rule(seed=st.integers(0, 2**32 - 1))
    def match(self, seed: int) -> None:
        for event in random_events(np.random.default_rng(seed), 5, self.kinds):
            check(self.matcher, self.shadow, event)

    @invariant()
    def size(self) -> None:
        assert len(self.matcher) == len(self.shadow.saved)
        assert all(id in self.matcher for id in self.shadow.saved)


@every
def test_changes_interleaved_with_matches(name: str) -> None:
    machine = type(f"Machine_{name}", (Machine,), {"name": name})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=15, stateful_step_count=15, deadline=None)
    )


@pytest.mark.parametrize("name", REMOVABLE)
def test_what_is_removed_is_gone_and_its_number_is_used_again(name: str) -> None:
    matcher = make(name, ["x"])
    ids = [matcher.add({"x": Range(0, 1)}) for _ in range(5)]
    matcher.remove(ids[2])
    assert ids[2] not in matcher
    assert sorted(matcher.match([0.5]).tolist()) == [0, 1, 3, 4]
    assert matcher.add({"x": Range(0.25, 0.5)}) == ids[2]
    assert sorted(matcher.match([0.5]).tolist()) == ids
    assert 2 not in matcher.match([0.6])
    matcher.remove_many(ids)
    assert (len(matcher), matcher.match([0.5]).tolist()) == (0, [])


@pytest.mark.parametrize("name", REMOVABLE)
def test_many_are_removed_at_once(name: str) -> None:
    random, kinds = np.random.default_rng(9), kinds_of(name)
    matcher, shadow = filled(name, random_subscriptions(random, 1_500, kinds))
    shadow.remove(matcher, [id for id in range(1_500) if id % 5])
    for event in random_events(random, 20, kinds):
        check(matcher, shadow, event)
    shadow.remove(matcher, sorted(shadow.saved))
    assert matcher.match(np.full(N_ATTRIBUTES, 0.5)).tolist() == []


@pytest.mark.parametrize("name", REMOVABLE)
def test_a_removal_is_all_or_nothing(name: str) -> None:
    matcher = make(name, ["x"])
    ids = matcher.add_many(Table.from_boxes([[0.1], [0.2]], [[0.8], [0.9]]))
    strange: list[Any] = [[0, 5], [0, -1], [1, 1], [2**32], [2**40], [0.7], ["0"], [True], [None]]
    for wrong in [*strange, np.array([2**32]), np.array([2**64 - 1], np.uint64)]:
        with pytest.raises(UnknownSubscription):
            matcher.remove_many(wrong)
        with pytest.raises((UnknownSubscription, InvalidSubscription)):
            matcher.update_many(wrong, Table.from_boxes([[0.1]], [[0.2]]))
    assert matcher.match([0.5]).tolist() == ids.tolist()


@pytest.mark.parametrize("name", REMOVABLE)
def test_memory_does_not_grow_when_as_many_go_as_come(name: str) -> None:
    random = np.random.default_rng(0)
    matcher = make(name, NAMES)
    kinds = kinds_of(name)
    matcher.add_many(table_of(random_subscriptions(random, 400, kinds)))
    sizes = []
    for _ in range(12):
        matcher.remove_many(random.permutation(400)[:200])
        matcher.add_many(table_of(random_subscriptions(random, 200, kinds)))
        sizes.append(matcher.memory_bytes())
    assert len(matcher) == 400
    assert max(sizes[6:]) <= 2 * max(sizes[:6])


@pytest.mark.parametrize("name", REMOVABLE)
def test_an_update_stops_the_old_constraints_from_matching(name: str) -> None:
    matcher = make(name, ["x", "y"])
    ids = [matcher.add({"x": Range(0, 0.25), "y": Range(0, 1)}, priority=3) for _ in range(3)]
    matcher.update(ids[1], {"x": Range(0.75, 1), "y": Range(0, 1)})
    assert 1 not in matcher.match([0.125, 0.5])
    assert matcher.match([0.875, 0.5]).tolist() == [1]
    matcher.update(ids[1], {"x": Range(0.75, 0.8), "y": Range(0, 1)})
    assert 1 not in matcher.match([0.875, 0.5])
    assert 1 in matcher.match([0.775, 0.5])
    matcher.update(ids[0], {"x": Range(0.25, 0.25, ends="[)"), "y": Range(0, 1)})  # holds nothing
    assert matcher.match([0.125, 0.5]).tolist() == [2]
    matcher.update(ids[0], {"x": Range(0, 0.25), "y": Range(0, 1)})
    assert sorted(matcher.match([0.125, 0.5]).tolist()) == [0, 2]
    assert (len(matcher), matcher.priority[:3].tolist()) == (3, [3, 3, 3])


@pytest.mark.parametrize("name", REMOVABLE)
def test_many_are_updated_at_once_or_none(name: str) -> None:
    random, kinds = np.random.default_rng(13), kinds_of(name)
    matcher, shadow = filled(name, random_subscriptions(random, 400, kinds))
    events = random_events(random, 15, kinds)
    ids = random.permutation(400)[:250].tolist()
    others = random_subscriptions(random, 250, kinds)
    for wrong, table in ((ids[:-1], table_of(others)), ([0, 999], table_of(others[:2]))):
        with pytest.raises((InvalidSubscription, UnknownSubscription)):
            matcher.update_many(wrong, table)
    with pytest.raises(UnknownSubscription, match="twice"):
        matcher.update_many([1, 1], table_of(others[:2]))
    for event in events:
        check(matcher, shadow, event)
    matcher.update_many(ids, table_of(others))
    shadow.saved.update(zip(ids, others, strict=True))
    for event in events:
        check(matcher, shadow, event)


# -- what is declared, and what is refused


@every
def test_capabilities_are_declared(name: str) -> None:
    kind = load(name)
    assert issubclass(kind, Matcher)
    assert kind.capabilities.can_remove == (kind._remove is not Matcher._remove)
    assert kind.capabilities.matches_subscriptions == issubclass(kind, EventMatcher)
    assert len(inspect.getdoc(kind) or "") > 80
    assert any(character.isdigit() for character in ALGORITHMS[name].paper), "no year"


@every
def test_public_methods_are_not_overridden(name: str) -> None:
    final = {key for key, held in vars(Matcher).items() if getattr(held, "__final__", False)}
    assert {"add", "add_many", "remove", "match", "match_many", "memory_bytes"} <= final
    for base in load(name).__mro__:
        if base not in (Matcher, EventMatcher):
            assert not final & set(vars(base))


@every
def test_kinds_that_are_not_declared_are_refused(name: str) -> None:
    examples = {
        Kinds.RANGE: {0: Asked(0.1, 0.2)},
        Kinds.OPEN: {0: Asked(0.1, 0.2, True)},
        Kinds.ONE_SIDED: {0: Asked(0.1, None)},
        Kinds.POINT: {0: Asked(0.1, 0.1)},
        Kinds.NOT_EQUAL: {0: Asked(0.1, 0.1, negated=True)},
    }
    for kind, subscription in examples.items():
        rest = {m: Asked(0.1, 0.2) for m in range(1, N_ATTRIBUTES)}
        matcher = make(name, NAMES)
        if kind in kinds_of(name):
            assert len(matcher.add_many(table_of([subscription | rest]))) == 1
            continue
        with pytest.raises(NotSupported, match=str(kind.name).lower()):
            matcher.add_many(table_of([subscription | rest]))
        assert len(matcher) == 0


class Narrow(Simple):
    """What a matcher does that declares less than all, as none of the registry does."""

    capabilities = Capabilities(kinds=Kinds.RANGE)


def test_a_matcher_refuses_what_it_does_not_declare() -> None:
    matcher = Narrow([*NAMES[:1], Attribute("brand", is_text=True)])
    whole = Asked(0.25, 0.75)
    refused = {
        "open": Asked(0.25, 0.75, True),
        "one_sided": Asked(0.25, None),
        "point": Asked(0.25, 0.25),
        "not_equal": Asked(0.25, 0.25, negated=True),
    }
    for word, asked in refused.items():
        with pytest.raises(NotSupported, match=word):
            Narrow(NAMES[:1]).add_many(table_of([{0: whole}, {0: asked}], 1))
    with pytest.raises(NotSupported, match="text"):
        matcher.add({"a0": Range(0, 1), "brand": "FORD"})
    with pytest.raises(NotSupported, match="partial"):
        matcher.add({"a0": Range(0, 1)})
    with pytest.raises(NotSupported, match="lack"):
        matcher.match({"a0": 0.5})
    assert len(matcher) == 0


@every
def test_partial_subscriptions_and_missing_values_are_accepted_or_refused(name: str) -> None:
    matcher = make(name, NAMES)
    if Kinds.PARTIAL in kinds_of(name):
        matcher.add({"a1": Range(0, 1)})
    else:
        with pytest.raises(NotSupported, match="partial"):
            matcher.add({"a1": Range(0, 1)})
    event = [np.nan, 0.5, 0.5, 0.5]
    if Kinds.MISSING in kinds_of(name):
        matcher.match(event)
    else:
        with pytest.raises(NotSupported, match="lack"):
            matcher.match(event)


@every
def test_wrong_tables_and_events_are_refused(name: str) -> None:
    matcher = make(name, ["x", "y"])
    box = Table.from_boxes([[0.1, 0.1]], [[0.2, 0.2]])
    with pytest.raises(InvalidSubscription, match="has 2"):
        matcher.add_many(Table.from_boxes([[0.1] * 3], [[0.2] * 3]))
    with pytest.raises(InvalidSubscription, match="0 \\(highest\\) to 9"):
        matcher.add_many(box, [10])
    with pytest.raises(InvalidSubscription, match="no attribute 'z'"):
        matcher.add({"z": 1})
    rows = ([0.5], [[0.5, 0.5]], ["a", "b"], [2**60, 1], [2**53 + 1, 0.5], [-(2**63), 1], [[1], 1])
    for event in rows:
        with pytest.raises(InvalidEvent):
            matcher.match(event)
    with pytest.raises(InvalidEvent):
        matcher.match_many([[0.5, 0.5], [0.5]])
    with pytest.raises(InvalidSubscription, match="expected a Table"):
        matcher.add_many([{"x": 1}])
    assert len(matcher) == 0


@every
def test_memory_is_counted(name: str) -> None:
    random = np.random.default_rng(2)
    matcher = make(name, ["x", "y"])
    before = matcher.memory_bytes()
    low = random.random((5_000, 2)) * 0.9
    matcher.add_many(Table.from_boxes(low, low + 0.1))
    matcher.match([0.5, 0.5])
    structure = matcher.memory_bytes(structure_only=True)
    assert matcher.memory_bytes() - before > 5_000 * 2 * 18
    assert 0 < structure < matcher.memory_bytes()
    assert structure >= arrays_of(matcher) * 0.9


def arrays_of(matcher: Matcher) -> int:
    """The bytes of the arrays an algorithm added to those of its base, found by looking."""
    inherited = {"_store", "_reader", "domains", "attributes", "_out", "priority"}
    inherited |= {"_is_alive", "_is_hollow", "_free", "_free_events"}
    own = [held for key, held in vars(matcher).items() if key not in inherited]
    return sum(map(_bytes, own))


def _bytes(held: object) -> int:
    if isinstance(held, np.ndarray):
        return held.nbytes
    if isinstance(held, tuple | list):
        return sum(map(_bytes, held))
    return _bytes(held.arrays) if hasattr(held, "arrays") else 0


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(NotSupported, match="expected one of"):
        make("simpel", ["x"])


PARAMETERS = [
    (name, parameter)
    for name in ALGORITHMS
    for parameter in inspect.signature(load(name)).parameters
    if parameter != "attributes"
]


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
def test_parameters_of_a_wrong_kind_are_refused_with_their_name(name: str, parameter: str) -> None:
    wrong: list[Any] = [-1, 2.5, "q", np.nan, np.inf, [], ["x", "x"], ["q"], 2**70, {}]
    default = inspect.signature(load(name)).parameters[parameter].default
    if default is not None:
        wrong.append(None)
    if default is not True:
        wrong.append(True)
    if parameter == "threshold":
        wrong.remove(np.inf)
    for given in wrong:
        if given == 2**70 and parameter in ("n_indexed", "n_names", "n_letters", "threshold"):
            continue  # as many as there are
        with pytest.raises(InvalidSchema, match=r"expected|need|more than"):
            make(name, ["x", "y"], **{parameter: given})


def test_attributes_are_checked() -> None:
    for wrong in (["x", "x"], [], [Attribute("x") for _ in range(2)]):
        with pytest.raises(InvalidSchema):
            make("simple", wrong)
    for low, high in ((1, 1), (2, 1), (0, np.inf), (np.nan, 1), (-1.7e308, 1.7e308)):
        with pytest.raises(InvalidSchema):
            Attribute("x", low, high)
    wrong: list[tuple[Any, Any]] = [(2**53, 2**53 + 1), (0, 10**400), ("0", 1), (None, 1)]
    for one, other in wrong:
        with pytest.raises(InvalidSchema, match="differ as float64"):
            Attribute("x", one, other)
    names: list[Any] = ["xy", [5], [None], [""]]
    for given in names:
        with pytest.raises(InvalidSchema, match="expected a"):
            make("simple", given)
    with pytest.raises(InvalidSchema, match="lone surrogate"):
        Attribute("\ud800")


# -- tables


def test_tables_refuse_what_contradicts_itself() -> None:
    for start, attribute in (([0, 2], [0]), ([1, 1], [0]), ([0, 1], [4]), ([0, 2], [1, 1])):
        n = len(attribute)
        with pytest.raises(InvalidSubscription):
            Table.from_constraints(start, attribute, [0.0] * n, [1.0] * n, n_attributes=4)
    with pytest.raises(InvalidSubscription, match="low must be high"):
        Table.from_constraints([0, 1], [0], [0.0], [1.0], negated=[1], n_attributes=4)
    with pytest.raises(InvalidSubscription, match="2\\^53"):
        Table.from_boxes([[2**53 + 1]], [[2**60]])
    with pytest.raises(InvalidSubscription, match="shape"):
        Table.from_boxes([[0.0]], [[1.0]], low_open=[[True, False]])
    with pytest.raises(InvalidSubscription, match="no array"):
        Table.from_boxes([[0.0], [0.0]], [[1.0], [1.0]], low_open=[[True, False], [True]])
    with pytest.raises(InvalidSubscription, match="open end"):
        Table.from_constraints([0, 1], [0], [0.5], [0.5], low_open=[1], negated=[1], n_attributes=1)


@pytest.mark.parametrize(
    "bounds",
    [[["1"]], [[True]], [[1j]], [[1.0], [1.0, 2.0]], [[2**53 + 1, 0.5]], [[2**53 + 1, None]]],
)
def test_tables_refuse_bounds_that_are_no_exact_numbers(bounds: Any) -> None:
    with pytest.raises(InvalidSubscription):
        Table.from_boxes(bounds, bounds)


def test_tables_refuse_columns_that_are_no_number_of_an_attribute() -> None:
    with pytest.raises(InvalidSubscription, match="whole numbers"):
        Table.from_constraints([0, 1], [0.5], [0.0], [1.0], n_attributes=4)
    with pytest.raises(InvalidSubscription, match="whole numbers"):
        Table.from_constraints([0, 1.5], [0], [0.0], [1.0], n_attributes=4)
    with pytest.raises(InvalidSubscription, match="ascend"):
        Table.from_constraints([0, 1], [65_536], [0.0], [1.0], n_attributes=70_000)
    far = np.full((1, 65_537), np.nan)
    far[0, -1] = 0.5
    with pytest.raises(InvalidSubscription, match="65,537"):
        Table.from_boxes(far, far)


@every
def test_a_negated_constraint_is_marked_by_any_number_but_zero(name: str) -> None:
    if Kinds.NOT_EQUAL not in kinds_of(name):
        return
    matcher = make(name, ["x"])
    point = [0.5, 0.5, 0.5]
    matcher.add_many(
        Table.from_constraints(
            [0, 1, 2, 3], [0] * 3, point, point, negated=[2, 256, 1], n_attributes=1
        )
    )
    assert sorted(matcher.match([0.7]).tolist()) == [0, 1, 2]


def test_an_interval_that_holds_nothing_is_hollow() -> None:
    inf = np.inf
    low, high = [[0.5], [0.5], [inf], [-inf], [0.5]], [[0.4], [0.5], [inf], [-inf], [0.5]]
    table = Table.from_boxes(
        low,
        high,
        [[False], [True], [True], [False], [False]],
        [[False], [False], [False], [True], [False]],
    )
    assert table.is_hollow.tolist() == [True, True, True, True, False]


# -- subscription matching


@pytest.mark.parametrize("name", EVENT_MATCHERS)
def test_events_are_found_for_subscriptions(name: str) -> None:
    random, kinds = np.random.default_rng(4), kinds_of(name)
    matcher = make(name, NAMES)
    events = random_events(random, 400, kinds)
    matcher.add_events(events)
    matcher.remove_events(list(range(0, 400, 7)))
    left = np.arange(400) % 7 != 0
    for subscription in random_subscriptions(random, 60, kinds):
        expected = np.flatnonzero(accepts(subscription, events) & left)
        found = matcher.match_subscription(table_of([subscription]))
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("name", EVENT_MATCHERS)
def test_expired_events_are_not_found_and_make_room(name: str) -> None:
    matcher = make(name, ["x"])
    ids = matcher.add_events([[0.5]] * 10, until=np.arange(10.0))
    assert matcher.match_subscription({"x": 0.5}, now=4.0).tolist() == ids[4:].tolist()
    assert matcher.n_events == 6
    again = matcher.add_events([[0.5]] * 3)
    assert matcher.n_event_slots == 10
    found = matcher.match_subscription({"x": 0.5}, now=4.0).tolist()
    assert found == sorted([*ids[4:].tolist(), *again.tolist()])
    for wrong in ([99], [-1], [5, 5], [2**40], [4.5], ["5"], np.array([2**32 + 5])):
        with pytest.raises(InvalidEvent):
            matcher.remove_events(wrong)
    assert matcher.n_events == 9


@pytest.mark.parametrize("name", EVENT_MATCHERS)
def test_an_event_is_valid_until_its_end_and_no_longer(name: str) -> None:
    matcher = make(name, ["x"])
    matcher.add_events([[0.5]] * 3, until=[-np.inf, 5.0, np.inf])
    for now, expected in ((-np.inf, [0, 1, 2]), (5.0, [1, 2]), (np.nextafter(5.0, 6.0), [2])):
        assert matcher.match_subscription({"x": Range(0, 1)}, now=now).tolist() == expected
    assert matcher.match_subscription({}, now=np.inf).tolist() == [2]
    assert matcher.match_subscription({"x": Range(0.5, 0.5, ends="[)")}).tolist() == []
    ends: list[Any] = [[1.0, 2.0], [np.nan], ["soon"], 5]
    for wrong in ends:
        with pytest.raises(InvalidEvent, match="until"):
            matcher.add_events([[0.5]], until=wrong)
    times: list[Any] = [None, "now", np.nan]
    for moment in times:
        with pytest.raises(InvalidEvent, match="now"):
            matcher.match_subscription({}, now=moment)
    assert matcher.add_events([]).tolist() == []
    with pytest.raises(NotSupported, match="expected one"):
        matcher.match_subscription(table_of([{}, {}], 1))


@pytest.mark.parametrize("name", EVENT_MATCHERS)
def test_events_at_the_borders_of_cells(name: str) -> None:
    borders = sorted({float(np.nextafter(x, s)) for x in NUMBERS for s in (x, -1, 2)})
    borders += [k / 9 for k in range(10)] + [k / 2**k for k in range(1, 12)]
    events = np.array([[x, y] for x in borders for y in (0.5, np.nan, x)])
    matcher = make(name, ["x", "y"])
    matcher.add_events(events)
    for low in borders[::2]:
        for asked in (Asked(low, low), Asked(low, None), Asked(None, low), Asked(low, low + 0.1)):
            for one in ({0: asked}, {1: asked}, {0: asked, 1: asked}):
                expected = np.flatnonzero(accepts(one, events)).tolist()
                assert matcher.match_subscription(table_of([one], 2)).tolist() == expected


@pytest.mark.parametrize("name", EVENT_MATCHERS)
def test_events_with_texts(name: str) -> None:
    matcher = make(name, [Attribute("brand", is_text=True), "price"])
    codes = [matcher.texts["brand"].add(text) for text in ("FORD", "Fiat", "ford", "λ", "")]
    matcher.add_events([[code, 0.5] for code in [*codes, -1.0, np.nan]])
    for number, text in enumerate(("FORD", "Fiat", "ford", "λ", "")):
        assert matcher.match_subscription({"brand": text}).tolist() == [number]
    assert matcher.match_subscription({"brand": "Opel"}).tolist() == []
    assert len(matcher.texts["brand"]) == 5, "a text was kept that no subscription saved names"
    if Kinds.NOT_EQUAL in kinds_of(name):
        found = matcher.match_subscription({"brand": NotEqual("FORD"), "price": 0.5})
        assert found.tolist() == [1, 2, 3, 4, 5]
        assert matcher.match_subscription({"brand": NotEqual("Opel")}).tolist() == [*range(6)]


@pytest.mark.parametrize("name", EVENT_MATCHERS)
def test_attributes_may_have_the_names_of_columns(name: str) -> None:
    matcher = make(name, ["event_id", "event_until", "event_location"])
    matcher.add_events(np.tile([0.5, np.nan, 0.25], (600, 1)))
    assert len(matcher.match_subscription({"event_id": 0.5, "event_location": 0.25})) == 600
    assert len(matcher.match_subscription({"event_until": 0.5})) == 0


class EventMachine(RuleBasedStateMachine):
    """Events come, are removed and expire while subscriptions come and are matched."""

    name = ""

    def __init__(self) -> None:
        super().__init__()
        self.kinds = kinds_of(self.name)
        self.matcher = make(self.name, NAMES)
        self.kept: dict[int, tuple[Any, float]] = {}
        self.now = 0.0

    @rule(seed=st.integers(0, 2**32 - 1), n=st.sampled_from([1, 1, 30, 700]))
    def add_events(self, seed: int, n: int) -> None:
        random = np.random.default_rng(seed)
        events = random_events(random, n, self.kinds)
        until = self.now + random.integers(-1, 4, n)
        ids = self.matcher.add_events(events, until).tolist()
        living = [id for id, (_, end) in self.kept.items() if end >= self.now]
        assert not set(ids) & set(living), "an id was given to two events"
        self.kept.update(zip(ids, zip(events, until, strict=True), strict=True))

    @rule(seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.0, 0.1, 0.9]))
    def remove_events(self, seed: int, share: float) -> None:
        living = [id for id, (_, end) in self.kept.items() if end >= self.now]
        if living:
            ids = np.random.default_rng(seed).permutation(living)
            gone = ids[: max(1, int(share * len(ids)))].tolist()
            self.matcher.remove_events(gone)
            for id in gone:
                del self.kept[id]

    @rule(seed=st.integers(0, 2**32 - 1))
    def add_subscriptions(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.matcher.add_many(table_of(random_subscriptions(random, 20, self.kinds)))

    @rule(seed=st.integers(0, 2**32 - 1), step=st.sampled_from([0.0, 0.0, 1.0]))
    def match_subscriptions(self, seed: int, step: float) -> None:
        self.now += step
        random = np.random.default_rng(seed)
        living = sorted(id for id, (_, end) in self.kept.items() if end >= self.now)
        events = np.array([self.kept[id][0] for id in living]).reshape(-1, N_ATTRIBUTES)
        for one in random_subscriptions(random, 4, self.kinds):
            found = self.matcher.match_subscription(table_of([one]), now=self.now)
            assert found.tolist() == np.array(living)[accepts(one, events)].tolist()

    @invariant()
    def size(self) -> None:
        living = sum(end >= self.now for _, end in self.kept.values())
        assert living <= self.matcher.n_events <= self.matcher.n_event_slots


@pytest.mark.parametrize("name", EVENT_MATCHERS)
def test_events_that_come_and_go(name: str) -> None:
    machine = type(f"EventMachine_{name}", (EventMachine,), {"name": name})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=10, stateful_step_count=20, deadline=None)
    )


@pytest.mark.parametrize("name", EVENT_MATCHERS)
def test_memory_does_not_grow_when_as_many_events_expire_as_come(name: str) -> None:
    random, sizes = np.random.default_rng(0), []
    matcher = make(name, ["x", "y"])
    for now in range(12):
        matcher.add_events(random.random((300, 2)), until=np.full(300, now))
        assert len(matcher.match_subscription({}, now=now)) == 300
        sizes.append(matcher.memory_bytes())
    assert matcher.n_event_slots <= 600
    assert max(sizes[6:]) <= 2 * max(sizes[:6])
