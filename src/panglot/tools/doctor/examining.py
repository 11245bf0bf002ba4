"""`panglot doctor`: examines everything that serving needs, and tells problems with their fixes."""

from __future__ import annotations

import dataclasses
import os
import platform
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from panglot import __version__, dialects
from panglot.errors import StartError
from panglot.packages.lfs_pointers import lfs_pointers
from panglot.packages.package import Package
from panglot.settings import Settings, table_of, variables
from panglot.settings.resolving import resolve
from panglot.tools.doctor import environment, machine, nodes, selftest
from panglot.tools.doctor.finding import PROBLEM, WARNING, Check, CheckResult, Finding, run

FRONT, PACKAGE = "panglot", "package"
LIBRARIES = ("uvicorn", "uvloop", "httptools", "orjson", "starlette", "watchfiles")
SECTIONS = (FRONT, machine.MACHINE, machine.ADDRESS, nodes.CLUSTER, environment.WORKER, PACKAGE, selftest.SECTION)
LOG_LINES = 40
MOST_SHOWN = 5
"""Names of files in one line."""

Say = Callable[[str], None]


@dataclass
class Report:
    """All findings, in the order in which they are shown, and the log of a self-test that has failed."""

    findings: list[Finding] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    @property
    def problems(self) -> int:
        return sum(finding.state == PROBLEM for finding in self.findings)

    @property
    def warnings(self) -> int:
        return sum(finding.state == WARNING for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON shows it."""
        return {
            "panglot": __version__,
            "ok": not self.problems,
            "problems": self.problems,
            "warnings": self.warnings,
            "findings": [dataclasses.asdict(finding) for finding in self.findings],
            "log": self.log,
        }


def examine(
    path: str | None, flags: dict[str, Any], given: dict[str, Any], say: Say, environ: Mapping[str, str] = os.environ
) -> Report:
    """Examine the machine and the interpreter; with a path also the package, which is served for one request.

    `flags` are the settings from the command line, `given` the same settings as texts. A problem is a finding, and is
    never raised.
    """
    report = Report()
    package = _discover(path, flags, environ, report) if path else None
    settings = _settings(path, package, flags, environ, report)
    if package is not None:
        package = _arranged(package, settings, report)
    report.findings[:0] = run(CHECKS, settings)
    # Before the machine is examined: a port that is taken does not hinder the self-test, which takes a free one.
    servable = not report.problems
    say("looking at the machine")
    report.findings += run(machine.CHECKS, settings)
    if settings.ray:
        say(f"asking the cluster at {settings.ray} for a placement")
        report.findings += nodes.examine(settings)
        servable = servable and not report.problems
    else:
        say("looking at the worker's interpreter")
        servable = _worker(settings.python, package, report) and servable
    if path and package and servable:
        say(f"serving {package.name} for a moment")
        _self_test(path, package, settings, given, environ, report)
    elif path:
        report.findings.append(Finding(selftest.SECTION, "ready", "not tried: fix the problems above first", WARNING))
    report.findings.sort(key=lambda finding: SECTIONS.index(finding.section))
    return report


def interpreter(_: Settings) -> CheckResult:
    """The interpreter of Panglot itself."""
    return CheckResult(f"{sys.executable} ({platform.python_implementation()} {platform.python_version()})")


def system(_: Settings) -> CheckResult:
    """The system, and whether Panglot is tested on it."""
    libc = " ".join(platform.libc_ver()).strip()
    words = " ".join(word for word in (platform.system(), platform.release(), platform.machine(), libc) if word)
    is_tested = platform.system() == "Linux"
    return CheckResult(words) if is_tested else CheckResult(words, WARNING, "Panglot is tested on Linux only")


def libraries(_: Settings) -> CheckResult:
    """The libraries that Panglot needs and has, with their versions."""
    return CheckResult(", ".join(f"{name} {version}" for name in LIBRARIES if (version := _version(name))))


def missing_libraries(_: Settings) -> CheckResult | None:
    """The libraries that Panglot needs and does not have."""
    absent = [name for name in LIBRARIES if not _version(name)]
    fix = shlex.join([sys.executable, "-m", "pip", "install", *map(_requirement, absent)])
    return CheckResult(f"missing: {', '.join(absent)}", PROBLEM, fix) if absent else None


def unsigned_webhooks(settings: Settings) -> CheckResult | None:
    """Whether the receivers of webhooks cannot tell who calls them."""
    from panglot.jobs.webhooks.sending import SIGN, UNSIGNED

    is_signed = bool(settings.webhook_secret_file or os.environ.get("PANGLOT_WEBHOOK_SECRET", "").strip())
    return CheckResult(UNSIGNED, WARNING, SIGN) if settings.webhook_allow and not is_signed else None


def _requirement(name: str) -> str:
    """A library as Panglot requires it, with its versions."""
    try:
        listed = metadata.requires("panglot") or []
    except metadata.PackageNotFoundError:
        listed = []
    return next((line for line in listed if re.match(rf"{name}\b", line)), name)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _discover(path: str, flags: dict[str, Any], environ: Mapping[str, str], report: Report) -> Package | None:
    by_variable = {name: text for name, _, text in variables.given(environ)}
    try:
        package = dialects.discover(Path(path), str(flags.get("dialect", "")), {**by_variable, **flags})
    except StartError as error:
        report.findings.append(Finding(PACKAGE, "package", _where(error), PROBLEM, error.fix))
        return None
    value = f"{package.name}: {package.dialect}, {package.entry} in {package.script}"
    report.findings.append(Finding(PACKAGE, "package", value))
    report.findings += [Finding(PACKAGE, "package", problem, WARNING) for problem in package.problems]
    report.findings += _unfetched(Path(path), package)
    return package


def _unfetched(path: Path, package: Package) -> list[Finding]:
    """A finding for files that a repository lacks because it was cloned without Git LFS."""
    pointers = lfs_pointers(package.folder) if path.is_dir() else []
    if not pointers:
        return []
    more = len(pointers) - MOST_SHOWN
    shown = ", ".join(pointers[:MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
    fix = shlex.join(["git", "-C", str(path), "lfs", "pull"])
    return [Finding(PACKAGE, "files", f"only a pointer of Git LFS, not the file itself: {shown}", WARNING, fix)]


def _arranged(package: Package, settings: Settings, report: Report) -> Package:
    """The package, completed by its settings, such as the file that --config names."""
    try:
        return dialects.arrange(package, settings)
    except StartError as error:
        report.findings.append(Finding(PACKAGE, "package", _where(error), PROBLEM, error.fix))
        return package


def _settings(
    path: str | None, package: Package | None, flags: dict[str, Any], environ: Mapping[str, str], report: Report
) -> Settings:
    """The settings in force; only the command line's where the rest cannot be read."""
    file = package.config if package else Path(path) / "panglot.toml" if path else None
    try:
        resolved = resolve(
            flags, environ, file if file and file.is_file() else None, package.defaults if package else {},
            dialects.scope(package.dialect) if package else None,
        )  # fmt: skip
    except StartError as error:
        report.findings.append(Finding(FRONT, "settings", _where(error), PROBLEM, error.fix))
        known = table_of(Settings)
        return Settings(**{name: value for name, value in flags.items() if name in known})
    changed = [
        f"{name} = {getattr(resolved.settings, name)} ({source})"
        for name, source in resolved.sources.items()
        if source != "default"
    ]
    report.findings.append(Finding(FRONT, "settings", ", ".join(changed) or "all at their defaults"))
    report.findings += [Finding(FRONT, "settings", warning, WARNING) for warning in resolved.warnings]
    return resolved.settings


def _where(error: StartError) -> str:
    """The error without its fix."""
    return StartError(error.problem, file=error.file, line=error.line).sentence()


def _worker(python: str, package: Package | None, report: Report) -> bool:
    """Whether a worker could start in this interpreter."""
    wanted: list[environment.Import] = []
    if package is not None:
        try:
            wanted = environment.imports(package)
        except StartError as error:
            report.findings.append(Finding(PACKAGE, "import", _where(error), PROBLEM, error.fix))
    try:
        interpreter = environment.probe(python, package, [entry.name for entry in wanted])
    except StartError as error:
        report.findings.append(Finding(environment.WORKER, "interpreter", _where(error), PROBLEM, error.fix))
        return False
    process = environment.worker_process(python)
    lacking = environment.missing(wanted, interpreter, package.folder if package else None)
    report.findings += [*environment.describe(interpreter), process, *lacking]
    return process.state != PROBLEM


def _self_test(
    path: str,
    package: Package,
    settings: Settings,
    given: dict[str, Any],
    environ: Mapping[str, str],
    report: Report,
) -> None:
    from panglot.web.access import tokens

    try:
        token = tokens.establish(dataclasses.replace(settings, host="127.0.0.1"), environ).token
    except StartError:
        return
    ours = ("host", "port", "log_format", "log_level")
    flags = selftest.flags_of({name: value for name, value in given.items() if name not in ours})
    plan = selftest.ServerPlan(
        path, package.folder, flags, token, settings.load_timeout, settings.timeout, settings.drain
    )
    result = selftest.run(plan)
    if result.loaded:
        report.findings[:] = [
            environment.as_loaded(finding) if finding.name == "import" else finding
            for finding in report.findings
            if finding.name != "import" or finding.state == PROBLEM
        ]
    report.findings += [_told_once(finding, report) for finding in result.findings]
    if any(finding.fix == selftest.SEE_LOG for finding in report.findings):
        report.log = result.log[-LOG_LINES:]


def _told_once(finding: Finding, report: Report) -> Finding:
    """The finding of a self-test, shortened where a missing import is the reason: that is a finding already."""
    imports = [other for other in report.findings if other.name == "import" and other.state == PROBLEM]
    if finding.state == PROBLEM and any(finding.value.startswith(f"{other.place}: ") for other in imports):
        return dataclasses.replace(finding, value="not ready: see the import above", state=WARNING, fix="")
    return finding


CHECKS = (
    Check(FRONT, "version", lambda _: CheckResult(__version__)),
    Check(FRONT, "interpreter", interpreter),
    Check(FRONT, "platform", system),
    Check(FRONT, "libraries", missing_libraries),
    Check(FRONT, "libraries", libraries),
    Check(FRONT, "webhooks", unsigned_webhooks),
)
