"""The matching algorithms of the papers, behind one interface.

>>> from tamis.algorithms import ALGORITHMS, make
>>> matcher = make("rein", ["x", "y"], n_buckets=100)
>>> len(matcher)
0
>>> print(ALGORITHMS["rein"].paper)
Qian, Cao, Zhu, Li: REIN, INFOCOM 2014
"""

from tamis.algorithms.registry import ALGORITHMS, Algorithm, load, make

__all__ = ["ALGORITHMS", "Algorithm", "load", "make"]
