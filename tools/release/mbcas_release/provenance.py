"""Where the files of a release come from: an in-toto statement with SLSA provenance."""

import json
import shutil

from .bill import purl
from .programs import owners, unique


def statement(subjects, home, version, commit, parameters, programs, builder, invocation):
    """`subjects` has digests (SHA-256, in hex) by name."""
    tools = owners([shutil.which(name) for name in ("g++", "ld", "python3")])
    packages = unique([*tools, *(package for program in programs
                                 for package in (*program.linked, *program.compiled_in))])
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
                    *({"uri": purl(package)} for package in packages)],
            },
            "runDetails": {"builder": {"id": builder},
                           **({"metadata": {"invocationId": invocation}} if invocation else {})},
        },
    }, indent=1, sort_keys=True).encode()
