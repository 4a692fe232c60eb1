"""Guards: what has to hold before the code of a capture may run again, in three faces.

`guard.py` says what a guard is, `kinds/` what can be assumed, `places.py` how places are read, `compile.py`
makes the C program, `explain.py` says what failed.
"""
