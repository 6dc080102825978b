"""The headline benchmark: some cells of every part, run by ``make bench``, and their page."""
