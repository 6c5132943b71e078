"""The calculator as a page: what a browser runs of it, and the folder that any host of files serves."""
