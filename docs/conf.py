"""Settings of the book: `make book` has Sphinx read them, with the pages that helpers/pages/book assembles."""

project = "The Kernel Ladder"
author = "The Kernel Ladder authors"
project_copyright = "2026, The Kernel Ladder authors"
language = "en"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_design",
    "sphinx_copybutton",
    "helpers.pages.book.docstrings",
    "helpers.pages.book.terms",
]

nb_execution_mode = "off"  # the committed outputs are those of a GPU
nb_merge_streams = True
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # a lesson's heading may skip a level after an output

autodoc_typehints = "none"  # signatures have the names, the text below says what they mean
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
nitpicky = True

html_theme = "sphinx_book_theme"
html_title = project
html_logo = html_favicon = "_static/icon.svg"
html_static_path = ["_static", "../kernel_xray/src/kernel_xray/report/xray.css"]
html_css_files = ["book.css", "xray.css"]
html_js_files = ["book.js"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": project, "alt_text": "a ladder"},
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_toc_level": 2,
    "navbar_persistent": [],  # the sidebar has the search button
    "pygments_light_style": "github-light-high-contrast",
    "pygments_dark_style": "github-dark-high-contrast",
}
copybutton_exclude = ".linenos, .gp, .go"
