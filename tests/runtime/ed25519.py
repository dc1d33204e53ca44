#!/usr/bin/env python3
"""Signatures beside OpenSSL's: ed25519.py <library of runtime/crypto>... Each library has words of another width.

Keys and messages are random, of a fixed seed. What one signs the other verifies, signatures are equal byte by byte, and of damaged ones
both say the same. Prints `skipped: not installed` where there is no libcrypto with Ed25519.
"""
import ctypes
import ctypes.util
import random
import sys

CASES = 150
ED25519 = 1087  # NID_ED25519

name = ctypes.util.find_library("crypto")
crypto = ctypes.CDLL(name) if name else None
if not crypto or not hasattr(crypto, "EVP_PKEY_new_raw_private_key") or not hasattr(crypto, "EVP_DigestVerify"):
    print("skipped: not installed: libssl3")
    sys.exit(0)
for function in ("EVP_PKEY_new_raw_private_key", "EVP_PKEY_new_raw_public_key", "EVP_MD_CTX_new"):
    getattr(crypto, function).restype = ctypes.c_void_p
CHARS, SIZE, POINTER = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p


def key_of(kind, data):
    return POINTER(getattr(crypto, f"EVP_PKEY_new_raw_{kind}_key")(ED25519, None, CHARS(data), SIZE(32)))


def with_context(begin, key, work):
    context = POINTER(crypto.EVP_MD_CTX_new())
    try:
        assert getattr(crypto, begin)(context, None, None, None, key) == 1
        return work(context)
    finally:
        crypto.EVP_MD_CTX_free(context)
        crypto.EVP_PKEY_free(key)


def openssl_public(secret):
    key, out, size = key_of("private", secret), ctypes.create_string_buffer(32), SIZE(32)
    assert crypto.EVP_PKEY_get_raw_public_key(key, out, ctypes.byref(size)) == 1
    crypto.EVP_PKEY_free(key)
    return out.raw


def openssl_sign(secret, message):
    def work(context):
        out, size = ctypes.create_string_buffer(64), SIZE(64)
        assert crypto.EVP_DigestSign(context, out, ctypes.byref(size), CHARS(message), SIZE(len(message))) == 1
        return out.raw
    return with_context("EVP_DigestSignInit", key_of("private", secret), work)


def openssl_verify(signature, message, public):
    key = key_of("public", public)
    if not key:
        return False
    return with_context("EVP_DigestVerifyInit", key, lambda context: crypto.EVP_DigestVerify(
        context, CHARS(signature), SIZE(64), CHARS(message), SIZE(len(message))) == 1)


def check(path):
    own = ctypes.CDLL(path)
    numbers = random.Random(8032)
    for case in range(CASES):
        secret, message = numbers.randbytes(32), numbers.randbytes(numbers.choice([0, 1, 31, 32, 63, 64, 111, 112, 128, 1000]))
        public, signature = ctypes.create_string_buffer(32), ctypes.create_string_buffer(64)
        own.tess_ed25519_public_key(CHARS(secret), public)
        own.tess_ed25519_sign(CHARS(secret), CHARS(message), ctypes.c_uint64(len(message)), signature)
        assert public.raw == openssl_public(secret), f"{path}, case {case}: public key"
        assert signature.raw == openssl_sign(secret, message), f"{path}, case {case}: signature"

        def verify(signature, message, public):
            return own.tess_ed25519_verify(CHARS(signature), CHARS(message), ctypes.c_uint64(len(message)), CHARS(public)) == 1
        assert verify(signature.raw, message, public.raw) and openssl_verify(signature.raw, message, public.raw)
        for what in range(8):
            damaged, key = bytearray(signature.raw), bytearray(public.raw)
            target = key if what == 0 else damaged
            target[numbers.randrange(len(target))] ^= 1 << numbers.randrange(8)
            ours, theirs = verify(bytes(damaged), message, bytes(key)), openssl_verify(bytes(damaged), message, bytes(key))
            assert ours == theirs, f"{path}, case {case}: damaged signature: {ours}, OpenSSL {theirs}"


for library in sys.argv[1:]:
    check(library)
print(f"{CASES} keys for each of {len(sys.argv) - 1} libraries: the same as OpenSSL")
