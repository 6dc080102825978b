"""The kernels of the algorithms: a module each, calling only their own and ``tamis.kernels``.

So Numba's cache, which knows the file of a kernel but not those it calls, is never stale.
"""
