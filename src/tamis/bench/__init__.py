"""Workloads, and what is measured on them."""
