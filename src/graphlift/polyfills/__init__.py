"""Plain Python that stands for C code of CPython; inlined by the interpreter like a program of the user."""
