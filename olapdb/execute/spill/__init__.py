"""What operators do past their memory: the same answer by way of temporary files."""
