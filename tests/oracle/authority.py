"""A small sigstore: a certificate authority, a certificate log, both kinds of transparency log and a timestamp authority, with a
trusted root that names them. It signs as the build workflow of kernels-community would, and lets a test change one thing on the
way: everything that comes after it is made of the changed thing, signatures and proofs too.

`sign(data, kind, STEP=function)` runs `function` over what STEP made: see the calls of `change` below."""
import base64
import hashlib
import json

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

ACTIONS = "https://token.actions.githubusercontent.com"
REPOSITORY = "https://github.com/huggingface/kernels-community"
WORKFLOW = REPOSITORY + "/.github/workflows/build.yaml@refs/heads/main"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
START = 1780315200  # 2026-06-01 12:00:00 UTC, when the certificate begins; it lasts ten minutes

FULCIO = "1.3.6.1.4.1.57264.1."
SCT_LIST = "1.3.6.1.4.1.11129.2.4.2"
ECDSA = {256: "1.2.840.10045.4.3.2", 384: "1.2.840.10045.4.3.3"}
SHA256 = "2.16.840.1.101.3.4.2.1"
TST_INFO = "1.2.840.113549.1.9.16.1.4"


def b64(data):
    return base64.b64encode(data).decode()


def sha256(data):
    return hashlib.sha256(data).digest()


# DER


def tlv(tag, *parts):
    body = b"".join(parts)
    if len(body) < 128:
        return bytes([tag, len(body)]) + body
    size = (len(body).bit_length() + 7) // 8
    return bytes([tag, 128 + size]) + len(body).to_bytes(size, "big") + body


def seq(*parts):
    return tlv(0x30, *parts)


def set_of(*parts):
    return tlv(0x31, *sorted(parts))


