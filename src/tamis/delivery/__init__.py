"""When and how subscriptions are told: schedules, settings, rate caps, notifications. No Spark."""

from tamis.delivery.caps import LEDGER_SCHEMA, apply_caps, empty_ledger
from tamis.delivery.notification import MATCH_TYPE, NOTIFICATION_SCHEMA, notification_id
from tamis.delivery.schedule import Daily, Every, Immediate, Schedule, parse_schedule
from tamis.delivery.settings import (
    LARGEST_DIGEST,
    PIPELINE_SETTINGS,
    RateCap,
    Settings,
    check_delivery,
    due_times,
    parse_settings,
    settings_text,
    told_to_pipeline,
)

__all__ = [
    "LARGEST_DIGEST",
    "LEDGER_SCHEMA",
    "MATCH_TYPE",
    "NOTIFICATION_SCHEMA",
    "PIPELINE_SETTINGS",
    "Daily",
    "Every",
    "Immediate",
    "RateCap",
    "Schedule",
    "Settings",
    "apply_caps",
    "check_delivery",
    "due_times",
    "empty_ledger",
    "notification_id",
    "parse_schedule",
    "parse_settings",
    "settings_text",
    "told_to_pipeline",
]
