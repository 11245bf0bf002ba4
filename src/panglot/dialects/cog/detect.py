"""The cog dialect: cog.yaml that names a predictor, or a script with a subclass of `cog.BasePredictor`."""

from __future__ import annotations

import os
from pathlib import Path

from panglot.dialects.cog import config as configs
from panglot.dialects.cog import predictor, variables
from panglot.dialects.cog.config import Config
from panglot.dialects.cog.predictor import PredictorCode
from panglot.errors import StartError, near
from panglot.packages.package import Package

LOOKS_FOR = "cog.yaml with predict: or run:, or a script with a subclass of cog.BasePredictor"
USUAL = ("predict.py", "run.py")
MOST_SCRIPTS = 100
FETCH_BYTES = 256 << 20
"""The largest file that a request may name by its address, unless a setting says otherwise."""


def detect(path: Path) -> Package | None:
    """The package; None for other files; StartError for a package of this platform that cannot work."""
    folder = path if path.is_dir() else path.parent
    if path.is_file() and path.name != configs.NAME and path.suffix != ".py":
        return None
    config = configs.read(folder)
    named = _by_variable(folder, config) if path.is_dir() else None
    if named is not None:
        return _package(folder, named, config, (f"{variables.ENTRY} names it",))
    if config is not None and config.key and (path.suffix != ".py" or _is_entry(path, config)):
        script, name = config.entry
        if not (folder / script).is_file():
            raise config.file.error(f"there is no {script}", config.key, fix="name the script that predicts")
        reason = f"{configs.NAME}:{config.file.line(config.key)} names it"
        return _package(folder, predictor.by_name(folder / script, name), config, (reason,))
    code = predictor.by_base(path) if path.suffix == ".py" else _without_config(folder)
    return _package(code.script.parent, code, None) if code is not None else None


def _by_variable(folder: Path, config: Config | None) -> PredictorCode | None:
    """The predictor that the platform's variable names, whatever cog.yaml says. Raises StartError."""
    chosen = variables.entry(os.environ)
    if chosen is None:
        return None
    script, name = chosen
    if (folder / script).is_file():
        return predictor.by_name(folder / script, name)
    if config is None:
        # The variable is for another folder: there is nothing of Cog in this one.
        return None
    raise StartError(f"{variables.ENTRY} names {script}, which is not there", file=str(folder), fix="unset it")


def _is_entry(path: Path, config: Config) -> bool:
    return path == config.folder / config.entry[0]


def _without_config(folder: Path) -> PredictorCode | None:
    """The predictor of a folder without cog.yaml: in the script with the usual name, or in the only one."""
    scripts = sorted(folder.glob("*.py"), key=lambda path: (path.name not in USUAL, path.name))[:MOST_SCRIPTS]
    codes = [code for path in scripts if (code := predictor.by_base(path)) is not None]
    if len(codes) > 1 and codes[0].script.name not in USUAL:
        raise StartError(
            f"{' and '.join(code.script.name for code in codes)} could both be the predictor",
            file=str(folder),
            fix=f"name one: panglot serve {near(str(codes[0].script))}",
        )
    return codes[0] if codes else None


def _package(folder: Path, code: PredictorCode, config: Config | None, reasons: tuple[str, ...] = ()) -> Package:
    shown = code.script.relative_to(folder)
    environment = config.environment if config is not None else {}
    concurrency = variables.concurrency(os.environ) or (config.concurrency if config is not None else 0)
    train = config.trainer if config is not None else None
    requirements = config.section("build").get("python_requirements") if config is not None else None
    packages = config.packages if config is not None else ()
    is_named = (
        isinstance(requirements, str) and requirements != "requirements.txt" and (folder / requirements).is_file()
    )
    return Package(
        name=folder.name,
        folder=folder,
        script=code.script,
        dialect="cog",
        entry=f"{code.name}.{code.method}" if code.method else code.name,
        reasons=(f"{shown}:{code.line} defines {code.name}", *reasons),
        problems=tuple(config.hints()) if config is not None else (),
        config=file if (file := folder / "panglot.toml").is_file() else None,
        # As on the platform: a prediction with a NaN in its answer fails; inputs may be videos, which are large; and a
        # prediction that is cancelled, or that its client has left, is interrupted by a CancelationException.
        defaults={
            "nan": "error",
            "fetch_bytes": FETCH_BYTES,
            "on_leave": "interrupt",
            **variables.defaults(os.environ),
        },
        options={
            "class": code.name,
            "secrets": code.secrets,
            "concurrency": concurrency,
            "train": train,
            "train_secrets": predictor.secrets_of(folder / train[0], train[1]) if train is not None else (),
            "throttle": variables.throttle(os.environ),
        },
        environment={name: os.environ.get(name) or value for name, value in environment.items()},
        stores_inputs=True,
        captures_native_output=True,
        installs=(*((("-r", str(requirements)),) if is_named else ()), *((packages,) if packages else ())),
    )
