"""Index files: the array files of an index; the manifest has its columns, schema and parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tamis.index.archive import Archive, Base, BoxBase, OutlineBase, TextBase
from tamis.index.blocks import Block
from tamis.index.building import block_of
from tamis.index.compaction import Parts
from tamis.index.moving import MovingParts
from tamis.index.rows import Chains, Rows
from tamis.kernels.emit import RowTable
from tamis.kernels.moving import Base as Places
from tamis.kernels.moving import Entries, Movers
from tamis.kernels.scan import Boxes, Constraints
from tamis.kernels.tests import Tests
from tamis.model import Schema
from tamis.slots.array_files import Array, ArrayReader, ArrayWriter, Kind, reading, writing
from tamis.slots.columns import Columns
from tamis.slots.texts import Counted, Stored, Texts

FORMAT = 16  # a layout of blocks that changes needs another one: tests know this one's

_INDEX = Kind(FORMAT, "columns", "index", "an index", "save the index anew")


def write(path: Path, parts: Parts, schema: Schema | None) -> None:
    """Write a directory that appears whole or not at all."""
    with writing(path, _INDEX) as files:
        _Writer(files).write(parts, schema)


def read(path: Path, verify: bool = False) -> tuple[Parts, Schema | None]:
    """The parts of an index, memory-mapped, and its schema; every byte checked if so wanted."""
    with reading(path, _INDEX, verify) as files:
        held = files.manifest["schema"]
        schema = None if held is None else Schema(held)
        return _Reader(files).read(), schema


class _Writer:
    def __init__(self, files: ArrayWriter) -> None:
        self._files, self._save = files, files.save

    def write(self, parts: Parts, schema: Schema | None) -> None:
        rows = parts.rows
        for name, array in rows.table._asdict().items():
            self._save(f"rows.{name}", array)
        for name in Chains._fields:
            has_some = rows.chains is not None and rows.n_followers
            held = getattr(rows.chains, name) if has_some else np.zeros(0, np.int32)
            self._save(f"chains.{name}", held)
        moving = _moving_arrays(parts.moving)
        for name, array in moving.items():
            self._save(name, array)
        manifest = {
            "n_rows": rows.n_rows,
            "schema": None if schema is None else schema.to_json(),
            "columns": parts.columns.names,
            "ids": self._texts("ids", parts.ids),
            "dictionaries": [
                {"attribute": attribute, "length": length, **self._texts(f"codes.{i}", texts)}
                for i, (attribute, length, texts) in enumerate(parts.columns.dictionaries())
            ],
            "blocks": [self._block(f"block.{i}", block) for i, block in enumerate(parts.blocks)],
            "archive": self._archive(parts),
            "moving": list(moving),
        }
        self._files.finish(manifest)

    def _texts(self, name: str, texts: Texts) -> dict[str, Any]:
        base = texts.stored()
        for part, array in base.arrays().items():
            self._save(f"{name}.{part}", array)
        return {"name": name, "n": base.n, "is_counted": isinstance(base, Counted)}

    def _block(self, name: str, block: Block) -> dict[str, Any]:
        arrays = {
            **{f"bounds.{part}": array for part, array in block.bounds._asdict().items()},
            **{f"tests.{part}": array for part, array in block.tests._asdict().items()},
            "rows": block.row_of_slot,
            **{f"own.{part}": array for part, array in block.arrays().items()},
        }
        for part, array in arrays.items():
            self._save(f"{name}.{part}", array)
        return {
            "name": name,
            "kind": block.kind,
            "is_boxes": isinstance(block.bounds, Boxes),
            "own": list(block.arrays()),
        }

    def _archive(self, parts: Parts) -> dict[str, Any]:
        archive = parts.archive
        if archive.recent:
            archive = archive.stored(np.arange(len(archive), dtype=np.int32))
        if archive.places is not None:
            self._save("places", archive.places)
        bases = []
        for i, base in enumerate(archive.bases):
            bases.append({"name": f"base.{i}", **self._base(f"base.{i}", base, parts.blocks)})
        return {"bases": bases, "has_places": archive.places is not None}

    def _base(self, name: str, base: Base, blocks: Any) -> dict[str, Any]:
        for part, array in base.arrays().items():
            self._save(f"{name}.{part}", array)
        if not isinstance(base, BoxBase):
            return {"kind": base.kind}
        # Boxes are mostly still those of a block, and then not written twice.
        for i, block in enumerate(blocks):
            if block.bounds is base.bounds:
                return {"kind": base.kind, "attributes": base.attributes, "block": i}
        for part, array in base.bounds._asdict().items():
            self._save(f"{name}.bounds.{part}", array)
        is_boxes = isinstance(base.bounds, Boxes)
        return {"kind": base.kind, "attributes": base.attributes, "is_boxes": is_boxes}


class _Reader:
    def __init__(self, files: ArrayReader) -> None:
        self.manifest, self._load = files.manifest, files.load

    def read(self) -> Parts:
        manifest = self.manifest
        # Deaths and flags are written to: their pages are copied when that happens.
        table = RowTable(*(self._load(f"rows.{name}", "c") for name in RowTable._fields))
        blocks = [self._block(held) for held in manifest["blocks"]]
        codes = {
            (held["attribute"], held["length"]): self._texts(held)
            for held in manifest["dictionaries"]
        }
        names = [(str(attribute), int(lane)) for attribute, lane in manifest["columns"]]
        chains = Chains(*(self._load(f"chains.{name}", "c") for name in Chains._fields))
        return Parts(
            Columns.of(names, codes),
            Rows(table, int(manifest["n_rows"]), chains if len(chains.leader) else None),
            blocks,
            self._texts(manifest["ids"]),
            self._archive(manifest["archive"], blocks),
            self._moving() if manifest["moving"] else None,
        )

    def _moving(self) -> MovingParts:
        held = {name: self._load(name, "c") for name in self.manifest["moving"]}
        tests = Tests(*(held[f"movers.tests.{part}"] for part in Tests._fields))
        entries = Entries(*(held[f"places.entries.{part}"] for part in Entries._fields))
        card, radius_m, slots, terms = (held[f"movers.{part}"] for part in Movers._fields[:-1])
        fence, key, first = (held[f"places.{part}"] for part in Places._fields[:-1])
        return MovingParts(
            Movers(card, radius_m, slots, terms, tests), Places(fence, key, first, entries)
        )

    def _texts(self, held: dict[str, Any]) -> Texts:
        if held["is_counted"]:
            return Texts(Counted(held["n"]))
        return Texts(
            Stored(
                *(self._load(f"{held['name']}.{part}") for part in ("letters", "offsets", "table"))
            )
        )

    def _bounds(self, name: str, is_boxes: bool) -> Constraints | Boxes:
        kind = Boxes if is_boxes else Constraints
        return kind(*(self._load(f"{name}.bounds.{part}") for part in kind._fields))

    def _block(self, held: dict[str, Any]) -> Block:
        name = held["name"]
        bounds = self._bounds(name, held["is_boxes"])
        tests = Tests(*(self._load(f"{name}.tests.{part}") for part in Tests._fields))
        own = {part: self._load(f"{name}.own.{part}") for part in held["own"]}
        return block_of(held["kind"], bounds, self._load(f"{name}.rows"), tests, own)

    def _archive(self, held: dict[str, Any], blocks: list[Block]) -> Archive:
        bases: list[Base] = []
        for one in held["bases"]:
            name = one["name"]
            if one["kind"] == "texts":
                bases.append(TextBase(self._load(f"{name}.letters"), self._load(f"{name}.offsets")))
                continue
            if one["kind"] == "outlines":
                bases.append(
                    OutlineBase(*(self._load(f"{name}.{part}") for part in OutlineBase.PARTS))
                )
                continue
            bounds = (
                blocks[one["block"]].bounds
                if "block" in one
                else self._bounds(name, one["is_boxes"])
            )
            opened = self._load(f"{name}.opened")
            bases.append(BoxBase(tuple(one["attributes"]), bounds, opened))
        return Archive(bases, self._load("places") if held["has_places"] else None)


def _moving_arrays(moving: MovingParts | None) -> dict[str, Array]:
    """The arrays of the subscriptions that have a place, by what their files are called."""
    if moving is None:
        return {}
    movers, base = moving
    groups = {
        "movers": (movers._fields[:-1], movers[:-1]),
        "movers.tests": (Tests._fields, movers.tests),
        "places": (base._fields[:-1], base[:-1]),
        "places.entries": (Entries._fields, base.entries),
    }
    return {
        f"{group}.{part}": array
        for group, (parts, arrays) in groups.items()
        for part, array in zip(parts, arrays, strict=True)
    }
