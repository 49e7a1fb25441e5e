"""Validation: the simulator's reports beside those of NVIDIA's tools, and on programs and labels of others.

    python -m helpers.validation OUT            on a GPU: counts under ncu, bugs under compute-sanitizer, into OUT
    python -m helpers.validation OUT --only ncu        on a GPU: the counts of ncu alone, into OUT
    python -m helpers.validation OUT --only simulator  anywhere: the simulator's counts beside those
    python -m helpers.validation document       anywhere: writes docs/xray_vs_ncu.md from results/xray_vs_ncu.json
    python -m helpers.validation seeds [COUNT]  anywhere: every correct kernel of the course under COUNT seeds
    python -m helpers.validation indigo FOLDER  anywhere: labelled racy and race-free kernels of the Indigo suite
    python -m helpers.validation rodinia FOLDER anywhere: the programs of the Rodinia benchmarks

OUT gets xray_vs_ncu.json and sanitizer_vs_xray.json, which belong in results/, a table of each in Markdown, and the
tools' raw output.
"""
