"""Compiled kernels, written in C and called by ctypes, for loops that numpy needs many passes for.

`build` compiles the library, `library` finds it and says which form runs.  Each kernel has a form in
numpy or Arrow, kept beside the call of the kernel: without the library the answers are the same, bit
by bit, and slower.
"""
