"""The operations of the interpreter on values, known or not: one function a CPython abstract-object function.

Handlers and trackers ask these and never a tracker's methods directly. They realise their operands, choose
between the operands' types as CPython does, and know nothing of the kinds of trackers there are.
"""
