"""What maintainers run to fit the numbers of data/ to data/measurements/; no part of the wheel."""
