#!/usr/bin/env python3
"""Computes the bytes of tests/golden.rs from docs/wire.md alone, with Python's `cryptography`; nothing of the Rust
code is used. With the folder of the fuzz seeds as argument it writes those of `handshake` and `packet_open`. Random bytes are those of the test: each draw is filled with the next byte value, counting from 1."""

import hashlib
import hmac
import pathlib
import struct
import sys

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

NAME = b"Noise_NNpsk0_25519_ChaChaPoly_SHA256"


def mac(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def expand(prk, info, length):
    out, block, counter = b"", b"", 1
    while len(out) < length:
        block = mac(prk, block + info + bytes([counter]))
        out += block
        counter += 1
    return out[:length]


def derive(secret, info, length):
    return expand(secret, b"pathweave 1 " + info, length)


class Noise:
    """One end; both are alike but for who writes."""

    def __init__(self, psk, prologue):
        self.h = NAME.ljust(32, b"\0") if len(NAME) <= 32 else hashlib.sha256(NAME).digest()
        self.ck, self.psk, self.key, self.nonce = self.h, psk, None, 0
        self.mix_hash(prologue)

    def mix_hash(self, data):
        self.h = hashlib.sha256(self.h + data).digest()

    def hkdf(self, ikm, count):
        return [expand(mac(self.ck, ikm), b"", 32 * count)[32 * i : 32 * i + 32] for i in range(count)]

    def mix_key(self, ikm):
        self.ck, self.key = self.hkdf(ikm, 2)
        self.nonce = 0

    def mix_psk(self):
        self.ck, temporary, self.key = self.hkdf(self.psk, 3)
        self.mix_hash(temporary)
        self.nonce = 0

    def ephemeral(self, public):
        self.mix_hash(public)
        self.mix_key(public)

    def encrypt(self, plain):
        nonce = b"\0" * 4 + struct.pack("<Q", self.nonce)
        out = ChaCha20Poly1305(self.key).encrypt(nonce, plain, self.h)
        self.mix_hash(out)
        self.nonce += 1
        return out


def public(private):
    return private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def hello(protection, mtu, paths, host, qp, session, scheme, private):
    fixed = struct.pack(">BBHHBBIIIII", protection, 0, mtu, paths, 1, 0, host, qp, session, 0, 0)
    options = b""
    for kind, content in [(1, b"\2"), (2, scheme), (3, private)]:
        options += bytes([kind, len(content)]) + content
    return fixed + options


def header(kind, attempt):
    return bytes([0x70, kind, 2, 0]) + attempt


def with_mac(data, key):
    return data + mac(key, data)[:16]


cluster = bytes(range(32))
psk, answers = derive(cluster, b"noise psk", 32), derive(cluster, b"answers", 32)
# The initiator draws its attempt, then the seed of its ephemeral keys; the responder its cookie key, then its own.
attempt, seed = bytes([1] * 8), bytes([2] * 32)
cookie_key, responder_private = bytes([1] * 32), bytes([2] * 32)
initiator_private = derive(seed, b"ephemeral " + struct.pack(">I", 0), 32)

first = (header(1, attempt) + bytes(24)).ljust(256, b"\0")
now_ns = 1_000_000
made_at = struct.pack(">Q", now_ns)
cookie = made_at + mac(cookie_key, made_at + attempt + bytes([10, 1, 2, 3]))[:16]
retry = with_mac(header(2, attempt) + bytes(8) + cookie, answers)

head = header(1, attempt) + cookie
e, r = X25519PrivateKey.from_private_bytes(initiator_private), X25519PrivateKey.from_private_bytes(responder_private)
noise = Noise(psk, b"pathweave " + head)
noise.mix_psk()
noise.ephemeral(public(e))
said = hello(2, 4096, 8, 1, 1001, 101, b"udmp", b"")
said = said.ljust(256 - 36 - 48, b"\0")
request = head + public(e) + noise.encrypt(said)
noise.ephemeral(public(r))
noise.mix_key(e.exchange(X25519PublicKey.from_public_bytes(public(r))))
accept = header(3, attempt) + public(r) + noise.encrypt(hello(2, 4096, 8, 2, 1002, 202, b"udmp", b""))
k1, k2 = noise.hkdf(b"", 2)


def secret(key, label, length=32):
    return expand(mac(noise.h, key), b"pathweave 1 " + label + bytes([2, 2]), length)


confirm = with_mac(header(4, attempt), secret(k1, b"confirm"))


def packet(epoch_secret, epoch, opened, path, session, number, body):
    key, iv = derive(epoch_secret, b"key", 16), derive(epoch_secret, b"iv", 12)
    plain = struct.pack(">HHQ", epoch, path, number)
    nonce = bytes(a ^ b for a, b in zip(iv, plain))
    head = struct.pack(">BBHII", 0x71, epoch << 4 | opened, path, session, number & 0xFFFFFFFF)
    return head + AESGCM(key).encrypt(nonce, body, head)


there, back = secret(k1, b"to responder"), secret(k2, b"to initiator")
after = derive(there, b"next epoch", 32)
messages = [("first", first), ("retry", retry), ("request", request), ("accept", accept), ("confirm", confirm)]
packets = [
    ("there", packet(there, 0, 0, 3, 202, 0, b"there")),
    ("back", packet(back, 0, 0, 5, 101, 0, b"and back")),
    ("after", packet(after, 1, 0, 3, 202, 1, b"new keys")),
]
for name, data in messages + packets:
    print(name.upper(), len(data), hashlib.sha256(data).hexdigest() if len(data) > 128 else data.hex())

print("PLAIN_TAGS", secret(k1, b"plain to responder", 4).hex(), secret(k2, b"plain to initiator", 4).hex())

if len(sys.argv) > 1:
    seeds = pathlib.Path(sys.argv[1])
    for folder in ["handshake", "packet_open"]:
        (seeds / folder).mkdir(exist_ok=True)
    for stage, (name, data) in enumerate(messages):
        (seeds / "handshake" / f"{name}.bin").write_bytes(bytes([stage, 0]) + data)
        (seeds / "handshake" / f"over-{name}.bin").write_bytes(bytes([stage, 1]) + bytes(len(data)))
    refused = with_mac(header(5, bytes([9] * 8)) + bytes([6]) + bytes(7), answers)
    versions = with_mac(header(6, attempt) + bytes([2, 1, 2]), answers)
    for name, data in [("reject", refused), ("versions", versions)]:
        (seeds / "handshake" / f"{name}.bin").write_bytes(bytes([0, 0]) + data)
    for name, data in packets:
        (seeds / "packet_open" / f"{name}.bin").write_bytes(data)
    (seeds / "packet_open" / "good.bin").write_bytes(bytes(128))
    (seeds / "packet_open" / "plain.bin").write_bytes(b"\xc4" + bytes(40))
