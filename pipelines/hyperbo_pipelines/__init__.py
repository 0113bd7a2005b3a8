"""Apache Beam: how raw trials become clean, matched, warped records, and how trials are collected."""
