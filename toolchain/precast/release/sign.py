"""Signatures: ed25519 over the bytes of the manifest, which holds the digest of everything else.

In: a release directory and a key in PEM form. Out: `manifest.json.sig` (hex), or the verdict on one. Needs the
package `cryptography`, which only this file imports.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from precast.errors import ReleaseError, ToolError, printable
from precast.release.files import MOST_KEY_BYTES, MOST_MANIFEST_BYTES, read_file
from precast.release.layout import find_layout
from precast.release.verify import verify_release
from precast.store import write_file


def sign_release(release: Path, key: Path) -> Path:
    """Signs a good release with the private key in the file `key`; returns the signature's path.

    What is signed are the bytes that were verified, not what lies there later.
    """
    manifest = verify_release(release)
    path = find_layout(release).signature
    write_file(path, _private_key(key).sign(manifest.data).hex().encode() + b"\n")
    return path


def verify_signature(release: Path, key: Path, signed: bytes | None = None) -> None:
    """`ReleaseError` unless a key in the file `key` signed the release: a public key, or a key ring.

    `signed` are the manifest's bytes where they were read already.
    """
    layout = find_layout(release)
    keys = read_keys(key)
    if not os.path.lexists(layout.signature):
        raise ReleaseError(f"{printable(release)} is not signed", hint="`precast sign` signs it")
    signature = parse_signature(read_file(layout.signature, MOST_KEY_BYTES))
    data = read_file(layout.manifest, MOST_MANIFEST_BYTES) if signed is None else signed
    if signature is None or not any(_signed_by(each, signature, data) for each in keys):
        raise ReleaseError(f"{printable(release)} is not signed by {printable(key)}")


def parse_signature(data: bytes) -> bytes | None:
    """The 64 bytes that a signature file holds: 128 small hexadecimal digits and the end of a line, nothing else."""
    return bytes.fromhex(data.decode()) if re.fullmatch(rb"[0-9a-f]{128}\n", data) else None


def parse_key_ring(data: bytes, name: str) -> list[bytes]:
    """The keys of a ring: a line each, of 64 small hexadecimal digits and, after a space, whatever; `# …` and empty
    lines are passed over."""
    keys = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line or line.startswith(b"#"):
            continue
        found = re.fullmatch(rb"([0-9a-f]{64})( .*)?", line, re.DOTALL)
        if not found:
            raise ReleaseError(f"{name}:{number}: this is no public key of 64 hexadecimal digits")
        keys.append(bytes.fromhex(found[1].decode()))
    if not keys:
        raise ReleaseError(f"{name} holds no key")
    return keys


def read_keys(path: Path) -> list[Any]:
    """The public keys in a file: one in PEM form, or a ring of them."""
    data = _read_key_file(path)
    if data.lstrip().startswith(b"-----BEGIN"):
        return [_public_key(path)]
    return [_ed25519().Ed25519PublicKey.from_public_bytes(each) for each in parse_key_ring(data, printable(path))]


def _signed_by(key: Any, signature: bytes, data: bytes) -> bool:
    try:
        key.verify(signature, data)
    except _cryptography("exceptions").InvalidSignature:
        return False
    return True


def make_keys(folder: Path) -> tuple[Path, Path]:
    """A new pair of keys in `folder`: `precast.key` (private, for its owner's eyes) and `precast.pub`."""
    serialization = _cryptography("hazmat.primitives.serialization")
    private = _ed25519().Ed25519PrivateKey.generate()
    secret = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    paths = folder / "precast.key", folder / "precast.pub"
    for path in paths:
        if path.exists():
            raise ReleaseError(f"{path} is there already", hint="keys are never written over")
    write_file(paths[0], secret, mode=0o600)
    write_file(paths[1], public)
    return paths


def public_key_hex(key: Path) -> str:
    """The 32 bytes of a public key as hex: what launchers take that must not read PEM."""
    return str(_public_key(key).public_bytes_raw().hex())


def _private_key(path: Path) -> Any:
    serialization = _cryptography("hazmat.primitives.serialization")
    return _of_kind(
        path, _ed25519().Ed25519PrivateKey, lambda data: serialization.load_pem_private_key(data, password=None)
    )


def _public_key(path: Path) -> Any:
    serialization = _cryptography("hazmat.primitives.serialization")
    return _of_kind(path, _ed25519().Ed25519PublicKey, serialization.load_pem_public_key)


def _of_kind(path: Path, kind: type, load: Callable[[bytes], Any]) -> Any:
    word = "private" if "Private" in kind.__name__ else "public"
    try:
        key = load(_read_key_file(path))
    except (ValueError, TypeError, _cryptography("exceptions").UnsupportedAlgorithm):
        raise ReleaseError(f"{printable(path)} holds no {word} key in PEM form without a password") from None
    if not isinstance(key, kind):
        raise ReleaseError(f"{printable(path)} holds no ed25519 {word} key")
    return key


def _read_key_file(path: Path) -> bytes:
    """A key's file may be a link, as where secrets are mounted."""
    if not path.exists():
        raise ReleaseError(f"cannot read the key {printable(path)}: No such file or directory")
    return read_file(path, MOST_KEY_BYTES, follow=True)


def _ed25519() -> ModuleType:
    return _cryptography("hazmat.primitives.asymmetric.ed25519")


def _cryptography(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"cryptography.{name}")
    except ImportError:
        raise ToolError("signing needs the Python package `cryptography`", hint="pip install 'precast[sign]'") from None
