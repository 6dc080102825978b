"""``tamis doctor``: what of the environment is missing or wrong, and what to do about it."""

from tamis.cli.doctor.report import run_doctor
from tamis.cli.doctor.subject import Subject

__all__ = ["Subject", "run_doctor"]
