"""The benchmark of space and time: subscriptions that move, events that stay valid."""
