"""Where the files of a release come from: an in-toto statement with SLSA provenance."""

import json

from .bill import purl
from .programs import owners, program, tools


def statement(subjects, home, version, commit, parameters, programs, builds, builder, invocation):
    """`subjects` has digests (SHA-256, in hex) by name; `programs` are the names of binaries."""
    packages = set()
    for build in builds:
        packages |= owners(tools(build), build)
        for name in programs:
            packages |= program(name, build).linked | program(name, build).compiled_in
    return json.dumps({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}}
                    for name, digest in sorted(subjects.items())],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{home}/blob/v{version}/docs/releasing.md",
                "externalParameters": parameters,
                "resolvedDependencies": [
                    {"uri": f"git+{home}", "digest": {"gitCommit": commit}},
                    *({"uri": uri} for uri in sorted(set(map(purl, packages))))],
            },
            "runDetails": {"builder": {"id": builder},
                           **({"metadata": {"invocationId": invocation}} if invocation else {})},
        },
    }, indent=1, sort_keys=True).encode()
