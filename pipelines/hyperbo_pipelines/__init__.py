"""Apache Beam: how raw trials become clean, matched, warped records, and how trials are collected."""

import logging

# Beam warns, when it is imported, that the client of a cloud is missing. Users cannot act on it.
logging.getLogger().addFilter(lambda record: not str(record.msg).startswith("apitools not found"))
