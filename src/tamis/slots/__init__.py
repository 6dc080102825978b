"""Slots: filters and events as numbers, for whoever finds one by the other.

The index and ``tamis.algorithms.filters`` both turn conjunctions into slots and events into the
values of columns; they differ in the structure that finds slots by the values.
"""
