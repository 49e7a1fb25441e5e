"""The course as a book: `make book` writes build/book/ from the notebooks, kernels, results and docs, with Sphinx.

`assemble` writes Sphinx's source folder, which has the repository's own layout, so that relative links hold in both:
`lessons` adapts notebooks, `kernel_pages` writes a page for each kernel file, `measured` tables of results/,
`citations` the published bugs, `reference` the pages of the API and the command line. `terms` and `docstrings` are
Sphinx extensions; `phrases` finds what `terms` links. `audit` checks the finished pages. The settings are in
docs/conf.py, the sentences in docs/*.md.
"""
