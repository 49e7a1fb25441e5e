"""Validation: the simulator's reports beside those of NVIDIA's tools, and on programs and labels of others.

    python -m helpers.upkeep.validation OUT            on a GPU: counts by ncu, bugs by compute-sanitizer, into OUT
        ... OUT --only ncu                             on a GPU: the counts of ncu alone, into OUT
        ... OUT --only simulator                       anywhere: the simulator's counts beside those
        ... document                                   anywhere: writes docs/xray_vs_ncu.md from results/
        ... judged OUT                                 on a GPU: recorded calls under ncu, their limits beside that
        ... judged                                     anywhere: the limits that results/limits_vs_ncu.json lacks
        ... seeds [COUNT]                              anywhere: every correct kernel of the course under COUNT seeds
        ... indigo FOLDER                              anywhere: labelled racy and race-free kernels of the Indigo suite
        ... rodinia FOLDER                             anywhere: the programs of the Rodinia benchmarks

OUT gets xray_vs_ncu.json and sanitizer_vs_xray.json, which belong in results/, a table of each in Markdown, and the
tools' raw output.
"""
