"""Files: atomic writes, staging, the code and extras that are installed, checked values, printable text.

Import further functions from the modules `code_version`, `installation`, `printable` and `validation`.
"""

from hyperbo.storage.atomic import fsync, user_folder, write_atomically
from hyperbo.storage.staging import lock, publish, stage

__all__ = ["fsync", "lock", "publish", "stage", "user_folder", "write_atomically"]