def integer(n):
    return tlv(2, n.to_bytes(n.bit_length() // 8 + 1, "big", signed=True))


def octets(*parts):
    return tlv(4, *parts)


def bits(data, unused=0):
    return tlv(3, bytes([unused]), data)


def utf8(text):
    return tlv(12, text.encode() if isinstance(text, str) else text)


def explicit(n, *parts):
    return tlv(0xA0 + n, *parts)


def implicit(n, *parts):
    return tlv(0x80 + n, *parts)


TRUE = tlv(1, b"\xff")
NULL = tlv(5)


def oid(dotted):
    first, second, *rest = map(int, dotted.split("."))
    out = b""
    for n in [first * 40 + second, *rest]:
        group = bytes([n & 127])
        while n := n >> 7:
            group = bytes([n & 127 | 128]) + group
        out += group
    return tlv(6, out)


def clock(seconds, form="%y%m%d%H%M%SZ", tag=23):
    import time

    return tlv(tag, time.strftime(form, time.gmtime(seconds)).encode())


def long_clock(seconds):
    return clock(seconds, "%Y%m%d%H%M%SZ", 24)


def name(common):
    return seq(set_of(seq(oid("2.5.4.10"), tlv(19, b"test"))), set_of(seq(oid("2.5.4.3"), tlv(19, common.encode()))))


# Keys


def curve_key(number, curve=None):
    """Always the same key for a number, so that a failure is the same when it is run again."""
    return ec.derive_private_key(int.from_bytes(sha256(b"khub's tests %d" % number), "big"), curve or ec.SECP256R1())


def key_info(key):
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def ecdsa(key, data, size=256):
    return key.sign(data, ec.ECDSA(getattr(hashes, f"SHA{size}")(), deterministic_signing=True))


def extension(dotted, value, critical=False):
    return (dotted, critical, value)


def encode_extension(dotted, critical, value):
    return seq(oid(dotted), *([TRUE] if critical else []), octets(value))


def encode_body(fields):
    listed = [encode_extension(*e) for e in fields["extensions"]]
    rest = [fields[k] for k in ("version", "serial", "algorithm", "issuer", "dates", "subject", "key")]
    return seq(*rest, *([explicit(3, seq(*listed))] if listed else []))


def encode_certificate(fields, key, size=384):
    body = encode_body(fields)
    return seq(body, fields.get("outer", fields["algorithm"]), bits(ecdsa(key, body, size)))


def key_name(info):
    return hashlib.sha1(info).digest()


def usage(*numbers):
    value = sum(0x80 >> n for n in numbers)
    unused = (value & -value).bit_length() - 1
    return bits(bytes([value]), unused)


class Issuer:
    """A certificate that signs others, and its key."""

    def __init__(self, number, common, issuer=None, path_length=None, purposes=()):
        self.key = curve_key(number, ec.SECP384R1())
        self.info = key_info(self.key)
        self.name = name(common)
        issuer = issuer or self
        limit = [integer(path_length)] if path_length is not None else []
        extensions = [extension("2.5.29.15", usage(5, 6), True)]
        extensions += [extension("2.5.29.37", seq(*map(oid, purposes)))] if purposes else []
        extensions += [extension("2.5.29.19", seq(TRUE, *limit), True), extension("2.5.29.14", octets(key_name(self.info)))]
        if issuer is not self:
            extensions.append(extension("2.5.29.35", seq(implicit(0, key_name(issuer.info)))))
        self.der = encode_certificate(issue(number, issuer, self.name, self.info, extensions, START - 10**8, START + 10**8), issuer.key)


def issue(serial, issuer, subject, info, extensions, start, end):
    return {"version": explicit(0, integer(2)), "serial": integer(serial), "algorithm": seq(oid(ECDSA[384])), "issuer": issuer.name,
            "dates": seq(clock(start), clock(end)), "subject": subject, "key": info, "extensions": extensions}


# Trees


def leaf_hash(data):
    return sha256(b"\0" + data)


def node_hash(left, right):
    return sha256(b"\1" + left + right)


def tree(hashes_, index=None):
    """The root of a tree over these hashes, and the proof for one of them."""
    if len(hashes_) == 1:
        return hashes_[0], []
    half = 1 << (len(hashes_) - 1).bit_length() - 1
    inside = index is not None and (index < half)
    left, left_proof = tree(hashes_[:half], index if inside else None)
    right, right_proof = tree(hashes_[half:], index - half if index is not None and not inside else None)
    proof = left_proof + [right] if inside else right_proof + [left]
    return node_hash(left, right), proof


class Log:
    def __init__(self, number, host, new):
        self.new, self.host = new, host
        if new:
            self.key = ed25519.Ed25519PrivateKey.from_private_bytes(sha256(b"khub's log %d" % number))
            raw = self.key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
            self.id = sha256(host.encode() + b"\n\x01" + raw)
        else:
            self.key = curve_key(number)
            self.id = sha256(key_info(self.key))

    def sign(self, data):
        return self.key.sign(data) if self.new else ecdsa(self.key, data)

    def line(self, note, host=None):
        return "— %s %s\n" % (host or self.host, b64(self.id[:4] + self.sign(note.encode())))

    def described(self):
        details = "PKIX_ED25519" if self.new else "PKIX_ECDSA_P256_SHA_256"
        return {"baseUrl": f"https://{self.host}", "hashAlgorithm": "SHA2_256", "logId": {"keyId": b64(self.id)},
                "publicKey": {"rawBytes": b64(key_info(self.key)), "keyDetails": details, "validFor": {"start": "2021-01-01T00:00:00Z"}}}


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def pem(der):
    text = b64(der)
    lines = [text[i:i + 64] for i in range(0, len(text), 64)]
    return "\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""]).encode()


class Authority:
    def __init__(self):
        self.top = Issuer(1, "top")
        self.fulcio = Issuer(2, "fulcio", self.top, 0, ["1.3.6.1.5.5.7.3.3"])
        self.certificate_log = curve_key(3)
        self.old_log, self.new_log = Log(4, "rekor.test", False), Log(5, "log2026.rekor.test", True)
        self.stamp_top = Issuer(6, "stamps", path_length=0)
        self.stamp_key = curve_key(7, ec.SECP384R1())
        self.stamp_fields = issue(7, self.stamp_top, name("stamp"), key_info(self.stamp_key),
                                  [extension("2.5.29.15", usage(0), True), extension("2.5.29.37", seq(oid("1.3.6.1.5.5.7.3.8")), True),
                                   extension("2.5.29.14", octets(key_name(key_info(self.stamp_key)))),
                                   extension("2.5.29.35", seq(implicit(0, key_name(self.stamp_top.info))))], START - 10**8, START + 10**8)
        self.stamp = encode_certificate(self.stamp_fields, self.stamp_top.key)
        self.leaf_keys = {256: curve_key(8), 384: curve_key(9, ec.SECP384R1())}

    def trusted_root(self):
        period = {"start": "2021-01-01T00:00:00.000Z"}
        info = key_info(self.certificate_log)
        certificate_log = {"baseUrl": "https://ctfe.test/2026", "hashAlgorithm": "SHA2_256", "logId": {"keyId": b64(sha256(info))},
                           "publicKey": {"rawBytes": b64(info), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": period}}

        def chain(common, *ders):
            return {"subject": {"organization": "test", "commonName": common}, "uri": f"https://{common}.test", "validFor": period,
                    "certChain": {"certificates": [{"rawBytes": b64(der)} for der in ders]}}

        return {"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
                "tlogs": [self.old_log.described(), self.new_log.described()],
                "certificateAuthorities": [chain("fulcio", self.fulcio.der, self.top.der)], "ctlogs": [certificate_log],
                "timestampAuthorities": [chain("stamps", self.stamp, self.stamp_top.der)]}

    # The steps of a signature

    def extensions(self):
        """As Fulcio writes them for a workflow."""
        info = key_info(self.leaf_key)
        ref, slug = "refs/heads/main", "huggingface/kernels-community"
        bare = {1: ACTIONS, 2: "push", 3: COMMIT, 4: "Build", 5: slug, 6: ref}
        texts = {8: ACTIONS, 9: WORKFLOW, 10: COMMIT, 11: "github-hosted", 12: REPOSITORY, 13: COMMIT, 14: ref, 15: "1", 16: "https://github.com/huggingface",
                 17: "2", 18: WORKFLOW, 19: COMMIT, 20: "push", 21: REPOSITORY + "/actions/runs/1/attempts/1", 22: "public"}
        return [extension("2.5.29.15", usage(0), True), extension("2.5.29.37", seq(oid("1.3.6.1.5.5.7.3.3"))),
                extension("2.5.29.14", octets(key_name(info))), extension("2.5.29.35", seq(implicit(0, key_name(self.fulcio.info)))),
                extension("2.5.29.17", seq(implicit(6, WORKFLOW.encode())), True),
                *[extension(FULCIO + str(n), text.encode()) for n, text in bare.items()],
                *[extension(FULCIO + str(n), utf8(text)) for n, text in texts.items()]]

    def log_timestamp(self, fields, change):
        """The extension with the certificate log's timestamp over the rest of the certificate."""
        sct = change("sct", {"version": 0, "id": sha256(key_info(self.certificate_log)), "time": START * 1000 + 7, "extensions": b"",
                             "hash": 4, "algorithm": 3, "count": 1})
        body = encode_body(fields)
        signed = bytes([0, 0]) + sct["time"].to_bytes(8, "big") + b"\0\1" + sha256(self.fulcio.info) + len(body).to_bytes(3, "big") + body
        signed = change("sct_signed", signed + len(sct["extensions"]).to_bytes(2, "big") + sct["extensions"])
        signature = change("sct_signature", ecdsa(self.certificate_log, signed))
        one = bytes([sct["version"]]) + sct["id"] + sct["time"].to_bytes(8, "big") + len(sct["extensions"]).to_bytes(2, "big")
        one += sct["extensions"] + bytes([sct["hash"], sct["algorithm"]]) + len(signature).to_bytes(2, "big") + signature
        listed = (len(one).to_bytes(2, "big") + one) * sct["count"]
        return extension(SCT_LIST, change("sct_value", octets(len(listed).to_bytes(2, "big") + listed)))

    def certificate(self, change):
        fields = issue(77, self.fulcio, seq(), key_info(self.leaf_key), self.extensions(), START, START + 600)
        fields = change("fields", fields)
        fields["extensions"] = change("extensions", fields["extensions"])
        if fields.get("log", True):
            fields["extensions"] = [*fields["extensions"], self.log_timestamp(fields, change)]
        return change("certificate", encode_certificate(fields, change("issuer_key", self.fulcio.key), fields.get("size", 384)))

    def entry_body(self, digest, signature, certificate, new):
        if not new:
            body = {"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": {"data": {"hash": {"algorithm": "sha256", "value": digest.hex()}},
                    "signature": {"content": b64(signature), "publicKey": {"content": b64(pem(certificate))}}}}
        else:
            size = self.leaf_key.curve.key_size
            verifier = {"keyDetails": f"PKIX_ECDSA_P{size}_SHA_{size}", "x509Certificate": {"rawBytes": b64(certificate)}}
            body = {"apiVersion": "0.0.2", "kind": "hashedrekord", "spec": {"hashedRekordV002": {"data": {"algorithm": "SHA2_256", "digest": b64(digest)},
                    "signature": {"content": b64(signature), "verifier": verifier}}}}
        return body

    def entry(self, digest, signature, certificate, new, change):
        log = self.new_log if new else self.old_log
        body = change("body_text", canonical(change("body", self.entry_body(digest, signature, certificate, new))))
        place = change("place", {"index": 11, "size": 21})
        leaves = [leaf_hash(b"other %d" % i) for i in range(place["size"])]
        leaves[place["index"]] = leaf_hash(body)
        top, proof = tree(leaves, place["index"])
        origin = log.host if new else f"{log.host} - 1234567890"
        note = change("note", f"{origin}\n{place['size']}\n{b64(top)}\n")
        checkpoint = change("checkpoint", note + "\n" + log.line(note))
        entry = {"logIndex": str(place["index"] if new else 1000 + place["index"]), "logId": {"keyId": b64(log.id)},
                 "kindVersion": {"kind": "hashedrekord", "version": "0.0.2" if new else "0.0.1"},
                 "inclusionProof": {"logIndex": str(place["index"]), "rootHash": b64(top), "treeSize": str(place["size"]),
                                    "hashes": [b64(h) for h in proof], "checkpoint": {"envelope": checkpoint}},
                 "canonicalizedBody": b64(body)}
        if not new:
            promised = change("promised", {"body": b64(body), "integratedTime": START + 5, "logID": log.id.hex(), "logIndex": 1000 + place["index"]})
            entry["integratedTime"] = str(promised["integratedTime"])
            entry["inclusionPromise"] = {"signedEntryTimestamp": b64(change("promise", log.sign(canonical(promised))))}
        return change("entry", entry)

    def timestamp(self, signature, change):
        info = change("info", {"version": integer(1), "policy": oid("1.3.6.1.4.1.57264.2"),
                               "imprint": seq(seq(oid(SHA256), NULL), octets(sha256(signature))), "serial": integer(4711),
                               "time": long_clock(START + 6), "accuracy": seq(integer(1)), "nonce": integer(99), "more": b""})
        attested = change("attested", seq(*info.values()))
        signer = change("signer", {"content_type": seq(oid("1.2.840.113549.1.9.3"), set_of(oid(TST_INFO))),
                                   "time": seq(oid("1.2.840.113549.1.9.5"), set_of(clock(START + 6))),
                                   "digest": seq(oid("1.2.840.113549.1.9.4"), set_of(octets(sha256(attested)))),
                                   "certificate": seq(oid("1.2.840.113549.1.9.16.2.47"), set_of(seq(seq(seq(octets(sha256(self.stamp)))))))})
        attributes = set_of(*signer.values())
        token = change("token", {
            "version": integer(3), "digests": set_of(seq(oid(SHA256))), "content": seq(oid(TST_INFO), explicit(0, octets(attested))),
            "certificates": b"", "signers": [{
                "version": integer(1), "who": seq(self.stamp_top.name, integer(7)), "digest": seq(oid(SHA256)),
                "attributes": b"\xa0" + attributes[1:], "algorithm": seq(oid(ECDSA[256])),
                "signature": octets(change("stamp_signature", ecdsa(self.stamp_key, attributes)))}]})
        signers = set_of(*[seq(*one.values()) for one in token["signers"]])
        data = seq(*[token[k] for k in ("version", "digests", "content", "certificates")], signers)
        content = change("content", seq(oid("1.2.840.113549.1.7.2"), explicit(0, data)))
        return change("timestamp", seq(seq(integer(0)), content))

    def sign(self, data, kind, size=256, **changes):
        """A bundle as JSON text. `kind`: "0.1" (old log), "0.3" (old log and a timestamp), "new" (new log and a timestamp)."""
        def change(step, value):
            return changes[step](value) if step in changes else value

        assert changes.keys() <= STEPS, changes.keys() - STEPS
        self.leaf_key = change("leaf_key", self.leaf_keys[size])
        new = kind == "new"
        certificate = self.certificate(change)
        digest = change("digest", sha256(data))
        signature = change("signature", ecdsa(change("signing_key", self.leaf_key), data))
        material = {"tlogEntries": [self.entry(digest, signature, certificate, new, change)]}
        one = {"rawBytes": b64(certificate)}
        material |= {"x509CertificateChain": {"certificates": [one]}} if kind == "0.1" else {"certificate": one}
        if kind != "0.1":
            stamps = change("timestamps", [self.timestamp(signature, change)])
            material["timestampVerificationData"] = {"rfc3161Timestamps": [{"signedTimestamp": b64(stamp)} for stamp in stamps]}
        media = "application/vnd.dev.sigstore.bundle" + ("+json;version=0.1" if kind == "0.1" else ".v0.3+json")
        message = {"messageDigest": {"algorithm": "SHA2_256", "digest": b64(digest)}, "signature": b64(signature)}
        bundle = change("bundle", {"mediaType": media, "verificationMaterial": material, "messageSignature": message})
        return change("text", json.dumps(bundle))


STEPS = set("""sct sct_signed sct_signature sct_value fields extensions issuer_key certificate body body_text place note checkpoint promised
    promise entry info attested signer token stamp_signature content timestamp leaf_key digest signature signing_key timestamps bundle text""".split())


def fixtures():
    """{path in the repository: bytes}: what the unit tests, the fuzz targets and bench/ take from here. `python authority.py` writes it."""
    authority, made, parts = Authority(), {}, {}

    def note(step):
        def keep(value):
            parts[step] = value
            return value
        return keep

    made["tests/signature/root.json"] = json.dumps(authority.trusted_root(), indent=1).encode() + b"\n"
    for kind, size in ("0.1", 384), ("0.3", 256), ("new", 256):
        text = authority.sign(b'{"name": "relu"}\n', kind, size, certificate=note("certificate"), checkpoint=note("checkpoint"), timestamp=note("timestamp"))
        text = json.dumps(json.loads(text), indent=1) + "\n"
        made[f"tests/signature/{kind}.json"] = made[f"fuzz/corpus/bundle/{kind}"] = text.encode()
        made[f"fuzz/corpus/checkpoint/{kind}"] = parts["checkpoint"].encode()
        made[f"fuzz/corpus/certificate/{kind}"] = parts["certificate"]
    made["fuzz/corpus/timestamp/new"] = parts["timestamp"]
    made["fuzz/corpus/trusted_root/one"] = made["tests/signature/root.json"]
    return made


if __name__ == "__main__":
    import pathlib

    for path, content in fixtures().items():
        path = pathlib.Path(__file__).parents[2] / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
