"""CPython's bytecode: read, followed, written and checked, on each supported Python.

A library of its own: it needs no torch and knows nothing of trackers, graphs or guards. Where the versions
differ is data in `versions/`; no other module asks which Python is running.
"""
