"""From sources to a loaded extension: `loader.load` and `loader.load_inline`, and their parts."""
