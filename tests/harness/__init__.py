"""Code that the tests share: the oracle, and checks over a whole warehouse."""
