"""One page about runs, benchmarks and evaluations, which needs nothing else: `codea1 report`.

`folders` tells what a folder holds, `runs` and `episodes` read runs, `curves` and `charts` draw, `tables` has what is
sorted, and `document` puts the page together from the templates in `page/`.
"""
