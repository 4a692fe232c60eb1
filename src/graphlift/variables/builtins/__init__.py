"""Models of builtin functions and of the C functions of the standard library.

Each file enters its models in the registry; nothing else is offered here.
"""
