"""One thing changed in a signature: more than a thousand ways. Each is (what, kind of bundle, steps of authority.sign, the reason that
khub must give; None: whatever it is)."""
import base64
import copy
import json

from authority import (ACTIONS, COMMIT, ECDSA, FULCIO, NULL, REPOSITORY, SCT_LIST, SHA256, START, TRUE, TST_INFO, WORKFLOW, Issuer, b64, bits, canonical, clock,
                       curve_key, ecdsa, explicit, extension, implicit, integer, key_info, long_clock, name, octets, oid, seq, set_of, sha256, tlv, usage, utf8)
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

# JSON: every node of a bundle


def nodes(value, path=()):
    yield path, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from nodes(one, (*path, key))


def put(path, make):
    """A step that replaces the node at `path` by make(node); Ellipsis takes it out."""
    def change(bundle):
        bundle = copy.deepcopy(bundle)
        *way, last = path
        parent = bundle
        for key in way:
            parent = parent[key]
        made = make(parent[last])
        if made is ...:
            del parent[last]
        else:
            parent[last] = made
        return bundle
    return change


def flip(data, at, bit=1):
    data = bytearray(data)
    data[at] ^= bit
    return bytes(data)


def in_base64(edit):
    return lambda text: b64(edit(base64.b64decode(text)))


ANYTHING = {"taken out": lambda v: ..., "null": lambda v: None, "a number": lambda v: 7, "true": lambda v: True, "an empty string": lambda v: "",
            "an empty list": lambda v: [], "an empty object": lambda v: {}, "in a list": lambda v: [v], "a string": lambda v: json.dumps(v)}
NUMBERS = {"as a number": int, "one more": lambda v: str(int(v) + 1), "one less": lambda v: str(int(v) - 1), "negative": lambda v: "-" + v,
           "with a plus": lambda v: "+" + v, "with a space": lambda v: " " + v, "with a zero before it": lambda v: "0" + v, "0": lambda v: "0",
           "2^31": lambda v: str(2**31), "2^63-1": lambda v: str(2**63 - 1), "2^63": lambda v: str(2**63), "2^64-1": lambda v: str(2**64 - 1),
           "2^64": lambda v: str(2**64), "with a point": lambda v: v + ".0", "in hexadecimal": lambda v: hex(int(v)), "with _": lambda v: v[0] + "_" + v[1:],
           "in other digits": lambda v: "".join(chr(0x660 + int(c)) for c in v), "with NUL": lambda v: v + "\0"}
