#!/usr/bin/env bash
# The entry point of PrairieLearn's external grader, in the image that image/Dockerfile describes.
set -eu
root=$${GRADE:-/grade}
out=$$(mktemp -d)
cd "$${COURSE:-/course}"
.venv/bin/python -m helpers grade "$$root/student" --single --points "$$root/tests/points.yml" \
  --format prairielearn --out "$$out"
mkdir -p "$$root/results"
cp "$$out/prairielearn/results.json" "$$root/results/results.json"
