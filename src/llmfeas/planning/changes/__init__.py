"""What can change in a request that does not work, and what each change gives up."""
