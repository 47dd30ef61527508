"""What a commit means to views: which rows and slices it invalidates, and what it requires."""
