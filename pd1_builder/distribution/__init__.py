"""Published versions: put where others can read them, pulled by name, checked byte by byte.

A place is a folder: on this machine, on any static web server, or in an object store. It holds

    index.json                          the versions there are
    index/<name>/<config>/<version>.json    one version: what makes it exist; never changed
    <name>/<config>/<version>/...       its files, as in a folder of versions

Everything is checked against SHA-256: the files by the manifest, the manifest by the index, or by a revision
or a signature that the reader has from elsewhere.
"""