BASE64 = {"first bit": in_base64(lambda d: flip(d, 0)), "middle bit": in_base64(lambda d: flip(d, len(d) // 2)), "last bit": in_base64(lambda d: flip(d, -1)),
          "a byte less": in_base64(lambda d: d[:-1]), "a byte more": in_base64(lambda d: d + b"\0"), "nothing": lambda v: "",
          "with a line break": lambda v: v[:8] + "\n" + v[8:], "with a space": lambda v: v + " ", "without padding": lambda v: v.rstrip("="),
          "with more padding": lambda v: v + "====", "in the other alphabet": lambda v: v.replace("/", "_").replace("+", "-"), "with a letter more": lambda v: v + "A"}


def json_changes(kind, bundle, only=None):
    for path, value in nodes(bundle):
        if not path or (path[-1] in (1, 2, 3) and path[-2] == "hashes") or (only and not any(key in path for key in only)):
            continue
        ways = dict(ANYTHING)
        if isinstance(value, dict):
            ways["with another field"] = lambda v: {**v, "other": 1}
        if isinstance(value, list):
            ways |= {"twice": lambda v: v + v, "with null": lambda v: [*v, None]}
        if isinstance(value, str) and value.isdigit():
            ways |= NUMBERS
        elif isinstance(value, str) and path[-1] not in ("mediaType", "kind", "version", "envelope", "algorithm"):
            ways |= BASE64
        for way, make in ways.items():
            yield f"{'.'.join(map(str, path))} {way}", kind, {"bundle": put(path, make)}, None


def text_changes():
    """The text itself."""
    def field(name, more):
        return lambda t: t.replace(f'"{name}":', f'"{name}": {more}, "{name}":', 1)

    ways = {"mediaType twice": (field("mediaType", '"x"'), "not-json"), "signature twice": (field("signature", '"AAAA"'), "not-json"),
            "treeSize twice": (field("treeSize", '"1"'), "not-json"), "text after it": (lambda t: t + " {}", "not-json"),
            "a byte order mark": (lambda t: "\ufeff" + t, "not-json"), "spaces around it": (lambda t: f"\n\t {t} \n", "holds"),
            "cut": (lambda t: t[:-1], "not-json"), "empty": (lambda t: "", "not-json"), "a list": (lambda t: f"[{t}]", "not-json"),
            "deep": (lambda t: t[:-1] + ', "x": ' + "[" * 70 + "]" * 70 + "}", "not-json"), "a comment": (lambda t: "/**/" + t, "not-json"),
            "a comma too many": (lambda t: t[:-1] + ",}", "not-json"), "NaN": (lambda t: t[:-1] + ', "x": NaN}', "not-json"),
            "NUL in a string": (lambda t: t.replace("hashedrekord", "hashedrekord\\u0000"), "not-json"),
            "a key escaped": (lambda t: t.replace('"treeSize"', '"tree\\u0053ize"'), "holds"), "1 MiB and more": (lambda t: t + " " * 2**20, "too-large"),
            "half a surrogate": (lambda t: t.replace("hashedrekord", "\\ud800"), "not-json")}
    for what, (edit, reason) in ways.items():
        yield what, "0.1", {"text": edit}, reason
    for media, reason in {"application/vnd.dev.sigstore.bundle+json;version=0.2": "holds", "application/vnd.dev.sigstore.bundle+json;version=0.3": "bad-field",
                          "application/vnd.dev.sigstore.bundle.v0.3+json": "bad-field", "application/vnd.dev.sigstore.bundle.v0.4+json": "media-type",
                          "application/json": "media-type", "Application/vnd.dev.sigstore.bundle+json;version=0.1": "media-type"}.items():
        yield f"media type {media}", "0.1", {"bundle": put(("mediaType",), lambda v, media=media: media)}, reason
    yield "version 0.3 in its other name", "0.3", {"bundle": put(("mediaType",), lambda v: "application/vnd.dev.sigstore.bundle+json;version=0.3")}, "holds"


# Certificates


def edit(number, make, critical=None):
    """A step that changes the value of an extension, or takes it out (...)."""
    def change(extensions):
        out = []
        for dotted, is_critical, value in extensions:
            if dotted == number:
                made = make(value)
                if made is ...:
                    continue
                value, is_critical = made, is_critical if critical is None else critical
            out.append((dotted, is_critical, value))
        assert out != extensions or critical is not None
        return out
    return change


KU, EKU, SKI, AKI, SAN, BC = (f"2.5.29.{n}" for n in (15, 37, 14, 35, 17, 19))


def certificate_changes():
    bad, cert = "bad-certificate", "0.1"

    def fields(what, reason, kind=cert, **values):
        return what, kind, {"fields": lambda f: {**f, **{k: v(f[k]) if callable(v) else v for k, v in values.items()}}}, reason

    def extensions(what, reason, change):
        return what, cert, {"extensions": change}, reason

    yield fields("version 1", bad, version=b"")
    yield fields("version 2", bad, version=explicit(0, integer(1)))
    yield fields("version 4", bad, version=explicit(0, integer(3)))
    yield fields("serial number 0", bad, serial=integer(0))
    yield fields("negative serial number", bad, serial=integer(-5))
    yield fields("serial number of 20 bytes", "holds", serial=integer(2**159 - 1))
    yield fields("serial number of 21 bytes", bad, serial=integer(2**167 - 1))
    yield fields("serial number in a longer form", bad, serial=tlv(2, b"\0\0\x4d"))
    yield fields("algorithm inside is another", bad, algorithm=seq(oid(ECDSA[256])), outer=seq(oid(ECDSA[384])))
    yield fields("algorithm with NULL", bad, algorithm=seq(oid(ECDSA[384]), NULL))
    yield fields("signed with SHA-256", "holds", algorithm=seq(oid(ECDSA[256])), size=256)
    yield fields("says SHA-256, signed with SHA-384", "bad-chain", algorithm=seq(oid(ECDSA[256])))
    yield fields("issued by another name", "unknown-authority", issuer=name("fulcio2"))
    yield fields("issued by nobody", "unknown-authority", issuer=seq())
    yield "issued with another key", cert, {"issuer_key": lambda k: curve_key(99, ec.SECP384R1())}, "bad-chain"
    yield fields("begins a second later than used", "expired", dates=seq(clock(START + 6), clock(START + 600)))
    yield fields("begins when used", "holds", dates=seq(clock(START + 5), clock(START + 600)))
    yield fields("ends when used", "holds", dates=seq(clock(START), clock(START + 5)))
    yield fields("ends a second before it is used", "expired", dates=seq(clock(START), clock(START + 4)))
    yield fields("ends before it begins", "expired", dates=seq(clock(START + 600), clock(START)))
    yield fields("dates without Z", bad, dates=seq(tlv(23, b"260601120000"), clock(START + 600)))
    yield fields("dates without seconds", bad, dates=seq(tlv(23, b"2606011200Z"), clock(START + 600)))
    yield fields("dates with another zone", bad, dates=seq(tlv(23, b"260601120000+0000"), clock(START + 600)))
    yield fields("dates with four digits of a year before 2050", bad, dates=seq(long_clock(START), clock(START + 600)))
    yield fields("dates with a fraction", bad, dates=seq(tlv(24, b"20260601120000.5Z"), clock(START + 600)))
    yield fields("February 30th", bad, dates=seq(tlv(23, b"260230120000Z"), clock(START + 600)))
    yield fields("valid beyond 2050", "holds", dates=seq(clock(START), long_clock(2540000000)))
    yield fields("valid for ever", "holds", dates=seq(clock(START), tlv(24, b"99991231235959Z")))
    yield fields("with a subject", "profile", subject=name("somebody"))
    yield fields("subject isn't a name", bad, subject=seq(seq(oid("2.5.4.3"), utf8("x"))))
    for dotted, what in {KU: "key usage", EKU: "extended key usage", AKI: "authority's key", SAN: "subject", SKI: "own key", FULCIO + "1": "old issuer",
                         FULCIO + "8": "issuer", FULCIO + "9": "workflow", FULCIO + "12": "repository", FULCIO + "13": "commit"}.items():
        reason = {KU: "profile", EKU: "profile", AKI: "bad-chain", SAN: bad, SKI: "holds", FULCIO + "13": "holds"}.get(dotted, "identity")
        yield extensions(f"without {what}", reason, edit(dotted, lambda v: ...))
        yield extensions(f"{what} twice", bad, lambda e, dotted=dotted: e + [x for x in e if x[0] == dotted])
        yield extensions(f"{what} empty", None, edit(dotted, lambda v: b""))
        yield extensions(f"{what} garbage", None, edit(dotted, lambda v: b"\xff\xff\xff"))
        yield extensions(f"{what} with a byte after it", None, edit(dotted, lambda v: v + b"\0"))
        for critical in True, False:
            yield extensions(f"{what} critical: {critical}", None, edit(dotted, lambda v: v, critical))
    yield extensions("no extensions but the log's", bad, lambda e: [])
    for numbers, reason in {(1,): "profile", (5,): "profile", (0, 5): "profile", (0, 6): "holds", (0, 1, 2, 3, 4): "holds"}.items():
        yield extensions(f"key usage {numbers}", reason, edit(KU, lambda v, numbers=numbers: usage(*numbers)))
    yield extensions("key usage with spare bits set", bad, edit(KU, lambda v: bits(b"\x83", 2)))
    for purposes, reason in {("1.3.6.1.5.5.7.3.1",): "profile", ("2.5.29.37.0",): "profile", ("1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.3"): "holds"}.items():
        yield extensions(f"extended key usage {purposes}", reason, edit(EKU, lambda v, purposes=purposes: seq(*map(oid, purposes))))

    def more(*what):
        return lambda e: [*e, extension(*what)]

    yield extensions("is an authority", "profile", more(BC, seq(TRUE), True))
    yield extensions("is an authority, not critical", bad, more(BC, seq(TRUE)))
    yield extensions("is no authority, and says so", "holds", more(BC, seq(), True))
    yield extensions("is no authority, said in a longer form", bad, more(BC, seq(tlv(1, b"\0")), True))
    yield extensions("is no authority, with a path length", bad, more(BC, seq(integer(1)), True))
    yield extensions("unknown extension", "holds", more("1.3.6.1.4.1.57264.3.1", b"anything"))
    yield extensions("unknown extension, critical", bad, more("1.3.6.1.4.1.57264.3.1", b"anything", True))
    yield extensions("unknown Fulcio extension", "holds", more(FULCIO + "77", utf8("anything")))
    yield extensions("name constraints", bad, more("2.5.29.30", seq(explicit(0, seq(seq(implicit(6, b"test"))))), True))
    yield extensions("name constraints, not critical", bad, more("2.5.29.30", seq(explicit(0, seq(seq(implicit(6, b"test")))))))
    yield extensions("policies", bad, more("2.5.29.32", seq(seq(oid("2.5.29.32.0")))))
    yield extensions("points of revocation lists", bad, more("2.5.29.31", seq(seq(explicit(0, explicit(0, implicit(6, b"http://x")))))))
    yield extensions("access to information, garbage", bad, more("1.3.6.1.5.5.7.1.1", b"\xff"))
    yield extensions("poison", bad, more("1.3.6.1.4.1.11129.2.4.3", NULL, True))
    yield extensions("authority's key is another", "bad-chain", edit(AKI, lambda v: seq(implicit(0, b"x" * 20))))
    yield extensions("authority's key with issuer and number", bad, edit(AKI, lambda v: seq(v[2:], tlv(0xA1, explicit(4, name("top"))), implicit(2, b"\2"))))
    yield extensions("own key is another", "holds", edit(SKI, lambda v: octets(b"x" * 20)))
    other = WORKFLOW.replace("build.yaml", "other.yaml")
    names = {"another workflow": ([implicit(6, other.encode())], "holds"), "an e-mail address": ([implicit(1, b"a@b.test")], "holds"),
             "a host": ([implicit(2, b"b.test")], bad), "an IP address": ([implicit(7, b"\x7f\0\0\1")], bad), "no name": ([], bad),
             "an empty name": ([implicit(6, b"")], bad), "two names": ([implicit(6, WORKFLOW.encode()), implicit(6, other.encode())], bad),
             "a name with NUL": ([implicit(6, WORKFLOW.encode() + b"\0x")], bad), "a name in UTF-8": ([implicit(6, "ö".encode())], bad),
             "Fulcio's other name": ([explicit(0, oid(FULCIO + "7"), explicit(0, utf8("somebody")))], "holds"),
             "an unknown other name": ([explicit(0, oid(FULCIO + "6"), explicit(0, utf8("somebody")))], bad)}
    for what, (listed, reason) in names.items():
        yield extensions(f"subject is {what}", reason, edit(SAN, lambda v, listed=listed: seq(*listed)))

    # Who is accepted
    for file in "build-mac", "build-windows", "sign-old-builds":
        yield extensions(f"workflow {file}", "holds", edit(FULCIO + "9", lambda v, file=file: utf8(WORKFLOW.replace("build.yaml", file + ".yaml"))))
    for what in (other, WORKFLOW.replace("heads/main", "pull/7/merge"), WORKFLOW.replace("heads/main", "heads/main2"), WORKFLOW.replace("heads/main", "tags/main"),
                 WORKFLOW + "/", WORKFLOW + " ", WORKFLOW.upper(), WORKFLOW[:-1], WORKFLOW.replace("huggingface", "huggingfaсe"), "x" + WORKFLOW, ""):
        yield extensions(f"workflow {what!r}", "identity", edit(FULCIO + "9", lambda v, what=what: utf8(what)))
    for what in REPOSITORY + "2", REPOSITORY + ".git", REPOSITORY.replace("https", "http"), REPOSITORY.replace("huggingface", "somebody"), "":
        yield extensions(f"repository {what!r}", "identity", edit(FULCIO + "12", lambda v, what=what: utf8(what)))
    for number, form in (1, str.encode), (8, utf8):
        for what in ACTIONS + "/", ACTIONS.replace("https", "http"), "https://gitlab.com", "https://accounts.google.com":
            yield extensions(f"issuer {number} {what!r}", "identity", edit(f"{FULCIO}{number}", lambda v, what=what, form=form: form(what)))
    for number, text in (8, ACTIONS), (9, WORKFLOW), (12, REPOSITORY):
        forms = {"as IA5String": tlv(0x16, text.encode()), "as PrintableString": tlv(0x13, text.encode()), "as BMPString": tlv(0x1E, text.encode("utf-16-be")),
                 "bare": text.encode(), "in a sequence": seq(utf8(text)), "twice": utf8(text) * 2, "with a longer length": b"\x0c\x82\0" + bytes([len(text)]) + text.encode(),
                 "with NUL": utf8(text + "\0"), "not UTF-8": utf8(text.encode() + b"\xff"), "constructed": tlv(0x2C, utf8(text))}
        for form, value in forms.items():
            yield extensions(f"extension {number} {form}", "identity" if form == "as such" else bad, edit(f"{FULCIO}{number}", lambda v, value=value: value))
    yield extensions("extension 1 in DER", bad, edit(FULCIO + "1", lambda v: utf8(ACTIONS)))
    yield extensions("commit isn't a text", bad, edit(FULCIO + "13", lambda v: integer(5)))
    yield extensions("another commit", "holds", edit(FULCIO + "13", lambda v: utf8(COMMIT[::-1])))

    # Keys
    def key(what, info, reason):
        return fields(f"key: {what}", reason, key=info)

    info = key_info(curve_key(8))
    yield key("not on the curve", flip(info, -1), "bad-key")
    yield key("the point at infinity", seq(seq(oid("1.2.840.10045.2.1"), oid("1.2.840.10045.3.1.7")), bits(b"\0")), "bad-key")
    yield key("a point too long", seq(seq(oid("1.2.840.10045.2.1"), oid("1.2.840.10045.3.1.7")), bits(info[-65:] + b"\0")), "bad-key")
    yield key("hybrid", seq(seq(oid("1.2.840.10045.2.1"), oid("1.2.840.10045.3.1.7")), bits(bytes([6 + (info[-1] & 1)]) + info[-64:])), "bad-key")
    yield key("compressed", seq(seq(oid("1.2.840.10045.2.1"), oid("1.2.840.10045.3.1.7")), bits(bytes([2 + (info[-1] & 1)]) + info[-64:-32])), "bad-key")
    yield key("on another curve than its point", seq(seq(oid("1.2.840.10045.2.1"), oid("1.3.132.0.10")), bits(info[-65:])), "bad-key")
    yield key("with parameters in full", seq(seq(oid("1.2.840.10045.2.1"), seq(integer(1))), bits(info[-65:])), "bad-key")
    yield key("another", key_info(curve_key(55)), "forged")
    yield key("P-521", key_info(curve_key(56, ec.SECP521R1())), "bad-key")
    yield key("Ed25519", key_info(ed25519.Ed25519PrivateKey.from_private_bytes(b"7" * 32)), "bad-key")
    yield key("garbage", seq(b"\xff"), bad)
    yield key("with spare bits", info.replace(b"\x03\x42\x00", b"\x03\x42\x01"), None)

    # DER
    yield "a byte after the certificate", cert, {"certificate": lambda d: d + b"\0"}, bad
    yield "certificate cut", cert, {"certificate": lambda d: d[:-1]}, bad
    yield "certificate of indefinite length", cert, {"certificate": lambda d: b"\x30\x80" + d[4:] + b"\0\0"}, bad
    yield "certificate with a longer length", cert, {"certificate": lambda d: b"\x30\x83\0" + d[2:]}, bad
    yield "certificate's signature has spare bits", cert, {"certificate": lambda d: d.replace(b"\x03\x68\x00\x30", b"\x03\x68\x01\x30").replace(b"\x03\x67\x00\x30", b"\x03\x67\x01\x30")
                                                          .replace(b"\x03\x69\x00\x30", b"\x03\x69\x01\x30")}, bad
    yield "certificate is PEM", cert, {"certificate": lambda d: b"-----BEGIN CERTIFICATE-----\n" + base64.b64encode(d)}, bad
    for at in 300, 700, -50, -1:
        yield f"certificate's bit {at}", cert, {"certificate": lambda d, at=at: flip(d, at)}, None


def sct_changes():
    bad = "bad-sct"

    def sct(what, reason, **values):
        return f"log timestamp: {what}", "0.1", {"sct": lambda s: {**s, **values}}, reason

    yield sct("of another version", bad, version=1)
    yield sct("of another log", bad, id=b"7" * 32)
    yield sct("before the log began", bad, time=1000)
    yield sct("out of range", bad, time=2**64 - 1)
    yield sct("with extensions", "holds", extensions=b"anything")
    yield sct("with another hash", bad, hash=5)
    yield sct("with no hash", bad, hash=0)
    yield sct("of an RSA key", bad, algorithm=1)
    yield sct("of a DSA key", bad, algorithm=2)
    yield sct("twice", bad, count=2)
    yield sct("none in the list", bad, count=0)
    yield "log timestamp: signature's bit", "0.1", {"sct_signature": lambda s: flip(s, -1)}, bad
    yield "log timestamp: signature empty", "0.1", {"sct_signature": lambda s: b""}, bad
    yield "log timestamp: signature with a byte after it", "0.1", {"sct_signature": lambda s: s + b"\0"}, bad
    yield "log timestamp: over another body", "0.1", {"sct_signed": lambda s: flip(s, 100)}, bad
    yield "log timestamp: over another time", "0.1", {"sct_signed": lambda s: flip(s, 9)}, bad
    yield "log timestamp: of another issuer", "0.1", {"sct_signed": lambda s: flip(s, 12)}, bad
    yield "log timestamp: bare", "0.1", {"sct_value": lambda v: v[3 if v[1] > 127 else 2:]}, bad
    yield "log timestamp: with a byte after it", "0.1", {"sct_value": lambda v: v + b"\0"}, bad
    yield "log timestamp: cut", "0.1", {"sct_value": lambda v: octets(v[2:-1])}, bad
    yield "log timestamp: empty", "0.1", {"sct_value": lambda v: b""}, bad
    yield "no log timestamp", "0.1", {"fields": lambda f: {**f, "log": False}}, bad


# What is signed, and the log


def signing_changes():
    for kind in "0.1", "new":
        yield "signature by another key", kind, {"signing_key": lambda k: curve_key(60)}, "forged"
        yield "digest of other bytes", kind, {"digest": lambda d: sha256(b"other")}, "other-bytes"
        yield "signature's bit", kind, {"signature": lambda s: flip(s, -1)}, "forged"
        yield "signature with a longer number", kind, {"signature": lambda s: s[:1] + bytes([s[1] + 1]) + s[2:3] + bytes([s[3] + 1]) + b"\0" + s[4:]}, "forged"
        yield "signature with a byte after it", kind, {"signature": lambda s: s + b"\0"}, "forged"
        yield "signature of two zeros", kind, {"signature": lambda s: seq(integer(0), integer(0))}, "forged"
        yield "signature empty", kind, {"signature": lambda s: b""}, "bad-field"


def entry_changes():
    def in_spec(*path):
        return lambda make: (lambda body: put(path, make)(body))

    other = "other-entry"
    old = ("spec", "data", "hash", "value"), ("spec", "signature", "content"), ("spec", "signature", "publicKey", "content"), ("spec", "data", "hash", "algorithm")
    base = ("spec", "hashedRekordV002")
    new = (*base, "data", "digest"), (*base, "signature", "content"), (*base, "signature", "verifier", "x509Certificate", "rawBytes"), \
          (*base, "signature", "verifier", "keyDetails"), (*base, "data", "algorithm")
    for kind, paths in ("0.1", old), ("new", new):
        for path in [*paths, ("kind",), ("apiVersion",)]:
            for what, make in {"with an A more": lambda v: v + "A", "its first letter another": lambda v: ("A" if v[0] != "A" else "B") + v[1:], "empty": lambda v: "",
                               "taken out": lambda v: ..., "null": lambda v: None, "a number": lambda v: 7}.items():
                yield f"entry: {path[-1]} {what}", kind, {"body": put(path, make)}, other
        yield "entry: one more field", kind, {"body": lambda b: {**b, "other": 1}}, other
        yield "entry: one more field inside", kind, {"body": lambda b: {**b, "spec": {**b["spec"], "other": 1}}}, other
        yield "entry: not canonical", kind, {"body_text": lambda t: json.dumps(json.loads(t)).encode()}, other
        yield "entry: a space after it", kind, {"body_text": lambda t: t + b" "}, other
        yield "entry: a field twice", kind, {"body_text": lambda t: t.replace(b'"kind":', b'"kind":"x","kind":')}, other
        yield "entry: no JSON", kind, {"body_text": lambda t: b"{}"}, other
        for size, index in (1, 0), (2, 0), (2, 1), (3, 2), (4, 3), (7, 6), (8, 0), (8, 7), (9, 8), (33, 32), (33, 0), (100, 63), (100, 64):
            yield f"entry {index} of {size}", kind, {"place": lambda p, size=size, index=index: {"size": size, "index": index}}, "holds"
    yield "entry: in capital hexadecimal", "0.1", {"body": put(old[0], str.upper)}, other


def proof_changes():
    def proof(what, reason, kind="0.1", **values):
        def change(entry):
            p = entry["inclusionProof"]
            return {**entry, "inclusionProof": {**p, **{k: v(p[k]) if callable(v) else v for k, v in values.items()}}}
        return f"proof: {what}", kind, {"entry": change}, reason

    for kind in "0.1", "new":
        yield proof("a hash less", "bad-proof", kind, hashes=lambda h: h[:-1])
        yield proof("a hash more", "bad-proof", kind, hashes=lambda h: [*h, h[0]])
        yield proof("no hashes", "bad-proof", kind, hashes=[])
        yield proof("hashes the other way round", "bad-proof", kind, hashes=lambda h: h[::-1])
        yield proof("too many hashes", "bad-field", kind, hashes=lambda h: h * 20)
        yield proof("a hash of 31 bytes", "bad-field", kind, hashes=lambda h: [b64(b"x" * 31), *h[1:]])
        yield proof("another root", "bad-proof", kind, rootHash=b64(b"r" * 32))
        yield proof("another index", "bad-proof", kind, logIndex="10")
        yield proof("another size", None, kind, treeSize="22")
        yield proof("index is the size", "bad-field", kind, logIndex="21")
        yield "proof: size isn't the checkpoint's", kind, {"note": lambda n: n.replace("\n21\n", "\n20\n")}, "bad-checkpoint"
        yield "proof: root isn't the checkpoint's", kind, {"note": lambda n: n.split("\n")[0] + "\n21\n" + b64(b"r" * 32) + "\n"}, "bad-checkpoint"
        yield "index in the log is another", kind, {"entry": lambda e: {**e, "logIndex": "5"}}, "holds" if kind == "new" else "forged-promise"
        yield "another log", kind, {"entry": lambda e: {**e, "logId": {"keyId": b64(b"7" * 32)}}}, "unknown-log"
        for kind_version, reason in {("dsse", "0.0.1"): "entry-kind", ("hashedrekord", "0.0.3"): "entry-kind", ("intoto", "0.0.2"): "entry-kind"}.items():
            pair = dict(zip(("kind", "version"), kind_version))
            yield f"entry is {kind_version}", kind, {"entry": lambda e, pair=pair: {**e, "kindVersion": pair}}, reason
    for size in 2**31, 2**62, 2**63 - 1:
        yield proof(f"size {size}", None, treeSize=str(size))
    yield "old entry called new", "0.3", {"entry": lambda e: {**e, "kindVersion": {"kind": "hashedrekord", "version": "0.0.2"}}}, "entry-kind"
    yield "new entry called old", "new", {"entry": lambda e: {**e, "kindVersion": {"kind": "hashedrekord", "version": "0.0.1"}}}, "other-entry"


def checkpoint_changes(kind, log, other):
    bad, forged = "bad-checkpoint", "forged-checkpoint"

    def note(what, reason, make):
        return f"note: {what}", kind, {"note": make}, reason

    def checkpoint(what, reason, make):
        return f"checkpoint: {what}", kind, {"checkpoint": make}, reason

    yield note("with a line more", "holds", lambda n: n + "Timestamp: 1679349379012118479\n")
    yield note("of another origin", "holds", lambda n: "x" + n)
    yield note("without an origin", bad, lambda n: n[n.index("\n"):])
    yield note("size with a plus", bad, lambda n: n.replace("\n21\n", "\n+21\n"))
    yield note("size with a zero before it", bad, lambda n: n.replace("\n21\n", "\n021\n"))
    yield note("size with a space", bad, lambda n: n.replace("\n21\n", "\n 21\n"))
    yield note("size negative", bad, lambda n: n.replace("\n21\n", "\n-21\n"))
    yield note("size 2^64+21", bad, lambda n: n.replace("\n21\n", f"\n{2**64 + 21}\n"))
    yield note("no size", bad, lambda n: n.replace("\n21\n", "\n\n"))
    yield note("no hash", bad, lambda n: "\n".join(n.split("\n")[:2]) + "\n")
    yield note("hash in the other alphabet", None, lambda n: n.replace("/", "_").replace("+", "-"))
    yield note("hash with a letter more", bad, lambda n: n[:-1] + "A\n")
    yield note("lines ended by CR LF", bad, lambda n: n.replace("\n", "\r\n"))
    yield checkpoint("cut before its end", None, lambda c: c[:-1])
    yield checkpoint("without signatures", None, lambda c: c[:c.index("\n\n") + 2])
    yield checkpoint("without a blank line", bad, lambda c: c.replace("\n\n", "\n"))
    yield checkpoint("with two blank lines", bad, lambda c: c.replace("\n\n", "\n\n\n"))
    yield checkpoint("with a blank line at its end", bad, lambda c: c + "\n")
    yield checkpoint("signature's bit", forged, lambda c: c[:-8] + ("A" if c[-8] != "A" else "B") + c[-7:])
    yield checkpoint("changed after it was signed", forged, lambda c: "x" + c)
    yield checkpoint("signed twice", "holds", lambda c: c + c[c.index("\n\n") + 2:])
    yield checkpoint("signed in another name", forged, lambda c: c.replace(f"— {log.host}", "— other.test"))
    yield checkpoint("signed in nobody's name", bad, lambda c: c.replace(f"— {log.host} ", "— "))
    yield checkpoint("signed by another log", forged, lambda c: c[:c.index("\n\n") + 2] + other.line(c[:c.index("\n\n") + 1]))
    yield checkpoint("signed by another log, in this one's name", forged, lambda c: c[:c.index("\n\n") + 2] + other.line(c[:c.index("\n\n") + 1], log.host))
    witness = "— witness.test " + b64(b"witness's signature") + "\n"
    yield checkpoint("with a witness after it", "holds", lambda c: c + witness)
    yield checkpoint("with a witness before it", "holds", lambda c: c.replace("\n\n", "\n\n" + witness))
    same = "— witness.test " + b64(log.id[:4] + b"witness's signature") + "\n"
    yield checkpoint("with a witness of the same hint after it", forged, lambda c: c + same)
    yield checkpoint("with a witness of the same hint before it", forged, lambda c: c.replace("\n\n", "\n\n" + same))
    yield checkpoint("with 63 witnesses", "holds", lambda c: c + witness * 63)
    yield checkpoint("with 64 witnesses", bad, lambda c: c + witness * 64)
    yield checkpoint("with a line that is no signature", bad, lambda c: c + "anything\n")
    yield checkpoint("with a hint alone", bad, lambda c: c + "— witness.test " + b64(b"hint") + "\n")
    yield checkpoint("with a dash of ASCII", bad, lambda c: c.replace("—", "-"))
    yield checkpoint("empty", bad, lambda c: "")


def promise_changes():
    def promised(what, **values):
        return f"promise: over another {what}", "0.1", {"promised": lambda p: {**p, **values}, "entry": lambda e: {**e, "integratedTime": str(START + 5)}}, "forged-promise"

    yield promised("time", integratedTime=START + 4)
    yield promised("index", logIndex=5)
    yield promised("log", logID="77" * 32)
    yield promised("entry", body=b64(b"{}"))
    yield "promise: signature's bit", "0.1", {"promise": lambda s: flip(s, -1)}, "forged-promise"
    yield "promise: by another key", "0.1", {"promise": lambda s: ecdsa(curve_key(61), b"x")}, "forged-promise"
    for what, seconds in {"before the certificate": START - 1, "after the certificate": START + 601, "when it begins": START, "when it ends": START + 600}.items():
        reason = "expired" if seconds in (START - 1, START + 601) else "holds"
        yield f"promise: time is {what}", "0.1", {"promised": lambda p, seconds=seconds: {**p, "integratedTime": seconds}}, reason
    yield "promise: time 0", "0.1", {"promised": lambda p: {**p, "integratedTime": 0}}, "bad-field"
    yield "promise: time after the year 9999", "0.1", {"promised": lambda p: {**p, "integratedTime": 253402300800}}, "bad-field"
    for kind, reason in ("0.3", "holds"), ("0.1", "bad-field"):
        yield "no promise", kind, {"entry": lambda e: {k: v for k, v in e.items() if k != "inclusionPromise"}}, reason
        yield "no promise, no time", kind, {"entry": lambda e: {k: v for k, v in e.items() if k not in ("inclusionPromise", "integratedTime")}}, reason
    yield "no promise and no timestamps", "0.3", {"timestamps": lambda t: [], "entry": lambda e: {k: v for k, v in e.items() if k != "inclusionPromise"}}, "no-time"


# Timestamps


def timestamp_changes(authority):
    """With the new log, where the timestamp alone says when, and beside the old log's time, where one that isn't good is passed over."""
    bad = "bad-timestamp"

    def both(what, steps, reason):
        yield f"timestamp: {what}", "new", steps, reason
        yield f"timestamp beside the log's time: {what}", "0.3", steps, "holds" if reason == "no-time" else reason

    def info(what, reason, **values):
        return both(what, {"info": lambda i: {**i, **values}}, reason)

    def signer(what, reason, make):
        return both(what, {"signer": make}, reason)

    def token(what, reason, **values):
        return both(what, {"token": lambda t: {**t, **values}}, reason)

    def one(what, reason, **values):
        return both(what, {"token": lambda t: {**t, "signers": [{**t["signers"][0], **values}]}}, reason)

    yield from info("version 2", bad, version=integer(2))
    yield from info("another policy", "holds", policy=oid("1.2.3"))
    yield from info("over other bytes", "no-time", imprint=seq(seq(oid(SHA256), NULL), octets(b"7" * 32)))
    yield from info("over SHA-1", "no-time", imprint=seq(seq(oid("1.3.14.3.2.26"), NULL), octets(b"7" * 20)))
    yield from info("over a hash cut", "no-time", imprint=seq(seq(oid(SHA256), NULL), octets(b"7" * 31)))
    yield from info("hash without NULL", "no-time", imprint=seq(seq(oid(SHA256)), octets(b"7" * 32)))
    yield from info("hash with parameters", bad, imprint=seq(seq(oid(SHA256), integer(1)), octets(b"7" * 32)))
    yield from info("before the certificate", "expired", time=long_clock(START - 1))
    yield from info("when the certificate begins", "holds", time=long_clock(START))
    yield from info("when the certificate ends", "holds", time=long_clock(START + 600))
    yield from info("after the certificate", "expired", time=long_clock(START + 601))
    yield from info("half a second after the certificate", "expired", time=tlv(24, b"20260601121000.5Z"))
    yield from info("before the authority began", "no-time", time=long_clock(1500000000))
    yield from info("after the authority ended", "no-time", time=long_clock(START + 10**8 + 1))
    yield from info("with a fraction", "holds", time=tlv(24, b"20260601120006.25Z"))
    yield from info("with a fraction of a microsecond", "holds", time=tlv(24, b"20260601120006.000001Z"))
    yield from info("with a fraction of a nanosecond", bad, time=tlv(24, b"20260601120006.000000001Z"))
    yield from info("with a zero at its end", bad, time=tlv(24, b"20260601120006.50Z"))
    yield from info("with no fraction after the point", bad, time=tlv(24, b"20260601120006.Z"))
    yield from info("without Z", bad, time=tlv(24, b"20260601120006"))
    yield from info("as UTCTime", bad, time=clock(START + 6))
    yield from info("without accuracy", "holds", accuracy=b"")
    yield from info("without a nonce", "holds", nonce=b"")
    yield from info("accurate to 127 ms and 1 us", "holds", accuracy=seq(implicit(0, b"\x7f"), implicit(1, b"\1")))
    yield from info("accurate to no milliseconds", bad, accuracy=seq(implicit(0, b"\0")))
    yield from info("accuracy of another kind", bad, accuracy=seq(tlv(10, b"\1")))
    yield from info("accuracy negative", bad, accuracy=seq(integer(-1)))
    yield from info("nonce negative", bad, nonce=integer(-1))
    yield from info("serial number negative", bad, serial=integer(-1))
    yield from info("with a name that isn't one", bad, more=explicit(0, explicit(4, seq(set_of(seq(oid("2.5.4.3")))))))
    yield from info("ordered", "holds", accuracy=seq(integer(1)) + TRUE)
    yield from info("not ordered, in a longer form", bad, accuracy=seq(integer(1)) + tlv(1, b"\0"))
    yield from info("with the authority's name", "holds", more=explicit(0, explicit(4, name("stamp"))))
    yield from info("with extensions", bad, more=tlv(0xA1, seq(oid("1.2.3"), octets(b"x"))))
    yield from info("with a critical extension", bad, more=tlv(0xA1, seq(oid("1.2.3"), TRUE, octets(b"x"))))
    yield from both("attests nothing", {"attested": lambda a: b""}, bad)
    yield from both("attests with a byte after it", {"attested": lambda a: a + b"\0"}, bad)

    for key in "content_type", "digest", "certificate":
        yield from signer(f"{key} taken out", bad, lambda s, key=key: {k: v for k, v in s.items() if k != key})
        yield from signer(f"{key} twice", bad, lambda s, key=key: {**s, "more": s[key]})
    yield from signer("time taken out", "holds", lambda s: {k: v for k, v in s.items() if k != "time"})
    yield from signer("another digest", "no-time", lambda s: {**s, "digest": seq(oid("1.2.840.113549.1.9.4"), set_of(octets(b"7" * 32)))})
    yield from signer("digest of two values", bad, lambda s: {**s, "digest": seq(oid("1.2.840.113549.1.9.4"), set_of(octets(b"7" * 32), octets(b"8" * 32)))})
    yield from signer("another content", bad, lambda s: {**s, "content_type": seq(oid("1.2.840.113549.1.9.3"), set_of(oid("1.2.840.113549.1.7.1")))})
    yield from signer("another certificate's hash", "no-time", lambda s: {**s, "certificate": seq(oid("1.2.840.113549.1.9.16.2.47"), set_of(seq(seq(seq(octets(b"7" * 32))))))})

    own, other = authority.stamp, authority.fulcio.der
    yield from token("with its certificate", "holds", certificates=explicit(0, own))
    yield from token("with its certificates", "holds", certificates=explicit(0, *sorted([own, authority.stamp_top.der])))
    yield from token("with its certificates in another order", bad, certificates=explicit(0, *sorted([own, authority.stamp_top.der])[::-1]))
    yield from token("with another certificate", "no-time", certificates=explicit(0, other))
    yield from token("with its certificate changed", "no-time", certificates=explicit(0, flip(own, -1)))
    yield from token("with no certificates in their place", "holds", certificates=explicit(0))
    yield from token("with garbage for a certificate", bad, certificates=explicit(0, seq(b"\xff")))
    yield from token("of version 1", "holds", version=integer(1))
    yield from token("of version 9", bad, version=integer(9))
    yield from token("without digests", "no-time", digests=set_of())
    yield from token("with another digest", "no-time", digests=set_of(seq(oid("2.16.840.1.101.3.4.2.2"))))
    yield from token("of other content", bad, content=seq(oid("1.2.840.113549.1.7.1"), explicit(0, octets(b"x"))))
    yield from token("without content", bad, content=seq(oid(TST_INFO)))
    yield from token("without signers", bad, signers=[])
    yield from both("with two signers", {"token": lambda t: {**t, "signers": [t["signers"][0], {**t["signers"][0], "version": integer(3)}]}}, bad)
    yield from one("by another number", "no-time", who=seq(authority.stamp_top.name, integer(8)))
    yield from one("by another name", "no-time", who=seq(name("other"), integer(7)))
    yield from one("by what isn't a name", bad, who=seq(seq(set_of(seq(octets(b"UD\n"), tlv(19, b"test")))), integer(7)))
    yield from token("with a digest that isn't an algorithm", bad, digests=set_of(seq(oid(SHA256)), seq(integer(1))))
    yield from one("by its key's name", bad, who=implicit(0, b"7" * 20))
    yield from one("hashed in another way", "no-time", digest=seq(oid("2.16.840.1.101.3.4.2.2")))
    yield from one("hashed with SHA-1", "no-time", digest=seq(oid("1.3.14.3.2.26")))
    yield from one("algorithm is another", "no-time", algorithm=seq(oid(ECDSA[384])))
    yield from one("without attributes", bad, attributes=b"")
    yield from one("with attributes that aren't signed", "holds", more=tlv(0xA1, seq(oid("1.2.3"), set_of(integer(1)))))
    yield from both("signature's bit", {"stamp_signature": lambda s: flip(s, -1)}, "no-time")
    yield from both("signed by another key", {"stamp_signature": lambda s: ecdsa(curve_key(62, ec.SECP384R1()), b"x")}, "no-time")
    yield from both("signature empty", {"stamp_signature": lambda s: b""}, "no-time")
    yield from both("of other signed data", {"content": lambda c: c.replace(b"\x01\x07\x02", b"\x01\x07\x03", 1)}, bad)
    for status, reason in {1: "no-time", 2: "no-time", -1: bad}.items():
        # the status is outside of what is signed
        yield from both(f"status {status}", {"timestamp": lambda t, status=status: t.replace(seq(integer(0)), seq(integer(status)), 1)}, reason)
    yield from both("with a byte after it", {"timestamp": lambda t: t + b"\0"}, bad)
    yield from both("cut", {"timestamp": lambda t: t[:-1]}, bad)
    yield from both("garbage", {"timestamp": lambda t: b"garbage"}, bad)
    yield from both("only its status", {"timestamp": lambda t: seq(seq(integer(2)))}, bad)
    yield from both("twice", {"timestamps": lambda t: t * 2}, bad)
    yield from both("33 of them", {"timestamps": lambda t: t * 33}, bad)
    yield "timestamp: a good one and garbage", "new", {"timestamps": lambda t: [*t, b"garbage"]}, bad
    other_status = lambda t: [*t, t[0].replace(seq(integer(0)), seq(integer(2)), 1)]
    yield "timestamp: a good one and a refusal", "new", {"timestamps": other_status}, "holds"
    yield "timestamp: none", "0.3", {"timestamps": lambda t: []}, "holds"
    yield "timestamp: none", "new", {"timestamps": lambda t: []}, "no-time"


# Trusted roots


def root_changes(authority):
    """(what, change of the trusted root, kind, reason): "root" when it isn't one."""
    late, early = {"start": "2027-01-01T00:00:00Z"}, {"start": "2021-01-01T00:00:00Z", "end": "2026-06-01T12:00:00Z"}
    exact = {"start": "2021-01-01T00:00:00Z", "end": "2026-06-01T12:00:05Z"}
    log, ct, ca, tsa = ("tlogs", 0), ("ctlogs", 0), ("certificateAuthorities", 0), ("timestampAuthorities", 0)
    period = ("publicKey", "validFor")

    def to(value):
        return lambda v: value

    yield "as it is", (), None, "0.1", "holds"
    yield "media type", ("mediaType",), to("application/json"), "0.1", "root"
    for key in "tlogs", "ctlogs", "certificateAuthorities":
        yield f"no {key}", (key,), to([]), "0.1", "root"
        yield f"{key} twice", (key,), lambda v: v + v, "0.1", "holds"
    yield "no timestamp authorities", ("timestampAuthorities",), to([]), "new", "bad-timestamp"
    yield "no timestamp authorities, none needed", ("timestampAuthorities",), to([]), "0.1", "holds"
    yield "log not believed before", (*log, *period), to(early), "0.1", "unknown-log"
    yield "log believed until then", (*log, *period), to(exact), "0.1", "holds"
    yield "log without a period", (*log, "publicKey", "validFor"), to(...), "0.1", "root"
    yield "log in another place", (*log, "baseUrl"), to("https://other.test"), "0.1", "forged-checkpoint"
    yield "log with another name", (*log, "logId", "keyId"), to(b64(b"7" * 32)), "0.1", "unknown-log"
    yield "log's key not on the curve", (*log, "publicKey", "rawBytes"), in_base64(lambda d: flip(d, -1)), "0.1", "root"
    yield "log's key of an unknown kind", (*log, "publicKey", "keyDetails"), to("ML_DSA_65"), "0.1", "unknown-log"
    yield "log's key of another kind", (*log, "publicKey", "keyDetails"), to("PKIX_ED25519"), "0.1", "root"
    yield "another log's key", (*log, "publicKey", "rawBytes"), to(b64(key_info(curve_key(71)))), "0.1", "forged-checkpoint"
    yield "certificate log not believed any more", (*ct, *period), to(early), "0.1", "bad-sct"
    yield "certificate log believed only later", (*ct, *period), to(late), "0.1", "bad-sct"
    yield "another certificate log's key", (*ct, "publicKey", "rawBytes"), to(b64(key_info(curve_key(72)))), "0.1", "bad-sct"
    yield "authority believed only later", (*ca, "validFor"), to(late), "0.1", "expired"
    yield "authority not believed any more", (*ca, "validFor"), to(early), "0.1", "expired"
    yield "authority without its top", (*ca, "certChain", "certificates"), lambda v: v[:1], "0.1", "holds"
    yield "authority's certificates the other way round", (*ca, "certChain", "certificates"), lambda v: v[::-1], "0.1", "root"
    yield "another authority", (*ca, "certChain", "certificates"), to([{"rawBytes": b64(Issuer(73, "fulcio").der)}]), "0.1", "bad-chain"
    yield "an authority that may not sign", (*ca, "certChain", "certificates"), to([{"rawBytes": b64(authority.stamp)}]), "0.1", "root"
    yield "timestamp authority believed only later", (*tsa, "validFor"), to(late), "new", "no-time"
    yield "timestamp authority not believed any more", (*tsa, "validFor"), to(early), "new", "no-time"
    yield "timestamp authority without its top", (*tsa, "certChain", "certificates"), lambda v: v[:1], "new", "no-time"


def all_changes(authority, bundles):
    """`bundles`: one unchanged of each kind, as objects."""
    yield from json_changes("0.1", bundles["0.1"])
    yield from json_changes("new", bundles["new"], {"certificate", "timestampVerificationData", "checkpoint"})
    yield from json_changes("0.3", bundles["0.3"], {"integratedTime", "inclusionPromise", "timestampVerificationData"})
    yield from text_changes()
    yield from certificate_changes()
    yield from sct_changes()
    yield from signing_changes()
    yield from entry_changes()
    yield from proof_changes()
    yield from checkpoint_changes("0.1", authority.old_log, authority.new_log)
    yield from checkpoint_changes("new", authority.new_log, authority.old_log)
    yield from promise_changes()
    yield from timestamp_changes(authority)
