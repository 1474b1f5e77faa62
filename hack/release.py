#!/usr/bin/env python3
"""Makes a release from a clean checkout of its tag: binaries, images, manifests by digest, SBOM, provenance, signatures.

    hack/release.py VERSION [--registry quay.io/openshift-hyperfleet] [--out dist] [--no-images]

OUT gets the binaries, SHA256SUMS, NAME.cdx.json (the SBOM of each binary, CycloneDX), deploy/ with every image by its digest,
provenance.json (SLSA, of binaries and images), and the signatures. Needed: cargo-deny, cargo-cyclonedx, podman, cosign with an
identity (COSIGN_KEY, or keyless). --no-images leaves out images, manifests and signatures. A step that fails leaves OUT without
provenance.json, and the whole may be run again.
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Each binary, which is also a target of the Containerfile, and its folder in target/.
BINARIES = {"pull-secret": "release", "global-pull-secret": "release", "sync-global-pullsecret": "node",
            "keyless-credential-provider": "node"}


def fail(message):
    sys.exit(f"error: {message}")


def run(*command, **options):
    """Runs a command; its output is for people, unless it is captured."""
    print("+", *command, file=sys.stderr, flush=True)
    done = subprocess.run([str(word) for word in command], cwd=ROOT, text=True, **options)
    if done.returncode:
        fail(f"`{command[0]} {command[1]}` ended with {done.returncode}; see its output above")
    return (done.stdout or "").strip()


def output(*command):
    return run(*command, stdout=subprocess.PIPE)


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check(version, tools):
    """The tag, a clean tree, the version of the workspace, tools, and base images by digest where images are built."""
    if not re.fullmatch(r"\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?", version):
        fail(f"{version} is no semantic version; name one such as 1.2.3")
    if changed := output("git", "status", "--porcelain"):
        fail(f"the tree is not clean; commit or remove:\n{changed}")
    if output("git", "tag", "--points-at", "HEAD", "--list", f"v{version}") != f"v{version}":
        fail(f"HEAD is not tagged v{version}; check the tag out (docs/operations/releasing.md)")
    found = re.search(r'^\[workspace\.package\]\n(?:.+\n)*?version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.M)
    if found[1] != version:
        fail(f"Cargo.toml says version {found[1]}, not {version}; set it, and tag that commit")
    for tool in tools:
        if not shutil.which(tool):
            fail(f"{tool} is not on PATH; install it, or see --help for what can be left out")


def check_base_images():
    lines = (ROOT / "Containerfile").read_text().splitlines()
    stages = {line.split()[3] for line in lines if re.match(r"FROM \S+ AS ", line)}
    for number, line in enumerate(lines, 1):
        image = line.split()[1] if line.startswith("FROM ") else None
        if image and image not in stages and "@sha256:" not in image:
            fail(f"Containerfile:{number}: {image} is not named by digest; append the one that\n"
                 f"  skopeo inspect --format '{{{{.Digest}}}}' docker://{image}\nprints, and commit that")


def check_advisories():
    """No dependency has a known vulnerability or is withdrawn; fetches the database of advisories."""
    run("cargo", "deny", "--log-level", "warn", "check", "advisories")


def build(version, out):
    """Builds the binaries and their SBOMs into OUT; returns the digest of each file."""
    run("make", "build", f"VERSION={version}")
    run("cargo", "cyclonedx", "--format", "json", "--describe", "binaries", "--no-build-deps")
    for name, profile in BINARIES.items():
        shutil.copy2(ROOT / "target" / profile / name, out / name)
        shutil.copy2(ROOT / "crates" / name / f"{name}_bin.cdx.json", out / f"{name}.cdx.json")
    for leftover in ROOT.glob("*/**/*_bin.cdx.json"):
        if out not in leftover.parents:
            leftover.unlink()
    digests = {name: sha256(out / name) for name in BINARIES}
    (out / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in digests.items()))
    return digests


def push_images(version, registry, out):
    """Builds and pushes the images; returns the digest of each."""
    digests = {}
    for name in BINARIES:
        image, file = f"{registry}/{name}:{version}", out / f"{name}.digest"
        variables = [f"--build-arg=VERSION={version}", f"--build-arg=COMMIT={commit()}", f"--build-arg=BUILD_DATE={committed_at()}"]
        run("podman", "build", "--target", name, *variables, "--tag", image, "--file", "Containerfile", ".")
        run("podman", "push", "--digestfile", file, image)
        digests[f"{registry}/{name}"] = file.read_text().strip()
        file.unlink()
    return digests


def write_manifests(version, images, out):
    """Copies deploy/ with each of our images by its digest; an image without one is an error."""
    for path in sorted((ROOT / "deploy").rglob("*.yaml")):
        text = path.read_text()
        for image, digest in images.items():
            text = re.sub(rf"[\w./-]+/{re.escape(image.rsplit('/', 1)[1])}:[\w.-]+(?=\s|$|\"|')", f"{image}@{digest}", text)
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(r"image[:=]", line) and "@sha256:" not in line:
                fail(f"{path.relative_to(ROOT)}:{number}: {line.strip()} names an image of another release than {version}")
        target = out / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def commit():
    return output("git", "rev-parse", "HEAD")


def committed_at():
    return output("git", "show", "--no-patch", "--format=%cI", "HEAD")


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_provenance(version, began, binaries, images, out):
    """Writes an in-toto statement: what was made, from which commit and dependencies, with which command."""
    subjects = [{"name": name, "digest": {"sha256": digest}} for name, digest in binaries.items()]
    subjects += [{"name": name, "digest": {"sha256": digest.removeprefix("sha256:")}} for name, digest in images.items()]
    source = output("git", "config", "--default", "unknown", "remote.origin.url")
    source = re.sub(r"//[^/@]*@", "//", source)  # no credential of whoever releases
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://github.com/openshift-hyperfleet/pull-secret/hack/release.py",
                "externalParameters": {"version": version},
                "internalParameters": {"rustc": output("rustc", "--version")},
                "resolvedDependencies": [
                    {"uri": f"git+{source}@refs/tags/v{version}", "digest": {"gitCommit": commit()}},
                    {"uri": "Cargo.lock", "digest": {"sha256": sha256(ROOT / "Cargo.lock")}},
                ],
            },
            "runDetails": {
                "builder": {"id": os.environ.get("BUILDER_ID", "local")},
                "metadata": {"startedOn": began, "finishedOn": now()},
            },
        },
    }
    (out / "provenance.json").write_text(json.dumps(statement, indent=2) + "\n")
    return statement


def sign(images, statement, out):
    """Signs images and SHA256SUMS, and attaches SBOM and provenance to the images."""
    predicate = out / "predicate.json"
    predicate.write_text(json.dumps(statement["predicate"]))
    key = ["--key", os.environ["COSIGN_KEY"]] if "COSIGN_KEY" in os.environ else []
    for image, digest in images.items():
        name, by_digest = image.rsplit("/", 1)[1], f"{image}@{digest}"
        run("cosign", "sign", "--yes", *key, by_digest)
        run("cosign", "attest", "--yes", *key, "--type", "cyclonedx", "--predicate", out / f"{name}.cdx.json", by_digest)
        run("cosign", "attest", "--yes", *key, "--type", "slsaprovenance1", "--predicate", predicate, by_digest)
    run("cosign", "sign-blob", "--yes", *key, "--bundle", out / "SHA256SUMS.sigstore.json", out / "SHA256SUMS")
    predicate.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("--registry", default="quay.io/openshift-hyperfleet")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--no-images", action="store_true")
    given = parser.parse_args()
    began, out = now(), given.out.resolve()
    (out / "provenance.json").unlink(missing_ok=True)
    check(given.version, ["cargo-deny", "cargo-cyclonedx"] + ([] if given.no_images else ["podman", "cosign"]))
    if not given.no_images:
        check_base_images()
    check_advisories()
    out.mkdir(parents=True, exist_ok=True)
    binaries = build(given.version, out)
    images = {}
    if not given.no_images:
        images = push_images(given.version, given.registry, out)
        write_manifests(given.version, images, out)
    statement = write_provenance(given.version, began, binaries, images, out)
    if images:
        sign(images, statement, out)
    print(f"released {given.version} into {out}")


if __name__ == "__main__":
    main()
