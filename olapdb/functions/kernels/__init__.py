"""Kernels that functions of every package share:

Arrow arrays as numpy, calendars, hashes, types.
"""
