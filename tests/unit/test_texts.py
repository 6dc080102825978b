"""Texts: those that Python has, those in arrays, and the newest of several numbers."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from tamis import Index, Subscription
from tamis.errors import UnknownSubscription
from tamis.index import index as index_module
from tamis.kernels.texts import directory_of, find_in_parts
from tamis.slots import texts as texts_module
from tamis.slots.texts import Counted, Stored, Texts


def _numbers(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


@pytest.mark.parametrize("base", [None, ["b0", "b1", "ü"]])
@pytest.mark.parametrize("n_recent", [None, 1, 3, 7])
def test_the_newest_number_is_found_wherever_it_is(
    base: list[str] | None, n_recent: int | None
) -> None:
    random = np.random.default_rng(7)
    texts = Texts(None if base is None else Stored.of(base), n_recent)
    every = list(base or ())
    for _ in range(200):
        text = "né"[: random.integers(1, 3)] + str(random.integers(0, 40))
        assert texts.append(text) == len(every)
        every.append(text)
        assert len(texts) == len(every)
        newest = {held: number for number, held in enumerate(every)}
        assert texts.number_of(text) == len(every) - 1
        wanted = every[random.integers(0, len(every))]
        assert texts.number_of(wanted) == newest[wanted]
        assert texts.number_of("nobody") == -1
    numbers = random.permutation(len(every)).astype(np.int32)
    assert texts.texts_of(numbers) == [every[number] for number in numbers]
    assert texts.array().to_pylist() == every
    assert texts.array_of(numbers[:9]).to_pylist() == [every[number] for number in numbers[:9]]
    assert [texts.text_of(number) for number in range(5)] == every[:5]


def test_what_has_no_letters_of_its_own_stays_as_it_is() -> None:
    texts = Texts(Counted(3), 2)
    for text in ("a", "b", "c", "d"):
        texts.append(text)
    assert texts.texts_of(_numbers(6, 1, 3)) == ["d", "1", "a"]
    assert (texts.number_of("c"), texts.number_of("2"), texts.number_of("3")) == (5, 2, -1)


def test_too_many_letters_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts_module, "_MOST_LETTERS", 10)
    texts = Texts(n_recent=2)
    for text in ("aaa", "bbb", "ccc", "ddd", "eee"):
        texts.append(text)
    assert texts.texts_of(_numbers(0, 1, 2, 3, 4)) == ["aaa", "bbb", "ccc", "ddd", "eee"]
    assert [texts.number_of(text) for text in ("bbb", "ddd", "x")] == [1, 3, -1]


def test_the_base_that_was_given_is_not_changed() -> None:
    base = Stored.of(["a", "b"])
    texts = Texts(base, 1)
    texts.append("a")
    assert (texts.number_of("a"), base.number_of("a"), base.n) == (2, 0, 2)


def test_parts_are_looked_through_from_the_last() -> None:
    parts = [Stored.of(held) for held in (["a", "b"], [], ["b", "c" * 300])]
    directory = directory_of(parts)

    def found(n_parts: int, text: str) -> tuple[int, int]:
        return find_in_parts(directory, n_parts, texts_module.letters_of(text))

    assert found(3, "b") == (2, 0)
    assert found(2, "b") == (0, 1)
    assert found(3, "c" * 300) == (2, 1)
    assert found(3, "c" * 299) == (-1, -1)
    assert found(0, "a") == (-1, -1)


def test_ids_are_found_while_they_go_into_arrays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(index_module, "N_RECENT_IDS", 16)
    index = Index()
    index.add_many(Subscription(f"s{n}", f"x < {n}.5") for n in range(40))
    is_over, troubles = threading.Event(), []

    def look() -> None:
        while not is_over.is_set():
            try:
                assert all(f"s{n}" in index for n in range(40))
                assert sorted(index.match({"x": 38.0})) == ["s38", "s39"]
                assert index["s7"].id == "s7"
            except BaseException as trouble:
                troubles.append(trouble)
                return

    readers = [threading.Thread(target=look) for _ in range(2)]
    for one in readers:
        one.start()
    for change in range(1_000):
        index.update(Subscription(f"s{change % 40}", f"x < {change % 40}.5"))
    is_over.set()
    for one in readers:
        one.join()
    assert troubles == []
    index.remove("s3")
    with pytest.raises(UnknownSubscription):
        index["s3"]
    index.save(tmp_path / "saved")
    opened = Index.open(tmp_path / "saved")
    opened.add_many(Subscription(f"t{n}", "x < 0.0") for n in range(40))
    opened.update(Subscription("s5", "x > 0.5"))
    assert "s3" not in opened
    assert sorted(opened.match({"x": 38.0})) == ["s38", "s39", "s5"]


@pytest.mark.parametrize("odd", ["plain", "", "ä😀", "a\0b", "\0"])
def test_many_texts_at_once(odd: str) -> None:
    texts = [odd, *(f"text {i}" for i in range(40))]
    numbers = np.array([*range(40, -1, -1), 0, 7, 7], np.int32)
    assert Stored.of(texts).texts_of(numbers) == [texts[n] for n in numbers.tolist()]


def test_many_numbers_as_texts_at_once() -> None:
    edges = [0, *(10**k + d for k in range(1, 10) for d in (-1, 0)), 2**31 - 1]
    assert Counted(2**31 - 1).texts_of(np.array(edges, np.int32)) == list(map(str, edges))
