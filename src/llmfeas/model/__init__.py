"""A model as its operators: what each weighs, computes and caches, and the program that it runs in a step."""
