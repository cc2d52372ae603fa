"""Problem sets: the bundled starter set, the layouts of public data sets, and the check of a set."""
