"""The service benchmark: requests over HTTP, imports and deliveries, with real processes."""
