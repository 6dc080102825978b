"""The values an attribute may hold, and what it means for one to cover another."""

from tamis.values.attributes import Attributes, HasAttributes, as_attributes, attributes_of
from tamis.values.coverage import covers
from tamis.values.encoding import value_from_json, value_to_json
from tamis.values.kinds import Kind, Value, check_value, kind_of
from tamis.values.numeric import Number, check_integer, numeric_text
from tamis.values.ranges import Range
from tamis.values.shapes import Point, Polygon, distance_m
from tamis.values.strict_json import load_json, read_json
from tamis.values.timestamps import as_timestamp, parse_timestamp, timestamp_text

__all__ = [
    "Attributes",
    "HasAttributes",
    "Kind",
    "Number",
    "Point",
    "Polygon",
    "Range",
    "Value",
    "as_attributes",
    "as_timestamp",
    "attributes_of",
    "check_integer",
    "check_value",
    "covers",
    "distance_m",
    "kind_of",
    "load_json",
    "numeric_text",
    "parse_timestamp",
    "read_json",
    "timestamp_text",
    "value_from_json",
    "value_to_json",
]
