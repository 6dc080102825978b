"""Views for teaching: how an algorithm matches one event, step by step, as a picture."""
