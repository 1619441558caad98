"""Signatures: ed25519 over the bytes of the manifest, which holds the digest of everything else.

In: a release directory and a key in PEM form. Out: `manifest.json.sig` (hex), or the verdict on one. Needs the
package `cryptography`, which only this file imports.
"""

from __future__ import annotations

import binascii
import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from precast.errors import ReleaseError, ToolError
from precast.release.manifest import MANIFEST, SIGNATURE
from precast.release.verify import verify_release
from precast.store import write_file


def sign_release(release: Path, key: Path) -> Path:
    """Signs a good release with the private key in the file `key`; returns the signature's path."""
    verify_release(release)
    signature = _private_key(key).sign((release / MANIFEST).read_bytes())
    path = release / SIGNATURE
    write_file(path, signature.hex().encode() + b"\n")
    return path


def verify_signature(release: Path, key: Path) -> None:
    """`ReleaseError` unless the release's signature was made with the partner of the public key in `key`."""
    exceptions = _cryptography("exceptions")
    public = _public_key(key)
    try:
        signature = binascii.unhexlify((release / SIGNATURE).read_text().strip())
        public.verify(signature, (release / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise ReleaseError(f"{release} is not signed", hint="`precast sign` signs it") from None
    except (exceptions.InvalidSignature, ValueError):
        raise ReleaseError(f"{release} is not signed by {key}") from None


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
        key = load(path.read_bytes())
    except OSError as error:
        raise ReleaseError(f"cannot read the key {path}: {error.strerror}") from None
    except (ValueError, TypeError):
        raise ReleaseError(f"{path} holds no {word} key in PEM form without a password") from None
    if not isinstance(key, kind):
        raise ReleaseError(f"{path} holds no ed25519 {word} key")
    return key


def _ed25519() -> ModuleType:
    return _cryptography("hazmat.primitives.asymmetric.ed25519")


def _cryptography(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"cryptography.{name}")
    except ImportError:
        raise ToolError("signing needs the Python package `cryptography`", hint="pip install 'precast[sign]'") from None
