"""Prints the members of a security catalog (.cat), one per line, as signify's tables read them.

Each line has the catalog's member format, the kind of the member's tag (`text` or `bytes`), the tag in
hexadecimal digits, the digest's algorithm and value (or two hyphens) and the file's name. signify's own
reader of catalogs is not used, because it needs a cryptographic library that does not recognize every
release of OpenSSL.
"""

import sys

from asn1crypto import cms, parser
from signify.asn1 import ctl

FORMATS = {
    "1.3.6.1.4.1.311.12.1.2": "version-1",
    "1.3.6.1.4.1.311.12.1.3": "version-2",
    "microsoft_catalog_list_member": "version-1",
    "microsoft_catalog_list_member_v2": "version-2",
}


def tag_of(member):
    """Returns the kind and the digits of a member's tag."""
    tag = member["subject_identifier"].native
    if len(tag) in (20, 32):
        return "bytes", tag.hex()
    return "text", tag.decode("utf-16-le").rstrip("\0").lower()


def main():
    """Reads the file on the command line."""
    with open(sys.argv[1], "rb") as file:
        message = cms.ContentInfo.load(file.read(), strict=True)
    wrapped = message["content"]["encap_content_info"]["content"]
    # The content is inside explicit tag 0.
    _, _, _, _, inner, _ = parser.parse(wrapped.dump(), strict=True)
    trusted = ctl.CertificateTrustList.load(inner, strict=True)
    form = FORMATS[trusted["subject_algorithm"]["algorithm"].native]
    for member in trusted["trusted_subjects"]:
        digest, name, info = ("-", "-"), None, None
        for attribute in member["subject_attributes"]:
            kind = attribute["type"].native
            for value in attribute["values"]:
                if kind == "microsoft_spc_indirect_data_content":
                    content = value["message_digest"]
                    digest = (
                        content["digest_algorithm"]["algorithm"].native,
                        content["digest"].native.hex(),
                    )
                elif kind == "microsoft_cat_namevalue" and value["refname"].native == "File":
                    name = value["value"].contents.decode("utf-16-le").rstrip("\0")
                elif kind in ("microsoft_cat_memberinfo", "microsoft_cat_memberinfo2"):
                    info = kind
        if info is None:
            sys.exit(f"{name} has no member information")
        print(form, *tag_of(member), *digest, name)


main()
