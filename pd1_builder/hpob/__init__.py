"""HPO-B: tables of evaluated hyperparameters from OpenML. The card is README.md."""
