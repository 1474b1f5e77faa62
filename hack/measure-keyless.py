#!/usr/bin/env python3
"""Measures the kubelet's credential provider, as it is shipped, beside curl: the same request over TLS to the same server.

    hack/measure-keyless.py [CALLS]     200 calls of each unless told otherwise, in turn

Prints the program's size, and of each the median of the CPU time of a call and of its peak memory until the answer, and their ratio.
Needs curl and openssl. The server's time is no part of it, as it is another process's.
"""
import http.server
import json
import os
import pathlib
import re
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = "keyless-credential-provider"
# Claims {"sub": "x"}, and no signature.
TOKEN = "e30.eyJzdWIiOiJ4In0.c2ln"
PATH = "/oauth2/federation/robot/token"


class Quay(http.server.BaseHTTPRequestHandler):
    """Answers every request with a password, once it may."""

    arrived = threading.Event()
    may_answer = threading.Event()

    def do_GET(self):
        Quay.arrived.set()
        Quay.may_answer.wait(10)
        body = json.dumps({"token": TOKEN}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve(folder):
    """Starts the server; returns its port."""
    certificate, key, settings = folder / "ca.crt", folder / "key", folder / "openssl.cnf"
    settings.write_text("[req]\ndistinguished_name = name\nx509_extensions = server\n[name]\n"
                        "[server]\nsubjectAltName = DNS:localhost\nbasicConstraints = CA:FALSE\n")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                    "-config", settings, "-subj", "/CN=localhost", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quay)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def call(command, text):
    """Runs a command; returns the CPU time in milliseconds and the peak memory in mebibytes."""
    Quay.arrived.clear()
    Quay.may_answer.clear()
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdin.write(text.encode())
    child.stdin.close()
    if not Quay.arrived.wait(10):
        sys.exit(f"error: {command[0]} has sent no request")
    # What wait4 says of memory is the larger one of this program's and of the child's.
    status = pathlib.Path(f"/proc/{child.pid}/status").read_text()
    memory = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024
    Quay.may_answer.set()
    answer = child.stdout.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode or TOKEN not in answer:
        sys.exit(f"error: {command[0]} ended with {child.returncode}")
    return (usage.ru_utime + usage.ru_stime) * 1000, memory


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    subprocess.run(["cargo", "build", "--quiet", "--locked", "--profile", "node", "--package", PROGRAM], cwd=ROOT, check=True)
    binary = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "node" / PROGRAM
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        url = f"https://localhost:{serve(folder)}{PATH}"
        request = json.dumps({"apiVersion": "credentialprovider.kubelet.k8s.io/v1", "kind": "CredentialProviderRequest",
                              "image": "quay.io/a/b", "serviceAccountToken": TOKEN})
        ours = [binary, "--registry", "quay.io", "--robot", "a+b", "--federation-url", url, "--ca-file", folder / "ca.crt"]
        (folder / "curlrc").write_text(f'user = "a+b:{TOKEN}"\n')
        curl = ["curl", "--silent", "--fail", "--noproxy", "*", "--config", folder / "curlrc", "--cacert", folder / "ca.crt", url]
        measured = [(call(ours, request), call(curl, "")) for _ in range(calls)]
    print(f"{PROGRAM}: {binary.stat().st_size / 2**20:.2f} MiB")
    for index, name, unit in [(0, "CPU", "ms"), (1, "memory", "MiB")]:
        mine, other = (statistics.median(pair[side][index] for pair in measured) for side in (0, 1))
        print(f"{name} of a call: {mine:.1f} {unit}, curl {other:.1f} {unit}, ratio {mine / other:.2f}")


main()
