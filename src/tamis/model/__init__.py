"""Events, subscriptions and schemas, with the values they are made of."""

from tamis.model.batches import attributes_of_batch
from tamis.model.event import Event
from tamis.model.event_arrow import EventColumns, events_from_arrow, events_to_arrow
from tamis.model.schema import Attribute, Schema
from tamis.model.subscription import Subscription
from tamis.values import Kind, Point, Polygon, Range, Value, covers

__all__ = [
    "Attribute",
    "Event",
    "EventColumns",
    "Kind",
    "Point",
    "Polygon",
    "Range",
    "Schema",
    "Subscription",
    "Value",
    "attributes_of_batch",
    "covers",
    "events_from_arrow",
    "events_to_arrow",
]
