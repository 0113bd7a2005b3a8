"""Readers: the files of one tool each."""
