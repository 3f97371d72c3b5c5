"""Pods without a cluster: Linux namespaces with the mounts of a manifest.

Each pod has its own network, process, host name and mount namespaces. Its root is
read-only and contains this machine's programs; ``/tmp`` and ``/dev/shm`` are private,
and all pods share ``/runs``. Programs run as user 10001 and cannot gain privileges.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.faults.test_hosts_apart import ip

USER = 10001
_ROOT = Path(__file__).resolve().parents[2]
_NET = "10.192.0"
_BRIDGE = "tgpods"
_ETC = ("alternatives", "ld.so.cache", "nsswitch.conf", "openmpi", "ssl", "services")
_MAKE_ROOT = """
set -e
root=$1 name=$2 files=$3 runs=$4; shift 4
hostname "$name"
mount -t tmpfs tmpfs "$root"
for folder in $SHARED; do
  mkdir -p "$root$folder"
  mount --bind "$folder" "$root$folder"
  mount -o remount,bind,ro "$root$folder"
done
for link in /bin /sbin /lib /lib64; do cp -a "$link" "$root/"; done
cp -a "$files/etc" "$root/etc"
mount --bind "$files/games" "$root/usr/games"
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/runs"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount --bind "$runs" "$root/runs"
mount -o remount,ro "$root"
cd "$root"
exec chroot "$root" setpriv --reuid $USER_ID --regid $USER_ID --clear-groups \\
  --no-new-privs --bounding-set=-all --inh-caps=-all env -i $VARIABLES "$@"
"""


class Pods:
    """The pods of one job, which resolve each other's host names.

    Args:
        names: The names of all pods.
        domain: The subdomain after each name, as in the operator's Service.
        folder: The folder for roots and logs.
        files: The contents of mounted config maps and secrets, by path; root owns them.
    """

    def __init__(
        self, names: list[str], domain: str, folder: Path, files: dict[str, str]
    ) -> None:
        self._names = names
        self._folder = folder
        self._files = folder / "files"
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.runs = folder / "runs"
        self.runs.mkdir()
        os.chown(self.runs, USER, USER)
        self._write_files(domain, files)
        self._begin_network()

    def start(self, name: str, command: list[str], **variables: str) -> None:
        """Starts a pod and writes its output to its log."""
        root = self._folder / "roots" / name
        root.mkdir(parents=True, exist_ok=True)
        words = {"HOME": "/tmp", "PATH": os.environ["PATH"], **variables}
        if "LD_LIBRARY_PATH" in os.environ:
            words["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        top = {"/usr", *map(_top, (sys.prefix, sys.base_prefix, str(_ROOT)))}
        env = {
            **os.environ,
            "SHARED": " ".join(sorted(top)),
            "USER_ID": str(USER),
            "VARIABLES": " ".join(f"{key}={value}" for key, value in words.items()),
        }
        inside = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork"]
        inside += ["sh", "-c", _MAKE_ROOT, "sh", str(root), name]
        inside += [str(self._files), str(self.runs), *command]
        with open(self.log(name), "ab") as log:
            self._running[name] = subprocess.Popen(
                ["ip", "netns", "exec", f"tgp-{name}", *inside],
                stdout=log,
                stderr=log,
                env=env,
            )

    def log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def is_running(self, name: str) -> bool:
        return self._running[name].poll() is None

    def end(self, name: str, most_s: float) -> int:
        """Ends a pod with SIGTERM, as a kubelet does; returns its exit code."""
        process = self._running[name]
        os.kill(_first_process(process.pid), signal.SIGTERM)
        code = process.wait(most_s)
        del self._running[name]
        return code

    def kill(self, name: str) -> None:
        """Kills all processes of a pod."""
        process = self._running.pop(name)
        # The kernel kills a PID namespace when its first process ends.
        os.kill(_first_process(process.pid), signal.SIGKILL)
        process.wait()

    def wait(self, name: str, most_s: float) -> int:
        """Waits until a pod's command ends; returns its exit code."""
        code = self._running[name].wait(most_s)
        del self._running[name]
        return code

    def close(self) -> None:
        for name in list(self._running):
            if self._running[name].poll() is None:
                self.kill(name)
        for place, name in enumerate(self._names, 2):
            subprocess.run(["ip", "link", "del", f"tgv{place}"], capture_output=True)
            subprocess.run(["ip", "netns", "del", f"tgp-{name}"], capture_output=True)
        subprocess.run(["ip", "link", "del", _BRIDGE], capture_output=True)

    def _write_files(self, domain: str, files: dict[str, str]) -> None:
        etc = self._files / "etc"
        etc.mkdir(parents=True)
        for name in _ETC:
            source = Path("/etc") / name
            if source.is_dir():
                shutil.copytree(source, etc / name, symlinks=True)
            elif source.exists():
                shutil.copy(source, etc / name)
        (etc / "passwd").write_text(
            "root:x:0:0::/:/bin/sh\n"
            f"tengen:x:{USER}:{USER}::/tmp:/bin/sh\n"
            "sshd:x:100:65534::/:/usr/sbin/nologin\n"
        )
        (etc / "group").write_text(f"root:x:0:\ntengen:x:{USER}:\n")
        lines = ["127.0.0.1 localhost"]
        for place, name in enumerate(self._names, 2):
            lines.append(f"{_NET}.{place} {name}.{domain} {name}.{domain}.test.svc")
        (etc / "hosts").write_text("\n".join(lines) + "\n")
        for path, text in files.items():
            place_of = self._files / path.lstrip("/")
            place_of.parent.mkdir(parents=True, exist_ok=True)
            place_of.write_text(text)
        games = self._files / "games"
        games.mkdir()
        program = games / "tengen"
        searched = os.environ.get("PYTHONPATH", "")
        program.write_text(
            f"#!/bin/sh\nexport PYTHONPATH={searched}\n"
            f'exec {sys.executable} -P -m tengen "$@"\n'
        )
        program.chmod(0o755)

    def _begin_network(self) -> None:
        self.close()  # removes leftovers of an earlier call
        ip("link", "add", _BRIDGE, "type", "bridge")
        ip("link", "set", _BRIDGE, "up")
        for place, name in enumerate(self._names, 2):
            ip("netns", "add", f"tgp-{name}")
            ip("link", "add", f"tgv{place}", "type", "veth", "peer", f"tgw{place}")
            ip("link", "set", f"tgw{place}", "netns", f"tgp-{name}")
            ip("link", "set", f"tgv{place}", "master", _BRIDGE, "up")
            inside = ("netns", "exec", f"tgp-{name}", "ip")
            ip(*inside, "addr", "add", f"{_NET}.{place}/24", "dev", f"tgw{place}")
            ip(*inside, "link", "set", f"tgw{place}", "up")
            ip(*inside, "link", "set", "lo", "up")


def _top(path: str) -> str:
    """Returns the top-level folder that contains a path."""
    return "/" + Path(path).parts[1]


def _first_process(outer: int) -> int:
    """Returns the ID of a pod's first process, which is the child of ``unshare``."""
    for _ in range(200):
        children = Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.05)
    raise AssertionError("the pod never began")
