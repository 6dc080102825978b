"""The one interface of all matching algorithms, and the tables they receive."""

from tamis.matching.attributes import Attribute, TextCodes
from tamis.matching.capabilities import Capabilities, Kinds, Order
from tamis.matching.events import EventMatcher
from tamis.matching.matcher import Matcher
from tamis.matching.matches import Matches
from tamis.matching.reading import NotEqual
from tamis.matching.slot_lists import SlotLists
from tamis.matching.table import Table

__all__ = [
    "Attribute",
    "Capabilities",
    "EventMatcher",
    "Kinds",
    "Matcher",
    "Matches",
    "NotEqual",
    "Order",
    "SlotLists",
    "Table",
    "TextCodes",
]
