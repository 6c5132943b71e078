"""Names as people, files, servers and clouds write them, and what of the catalog they mean."""
