"""Numba kernels over arrays; they know nothing of filters, events or subscriptions."""
