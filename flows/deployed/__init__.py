"""The flows that run unattended: each takes a service file, and does what is missing."""
