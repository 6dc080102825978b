"""The walk: when an event and a subscription are where, and what each stage costs."""
