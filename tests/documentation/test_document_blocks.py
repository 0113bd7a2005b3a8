from __future__ import annotations

from pathlib import Path

from document_blocks import Step, steps

PAGE = """
Text with `hyperbo demo` in a sentence.

    hyperbo demo # a comment
    ls
    hyperbo tune --command "python train.py \\
      --lr {lr}"

<!-- not run: needs a bucket -->

    hyperbo data publish a --to s3://b

```python
tuner.tell(trial, "# no comment")
```

    runs/data/         a listing

```toml
hyperbo = 1
```
"""


def test_commands_and_python_are_found_in_their_order(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert steps(page) == [
        Step(4, "demo", False),
        Step(6, 'tune --command "python train.py --lr {lr}"', False),
        Step(11, "data publish a --to s3://b", False, "needs a bucket"),
        Step(14, 'tuner.tell(trial, "# no comment")\n', True),
    ]
