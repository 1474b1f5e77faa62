#!/usr/bin/env python3
"""Attacks that once succeeded, repeated against built binaries: each must fail now.

    hack/attacks.py [FOLDER]      FOLDER has pull-secret and pull-secret-local; target/release unless it is given

Everything runs on loopback in a temporary folder. A line for each attack says what happened; the exit code is the number of
attacks that succeeded. It takes Python's standard library, openssl, and about a minute.
"""

import base64
import contextlib
import http.server
import json
import os
import pathlib
import re
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release").resolve()
API = "/api/hyperfleet/v1"
ISSUER = "https://issuer.test"
# The password of the stored document: must show nowhere.
WORD = "Xv93wordOfTheVictim"
DOCUMENT = json.dumps({"auths": {"quay.io": {"auth": base64.b64encode(f"user:{WORD}".encode()).decode()}}})
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
failures = []


def check(attack, is_repelled, seen):
    """Prints the result of an attack."""
    print(f"{'repelled ' if is_repelled else 'SUCCEEDED'}  {attack}: {seen}", flush=True)
    if not is_repelled:
        failures.append(attack)


def call(method, url, body=None, token=None, headers=None, wait=30):
    """Returns status and text; 0 if there was no answer in time."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method, headers=dict(headers or {}))
    if data is not None and not request.has_header("Content-type"):
        request.add_header("Content-Type", "application/json")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with OPENER.open(request, timeout=wait) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()
    except (OSError, TimeoutError) as error:
        return 0, str(error)


class Issuer:
    """Keys that sign tokens, and a server of key sets that can be told to hang."""

    def __init__(self, folder):
        self.key = folder / "issuer.pem"
        openssl("genrsa", "-out", self.key, "2048")
        modulus = openssl("rsa", "-in", self.key, "-noout", "-modulus").split("=", 1)[1].strip()
        key = {"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig", "n": text64(bytes.fromhex(modulus)), "e": "AQAB"}
        self.keys = json.dumps({"keys": [key]}).encode()
        self.hangs = threading.Event()
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if issuer.hangs.is_set():
                    time.sleep(60)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(issuer.keys)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"

    def token(self, subject, kid="one", signed=True):
        header = {"alg": "RS256", "typ": "JWT", "kid": kid}
        claims = {"iss": ISSUER, "aud": "hyperfleet-api", "sub": subject, "exp": int(time.time()) + 3600}
        text = ".".join(text64(json.dumps(part).encode()) for part in (header, claims))
        signature = openssl("dgst", "-sha256", "-sign", self.key, given=text.encode(), raw=True) if signed else b"none"
        return f"{text}.{text64(signature)}"


def text64(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def openssl(*arguments, given=None, raw=False):
    done = subprocess.run(["openssl", *map(str, arguments)], input=given, capture_output=True, check=True)
    return done.stdout if raw else done.stdout.decode()


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


@contextlib.contextmanager
def server(folder, config, files=4096):
    """An API server with this configuration; yields its address and those of probes and metrics, and the process."""
    ports = free_ports(3)
    (folder / "config.yaml").write_text(config)
    arguments = [f"--{name}-port={port}" for name, port in zip(("server", "health", "metrics"), ports)]
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    with open(folder / "log", "ab") as log:
        command = [PROGRAMS / "pull-secret", "api", "--config", "config.yaml", *arguments]
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, preexec_fn=limit)
    api, health, metrics = [f"http://127.0.0.1:{port}" for port in ports]
    try:
        until(lambda: process.poll() is not None or call("GET", f"{health}/readyz")[0] == 200, "the API is ready")
        yield api, health, metrics, process
    finally:
        process.kill()
        process.wait()


def until(is_so, what, seconds=300):
    end = time.monotonic() + seconds
    while not (found := is_so()):
        if time.monotonic() > end:
            raise SystemExit(f"error: waited {seconds} s in vain until {what}")
        time.sleep(0.1)
    return found


def authenticated(issuer, keys="[{id: one, file: key}]", more=""):
    return f"""
server:
  jwt:
    enabled: true
    configs: [{{issuer_url: "{ISSUER}", jwk_cert_url: "{issuer.url}", audience: hyperfleet-api, identity_claim: sub}}]
authorization:
  grants:
    - {{name: owner, issuer: "{ISSUER}", subject: owner, kinds: [Cluster], verbs: ["*"], chooses_destination: true}}
    - {{name: writer, issuer: "{ISSUER}", subject: writer, kinds: [Cluster], verbs: [get, list, create, update]}}
    - {{name: adapter, issuer: "{ISSUER}", subject: adapter, kinds: [Cluster], verbs: [get, list], reports_as: [dns]}}
