"""The catalogue of what is published at a place, as a static site."""
