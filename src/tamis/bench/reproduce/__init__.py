"""The experiments of the papers, run again: declared a module a paper, run, drawn, reported.

    figures.py               what a paper, a figure, an experiment and a line are
    gem.py … yandex.py       the papers: their figures, their claims, their settings
    datasets.py, places.py   the data the papers describe
    boxes.py … searches.py   what is measured in a cell
    runner.py                runs cells, a result file each
    checks.py                what of a claim holds
    drawing.py, report.py    pictures, and the page docs/reproduction.md
"""