entities: [{{kind: Cluster, plural: clusters, required_adapters: []}}]
pull_secret: {{keys: {keys}{more}}}
"""


def cluster(name, **spec):
    base = {"provider": "gcp", "gcp": {"projectId": "victim-project"}, "pullSecret": {"data": DOCUMENT}}
    return {"kind": "Cluster", "id": name, "name": name, "spec": {**base, **spec}}


def authorization(folder, issuer):
    """Nobody diverts, reads or forges without a grant."""
    with server(folder, authenticated(issuer)) as (api, *_):
        one = f"{api}{API}/clusters/cls-1"
        status, text = call("POST", f"{api}{API}/clusters", cluster("cls-1"), issuer.token("owner"))
        assert status == 201, text
        spec = json.loads(call("GET", one, token=issuer.token("writer"))[1])["spec"]
        spec["gcp"]["projectId"] = "attacker-project"
        status, text = call("PATCH", one, {"spec": spec}, issuer.token("writer"))
        check("redirect a pull secret by a PATCH that keeps the mark", status == 403, f"{status}")
        status, text = call("GET", f"{one}?include=pullSecret", token=issuer.token("owner"))
        check("read a pull secret without the right", status == 403 and WORD not in text, f"{status}")
        stranger = issuer.token("system:serviceaccount:clusters-x:default")
        report = {"adapter": "placement", "observed_generation": 1, "observed_time": "2026-01-01T00:00:00Z", "conditions": []}
        attempts = [("GET", one, None), ("PATCH", one, {"spec": spec}), ("DELETE", one, None),
                    ("POST", f"{one}/force-delete", {"reason": "x"}), ("PUT", f"{one}/statuses", report)]
        seen = [call(method, url, body, stranger)[0] for method, url, body in attempts]
        check("read, change, delete, force-delete, report with a token of any Pod", set(seen) == {403}, seen)
        status, _ = call("PUT", f"{one}/statuses", report, issuer.token("adapter"))
        check("an adapter reports as placement", status == 403, f"{status}")
        specs = [{"pullSecret": json.loads(DOCUMENT)}, {"pullSecret": {"Data": DOCUMENT}}, {"pullSecret": {"value": DOCUMENT}},
                 {"pullSecret": {".dockerconfigjson": DOCUMENT}}, {"pull_secret": {"data": DOCUMENT}},
                 {"gcp": {"projectId": "p-12345", "pullSecret": {"data": DOCUMENT}}}, {"note": DOCUMENT}]
        answers = [call("POST", f"{api}{API}/clusters", cluster(f"clear-{number}", **spec), issuer.token("owner"))
                   for number, spec in enumerate(specs)]
        seen = [status for status, _ in answers]
        is_quoted = any(WORD in text for _, text in answers)
        check("have a credential stored in clear", set(seen) == {400} and not is_quoted, seen)
        database = b"".join(path.read_bytes() for path in folder.glob("hyperfleet.db*"))
        check("find the password in the database's files", WORD.encode() not in database, f"{len(database)} bytes searched")
    with server(folder, authenticated(issuer, more=", reader_token_file: token")) as (api, _, _, process):
        code = process.poll()
        check("a reader's token beside authentication", code == 2, f"the server ends with {code}")


def tenants(folder, issuer):
    """A tenant sees nothing of another one, and a position of before a restore is not resumed."""
    grants = [f'    - {{issuer: "{ISSUER}", subject: gateway, kinds: ["*"], verbs: ["*"], reports_as: ["*"], force_deletes: true}}',
              f'    - {{issuer: "{ISSUER}", subject: sentinel, kinds: ["*"], verbs: [get, list, watch], all_tenants: true}}']
    isolated = 'server:\n  proxies: [127.0.0.1]\n  tenant: {enabled: true, dimensions: [{header: X-Org, key: org, required: true}]}'
    config = authenticated(issuer).replace("server:", isolated).replace("  grants:\n", "  grants:\n" + "\n".join(grants) + "\n")
    with server(folder, config) as (api, *_):
        clusters, token = f"{api}{API}/clusters", issuer.token("gateway")
        mine, theirs = {"X-Org": "mallory"}, {"X-Org": "acme"}
        body = {"kind": "Cluster", "name": "one", "spec": {"word": WORD}}
        status, text = call("POST", clusters, body, token, theirs)
        assert status == 201, text
        one, missing = f"{clusters}/{json.loads(text)['id']}", f"{clusters}/0198c0de-0000-7000-8000-000000000000"
        attempts = [("GET", "", None), ("GET", "/statuses", None), ("GET", "/statuses/history", None), ("DELETE", "", None),
                    ("PATCH", "", {"labels": {"a": "b"}}), ("POST", "/force-delete", {"reason": "x"})]
        seen = [call(method, one + path, body, token, mine) for method, path, body in attempts]
        alike = [call(method, missing + path, body, token, mine)[0] for method, path, body in attempts]
        is_hidden = [status for status, _ in seen] == alike == [404] * len(attempts) and not any(WORD in text for _, text in seen)
        check("read, change and delete another tenant's cluster", is_hidden, alike)
        searches = ["", "?search=" + urllib.request.quote("name != 'x' or name = 'x'"), "?search=" + urllib.request.quote(f"spec.word = '{WORD}'")]
        seen = [json.loads(call("GET", clusters + search, None, token, mine)[1])["total"] for search in searches]
        check("find another tenant's cluster by a search", seen == [0, 0, 0], seen)
        status, _ = call("POST", clusters, {**body, "id": "cls-9"}, token, mine)
        check("ask for an id to learn whether it is taken", status == 403, status)
        seen = [call("GET", clusters, None, token)[0], call("POST", clusters, body, token)[0]]
        check("leave out the tenant", seen == [403, 403], seen)
        total = json.loads(call("GET", clusters, token=issuer.token("sentinel"))[1])["total"]
        assert total == 1, total
        status, _ = call("GET", f"{clusters}?watch=true&resource_version=0badc0de-1", token=issuer.token("sentinel"))
        check("resume a change stream of before a restore", status == 410, status)


def stalls(folder, issuer):
    """Strangers and slow clients stop nobody."""
    with server(folder, authenticated(issuer), files=256) as (api, health, metrics, _):
        address = ("127.0.0.1", int(api.rsplit(":", 1)[1]))
        first = [b"", b"P", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
        held = []
        for number in range(300):
            one = socket.create_connection(address, timeout=5)
            with contextlib.suppress(OSError):
                one.sendall(first[number % 3])
            held.append(one)
        targets = [f"{health}/healthz", f"{health}/readyz", f"{metrics}/metrics", f"{api}{API}/clusters"]
        seen = [call("GET", url, token=issuer.token("owner"), wait=30)[0] for url in targets]
        check("300 silent connections with 256 descriptors", seen == [200] * 4, seen)
        for one in held:
            one.close()
        token = issuer.token("owner")
        assert call("GET", f"{api}{API}/clusters", token=token)[0] == 200
        issuer.hangs.set()
        bogus = issuer.token("owner", kid="bogus", signed=False)
        for _ in range(10):
            threading.Thread(target=call, args=("GET", f"{api}{API}/clusters", None, bogus), daemon=True).start()
        began = time.monotonic()
        seen = [call("GET", f"{api}{API}/clusters", token=token, wait=40)[0] for _ in range(20)]
        took = time.monotonic() - began
        issuer.hangs.clear()
        check("unknown keys while the issuer hangs", seen == [200] * 20 and took < 10, f"20 reads in {took:.1f} s")
    with server(folder, "server: {max_body: 1048576}\nentities: [{kind: Cluster, plural: clusters, required_adapters: []}]\n") as (api, health, _, process):
        status, text = call("POST", f"{api}{API}/clusters", {"kind": "Cluster", "id": "big", "name": "big", "spec": {"note": "a" * 900_000}})
        assert status == 201, text
        report = lambda name, size: {"adapter": name, "observed_generation": 1, "observed_time": "2026-01-01T00:00:00Z",
                                     "conditions": [], "data": {"x": "y" * size}}
        seen = {call("PUT", f"{api}{API}/clusters/big/statuses", report(f"a-{number}", 950_000))[0] for number in range(5)}
        seen |= {call("PUT", f"{api}{API}/clusters/big/statuses", report(f"b-{number}", 60_000))[0] for number in range(40)}
        check("grow a resource by reports", 413 in seen and 400 in seen and not seen & {500, 503}, sorted(seen))
        pattern = "%" + "a" * 3_900 + "b"
        search = urllib.request.quote(f"spec.note like '{pattern}'")
        for _ in range(8):
            url = f"{api}{API}/clusters?search={search}"
            threading.Thread(target=call, args=("GET", url), kwargs={"wait": 60}, daemon=True).start()
        time.sleep(0.5)
        began = time.monotonic()
        seen = [call("GET", f"{api}{API}/clusters/big")[0], call("GET", f"{health}/healthz")[0]]
        took = time.monotonic() - began
        check("eight searches that are quadratic in the text", seen == [200, 200] and took < 10, f"{seen} after {took:.1f} s")
        for number in range(200):
            call("POST", f"{api}{API}/clusters", {"kind": "Cluster", "id": f"c-{number}", "name": f"c-{number}", "spec": {"note": "b" * 21_000}})
        readers = []
        for _ in range(10):
            one = socket.create_connection(("127.0.0.1", int(api.rsplit(":", 1)[1])))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.sendall(f"GET {API}/clusters?watch=true HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            readers.append(one)
        time.sleep(2)
        memory = next(line for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines() if "VmRSS" in line)
        used = int(memory.split()[1]) // 1024
        check("ten readers of changes that read nothing", used < 256, f"{used} MiB resident")


def keys(folder, issuer):
    """A key that is still needed cannot be withdrawn, and one that is not can."""
    (folder / "second").write_bytes(os.urandom(32))
    with server(folder, authenticated(issuer, "[{id: two, file: second}]")) as (_, _, _, process):
        check("withdraw a key that is used", process.poll() == 2, f"the server ends with {process.poll()}")
    (folder / "config.yaml").write_text(authenticated(issuer, "[{id: two, file: second}, {id: one, file: key}]"))
    command = [PROGRAMS / "pull-secret", "api", "rekey", "--config", "config.yaml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    with server(folder, authenticated(issuer, "[{id: two, file: second}]")) as (api, _, _, process):
        status, _ = call("GET", f"{api}{API}/clusters/cls-1", token=issuer.token("owner"))
        check("an old key that is needed for ever", done.returncode == 0 and status == 200, f"after rekey {status}")


@contextlib.contextmanager
def fleet(folder, log):
    """A whole fleet plane; yields the line with its addresses. Its log is appended to `log`."""
    command = [PROGRAMS / "pull-secret-local", "up", "--port=0", "--output=json", "--log-level=debug", "--data-dir", folder]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        line = next((line for line in process.stdout if '"event":"ready"' in line.replace(" ", "")), None)
        if line is None:
            raise SystemExit("error: the fleet plane does not start")
        threading.Thread(target=lambda: log.extend(process.stdout), daemon=True).start()
        yield json.loads(line)
    finally:
        process.kill()
        process.wait()


def others(api, kubernetes, name, generation):
    """What the other adapters do for a cluster: a namespace, and their reports."""
    namespace = {"metadata": {"name": f"clusters-{name}"}}
    call("POST", f"{kubernetes['url']}/api/v1/namespaces", namespace, kubernetes["token"])
    conditions = [{"type": kind, "status": "True"} for kind in ("Available", "Applied", "Health")]
    for adapter in ("validation", "dns", "placement"):
        report = {"adapter": adapter, "observedGeneration": generation, "data": {"namespace": f"clusters-{name}"}, "conditions": conditions}
        call("POST", f"{api}{API}/clusters/{name}/statuses", report)


def available(api, name):
    answer = json.loads(call("GET", f"{api}{API}/clusters/{name}/statuses")[1])
    ours = next((item for item in answer["items"] if item["adapter"] == "pullsecret"), None)
    found = [one for one in (ours or {"conditions": []})["conditions"] if one["type"] == "Available"]
    return (ours["observed_generation"], *map(found[0].get, ("status", "reason", "message"))) if found else (0, None, None, "")


def credentials(path):
    """Server and token of the emulator's kubeconfig."""
    text = path.read_text()
    found = re.search(r'server: "http://(?:.*@)?([^"@]+)"', text), re.search(r'token: "([^"]+)"', text)
    return {"url": f"http://{found[0][1]}", "token": found[1][1]}


