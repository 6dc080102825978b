"""The filter language: four spellings, one tree, its normal form and its exact meaning."""

from tamis.language.evaluate import evaluate
from tamis.language.explain import Explanation, explain
from tamis.language.json import from_json, to_json
from tamis.language.normal import Conjunction, Literal, normal_form
from tamis.language.parse import parse_filter
from tamis.language.python import Column, col, to_python
from tamis.language.query import parse_query, to_query
from tamis.language.sql import parse_sql
from tamis.language.sql_writer import to_sql
from tamis.language.tree import FALSE, TRUE, Filter, Predicate

__all__ = [
    "FALSE",
    "TRUE",
    "Column",
    "Conjunction",
    "Explanation",
    "Filter",
    "Literal",
    "Predicate",
    "col",
    "evaluate",
    "explain",
    "from_json",
    "normal_form",
    "parse_filter",
    "parse_query",
    "parse_sql",
    "to_json",
    "to_python",
    "to_query",
    "to_sql",
]
