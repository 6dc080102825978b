"""The service: what takes subscriptions and events over HTTP, and what sends notifications."""