def lives(folder):
    """Clusters take nothing from each other, and leave nothing behind."""
    log = []
    with fleet(folder, log) as ready:
        api, store = ready["api"], ready["secret_manager"]
        kubernetes = credentials(pathlib.Path(ready["kubeconfig"]))
        token = pathlib.Path(ready["secret_manager_token_file"]).read_text().strip()
        stored = lambda project, name: call(
            "GET", f"{store}/v1/projects/{project}/secrets/hyperfleet-{name}-pull-secret", token=token)[0] == 200
        create = lambda body: call("POST", f"{api}{API}/clusters", body)
        for status, text in [create(cluster("moved")), create(cluster("again"))]:
            assert status == 201, text
        for name in ("moved", "again"):
            others(api, kubernetes, name, 1)
        for name in ("moved", "again"):
            until(lambda: available(api, name)[1] == "True", f"{name} is available")
        # A move, then a deletion.
        spec = cluster("moved", gcp={"projectId": "other-project"})["spec"]
        assert call("PATCH", f"{api}{API}/clusters/moved", {"spec": spec})[0] == 200
        others(api, kubernetes, "moved", 2)
        until(lambda: available(api, "moved")[:2] == (2, "True"), "the moved cluster is available")
        until(lambda: not stored("victim-project", "moved"), "the former project has no copy")
        check("a credential stays in the former project", stored("other-project", "moved"), "the former project has none")
        # The same id again, with another document, before the adapter could clean up.
        call("DELETE", f"{api}{API}/clusters/again")
        call("POST", f"{api}{API}/clusters/again/force-delete", {"reason": "test"})
        until(lambda: call("GET", f"{api}{API}/clusters/again")[0] == 404, "the cluster is gone")
        other = cluster("again", pullSecret={"data": DOCUMENT.replace("quay.io", "other.example.com")})
        assert create(other)[0] == 201
        others(api, kubernetes, "again", 1)
        url = f"{store}/v1/projects/victim-project/secrets/hyperfleet-again-pull-secret/versions/latest:access"
        seen = until(lambda: (found := available(api, "again"))[2] in ("DifferentIncarnation", "SecretStored") and found, "the report")
        payload = json.loads(call("GET", url, token=token)[1]).get("payload", {}).get("data", "")
        is_its_own = "other.example.com" in base64.b64decode(payload).decode()
        check("a recreated cluster quietly keeps the former owner's credentials",
              is_its_own if seen[1] == "True" else seen[2] == "DifferentIncarnation", seen[2])
        # Another tenant's Secret.
        secret = {"metadata": {"name": "theirs"}, "type": "kubernetes.io/dockerconfigjson",
                  "data": {".dockerconfigjson": base64.b64encode(DOCUMENT.encode()).decode()}}
        namespace = "hyperfleet-pull-secret"
        status, text = call("POST", f"{kubernetes['url']}/api/v1/namespaces/{namespace}/secrets", secret, kubernetes["token"])
        assert status == 201, text
        reference = {"pullSecret": {"secretRef": {"name": "theirs", "namespace": namespace}}, "gcp": {"projectId": "thief-project"}}
        status, text = create(cluster("thief", **reference))
        assert status == 201, text
        others(api, kubernetes, "thief", 1)
        seen = until(lambda: (found := available(api, "thief")) and (found[1] == "True" or "namespace" in found[3]) and found, "the report")
        is_safe = seen[1] != "True" and not stored("thief-project", "thief")
        check("use another tenant's Secret", is_safe, seen[3])
        # A web page's simple request.
        headers = {"Content-Type": "text/plain", "Origin": "https://evil.example"}
        config = {"metadata": {"name": "evil"}, "data": {"config": "exec: sh"}}
        status, _ = call("POST", f"{kubernetes['url']}/api/v1/namespaces/default/configmaps", json.dumps(config).encode(), headers=headers)
        check("a web page writes to the emulator of Kubernetes", status in (401, 403, 415), f"{status}")
        status, _ = call("GET", f"{store}/v1/projects/victim-project/secrets", headers={"Host": "evil.example"}, token=token)
        check("a rebound name reaches the emulator of Secret Manager", status in (400, 403, 421), f"{status}")
    is_quoted = any(WORD in line or base64.b64encode(WORD.encode()).decode().rstrip("=") in line for line in log)
    check("find the password in the log", len(log) > 50 and not is_quoted, f"{len(log)} lines searched")


def main():
    with tempfile.TemporaryDirectory(prefix="attacks-") as name:
        folder = pathlib.Path(name)
        (folder / "api").mkdir()
        (folder / "api/key").write_bytes(os.urandom(32))
        (folder / "api/token").write_text("reader-token-of-some-length")
        for name in ("stalls", "tenants"):
            (folder / name).mkdir()
            (folder / name / "key").write_bytes(os.urandom(32))
        issuer = Issuer(folder)
        authorization(folder / "api", issuer)
        keys(folder / "api", issuer)
        tenants(folder / "tenants", issuer)
        stalls(folder / "stalls", issuer)
        lives(folder / "fleet")
    print(f"{len(failures)} attacks succeeded" if failures else "every attack was repelled")
    return len(failures)


if __name__ == "__main__":
    sys.exit(main())
