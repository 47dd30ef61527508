"""Random view definitions and histories, and checks that what `system.views` says of them is
true."""
