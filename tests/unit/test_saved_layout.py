"""What files of an index take for granted: another layout must have another format."""

from __future__ import annotations

from tamis.index import snapshot
from tamis.kernels import (
    dense_build,
    polygons,
    sparse_axes,
    sparse_groups,
    sparse_records,
    sparse_strip_tests,
    sparse_strips,
    sparse_words,
)


def test_the_layout_of_files_is_that_of_their_format() -> None:
    """Wherever one of these changes, files of before would be read wrongly: raise FORMAT."""
    dense = (
        dense_build.LINE, dense_build.GROUP, dense_build.N_RANKS, dense_build.N_CODES,
        dense_build.FIELD_BITS, dense_build.FIELDS, dense_build.N_BUCKETS, dense_build.N_COARSE,
    )  # fmt: skip
    sparse = (
        sparse_axes.N_EDGES, sparse_axes.MAX_EXACT, sparse_groups.MAX_SCAN, sparse_groups.N_BUCKETS,
        sparse_records.MAX_RECORD, sparse_words.BUCKET_SHIFT, sparse_strips.BLOCK,
        sparse_strips.STRIP, sparse_strip_tests.N_ITEMS, sparse_strip_tests.N_MARKS,
        sparse_strip_tests.N_STEPS,
    )  # fmt: skip
    shapes = (polygons.HEADER, polygons.CHAIN, polygons.MOST_EDGES)
    assert (snapshot.FORMAT, dense, sparse, shapes) == (
        16,
        (512, 2, 2048, 1024, 11, 5, 40, 128),
        (255, 32_000, 96, 64, 8, 10, 16, 192, 4, 128, 254),
        (6, 6, 63),
    )
