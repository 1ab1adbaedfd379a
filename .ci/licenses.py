# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0

"""Refuses Rust crates whose licence, as `cargo metadata` tells it, may not be linked with."""

import json
import re
import sys

ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0",
    "CDLA-Permissive-2.0", "ISC", "MIT", "MIT-0", "MPL-2.0", "Unicode-3.0", "Unlicense", "Zlib",
}


def allowed(expression):
    """One of the alternatives of an SPDX expression has only licences that are allowed."""
    while found := re.search(r"\(([^()]*)\)", expression):
        verdict = "MIT" if allowed(found[1]) else "refused"
        expression = expression[: found.start()] + verdict + expression[found.end() :]
    return any(
        all(name.strip() in ALLOWED for name in alternative.split(" AND "))
        for alternative in re.split(r" OR |/", expression)
    )


packages = json.load(sys.stdin)["packages"]
refused = [f"{p['name']} {p['version']}: {p['license']}" for p in packages if not allowed(p["license"] or "none")]
if refused:
    sys.exit("licences that may not be linked with:\n" + "\n".join(refused))
print(f"licences of {len(packages)} crates are fine")
