#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the image of the assignment.
set -eu
apt-get update
apt-get install -y --no-install-recommends g++ git make python3 python3-venv
cd /autograder/source/course
make setup
.venv/bin/python -m helpers first-kernel # builds the simulator into the image
