"""Soak: service, pipeline and sender for an hour under load, some of them killed on the way."""
