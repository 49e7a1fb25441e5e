"""A worker without a judge: the text of an answer says which verdict it gets.

It is started as `python stand_in.py LOG`, and appends the exercise and text of each request to the file LOG. Without
LOG it ends before it is ready.
"""

import json
import os
import sys
import time
from pathlib import Path

if len(sys.argv) < 2:
    sys.exit(1)
print("ready", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    text = request["text"]
    with open(sys.argv[1], "a", encoding="utf-8") as log:
        log.write(f"{request['exercise']} {text}\n")
    if "ends" in text or ("unlucky" in text and Path(sys.argv[1]).read_text(encoding="utf-8").count(text) < 3):
        os._exit(3)
    if "babbles" in text:
        print("accepted", flush=True)
        continue
    if "lies" in text:
        request["exercise"] = "vector_scale"
    if "slow" in text:
        time.sleep(0.05)
    kind = "accepted" if "right" in text or "[solution" in text else "rejected"
    table = "<table>waste</table>" if "wasteful" in text else ""
    message = "5 cases" if kind == "accepted" else f"n = 5: 1 of 5 elements is wrong\n[{len(text)}]: expected 1"
    reply = {"exercise": request["exercise"], "kind": kind, "message": message, "printed": "", "table": table}
    print(json.dumps(reply), flush=True)
