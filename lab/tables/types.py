"""The five tables of document T, with columns of the types that format v3 adds. The cases' own steps make them."""

from __future__ import annotations

from decimal import Decimal

from lab.model import Table
from lab.values import Nanoseconds

INSTANTS = ("2026-10-07T09:00:00.123456789", "2026-10-07T09:00:00.123456790", "2026-10-07T09:00:01.000000001")
PRICED = (("AAPL", "189.12345678"), ("AAPL", "189.12345679"), ("MSFT", "415.00000001"))
TRADES = Table(
    "trades",
    format_version=3,
    columns=(
        ("trade_id", "long"),
        ("executed_ntz", "timestamp_ns"),
        ("executed_ltz", "timestamptz_ns"),
        ("executed_ts", "timestamptz_ns"),
        ("symbol", "string"),
        ("price", "decimal(18, 8)"),
    ),
    rows=tuple(
        (
            trade,
            Nanoseconds(instant),
            Nanoseconds(f"{instant}+00:00"),
            Nanoseconds(f"{instant}+00:00"),
            symbol,
            Decimal(price),
        )
        for trade, instant, (symbol, price) in zip((1, 2, 3), INSTANTS, PRICED, strict=True)
    ),
    given=False,
)

# Points and an area of the document as well-known binary: (longitude, latitude) in WGS 84.
POINTS = (
    "01010000005F984C158C7861408104C58F31D74140",
    "0101000000713D0AD7A37861408195438B6CD74140",
    "010100000071AC8BDB687661402AA913D044D84140",
)
AREA = (
    "01030000000100000005000000B81E85EB517861406666666666D64140CDCCCCCCCC7861406666666666D64140CDCCCCCCCC786140B81E85EB"
    "51D84140B81E85EB51786140B81E85EB51D84140B81E85EB517861406666666666D64140"
)
VEHICLE_TELEMETRY = Table(
    "vehicle_telemetry",
    format_version=3,
    columns=(
        ("event_id", "string"),
        ("vehicle_id", "string"),
        ("position", "geometry"),
        ("service_area", "geography"),
    ),
    rows=tuple(
        (f"EVT-00{place}", vehicle, bytes.fromhex(point), bytes.fromhex(area) if area else None)
        for place, (vehicle, point, area) in enumerate(
            zip(("VAN-01", "BIKE-07", "VAN-02"), POINTS, (AREA, AREA, None), strict=True), start=1
        )
    ),
    given=False,
)

STAGING_EVENTS = Table(
    "staging_events",
    format_version=3,
    columns=(("event_id", "long"), ("payload", "string"), ("reserved", "unknown")),
    rows=((1, "first", None), (2, "second", None)),
    given=False,
)

ORDERS = Table(
    "orders",
    format_version=3,
    columns=(("order_id", "long"), ("amount", "decimal(10, 2)"), ("currency", "string")),
    rows=((1, Decimal("1000.00"), "JPY"), (2, Decimal("2000.00"), "JPY")),
    given=False,
)

# As JSON with its keys in order, which is how every engine here prints a variant.
DOCUMENTS = (
    '{"action":"page_view","duration_ms":350,"page":"/products","user_id":"u-1234"}',
    '{"action":"purchase","items":[{"qty":2,"sku":"A100"}],"total":49.99,"user_id":"u-5678"}',
)
EVENTS = Table(
    "events",
    format_version=3,
    columns=(("event_id", "long"), ("source", "string"), ("event_data", "variant")),
    rows=((1, "web-app", DOCUMENTS[0]), (2, "mobile-app", DOCUMENTS[1])),
    given=False,
)
