"""The experiments of the papers, run again: declared a module a paper, run, drawn, reported.

A paper is a module (gem, dexin, pri_rein, mo_tree, yandex) that declares its figures in the terms
of ``figures``: the paper's claim, the ``checks`` that it holds, the data (``datasets``,
``places``) and what is measured (``boxes``, ``determining``, ``sending``, ``kept``, ``searches``).
``runner`` runs cells, ``reading`` reads them back, ``drawing`` and ``report`` make the page.
"""
