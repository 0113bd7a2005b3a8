"""HyperBO for OptunaHub: the sampler is that of the package hyperbo-priors."""

try:
    from hyperbo.tuning.optuna.sampler import HyperBOSampler
except ModuleNotFoundError as error:
    # Another package of the public index is called hyperbo, too.
    raise ImportError(
        f"the sampler needs {error.name}; pip install 'hyperbo-priors[optuna]' "
        "in an environment without the package hyperbo"
    ) from error

__all__ = ["HyperBOSampler"]
