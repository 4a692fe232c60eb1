"""Programs made at random, run plainly and compiled, with everything compared.

`grammar` holds what may be written, `writing` fills it in, `statements` and `definitions` make what has
blocks, `programs` puts a whole program together, `running` runs it twice, `shrinking` makes a failing one
small, and `campaign` does it a hundred thousand times (``make fuzz``).
"""
