"""Renders an overlay as ``kubectl kustomize`` does, as far as deploy/k8s uses it.

It knows resources, components, patches (a list of JSON patch operations with a target),
images, and maps of files whose names have no hash, and refuses every other field by
name. A test holds it to kubectl's answer.

Source: the kustomization file's reference; RFC 6902 (JSON patch), RFC 6901 (pointers).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tengen.errors import UsageError, did_you_mean, os_reason

__all__ = ["Documents", "load_all", "read_documents", "render"]

Documents = dict[tuple[str, str], dict[str, Any]]
"""The objects of a render, by kind and name."""

_FIELDS = (
    *("apiVersion", "kind", "resources", "components", "patches", "images"),
    *("configMapGenerator", "generatorOptions"),
)
_MAP_FIELDS = ("name", "files")
_OPTION_FIELDS = ("disableNameSuffixHash", "labels")
_PATCH_FIELDS = ("target", "patch")
_TARGET_FIELDS = ("kind", "name")
_IMAGE_FIELDS = ("name", "newName", "newTag")
_CONTAINERS = ("containers", "initContainers")


def render(folder: Path, files: dict[tuple[str, str], Path] | None = None) -> Documents:
    """Returns the objects of a folder with a kustomization.yaml.

    Args:
        folder: An overlay, a base or a component.
        files: Is given the file that each object was read from.

    Raises:
        UsageError: A file is not there or is no YAML, a field is not known here, two
            objects have one name, or a patch does not fit.
    """
    documents: Documents = {}
    _accumulate(folder.resolve(), documents, {} if files is None else files)
    return documents


def load_all(text: str) -> list[Any]:
    """Returns what the documents of a YAML text hold, but for empty ones.

    Raises:
        yaml.YAMLError: It is none.
    """
    # libyaml's is ten times as fast, where the package has it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [one for one in yaml.load_all(text, Loader=loader) if one is not None]


def read_documents(path: Path) -> list[dict[str, Any]]:
    """Returns the objects of a YAML file.

    Raises:
        UsageError: It is not there, is no YAML, or holds no objects with names.
    """
    try:
        found = load_all(path.read_text())
    except OSError as error:
        raise UsageError(
            f"file ({path}) cannot be read, {os_reason(error)}; check the kustomization"
        ) from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"file ({path}) must be YAML, {reason}; repair it") from error
    for one in found:
        metadata = one.get("metadata") if isinstance(one, dict) else None
        is_named = isinstance(metadata, dict) and metadata.get("name")
        if not is_named or not {"kind", "apiVersion"} <= one.keys():
            raise UsageError(
                f"file ({path}) must hold objects with apiVersion, kind and "
                f"metadata.name; name them"
            )
    return found


def _accumulate(
    folder: Path, documents: Documents, files: dict[tuple[str, str], Path]
) -> None:
    where = folder / "kustomization.yaml"
    content = _read_kustomization(where)
    for name in content.get("resources", ()):
        path = folder / name
        if path.is_dir():
            _accumulate(path.resolve(), documents, files)
            continue
        for one in read_documents(path):
            key = one["kind"], str(one["metadata"].get("name"))
            if key in documents:
                raise UsageError(
                    f"{key[0]}/{key[1]} ({path}) must be there once; rename it"
                )
            documents[key] = one
            files[key] = path.resolve()
    for one, path in _maps(content, folder, where):
        key = one["kind"], one["metadata"]["name"]
        documents[key], files[key] = one, path
    # A component changes what its user has so far.
    for name in content.get("components", ()):
        _accumulate((folder / name).resolve(), documents, files)
    for patch in content.get("patches", ()):
        _patch(patch, documents, where)
    for image in content.get("images", ()):
        _check_fields(image, _IMAGE_FIELDS, "images", where)
        for one in documents.values():
            _set_image(one, image)


def _maps(
    content: Mapping[str, Any], folder: Path, where: Path
) -> Iterator[tuple[dict[str, Any], Path]]:
    """Yields the maps that are made of files, and where the first of these is."""
    options = content.get("generatorOptions", {})
    _check_fields(options, _OPTION_FIELDS, "generatorOptions", where)
    for asked in content.get("configMapGenerator", ()):
        _check_fields(asked, _MAP_FIELDS, "configMapGenerator", where)
        if not options.get("disableNameSuffixHash"):
            raise UsageError(
                f"configMapGenerator ({where}, {asked['name']}) must have "
                f"disableNameSuffixHash; set it in generatorOptions"
            )
        paths = [folder / name for name in asked["files"]]
        try:
            data = {path.name: path.read_text() for path in paths}
        except OSError as error:
            raise UsageError(
                f"file ({error.filename}) cannot be read, {os_reason(error)}; check "
                f"the kustomization"
            ) from error
        metadata: dict[str, Any] = {"name": asked["name"]}
        if "labels" in options:
            metadata["labels"] = dict(options["labels"])
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        yield {**made, "data": data}, paths[0]


def _read_kustomization(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        raise UsageError(
            f"kustomization ({path}) cannot be read, {os_reason(error)}; name a folder "
            f"of deploy/k8s"
        ) from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"kustomization ({path}) must be YAML, {reason}; repair it"
        ) from error
    if not isinstance(content, dict):
        raise UsageError(f"kustomization ({path}) must be an object; repair it")
    _check_fields(content, _FIELDS, "kustomization", path)
    return content


def _check_fields(
    content: Mapping[str, Any], known: tuple[str, ...], what: str, path: Path
) -> None:
    for name in content:
        if name not in known:
            raise UsageError(
                f"{what} ({path}, field {name}) must be of what the renderer without "
                f"kubectl knows; install kubectl, or {did_you_mean(name, known)}"
            )


def _patch(patch: Mapping[str, Any], documents: Documents, where: Path) -> None:
    _check_fields(patch, _PATCH_FIELDS, "patches", where)
    target = patch.get("target", {})
    _check_fields(target, _TARGET_FIELDS, "patches target", where)
    operations = yaml.safe_load(patch["patch"])
    if not target or not isinstance(operations, list):
        raise UsageError(
            f"patches ({where}) must be lists of JSON patch operations, each with a "
            f"target; write them so"
        )
    for (kind, name), one in documents.items():
        is_kind = re.fullmatch(target.get("kind", ".*"), kind)
        if is_kind and re.fullmatch(target.get("name", ".*"), name):
            for operation in operations:
                try:
                    _apply(one, operation)
                except (KeyError, IndexError, ValueError, TypeError) as error:
                    raise UsageError(
                        f"patch ({where}, {operation.get('path')}) must fit "
                        f"{kind}/{name}, which has no {error}; change its path"
                    ) from error


def _apply(document: Any, operation: Mapping[str, Any]) -> None:
    words = [
        word.replace("~1", "/").replace("~0", "~")
        for word in operation["path"].split("/")[1:]
    ]
    place = document
    for word in words[:-1]:
        place = place[int(word)] if isinstance(place, list) else place[word]
    last, kind = words[-1], operation["op"]
    value = copy.deepcopy(operation.get("value"))
    if kind == "add" and isinstance(place, list):
        place.insert(len(place) if last == "-" else int(last), value)
    elif kind == "add":
        place[last] = value
    elif kind == "replace":
        index: Any = int(last) if isinstance(place, list) else last
        place[index]  # must be there
        place[index] = value
    elif kind == "test":
        found = place[int(last) if isinstance(place, list) else last]
        if found != value:
            raise ValueError(f"{value!r} there but {found!r}")
    elif kind == "remove":
        del place[int(last) if isinstance(place, list) else last]
    else:
        raise ValueError(f"operation {kind}")


def _set_image(place: Any, image: Mapping[str, str]) -> None:
    for container in _containers(place):
        named = str(container.get("image", ""))
        # A tag follows the last slash; a digest an at sign.
        name = re.sub(r"(:[^/:@]*)?(@.*)?$", "", named)
        if name == image["name"]:
            tag = image.get("newTag") or named[len(name) + 1 :]
            container["image"] = f"{image.get('newName', name)}:{tag}"


def _containers(place: Any) -> Iterator[dict[str, Any]]:
    """Yields every container below a place, in whatever kind."""
    if isinstance(place, list):
        for one in place:
            yield from _containers(one)
    elif isinstance(place, dict):
        for name, value in place.items():
            if name in _CONTAINERS and isinstance(value, list):
                yield from (one for one in value if isinstance(one, dict))
            else:
                yield from _containers(value)
