"""PD1: tuning trials of neural networks, in the layout of the release. The card is README.md."""
