"""Public names come only through __all__, exist, and say what they are."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import tamis

PACKAGES = [
    "tamis",
    "tamis.algorithms",
    "tamis.bench",
    "tamis.cli",
    "tamis.client",
    "tamis.delivery",
    "tamis.errors",
    "tamis.events",
    "tamis.index",
    "tamis.language",
    "tamis.matching",
    "tamis.model",
    "tamis.service",
    "tamis.storage",
    "tamis.values",
]
# DESIGN.md, "Public face".
PROMISED = {"Index", "Subscription", "Event", "col", "parse_filter"}


def all_modules() -> list[str]:
    found = pkgutil.walk_packages(tamis.__path__, "tamis.")
    return ["tamis", *(one.name for one in found if not one.name.endswith("__main__"))]


def public_names(module: ModuleType) -> list[str]:
    return list(getattr(module, "__all__", ()))


def test_the_promised_names_are_there() -> None:
    assert set(tamis.__all__) >= PROMISED


def test_names_load_on_first_use_and_others_do_not_exist() -> None:
    assert set(tamis.__all__) <= set(dir(tamis))
    with pytest.raises(AttributeError, match="has no attribute 'Indx'"):
        tamis.Indx  # noqa: B018
    with pytest.raises(ImportError):
        exec("from tamis import nothing_of_this_name")


@pytest.mark.parametrize("name", PACKAGES)
def test_all_is_sorted_unique_and_resolves(name: str) -> None:
    module = importlib.import_module(name)
    names = public_names(module)
    assert len(names) == len(set(names))
    assert names == sorted(names, key=lambda n: (not n.isupper(), not n[:1].isupper(), n))
    for one in names:
        assert not one.startswith("_")
        assert getattr(module, one) is not None


@pytest.mark.parametrize("name", [n for n in PACKAGES if n != "tamis.errors"])
def test_a_package_shows_no_name_beyond_all(name: str) -> None:
    module = importlib.import_module(name)
    shown = {
        key
        for key, held in vars(module).items()
        if not key.startswith("_")
        and not inspect.ismodule(held)
        and key not in ("annotations", "TYPE_CHECKING", "Any")
    }
    assert shown <= set(public_names(module))


@pytest.mark.parametrize("name", all_modules())
def test_every_module_and_public_name_has_a_docstring(name: str) -> None:
    module = importlib.import_module(name)
    assert inspect.getdoc(module), name
    bare = []
    for key, held in vars(module).items():
        if key.startswith("_") or getattr(held, "__module__", None) != name:
            continue
        if inspect.isfunction(held) and not held.__doc__:
            bare.append(key)
        if inspect.isclass(held):
            own = [k for k, m in vars(held).items() if needs_docstring(k, m) and not m.__doc__]
            bare += [f"{key}.{k}" for k in own] + ([] if held.__doc__ else [key])
    assert bare == []


def needs_docstring(name: str, member: object) -> bool:
    is_callable = isinstance(member, classmethod | staticmethod | property)
    return not name.startswith("_") and (inspect.isfunction(member) or is_callable)


def test_every_error_is_a_tamis_error_and_drawn_in_the_tree() -> None:
    import tamis.errors as errors

    drawing = errors.__doc__ or ""
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), errors.TamisError)
        assert name in drawing
