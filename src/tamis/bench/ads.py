"""Classified ads: generated car and flat ads, and the searches people save for them.

The market of seed 4: many attributes, few of them in any one search, popular marks and cities
far more frequent than others, searches that overlap. The same seed makes the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from math import cos, pi, radians, sin
from random import Random
from typing import Any, TypeVar

from tamis.language import Filter, col
from tamis.model import Event, Point, Polygon, Subscription

# mark: models with their price when new; both in order of popularity.
MODELS: dict[str, dict[str, int]] = {
    "LADA": {"GRANTA": 9_000, "VESTA": 13_000, "NIVA": 12_000},
    "TOYOTA": {"CAMRY": 34_000, "COROLLA": 25_000, "RAV4": 36_000, "PRIUS": 30_000},
    "HYUNDAI": {"SOLARIS": 16_000, "CRETA": 22_000, "TUCSON": 29_000},
    "KIA": {"RIO": 16_000, "CEED": 21_000, "SPORTAGE": 29_000},
    "VOLKSWAGEN": {"POLO": 17_000, "GOLF": 26_000, "PASSAT": 35_000, "TIGUAN": 34_000},
    "FORD": {"FOCUS": 20_000, "MONDEO": 28_000, "KUGA": 27_000, "FIESTA": 16_000},
    "SKODA": {"OCTAVIA": 24_000, "FABIA": 16_000, "SUPERB": 35_000},
    "NISSAN": {"QASHQAI": 26_000, "XTRAIL": 31_000, "ALMERA": 14_000},
    "BMW": {"3ER": 42_000, "5ER": 58_000, "X5": 75_000},
    "MERCEDES": {"CKLASSE": 45_000, "EKLASSE": 60_000, "GLC": 62_000},
    "AUDI": {"A4": 41_000, "A6": 55_000, "Q5": 58_000},
    "RENAULT": {"LOGAN": 12_000, "DUSTER": 18_000, "MEGANE": 21_000},
    "MAZDA": {"CX5": 31_000, "3": 22_000, "6": 29_000},
    "OPEL": {"ASTRA": 20_000, "CORSA": 15_000, "INSIGNIA": 28_000},
    "HONDA": {"CIVIC": 24_000, "CRV": 33_000, "ACCORD": 30_000},
    "PEUGEOT": {"308": 22_000, "408": 21_000, "3008": 29_000},
    "VOLVO": {"XC60": 48_000, "S60": 39_000, "XC90": 65_000},
    "CITROEN": {"C4": 20_000, "C3": 16_000},
}
BODIES = ("sedan", "hatchback", "suv", "wagon", "coupe", "van")
CAR_TAGS = ("one owner", "service book", "winter tyres", "exchange", "credit", "damaged", "tow bar")
FLAT_TAGS = ("balcony", "lift", "parking", "furnished", "pets", "new building", "river view")
CITIES: dict[str, tuple[float, float]] = {
    "Moscow": (37.62, 55.75),
    "Saint-Petersburg": (30.31, 59.94),
    "Novosibirsk": (82.92, 55.03),
    "Yekaterinburg": (60.61, 56.84),
    "Kazan": (49.11, 55.80),
    "Samara": (50.15, 53.20),
    "Rostov": (39.72, 47.23),
    "Krasnodar": (38.98, 45.04),
    "Ufa": (55.96, 54.74),
    "Perm": (56.25, 58.01),
    "Voronezh": (39.20, 51.67),
    "Omsk": (73.37, 54.99),
}
YEAR = 2016
_OPENED = datetime(YEAR, 3, 1, tzinfo=UTC)

T = TypeVar("T")


def generate_ads(n_ads: int, seed: int = YEAR) -> list[Event]:
    """Ads for cars (four of five) and flats.

    >>> ad = generate_ads(1)[0]
    >>> ad.id, {"kind", "price", "region", "location"} <= set(ad.attributes)
    ('ad-00001', True)
    >>> generate_ads(1)[0] == ad
    True
    """
    random = Random(f"ads {seed}")
    ads = []
    for number in range(1, n_ads + 1):
        attributes = _car(random) if random.random() < 0.8 else _flat(random)
        region = _popular(random, list(CITIES))
        attributes["region"] = region
        ads.append(
            Event(
                f"ad-{number:05}",
                attributes,
                time=_OPENED + timedelta(seconds=20 * number),
                location=_near(random, CITIES[region], spread=0.15),
            )
        )
    return ads


def generate_searches(n_searches: int, seed: int = YEAR) -> list[Subscription]:
    """Saved searches; about three of four owners have one, the others several.

    >>> generate_searches(1)[0].id
    's00001'
    """
    random = Random(f"searches {seed}")
    makers, weights = zip(*_SEARCHES, strict=True)
    searches = []
    for number in range(1, n_searches + 1):
        make: Callable[[Random], Filter] = random.choices(makers, weights)[0]
        searches.append(
            Subscription(
                f"s{number:05}",
                make(random),
                priority=random.choices(range(10), (1, 2, 3, 5, 8, 30, 8, 5, 3, 2))[0],
                owner=f"user-{random.randrange(max(1, n_searches * 7 // 10)):05}",
            )
        )
    return searches


# -- ads


def _car(random: Random) -> dict[str, Any]:
    mark, model = _mark_and_model(random)
    age = min(20, int(random.expovariate(1 / 5)))
    price = MODELS[mark][model] * 0.88**age * random.uniform(0.85, 1.15)
    car: dict[str, Any] = {
        "kind": "car",
        "mark": mark,
        "model": model,
        "year": YEAR - age,
        "price": round(price, -2),
        "used": age > 0,
        "tags": random.sample(CAR_TAGS, random.choice((0, 1, 1, 2, 3))),
    }
    if age:
        car["mileage"] = int(age * random.uniform(6_000, 25_000))
    if random.random() < 0.9:  # some sellers leave it out
        car["body"] = random.choice(BODIES)
    return car


def _flat(random: Random) -> dict[str, Any]:
    rooms = random.choices((1, 2, 3, 4, 5), (35, 35, 20, 8, 2))[0]
    area = round(18 + rooms * random.uniform(12, 28), 1)
    return {
        "kind": "flat",
        "rooms": rooms,
        "area": area,
        "floor": random.randint(1, 25),
        "price": round(area * random.uniform(900, 3_500), -3),
        "tags": random.sample(FLAT_TAGS, random.choice((0, 1, 2, 2, 3))),
    }


# -- searches


def _by_model(random: Random) -> Filter:
    mark = _popular(random, list(MODELS))
    models = list(MODELS[mark])
    wanted = random.sample(models, min(len(models), random.choice((1, 1, 2, 2, 3))))
    return col("model").is_in(*wanted) & (col("mark") == mark) & _years(random) & _price(random)


def _by_mark_nearby(random: Random) -> Filter:
    mark = (col("mark") == _popular(random, list(MODELS))) & _place(random)
    return mark & (col("mileage") <= random.choice((20, 40, 60, 100)) * 1_000) & _price(random)


def _by_body(random: Random) -> Filter:
    body = col("body").is_in(*random.sample(BODIES, random.choice((1, 1, 2))))
    return body & _place(random) & _years(random) & _price(random)


def _either_of_two(random: Random) -> Filter:
    (mark, model), (other, other_model) = _mark_and_model(random), _mark_and_model(random)
    first = (col("model") == model) & (col("mark") == mark) & _years(random)
    return first | ((col("model") == other_model) & (col("mark") == other) & _price(random))


def _not_damaged(random: Random) -> Filter:
    mark = (col("mark") == _popular(random, list(MODELS))) & _price(random)
    return mark & ~col("tags").is_in("damaged", "exchange") & (col("tags") == "service book")


def _new_only(random: Random) -> Filter:
    mark, model = _mark_and_model(random)
    return (col("mark") == mark) & col("model").starts_with(model[:2]) & ~col("used").is_true()


def _flat_near_work(random: Random) -> Filter:
    region, place = _spot(random)
    near = col("location").distance(place.lon, place.lat) < random.choice((2, 3, 5, 8)) * 1_000
    return _flats(region) & near & (col("rooms") >= random.randint(1, 3)) & _rent(random)


def _flat_in_quarter(random: Random) -> Filter:
    region, center = _spot(random)
    size = random.uniform(0.01, 0.06)
    turns = sorted(random.uniform(0, 2 * pi) for _ in range(random.randint(5, 9)))
    if max(b - a for a, b in zip(turns, [*turns[1:], turns[0] + 2 * pi], strict=True)) > pi:
        turns = [2 * pi * corner / 6 for corner in range(6)]
    ring = [
        (center.lon + size * cos(t) / cos(radians(center.lat)), center.lat + size * sin(t))
        for t in turns
    ]
    within = col("location").within(Polygon(ring))
    return _flats(region) & within & (col("floor") > 1) & _rent(random)


def _flat_in_box(random: Random) -> Filter:
    region, corner = _spot(random)
    width = random.uniform(0.02, 0.1)
    box = col("location").in_box(corner.lon, corner.lat, corner.lon + width, corner.lat + width)
    area = random.randint(25, 60)
    return _flats(region) & box & col("area").between(area, area + 30, "[)")


def _anything_cheap(random: Random) -> Filter:
    return (col("region") == _popular(random, list(CITIES))) & (
        col("price") < random.randint(1, 6) * 500
    )


_SEARCHES: tuple[tuple[Callable[[Random], Filter], int], ...] = (
    (_by_model, 52),
    (_by_mark_nearby, 8),
    (_by_body, 4),
    (_either_of_two, 10),
    (_not_damaged, 5),
    (_new_only, 3),
    (_flat_near_work, 7),
    (_flat_in_quarter, 6),
    (_flat_in_box, 3),
    (_anything_cheap, 2),
)


def _years(random: Random) -> Filter:
    first = YEAR - random.randint(1, 12)
    return col("year").between(first, first + random.randint(1, 5))


def _price(random: Random) -> Filter:
    low = random.randint(2, 30) * 1_000
    if random.random() < 0.4:
        return col("price") <= low + 5_000
    return col("price").between(low, low * random.uniform(1.1, 1.8) // 100 * 100)


def _rent(random: Random) -> Filter:
    return col("price") <= random.randint(30, 160) * 1_000


def _place(random: Random) -> Filter:
    wanted = {_popular(random, list(CITIES)) for _ in range(random.choice((1, 1, 2)))}
    return col("region").is_in(*sorted(wanted))


def _flats(region: str) -> Filter:
    return (col("region") == region) & (col("kind") == "flat")


# -- shared


def _mark_and_model(random: Random) -> tuple[str, str]:
    mark = _popular(random, list(MODELS))
    return mark, _popular(random, list(MODELS[mark]))


def _popular(random: Random, names: Sequence[T]) -> T:
    """One of the names; the first is the most popular, the eleventh half as much."""
    return random.choices(names, [1 / (rank + 10) for rank in range(len(names))])[0]


def _spot(random: Random) -> tuple[str, Point]:
    """A city, and a place in it."""
    region = _popular(random, list(CITIES))
    return region, _near(random, CITIES[region], spread=0.1)


def _near(random: Random, place: tuple[float, float], spread: float) -> Point:
    lon, lat = place
    return Point(
        round(random.gauss(lon, spread / cos(radians(lat))), 5),
        round(random.gauss(lat, spread), 5),
    )
